"""The unified buffer: bytes that nobody wrote, words of somebody else, where tiles may lie, and the budget of 3.3."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptokit as pto
from launches import SCHEDULES, essence, flush, ids, int32, line, line_of, loud, pair, told

KIB = 1 << 10
TARGETS = ("a2a3", "a5")
ERROR, WARNING = pto.Severity.ERROR, pto.Severity.WARNING


def memory(run: pto.Run) -> list[tuple[str, int, str]]:
    """The findings about memory: id, line and severity."""
    return sorted(
        (one.id, line(one) if one.where else 0, str(one.severity)) for one in run.findings if one.id[4] == "M"
    )


# Bytes that nobody wrote


READS = {
    "tadd": lambda k, t, out: k.tadd(t, t, t),
    "tstore": lambda k, t, out: k.tstore(out, t),
    "mscatter": lambda k, t, out: k.mscatter(out, t, _indices(k), oob="skip"),
    "trowsum": lambda k, t, out: k.trowsum(k.tile("int32", 2, 8, (2, 1), name="sum"), t),
    "get": lambda k, t, out: k.get(t, 1, 3),
}


def _indices(k: Any) -> Any:
    i = k.tile("int32", 1, 8, (1, 2), name="i")
    k.tci(i, 0)
    return i


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("reader", READS)
def test_reading_what_was_never_written_is_told_where_it_is_read(reader: str, target: str) -> None:
    def kernel(k, out):
        grads = k.tile("int32", 2, 8)
        READS[reader](k, grads, out)
        flush(k)

    for schedule, seed in SCHEDULES:
        run = pto.launch(kernel, int32(2, 8), target=target, schedule=schedule, seed=seed)
        at = READS[reader].__code__.co_firstlineno
        assert memory(run) == [("PTO-M001", at, "warning")]
        assert told(run, "PTO-M001").facts["tile"] == "grads"


@pytest.mark.parametrize("writer", ["tload", "texpands", "tci", "tcvt", "mgather", "set"])
def test_what_was_written_in_any_way_is_written(writer: str) -> None:
    def kernel(k, x, out):
        t, f, i = k.tile("int32", 2, 8), k.tile("float32", 2, 8), _indices(k)
        k.texpands(f, 2.5)
        match writer:
            case "tload":
                k.tload(t, x)
            case "texpands":
                k.texpands(t, 1)
            case "tci":
                k.tci(t, 1)
            case "tcvt":
                k.tcvt(t, f)
            case "mgather":
                k.mgather(t, x, i)
            case "set":
                for at in range(16):
                    k.set(t, at // 8, at % 8, 0)
        k.pipe_barrier("ALL")
        k.tstore(out, t)

    run = pto.launch(kernel, int32(2, 8), int32(2, 8))
    assert loud(run) == []


def test_only_the_valid_region_counts_as_written_and_as_read() -> None:
    def kernel(k, x, out, read):
        t = k.tile("int32", 4, 16, (-1, -1))
        t.set_valid(2, 8)
        k.tload(t, x)
        k.pipe_barrier("ALL")
        t.set_valid(*read)
        k.tadds(t, t, 1)

    for read, expected in {(2, 8): 0, (1, 8): 0, (2, 5): 0, (3, 8): 32, (2, 9): 8, (4, 16): 4 * 64 - 64}.items():
        run = pto.launch(kernel, int32(2, 8), int32(2, 8), read)
        found = [one.facts["bytes"] for one in run.findings if one.id == "PTO-M001"]
        assert found == ([expected] if expected else []), read


@pytest.mark.parametrize("layout", ["dn", "nz"])
def test_the_valid_region_of_other_layouts_is_known_byte_by_byte(layout: str) -> None:
    def kernel(k, read):
        t = k.tile("int32", 16, 16, (-1, -1), layout)
        t.set_valid(16, 9)
        k.texpands(t, 1)
        t.set_valid(*read)
        k.tadds(t, t, 1)

    for read, expected in {(16, 9): 0, (16, 10): 16 * 4, (5, 16): 5 * 7 * 4}.items():
        run = pto.launch(kernel, read)
        found = [one.facts["bytes"] for one in run.findings if one.id == "PTO-M001"]
        assert found == ([expected] if expected else []), read


def test_the_unwritten_bytes_are_garbage_to_the_adversary_and_zero_to_the_polite() -> None:
    def kernel(k, out):
        k.tstore(out, k.tile("int32", 2, 8))

    for schedule, word in (("late", -1), ("random", -1), ("program", 0)):
        out = int32(2, 8)
        pto.launch(kernel, out, schedule=schedule)
        np.testing.assert_array_equal(out, np.full((2, 8), word))


# Indices


def access_of(form: str) -> Any:
    """MSCATTER or MGATHER by rows through this index tile."""
    if form == "mscatter":
        return lambda k, table, i: k.mscatter(table, _written(k), i, oob="skip")
    return lambda k, table, i: k.mgather(k.tile("int32", 2, 8, name="d"), table, i, oob="clamp")


def _written(k: Any) -> Any:
    t = k.tile("int32", 2, 8, name="src")
    k.texpands(t, 3)
    return t


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", ["mscatter", "mgather"])
@pytest.mark.parametrize(("written", "count", "first"), [(0, 8, 0), (1, 4, 4), (2, 0, None)])
def test_an_index_that_nobody_wrote_is_an_error(
    form: str, target: str, written: int, count: int, first: int | None
) -> None:
    def kernel(k, table):
        idx = k.tile("int32", 1, 8, (1, -1))
        if written:
            idx.set_valid(1, written)
            k.tci(idx, 0)
        idx.set_valid(1, 2)
        access_of(form)(k, table, idx)
        flush(k)

    for schedule, seed in SCHEDULES:
        run = pto.launch(kernel, int32(4, 8), target=target, schedule=schedule, seed=seed)
        found = [(one.severity, one.facts["tile"], one.facts["bytes"]) for one in run.findings if one.id == "PTO-M002"]
        assert found == ([(ERROR, "idx", count)] if count else [])
        if count:
            assert f"{count // 4} of its 2 words were never written" in told(run, "PTO-M002").message
            assert told(run, "PTO-M002").facts["first_byte"] == first


def leftovers(k, table, values, at, fresh):
    """The index tile lies where other words were."""
    other = k.tile("int32", 1, 8, at=at)
    k.tload(other, values)
    k.pipe_barrier("ALL")
    idx = k.tile("int32", 1, 8, (1, 2), at=0x200)
    if fresh:
        k.tci(idx, 0)
    k.mgather(k.tile("int32", 2, 8, at=0, name="d"), table, idx, oob="clamp")


@pytest.mark.parametrize(
    ("at", "fresh", "expected"),
    [
        (0x1F0, False, ["PTO-M003", "PTO-M005"]),  # 16 bytes before: its tail is read as indices
        (0x1E0, False, ["PTO-M002"]),  # ends where idx begins
        (0x200, False, []),  # the same words by another name
        (0x200, True, []),
        (0x1E0, True, []),
    ],
)
def test_indices_that_another_tile_left_behind(at: int, fresh: bool, expected: list[str]) -> None:
    run = pto.launch(leftovers, int32(4, 8), int32(8, first=0), at, fresh)
    assert [one for one in ids(run) if one[4] != "I"] == expected
    if "PTO-M003" in expected:
        finding = told(run, "PTO-M003")
        facts = {key: finding.facts[key] for key in ("tile", "other", "written_by", "line")}
        assert facts == {
            "tile": "idx",
            "other": "other",
            "written_by": "tload",
            "line": line_of(leftovers, "k.tload"),
        }
        assert (finding.severity, line(finding)) == (ERROR, line_of(leftovers, "k.mgather"))


@pytest.mark.parametrize(("dtype", "expected"), [("float32", ["PTO-M003"]), ("uint32", []), ("int32", [])])
def test_words_of_another_type_at_the_same_place_are_no_indices(dtype: str, expected: list[str]) -> None:
    def kernel(k, table):
        other = k.tile(dtype, 1, 8, at=0x200)
        k.texpands(other, 1)
        idx = k.tile("int32", 1, 8, (1, 2), at=0x200)
        k.mgather(k.tile("int32", 2, 8, at=0, name="d"), table, idx, oob="clamp")

    run = pto.launch(kernel, int32(4, 8))
    assert [one for one in ids(run) if one[4] == "M"] == expected


# Tiles over tiles


def overlap(k, x, y, out, at, order):
    """Two tiles, and who writes last."""
    first, second = k.tile("int32", 2, 8, at=0x100), k.tile("int32", 2, 8, at=at)
    for name in order:
        k.tload(first if name == "1" else second, x if name == "1" else y)
    k.pipe_barrier("ALL")
    k.tstore(out, first)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("at", "order", "expected"),
    [
        (0x120, "12", ["PTO-M004"]),
        (0xE0, "12", ["PTO-M004"]),
        (0x100, "12", []),  # two names of one place
        (0x120, "21", []),  # the first tile was written last: what it reads is its own
        (0x120, "121", []),
        (0x140, "12", []),
        (0xC0, "12", []),
    ],
)
def test_live_tiles_that_overlap_are_told_when_one_is_read(
    at: int, order: str, expected: list[str], target: str
) -> None:
    for schedule, seed in SCHEDULES:
        run = pto.launch(
            overlap,
            int32(2, 8),
            int32(2, 8, first=50),
            int32(2, 8),
            at,
            order,
            target=target,
            schedule=schedule,
            seed=seed,
        )
        assert ids(run) == expected
        if expected:
            finding = told(run, "PTO-M004")
            assert (finding.facts["tile"], finding.facts["other"]) == ("first", "second")
            assert (finding.severity, line(finding)) == (ERROR, line_of(overlap, "k.tstore"))
            assert finding.facts["line"] == line_of(overlap, "k.tload")
            assert hex(at) in finding.message


def test_a_tile_that_reads_what_another_left_there_is_a_warning() -> None:
    def kernel(k, x, out):
        old = k.tile("int32", 4, 8, at=0x100)
        k.tload(old, x)
        k.pipe_barrier("ALL")
        part = k.tile("int32", 2, 8, at=0x120)
        k.tstore(out, part)

    out = int32(2, 8)
    run = pto.launch(kernel, int32(4, 8), out)
    finding = told(run, "PTO-M008")
    assert ids(run) == ["PTO-M008"]
    assert (finding.severity, finding.facts["tile"], finding.facts["other"]) == (WARNING, "part", "old")
    np.testing.assert_array_equal(out, int32(4, 8)[1:3])


def test_a_view_of_another_type_at_the_same_address_is_how_one_reinterprets() -> None:
    def kernel(k, x, out):
        bits, number = k.tile("int32", 2, 8, at=0x100), k.tile("float32", 2, 8, at=0x100)
        k.tload(bits, x)
        k.pipe_barrier("ALL")
        k.tstore(out, number)

    x = np.arange(16, dtype=np.float32).reshape(2, 8)
    out = np.zeros_like(x)
    assert loud(pto.launch(kernel, x.view(np.int32), out)) == []
    np.testing.assert_array_equal(out, x)


def test_a_place_that_is_used_one_tile_after_the_other_is_fine() -> None:
    def kernel(k, x, out):
        for chunk in range(3):
            t = k.tile("int32", 2, 8, at=0x100)
            k.tload(t, x[2 * chunk : 2 * chunk + 2, :])
            k.pipe_barrier("ALL")
            k.tstore(out[2 * chunk : 2 * chunk + 2, :], t)
            k.pipe_barrier("ALL")

    out = np.zeros((6, 8), np.int32)
    assert loud(pto.launch(kernel, int32(6, 8), out)) == []
    np.testing.assert_array_equal(out, int32(6, 8))


# Which instruction wrote the word that became the bad index


def by_load(k, i, rows):
    k.tload(i, rows)
    pair(k, "MTE2", "V")


def by_set(k, i, rows):
    k.tci(i, 0)
    pair(k, "V", "S")
    k.set(i, 0, 1, 70)
    pair(k, "S", "V")


def by_vector(k, i, rows):
    k.tci(i, 69)


WRITERS = {by_load: ("tload", "k.tload"), by_set: ("set", "k.set(i"), by_vector: ("tci", "k.tci")}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("writer", WRITERS, ids=lambda one: one.__name__)
def test_a_bad_index_is_traced_to_the_instruction_that_wrote_it(writer: Any, target: str) -> None:
    def kernel(k, table, rows):
        i = k.tile("int32", 1, 8, (1, 2))
        writer(k, i, rows)
        k.mgather(k.tile("int32", 2, 8), table, i)

    name, text = WRITERS[writer]
    for schedule, seed in SCHEDULES:
        run = pto.launch(
            kernel, int32(4, 8), np.array([[0, 70]], np.int32), target=target, schedule=schedule, seed=seed
        )
        finding = next(one for one in run.findings if one.id[4] == "I")
        assert finding.facts["written_by"] == name
        assert finding.facts["written_at"] == line_of(writer, text)
        assert line(finding) == line_of(kernel, "k.mgather")
        assert f"written by {name} at line {line_of(writer, text)}" in finding.message


def late_load(k, table, rows):
    """The pair between the load and the gather is missing."""
    i = k.tile("int32", 1, 8, (1, 2))
    k.tci(i, 1000)
    k.pipe_barrier("ALL")
    k.tload(i, rows)
    k.mgather(k.tile("int32", 2, 8), table, i)


def test_an_index_that_had_not_landed_is_told_as_that() -> None:
    run = pto.launch(late_load, int32(4, 8), np.array([[0, 1]], np.int32))
    assert "PTO-S001" in ids(run)
    finding = next(one for one in run.findings if one.id[4] == "I")
    at = line_of(late_load, "k.tload")
    assert f"tload at line {at} should have written that word, and had not landed" in finding.message
    polite = pto.launch(late_load, int32(4, 8), np.array([[0, 1]], np.int32), schedule="program")
    assert ids(polite) == ["PTO-S001"]


def test_an_index_that_nobody_wrote_is_traced_to_nobody() -> None:
    def kernel(k, table):
        k.mgather(k.tile("int32", 2, 8), table, k.tile("int32", 1, 8, (1, 2), name="i"))

    run = pto.launch(kernel, int32(4, 8))
    finding = next(one for one in run.findings if one.id[4] == "I")
    assert finding.facts["written_by"] is None
    assert "Nothing ever wrote that word" in finding.message


# The budget: SEMANTICS 3.3


def place(*tiles: tuple[int, int | None]) -> Any:
    """A kernel of byte tiles: (size in bytes, address or None), each written."""

    def kernel(k):
        for number, (size, at) in enumerate(tiles):
            k.texpands(k.tile("uint8", size // 32, 32, at=at, name=f"t{number}"), 1)

    return kernel


BUDGET = [
    # target, dyn_ub, tiles, findings
    ("a2a3", 0, [(192 * KIB, None)], []),
    ("a2a3", 0, [(192 * KIB, 0)], []),
    ("a2a3", 0, [(192 * KIB + 32, 0)], ["PTO-M006"]),
    ("a2a3", 0, [(64, 192 * KIB - 32)], ["PTO-M006"]),
    ("a2a3", 0, [(32, 192 * KIB - 32)], []),
    ("a2a3", 0, [(128 * KIB, None), (64 * KIB, None)], []),
    ("a2a3", 0, [(128 * KIB, None), (64 * KIB + 32, None)], ["PTO-M006"]),
    ("a2a3", 32, [], ["PTO-M010"]),
    ("a5", 0, [(128 * KIB, 0)], []),
    ("a5", 0, [(128 * KIB, None)], []),
    ("a5", 0, [(128 * KIB + 32, 0)], ["PTO-M007"]),
    ("a5", 0, [(64 * KIB, 0), (64 * KIB, 64 * KIB)], []),
    ("a5", 0, [(64 * KIB, 0), (64 * KIB, 64 * KIB), (32, 150 * KIB)], ["PTO-M007"]),
    ("a5", 0, [(96 * KIB, 0), (96 * KIB, 32 * KIB)], []),  # bytes that tiles share count once
    ("a5", 0, [(32, 216 * KIB - 32)], []),  # far out, but the working set is small
    ("a5", 0, [(32, 216 * KIB)], ["PTO-M006"]),
    ("a5", 0, [(32, 248 * KIB)], ["PTO-M006"]),
    ("a5", 0, [(32, 256 * KIB - 32)], ["PTO-M006"]),
    ("a5", 216 * KIB, [(216 * KIB, 0)], []),
    ("a5", 216 * KIB, [(216 * KIB + 32, 0)], ["PTO-M006"]),
    ("a5", 160 * KIB, [(160 * KIB, 0)], []),
    ("a5", 160 * KIB, [(160 * KIB + 32, 0)], ["PTO-M006"]),
    ("a5", 64 * KIB, [(32, 64 * KIB)], ["PTO-M006"]),
    ("a5", 64 * KIB, [(32, 64 * KIB - 32)], []),
    ("a5", 216 * KIB + 1, [], ["PTO-M009"]),
    ("a5", 200 * KIB, [(16 * KIB, None)], []),
    ("a5", 200 * KIB, [(16 * KIB + 32, None)], ["PTO-M009"]),
    ("cpu", 0, [(512 * KIB, 0), (512 * KIB, 8)], []),  # cpu has no unified buffer
    ("cpu", 1 * KIB, [(32, 0)], []),
]


@pytest.mark.parametrize(("target", "dyn_ub", "tiles", "expected"), BUDGET)
def test_the_budget_of_the_unified_buffer(target: str, dyn_ub: int, tiles: list[Any], expected: list[str]) -> None:
    for schedule in ("late", "program"):
        run = pto.launch(place(*tiles), target=target, dyn_ub=dyn_ub, schedule=schedule)
        assert ids(run) == expected
        assert all(one.severity is ERROR for one in run.findings)


@pytest.mark.parametrize(
    ("at", "around"), [(0x11, ["0x0", "0x20"]), (0x30, ["0x20", "0x40"]), (1, ["0x0", "0x20"]), (0x40, [])]
)
@pytest.mark.parametrize("target", TARGETS)
def test_addresses_are_multiples_of_32_bytes(target: str, at: int, around: list[str]) -> None:
    run = pto.launch(place((64, at)), target=target)
    assert ids(run) == (["PTO-M005"] if around else [])
    for address in around:
        assert address in told(run, "PTO-M005").fix


def test_past_the_end_says_both_sizes_that_are_in_use() -> None:
    finding = told(pto.launch(place((32, 216 * KIB))), "PTO-M006")
    assert (finding.facts["size"], finding.facts["toolchain_size"], finding.facts["limit"]) == (
        262144,
        253952,
        221184,
    )
    assert "253952" in finding.message
    assert "262144" in finding.message


LEDGERS = [
    # target, dyn_ub, tiles, (static, dynamic, reserved, dcache, peak, needed, size)
    ("a5", 0, [], (0, 0, 8, 120, 0, 0, 256)),
    ("a5", 0, [(16 * KIB, None)], (16, 0, 8, 104, 16, 0, 256)),
    ("a5", 0, [(16 * KIB, 4 * KIB)], (0, 20, 8, 120, 20, 0, 256)),
    ("a5", 0, [(160 * KIB, 0)], (0, 160, 8, 88, 160, 160, 256)),
    ("a5", 160 * KIB, [(160 * KIB, 0)], (0, 160, 8, 88, 160, 160, 256)),
    ("a5", 216 * KIB, [(150 * KIB, 2 * KIB)], (0, 152, 8, 32, 152, 152, 256)),
    ("a5", 100 * KIB, [(32 * KIB, None), (8 * KIB, 40 * KIB)], (32, 48, 8, 116, 48, 0, 256)),
    ("a2a3", 0, [(16 * KIB, None), (32, 100 * KIB)], (16, 100 + 1 / 32, 0, 0, 100 + 1 / 32, 0, 192)),
    ("cpu", 0, [(16 * KIB, None)], (16, 0, 0, 0, 16, 0, 0)),
]


@pytest.mark.parametrize(("target", "dyn_ub", "tiles", "expected"), LEDGERS)
def test_the_ledger(target: str, dyn_ub: int, tiles: list[Any], expected: tuple[float, ...]) -> None:
    ub = pto.launch(place(*tiles), target=target, dyn_ub=dyn_ub).ub
    found = (ub.static, ub.dynamic, ub.reserved, ub.dcache, ub.peak, ub.needed_dyn_ub, ub.size)
    assert found == tuple(int(number * KIB) for number in expected)
    entries = [(one.name, one.nbytes, one.is_manual) for one in ub.tiles]
    assert entries == [(f"t{n}", size, at is not None) for n, (size, at) in enumerate(tiles)]


@pytest.mark.parametrize("at", [0, None], ids=["manual", "automatic"])
def test_what_the_finding_and_the_ledger_ask_for_is_enough(at: int | None) -> None:
    kernel = place((100 * KIB, at), (32 * KIB, None if at is None else 100 * KIB))
    run = pto.launch(kernel)
    finding = told(run, "PTO-M007")
    assert finding.facts["working_set"] == 132 * KIB
    asked = run.ub.needed_dyn_ub
    assert asked == finding.facts["needed_dyn_ub"] > 0
    assert str(asked) in finding.fix
    assert loud(pto.launch(kernel, dyn_ub=asked)) == []


def copied(k, x, out, at, size):
    """Bytes in, bytes out."""
    t = k.tile("uint8", size // 32, 32, at=at)
    k.tload(t, x)
    pair(k, "MTE2", "MTE3")
    k.tstore(out, t)


@pytest.mark.parametrize(
    ("target", "dyn_ub", "at", "size", "kept"),
    [
        ("a5", 0, 0, 128 * KIB, 128 * KIB),
        ("a5", 0, 0, 132 * KIB, 128 * KIB),
        ("a5", 132 * KIB, 0, 132 * KIB, 132 * KIB),
        ("a5", 0, 32 * KIB, 132 * KIB, 128 * KIB),
        ("a5", 0, 210 * KIB, 8 * KIB, 6 * KIB),
        ("a5", 64 * KIB, 60 * KIB, 8 * KIB, 4 * KIB),
        ("a2a3", 0, 190 * KIB, 4 * KIB, 2 * KIB),
    ],
)
def test_what_lies_past_the_budget_is_really_lost_under_the_adversary_only(
    target: str, dyn_ub: int, at: int, size: int, kept: int
) -> None:
    x = np.random.default_rng(1).integers(0, 100, (size // 32, 32)).astype(np.uint8)
    for schedule in ("late", "program", "random"):
        out = np.zeros_like(x)
        run = pto.launch(copied, x, out, at, size, target=target, dyn_ub=dyn_ub, schedule=schedule)
        assert (loud(run) == []) == (kept == size)
        if schedule == "late":
            np.testing.assert_array_equal(out.ravel()[:kept], x.ravel()[:kept])
            assert (out.ravel()[kept:] != x.ravel()[kept:]).all()
        else:
            np.testing.assert_array_equal(out, x)


def test_an_index_past_the_budget_says_that_its_word_was_not_kept() -> None:
    def kernel(k, table, rows):
        big = k.tile("uint8", 4096, 32, at=0)
        k.texpands(big, 1)
        i = k.tile("int32", 1, 8, (1, 2), at=128 * KIB)
        k.tload(i, rows)
        pair(k, "MTE2", "V")
        k.mgather(k.tile("int32", 2, 8, at=0, name="d"), table, i)

    run = pto.launch(kernel, int32(4, 8), np.array([[0, 1]], np.int32))
    finding = next(one for one in run.findings if one.id[4] == "I")
    assert "past what the launch keeps" in finding.message
    assert "0x20000" in finding.message


# Where tiles are put


def test_automatic_tiles_lie_one_behind_the_other_on_whole_grains() -> None:
    def kernel(k):
        found.append([k.tile("int32", *shape).address for shape in ((1, 8), (2, 8), (3, 24), (1, 8))])
        found.append([k.tile("uint8", 5, 32).address, k.tile("int8", 1, 32).address])

    found: list[list[int]] = []
    assert loud(pto.launch(kernel)) == []
    assert found == [[0, 32, 96, 384], [416, 576]]


def test_automatic_tiles_go_around_those_that_have_an_address() -> None:
    def kernel(k):
        k.tile("int32", 1, 8, at=0x20)
        k.tile("int32", 2, 8, at=0x80)
        found.extend(k.tile("int32", *shape).address for shape in ((2, 8), (1, 8), (1, 8), (2, 8)))

    found: list[int] = []
    pto.launch(kernel)
    assert found == [0x40, 0x00, 0xC0, 0xE0]


def test_tassign_moves_the_tile_and_not_what_it_held() -> None:
    def kernel(k, x, out, here):
        t, u = k.tile("int32", 2, 8, at=0), k.tile("int32", 2, 8, at=0x100)
        k.tload(t, x)
        k.texpands(u, 7)
        k.pipe_barrier("ALL")
        assert k.tassign(t, 0x100) is t
        k.tstore(out, t)
        k.tassign(t, 0)
        k.tstore(here, t)

    for schedule, seed in SCHEDULES:
        out, here = np.zeros((2, 8), np.int32), np.zeros((2, 8), np.int32)
        run = pto.launch(kernel, int32(2, 8), out, here, schedule=schedule, seed=seed)
        np.testing.assert_array_equal(out, np.full((2, 8), 7))
        np.testing.assert_array_equal(here, int32(2, 8))
        assert run.ub.dynamic == 0x140
        assert [one.id for one in loud(run)] == []


def test_tassign_is_judged_as_at_is() -> None:
    def kernel(k, address):
        t = k.tile("int32", 2, 8)
        k.tassign(t, address)

    for address, expected in {0x400: [], 0x401: ["PTO-M005"], 216 * KIB: ["PTO-M006"]}.items():
        run = pto.launch(kernel, address)
        assert ids(run) == expected
        assert [line(one) for one in run.findings] == [line_of(kernel, "k.tassign")] * len(expected)


def test_instructions_that_are_under_way_keep_the_place_and_extents_that_they_were_issued_with() -> None:
    def kernel(k, x, out):
        t = k.tile("int32", 2, 8, (-1, -1), at=0)
        t.set_valid(2, 8)
        k.tload(t, x)
        k.tassign(t, 0x200)
        t.set_valid(1, 4)
        k.texpands(t, 9)
        k.pipe_barrier("ALL")
        k.tassign(t, 0)
        t.set_valid(2, 8)
        k.tstore(out, t)

    for schedule, seed in SCHEDULES:
        out = np.zeros((2, 8), np.int32)
        pto.launch(kernel, int32(2, 8), out, schedule=schedule, seed=seed)
        np.testing.assert_array_equal(out, int32(2, 8))


def test_a_tile_so_far_out_that_nothing_is_there_ends_the_block() -> None:
    def kernel(k, out):
        k.store_scalar(out, 0, 5)
        flush(k)
        k.tile("int32", 2, 8, at=1 << 30)
        k.store_scalar(out, 1, 5)
        flush(k)

    for target in TARGETS:
        out = np.zeros(8, np.int32)
        run = pto.launch(kernel, out, target=target)
        assert ids(run) == ["PTO-M006"]
        assert out.tolist() == [5, 0, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda k: k.tile("int32", 1, 8, at=-32), ValueError, ["-32"]),
        (lambda k: k.tile("int32", 1, 8, at=1.5), TypeError, ["1.5"]),
        (lambda k: k.tile("int32", 1, 8, at="0x10"), TypeError, ["0x10"]),
        (lambda k: k.tassign(k.tile("int32", 1, 8), -1), ValueError, ["-1"]),
        (lambda k: k.tassign(pto.Tile("int32", 1, 8), 0), TypeError, ["k.tile"]),
        (lambda k: k.tile("int33", 1, 8), ValueError, ["int33", "Did you mean"]),
        (lambda k: k.tile("int32", 0, 8), ValueError, ["0"]),
        (lambda k: k.tile("int32", 1, 8, valid=(2, 8)), ValueError, ["valid"]),
        (lambda k: k.tile("int32", 1, 8, layot="dn"), TypeError, ["layot", "Did you mean 'layout'"]),
        (lambda k: k.tile("int32"), TypeError, ["rows"]),
    ],
)
def test_a_mistake_in_a_tile_is_an_error_that_quotes_it(make: Any, kind: type, words: list[str]) -> None:
    with pytest.raises(pto.PtoError) as caught:
        pto.launch(make)
    assert isinstance(caught.value, kind)
    for word in words:
        assert word in str(caught.value)


def test_findings_of_memory_do_not_depend_on_the_schedule() -> None:
    expected = essence(pto.launch(late_load, int32(4, 8), np.array([[0, 1]], np.int32)), "SM")
    for schedule, seed in SCHEDULES:
        run = pto.launch(late_load, int32(4, 8), np.array([[0, 1]], np.int32), schedule=schedule, seed=seed)
        assert essence(run, "SM") == expected
