"""`pto.launch` itself: what it takes, how it ends, what can be turned off, and what transfers and time come to."""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np
import pytest

import ptokit as pto
from launches import SCHEDULES, Array, Kernel, flush, ids, int32, line, line_of, loud, pair, told
from ptokit.core import limits

KIB = 1 << 10


def add_one(k, x):
    """Every element of a tensor, whatever its shape, by the scalar pipe."""
    for at in range(int(np.prod(x.shape))):
        k.store_scalar(x, at, k.load_scalar(x, at) + 1)
    flush(k)


# Arguments


@pytest.mark.parametrize(
    ("shape", "padded"),
    [
        ((6,), (1, 1, 1, 1, 6)),
        ((2, 3), (1, 1, 1, 2, 3)),
        ((4, 2, 3), (1, 1, 4, 2, 3)),
        ((2, 1, 2, 3), (1, 2, 1, 2, 3)),
        ((2, 2, 1, 2, 3), (2, 2, 1, 2, 3)),
    ],
)
def test_an_array_is_a_packed_tensor_padded_with_ones_on_the_left(
    shape: tuple[int, ...], padded: tuple[int, ...]
) -> None:
    def kernel(k, x):
        seen.append((x.shape, x.layout, x.dtype.name, x.is_packed))
        add_one(k, x)

    seen: list[Any] = []
    x = int32(*shape)
    run = pto.launch(kernel, x)
    assert seen == [(padded, "nd", "int32", True)]
    np.testing.assert_array_equal(x, int32(*shape) + 1)
    np.testing.assert_array_equal(run.device(0), int32(*shape) + 1)
    assert run.device(0).shape == shape


def test_a_tensor_is_a_view_of_its_buffer() -> None:
    buffer = int32(4, 12)
    view = pto.GlobalTensor(buffer, "int32", (1, 1, 1, 4, 8), (48, 48, 48, 12, 1))

    def kernel(k, x):
        t = k.tile("int32", 4, 8)
        k.texpands(t, 7)
        pair(k, "V", "MTE3")
        k.tstore(x, t)

    run = pto.launch(kernel, view)
    expected = int32(4, 12)
    expected[:, :8] = 7
    np.testing.assert_array_equal(buffer, expected)
    np.testing.assert_array_equal(run.device(0), expected)


def test_parts_of_a_tensor_are_made_in_the_kernel() -> None:
    def kernel(k, x):
        t = k.tile("int32", 2, 8)
        k.texpands(t, 7)
        pair(k, "V", "MTE3")
        k.tstore(x[1:3, 8:16], t)
        k.tstore(x.partition((0, 0, 0, 4, 0), (1, 1, 1, 2, 8)), t)

    x = int32(6, 16)
    assert loud(pto.launch(kernel, x)) == []
    expected = int32(6, 16)
    expected[1:3, 8:16] = expected[4:6, 0:8] = 7
    np.testing.assert_array_equal(x, expected)


def test_plain_values_pass_as_they_are() -> None:
    def kernel(k, *given):
        seen.extend(given)

    seen: list[Any] = []
    words = (3, 2.5, "row", True, None, (1, 2), [3], {"a": 1}, np.float32(2), add_one)
    run = pto.launch(kernel, *words)
    assert all(one is other for one, other in zip(seen, words, strict=True))
    with pytest.raises(pto.PtoIndexError, match="argument 0"):
        run.device(0)
    with pytest.raises(pto.PtoIndexError, match="argument 10"):
        run.device(10)


@pytest.mark.parametrize(
    ("argument", "kind", "words"),
    [
        (object(), TypeError, ["argument 1", "an object"]),
        (np.zeros((1,) * 6, np.int32), ValueError, ["argument 1", "6 dimensions"]),
        (np.zeros(4, np.float64), TypeError, ["float64"]),
        (np.zeros(8, np.int32)[::2], ValueError, ["contiguous"]),
    ],
)
def test_what_is_no_tensor_and_no_plain_value_is_refused(argument: Any, kind: type, words: list[str]) -> None:
    with pytest.raises(pto.PtoError) as caught:
        pto.launch(lambda k, one, other: None, 1, argument)
    assert isinstance(caught.value, kind)
    for word in words:
        assert word in str(caught.value)


def test_arguments_that_share_memory_are_one_memory_on_the_device_too() -> None:
    def kernel(k, whole, part, again):
        k.store_scalar(part, 0, 50)
        assert k.load_scalar(whole, 4) == 50
        k.store_scalar(whole, 5, 60)
        assert k.load_scalar(again, 1) == 60
        flush(k)

    x = int32(12)
    run = pto.launch(kernel, x, x[4:8], x[4:8])
    assert loud(run) == []
    assert x.tolist() == [1, 2, 3, 4, 50, 60, 7, 8, 9, 10, 11, 12]
    assert run.device(1).tolist() == [50, 60, 7, 8]


