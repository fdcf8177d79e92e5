"""Index findings: what they say about each lane; cpu's index words; the comparison of targets; the older spellings."""

from __future__ import annotations

import json

import numpy as np
import pytest

import ptokit as pto
from calls import elem_source, ids, only, row_index, row_source, table
from ptokit import older


def test_an_out_of_bounds_lane_tells_what_each_policy_would_make_of_it() -> None:
    tab, _ = table((7,), "int32", extra=9)
    rep = pto.mscatter(tab, elem_source(1, 2, 3), row_index(0, 9, -1, cols=32), coalesce="elem", target="a2a3")
    facts = only(rep.findings, "PTO-I001").facts
    assert facts["count"] == 1
    first = {k: facts[k] for k in ("lane", "index", "taken", "capacity", "distance")}
    assert first == {"lane": [0, 1], "index": 9, "taken": 9, "capacity": 7, "distance": 3}
    assert {k: facts[k] for k in ("undefined", "skip", "clamp", "wrap", "zero")} == {
        "undefined": 9,
        "skip": "dropped",
        "clamp": 6,
        "wrap": 2,
        "zero": "zero",
    }
    outside = only(rep.findings, "PTO-I002").facts
    assert (outside["lane"], outside["index"], outside["taken"]) == ([0, 2], -1, 2**32 - 1)
    assert "outside" in outside["undefined"]
    assert json.dumps(facts)


def test_one_finding_per_kind_with_a_count_and_the_first_few_lanes() -> None:
    tab, _ = table((4,), "int32")
    rep = pto.mscatter(
        tab, elem_source(*range(20)), row_index(*range(20), cols=32), coalesce="elem", oob="skip", target="a2a3"
    )
    assert len(rep.findings) == 1
    facts = rep.findings[0].facts
    assert (facts["count"], len(facts["examples"])) == (16, 4)
    assert [e["index"] for e in facts["examples"]] == [4, 5, 6, 7]


@pytest.mark.parametrize(("oob", "slot"), [("clamp", 6), ("wrap", 3)])
def test_a_negative_index_is_not_from_the_end(oob: str, slot: int) -> None:
    tab, buffer = table((7,), "int32")
    rep = pto.mscatter(tab, elem_source(5, 9), row_index(-1, 0, cols=32), coalesce="elem", oob=oob, target="a5")
    assert buffer[slot] == 5
    told = only(rep.findings, "PTO-I004")
    assert (told.severity, told.facts["python"], told.facts[oob]) == ("warning", 6, slot)
    far = pto.mscatter(tab, elem_source(5, 9), row_index(-8, 0, cols=32), coalesce="elem", oob=oob, target="a5")
    assert only(far.findings, "PTO-I004").facts["python"] is None


def test_a_row_kernel_on_cpu_reads_padding_and_past_its_index_tile() -> None:
    tab, _ = table((4, 8))
    rep = pto.mscatter(tab, row_source(2), row_index(1, 2), target="cpu")
    padding, outside = only(rep.findings, "PTO-I012"), only(rep.findings, "PTO-I013")
    assert (padding.severity, padding.facts["lane"], padding.facts["count"]) == ("error", [0, 2], 6)
    assert (outside.severity, outside.facts["lane"], outside.facts["count"]) == ("error", [1, 0], 8)
    assert {"PTO-L010", "PTO-L013"} <= ids(rep.findings, "warning")


def test_a_tile_that_has_no_place_for_its_elements_is_an_error_on_cpu() -> None:
    src, idx = pto.Tile("float32", 2, 12, layout="nz"), pto.Tile("int32", 2, 16, valid=(2, 12))
    src.data[:] = 1
    tab, buffer = table((4, 8))
    idx.store(np.arange(24).reshape(2, 12))
    rep = pto.mscatter(tab, src, idx, coalesce="elem", target="cpu")
    told = only(rep.findings, "PTO-I014")
    assert (told.facts["lane"], told.facts["offset"], told.facts["count"]) == ([1, 8], 24, 4)
    assert np.count_nonzero(buffer) == 20
    dst = pto.Tile("float32", 2, 12, layout="nz")
    assert "PTO-I014" in ids(pto.mgather(dst, tab, idx, coalesce="elem", target="cpu").findings)


