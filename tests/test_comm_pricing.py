"""Prices of collectives on many ranks: by hand, chunk by chunk against the matrices, and what must hold of any."""

from __future__ import annotations

import json
import tracemalloc
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ptokit as pto
from ptokit import cost
from ptokit.comm.prices import pricing, staging
from ptokit.comm.prices.link import links
from ptokit.comm.prices.picture import timeline
from ptokit.comm.prices.pricing import Curve, Prices, asked, predicted_order
from ptokit.comm.prices.routing import Routed, Table
from ptokit.comm.prices.staging import START, Step
from ptokit.comm.prices.ways import WAYS, ByCcu, Price
from ptokit.comm.prices.work import Work, parts
from ptokit.comm.schedule import chunked
from ptokit.report.perfetto import events

GIB = 1 << 30
AIV = [way for way in WAYS if way[0] != "ccu"]
DOUBLES = [2**power for power in range(1, 15)]


def one(name: str, ranks: int, op: str = "tscatter", **more: Any) -> Any:
    """The price of one way on so many ranks."""
    word, _, shape = name.partition(" ")
    asked_for = {"variant": word, "topology": shape} if shape else {}
    return pto.comm.price(op, ranks=[ranks], **asked_for, **more)[name].at(ranks)


PLAIN = {
    "clock": {"frequency_ghz": 1.0},
    "bandwidth": {"model": "flat", "load": {"flat_gib_s": 1e9 / GIB}, "store": {"flat_gib_s": 0.5e9 / GIB}},
    "dma": {"startup_cycles": 1e-9, "burst_cycles": 1e-9},
    "sync": {"flag_cycles": 1e-9},
}
"""No flags and no starts to speak of: a chunk of 4 x 4 int8 is loaded in 16 ns and stored in 32 ns."""
SLOW = {"latency": 0.1, "bandwidth": 1e9 / GIB / 8, "root": 1e9 / GIB / 2}
"""100 ns of latency; the 16 bytes of a chunk take 128 ns on the link and 32 ns at the port."""


def by_hand(name: str, ranks: int, op: str = "tscatter", rows: int = 8, **more: Any) -> Any:
    given_ = {"rows": rows, "width": 4, "dtype": "int8", "tile": (4, 4), "link": SLOW, "parameters": PLAIN}
    return one(name, ranks, op, **{**given_, **more})


def near(seconds: Any) -> Any:
    return pytest.approx(seconds, rel=1e-6)


# By hand


def test_one_tile_loads_stores_and_waits_in_turn() -> None:
    # Two chunks of its own: 2 x (16 + 32). Two of the other's: 2 x (16 + 128 + 100).
    price = by_hand("single flat", 2)
    assert price.seconds == near(584e-9)
    assert price.root_seconds == price.seconds
    assert price.last == near([96e-9, 584e-9])
    assert price.first == near([48e-9, 340e-9])
    assert price.nbytes == 32
    told = {"UB staging": 96e-9, "latency": 200e-9, "the link": 256e-9, "the root's port": 64e-9}
    assert dict(price.bounds) == near(told)
    assert price.bottleneck == "the link"


def test_two_tiles_hide_the_load_and_half_of_the_latency() -> None:
    # Own chunks: load 0-16, store 16-48; load 16-32, store 48-80.
    # Others': loads 48-64 and 80-96, as soon as their tiles are free; stores 80-208 and 208-336, there 100 later.
    price = by_hand("pingpong flat", 2)
    assert price.last == near([80e-9, 436e-9])
    assert price.first == near([48e-9, 308e-9])
    # A third rank: its first load waits for the tile until 308, its second until 436, stores from 336 and 464 on.
    assert by_hand("pingpong flat", 3).last == near([80e-9, 436e-9, 692e-9])


def test_a_gather_waits_for_what_it_reads_and_stores_at_once() -> None:
    # Own: 2 x 48. The other's: 2 x (128 on the link + 2 x 100 + 32).
    price = by_hand("single flat", 2, "tgather")
    assert price.last == near([96e-9, 816e-9])
    assert price.first == near([48e-9, 456e-9])
    assert price.bounds["latency"] == near(400e-9)


def test_a_slow_port_takes_the_place_of_the_link() -> None:
    assert by_hand("single flat", 2, link=SLOW | {"root": 1e9 / GIB / 16}).seconds == near((96 + 2 * 372) * 1e-9)