def test_parts_that_overlap_in_one_array_are_one_memory() -> None:
    def kernel(k, left, right):
        k.store_scalar(left, 5, 99)
        assert k.load_scalar(right, 1) == 99
        flush(k)

    x = int32(12)
    pto.launch(kernel, x[0:8], x[4:12])
    assert x.tolist() == [1, 2, 3, 4, 5, 99, 7, 8, 9, 10, 11, 12]


def test_one_memory_through_two_arguments_is_a_race_too() -> None:
    def kernel(k, x, y):
        t, u = k.tile("int32", 1, 8), k.tile("int32", 1, 8)
        k.texpands(t, 1)
        pair(k, "V", "MTE3")
        k.tstore(x, t)
        k.tload(u, y)

    x = int32(8)
    assert told(pto.launch(kernel, x, x), "PTO-S002").facts["insert"] == ["MTE3", "MTE2", 0]
    assert loud(pto.launch(kernel, x, int32(8))) == []


def test_read_only_memory_can_be_read_and_not_written() -> None:
    x = int32(8)
    x.setflags(write=False)
    writes: list[Kernel] = [
        lambda k, x: k.store_scalar(x, 0, 1),
        lambda k, x: k.tstore(x, k.tile("int32", 1, 8)),
        lambda k, x: k.mscatter(x, k.tile("int32", 1, 8), k.tile("int32", 1, 8), coalesce="elem"),
    ]
    for kernel in writes:
        with pytest.raises(pto.PtoValueError, match="read-only"):
            pto.launch(kernel, x)
    pto.launch(lambda k, x: k.load_scalar(x, 0), x)
    np.testing.assert_array_equal(x, int32(8))


def test_a_tensor_that_the_kernel_captured_works_if_its_memory_is_an_argument() -> None:
    x, other = int32(8), int32(8)
    captured = pto.GlobalTensor(x, "int32", (1, 1, 1, 1, 8))
    foreign = pto.GlobalTensor(other, "int32", (1, 1, 1, 1, 8))

    def kernel(k, x, tensor):
        t = k.tile("int32", 1, 8)
        k.texpands(t, 9)
        pair(k, "V", "MTE3")
        k.tstore(tensor[0], t)

    pto.launch(kernel, x, [captured])
    np.testing.assert_array_equal(x, np.full(8, 9))
    with pytest.raises(pto.PtoValueError, match="no argument of this launch"):
        pto.launch(kernel, x, [foreign])
    np.testing.assert_array_equal(other, int32(8))


def test_a_captured_array_is_no_tensor() -> None:
    x = int32(8)
    with pytest.raises(pto.PtoTypeError, match=r"pass the array to launch"):
        pto.launch(lambda k: k.tload(k.tile("int32", 1, 8), x))


def test_an_empty_tensor_moves_nothing() -> None:
    def kernel(k, x, out):
        t = k.tile("int32", 1, 8, (-1, 8))
        t.set_valid(0, 8)
        k.tload(t, x)
        k.tstore(out, t)

    run = pto.launch(kernel, np.zeros((0, 8), np.int32), np.zeros((0, 8), np.int32))
    assert [one for one in ids(run) if one[4] != "L"] == []


# The words of a launch


@pytest.mark.parametrize(
    ("words", "kind", "quoted"),
    [
        ({"target": "a4"}, ValueError, ["'a4'", "Did you mean"]),
        ({"schedule": "lat"}, ValueError, ["'lat'", "Did you mean 'late'"]),
        ({"schedule": 1}, TypeError, ["1"]),
        ({"dispatch": "func"}, ValueError, ["'func'", "function"]),
        ({"blocks": 0}, ValueError, ["blocks=0"]),
        ({"blocks": 1.5}, TypeError, ["1.5"]),
        ({"blocks": True}, TypeError, ["True"]),
        ({"dyn_ub": -1}, ValueError, ["dyn_ub=-1"]),
        ({"dyn_ub": "64K"}, TypeError, ["'64K'"]),
        ({"seed": -1}, ValueError, ["seed=-1"]),
        ({"checks": "race"}, ValueError, ["'race'", "Did you mean 'races'"]),
        ({"checks": {"memroy": False}}, ValueError, ["'memroy'", "Did you mean 'memory'"]),
        ({"checks": 1}, TypeError, ["1"]),
        ({"max_instructions": 0}, ValueError, ["max_instructions=0"]),
        ({"max_seconds": "1"}, TypeError, ["max_seconds='1'"]),
        ({"max_bytes": True}, TypeError, ["max_bytes=True"]),
        ({"shedule": "late"}, TypeError, ["'shedule'", "Did you mean 'schedule'"]),
    ],
)
def test_a_mistake_in_a_word_of_the_launch_is_an_error_that_quotes_it(
    words: dict[str, Any], kind: type, quoted: list[str]
) -> None:
    with pytest.raises(pto.PtoError) as caught:
        pto.launch(add_one, int32(8), **words)
    assert isinstance(caught.value, kind)
    for word in quoted:
        assert word in str(caught.value)