def test_policies_asked_for_on_cpu_are_a_note() -> None:
    tab, _ = table((8,), "int32")
    src, idx = elem_source(1), row_index(1)
    plain = pto.mscatter(tab, src, idx, coalesce="elem", target="cpu")
    assert "PTO-N001" not in ids(plain.findings)
    asked = {"oob": "clamp", "atomic": "add", "conflict": "last"}
    rep = pto.mscatter(tab, src, idx, coalesce="elem", target="cpu", **asked)
    assert only(rep.findings, "PTO-N001").facts["ignored"] == ["oob=clamp", "atomic=add", "conflict=last"]
    assert "PTO-N001" in ids(pto.mgather(pto.Tile("int32", 1, 8, (1, 1)), tab, idx, oob="zero", target="cpu").findings)


# Comparison of targets


def test_targets_that_agree() -> None:
    tab, buffer = table((4, 8))
    both = pto.compare("mscatter", tab, row_source(2), row_index(1, 3), targets=("a2a3", "a5"))
    assert both.equal
    assert both.first_difference is None
    assert both.findings == []
    assert both.targets == ["a2a3", "a5"]
    assert np.asarray(both.results["a5"])[8] == 100
    assert not buffer.any()


@pytest.mark.parametrize(
    ("rule", "element", "make"),
    [
        ("no Row path", (), lambda: ((table((4, 8))[0], row_source(2), row_index(1, 3)), {}, ("a5", "cpu"))),
        (
            "capacity",
            (5, 0),
            lambda: ((table((2, 1, 1, 4, 8))[0], row_source(1), row_index(5)), {"oob": "skip"}, ("a2a3", "a5")),
        ),
        (
            "remap",
            (3, 0),
            lambda: ((table((7, 8))[0], row_source(1), row_index(-1)), {"oob": "wrap"}, ("a2a3", "a5")),
        ),
        (
            "bounds",
            (4, 0),
            lambda: ((sub_view(), row_source(1), row_index(4)), {}, ("a2a3", "a5")),
        ),
        (
            "policies",
            (0, 3),
            lambda: (
                (table((1, 8), "int32")[0], elem_source(4, 5), row_index(3, 3, cols=32)),
                {"coalesce": "elem", "atomic": "add"},
                ("cpu", "a5"),
            ),
        ),
        ("PTO-L024", (), lambda: ((table((4, 8))[0], row_source(1), row_index(1)), {"atomic": "max"}, ("a5", "a2a3"))),
    ],
)
def test_the_rule_behind_the_first_difference(rule: str, element: tuple[int, ...], make: object) -> None:
    assert callable(make)
    operands, policies, targets = make()
    buffer = operands[0].memory
    shaped = pto.GlobalTensor(
        buffer.reshape(-1, 8) if buffer.size % 8 == 0 else buffer,
        operands[0].dtype,
        operands[0].shape,
        operands[0].stride,
        base=operands[0].base,
    )
    compared = pto.compare("mscatter", shaped, *operands[1:], **policies, targets=targets)
    difference = compared.first_difference
    if rule == "remap":
        assert compared.equal
        return
    assert not compared.equal
    assert difference is not None
    assert difference.rule == rule
    assert difference.element[: len(element)] == element
    assert only(compared.findings, "PTO-I020").facts["rule"] == rule
    assert str(difference) == difference.sentence


def sub_view() -> pto.GlobalTensor:
    return table((8, 8))[0][0:4, :]


