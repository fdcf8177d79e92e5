"""Prices: each branch of the model by hand, parameters and their mistakes, alternatives, the command line."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import ptokit as pto
from ptokit import cost
from ptokit.access.instructions import read_call
from ptokit.access.plan import Plan, make_plan
from ptokit.cli import group
from ptokit.cost.choices import as_elem, pingpong
from ptokit.cost.simt import bursts_of_rows, distinct, most_alike
from ptokit.dtypes import element_type
from ptokit.targets import machine

GIB = 1 << 30
A2A3, A5 = cost.parameters("a2a3"), cost.parameters("a5")
STORE = 28.2 * GIB / 1.85e9  # bytes a cycle
LOAD = 247.2 * GIB / 1.85e9


def plan_of(
    target: str,
    words: Any,
    *,
    op: str = "mscatter",
    rows: int | None = None,
    cols: int = 8,
    table_rows: int = 64,
    dtype: str = "float32",
    valid: tuple[int, int] | None = None,
    base: int = 0,
    **policies: Any,
) -> Plan:
    """A call on a packed table of `cols` columns; `words` are [R] for Row, [R, C] for Elem."""
    words = np.asarray(words)
    rows = words.shape[0] if rows is None else rows
    element = element_type(dtype)
    tile = pto.Tile(dtype, rows, -(-cols // element.c0) * element.c0, valid or (rows, cols))
    shape = words.shape if words.ndim == 2 else (1, len(words))
    idx = pto.Tile("uint32", shape[0], -(-shape[1] // 8) * 8, shape)
    idx.store(words.reshape(shape))
    memory = np.zeros(base + table_rows * cols, tile.dtype.numpy)
    table = pto.GlobalTensor(memory, dtype, (1, 1, 1, table_rows, cols), base=base)
    operands = (table, tile, idx) if op == "mscatter" else (tile, table, idx)
    policies.setdefault("coalesce", "elem" if words.ndim == 2 else "row")
    return make_plan(read_call(op, operands, policies), machine(target))


def parts_of(plan: Plan, numbers: cost.Parameters | None = None) -> dict[str, cost.Part]:
    return {part.name: part for part in cost.of_plan(plan, numbers).parts}


# Steps


@pytest.mark.parametrize(("direction", "peak", "half"), [("load", 247.2, 30643), ("store", 28.2, 1755)])
@pytest.mark.parametrize("size", [32, 1755, 30643, 1 << 20])
def test_one_burst_takes_its_bytes_at_the_bandwidth_of_that_size(
    direction: str, peak: float, half: float, size: int
) -> None:
    bandwidth = peak * GIB * size / (size + half)
    assert cost.transfer(A2A3, direction, 1, size) == pytest.approx(size / bandwidth * 1.85e9)


@pytest.mark.parametrize(("direction", "flat"), [("load", 100.9), ("store", 188.5)])
def test_the_flat_model_starts_up_and_then_keeps_one_speed(direction: str, flat: float) -> None:
    numbers = cost.parameters("a2a3", {"bandwidth": {"model": "flat"}, "dma": {"startup_cycles": 70}})
    expected = 70 + 4096 / (flat * GIB / 1.85e9)
    assert cost.transfer(numbers, direction, 1, 4096) == pytest.approx(expected)


def test_more_bursts_of_one_transfer_start_once() -> None:
    one, three = cost.transfer(A2A3, "store", 1, 96), cost.transfer(A2A3, "store", 3, 32)
    assert three == pytest.approx(one + 2 * A2A3.dma.burst_cycles)


@pytest.mark.parametrize("model", ["flat", "saturating"])
@pytest.mark.parametrize("direction", ["load", "store"])
def test_more_bytes_take_longer(model: str, direction: str) -> None:
    numbers = cost.parameters("a2a3", {"bandwidth": {"model": model}})
    taken = [cost.transfer(numbers, direction, 1, size) for size in range(0, 4096, 32)]
    assert taken[0] == 0
    assert all(np.diff(taken) > 0)


def test_steps_outside_a_plan() -> None:
    numbers = cost.parameters(
        "a2a3",
        {
            "vector": {"issue_cycles": 10, "bytes_per_cycle": 128, "factor": {"tdiv": 3}},
            "scalar": {"ub_cycles": 5, "gm_load_cycles": 90, "gm_store_cycles": 30},
            "sync": {"flag_cycles": 7, "barrier_cycles": 8, "dcci_cycles": 9, "dsb_cycles": 11},
        },
    )
    assert cost.vector(numbers, "tadd", 64, 4) == 10 + 2
    assert cost.vector(numbers, "tdiv", 64, 4) == 10 + 6
    assert cost.vector(numbers, "something new", 64, 4) == 12
    assert [cost.scalar(numbers, 2, where) for where in ("ub", "gm_load", "gm_store")] == [10, 180, 60]
    assert (cost.flag(numbers), cost.barrier(numbers)) == (7, 8)
    assert [cost.flush(numbers, what) for what in ("dcci", "dsb")] == [9, 11]
    assert cost.issue(numbers) == A2A3.dma.issue_cycles


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: cost.transfer(A2A3, "laod", 1, 1), "direction='laod' is unknown. Did you mean 'load'?"),
        (lambda: cost.transfer(A2A3, "load", -1, 1), "-1 bursts of 1 bytes"),
        (lambda: cost.flush(A2A3, "dsc"), "what='dsc' is unknown"),
        (lambda: cost.scalar(A2A3, 1, "gm"), "memory='gm' is unknown"),
    ],
)
def test_mistakes_at_a_step(call: Any, sentence: str) -> None:
    with pytest.raises(pto.PtoValueError, match=re.escape(sentence)):
        call()


# a2a3


def test_a2a3_row_waits_for_each_row_and_pays_every_start() -> None:
    plan = plan_of("a2a3", [3, 99, 3], cols=64, oob="skip")
    parts = parts_of(plan)
    whole = (1755 + 256) / STORE
    walk = 3 * (4 + 6 + 2) + 2 * 12  # three rows looked at, two sent
    assert parts["row transfers"].cycles == pytest.approx(2 * whole)
    assert (parts["row transfers"].pipe, parts["row transfers"].facts["bytes"]) == ("MTE3", 512)
    assert (parts["row walk"].cycles, parts["row walk"].hidden) == (walk, 0)
    assert parts["wait after each row"].cycles == 2 * 16
    # V->S, MTE2->S, S->MTE3 before; MTE3->V, MTE3->MTE2 after
    assert parts["flags before"].cycles + parts["flags after"].cycles == 5 * 16
    assert cost.of_plan(plan).total == pytest.approx(2 * whole + walk + 7 * 16)


def test_a2a3_row_parts_stand_in_the_sequence_of_the_instruction() -> None:
    none, add = plan_of("a2a3", [1, 2], cols=64), plan_of("a2a3", [1, 2], cols=64, atomic="add")
    assert [part.name for part in cost.of_plan(none).parts] == [
        "flags before",
        "row walk",
        "row transfers",
        "wait after each row",
        "flags after",
    ]
    assert [part.name for part in cost.of_plan(add).parts] == [
        "flags before",
        "atomic mode on",
        "row walk",
        "row transfers",
        "flags after the sum",
        "atomic mode off",
        "flags after",
    ]


def test_a2a3_row_add_queues_its_rows_behind_one_another() -> None:
    plan = plan_of("a2a3", range(10), cols=64, atomic="add")
    parts = parts_of(plan)
    whole, step = (1755 + 256) / STORE, 4 + 6 + 12
    assert whole / 8 < step  # the scalar pipe sets the pace here
    assert parts["row transfers"].facts["bound"] == "issue"
    assert parts["row transfers"].cycles == pytest.approx(whole + 9 * step)
    assert (parts["row walk"].cycles, parts["row walk"].exposed) == (10 * step, pytest.approx(step))
    assert parts["atomic mode on"].cycles == parts["atomic mode off"].cycles == 2
    flags = 3 + 3 + 2  # before; MTE3->S, S->V, S->MTE2 after the sum; after
    assert cost.of_plan(plan).total == pytest.approx(step + whole + 9 * step + 4 + flags * 16)


def test_a_queue_is_bound_by_bytes_or_by_what_may_be_under_way() -> None:
    long = plan_of("a2a3", range(10), cols=4096, atomic="add")
    assert parts_of(long)["row transfers"].facts["bound"] == "bytes"
    assert parts_of(long)["row transfers"].cycles == pytest.approx((1755 + 10 * 4096 * 4) / STORE)
    few = cost.parameters("a2a3", {"dma": {"outstanding": 2}})
    short = parts_of(plan_of("a2a3", range(10), cols=64, atomic="add"), few)["row transfers"]
    whole = (1755 + 256) / STORE
    assert (short.facts["bound"], short.cycles) == ("outstanding", pytest.approx(whole + 9 * whole / 2))


def test_a2a3_rows_that_are_all_dropped_send_nothing() -> None:
    parts = parts_of(plan_of("a2a3", [99, 99], oob="skip"))
    assert "row transfers" not in parts
    assert "wait after each row" not in parts
    assert parts["row walk"].exposed == 2 * (4 + 6 + 2)


def nz_plan(op: str, batches: int, **policies: Any) -> Plan:
    """16 rows into an NZ table of `batches` outer batches of 2 block columns of 8 float32."""
    cols = batches * 2 * 8
    table = pto.GlobalTensor(np.zeros(32 * cols, np.float32), "float32", (batches, 2, 2, 16, 8), layout="nz")
    tile, idx = pto.Tile("float32", 16, cols, layout="nz"), pto.Tile("int32", 1, 16)
    idx.store([np.arange(16)])
    operands = (table, tile, idx) if op == "mscatter" else (tile, table, idx)
    return make_plan(read_call(op, operands, policies), machine("a2a3"))


def test_a2a3_nz_rows_are_a_transfer_of_several_bursts_for_each_batch() -> None:
    parts = parts_of(nz_plan("mscatter", 3))
    moved = parts["row transfers"].facts
    whole = (1755 + 64) / STORE + 4  # two bursts of 32 bytes
    assert (moved["transfers"], moved["bursts"], moved["bytes"]) == (48, 96, 48 * 64)
    # Within a row transfers need not wait for one another; rows do. The scalar pipe sets the pace.
    pace = max((10 + 3 * 12) / 3, whole - 1755 / STORE, whole / 8)
    assert parts["row transfers"].cycles == pytest.approx(16 * (whole + 2 * pace))
    assert parts["wait after each row"].cycles == 16 * 16


def test_a2a3_gather_rows_come_by_mte2_without_a_wait_for_each() -> None:
    parts = parts_of(plan_of("a2a3", [1, 2, 3], op="mgather", cols=64))
    assert list(parts) == ["flags before", "row walk", "row transfers", "flags after"]
    whole = (30643 + 256) / LOAD
    assert parts["row transfers"].pipe == "MTE2"
    assert parts["row transfers"].cycles == pytest.approx(whole + 2 * max(whole / 8, 22))
    assert len(parts["flags before"].facts["pairs"]) == 2
    assert len(parts["flags after"].facts["pairs"]) == 5


def test_a2a3_gather_zero_fills_dropped_rows_or_the_whole_nz_tile() -> None:
    dropped = plan_of("a2a3", [1, 99, 99], op="mgather", cols=64, oob="zero")
    assert parts_of(dropped)["zero fill"].cycles == 2 * 64 * 6
    assert "zero fill" not in parts_of(plan_of("a2a3", [1, 2], op="mgather", cols=64, oob="zero"))
    assert parts_of(nz_plan("mgather", 1, oob="zero"))["zero fill"].cycles == 16 * 16 * 6


@pytest.mark.parametrize(
    ("op", "policies", "each", "live"),
    [
        ("mscatter", {}, 4 + 6, 6 + 40),
        ("mscatter", {"oob": "skip"}, 4 + 6 + 2, 6 + 40),
        ("mscatter", {"oob": "skip", "atomic": "add"}, 4 + 6 + 2, 6 + 40 + 120 + 4),
        ("mgather", {}, 4 + 6, 6 + 120),
    ],
)
def test_a2a3_elem_is_a_scalar_walk(op: str, policies: dict[str, str], each: int, live: int) -> None:
    words = np.arange(16).reshape(2, 8)
    words[1, 7] = 512 if policies else 0  # one past the end: dropped
    plan = plan_of("a2a3", words, op=op, **policies)
    stored = 15 if policies else 16
    assert parts_of(plan)["element walk"].cycles == 16 * each + stored * live
    assert cost.of_plan(plan).total == 16 * each + stored * live + 6 * 16  # three flags before, three after


def test_a2a3_elem_gather_zero_writes_the_zeros() -> None:
    words = np.full((1, 8), 512)
    assert parts_of(plan_of("a2a3", words, op="mgather", oob="zero"))["element walk"].cycles == 8 * (12 + 6)


def test_a2a3_elem_nz_divides_each_index() -> None:
    plan = nz_plan("mscatter", 1)
    elem = as_elem(plan, machine("a2a3"))
    assert elem is not None
    assert parts_of(make_plan(elem, machine("a2a3")))["element walk"].cycles == 256 * (4 + 6 + 24 + 6 + 40)


# a5


def test_32_consecutive_float32_lanes_are_one_burst() -> None:
    plan = plan_of("a5", np.arange(32).reshape(4, 8), conflict="default")
    assert parts_of(plan)["bursts of 128 bytes"].facts == {"bursts": 1, "bytes": 128, "used": 1.0}


def test_lanes_128_bytes_apart_are_32_bursts() -> None:
    plan = plan_of("a5", np.arange(0, 1024, 32).reshape(4, 8), table_rows=128, conflict="default")
    part = parts_of(plan)["bursts of 128 bytes"]
    assert (part.facts["bursts"], part.cycles) == (32, 64)


def test_a_view_that_starts_inside_a_line_needs_a_burst_more() -> None:
    words = np.arange(32).reshape(4, 8)
    assert parts_of(plan_of("a5", words, base=1, conflict="default"))["bursts of 128 bytes"].facts["bursts"] == 2
    assert parts_of(plan_of("a5", range(4), cols=32, base=8, atomic="add"))["bursts of 128 bytes"].facts["bursts"] == 8


def test_dropped_lanes_take_their_step_and_no_burst() -> None:
    words = np.arange(0, 2048, 32).reshape(8, 8)
    parts = parts_of(plan_of("a5", words, table_rows=128, oob="skip", conflict="default"))
    assert parts["bursts of 128 bytes"].facts["bursts"] == 32
    assert parts["warp steps"].facts["steps"] == 2


def test_row_steps_are_chunks_of_32_columns() -> None:
    plan = plan_of("a5", range(16), cols=80, atomic="add")
    parts = parts_of(plan)
    # 16 rows, two warps each: 3 chunks a row, of which one warp takes two.
    assert parts["launch"].facts["warps"] == 32
    assert parts["warp steps"].facts == {"warps": 32, "steps": 48, "longest_warp": 2, "bound": "issue"}
    assert parts["warp steps"].cycles == 48 * 8
    assert cost.of_plan(plan).total == 400 + 48 * 8


def test_rows_beyond_32_share_warps_and_a_dropped_row_is_one_look_for_each_of_its_warps() -> None:
    words = np.arange(40)
    words[[8, 9, 32]] = 99
    steps = parts_of(plan_of("a5", words, cols=80, oob="skip", atomic="add"))["warp steps"].facts
    assert (steps["warps"], steps["steps"], steps["longest_warp"]) == (32, 37 * 3 + 3, 6)


def test_a_row_that_is_dropped_costs_every_warp_of_it_one_step() -> None:
    nothing = parts_of(plan_of("a5", [99] * 64, cols=80, oob="skip", atomic="add"))
    assert (nothing["warp steps"].facts["steps"], nothing["warp steps"].facts["longest_warp"]) == (64, 2)
    assert nothing["bursts of 128 bytes"].facts == {"bursts": 0, "bytes": 0, "used": 0.0}
    two_each = parts_of(plan_of("a5", [1, 99] * 8, cols=80, oob="skip", atomic="add"))["warp steps"].facts
    assert two_each["steps"] == 8 * 3 + 8 * 2


def test_a_gather_writes_its_zeros_in_full_steps() -> None:
    parts = parts_of(plan_of("a5", [1, 99] * 8, op="mgather", cols=96, oob="zero"))
    assert (parts["warp steps"].facts["steps"], parts["bursts of 128 bytes"].facts["bursts"]) == (16 * 3, 8 * 3)


def test_ub_moves_values_and_index_words() -> None:
    part = parts_of(plan_of("a5", [1, 99], cols=64, oob="skip", atomic="add"))["UB reads and writes"]
    assert (part.facts["bytes"], part.cycles) == (256 + 8, 264 / 128)


def test_a_small_launch_is_bound_by_the_latency_of_its_warp() -> None:
    one = parts_of(plan_of("a5", [3], cols=320, valid=(1, 320), atomic="add"))["warp steps"]
    assert one.facts == {"warps": 10, "steps": 10, "longest_warp": 1, "bound": "issue"}
    gather = parts_of(plan_of("a5", [3], op="mgather", cols=320))["warp steps"]
    assert (gather.cycles, gather.facts["bound"]) == (400, "latency")


def test_atomics_on_one_address_are_serialised_in_a_step_and_across() -> None:
    words = np.full((8, 8), 5)
    words[4:] = np.arange(32).reshape(4, 8) + 100
    words[7, 7] = 5
    parts = parts_of(plan_of("a5", words, atomic="add"))
    assert parts["atomics on one address in a warp step"].facts == {"replays": 31}
    assert parts["atomics on the hottest address"].facts == {"hits": 33}
    assert parts["atomics on the hottest address"].cycles == 32 * 8
    # The strands overlap: bursts and replays together are the longest.
    bursts = parts["bursts of 128 bytes"]
    assert bursts.facts["bursts"] == 1 + 3  # 100 to 130 lie in two lines, 5 in a third
    assert cost.of_plan(plan_of("a5", words, atomic="add")).total == 400 + 31 * 8 + 4 * 2
    assert parts["atomics on the hottest address"].exposed == 0


def test_rows_that_meet_are_serialised_too_and_plain_stores_are_not() -> None:
    same = [7] * 16
    assert parts_of(plan_of("a5", same, atomic="max"))["atomics on the hottest address"].cycles == 15 * 8
    assert "atomics on the hottest address" not in parts_of(plan_of("a5", same, conflict="default"))


def test_last_scans_slots_times_indices_and_an_owned_slot_stops() -> None:
    nobody = parts_of(plan_of("a5", [99] * 16, table_rows=64, oob="skip"))["reverse scan"]
    assert nobody.facts["comparisons"] == 64 * 16
    assert nobody.facts["steps"] == 2 * 16
    assert nobody.cycles == max(2 * 16 * 4, 16 * 16)
    # Slot 3 stops at its last index, 12 from the end; the rest of its warp goes on.
    words = np.full(16, 99)
    words[[1, 4]] = 3
    one = parts_of(plan_of("a5", words, table_rows=64, oob="skip"))["reverse scan"].facts
    assert (one["comparisons"], one["steps"], one["owned"]) == (64 * 16 - 4, 2 * 16, 1)


def test_a_warp_of_last_stops_when_all_its_slots_are_owned() -> None:
    words = np.concatenate([[0] * 8, np.arange(32)])
    facts = parts_of(plan_of("a5", words, table_rows=64))["reverse scan"].facts
    assert facts["steps"] == 32 + 40
    assert facts["comparisons"] == 32 * 33 // 2 + 32 * 40
    assert facts["longest_warp"] == 40


def test_last_stores_once_a_slot_and_whole_rows_do_not_coalesce() -> None:
    words = [0, 1, 1, 40]
    parts = parts_of(plan_of("a5", words, cols=64))
    assert parts["bursts of 128 bytes"].facts["bursts"] == 3 * 64  # rows 256 bytes apart: never two in a line
    assert parts["warp steps"].facts["steps"] == 2 * 64  # slots 0 and 1 are of one warp, 40 of another
    again = parts_of(plan_of("a5", [0, 1024, 1056], table_rows=2048))["warp steps"].facts
    assert (again["steps"], again["longest_warp"]) == (3 * 8, 2 * 8)  # 0 and 1024 are of one warp
    narrow = parts_of(plan_of("a5", words, cols=8))["bursts of 128 bytes"].facts
    assert narrow["bursts"] == 2 * 8  # rows of 32 bytes: 0 and 1 share the line


def test_a_static_scalar_call_launches_nothing() -> None:
    plan = plan_of("a5", [[5]], cols=8, valid=(1, 1))
    assert [part.name for part in cost.of_plan(plan).parts] == ["flags before", "element walk", "flags after"]
    assert cost.of_plan(plan).total == 2 * 16 + 4 + 6 + 6 + 40


def naive_bursts(plan: Plan) -> int:
    """Warp step by warp step, lane by lane, as a thread of SEMANTICS 3.2 would do it."""
    size, base, cols = plan.call.tile.dtype.itemsize, plan.call.table.base, plan.call.tile.valid_cols
    raw = [int(word) for word in plan.raw]
    lines: set[tuple[Any, ...]] = set()
    if plan.scans_slots:
        for slot in range(plan.capacity.true):
            if slot in raw:
                for column in range(plan.runs.length):
                    lines.add((slot // 32, column, (base + slot * plan.runs.length + column) * size // 128))
    elif plan.runs_are_rows:
        for row, slot in enumerate(raw):
            lines |= {(row, c // 32, (base + slot * cols + c) * size // 128) for c in range(cols)}
    else:
        lines = {(flat // 32, (base + slot) * size // 128) for flat, slot in enumerate(raw)}
    return len(lines)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32"])
@pytest.mark.parametrize("conflict", ["last", "default"])
@pytest.mark.parametrize("cols", [8, 24, 40, 100])
@pytest.mark.parametrize("by_row", [True, False])
def test_bursts_agree_with_a_walk_over_the_lanes(dtype: str, conflict: str, cols: int, by_row: bool) -> None:
    rng = np.random.default_rng(cols)
    words = rng.integers(0, 64, 48) if by_row else rng.integers(0, 64 * cols, (6, cols))
    plan = plan_of("a5", words, cols=cols, dtype=dtype, conflict=conflict, base=3)
    assert parts_of(plan)["bursts of 128 bytes"].facts["bursts"] == naive_bursts(plan)


@pytest.mark.parametrize("table_rows", [20, 64, 2100])
def test_the_scan_agrees_with_a_walk_over_the_slots(table_rows: int) -> None:
    rng = np.random.default_rng(table_rows)
    words = rng.permutation(np.concatenate([np.arange(min(table_rows, 40)), rng.integers(0, table_rows, 60)]))
    raw = [int(word) for word in words]
    looked = [raw[::-1].index(slot) + 1 if slot in raw else len(raw) for slot in range(table_rows)]
    warps = min(-(-table_rows // 32), 32)
    of_warp = [0] * warps
    for first in range(0, table_rows, 32):
        of_warp[first // 32 % warps] += max(looked[first : first + 32])
    facts = parts_of(plan_of("a5", words, table_rows=table_rows))["reverse scan"].facts
    assert (facts["comparisons"], facts["steps"]) == (sum(looked), sum(of_warp))
    assert (facts["warps"], facts["longest_warp"]) == (warps, max(of_warp))


def test_pieces_of_the_warp_model() -> None:
    keys = np.array([[-1, 2, 2, 3], [-1, -1, -1, -1]])
    assert (distinct(keys), most_alike(keys).tolist()) == (2, [2, 0])
    assert bursts_of_rows(np.array([], np.int64), 64, 4) == 0


# All targets


def test_cpu_counts_elements() -> None:
    plan = plan_of("cpu", np.zeros((4, 8), int))
    assert (cost.of_plan(plan).total, cost.of_plan(plan).pipes) == (32 * 4, {"S": 128})


def test_a_report_has_its_cost_and_the_plan_stays_what_it_was() -> None:
    tile, idx = pto.Tile("float32", 4, 8), pto.Tile("int32", 1, 8, valid=(1, 4))
    idx.store([[3, 1, 2, 0]])
    table = pto.GlobalTensor(np.zeros((4, 8), np.float32), "float32", (1, 1, 1, 4, 8))
    rep = pto.mscatter(table, tile, idx, target="a2a3")
    assert rep.cost == cost.of_plan(rep.plan)
    assert rep.cost.total == pytest.approx(sum(part.exposed for part in rep.cost.parts))
    assert rep.cost.microseconds == pytest.approx(rep.cost.total / 1850)
    assert rep.cost.facts["lanes"] == 4


def test_explain_puts_the_largest_share_first_and_the_shares_add_up() -> None:
    rows = cost.explain(plan_of("a5", range(16), cols=80, atomic="add"))
    assert rows[0]["part"] == "launch"
    shares = [row["share"] for row in rows]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1)
    json.dumps(rows)


def test_parameters_of_another_target_are_refused() -> None:
    with pytest.raises(pto.PtoValueError, match="the call is one on a5, the parameters are those of a2a3"):
        cost.of_plan(plan_of("a5", [1]), A2A3)


# Parameters


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_every_number_says_where_it_comes_from(target: str) -> None:
    text = (files("ptokit.cost") / f"{target}.toml").read_text()
    for line in text.partition("[vector.factor]")[0].splitlines():
        if re.match(r"\w+ = \d", line):
            assert re.search(r"# (published|reference page|ASSUMPTION)", line), line
    assert "[vector.factor]  # ASSUMPTION" in text


def test_a_file_replaces_some_numbers_and_leaves_the_rest(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text("[sync]\nflag_cycles = 5\n[a5.simt]\nlaunch_cycles = 900\n[a5.sync]\nflag_cycles = 6\n")
    a2a3, a5 = cost.parameters("a2a3", mine), cost.parameters("a5", str(mine))
    assert (a2a3.sync.flag_cycles, a2a3.sync.barrier_cycles) == (5, A2A3.sync.barrier_cycles)
    assert a5.simt is not None
    assert (a5.sync.flag_cycles, a5.simt.launch_cycles) == (6, 900)
    assert cost.parameters("a2a3") == A2A3
    plan = plan_of("a5", [1], cols=32, atomic="add")
    assert cost.of_plan(plan, a5).total - cost.of_plan(plan).total == 500


@pytest.mark.parametrize(
    ("override", "error", "sentence"),
    [
        ({"scaler": {}}, pto.PtoValueError, "'scaler' is no parameter. Did you mean 'scalar'?"),
        ({"scalar": {"ub_cycle": 1}}, pto.PtoValueError, "'scalar.ub_cycle' is no parameter. Did you mean 'ub_cycles'"),
        ({"bandwidth": {"load": {"peek_gib_s": 1}}}, pto.PtoValueError, "Did you mean 'peak_gib_s'?"),
        ({"bandwidth": {"model": "flatt"}}, pto.PtoValueError, "Did you mean 'flat'?"),
        ({"bandwidth": {"model": 1}}, pto.PtoTypeError, "bandwidth.model is 1; a name is wanted"),
        ({"scalar": {"ub_cycles": "6"}}, pto.PtoTypeError, "scalar.ub_cycles is '6'; a number is wanted"),
        ({"scalar": {"ub_cycles": True}}, pto.PtoTypeError, "scalar.ub_cycles is True; a number is wanted"),
        ({"scalar": {"ub_cycles": 0}}, pto.PtoValueError, "scalar.ub_cycles is 0; a number above zero is wanted"),
        ({"scalar": {"ub_cycles": float("nan")}}, pto.PtoValueError, "a number above zero is wanted"),
        ({"dma": {"outstanding": 1.5}}, pto.PtoTypeError, "dma.outstanding is 1.5; a whole number is wanted"),
        ({"scalar": 3}, pto.PtoTypeError, "scalar is 3; a table with walk_cycles"),
        ({"a5": 3}, pto.PtoTypeError, "a5 is 3; a table is wanted"),
        ({3: 4}, pto.PtoValueError, "'3' is no parameter"),
        (7, pto.PtoTypeError, "override is an int"),
        ("no/such.toml", pto.PtoValueError, "no/such.toml cannot be read: No such file or directory"),
    ],
)
def test_mistakes_in_an_override(override: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=re.escape(sentence)):
        cost.parameters("a5", override)


@pytest.mark.parametrize("content", [b"[scalar\n", b"\xff\xfe\x00"])
def test_a_file_that_is_not_toml(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "mine.toml").write_bytes(content)
    with pytest.raises(pto.PtoValueError, match="is not TOML"):
        cost.parameters("a2a3", tmp_path / "mine.toml")


# Alternatives


def operands(rows: int = 16, cols: int = 64, table_rows: int = 64) -> tuple[Any, Any, Any]:
    tile, idx = pto.Tile("float32", rows, cols), pto.Tile("int32", 1, -(-rows // 8) * 8, valid=(1, rows))
    idx.store([np.arange(rows) * 3 % table_rows])
    memory = np.zeros((table_rows, cols), np.float32)
    return pto.GlobalTensor(memory, "float32", (1, 1, 1, table_rows, cols)), tile, idx


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("oob", ["skip", "clamp", "wrap"])
def test_a_row_call_said_as_elem_writes_the_same_table(target: str, oob: str) -> None:
    table, tile, idx = operands()
    idx.store([[3, 5, -1, 3, 64, 70, 0, 1, 2, 3, 4, 5, 6, 7, 8, 63]])
    tile.store(np.arange(16 * 64).reshape(16, 64))
    where = machine(target)
    elem = as_elem(make_plan(read_call("mscatter", (table, tile, idx), {"oob": oob}), where), where)
    assert elem is not None
    by_row, by_element = table.copy(), table.copy()
    pto.mscatter(by_row, tile, idx, oob=oob, target=target)
    pto.mscatter(by_element, tile, elem.idx, coalesce="elem", oob=oob, target=target)
    assert by_row.memory.tobytes() == by_element.memory.tobytes()


def test_a_row_call_that_no_elem_call_reaches_has_no_such_choice() -> None:
    _, tile, idx = operands(4, 8)
    memory = np.zeros(64 * 16, np.float32)
    padded = pto.GlobalTensor(memory, "float32", (1, 1, 1, 64, 8), stride=(1024, 1024, 1024, 16, 1))
    idx.store([[0, 1, 2, 63]])  # row 63 begins at element 1008 of a table that counts 512
    told = cost.compare_choices("mscatter", padded, tile, idx, target="a2a3")
    assert [choice.name for choice in told if choice.about == "mode"] == ["row"]
    assert as_elem(nz_plan("mscatter", 1), machine("a2a3")) is not None
    narrow = pto.Tile("float32", 16, 16, valid=(16, 12), layout="nz")
    table = pto.GlobalTensor(np.zeros(512, np.float32), "float32", (1, 2, 2, 16, 8), layout="nz")
    index = pto.Tile("int32", 1, 16)
    assert (
        as_elem(make_plan(read_call("mscatter", (table, narrow, index), {}), machine("a2a3")), machine("a2a3")) is None
    )


def test_choices_compare_with_the_first_of_their_kind() -> None:
    told = cost.compare_choices("mscatter", *operands(), target="a5", conflict="default", tile_rows=[8, 4])
    by_kind = {kind: [c for c in told if c.about == kind] for kind in ("mode", "conflict", "tile")}
    assert [c.name for c in by_kind["mode"]] == ["row", "elem"]
    assert [c.name for c in by_kind["conflict"]] == ["default", "last"]
    assert [c.name for c in by_kind["tile"]] == [
        "16 rows",
        "8 rows",
        "8 rows, ping-pong",
        "4 rows",
        "4 rows, ping-pong",
    ]
    for choices in by_kind.values():
        assert choices[0].ratio == 1
        assert all(c.ratio == pytest.approx(c.cycles / choices[0].cycles) for c in choices)
    given = cost.of_plan(make_plan(read_call("mscatter", operands(), {"conflict": "default"}), machine("a5"))).total
    assert by_kind["mode"][0].cycles == by_kind["conflict"][0].cycles == given
    assert by_kind["conflict"][1].ratio > 1
    assert [c.facts["calls"] for c in by_kind["tile"]] == [1, 2, 2, 4, 4]
    assert [c.facts["bytes"] for c in by_kind["tile"]][:3] == [16 * 256 + 64, 8 * 256 + 32, 2 * (8 * 256 + 32)]


def test_a_chunk_is_its_loads_and_its_call() -> None:
    table, tile, idx = operands()
    told = cost.compare_choices("mscatter", table, tile, idx, target="a2a3", tile_rows=[16])
    call = cost.of_plan(make_plan(read_call("mscatter", (table, tile, idx), {}), machine("a2a3"))).total
    loads = cost.transfer(A2A3, "load", 1, 16 * 256) + cost.transfer(A2A3, "load", 1, 64)
    assert told[-1].cycles == pytest.approx(call + loads)


def test_a_gather_stores_its_chunks_and_has_no_conflict() -> None:
    table, tile, idx = operands()
    told = cost.compare_choices("mgather", tile, table, idx, target="a5", tile_rows=[16])
    assert {choice.about for choice in told} == {"mode", "tile"}
    call = cost.of_plan(make_plan(read_call("mgather", (tile, table, idx), {}), machine("a5"))).total
    moved = cost.transfer(A5, "load", 1, 64) + cost.transfer(A5, "store", 1, 16 * 256)
    assert told[-1].cycles == pytest.approx(call + moved)


def test_ping_pong_overlaps_neighbours() -> None:
    assert pingpong([(10, 4, 3)]) == 17
    assert pingpong([(10, 4, 3), (10, 30, 3)]) == 10 + 10 + 30 + 3


@pytest.mark.parametrize(("layout", "target"), [("dn", "a5"), ("nz", "a2a3")])
def test_tiles_of_other_layouts_are_cut_as_well(layout: str, target: str) -> None:
    tile, idx = pto.Tile("float32", 32, 16, layout=layout), pto.Tile("int32", 1, 32)
    shape = (1, 2, 4, 16, 8) if layout == "nz" else (1, 1, 1, 64, 16)
    table = pto.GlobalTensor(np.zeros(1024, np.float32), "float32", shape, layout="nz" if layout == "nz" else "nd")
    idx.store([np.arange(32)])
    told = cost.compare_choices("mscatter", table, tile, idx, target=target)
    assert [choice.facts["calls"] for choice in told if choice.about == "tile"] == [1, 2, 2, 4, 4, 8, 8, 16, 16]
    assert next(choice for choice in told if choice.name == "elem").ratio > 1


def test_an_elem_call_keeps_its_mode_and_a_dynamic_tile_stays_dynamic() -> None:
    table, _, _ = operands()
    tile, idx = pto.Tile("float32", 2, 8, valid=(-1, -1)), pto.Tile("int32", 2, 8, valid=(2, 1))
    tile.set_valid(2, 1)
    idx.store([[1], [2]])
    told = cost.compare_choices("mscatter", table, tile, idx, coalesce="elem", target="a5", atomic="add")
    assert [choice.name for choice in told] == ["elem", "2 rows", "1 row", "1 row, ping-pong"]
    calls = told[2].cycles - 4 * cost.transfer(A5, "load", 1, 4)
    assert calls > 2 * 400  # launched twice: only a static (1,1) call takes the scalar path


def test_an_illegal_call_has_no_price() -> None:
    with pytest.raises(pto.IllegalInstruction, match="PTO-L024"):
        cost.compare_choices("mscatter", *operands(), target="a2a3", atomic="max")
    with pytest.raises(pto.PtoValueError, match="tile_rows=17 for a call of 16 rows"):
        cost.compare_choices("mscatter", *operands(), tile_rows=[17])


# The command line


def run(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(group, ["cost", *words], env={"NO_COLOR": "1", "COLUMNS": "160"})
    assert done.exit_code == code, (done.output, done.exception)
    return done.output


def test_the_command_shows_parts_and_alternatives() -> None:
    shown = run("mscatter", "--rows", "16", "--cols", "64", "--indices", "unique")
    for word in ("a2a3: mscatter row none undefined", "a5: mscatter row none undefined last", "MTE3", "row transfers"):
        assert word in shown
    for word in ("reverse scan", "Row or Elem:", "Last or Default:", "8 rows, ping-pong", "A model, no measurement"):
        assert word in shown
    assert "\x1b" not in shown


def test_the_command_as_json_agrees_with_the_plan() -> None:
    told = json.loads(run("mscatter", "--target", "a5", "--indices", "same", "--atomic", "add", "--json"))
    assert len(told) == 1
    parts = {part["part"]: part for part in told[0]["parts"]}
    assert parts["atomics on the hottest address"]["facts"] == {"hits": 16}
    assert told[0]["cycles"] == cost.of_plan(plan_of("a5", [9] * 16, cols=64, table_rows=1024, atomic="add")).total
    assert {choice["about"] for choice in told[0]["choices"]} == {"mode", "tile"}


@pytest.mark.parametrize("indices", ["uniform", "unique", "zipf", "same"])
def test_a_seed_gives_the_same_price_again(indices: str) -> None:
    words = ("mscatter", "--indices", indices, "--coalesce", "elem", "--conflict", "default", "--seed", "7", "--json")
    assert run(*words) == run(*words)


def test_parameters_of_a_file_reach_the_price(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text("[a5.simt]\nlaunch_cycles = 1400\n")
    words = ("mscatter", "--target", "a5", "--atomic", "add", "--json")
    before, after = json.loads(run(*words))[0], json.loads(run(*words, "--parameters", str(mine)))[0]
    assert after["cycles"] - before["cycles"] == 1000


def test_a_target_that_refuses_says_why_beside_one_that_does_not() -> None:
    shown = run("mscatter", "--atomic", "max")
    assert "a2a3 refuses the call:" in shown
    assert "PTO-L024" in shown
    assert "a5: mscatter row max undefined" in shown
    assert json.loads(run("mscatter", "--atomic", "max", "--target", "a2a3", "--json", code=1))[0]["legal"] is False


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("mscatter", "--target", "a6"), "Did you mean 'a5'?"),
        (("mscatter", "--atomic", "ad"), "Did you mean 'add'?"),
        (("mgather", "--atomic", "add"), "A gather has no atomics."),
        (("mscatter", "--indices", "unique", "--table-rows", "3"), "16 indices cannot all differ in a table of 3"),
        (("mscatter", "--tile-rows", "8;4"), "--tile-rows 8;4: whole numbers with commas are wanted"),
        (("mscatter", "--table-rows", "100000000000"), "too large to be held here"),
        (("mscatter", "--parameters", "no.toml"), "no.toml cannot be read"),
    ],
)
def test_mistakes_on_the_command_line(words: tuple[str, ...], sentence: str) -> None:
    done = CliRunner().invoke(group, ["cost", *words])
    assert isinstance(done.exception, pto.PtoError)
    assert sentence in str(done.exception)