def test_a_kernel_is_something_that_can_be_called() -> None:
    for kernel in ("update", None, 3):
        with pytest.raises(pto.PtoTypeError, match="kernel"):
            pto.launch(kernel, int32(8))
    with pytest.raises(pto.PtoTypeError, match="kernel"):
        pto.launch()


@pytest.mark.parametrize("schedule", ["LATE", "Program", "random"])
def test_words_are_case_insensitive(schedule: str) -> None:
    assert pto.launch(add_one, int32(8), schedule=schedule, target="a5", dispatch="Standard").is_clean


def test_no_module_state_is_left_behind() -> None:
    first = pto.launch(add_one, int32(8), schedule="random", seed=3)
    pto.launch(add_one, int32(3), target="a2a3")
    second = pto.launch(add_one, int32(8), schedule="random", seed=3)
    assert [one.as_dict() for one in first.findings] == [one.as_dict() for one in second.findings]
    assert first.cycles.total == second.cycles.total


# Exceptions of the kernel, and limits


class Stop(BaseException):
    """No Exception."""


@pytest.mark.parametrize(
    "mistake", [ZeroDivisionError("no"), KeyError("x"), Stop(), KeyboardInterrupt(), SystemExit(3)]
)
def test_an_exception_of_the_kernel_is_raised_unchanged_with_the_run_so_far(mistake: BaseException) -> None:
    def kernel(k, x):
        k.store_scalar(x, 0, 50)
        flush(k)
        k.store_scalar(x, 1, 60)
        k.set_flag("V", "MTE3", 3)
        raise mistake

    x = int32(8)
    with pytest.raises(type(mistake)) as caught:
        pto.launch(kernel, x)
    assert caught.value is mistake
    run = mistake.ptokit_run  # type: ignore[attr-defined]
    assert isinstance(run, pto.Run)
    assert x.tolist() == [50, 2, 3, 4, 5, 6, 7, 8]
    assert run.device(0).tolist() == [50, 60, 3, 4, 5, 6, 7, 8]
    assert "store_scalar" in {one.name for one in run.trace}


def test_an_exception_in_one_block_keeps_what_the_others_did() -> None:
    def kernel(k, x):
        if k.block_idx == 1:
            raise ValueError("block 1")
        k.store_scalar(x, 8 * k.block_idx, 50)
        flush(k)

    x = int32(3, 8)
    with pytest.raises(ValueError, match="block 1"):
        pto.launch(kernel, x, blocks=3, schedule="program")
    assert x[:, 0].tolist() == [50, 9, 17]


def test_a_kernel_may_not_swallow_what_stops_it() -> None:
    def kernel(k, x):
        try:
            k.wait_flag("V", "S", 0)
        except Exception:
            x = None
        k.store_scalar(x, 0, 9)

    x = int32(8)
    assert ids(pto.launch(kernel, x)) == ["PTO-S003"]
    assert x[0] == 1


def test_wrong_arguments_of_the_kernel_are_told_before_anything_runs() -> None:
    with pytest.raises(pto.PtoTypeError, match="a core and 2 arguments: too many positional"):
        pto.launch(lambda k, x: None, int32(8), int32(8))


def test_a_kernel_that_is_a_generator_is_refused() -> None:
    def lazy(k, x):
        yield k.dsb()

    with pytest.raises(pto.PtoTypeError, match="lazy is a generator"):
        pto.launch(lazy, int32(8))
    with pytest.raises(pto.PtoTypeError, match="has returned a generator"):
        pto.launch(lambda k, x: [lazy(k, x)][0], int32(8))


def test_an_illegal_instruction_stops_its_block_and_is_a_finding() -> None:
    def kernel(k, x):
        k.store_scalar(x, k.block_idx, 50)
        flush(k)
        if k.block_idx == 0:
            k.mscatter(x, k.tile("int32", 1, 8), k.tile("float32", 1, 8))
        k.store_scalar(x, 2 + k.block_idx, 60)
        flush(k)

    x = int32(8)
    run = pto.launch(kernel, x, blocks=2, checks={"races": False})
    assert all(one[:5] == "PTO-L" for one in ids(run))
    assert ids(run) != []
    assert {line(one) for one in loud(run)} == {line_of(kernel, "k.mscatter")}
    assert x.tolist() == [50, 50, 3, 60, 5, 6, 7, 8]


def test_a_bell_that_another_exception_has_drowned_is_not_waited_for() -> None:
    """The bell raises in the thread, and the kernel's own end takes the place of what it has raised."""
    watch = limits.Watched(0.001)
    begun = time.monotonic()
    with pytest.raises(KeyError), watch:
        try:
            while True:
                time.sleep(0.001)
        finally:
            raise KeyError("the kernel's own")
    assert watch.fired.is_set()
    assert time.monotonic() - begun < 5


def endless(k, x):
    """A loop that never ends."""
    t = k.tile("int32", 1, 8)
    while True:
        k.tload(t, x)