def test_walk_order_explains_nz_elem() -> None:
    # The same words and lanes on two targets; only the order of the walk differs (cpu does not refuse NZ).
    src = pto.Tile("float32", 16, 16, valid=(2, 9), layout="nz")
    src.store(np.arange(18).reshape(2, 9))
    idx = pto.Tile("int32", 16, 16, valid=(2, 9))
    words = np.arange(18).reshape(2, 9)
    words[0, 8] = words[1, 0] = 3
    idx.store(words)
    tab = pto.GlobalTensor(np.zeros((16, 8), np.float32), "float32", (1, 1, 1, 16, 8), layout="nz")
    compared = pto.compare("mscatter", tab, src, idx, coalesce="elem", targets=("cpu", "a2a3"))
    assert compared.first_difference is not None
    assert compared.first_difference.rule == "walk order"
    assert compared.first_difference.values == {"cpu": 9.0, "a2a3": 8.0}


def test_address_explains_nz_against_linear() -> None:
    src = pto.Tile("float32", 16, 8, valid=(1, 2), layout="nz")
    src.store([[1, 2]])
    idx = pto.Tile("int32", 16, 8, valid=(1, 2))
    idx.store([[8, 9]])
    tab = pto.GlobalTensor(np.zeros(256, np.float32), "float32", (1, 2, 1, 16, 8), layout="nz")
    compared = pto.compare("mscatter", tab, src, idx, coalesce="elem", targets=("cpu", "a2a3"))
    assert compared.first_difference is not None
    assert (compared.first_difference.rule, compared.first_difference.element) == ("address", (8,))


def test_a_gather_that_moves_nothing_on_one_target_and_zeroes_on_the_other_is_explained() -> None:
    # Row 5: on a2a3 a row behind the buffer, on a5 no row at all.
    tab = pto.GlobalTensor(np.zeros(32, np.float32), "float32", (2, 1, 1, 4, 8), (0, 0, 0, 8, 1))
    dst = pto.Tile("float32", 1, 8)
    dst.store(np.full((1, 8), 7.0))
    difference = pto.compare("mgather", dst, tab, row_index(5), oob="zero", targets=("a2a3", "a5")).first_difference
    assert difference is not None
    assert (difference.rule, difference.values) == ("capacity", {"a2a3": 7.0, "a5": 0.0})


def test_a_difference_that_chance_makes_is_no_walk_order() -> None:
    tab, _ = table((8,))
    src = elem_source(1e8, 1, -1e8, dtype="float32")
    rules = set()
    for seed in range(20):
        compared = pto.compare(
            "mscatter",
            tab,
            src,
            row_index(3, 3, 3, cols=32),
            coalesce="elem",
            atomic="add",
            schedule="random",
            seed=seed,
            targets=("a2a3", "a5"),
        )
        rules.add(compared.first_difference and compared.first_difference.rule)
    assert rules == {None, "schedule"}


def test_a_gather_is_compared_too() -> None:
    tab = pto.GlobalTensor(np.arange(7, dtype=np.int32), "int32", (1, 1, 1, 1, 7))
    dst = pto.Tile("int32", 1, 8, valid=(1, 2))
    compared = pto.compare("mgather", dst, tab, row_index(3, -1), coalesce="elem", oob="wrap", targets=("cpu", "a5"))
    assert compared.first_difference is not None
    assert (compared.first_difference.rule, compared.first_difference.element) == ("capacity", (0, 1)) or (
        compared.first_difference.rule in ("remap", "bounds")
    )
    assert not dst.data.any()


def test_index_words_explain_a_difference() -> None:
    src, idx = pto.Tile("int32", 8, 8, valid=(2, 2)), pto.Tile("int32", 8, 8, valid=(2, 2), layout="dn")
    src.store([[1, 2], [3, 4]])
    idx.store([[0, 1], [2, 3]])
    tab, _ = table((8,), "int32")
    compared = pto.compare("mscatter", tab, src, idx, coalesce="elem", targets=("cpu", "a5"))
    assert compared.first_difference is not None
    assert compared.first_difference.rule == "index word"


def test_targets_that_all_refuse_have_nothing_to_be_equal() -> None:
    tab, _ = table((4, 8))
    compared = pto.compare("mscatter", tab, row_source(1, dtype="int32"), row_index(1))
    assert not compared.equal
    assert compared.first_difference is None
    assert {f.target for f in compared.findings} == {"cpu", "a2a3", "a5"}


