"""SEMANTICS 2.5 (and the tables of 2.3): one legal call and its smallest illegal neighbour for every rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ptokit as pto
from calls import ids, row_index, row_source, table
from ptokit.dtypes import ELEMENT_TYPES

ERROR, WARNING = "error", "warning"
ALL = ("cpu", "a2a3", "a5")


def tile(dtype: str = "float32", rows: int = 8, cols: int = 8, **more: Any) -> pto.Tile:
    return pto.Tile(dtype, rows, cols, **more)


def operands(**change: Any) -> dict[str, Any]:
    """A call that all three targets accept without a finding: Elem, 8 x 8, all indices different."""
    idx = tile("int32")
    idx.store(np.arange(64).reshape(8, 8))
    call: dict[str, Any] = {"table": table((16, 8))[0], "src": tile(), "idx": idx, "coalesce": "elem"}
    return {**call, **change}


def row_operands(**change: Any) -> dict[str, Any]:
    """A Row call that a2a3 and a5 accept."""
    call: dict[str, Any] = {"table": table((16, 8))[0], "src": tile(), "idx": row_index(*range(8)), "coalesce": "row"}
    return {**call, **change}


def nz_operands(**change: Any) -> dict[str, Any]:
    """A Row call on an NZ table that a2a3 accepts."""
    src = tile(rows=16, cols=16, valid=(8, 16), layout="nz")
    call: dict[str, Any] = {
        "table": table((1, 2, 2, 16, 8), layout="nz")[0],
        "src": src,
        "idx": row_index(*range(8)),
        "coalesce": "row",
    }
    return {**call, **change}


def findings(call: dict[str, Any], target: str) -> list[pto.Finding]:
    rest = {k: v for k, v in call.items() if k not in ("table", "src", "idx")}
    return pto.check("mscatter", call["table"], call["src"], call["idx"], **rest, targets=target)


@pytest.mark.parametrize("target", ALL)
def test_the_plain_call_is_legal_everywhere(target: str) -> None:
    assert findings(operands(), target) == []


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_the_plain_row_call_is_legal_on_the_boards(target: str) -> None:
    assert findings(row_operands(), target) == []


def test_the_plain_nz_call_is_legal_on_a2a3() -> None:
    assert findings(nz_operands(), "a2a3") == []


def dynamic() -> pto.Tile:
    return tile(valid=(-1, -1))


def zero_rows() -> pto.Tile:
    empty = tile(valid=(-1, 8))
    empty.set_valid(0, 8)
    return empty


# (rule, what is changed, the severity on each target, None where it is legal there)
Neighbour = tuple[str, Callable[[], dict[str, Any]], dict[str, str | None]]

EVERYWHERE = {"cpu": ERROR, "a2a3": ERROR, "a5": ERROR}
CONTRACT = {"cpu": WARNING, "a2a3": ERROR, "a5": ERROR}

NEIGHBOURS: list[Neighbour] = [
    (
        "PTO-L001",
        lambda: operands(table=table((16, 32), "float8_e4m3")[0], src=tile("float8_e4m3", 8, 32, valid=(8, 8))),
        {"cpu": None, "a2a3": ERROR, "a5": None},
    ),
    ("PTO-L002", lambda: operands(idx=tile("int16", 8, 16, valid=(8, 8))), EVERYWHERE),
    ("PTO-L002", lambda: operands(idx=tile("float32")), EVERYWHERE),
    ("PTO-L003", lambda: operands(src=tile(loc="mat")), CONTRACT),
    ("PTO-L003", lambda: operands(idx=tile("int32", loc="acc")), CONTRACT),
    ("PTO-L004", lambda: operands(src=tile("int32")), EVERYWHERE),
    ("PTO-L005", lambda: operands(src=zero_rows()), EVERYWHERE),
    ("PTO-L005", lambda: operands(src=tile(valid=(8, 0))), EVERYWHERE),
    ("PTO-L006", lambda: operands(src=dynamic()), EVERYWHERE),
    ("PTO-L006", lambda: operands(idx=tile("int32", valid=(8, -1))), EVERYWHERE),
    (
        "PTO-L006",
        lambda: operands(table=pto.GlobalTensor(np.zeros(128, np.float32), "float32", (1, 1, 1, -1, 8))),
        EVERYWHERE,
    ),
    ("PTO-L007", lambda: operands(table=table((0, 8))[0]), EVERYWHERE),
    ("PTO-L008", lambda: operands(src=tile(layout="dn")), {"cpu": WARNING, "a2a3": ERROR, "a5": None}),
    ("PTO-L008", lambda: operands(src=tile(rows=16, valid=(8, 8), layout="nz")), CONTRACT),
    ("PTO-L009", lambda: operands(idx=tile("int32", layout="dn")), {"cpu": WARNING, "a2a3": ERROR, "a5": None}),
    ("PTO-L009", lambda: operands(idx=tile("int32", 16, 8, valid=(8, 8), layout="nz")), CONTRACT),
    ("PTO-L010", lambda: operands(src=tile(rows=9, valid=(8, 8))), {"cpu": WARNING, "a2a3": None, "a5": None}),
    ("PTO-L011", lambda: operands(table=table((16, 8), layout="dn")[0]), CONTRACT),
    ("PTO-L011", lambda: operands(table=table((1, 1, 1, 16, 8), layout="nz")[0]), {"cpu": WARNING, "a5": ERROR}),
    ("PTO-L012", lambda: operands(table=table((2, 1, 1, 8, 8))[0]), {"cpu": WARNING, "a2a3": None, "a5": None}),
    ("PTO-L013", row_operands, {"cpu": WARNING, "a2a3": None, "a5": None}),
    ("PTO-L013", lambda: row_operands(idx=tile("int32", valid=(8, 1))), {"cpu": None, "a2a3": ERROR, "a5": ERROR}),
    ("PTO-L013", lambda: row_operands(idx=tile("int32", layout="dn", valid=(1, 8))), {"cpu": WARNING, "a5": ERROR}),
    ("PTO-L013", lambda: row_operands(idx=tile("int32", 8, 1, layout="dn")), {"a2a3": ERROR, "a5": None}),
    ("PTO-L013", lambda: row_operands(idx=row_index(*range(7))), {"a2a3": ERROR, "a5": ERROR}),
    ("PTO-L014", lambda: operands(idx=tile("int32", valid=(8, 7))), CONTRACT),
    ("PTO-L014", lambda: operands(idx=row_index(*range(8))), CONTRACT),
    ("PTO-L015", lambda: operands(src=tile(cols=9, valid=(8, 8))), CONTRACT),
    (
        "PTO-L015",
        lambda: operands(src=tile(rows=9, cols=8, valid=(8, 8), layout="dn")),
        {"cpu": None, "a2a3": None, "a5": ERROR},
    ),
    (
        "PTO-L015",
        lambda: operands(src=tile(rows=8, cols=9, valid=(8, 8), layout="dn")),
        {"cpu": WARNING, "a2a3": ERROR, "a5": None},
    ),
    ("PTO-L016", lambda: operands(idx=tile("int32", cols=9, valid=(8, 8))), CONTRACT),
    ("PTO-L016", lambda: row_operands(idx=tile("int32", 9, 1, valid=(8, 1), layout="dn")), {"a5": ERROR}),
    ("PTO-L017", lambda: row_operands(table=table((16, 16))[0]), {"a2a3": None, "a5": ERROR}),
    (
        "PTO-L018",
        lambda: row_operands(table=table((16, 8), stride=(256, 256, 256, 16, 1))[0]),
        {"a2a3": None, "a5": ERROR},
    ),
    (
        "PTO-L018",
        lambda: row_operands(table=table((16, 8), stride=(256, 256, 256, 16, 2))[0]),
        {"a5": ERROR},
    ),
    ("PTO-L019", lambda: nz_operands(table=table((1, 2, 2, 8, 8), layout="nz")[0]), {"a2a3": ERROR}),
    ("PTO-L019", lambda: nz_operands(table=table((1, 2, 2, 16, 16), layout="nz")[0]), {"a2a3": ERROR}),
    ("PTO-L020", lambda: nz_operands(src=tile(rows=8, cols=16, layout="nz")), {"a2a3": ERROR}),
    ("PTO-L020", lambda: nz_operands(src=tile(rows=16, cols=20, valid=(8, 16), layout="nz")), {"a2a3": ERROR}),
    ("PTO-L021", lambda: nz_operands(table=table((1, 3, 2, 16, 8), layout="nz")[0]), {"a2a3": ERROR}),
    (
        "PTO-L022",
        lambda: nz_operands(
            table=table((1, 4096, 1, 16, 8), layout="nz")[0], src=tile(rows=16, cols=32768, valid=(8, 16), layout="nz")
        ),
        {"a2a3": ERROR},
    ),
    (
        "PTO-L023",
        lambda: operands(table=table((16, 32), "float8_e5m2")[0], src=tile("float8_e5m2", 8, 32, valid=(8, 8))),
        {"cpu": WARNING, "a5": None},
    ),
    ("PTO-L024", lambda: operands(atomic="max"), {"cpu": None, "a2a3": ERROR, "a5": None}),
    ("PTO-L025", lambda: operands(conflict="default"), {"cpu": ERROR, "a2a3": ERROR, "a5": None}),
    (
        "PTO-L008",
        lambda: nz_operands(src=tile(rows=16, cols=16, valid=(8, 16), layout="nz", fractal=1024)),
        {"a2a3": ERROR},
    ),
]


@pytest.mark.parametrize(
    ("rule", "neighbour", "severities"), NEIGHBOURS, ids=[f"{n[0]}-{i}" for i, n in enumerate(NEIGHBOURS)]
)
def test_the_smallest_illegal_neighbour(
    rule: str, neighbour: Callable[[], dict[str, Any]], severities: dict[str, str | None]
) -> None:
    for target, severity in severities.items():
        told = [f for f in findings(neighbour(), target) if f.id == rule]
        assert [str(f.severity) for f in told] == ([severity] if severity else []), target
        for finding in told:
            assert finding.target == target
            assert finding.message.endswith(".")
            assert finding.fix


@pytest.mark.parametrize(
    ("rule", "neighbour", "severities"), NEIGHBOURS, ids=[f"{n[0]}-{i}" for i, n in enumerate(NEIGHBOURS)]
)
def test_an_error_refuses_the_call_and_writes_nothing(
    rule: str, neighbour: Callable[[], dict[str, Any]], severities: dict[str, str | None]
) -> None:
    for target, severity in severities.items():
        call = neighbour()
        call["src"].data[:] = 1
        keywords = {k: v for k, v in call.items() if k not in ("table", "src", "idx")}
        before = call["table"].memory.tobytes()
        if severity != ERROR:
            if not ids(findings(call, target), ERROR):
                pto.mscatter(call["table"], call["src"], call["idx"], **keywords, target=target)
            continue
        with pytest.raises(pto.IllegalInstruction) as refused:
            pto.mscatter(call["table"], call["src"], call["idx"], **keywords, target=target)
        assert rule in ids(refused.value.findings, ERROR)
        assert rule in str(refused.value)
        assert call["table"].memory.tobytes() == before


ATOMIC_TABLE = {
    ("cpu", "add"): "int32 uint32 float16 float32",
    ("cpu", "max"): "int32 float32",
    ("cpu", "min"): "int32 float32",
    ("a2a3", "add"): "int8 int16 int32 float16 bfloat16 float32",
    ("a2a3", "max"): "",
    ("a2a3", "min"): "",
    ("a5", "add"): "int32 uint32 float16 bfloat16 float32",
    ("a5", "max"): "int32 uint32 float32",
    ("a5", "min"): "int32 uint32 float32",
}


@pytest.mark.parametrize("dtype", [t for t in ELEMENT_TYPES if t != "hifloat8"])
@pytest.mark.parametrize(("target", "atomic"), ATOMIC_TABLE)
def test_the_table_of_atomics(target: str, atomic: str, dtype: str) -> None:
    tab, src = table((16, 32), dtype)[0], tile(dtype, 8, 32, valid=(8, 8))
    refused = "PTO-L024" in ids(findings(operands(table=tab, src=src, atomic=atomic), target))
    assert refused is (dtype not in ATOMIC_TABLE[target, atomic].split())


ELEMENT_TABLE = {
    "cpu": set(ELEMENT_TYPES) - {"hifloat8"},
    "a2a3": set(ELEMENT_TYPES) - {"hifloat8", "float8_e4m3", "float8_e5m2"},
    "a5": set(ELEMENT_TYPES),
}


@pytest.mark.parametrize("dtype", list(ELEMENT_TYPES))
@pytest.mark.parametrize("target", ALL)
def test_the_element_types(target: str, dtype: str) -> None:
    if dtype == "hifloat8":
        pytest.importorskip("en_dtypes", reason="the extra [hif8] exists for Python 3.11 and 3.12 only")
    tab, src = table((16, 32), dtype)[0], tile(dtype, 8, 32, valid=(8, 8))
    refused = "PTO-L001" in ids(findings(operands(table=tab, src=src), target))
    assert refused is (dtype not in ELEMENT_TABLE[target])


def test_a_row_of_one_index_may_lie_either_way_on_a5() -> None:
    one_row = {"src": tile(valid=(1, 8))}
    for layout in ("nd", "dn"):
        assert findings(row_operands(**one_row, idx=tile("int32", 8, 8, valid=(1, 1), layout=layout)), "a5") == []


def test_narrow_tiles_are_legal_for_nz_elem() -> None:
    src, idx = tile(rows=16, cols=8, valid=(2, 8), layout="nz"), tile("int32", 2, 8)
    assert findings(nz_operands(src=src, idx=idx, coalesce="elem"), "a2a3") == []


def test_conflict_default_goes_with_an_atomic_on_a5() -> None:
    assert findings(operands(conflict="default", atomic="add"), "a5") == []


def test_the_rules_hold_for_a_gather_too() -> None:
    tab, _ = table((16, 8))
    told = pto.check("mgather", tile("int32"), tab, row_index(*range(8)), targets="a5")
    assert ids(told) == {"PTO-L004"}


def test_findings_are_ordered_by_target_severity_and_id() -> None:
    told = findings(
        row_operands(src=tile(rows=9, cols=9, valid=(8, 8), layout="dn"), idx=tile("int32", cols=9)), "a2a3"
    )
    told = pto.check(
        "mscatter",
        table((2, 1, 1, 8, 8))[0],
        tile(cols=9, valid=(8, 8)),
        row_index(*range(8)),
        oob="skip",
        targets=("a5", "cpu"),
    )
    rank = {"error": 0, "warning": 1, "note": 2}
    keys = [(("a5", "cpu").index(f.target or ""), rank[f.severity], f.id) for f in told]
    assert keys == sorted(keys)
    assert {f.target for f in told} == {"a5", "cpu"}


def test_all_broken_rules_are_told_at_once() -> None:
    with pytest.raises(pto.IllegalInstruction) as refused:
        pto.mscatter(table((16, 8))[0], tile("int16", 8, 9), tile("int8"), atomic="max", target="a2a3")
    assert {"PTO-L002", "PTO-L004", "PTO-L015", "PTO-L016", "PTO-L024", "PTO-L013"} <= ids(refused.value.findings)


def test_check_without_index_data_speaks_of_shapes_only() -> None:
    told = pto.check(
        "mscatter",
        table((4, 6), stride=(32, 32, 32, 8, 1))[0],
        row_source(2),
        pto.Tile("int32", 1, 8, valid=(1, 2)),
        targets="a2a3",
    )
    assert ids(told) == {"PTO-I008"}