@pytest.mark.parametrize(
    ("limit", "most"), [("max_instructions", 100), ("max_bytes", 3200), ("max_seconds", 0.05), ("max_seconds", 1e-9)]
)
@pytest.mark.parametrize("schedule", ["late", "program"])
def test_a_runaway_kernel_ends_in_a_finding(limit: str, most: float, schedule: str) -> None:
    run = pto.launch(endless, int32(8), schedule=schedule, **{limit: most})
    finding = told(run, "PTO-H006")
    assert ids(run) == ["PTO-H006"]
    assert (str(finding.severity), line(finding)) == ("error", line_of(endless, "k.tload"))
    assert (finding.facts["limit"], finding.facts["most"]) == (limit, most)
    if limit != "max_seconds":
        assert most < finding.facts["used"] <= most + 32, "one load more at the most"


def test_a_limit_that_is_kept_is_silent() -> None:
    def kernel(k, x):
        t = k.tile("int32", 1, 8)
        for _ in range(10):
            k.tload(t, x)

    assert pto.launch(kernel, int32(8), max_instructions=10, max_bytes=320, max_seconds=60).findings == []
    assert ids(pto.launch(kernel, int32(8), max_instructions=9)) == ["PTO-H006"]


def test_a_limit_holds_for_all_blocks_together() -> None:
    def kernel(k, x):
        k.tload(k.tile("int32", 1, 8), x)

    assert pto.launch(kernel, int32(8), blocks=5, max_instructions=5).findings == []
    assert ids(pto.launch(kernel, int32(8), blocks=5, max_instructions=4)) == ["PTO-H006"]


# Checks, one by one


def all_wrong(k, table):
    """One mistake for each check."""
    t, i = k.tile("int32", 2, 8, at=0), k.tile("int32", 1, 8, (1, 2), at=240 * KIB)  # budget
    k.tload(t, table[0:2, :])
    k.tstore(table[2:4, :], t)  # races
    pair(k, "MTE2", "V")
    k.tadds(k.tile("int32", 2, 8, at=0x1000), k.tile("int32", 2, 8, at=0x2000), 1)  # memory
    k.tci(i, 99)
    k.mscatter(table, t, i)  # indices, coherence


ROOMS = {"races": "S", "memory": "M001", "budget": "M006", "coherence": "H", "indices": "I"}


@pytest.mark.parametrize("off", ROOMS)
def test_each_check_can_be_turned_off_alone(off: str) -> None:
    def rooms(checks: Any) -> set[str]:
        run = pto.launch(all_wrong, np.zeros((4, 8), np.int32), checks=checks, schedule="program")
        return {name for name, start in ROOMS.items() if any(one[4:].startswith(start) for one in ids(run))}

    # What is out of bounds is never written, so nothing is unflushed: an index in bounds shows coherence.
    every = rooms(None)
    assert every >= set(ROOMS) - {"coherence"}
    assert rooms({off: False}) == every - {off}
    assert rooms([off]) == every & {off}
    assert rooms(off.upper()) == every & {off}
    assert rooms([]) == set()


def test_coherence_can_be_turned_off_and_the_host_still_sees_the_old() -> None:
    def kernel(k, x):
        k.store_scalar(x, 0, 9)

    x = int32(8)
    assert pto.launch(kernel, x, checks={"coherence": False}).findings == []
    assert x[0] == 1


def test_deadlocks_and_illegal_instructions_are_told_whatever_is_turned_off() -> None:
    assert ids(pto.launch(lambda k: k.wait_flag("V", "S", 0), checks=[])) == ["PTO-S003"]
    run = pto.launch(lambda k, x: k.tload(k.tile("int32", 1, 8), x), int32(7), checks=[])
    assert ids(run) == ["PTO-L028"]


# Bad input of each instruction


def tiles(k: Any) -> tuple[Any, Any, Any]:
    return k.tile("int32", 2, 8), k.tile("int32", 1, 8, (1, 2)), pto.Tile("int32", 2, 8)


