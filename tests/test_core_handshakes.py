"""What MSCATTER and MGATHER order themselves, per target: the table of SEMANTICS 3.1, cell by cell.

Each cell is one kernel: everything is written and waited for, then one instruction of another pipe, then the access
(or the access first), and nothing between them but what the instruction does itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ptokit as pto
from launches import SCHEDULES, essence, flush, ids, int32, line, line_of, loud, pair, told

Act = Callable[[Any, Any], Any]
NO_ACT: Act = lambda k, t: None  # noqa: E731


@dataclass(frozen=True)
class Form:
    """One row of the table of SEMANTICS 3.1, as a call."""

    target: str
    op: str
    coalesce: str
    valid: tuple[int, int]
    keywords: dict[str, Any] = field(default_factory=dict)

    def arguments(self) -> list[Any]:
        rows, cols = self.valid
        count = rows if self.coalesce == "row" else cols
        return [int32(4, 8), int32(rows, cols, first=100), int32(1, count, first=2), int32(rows, cols, first=500)]


ROW, ELEM, ONE = (2, 8), (1, 8), (1, 1)
FORMS = {
    "scatter row": Form("a2a3", "mscatter", "row", ROW),
    "scatter row add": Form("a2a3", "mscatter", "row", ROW, {"atomic": "add"}),
    "scatter elem": Form("a2a3", "mscatter", "elem", ELEM),
    "gather row": Form("a2a3", "mgather", "row", ROW),
    "gather elem": Form("a2a3", "mgather", "elem", ELEM),
    "simt scatter": Form("a5", "mscatter", "row", ROW),
    "simt gather": Form("a5", "mgather", "row", ROW),
    "static scatter": Form("a5", "mscatter", "elem", ONE),
    "static gather": Form("a5", "mgather", "elem", ONE),
}
MORE_FORMS = {  # other ways into the same rows of the table
    "scatter elem add": ("scatter elem", Form("a2a3", "mscatter", "elem", ELEM, {"atomic": "add"})),
    "simt scatter elem": ("simt scatter", Form("a5", "mscatter", "elem", ELEM)),
    "simt scatter default": ("simt scatter", Form("a5", "mscatter", "row", ROW, {"conflict": "default"})),
    "simt scatter add": ("simt scatter", Form("a5", "mscatter", "row", ROW, {"atomic": "add"})),
    "simt gather elem": ("simt gather", Form("a5", "mgather", "elem", ELEM)),
    "static scatter add": ("static scatter", Form("a5", "mscatter", "elem", ONE, {"atomic": "add"})),
}

ACTS: dict[str, Act] = {
    "MTE2 loads idx": lambda k, t: k.tload(t.idx, t.rows),
    "MTE2 loads data": lambda k, t: k.tload(t.data, t.values),
    "MTE2 reads table": lambda k, t: k.tload(t.all, t.table),
    "V writes idx": lambda k, t: k.tci(t.idx, 2),
    "V writes data": lambda k, t: k.texpands(t.data, 7),
    "V reads data": lambda k, t: k.tadds(t.other, t.data, 1),
    "MTE3 reads data": lambda k, t: k.tstore(t.out, t.data),
    "MTE3 writes table": lambda k, t: k.tstore(t.table, t.all),
    "S writes idx": lambda k, t: k.set(t.idx, 0, 0, 1),
    "S writes data": lambda k, t: k.set(t.data, 0, 0, 9),
    "S reads data": lambda k, t: k.get(t.data, 0, 0),
    "S writes table": lambda k, t: k.store_scalar(t.table, 17, 9) and k.store_scalar(t.table, 2, 9),
    "S reads table": lambda k, t: k.load_scalar(t.table, 17) + k.load_scalar(t.table, 2),
}

# One word a cell, in the order of FORMS. "-": nothing is missing. "note": a2a3 waits itself, a5 would not.
# A>B: an error without the caller's pair from A to B. "flush": the load does not see the data cache.
BEFORE = """
MTE2 loads idx     note note note MTE2>V note   MTE2>V MTE2>V  MTE2>V MTE2>V
MTE2 loads data    note note note -      -      MTE2>V MTE2>V  MTE2>V MTE2>V
MTE2 reads table   -    -    -    -      -      MTE2>V -       MTE2>V -
V writes idx       -    -    -    -      -      -      -       -      -
V writes data      -    -    -    -      -      -      -       -      -
V reads data       -    -    -    -      -      -      -       -      -
MTE3 reads data    -    -    -    -      -      -      MTE3>V  -      MTE3>V
MTE3 writes table  -    -    -    -      -      MTE3>V MTE3>V  MTE3>V MTE3>V
S writes idx       -    -    -    -      -      S>V    S>V     -      -
S writes data      -    -    -    S>MTE2 -      S>V    S>V     -      -
S reads data       -    -    -    -      -      -      -       -      -
S writes table     -    -    -    S>MTE2 -      S>V    S>V     -      -
S reads table      -    -    -    -      -      -      -       -      -
"""
AFTER = """
MTE2 loads idx     -    -    -    -      -      V>MTE2 V>MTE2  -      -
MTE2 loads data    -    -    -    -      -      V>MTE2 V>MTE2  -      S>MTE2
MTE2 reads table   -    -    -    -      -      flush  -       flush  -
V writes idx       -    -    -    -      -      -      -       -      -
V writes data      -    -    -    -      -      -      -       -      -
V reads data       -    -    -    -      -      -      -       -      -
MTE3 reads data    -    -    -    -      -      -      V>MTE3  -      S>MTE3
MTE3 writes table  -    -    -    -      -      V>MTE3 V>MTE3  S>MTE3 -
S writes idx       -    -    -    -      -      V>S    V>S     -      -
S writes data      -    -    -    MTE2>S -      V>S    V>S     -      -
S reads data       -    -    -    MTE2>S -      -      V>S     -      -
S writes table     -    -    -    MTE2>S -      V>S    V>S     -      -
S reads table      -    -    -    -      -      V>S    -       -      -
"""


def _cells(table: str) -> list[Any]:
    """Every cell as (form, act, expected)."""
    cells = []
    for row in table.strip().splitlines():
        act, words = row[:19].strip(), row[19:].split()
        for (name, form), word in zip(FORMS.items(), words, strict=True):
            cells.append(pytest.param(form, ACTS[act], word, id=f"{name}: {act}"))
            cells += [
                pytest.param(more, ACTS[act], word, id=f"{other}: {act}")
                for other, (like, more) in MORE_FORMS.items()
                if like == name
            ]
    return cells


def access(k: Any, t: Any, form: Form, **more: Any) -> Any:
    words = {"coalesce": form.coalesce, **form.keywords, **more}
    if form.op == "mscatter":
        return k.mscatter(t.table, t.data, t.idx, **words)
    return k.mgather(t.data, t.table, t.idx, **words)


def play(
    form: Form,
    before: Act = NO_ACT,
    after: Act = NO_ACT,
    between: Callable[[Any], Any] = lambda k: None,
    *,
    target: str = "",
    schedule: str = "late",
    seed: int = 0,
    **more: Any,
) -> tuple[pto.Run, list[Any]]:
    """The access between two acts, on tiles that are all written and waited for; `between` stands between the two."""

    def kernel(k, table, values, rows, out):
        t = SimpleNamespace(table=table, values=values, rows=rows, out=out)
        t.data, t.other = (k.tile("int32", form.valid[0], 8, form.valid) for _ in range(2))
        t.all, t.idx = k.tile("int32", 4, 8), k.tile("int32", 1, 8, (1, rows.shape[4]))
        k.tload(t.data, values)
        k.tload(t.all, table)
        k.tload(t.idx, rows)
        k.texpands(t.other, 0)
        k.pipe_barrier("ALL")
        before(k, t)
        if before is not NO_ACT:
            between(k)
        access(k, t, form, **more)
        if after is not NO_ACT:
            between(k)
        after(k, t)
        flush(k)

    arguments = form.arguments()
    run = pto.launch(kernel, *arguments, target=target or form.target, schedule=schedule, seed=seed)
    return run, arguments


def check(form: Form, word: str, act: Act, lines: list[int], **acts: Act) -> None:
    """The cell says what is told, at which lines, with which pair; with the pair nothing is left to say."""
    runs = [play(form, schedule=schedule, seed=seed, **acts)[0] for schedule, seed in SCHEDULES]
    run = runs[0]
    assert all(essence(one) == essence(run) for one in runs), "the schedule changes what is found"
    if word in ("-", "note"):
        assert loud(run) == []
        assert [one.id for one in run.findings if one.id[4] == "S"] == (["PTO-S011"] if word == "note" else [])
        if word == "note":
            note = told(run, "PTO-S011")
            assert (note.facts["lines"], line(note)) == (lines, lines[1])
            assert essence(play(form, between=lambda k: pair(k, "MTE2", "V"), **acts)[0]) == []
        return
    if word == "flush":
        (finding,) = loud(run)
        assert (finding.id, finding.facts["lines"], line(finding)) == ("PTO-H004", lines, lines[1])
        return
    source, sink = word.split(">")
    number = 0 if form.target == "a5" or word == "MTE2>V" else 1  # a2a3 uses id 0 itself
    (finding,) = loud(run)
    on_chip = "table" not in next(name for name, one in ACTS.items() if one is act)
    assert finding.id == ("PTO-S001" if on_chip else "PTO-S002")
    assert finding.severity is pto.Severity.ERROR
    assert finding.facts["insert"] == [source, sink, number]
    assert f'k.set_flag("{source}", "{sink}", {number})' in finding.fix
    assert (finding.facts["lines"], line(finding)) == (lines, lines[1])
    healed = play(form, between=lambda k: pair(k, source, sink, number), **acts)[0]
    assert loud(healed) == []


@pytest.mark.parametrize(("form", "act", "word"), _cells(BEFORE))
def test_what_an_access_waits_for_itself(form: Form, act: Act, word: str) -> None:
    at = line_of(access, f"k.{form.op}(")
    check(form, word, act, [act.__code__.co_firstlineno, at], before=act)


@pytest.mark.parametrize(("form", "act", "word"), _cells(AFTER))
def test_what_waits_for_an_access_by_itself(form: Form, act: Act, word: str) -> None:
    at = line_of(access, f"k.{form.op}(")
    check(form, word, act, [at, act.__code__.co_firstlineno], after=act)


@pytest.mark.parametrize("name", FORMS)
def test_a_barrier_of_all_pipes_is_enough_in_every_cell(name: str) -> None:
    form = FORMS[name]
    for act_name, act in ACTS.items():
        for side in ("before", "after"):
            run, _ = play(form, between=lambda k: k.pipe_barrier("ALL"), **{side: act})
            through_cache = form.op == "mscatter" and form.target == "a5" and act_name == "MTE2 reads table"
            assert ids(run) == (["PTO-H004"] if side == "after" and through_cache else []), (act_name, side)
            assert "PTO-S011" not in {one.id for one in run.findings}


@pytest.mark.parametrize("name", FORMS)
def test_where_nothing_is_missing_the_adversary_changes_nothing(name: str) -> None:
    form = FORMS[name]
    for table, side in ((BEFORE, "before"), (AFTER, "after")):
        for cell in _cells(table):
            case, act, word = cell.values
            if case is not form or word not in ("-", "note"):
                continue
            _, polite = play(form, schedule="program", **{side: act})
            for schedule, seed in SCHEDULES:
                _, held = play(form, schedule=schedule, seed=seed, **{side: act})
                for one, other in zip(held, polite, strict=True):
                    np.testing.assert_array_equal(one, other, err_msg=cell.id)


@pytest.mark.parametrize("op", ["mscatter", "mgather"])
def test_cpu_has_no_pipes_and_nothing_to_wait_for(op: str) -> None:
    form = Form("cpu", op, "elem", ELEM)
    for act_name, act in ACTS.items():
        for side in ("before", "after"):
            run, held = play(form, **{side: act})
            assert run.findings == [], act_name
            _, polite = play(form, schedule="program", **{side: act})
            for one, other in zip(held, polite, strict=True):
                np.testing.assert_array_equal(one, other, err_msg=act_name)


@pytest.mark.parametrize("name", FORMS)
def test_an_event_of_the_load_is_as_good_as_a_flag(name: str) -> None:
    form = FORMS[name]

    def kernel(k, table, values, rows, out):
        t = SimpleNamespace(table=table, data=k.tile("int32", form.valid[0], 8, form.valid))
        t.idx = k.tile("int32", 1, 8, (1, rows.shape[4]))
        loads = (k.tload(t.data, values), k.tload(t.idx, rows))
        done = access(k, t, form, wait=loads)
        k.tstore(out, t.data, wait=done)
        flush(k)

    run = pto.launch(kernel, *form.arguments(), target=form.target)
    assert loud(run) == []
    assert "PTO-S011" not in {one.id for one in run.findings}


@pytest.mark.parametrize(
    ("name", "sink"), [("gather row", "S"), ("simt gather", "S"), ("static gather", "S"), ("simt scatter", "S")]
)
def test_what_s_has_waited_for_happened_before_everything_it_issues(name: str, sink: str) -> None:
    run, _ = play(FORMS[name], before=ACTS["MTE2 loads idx"], between=lambda k: pair(k, "MTE2", sink, 3))
    assert loud(run) == []


@pytest.mark.parametrize(("source", "sink"), [("MTE2", "MTE3"), ("V", "MTE2"), ("S", "V")])
def test_a_pair_between_other_pipes_does_not_help(source: str, sink: str) -> None:
    run, _ = play(FORMS["simt gather"], before=ACTS["MTE2 loads idx"], between=lambda k: pair(k, source, sink))
    assert told(run, "PTO-S001").facts["insert"] == ["MTE2", "V", 0]


def test_a_pair_set_before_the_load_does_not_cover_it() -> None:
    def kernel(k, table, rows):
        d, i = k.tile("int32", 2, 8), k.tile("int32", 1, 8, (1, 2))
        k.set_flag("MTE2", "V", 0)
        k.tload(i, rows)
        k.wait_flag("MTE2", "V", 0)
        k.mgather(d, table, i)

    for target in ("a2a3", "a5"):
        finding = told(pto.launch(kernel, int32(4, 8), int32(1, 2), target=target), "PTO-S001")
        assert finding.facts["insert"] == ["MTE2", "V", 1]
        assert finding.facts["lines"] == [line_of(kernel, "k.tload"), line_of(kernel, "k.mgather")]
        assert finding.facts["operands"] == ["i", "i"]


def test_the_free_event_is_one_that_the_kernel_never_uses() -> None:
    def kernel(k, table, rows):
        d, i = k.tile("int32", 2, 8), k.tile("int32", 1, 8, (1, 2))
        for used in (0, 1, 3):
            pair(k, "MTE2", "V", used)
        k.tload(i, rows)
        k.mgather(d, table, i)
        pair(k, "MTE2", "V", 2)

    run = pto.launch(kernel, int32(4, 8), int32(1, 2), target="a5")
    assert told(run, "PTO-S001").facts["insert"] == ["MTE2", "V", 4]


# What the table says of rows that are not issued, and of filling with zeros


def test_where_every_row_is_skipped_there_is_no_dma_to_wait_for() -> None:
    far = {"oob": "skip", "after": ACTS["S writes data"], "before": lambda k, t: k.texpands(t.idx, 99)}
    run, arguments = play(FORMS["scatter row"], **far)
    assert loud(run) == []
    np.testing.assert_array_equal(arguments[0], int32(4, 8))


@pytest.mark.parametrize(("word", "expected"), [(99, ["PTO-S001"]), (0, [])])
def test_rows_out_of_bounds_are_filled_with_zeros_by_the_scalar_pipe(word: int, expected: list[str]) -> None:
    """The pair covers the indices and not the load of the destination: MTE2 orders its own rows, S's it does not."""

    def kernel(k, table, rows, values):
        d, i = k.tile("int32", 2, 8), k.tile("int32", 1, 8, (1, 2))
        k.tload(i, rows)
        pair(k, "MTE2", "V")
        k.tload(d, values)
        k.mgather(d, table, i, oob="zero")

    run = pto.launch(kernel, int32(4, 8), np.array([[1, word]], np.int32), int32(2, 8), target="a2a3")
    assert ids(run) == expected


def test_zeros_that_s_has_filled_in_need_no_pair_before_s_reads_them() -> None:
    def kernel(k, table, rows, out):
        d, i = k.tile("int32", 2, 8), k.tile("int32", 1, 8, (1, 2))
        k.tload(i, rows)
        pair(k, "MTE2", "V")
        k.mgather(d, table, i, oob="zero")
        k.store_scalar(out, 0, k.get(d, 1, 3) + 5)
        flush(k)

    out = int32(1, 8)
    run = pto.launch(kernel, int32(4, 8), np.array([[1, 99]], np.int32), out, target="a2a3")
    assert loud(run) == []
    assert out[0, 0] == 5