def test_a_tree_hands_over_halves() -> None:
    # Blocks of 2 and 1 slices, in 4 and 2 chunks of 244, and the root's own slice at the end.
    price = by_hand("single tree", 4)
    assert price.seconds == near((4 * 244 + 2 * 244 + 96) * 1e-9)
    assert price.last == near([1560e-9, 1464e-9, 976e-9, 1464e-9])
    assert price.first == near([1512e-9, 1220e-9, 244e-9, 1220e-9])
    assert price.nbytes == 4 * 32


def test_a_tree_collects_the_largest_block_last() -> None:
    price = by_hand("single tree", 4, "tgather")
    assert price.last == near([96e-9, 816e-9, 2256e-9, 2256e-9])
    assert price.first == near([48e-9, 456e-9, 1176e-9, 1176e-9])


def test_small_slices_share_tiles_in_a_tree() -> None:
    # Slices of one row: a block of 4 is one chunk. 8 ranks: blocks of 4, 2, 1 against 7 slices of 4 bytes each.
    flat, tree = (by_hand(f"single {shape}", 8, rows=1) for shape in ("flat", "tree"))
    assert flat.seconds == near((12 + 7 * (4 + 32 + 100)) * 1e-9)
    assert tree.seconds == near((12 + (16 + 128 + 100) + (8 + 64 + 100) + (4 + 32 + 100)) * 1e-9)


def test_the_ccu_pays_gates_once_and_slices_pass_its_port_in_turn() -> None:
    unit = {"gate_us": 1.0, "issue_us": 0.01, "barrier_trips": 2.0}
    # 32 bytes: 256 on the link, 64 at the port. Slices are sent off at 1010, 1020, 1030; the port is free at 1084.
    price = by_hand("ccu flat", 3, link={**SLOW, "ccu": unit})
    assert price.first == near([1010e-9, 1120e-9, 1184e-9])
    assert price.last == near([1074e-9, 1376e-9, 1386e-9])
    assert price.seconds == near((1386 + 200) * 1e-9)
    assert price.root_seconds == near(386e-9)
    gather = by_hand("ccu flat", 3, "tgather", link={**SLOW, "ccu": unit})
    # A barrier before, two latencies on the way, a barrier after.
    assert gather.seconds == near((1386 + 200 + 100 + 200) * 1e-9)


def test_the_port_of_the_ccu_becomes_the_bottleneck() -> None:
    curve = pto.comm.price(ranks=range(2, 17), rows=1024, width=1024, variant="ccu")["ccu flat"]
    # 26 and 182 GiB/s: seven slices pass the port while one passes its link.
    assert curve.turns == [(2, "the link"), (9, "the root's port")]
    assert "the link, from 9 ranks on the root's port" in curve.sentence


def test_one_rank_moves_nothing_to_others() -> None:
    for name in ("single flat", "single tree", "pingpong flat", "pingpong tree", "ccu flat"):
        price = one(name, 1)
        assert price.nbytes == 0
        assert price.last.shape == price.first.shape == (1,)
        assert price.bounds["the root's port"] == 0


# Chunk by chunk


def test_the_schedule_read_by_rows_of_chunks_is_the_generators() -> None:
    for rows, width, tile in product((1, 5, 8, 19), (1, 7, 16, 20), ((4, 8), (8, 16), (19, 20))):
        schedule = chunked((1, 1, 1, rows, width), 1, tile)
        wanted = list(zip(schedule.column("rows").tolist(), schedule.column("cols").tolist(), strict=True))
        read = [
            (run.rows, run.cols)
            for part in parts(rows, width, tile)
            for _ in range(part.times)
            for run in part.runs
            for _ in range(run.count)
        ]
        assert read == wanted
        assert asked(rows=rows, width=width, tile=tile).chunks == schedule.chunks_per_rank


def test_two_tiles_are_used_where_the_schedule_uses_them() -> None:
    for rows, width in product((3, 4, 5), (7, 8, 9)):
        work = asked(rows=rows, width=width, tile=(4, 8))
        schedule = chunked((1, 1, 1, rows, width), 2, (4, 8), pong=True)
        assert (work.tiles("pingpong") == 2) == schedule.uses_pong
        assert work.tiles("single") == 1