# The older spellings (2.4)


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_the_first_edition_is_row_none_undefined_last(target: str) -> None:
    tab, buffer = table((4, 8))
    rep = older.mscatter_first_edition(tab, row_source(2), row_index(1, 1), target=target)
    assert buffer.reshape(4, 8)[:, 0].tolist() == [0, 101, 0, 0]
    assert rep.deterministic
    dst = pto.Tile("float32", 2, 8)
    older.mgather_first_edition(dst, tab, row_index(1, 0), target=target)
    assert dst.load()[:, 0].tolist() == [101, 0]


def test_the_first_edition_is_elem_on_cpu() -> None:
    tab, buffer = table((8,), "int32")
    rep = older.mscatter_first_edition(tab, elem_source(4, 5), row_index(2, 6, cols=32), target="cpu")
    assert np.flatnonzero(buffer).tolist() == [2, 6]
    assert rep.is_clean


def custom(src: pto.Tile, idx: pto.Tile, shape: tuple[int, ...] = (4, 8), **policies: str) -> older.Converted:
    return older.convert_custom_a5(table(shape, src.dtype.name)[0], src, idx, **policies)


def test_the_custom_form_takes_its_mode_from_the_index_tile() -> None:
    assert custom(pto.Tile("float32", 8, 8), pto.Tile("int32", 8, 1)).coalesce == "row"
    assert custom(pto.Tile("float32", 8, 8), pto.Tile("int32", 8, 8)).coalesce == "elem"
    # One column: Row comes first.
    assert custom(pto.Tile("float32", 8, 1), pto.Tile("int32", 8, 1), (4, 1)).coalesce == "row"


@pytest.mark.parametrize(
    ("rules", "src", "idx", "shape", "policies"),
    [
        ({"PTO-L026"}, pto.Tile("float32", 8, 8), pto.Tile("int32", 8, 16), (4, 8), {}),
        # 16 index words for 8 rows are wrong today as well: all of it is told at once.
        ({"PTO-L010", "PTO-L013"}, pto.Tile("float32", 8, 8), pto.Tile("int32", 16, 1), (4, 8), {}),
        ({"PTO-L012"}, pto.Tile("float32", 8, 8), pto.Tile("int32", 8, 1), (2, 1, 1, 4, 8), {}),
        ({"PTO-L024"}, pto.Tile("bfloat16", 8, 16), pto.Tile("int32", 8, 1), (4, 16), {"atomic": "add"}),
        ({"PTO-L024"}, pto.Tile("uint32", 8, 8), pto.Tile("int32", 8, 1), (4, 8), {"atomic": "max"}),
        ({"PTO-L006"}, pto.Tile("float32", 8, 8), pto.Tile("int32", 8, 1, (-1, 1)), (4, 8), {}),
    ],
)
def test_what_the_custom_form_forbids(
    rules: set[str], src: pto.Tile, idx: pto.Tile, shape: tuple[int, ...], policies: dict[str, str]
) -> None:
    with pytest.raises(pto.IllegalInstruction) as refused:
        custom(src, idx, shape, **policies)
    assert ids(refused.value.findings) == rules


def test_the_custom_form_does_not_know_hifloat8() -> None:
    pytest.importorskip("en_dtypes", reason="the extra [hif8] exists for Python 3.11 and 3.12 only")
    with pytest.raises(pto.IllegalInstruction) as refused:
        custom(pto.Tile("hifloat8", 8, 32), pto.Tile("int32", 8, 1), (4, 32))
    assert ids(refused.value.findings) == {"PTO-L001"}


def test_duplicates_of_the_custom_form_are_left_to_the_scheduler() -> None:
    tab, buffer = table((4, 8))
    src, idx = row_source(8), pto.Tile("int32", 8, 1)
    src = pto.Tile("float32", 8, 8)
    src.store(np.repeat(np.arange(8)[:, None], 8, axis=1))
    idx.store(np.array([[1], [1], [2], [3], [0], [9], [9], [9]]))
    rep = older.mscatter_custom_a5(tab, src, idx, oob="skip")
    assert not rep.deterministic
    assert rep.outcomes.values(1) == [0, 1]
    assert buffer.reshape(4, 8)[:, 0].tolist() == [4, 1, 2, 3]