BAD: list[tuple[Kernel, type, list[str]]] = [
    (lambda k, x, t, i, own: k.tload(x, t), TypeError, ["GlobalTensor"]),
    (lambda k, x, t, i, own: k.tload(own, x), TypeError, ["k.tile(...)"]),
    (lambda k, x, t, i, own: k.tload(t, np.zeros((2, 8))), TypeError, ["pass the array to launch"]),
    (lambda k, x, t, i, own: k.tload(t), TypeError, ["tensor is missing"]),
    (lambda k, x, t, i, own: k.tload(t, x, wiat=()), TypeError, ["'wiat'", "Did you mean 'wait'"]),
    (lambda k, x, t, i, own: k.tstore(t, x), TypeError, ["GlobalTensor"]),
    (lambda k, x, t, i, own: k.tstore(x, None), TypeError, ["a NoneType"]),
    (lambda k, x, t, i, own: k.tstore(x, t, atomic="max"), ValueError, ["'max'", "none, add"]),
    (lambda k, x, t, i, own: k.tstore(x, t, atomic="ad"), ValueError, ["'ad'"]),
    (lambda k, x, t, i, own: k.mscatter(t, x, i), TypeError, ["GlobalTensor"]),
    (lambda k, x, t, i, own: k.mscatter(x, own, i), TypeError, ["src", "k.tile(...)"]),
    (lambda k, x, t, i, own: k.mscatter(x, t, [1, 2]), TypeError, ["idx", "a list"]),
    (lambda k, x, t, i, own: k.mscatter(x, t, i, coalesce="rwo"), ValueError, ["'rwo'", "Did you mean 'row'"]),
    (lambda k, x, t, i, own: k.mscatter(x, t, i, oob="zero"), ValueError, ["zero"]),
    (lambda k, x, t, i, own: k.mscatter(x, t, i, atomic=1), TypeError, ["1"]),
    (lambda k, x, t, i, own: k.mscatter(x, t, i, conflct="last"), TypeError, ["Did you mean 'conflict'"]),
    (lambda k, x, t, i, own: k.mgather(x, t, i), TypeError, ["GlobalTensor"]),
    (lambda k, x, t, i, own: k.mgather(t, x, i, atomic="add"), TypeError, ["no atomics"]),
    (lambda k, x, t, i, own: k.mgather(t, x, i, oob="skip"), ValueError, ["skip"]),
    (lambda k, x, t, i, own: k.tadd(t, t), TypeError, ["dst, a, b"]),
    (lambda k, x, t, i, own: k.tadd(t, t, t, t), TypeError, ["dst, a, b"]),
    (lambda k, x, t, i, own: k.tadd(t, t, 1), TypeError, ["an int"]),
    (lambda k, x, t, i, own: k.tadds(t, t), TypeError, ["scalar"]),
    (lambda k, x, t, i, own: k.tadds(t, t, "1"), TypeError, ["'1'"]),
    (lambda k, x, t, i, own: k.tadds(t, t, t), TypeError, ["scalar"]),
    (lambda k, x, t, i, own: k.texpands(t, value=1), TypeError, ["'value'"]),
    (lambda k, x, t, i, own: k.tcvt(t, t, mode="near"), ValueError, ["'near'"]),
    (lambda k, x, t, i, own: k.tcmp(t, t, t, mode="lss"), ValueError, ["'lss'", "eq, ne, lt"]),
    (lambda k, x, t, i, own: k.tci(t, 0, descending=1), TypeError, ["descending"]),
    (lambda k, x, t, i, own: k.get(t, 2, 0), IndexError, ["(2, 0)"]),
    (lambda k, x, t, i, own: k.get(t, 0, -1), IndexError, ["(0, -1)"]),
    (lambda k, x, t, i, own: k.get(i, 0, 2), IndexError, ["(0, 2)"]),
    (lambda k, x, t, i, own: k.get(t, 0.5, 0), TypeError, ["0.5"]),
    (lambda k, x, t, i, own: k.set(t, 0, 8, 1), IndexError, ["(0, 8)"]),
    (lambda k, x, t, i, own: k.set(t, 0, 0, 1 << 40), ValueError, ["1099511627776"]),
    (lambda k, x, t, i, own: k.set(t, 0, 0, 1.5), ValueError, ["1.5"]),
    (lambda k, x, t, i, own: k.set(t, 0, 0, "x"), TypeError, ["int32", "numbers"]),
    (lambda k, x, t, i, own: k.set(t, 0, 0), TypeError, ["value is missing"]),
    (lambda k, x, t, i, own: k.load_scalar(x, 16), IndexError, ["16"]),
    (lambda k, x, t, i, own: k.load_scalar(x, -1), IndexError, ["-1"]),
    (lambda k, x, t, i, own: k.load_scalar(t, 0), TypeError, ["GlobalTensor"]),
    (lambda k, x, t, i, own: k.store_scalar(x, 16, 1), IndexError, ["16"]),
    (lambda k, x, t, i, own: k.store_scalar(x, 0, None), TypeError, ["None"]),
    (lambda k, x, t, i, own: k.store_scalar(x, "0", 1), TypeError, ["'0'"]),
    (lambda k, x, t, i, own: k.dcci("ENTIRE"), TypeError, ["dcci"]),
    (lambda k, x, t, i, own: k.tstor(x, t), AttributeError, ["'tstor'", "Did you mean 'tstore'"]),
    (lambda k, x, t, i, own: t.store(np.zeros((2, 8))), ValueError, ["instruction"]),
]


@pytest.mark.parametrize(("call", "kind", "words"), BAD, ids=[f"{n}" for n in range(len(BAD))])
def test_a_mistake_in_an_instruction_is_an_error_that_says_what_was_given(
    call: Kernel, kind: type, words: list[str]
) -> None:
    def kernel(k, x):
        call(k, x, *tiles(k))

    with pytest.raises(pto.PtoError) as caught:
        pto.launch(kernel, int32(2, 8))
    assert isinstance(caught.value, kind)
    assert isinstance(caught.value.ptokit_run, pto.Run)  # type: ignore[attr-defined]
    for word in words:
        assert word in str(caught.value)