STEPS = st.builds(Step, *[st.floats(0, 10)] * 5)


@given(steps=st.lists(STEPS, min_size=1, max_size=12), tiles=st.sampled_from([1, 2]), times=st.integers(1, 9))
def test_matrices_and_the_walk_agree(steps: list[Step], tiles: int, times: int) -> None:
    once = staging.NOTHING
    for step in steps:
        once = staging.then(once, staging.matrix(step, tiles))
    walked = [timed.done for timed in staging.walk(steps * times, tiles)]
    assert staging.after(staging.repeated(once, times), START)[staging.DONE] == pytest.approx(walked[-1])
    ends = staging.states(once, START, times + 1)[1:, staging.DONE]
    assert ends == pytest.approx(walked[len(steps) - 1 :: len(steps)])


def drawn_end(work: Work, way: tuple[str, str], ranks: int) -> float:
    return max(span.end for span in timeline(work, *way, ranks).spans) * 1e-9


@pytest.mark.parametrize("way", WAYS, ids=" ".join)
@pytest.mark.parametrize("op", pricing.COLLECTIVES)
def test_what_is_drawn_ends_when_the_price_says(op: str, way: tuple[str, str]) -> None:
    no_flags = {"sync": {"flag_cycles": 1e-9}}
    for ranks, rows in product((1, 2, 3, 8, 11), (3, 16, 50)):
        shape = {"rows": rows, "width": 100, "parameters": no_flags}
        price = one(" ".join(way), ranks, op, **shape)
        assert drawn_end(asked(op, **shape), way, ranks) == pytest.approx(price.seconds)


@pytest.mark.parametrize("way", AIV, ids=" ".join)
def test_arrivals_are_those_that_are_drawn(way: tuple[str, str]) -> None:
    # No flags: a price counts those that say that a chunk is done, a picture does not.
    shape: dict[str, Any] = {"rows": 20, "width": 100, "parameters": {"sync": {"flag_cycles": 1e-9}}}
    for ranks in (2, 5, 8):
        price = one(" ".join(way), ranks, **shape)
        spans = timeline(asked(**shape), *way, ranks).spans
        for rank in range(1, ranks):
            ends = [span.end * 1e-9 for span in spans if (span.process, span.lane) == (rank, "arrivals")]
            assert min(ends) == pytest.approx(price.first[rank])
            assert max(ends) == pytest.approx(price.last[rank])


@pytest.mark.parametrize("way", WAYS, ids=" ".join)
@pytest.mark.parametrize("op", pricing.COLLECTIVES)
def test_every_put_and_every_read_is_an_arrow_between_ranks(op: str, way: tuple[str, str]) -> None:
    for ranks in (2, 5):
        line = timeline(asked(op, rows=20, width=40), *way, ranks)
        made = events(line)
        starts = [event for event in made if event["ph"] == "s"]
        ends = {event["id"]: event for event in made if event["ph"] == "f"}
        assert len(starts) == len(ends) == len(line.arrows) >= ranks - 1
        assert all(event["pid"] != ends[event["id"]]["pid"] for event in starts)
        assert {process.name for process in line.processes} == {"rank 0, root", *(f"rank {n}" for n in range(1, ranks))}
        assert not [event for event in made if event.get("cat") == "handshake"]


# What holds of any


SHAPES = st.fixed_dictionaries(
    {
        "rows": st.integers(1, 200),
        "width": st.integers(1, 300),
        "tile": st.tuples(st.integers(1, 32), st.integers(1, 128)),
        "dtype": st.sampled_from(["int8", "float16", "float32"]),
        "target": st.sampled_from(["a2a3", "a5"]),
        "op": st.sampled_from(pricing.COLLECTIVES),
    }
)
LINKS = st.fixed_dictionaries(
    {"latency": st.floats(0.01, 100), "bandwidth": st.floats(0.1, 500), "root": st.floats(0.1, 500)}
)
HUGE = 1 + 1e-9


def totals(ranks: int, **given_: Any) -> dict[str, float]:
    """The time of every way that the target has."""
    work = asked(**given_)
    ways = {way: one for way, one in WAYS.items() if ranks <= pricing.limit(work, way[0])[0]}
    return {" ".join(way): one.total(work, way[0], ranks) for way, one in ways.items()}


