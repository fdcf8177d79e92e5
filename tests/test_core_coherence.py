"""What the host sees of global memory, what a DMA sees of it, and what several blocks may share: SEMANTICS 3.4."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptokit as pto
from launches import SCHEDULES, Array, Kernel, essence, flush, ids, int32, line, line_of, loud, pair, told

OLD = np.zeros((4, 8), np.int32)
NEW = np.vstack([np.zeros((2, 8)), np.full((2, 8), 5)]).astype(np.int32)  # rows 2 and 3 were written


# Who writes through the data cache


def simt(k, table):
    """a5 MSCATTER, one launch on V."""
    t, i = k.tile("int32", 2, 8), k.tile("int32", 1, 8, (1, 2))
    k.texpands(t, 5)
    k.tci(i, 2)
    k.mscatter(table, t, i)


def elem(k, table):
    """MSCATTER by elements: scalar stores on a2a3, SIMT on a5."""
    t, i = k.tile("int32", 2, 8), k.tile("int32", 2, 8)
    k.texpands(t, 5)
    k.tci(i, 16)
    k.mscatter(table, t, i, coalesce="elem")


def static(k, table):
    """a5 MSCATTER of one element by its type: the scalar path."""
    t, i = k.tile("int32", 1, 8, (1, 1)), k.tile("int32", 1, 8, (1, 1))
    k.texpands(t, 5)
    for at in range(16, 32):
        k.texpands(i, at)
        k.mscatter(table, t, i, coalesce="elem")


def scalar(k, table):
    """Stores of the scalar pipe."""
    for at in range(16, 32):
        k.store_scalar(table, at, 5)


def dma(k, table):
    """TSTORE."""
    t = k.tile("int32", 2, 8)
    k.texpands(t, 5)
    pair(k, "V", "MTE3", 3)
    k.tstore(table[2:4, :], t)


def dma_rows(k, table):
    """a2a3 MSCATTER by rows: a DMA for each."""
    simt(k, table)


# writer, target, the severity of a missing flush
WRITERS = [
    (simt, "a5", "error"),
    (elem, "a5", "error"),
    (static, "a5", "error"),
    (scalar, "a5", "error"),
    (dma, "a5", None),
    (elem, "a2a3", "warning"),
    (scalar, "a2a3", "warning"),
    (dma_rows, "a2a3", None),
    (dma, "a2a3", None),
]
THROUGH_CACHE = [(writer, target) for writer, target, severity in WRITERS if severity]
NAMES = {simt: "mscatter", elem: "mscatter", static: "mscatter", scalar: "store_scalar"}


@pytest.mark.parametrize(("writer", "target", "severity"), WRITERS, ids=lambda one: getattr(one, "__name__", str(one)))
def test_the_host_sees_what_went_through_the_data_cache_only_after_a_flush(
    writer: Kernel, target: str, severity: str | None
) -> None:
    def flushed(k, table):
        writer(k, table)
        flush(k)

    for schedule, seed in SCHEDULES:
        table = OLD.copy()
        run = pto.launch(writer, table, target=target, schedule=schedule, seed=seed)
        np.testing.assert_array_equal(run.device(0), NEW)
        if severity is None:
            assert loud(run) == []
            np.testing.assert_array_equal(table, NEW)
        else:
            finding = told(run, "PTO-H001")
            assert ids(run) == ["PTO-H001"]
            assert (str(finding.severity), finding.facts["written_by"]) == (severity, NAMES[writer])
            assert line(finding) == line_of(writer, f"k.{NAMES[writer]}(")
            np.testing.assert_array_equal(table, OLD)
        table = OLD.copy()
        run = pto.launch(flushed, table, target=target, schedule=schedule, seed=seed)
        assert loud(run) == []
        np.testing.assert_array_equal(table, NEW)
        np.testing.assert_array_equal(run.device(0), NEW)


def test_on_cpu_there_is_no_cache_between_the_kernel_and_the_host() -> None:
    for writer in (elem, scalar, dma):
        table = OLD.copy()
        assert loud(pto.launch(writer, table, target="cpu")) == []
        np.testing.assert_array_equal(table, NEW)


# Barrier, dcci, dsb: in this order

FLUSHES: dict[str, Any] = {
    "barrier": lambda k: k.pipe_barrier("ALL"),
    "V>S": lambda k: pair(k, "V", "S", 3),
    "MTE3>S": lambda k: pair(k, "MTE3", "S", 3),
    "V barrier": lambda k: k.pipe_barrier("V"),
    "dcci": lambda k: k.dcci(),
    "dsb": lambda k: k.dsb(),
}
ORDERS = [
    # what follows the stores; what is told after SIMT stores (None: nothing), and after stores of S itself
    ("barrier dcci dsb", None, None),
    ("V>S dcci dsb", None, None),
    ("barrier dcci dcci dsb dsb", None, None),
    ("dcci dsb barrier dcci dsb", None, None),
    ("barrier dsb dcci dsb", None, None),
    ("dcci dsb", "PTO-H002", None),
    ("MTE3>S dcci dsb", "PTO-H002", None),
    ("V barrier dcci dsb", "PTO-H002", None),
    ("dcci barrier dsb", "PTO-H002", None),
    ("dcci dsb barrier", "PTO-H002", None),
    ("barrier dsb dcci", "PTO-H003", "PTO-H003"),
    ("barrier dcci", "PTO-H003", "PTO-H003"),
    ("barrier dsb", "PTO-H003", "PTO-H003"),
    ("barrier", "PTO-H001", "PTO-H001"),
]


@pytest.mark.parametrize(("order", "after_simt", "after_s"), ORDERS)
@pytest.mark.parametrize(("writer", "target"), [(simt, "a5"), (static, "a5"), (scalar, "a5"), (elem, "a2a3")])
def test_the_flush_has_an_order(
    writer: Kernel, target: str, order: str, after_simt: str | None, after_s: str | None
) -> None:
    def kernel(k, table):
        writer(k, table)
        for step in order.replace("V barrier", "V_barrier").split():
            FLUSHES[step.replace("_", " ")](k)

    expected = after_simt if writer is simt else after_s
    for schedule, seed in SCHEDULES:
        table = OLD.copy()
        run = pto.launch(kernel, table, target=target, schedule=schedule, seed=seed)
        assert set(ids(run)) == ({expected} if expected else set())
        assert {str(one.severity) for one in loud(run)} <= {"error" if target == "a5" else "warning"}
        if schedule == "late":
            np.testing.assert_array_equal(table, OLD if expected else NEW)
        np.testing.assert_array_equal(run.device(0), NEW)


def test_a_flush_before_the_stores_flushes_nothing() -> None:
    def kernel(k, table):
        flush(k)
        simt(k, table)

    table = OLD.copy()
    run = pto.launch(kernel, table)
    assert ids(run) == ["PTO-H001"]
    np.testing.assert_array_equal(table, OLD)


def test_only_what_was_stored_after_the_flush_is_stale() -> None:
    def kernel(k, table):
        k.store_scalar(table, 0, 7)
        k.dcci()
        k.dsb()
        k.store_scalar(table, 1, 8)

    for schedule, seed in SCHEDULES:
        table = OLD.copy()
        run = pto.launch(kernel, table, schedule=schedule, seed=seed)
        assert line(told(run, "PTO-H001")) == line_of(kernel, "k.store_scalar", 1)
        assert table[0].tolist() == [7, 0, 0, 0, 0, 0, 0, 0]
        assert run.device(0)[0].tolist() == [7, 8, 0, 0, 0, 0, 0, 0]


def test_an_unordered_flush_points_at_the_dcci_and_names_the_store() -> None:
    def kernel(k, table):
        simt(k, table)
        k.dcci()
        k.dsb()

    finding = told(pto.launch(kernel, OLD.copy()), "PTO-H002")
    assert line(finding) == line_of(kernel, "k.dcci")
    assert finding.facts["line"] == line_of(simt, "k.mscatter")
    assert 'k.pipe_barrier("ALL")' in finding.fix


def test_nothing_is_stored_where_every_index_is_skipped() -> None:
    def kernel(k, table):
        t, i = k.tile("int32", 2, 8), k.tile("int32", 1, 8, (1, 2))
        k.texpands(t, 5)
        k.tci(i, 100)
        k.mscatter(table, t, i, oob="skip")

    run = pto.launch(kernel, OLD.copy())
    assert loud(run) == []


# Which tensors the host reads


def two_tables(k, first, second, third):
    k.store_scalar(first, 0, 1)
    k.store_scalar(second, 0, 2)


@pytest.mark.parametrize(
    ("host_reads", "lines"),
    [
        (None, [0, 1]),
        ([0, 1, 2], [0, 1]),
        ([], []),
        ((), []),
        (0, [0]),
        ([1], [1]),
        ("first", [0]),
        (["second", "third"], [1]),
        ("third", []),
        ({2}, []),
    ],
)
def test_a_missing_flush_is_told_of_the_tensors_that_the_host_reads(host_reads: Any, lines: list[int]) -> None:
    arrays = [np.zeros(8, np.int32) for _ in range(3)]
    run = pto.launch(two_tables, *arrays, host_reads=host_reads)
    stores = [line_of(two_tables, "k.store_scalar", nth) for nth in range(2)]
    assert sorted(line(one) for one in run.findings) == [stores[nth] for nth in lines]
    assert [array[0] for array in arrays] == [0, 0, 0]
    assert [run.device(number)[0] for number in range(3)] == [1, 2, 0]


def test_the_host_reads_tensors_named_by_themselves() -> None:
    arrays = [np.zeros(8, np.int32) for _ in range(2)]
    tensor = pto.GlobalTensor(np.zeros(8, np.int32), "int32", (1, 1, 1, 1, 8))
    for wanted, nth in ((arrays[0], 0), ([arrays[1]], 1), (tensor, None), ([tensor, arrays[1]], 1)):
        run = pto.launch(two_tables, *arrays, tensor, host_reads=wanted)
        expected = [] if nth is None else [line_of(two_tables, "k.store_scalar", nth)]
        assert [line(one) for one in run.findings] == expected


@pytest.mark.parametrize(
    ("host_reads", "words"),
    [
        ("frist", ["'frist'", "Did you mean 'first'"]),
        (["first", "k"], ["'k'"]),
        (3, ["3"]),
        (-1, ["-1"]),
        (True, ["True"]),
        (2.0, ["2.0"]),
        ([None], ["None"]),
    ],
)
def test_what_the_host_reads_must_be_an_argument(host_reads: Any, words: list[str]) -> None:
    with pytest.raises(pto.PtoError) as caught:
        pto.launch(two_tables, *(np.zeros(8, np.int32) for _ in range(3)), host_reads=host_reads)
    for word in words:
        assert word in str(caught.value)


def test_a_plain_value_is_no_tensor_that_the_host_could_read() -> None:
    def kernel(k, table, count):
        k.store_scalar(table, 0, count)

    for named in (1, "count"):
        with pytest.raises(pto.PtoValueError, match="no tensor"):
            pto.launch(kernel, np.zeros(8, np.int32), 3, host_reads=named)


# A load of what stands in the cache

BETWEEN: dict[str, Any] = {
    "nothing": lambda k: None,
    "V>MTE2": lambda k: pair(k, "V", "MTE2"),
    "S>MTE2": lambda k: pair(k, "S", "MTE2"),
    "barrier": lambda k: k.pipe_barrier("ALL"),
    "flush": flush,
    "flush, V>MTE2": lambda k: (flush(k), pair(k, "V", "MTE2")),
    "S>MTE2, flush": lambda k: (pair(k, "S", "MTE2"), flush(k)),
    "flush, S>MTE2": lambda k: (flush(k), pair(k, "S", "MTE2")),
    "flush, barrier": lambda k: (flush(k), k.pipe_barrier("ALL")),
    "V>S, dcci, dsb, S>MTE2": lambda k: (pair(k, "V", "S"), k.dcci(), k.dsb(), pair(k, "S", "MTE2")),
}


@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("writer", [simt, static, scalar], ids=lambda one: one.__name__)
def test_on_a5_a_load_needs_the_flush_and_a_pair_from_s(writer: Kernel, between: str) -> None:
    def kernel(k, table, out):
        writer(k, table)
        BETWEEN[between](k)
        t = k.tile("int32", 4, 8)
        k.tload(t, table)
        pair(k, "MTE2", "MTE3")
        k.tstore(out, t)
        flush(k)

    is_enough = between in ("flush, S>MTE2", "flush, barrier", "V>S, dcci, dsb, S>MTE2")
    is_flushed = "flush" in between or "dcci" in between
    for schedule, seed in SCHEDULES:
        table, out = OLD.copy(), np.full((4, 8), -1, np.int32)
        run = pto.launch(kernel, table, out, schedule=schedule, seed=seed)
        np.testing.assert_array_equal(table, NEW)
        if is_enough:
            assert loud(run) == []
            np.testing.assert_array_equal(out, NEW)
            continue
        assert set(ids(run)) == {"PTO-H004"}
        finding = next(one for one in run.findings if one.id == "PTO-H004")
        assert finding.facts["flushed"] is is_flushed
        assert line(finding) == line_of(kernel, "k.tload")
        assert ("dcci" in finding.fix) is not is_flushed
        assert "MTE2" in finding.fix
        if not is_flushed:
            np.testing.assert_array_equal(out, OLD)


def test_on_a5_rows_that_were_not_stored_can_be_loaded_at_once() -> None:
    def kernel(k, table, out):
        simt(k, table)
        t = k.tile("int32", 2, 8)
        k.tload(t, table[0:2, :])
        pair(k, "MTE2", "MTE3")
        k.tstore(out, t)
        flush(k)

    assert loud(pto.launch(kernel, OLD.copy(), int32(2, 8))) == []


def test_on_a2a3_the_pair_inside_elem_is_enough_for_a_load() -> None:
    def kernel(k, table, out, flushes):
        elem(k, table)
        t = k.tile("int32", 4, 8)
        k.tload(t, table)
        pair(k, "MTE2", "MTE3", 1)
        k.tstore(out, t)
        if flushes:
            flush(k)

    for schedule, seed in SCHEDULES:
        for flushes in (True, False):
            out = OLD.copy()
            run = pto.launch(kernel, OLD.copy(), out, flushes, target="a2a3", schedule=schedule, seed=seed)
            assert ids(run) == ([] if flushes else ["PTO-H001"])
            np.testing.assert_array_equal(out, NEW)


def sums(k, table, flushes):
    """5 stored through the cache, and 5 added by a DMA."""
    elem(k, table)
    if flushes:
        flush(k)
        pair(k, "S", "MTE3", 1)
    else:
        pair(k, "V", "MTE3", 1)
    t = k.tile("int32", 4, 8)
    k.texpands(t, 5)
    pair(k, "V", "MTE3", 2)
    k.tstore(table, t, atomic="add")
    flush(k)


@pytest.mark.parametrize(("target", "flushes"), [("a2a3", False), ("a2a3", True), ("a5", True)])
def test_an_atomic_store_adds_to_what_it_is_ordered_after(target: str, flushes: bool) -> None:
    for schedule, seed in SCHEDULES:
        table = OLD.copy()
        run = pto.launch(sums, table, flushes, target=target, schedule=schedule, seed=seed)
        assert loud(run) == []
        np.testing.assert_array_equal(table, NEW + 5)


def test_on_a5_an_atomic_store_does_not_see_the_cache_and_that_is_told() -> None:
    for schedule, seed in SCHEDULES:
        run = pto.launch(sums, OLD.copy(), False, schedule=schedule, seed=seed)
        assert [one[4] for one in ids(run)] == ["H"]
        assert line(loud(run)[0]) == line_of(sums, "k.tstore")


# The plain function call


@pytest.mark.parametrize(
    ("writer", "target", "hangs"),
    [
        (simt, "a5", True),
        (elem, "a5", True),
        (static, "a5", False),
        (scalar, "a5", False),
        (dma, "a5", False),
        (simt, "a2a3", False),
        (elem, "a2a3", False),
        (elem, "cpu", False),
    ],
)
def test_a_kernel_that_is_called_as_a_function_hangs_at_its_first_simt_instruction(
    writer: Kernel, target: str, hangs: bool
) -> None:
    def kernel(k, table, after):
        writer(k, table)
        flush(k)
        k.store_scalar(after, 0, 1)
        flush(k)

    table, after = OLD.copy(), np.zeros(8, np.int32)
    run = pto.launch(kernel, table, after, target=target, dispatch="function")
    assert [one for one in ids(run) if one[4] != "L"] == (["PTO-H005"] if hangs else [])
    np.testing.assert_array_equal(table, OLD if hangs else NEW)
    assert after[0] == (0 if hangs else 1)
    if hangs:
        finding = told(run, "PTO-H005")
        assert (str(finding.severity), line(finding)) == ("error", line_of(writer, "k.mscatter"))
    assert "PTO-H005" not in ids(pto.launch(kernel, OLD.copy(), after, target=target))


def test_a_gather_is_a_simt_instruction_too() -> None:
    def kernel(k, table):
        i = k.tile("int32", 1, 8, (1, 2))
        k.tci(i, 0)
        k.mgather(k.tile("int32", 2, 8), table, i)

    assert ids(pto.launch(kernel, OLD.copy(), dispatch="function")) == ["PTO-H005"]


# Several blocks over one memory


def rows_of(k, rows, value):
    """A tile of this value, and the indices of two rows."""
    t, i = k.tile("int32", 2, 8), k.tile("int32", 1, 8, (1, 2))
    k.texpands(t, value)
    k.tci(i, rows)
    return t, i


def add_rows(k, table, block):
    t, i = rows_of(k, 1, 5)
    k.mscatter(table, t, i, atomic="add")


def add_elements(k, table, block):
    t, i = k.tile("int32", 2, 8), k.tile("int32", 2, 8)
    k.texpands(t, 5)
    k.tci(i, 8)
    k.mscatter(table, t, i, coalesce="elem", atomic="add")


def add_by_store(k, table, block):
    t = k.tile("int32", 2, 8)
    k.texpands(t, 5)
    pair(k, "V", "MTE3", 3)
    k.tstore(table[1:3, :], t, atomic="add")


def put_rows(k, table, block):
    t, i = rows_of(k, 1, 5)
    k.mscatter(table, t, i)


def put_by_store(k, table, block):
    t = k.tile("int32", 2, 8)
    k.texpands(t, 5)
    pair(k, "V", "MTE3", 3)
    k.tstore(table[1:3, :], t)


def put_scalar(k, table, block):
    k.store_scalar(table, 9, 5)


def read_by_load(k, table, block):
    k.tload(k.tile("int32", 4, 8), table)


def read_rows(k, table, block):
    t, i = rows_of(k, 2, 5)
    k.mgather(t, table, i)


def read_scalar(k, table, block):
    k.load_scalar(table, 9)


def own_rows(k, table, block):
    t, i = rows_of(k, 0, 5)
    k.mscatter(table[2 * block : 2 * block + 2, :], t, i)


INSTRUCTION = {
    **dict.fromkeys((add_rows, add_elements, put_rows, own_rows), "k.mscatter"),
    **dict.fromkeys((add_by_store, put_by_store), "k.tstore"),
    put_scalar: "k.store_scalar",
    read_by_load: "k.tload",
    read_rows: "k.mgather",
    read_scalar: "k.load_scalar",
}
SHARED = [
    # what block 0 does, what block 1 does, a2a3, a5
    (own_rows, own_rows, None, None),
    (read_by_load, read_rows, None, None),
    (read_scalar, read_by_load, None, None),
    (add_rows, add_rows, None, None),
    (add_by_store, add_by_store, None, None),
    (add_rows, add_by_store, None, None),
    (add_elements, add_elements, "PTO-S010", None),
    (put_rows, put_rows, "PTO-S009", "PTO-S009"),
    (put_by_store, put_by_store, "PTO-S009", "PTO-S009"),
    (put_scalar, put_scalar, "PTO-S009", "PTO-S009"),
    (put_rows, read_by_load, "PTO-S009", "PTO-S009"),
    (read_rows, put_by_store, "PTO-S009", "PTO-S009"),
    (put_scalar, read_scalar, "PTO-S009", "PTO-S009"),
    (add_rows, put_rows, "PTO-S009", "PTO-S009"),
    (add_rows, read_by_load, "PTO-S009", "PTO-S009"),
    (read_scalar, add_by_store, "PTO-S009", "PTO-S009"),
]


def both(k, table, first, second):
    """One thing in block 0, another in block 1."""
    (first if k.block_idx == 0 else second)(k, table, k.block_idx)
    flush(k)


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize(
    ("first", "second", "on_a2a3", "on_a5"), SHARED, ids=[f"{a.__name__} {b.__name__}" for a, b, _, _ in SHARED]
)
def test_what_blocks_may_share(
    first: Kernel, second: Kernel, on_a2a3: str | None, on_a5: str | None, target: str
) -> None:
    expected = on_a2a3 if target == "a2a3" else on_a5
    runs = [
        pto.launch(both, OLD.copy(), first, second, blocks=2, target=target, schedule=schedule, seed=seed)
        for schedule, seed in SCHEDULES
    ]
    for run in runs:
        assert ids(run) == ([expected] if expected else [])
        assert [(one.id, line(one)) for one in loud(run)] == [(one.id, line(one)) for one in loud(runs[0])]
    if expected:
        finding = told(runs[0], expected)
        lines = sorted(line_of(one, INSTRUCTION[one]) for one in (first, second))
        assert finding.facts["blocks"] == [0, 1]
        assert finding.facts["lines"] == lines
        assert finding.severity is pto.Severity.ERROR


@pytest.mark.parametrize("adder", [add_rows, add_by_store], ids=lambda one: one.__name__)
@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_atomic_additions_of_all_blocks_arrive(adder: Kernel, target: str) -> None:
    for schedule, seed in SCHEDULES:
        table = int32(4, 8)
        run = pto.launch(both, table, adder, adder, blocks=7, target=target, schedule=schedule, seed=seed)
        assert loud(run) == []
        expected = int32(4, 8)
        expected[1:3] += 7 * 5
        np.testing.assert_array_equal(table, expected)


def test_bytes_that_only_one_block_writes_and_nobody_reads_are_no_race() -> None:
    def kernel(k, table):
        own_rows(k, table, k.block_idx)
        flush(k)

    table = np.zeros((8, 8), np.int32)
    assert loud(pto.launch(kernel, table, blocks=4)) == []
    np.testing.assert_array_equal(table, np.full((8, 8), 5))


def test_which_block_wins_a_race_is_up_to_the_schedule() -> None:
    def kernel(k, table):
        t = k.tile("int32", 4, 8)
        k.texpands(t, k.block_idx)
        pair(k, "V", "MTE3")
        k.tstore(table, t)

    for schedule, winner in (("program", 2), ("late", 0)):
        table = np.full((4, 8), -1, np.int32)
        run = pto.launch(kernel, table, blocks=3, schedule=schedule)
        assert set(ids(run)) == {"PTO-S009"}
        np.testing.assert_array_equal(table, np.full((4, 8), winner))


def test_the_first_byte_that_blocks_share_is_told() -> None:
    def kernel(k, table):
        t = k.tile("int32", 2, 8)
        k.texpands(t, k.block_idx)
        pair(k, "V", "MTE3")
        k.tstore(table[k.block_idx : k.block_idx + 2, :], t)

    finding = told(pto.launch(kernel, OLD.copy(), blocks=2), "PTO-S009")
    assert finding.facts["first_byte"] == 32
    assert finding.facts["lines"] == [line_of(kernel, "k.tstore")] * 2


def test_one_block_does_not_flush_for_another() -> None:
    def kernel(k, table):
        own_rows(k, table, k.block_idx)
        if k.block_idx == 0:
            flush(k)

    for schedule, seed in SCHEDULES:
        table = np.zeros((4, 8), np.int32)
        run = pto.launch(kernel, table, blocks=2, schedule=schedule, seed=seed)
        assert told(run, "PTO-H001").facts["block"] == 1
        np.testing.assert_array_equal(table, np.vstack([np.full((2, 8), 5), np.zeros((2, 8))]))


def test_blocks_know_their_number_and_how_many_there_are() -> None:
    def kernel(k, out):
        seen.append((k.block_idx, k.block_num))
        k.store_scalar(out, 32 * k.block_idx, k.block_idx + 1)
        flush(k)

    seen: list[tuple[int, int]] = []
    out = np.zeros((3, 32), np.int32)
    assert loud(pto.launch(kernel, out, blocks=3)) == []
    assert sorted(seen) == [(0, 3), (1, 3), (2, 3)]
    assert out[:, 0].tolist() == [1, 2, 3]


def test_tiles_flags_and_buffers_of_blocks_are_their_own() -> None:
    def kernel(k, out):
        t = k.tile("int32", 1, 8, at=0)
        k.texpands(t, k.block_idx)
        k.set_flag("V", "MTE3", 0)
        k.wait_flag("V", "MTE3", 0)
        k.tstore(out[k.block_idx : k.block_idx + 1, :], t)

    out: Array = np.zeros((5, 8), np.int32)
    run = pto.launch(kernel, out, blocks=5)
    assert loud(run) == []
    np.testing.assert_array_equal(out, np.repeat(np.arange(5)[:, None], 8, axis=1))


def test_findings_between_blocks_do_not_depend_on_the_schedule() -> None:
    expected = essence(pto.launch(both, OLD.copy(), put_rows, read_by_load, blocks=2))
    for seed in range(8):
        run = pto.launch(both, OLD.copy(), put_rows, read_by_load, blocks=2, schedule="random", seed=seed)
        assert essence(run) == expected