def test_a_tile_of_another_core_is_refused() -> None:
    def kernel(k, x):
        kept.append(k.tile("int32", 1, 8))
        k.tload(kept[0], x)

    kept: list[Any] = []
    with pytest.raises(pto.PtoValueError, match="another core"):
        pto.launch(kernel, int32(8), blocks=2)


ILLEGAL: list[tuple[Kernel, str]] = [
    (lambda k, x: k.tload(k.tile("int32", 2, 16), x), "PTO-L028"),
    (lambda k, x: k.tload(k.tile("float32", 2, 8), x), "PTO-L029"),
    (lambda k, x: k.tload(k.tile("int32", 8, 2, layout="dn"), x), "PTO-L027"),
    (lambda k, x: k.tload(k.tile("int32", 2, 8, (-1, -1)), x), "PTO-L006"),
    (lambda k, x: k.tload(k.tile("int32", 2, 9, (2, 8)), x), "PTO-L015"),
    (lambda k, x: k.tadd(k.tile("int32", 2, 8), k.tile("float32", 2, 8), k.tile("int32", 2, 8)), "PTO-L031"),
    (lambda k, x: k.tadd(k.tile("int32", 2, 8), k.tile("int32", 1, 8), k.tile("int32", 2, 8)), "PTO-L032"),
    (lambda k, x: k.texpands(k.tile("int8", 1, 32), 300), "PTO-L033"),
    (lambda k, x: k.mgather(k.tile("int32", 2, 8), x, k.tile("int16", 1, 16, (1, 2))), "PTO-L002"),
]


@pytest.mark.parametrize(("call", "expected"), ILLEGAL, ids=[one for _, one in ILLEGAL])
def test_what_no_board_would_accept_is_a_finding_at_its_line(call: Kernel, expected: str) -> None:
    for schedule, seed in SCHEDULES:
        run = pto.launch(call, int32(2, 8), schedule=schedule, seed=seed)
        assert expected in ids(run)
        assert {line(one) for one in loud(run)} == {call.__code__.co_firstlineno}
        assert {one.severity for one in loud(run)} == {pto.Severity.ERROR}


# TLOAD and TSTORE, against a loop over elements