def assert_none_faster(more: dict[str, float], less: dict[str, float]) -> None:
    assert more.keys() <= less.keys()
    for name, seconds in more.items():
        assert seconds * HUGE >= less[name], name


@settings(max_examples=60, deadline=None)
@given(shape=SHAPES, link=LINKS, ranks=st.integers(1, 300), factor=st.floats(1, 20), extra=st.integers(1, 50))
def test_more_of_anything_is_never_faster(
    shape: dict[str, Any], link: dict[str, float], ranks: int, factor: float, extra: int
) -> None:
    here = totals(ranks, link=link, **shape)
    assert_none_faster(totals(ranks + extra, link=link, **shape), here)
    assert_none_faster(totals(ranks, link=link, **(shape | {"rows": shape["rows"] + extra})), here)
    assert_none_faster(totals(ranks, link=link, **(shape | {"width": shape["width"] + extra})), here)
    assert_none_faster(totals(ranks, link=link | {"latency": link["latency"] * factor}, **shape), here)
    for word in ("bandwidth", "root"):
        assert_none_faster(totals(ranks, link=link | {word: link[word] / factor}, **shape), here)


@settings(max_examples=60, deadline=None)
@given(shape=SHAPES, link=LINKS, ranks=st.integers(1, 300))
def test_two_tiles_are_never_slower_than_one(shape: dict[str, Any], link: dict[str, float], ranks: int) -> None:
    found = totals(ranks, link=link, **shape)
    for topology in ("flat", "tree"):
        assert found[f"pingpong {topology}"] <= found[f"single {topology}"] * HUGE


@settings(max_examples=60, deadline=None)
@given(shape=SHAPES, link=LINKS, ranks=st.integers(1, 300))
def test_nothing_beats_a_bound_and_arrivals_are_in_order(
    shape: dict[str, Any], link: dict[str, float], ranks: int
) -> None:
    for curve in pto.comm.price(ranks=[ranks], topology="both", link=link, **shape).curves:
        for price in curve.prices:
            assert isinstance(price, Price)
            assert max(price.bounds.values()) <= price.seconds * HUGE
            assert price.bounds[price.bottleneck] == max(price.bounds.values())
            assert price.first.shape == price.last.shape == (ranks,)
            assert (price.first <= price.last * HUGE).all()
            assert price.first.min() > 0
            assert price.last.max() <= price.seconds * HUGE
            assert price.root_seconds <= price.seconds


@settings(max_examples=40, deadline=None)
@given(shape=SHAPES, ranks=st.integers(1, 40))
def test_bytes_are_those_of_the_schedule(shape: dict[str, Any], ranks: int) -> None:
    work = asked(**shape)
    schedule = chunked((1, 1, 1, work.rows, work.width), ranks, work.tile)
    size = work.dtype.itemsize
    each = schedule.column("rows") * schedule.column("cols") * size
    assert each.sum() == ranks * work.slice_bytes
    found = pto.comm.price(ranks=[ranks], variant="single", **shape)["single flat"].at(ranks)
    assert found is not None
    assert found.nbytes == each[schedule.column("rank") > 0].sum()


def test_a_tree_moves_every_slice_to_its_rank() -> None:
    for ranks in (1, 2, 3, 7, 8, 33):
        for op in pricing.COLLECTIVES:
            line = timeline(asked(op, rows=1, width=8), "single", "tree", ranks)
            moved = {
                (span.process, span.args["rank"], int(span.args["chunk"].split()[0]))
                for span in line.spans
                if span.lane == "MTE3" and span.process != span.args["rank"]
            }
            assert {other for _, other, _ in moved} == set(range(1, ranks))
            held = dict.fromkeys(range(ranks), 0) | {0: ranks}
            for mover, other, slices in sorted(moved, key=lambda one: -one[2]):
                held[mover] -= slices
                held[other] += slices
            assert held == dict.fromkeys(range(ranks), 1)
            price = one("single tree", ranks, op, rows=1, width=8)
            assert sum(slices for *_, slices in moved) * 32 == price.nbytes


# Where the root is the bottleneck, and where a tree pays