def test_rules_about_known_extents_are_judged_where_another_extent_has_no_value() -> None:
    table_nz = pto.GlobalTensor(np.zeros(256, np.float32), "float32", (1, 2, 1, 8, 8), layout="nz")
    nz = pto.Tile("float32", 16, 16, (-1, -1), "nz")
    assert ids(pto.check("mscatter", table_nz, nz, pto.Tile("int32", 1, 16), targets="a2a3")) == {
        "PTO-L006",
        "PTO-L019",
    }
    empty = pto.GlobalTensor(np.zeros(0, np.float32), "float32", (1, 1, 1, 0, 64))
    rows = pto.Tile("float32", 16, 64, (-1, 60))
    assert ids(pto.check("mscatter", empty, rows, pto.Tile("int32", 1, 16), targets="a5")) == {
        "PTO-L006",
        "PTO-L007",
        "PTO-L017",
    }


def test_the_winner_under_last_is_one_that_the_scan_visits() -> None:
    src, idx = elem_source(5, 6, 7), row_index(9, 9, 3, cols=32)
    # Two lanes meet behind the table, in memory that the caller owns.
    room = pto.GlobalTensor(np.zeros(16, np.int32), "int32", (1, 1, 1, 1, 7))
    told = only(pto.check("mscatter", room, src, idx, coalesce="elem", conflict="default", targets="a5"), "PTO-C004")
    assert told.facts["winner_last"] is None
    assert "none, it visits real slots only" in told.message
    assert told.fix.startswith("Keep these indices in bounds first")
    pto.mscatter(room, src, idx, coalesce="elem", conflict="last", target="a5")
    assert room.memory.tolist() == [0, 0, 0, 7] + [0] * 12


def test_two_slots_at_one_32_bit_address_have_no_order_under_last() -> None:
    memory = np.zeros(2**32 + 2**20, np.int8)
    tab = pto.GlobalTensor(memory, "int8", (1, 1, 1, len(memory) // 64, 64))
    src = pto.Tile("int8", 2, 64)
    src.store(np.repeat([[1], [2]], 64, axis=1))
    rep = pto.mscatter(tab, src, row_index(2**26, 0), target="a5")
    assert not rep.deterministic
    assert "32-bit row address" in rep.deterministic_reason


def test_a_comparison_knows_runs_that_are_owned_in_part() -> None:
    src = row_source(1, 8)
    tab, _ = table((4, 8), extra=4)
    both = pto.compare("mscatter", tab, src, row_index(4), targets=("a2a3", "a5"))
    assert both.first_difference is not None
    assert (both.first_difference.element, both.first_difference.rule) == ((32,), "bounds")


def test_the_payload_of_a_nan_that_an_addition_makes_is_no_difference() -> None:
    tab, buffer = table((2,), "bfloat16")
    buffer.view(np.uint16)[:] = [0x7F81, 0x3F80]
    both = pto.compare(
        "mscatter",
        tab,
        elem_source(1, 1, dtype="bfloat16"),
        row_index(0, 1, cols=32),
        coalesce="elem",
        atomic="add",
        targets=("a2a3", "a5"),
    )
    assert both.equal


@pytest.mark.parametrize("layout", ["dn", "nz"])
def test_cpu_reads_padding_of_an_index_tile_that_is_not_row_major(layout: str) -> None:
    src, idx = pto.Tile("int32", 16, 16, (8, 3)), pto.Tile("int32", 16, 16, (8, 3), layout)
    src.store(np.arange(24).reshape(8, 3))
    idx.store(np.arange(24).reshape(8, 3))
    tab, _ = table((8, 8), "int32")
    rep = pto.mscatter(tab, src, idx, coalesce="elem", target="cpu")
    assert "PTO-I012" in ids(rep.findings)
    assert not rep.deterministic