def place_in_tensor(shape: tuple[int, ...], stride: tuple[int, ...], layout: str, row: int, col: int) -> int:
    """The element of a tensor at a logical row and column: SEMANTICS 1, digit by digit."""
    _, s1, s2, s3, s4 = shape
    if layout == "nz":
        block = col // s4
        digits = (block // s1, block % s1, row // 16, row % 16, col % s4)
    else:
        digits = (row // (s1 * s2 * s3), row // (s2 * s3) % s1, row // s3 % s2, row % s3, col)
    return sum(digit * step for digit, step in zip(digits, stride, strict=True))


TRANSFERS = [
    # layout, type, padded tile, shape, stride
    ("nd", "int32", (4, 8), (1, 1, 1, 4, 8), None),
    ("nd", "int32", (6, 16), (1, 1, 1, 5, 7), None),
    ("nd", "int32", (4, 8), (1, 1, 1, 4, 8), (64, 64, 64, 11, 1)),
    ("nd", "int16", (12, 16), (2, 1, 3, 2, 5), (100, 50, 23, 9, 1)),
    ("nd", "float32", (4, 8), (1, 2, 1, 2, 3), (90, 40, 40, 13, 2)),
    ("nd", "uint8", (24, 32), (2, 3, 2, 2, 31), None),
    ("nd", "int8", (1, 32), (1, 1, 1, 1, 17), (1, 1, 1, 1, 3)),
    ("dn", "int32", (8, 4), (1, 1, 1, 8, 4), (32, 32, 32, 1, 8)),
    ("dn", "int32", (8, 6), (1, 1, 1, 5, 3), (99, 99, 99, 1, 13)),
    ("dn", "float16", (16, 5), (1, 1, 2, 6, 5), (99, 99, 40, 1, 7)),
    ("nz", "int32", (32, 16), (1, 2, 2, 16, 8), None),
    ("nz", "float16", (16, 32), (1, 2, 1, 16, 16), (999, 300, 260, 16, 1)),
    ("nz", "int8", (32, 64), (2, 1, 2, 16, 32), (1200, 1100, 520, 32, 1)),
    ("nz", "float32", (16, 32), (2, 2, 1, 16, 8), (700, 300, 200, 9, 1)),
]


@pytest.mark.parametrize(("layout", "dtype", "padded", "shape", "stride"), TRANSFERS)
@pytest.mark.parametrize("target", ["a2a3", "a5", "cpu"])
def test_loads_and_stores_move_row_by_row_and_column_by_column(
    layout: str, dtype: str, padded: tuple[int, int], shape: Any, stride: Any, target: str
) -> None:
    rows, cols = (
        (shape[2] * shape[3], shape[0] * shape[1] * shape[4]) if layout == "nz" else (int(np.prod(shape[:4])), shape[4])
    )
    packed = tuple(int(np.prod(shape[at + 1 :])) for at in range(5))
    steps = stride or packed
    size = 1 + sum((extent - 1) * step for extent, step in zip(shape, steps, strict=True))
    offset = 3
    chance = np.random.default_rng(7)
    source = chance.integers(0, 100, size + 8).astype(dtype)
    sink = chance.integers(0, 100, size + 8).astype(dtype)
    expected = sink.copy()
    seen: dict[tuple[int, int], Any] = {}
    for row, col in itertools.product(range(rows), range(cols)):
        at = offset + place_in_tensor(shape, steps, layout, row, col)
        expected[at] = source[at]
        seen[row, col] = source[at]

    def kernel(k, x, out):
        t = k.tile(dtype, *padded, (rows, cols), layout)
        k.tload(t, x)
        pair(k, "MTE2", "MTE3")
        pair(k, "MTE2", "S")
        k.tstore(out, t)
        for row, col in ((0, 0), (rows - 1, cols - 1), (rows // 2, cols // 3)):
            assert k.get(t, row, col) == seen[row, col]

    for schedule in ("late", "program"):
        out = sink.copy()
        tensors = [pto.GlobalTensor(one, dtype, shape, stride, layout, base=offset) for one in (source, out)]
        assert loud(pto.launch(kernel, *tensors, target=target, schedule=schedule)) == []
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("layout", ["nd", "dn", "nz"])
def test_a_load_leaves_the_padding_of_the_tile_alone(layout: str) -> None:
    def kernel(k, x, out):
        t = k.tile("int32", 16, 16, (-1, -1), layout)
        t.set_valid(16, 16)
        k.texpands(t, 7)
        pair(k, "V", "MTE2")
        t.set_valid(*([5, 6] if layout != "nz" else [16, 8]))
        k.tload(t, x)
        t.set_valid(16, 16)
        k.pipe_barrier("ALL")
        for row, col in itertools.product(range(16), range(16)):
            k.store_scalar(out, 16 * row + col, k.get(t, row, col))
        flush(k)

    shape, stride = {
        "nd": ((1, 1, 1, 5, 6), None),
        "dn": ((1, 1, 1, 5, 6), (30, 30, 30, 1, 5)),
        "nz": ((1, 1, 1, 16, 8), None),
    }[layout]
    rows, cols = (16, 8) if layout == "nz" else (5, 6)
    x = int32(rows * cols, first=100)
    out = np.zeros((16, 16), np.int32)
    assert loud(pto.launch(kernel, pto.GlobalTensor(x, "int32", shape, stride, layout), out)) == []
    expected = np.full((16, 16), 7, np.int32)
    expected[:rows, :cols] = x.reshape(cols, rows).T if layout == "dn" else x.reshape(rows, cols)
    np.testing.assert_array_equal(out, expected)


ADDED = ["int8", "int16", "int32", "float16", "bfloat16", "float32"]


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", *ADDED])
@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_an_atomic_store_adds_what_the_dma_unit_can_add(dtype: str, target: str) -> None:
    numpy_type = pto.Tile(dtype, 1, 32).dtype.numpy
    start, comes = (np.arange(64).reshape(2, 32) % 5).astype(numpy_type), np.full((2, 32), 3).astype(numpy_type)

    def kernel(k, x, out):
        t = k.tile(dtype, 2, 32)
        k.tload(t, x)
        pair(k, "MTE2", "MTE3")
        k.tstore(out, t, atomic="add")
        k.tstore(out, t, atomic=pto.ScatterAtomicOp.Add)

    for schedule, seed in SCHEDULES:
        out = start.copy()
        run = pto.launch(kernel, comes.copy(), out, target=target, schedule=schedule, seed=seed)
        if dtype in ADDED:
            assert loud(run) == []
            np.testing.assert_array_equal(out.astype(np.float64), start.astype(np.float64) + 6)
        else:
            assert ids(run) == ["PTO-L030"]
            np.testing.assert_array_equal(out, start)


def test_an_atomic_store_wraps_integers_and_rounds_halves_after_each_addition() -> None:
    def kernel(k, x, out, dtype):
        t = k.tile(dtype, 1, 32, (1, x.shape[4]))
        k.tload(t, x)
        pair(k, "MTE2", "MTE3")
        for _ in range(2):
            k.tstore(out, t, atomic="add")

    small, out = np.full(8, 100, np.int8), np.full(8, 100, np.int8)
    pto.launch(kernel, small, out, "int8")
    assert out.tolist() == [44] * 8
    half, out = np.full(8, 1.0, np.float16), np.full(8, 2048.0, np.float16)
    pto.launch(kernel, half, out, "float16")
    assert out.tolist() == [2048.0] * 8, "2048 + 1 rounds back to 2048, twice"


# Time and trace


def copies(k, x, out, count, parallel):
    """Loads, and sums that wait for all of them or for none."""
    t = [k.tile("float32", 16, 64) for _ in range(count)]
    u = k.tile("float32", 16, 64)
    k.texpands(u, 1)
    for number in range(count):
        k.tload(t[number], x)
        if not parallel:
            pair(k, "MTE2", "V")
        k.tadd(u, u, u)
        if not parallel and number + 1 < count:
            pair(k, "V", "MTE2")
    pair(k, "V", "MTE3")
    k.tstore(out, u)


def cycles(kernel: Kernel, *arguments: Any, target: str = "a5") -> Any:
    return pto.launch(kernel, *arguments, target=target).cycles


def arrays() -> list[Array]:
    return [np.ones((16, 64), np.float32), np.ones((16, 64), np.float32)]


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_more_work_takes_more_cycles(target: str) -> None:
    totals = [cycles(copies, *arrays(), count, False, target=target).total for count in (1, 2, 4, 8)]
    assert totals == sorted(set(totals))
    loads = [cycles(copies, *arrays(), count, False, target=target)["MTE2"] for count in (1, 2, 4, 8)]
    assert loads[3] == pytest.approx(8 * loads[0], rel=0.2)


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_pipes_that_do_not_wait_overlap(target: str) -> None:
    apart = cycles(copies, *arrays(), 8, False, target=target)
    together = cycles(copies, *arrays(), 8, True, target=target)
    names = ("S", "V", "MTE2", "MTE3")
    for one in (apart, together):
        assert max(one[name] for name in names) <= one.total <= sum(one[name] for name in names) + 1e-6
    assert together.total < apart.total
    assert together["MTE2"] <= together.total
    assert together["PIPE_MTE2"] == together["mte2"] == together["MTE2"]
    assert together.microseconds == pytest.approx(together.total / together.frequency_ghz / 1000)


def test_cycles_do_not_depend_on_the_schedule() -> None:
    totals = {
        pto.launch(copies, *arrays(), 4, True, schedule=schedule, seed=seed).cycles.total
        for schedule, seed in SCHEDULES
    }
    assert len(totals) == 1


def test_an_empty_kernel_takes_no_time() -> None:
    run = pto.launch(lambda k: None)
    assert (run.cycles.total, len(run.trace), run.findings) == (0, 0, [])


def test_several_blocks_take_as_long_as_the_slowest() -> None:
    def kernel(k, x):
        for _ in range(1 + 3 * (k.block_idx == 1)):
            k.tload(k.tile("float32", 16, 64), x)

    x = arrays()[0]
    four = cycles(lambda k, x: [k.tload(k.tile("float32", 16, 64), x) for _ in range(4)], x)
    run = pto.launch(kernel, x, blocks=3)
    assert run.cycles.total == pytest.approx(four.total)


def test_the_trace_has_every_instruction_on_its_pipe_in_order() -> None:
    run = pto.launch(copies, *arrays(), 2, False)
    by_pipe: dict[str, list[Any]] = {}
    for one in run.trace:
        by_pipe.setdefault(one.pipe, []).append(one)
        assert 0 <= one.start <= one.end <= run.cycles.total
        assert one.where.file == (__file__ if "flag" not in one.name else pair.__code__.co_filename)
    names = {pipe: [one.name for one in slices if "flag" not in one.name] for pipe, slices in by_pipe.items()}
    assert names["MTE2"] == ["tload", "tload"]
    assert names["V"] == ["texpands", "tadd", "tadd"]
    assert names["MTE3"] == ["tstore"]
    for slices in by_pipe.values():
        assert all(one.end <= other.start for one, other in itertools.pairwise(slices))
    sizes = {one.name: one.nbytes for one in run.trace}
    assert (sizes["tload"], sizes["tstore"]) == (4096, 4096)


def test_flags_are_flows_that_go_forward_in_time() -> None:
    run = pto.launch(copies, *arrays(), 2, False)
    assert sorted(one.name for one in run.trace.flows) == [
        "MTE2->V, event 0",
        "MTE2->V, event 0",
        "V->MTE2, event 0",
        "V->MTE3, event 0",
    ]
    assert all(one.from_time <= one.to_time for one in run.trace.flows)
    assert {(one.from_pipe, one.to_pipe) for one in run.trace.flows} == {("MTE2", "V"), ("V", "MTE2"), ("V", "MTE3")}


def test_a_trace_of_several_blocks_keeps_them_apart() -> None:
    run = pto.launch(lambda k, x: k.tload(k.tile("float32", 16, 64), x), arrays()[0], blocks=3)
    assert [(one.block, one.pipe, one.name) for one in run.trace] == [(n, "MTE2", "tload") for n in range(3)]
    assert run.trace.blocks == 3