@pytest.mark.parametrize("name", ["single flat", "single tree", "pingpong flat", "pingpong tree", "ccu flat"])
@pytest.mark.parametrize("shape", [{}, {"rows": 1, "width": 8}, {"rows": 1024, "width": 1024}])
def test_the_root_is_the_bottleneck_from_the_number_that_is_said(name: str, shape: dict[str, Any]) -> None:
    variant, _, topology = name.partition(" ")
    curve = pto.comm.price(ranks=range(2, 17), variant=variant, topology=topology, **shape)[name]
    seconds = {price.ranks: price.seconds for price in curve.prices}
    waits = [ranks for ranks, taken in seconds.items() if taken > 2 * seconds[2]]
    assert curve.root_from == min(waits, default=None)
    assert (f"From {curve.root_from} ranks on the root is the bottleneck" in curve.sentence) == bool(waits)
    assert ("No number of ranks" in curve.sentence) == (not waits)


@pytest.mark.parametrize("op", pricing.COLLECTIVES)
def test_a_tree_pays_where_many_small_slices_wait_for_latency(op: str) -> None:
    small = pto.comm.price(op, ranks=DOUBLES, rows=1, width=64, topology="both", variant="single", link={"latency": 10})
    flat, tree = (small[f"single {shape}"].prices for shape in ("flat", "tree"))
    assert all(one.seconds < other.seconds for one, other in zip(tree[2:], flat[2:], strict=True))
    assert tree[-1].seconds < flat[-1].seconds / 8
    start = small.tree_from["single"]
    assert start is not None
    for ranks in range(2, 12):
        seconds = totals(ranks, op=op, rows=1, width=64, link={"latency": 10})
        assert (seconds["single tree"] < seconds["single flat"] * (1 - 1e-9)) == (ranks >= start)
    assert f"single: the tree is faster than the flat root from {start} ranks on." in small.sentences
    # Between numbers that were asked for, it is found all the same.
    sparse = pto.comm.price(
        op, ranks=[2, 999], rows=1, width=64, topology="both", variant="single", link={"latency": 10}
    )
    assert sparse.tree_from == {"single": start}


def test_a_tree_does_not_pay_where_bytes_fill_the_tiles() -> None:
    large = pto.comm.price(ranks=DOUBLES, rows=64, width=64, topology="both", variant="single")
    assert large.tree_from == {"single": None}
    assert any("does not pay here" in sentence for sentence in large.sentences)


def test_the_total_alone_is_that_of_the_whole_price() -> None:
    for op, ranks in product(pricing.COLLECTIVES, (1, 2, 7, 16)):
        for name, seconds in totals(ranks, op=op, rows=70, width=100).items():
            assert one(name, ranks, op, rows=70, width=100).seconds == pytest.approx(seconds)


def test_the_order_names_pairs_that_differ_enough() -> None:
    found = pto.comm.price(ranks=[2, 4], rows=256, width=64, link={"latency": 1})
    seconds = {curve.name: curve.prices[1].seconds for curve in found.curves}
    assert sorted(seconds, key=lambda name: seconds[name]) == ["ccu flat", "pingpong flat", "single flat"]
    every = [("ccu flat", "pingpong flat"), ("ccu flat", "single flat"), ("pingpong flat", "single flat")]
    assert predicted_order(found, 4) == every
    assert predicted_order(found, 4, apart=1e9) == []
    between = seconds["single flat"] / seconds["pingpong flat"]
    assert every[2] not in predicted_order(found, 4, apart=between * 1.01)


# What can and what cannot


def test_the_ccu_says_how_many_ranks_it_takes() -> None:
    curve = pto.comm.price(ranks=[8, 16, 17, 64], variant="ccu")["ccu flat"]
    assert [price.ranks for price in curve.prices] == [8, 16]
    assert curve.at(64) is None
    assert "at most 16 ranks" in curve.sentence
    wider = pto.comm.price(ranks=[64], variant="ccu", link={"ccu": {"most_ranks": 64}})["ccu flat"]
    assert [price.ranks for price in wider.prices] == [64]


def test_a2a3_has_no_ccu() -> None:
    curve = pto.comm.price(ranks=[2], variant="all", target="a2a3")["ccu flat"]
    assert curve.prices == ()
    assert curve.sentence == "a2a3 has no CCU: it is a unit of a5."


def test_a_slice_that_fits_goes_through_ping_alone_and_it_is_said() -> None:
    found = pto.comm.price(ranks=[2, 64], rows=16, width=64, tile=(16, 64))
    for single, pingpong in zip(found["single flat"].prices, found["pingpong flat"].prices, strict=True):
        assert single.seconds == pingpong.seconds
    assert "ping alone" in found["pingpong flat"].sentence
    assert "ping alone" not in pto.comm.price(ranks=[2], rows=17)["pingpong flat"].sentence


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"op": "tscater"}, "op='tscater' is unknown. Did you mean 'tscatter'"),
        ({"ranks": []}, "ranks is empty"),
        ({"ranks": [0]}, "ranks is 0; 1 or more"),
        ({"ranks": "8"}, "a list of numbers"),
        ({"ranks": [1 << 21]}, "at most 1048576"),
        ({"rows": 0}, "rows is 0"),
        ({"width": 2.5}, "width is 2.5; a whole number"),
        ({"rows": 1 << 40}, "too large"),
        ({"tile": (16,)}, "valid rows and columns"),
        ({"tile": "16x64"}, "valid rows and columns"),
        ({"tile": (1024, 1024)}, "take a smaller tile"),
        ({"tile": (200, 200), "variant": "pingpong", "rows": 201}, r"two tiles \(ping-pong\)"),
        ({"tile": (1, 1), "rows": 1, "width": 1 << 21}, "take a wider tile"),
        ({"dtype": "float31"}, "float31"),
        ({"target": "cpu"}, "no pipes"),
        ({"target": "a6"}, "a6"),
        ({"variant": "double"}, "variant='double'"),
        ({"topology": "ring"}, "topology='ring'"),
        ({"variant": "ccu", "topology": "tree"}, "writes every slice from the root"),
        ({"link": {"latenci": 1}}, "Did you mean 'latency'"),
        ({"link": {"latency": -1}}, "above zero"),
        ({"link": {"ccu": {"most_ranks": 1.5}}}, "a whole number is wanted"),
        ({"link": {"link": 3, "latency": 1}}, "a table of its numbers"),
        ({"link": 3}, "a mapping or the path"),
        ({"link": "nowhere.toml"}, "nowhere.toml cannot be read"),
        ({"op": "gather", "table_rows": 0}, "table_rows is 0"),
        ({"op": "gather", "skew": "zpif"}, "zipf:1.2"),
        ({"op": "gather", "skew": "zipf:0"}, "above 0"),
        ({"op": "gather", "skew": 3}, "skew is 3"),
    ],
)
def test_a_mistake_is_one_sentence(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(pto.PtoError, match=said) as mistake:
        pto.comm.price(**wrong)
    assert "\n" not in str(mistake.value)


def test_an_unknown_curve_is_told_with_those_that_there_are() -> None:
    with pytest.raises(pto.PtoError, match="Known: single flat"):
        pto.comm.price(variant="single")["singel flat"]


# The numbers


def test_every_number_of_the_link_says_where_it_comes_from() -> None:
    text = (files("ptokit.comm.prices") / "link.toml").read_text()
    lines = [line for line in text.splitlines() if "=" in line and not line.startswith("#")]
    assert len(lines) == 10
    for line in lines:
        assert any(word in line for word in ("ASSUMPTION", "documentation", "by construction")), line


def test_numbers_are_replaced_by_a_file_for_all_targets_or_for_one(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[link]\nlatency_us = 7\n\n[a5.link]\nbandwidth_gib_s = 50\n")
    assert (links("a5", file).link.latency_us, links("a2a3", file).link.latency_us) == (7.0, 7.0)
    assert (links("a5", file).link.bandwidth_gib_s, links("a2a3", file).link.bandwidth_gib_s) == (50.0, 26.0)
    assert links("a5", {"latency": 7, "a5": {"link": {"bandwidth_gib_s": 50}}}) == links("a5", file)


def test_the_numbers_of_the_target_count_too() -> None:
    slow = {"bandwidth": {"store": {"peak_gib_s": 1}}}
    assert one("single flat", 4, parameters=slow).seconds > 2 * one("single flat", 4).seconds
    assert cost.parameters("a5", slow).bandwidth.store.peak_gib_s == 1


def test_thousands_of_ranks_take_little_memory() -> None:
    tracemalloc.start()
    try:
        found = pto.comm.price(ranks=[16384], rows=4096, width=4096, tile=(16, 64), topology="both")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # 16,384 chunks a rank: 2.7e8 in all.
    assert len(found["single tree"].prices[0].last) == 16384  # type: ignore[union-attr]
    assert peak < 64 << 20


def test_a_price_is_json_and_small() -> None:
    found = pto.comm.price(ranks=DOUBLES, topology="both")
    told = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert told["asked"]["slice_bytes"] == 64 * 64 * 4
    assert [curve["name"] for curve in told["curves"]] == [curve.name for curve in found.curves]
    last = told["curves"][0]["prices"][-1]
    assert last["arrivals"]["whole_slice"]["latest"] == last["seconds"]
    assert len(json.dumps(told)) < 100_000


# Routed tables


def routed(ranks: int, op: str = "gather", **more: Any) -> Routed:
    price = pto.comm.price(op, ranks=[ranks], **more)["routed"].at(ranks)
    assert isinstance(price, Routed)
    return price


def test_uniform_rows_are_owned_by_all_alike() -> None:
    # 100 rows of 16 bytes on 4 ranks: 75 are another's. 8 bytes an index, and 3 counts of 8 bytes.
    gather = routed(4, rows=100, width=16, dtype="int8", table_rows=1 << 30)
    assert gather.out_bytes == pytest.approx([24 + 75 * 8 + 75 * 16] * 4)
    assert gather.in_bytes == pytest.approx(gather.out_bytes)
    scatter = routed(4, "scatter", rows=100, width=16, dtype="int8", table_rows=1 << 30)
    assert scatter.out_bytes == pytest.approx(gather.out_bytes)
    # Hardly a row comes twice.
    assert gather.minimum_bytes == pytest.approx(4 * 75 * 24, rel=1e-4)
    message = {"route": {"message_us": 1.0}, "latency": 10, "bandwidth": 1e6, "root": 1e6}
    priced = routed(4, rows=100, width=16, dtype="int8", link=message)
    assert [priced.phases[name] for name in ("counts", "indices", "rows back")] == pytest.approx([13e-6] * 3, rel=1e-3)
    assert routed(4, "scatter", link=message).phases.keys() == {"counts", "indices and rows", "rows at their owner"}


def test_the_bytes_of_an_exchange_share_a_port_and_fill_a_link() -> None:
    wide = {"latency": 1e-6, "route": {"message_us": 1e-6}}
    shape: dict[str, Any] = {"rows": 1000, "width": 1024, "dtype": "int8"}
    # On 4 ranks 750 rows pass a port, 250 the link to each rank.
    port = routed(4, **shape, link=wide | {"root": 1.0, "bandwidth": 1e6}).phases["rows back"]
    link = routed(4, **shape, link=wide | {"root": 1e6, "bandwidth": 1.0}).phases["rows back"]
    assert port == pytest.approx(750 * 1024 / GIB, rel=1e-3)
    assert link == pytest.approx(250 * 1024 / GIB, rel=1e-3)


def test_the_fullest_rank_and_the_fullest_link_set_the_pace_of_an_exchange() -> None:
    wide = {"latency": 1e-6, "route": {"message_us": 1e-6}}
    shape: dict[str, Any] = {"rows": 1000, "width": 1024, "dtype": "int8", "table_rows": 1000, "skew": "zipf:1"}
    share = Table(1000, "zipf:1").shares(4)[0]
    assert share > 0.8
    # Rank 0 receives what three others want of it, and sends next to nothing.
    port = routed(4, "scatter", **shape, link=wide | {"root": 1.0, "bandwidth": 1e6})
    link = routed(4, "scatter", **shape, link=wide | {"root": 1e6, "bandwidth": 1.0})
    assert port.phases["indices and rows"] == pytest.approx(3 * 1000 * share * 1032 / GIB, rel=1e-3)
    assert link.phases["indices and rows"] == pytest.approx(1000 * share * 1032 / GIB, rel=1e-3)
    assert port.in_bytes.argmax() == port.out_bytes.argmin() == 0


def test_rows_are_applied_a_tile_at_a_time() -> None:
    shape: dict[str, Any] = {"rows": 32, "width": 16, "dtype": "int8", "tile": (16, 16), "parameters": PLAIN}
    # One rank: 32 rows of 16 bytes, loaded in 1 ns and stored in 2 ns a byte, whichever way.
    for op in ("gather", "scatter"):
        alone = routed(1, op, **shape)
        assert alone.seconds == alone.phases["rows at their owner"] == near(32 * 16 * 3e-9)
        assert alone.nbytes == 0


@settings(max_examples=50, deadline=None)
@given(
    ranks=st.integers(1, 500),
    rows=st.integers(1, 10_000),
    table_rows=st.integers(1, 10**9),
    skew=st.sampled_from(["uniform", "zipf", "zipf:0.5", "zipf:1", "zipf:2"]),
    op=st.sampled_from(pricing.TABLES),
)
def test_what_is_sent_is_received_and_no_less_than_must_be(
    ranks: int, rows: int, table_rows: int, skew: str, op: str
) -> None:
    price = routed(ranks, op, rows=rows, width=8, table_rows=table_rows, skew=skew)
    counts = ranks * (ranks - 1) * 8
    assert price.out_bytes.sum() == pytest.approx(price.in_bytes.sum())
    assert price.nbytes == pytest.approx(counts + (ranks - 1) * rows * (8 + 32))
    assert price.minimum_bytes <= (price.nbytes - counts) * (1 + 1e-3) + 1e-6
    assert price.rank_seconds.shape == price.out_bytes.shape == (ranks,)
    assert price.rank_seconds.max() <= price.seconds * HUGE
    assert max(price.bounds.values()) <= price.seconds * HUGE


@settings(max_examples=40, deadline=None)
@given(ranks=st.integers(1, 100), rows=st.integers(1, 3000), width=st.integers(1, 200), factor=st.floats(1, 9))
def test_more_to_route_is_never_faster(ranks: int, rows: int, width: int, factor: float) -> None:
    here = routed(ranks, rows=rows, width=width).seconds
    assert routed(ranks, rows=int(rows * factor), width=width).seconds * HUGE >= here
    assert routed(ranks, rows=rows, width=int(width * factor)).seconds * HUGE >= here
    assert routed(ranks, rows=rows, width=width, link={"latency": 2 * factor}).seconds * HUGE >= here
    assert routed(ranks, rows=rows, width=width, link={"root": 182 / factor}).seconds * HUGE >= here


def test_a_skew_makes_the_owner_of_the_wanted_rows_the_slowest() -> None:
    even, skewed = (routed(16, rows=4096, width=64, skew=skew) for skew in ("uniform", "zipf:1.2"))
    assert skewed.slowest == 0
    assert skewed.seconds > 3 * even.seconds
    assert even.nbytes == pytest.approx(skewed.nbytes)
    assert skewed.minimum_bytes < even.minimum_bytes / 2
    assert even.rank_seconds == pytest.approx(np.full(16, even.rank_seconds[0]))


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.3])
def test_shares_and_distinct_rows_are_those_of_the_sums(exponent: float) -> None:
    rows, ranks, wanted = 200_000, 7, 5000
    skew = f"zipf:{exponent}" if exponent else "uniform"
    weights = np.arange(1, rows + 1, dtype=np.float64) ** -exponent
    weights /= weights.sum()
    borders = np.arange(ranks + 1) * rows // ranks
    shares = np.add.reduceat(weights, borders[:-1])
    assert Table(rows, skew).shares(ranks) == pytest.approx(shares, rel=1e-6)
    distinct = (1 - (1 - weights) ** wanted).sum()
    assert Table(rows, skew).distinct(wanted) == pytest.approx(distinct, rel=1e-3)


def test_results_cannot_be_changed() -> None:
    found = pto.comm.price(ranks=[2])
    assert isinstance(found, Prices)
    assert isinstance(found.curves[0], Curve)
    for frozen, name in ((found, "asked"), (found.curves[0], "root_from"), (found.curves[0].prices[0], "seconds")):
        with pytest.raises(AttributeError):
            setattr(frozen, name, None)


def test_a_gather_by_the_ccu_waits_for_two_barriers() -> None:
    scatter, gather = (ByCcu.of(asked(op), 4) for op in pricing.COLLECTIVES)
    assert gather.gates == pytest.approx(scatter.gates + scatter.barrier)
