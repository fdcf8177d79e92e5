"""The rules of collectives: for each one legal call and its smallest illegal neighbour."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import ptokit as pto
from ptokit.comm.rules import RULES
from ptokit.dtypes import element_type

Five = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class Ask:
    """A call, and what a test changes of it; without changes it is legal and has nothing to tell."""

    op: str = "tscatter"
    ranks: int = 2
    slice: Five = (1, 1, 1, 4, 16)
    local: Five = (1, 1, 1, 8, 16)
    dtype: str = "float32"
    layout: str = "nd"
    local_stride: Five | None = None
    odd: Any = None
    """What is other about the last rank's tensor."""
    local_dtype: str | None = None
    local_layout: str | None = None
    actual: Five | None = None
    tile: tuple[int, int] = (4, 16)
    valid: tuple[int, int] | None = None
    set_valid: tuple[int, int] | None = None
    tile_dtype: str | None = None
    tile_layout: str = "nd"
    loc: str = "vec"
    pong: Any = None
    acc: Any = None
    root: int = 0
    engine: str = "aiv"
    target: str = "a5"

    def tensor(self, shape: Five, **more: Any) -> pto.GlobalTensor:
        dtype = more.pop("dtype", self.dtype)
        memory = np.zeros(8192, element_type(dtype).numpy)
        return pto.GlobalTensor(memory, dtype, shape, layout=more.pop("layout", self.layout), **more)

    def staging(self) -> pto.Tile:
        dtype = self.tile_dtype or self.dtype
        tile = pto.Tile(dtype, *self.tile, valid=self.valid, layout=self.tile_layout, loc=self.loc)
        if self.set_valid is not None:
            tile.set_valid(*self.set_valid)
        return tile

    def findings(self) -> list[pto.Finding]:
        local = self.tensor(
            self.local,
            stride=self.local_stride,
            dtype=self.local_dtype or self.dtype,
            layout=self.local_layout or self.layout,
            actual=self.actual,
        )
        slices = [self.tensor(self.slice) for _ in range(self.ranks)]
        if self.odd is not None:
            slices[-1] = self.tensor(**{"shape": self.slice, **self.odd})
        ping = self.staging()
        pong = {"alike": self.staging(), "ping": ping}[self.pong] if isinstance(self.pong, str) else self.pong
        acc = self.acc or (self.staging() if self.op == "treduce" else None)
        keywords = {"root": self.root, "engine": self.engine, "target": self.target, "acc": acc}
        return pto.comm.check(self.op, local, slices, ping, pong, **keywords)


PLAIN = Ask()
FOUR = replace(PLAIN, local=(1, 1, 1, 4, 16))
CHUNKED = replace(PLAIN, tile=(2, 8))
DYNAMIC = replace(PLAIN, tile=(8, 32), valid=(-1, -1), set_valid=(4, 16))
CCU = replace(PLAIN, engine="ccu")
DN = replace(PLAIN, layout="dn", tile=(8, 16), tile_layout="dn", valid=(4, 16))

NEIGHBOURS: dict[str, list[tuple[Ask, dict[str, Any]]]] = {
    "PTO-R001": [(replace(PLAIN, ranks=1, local=(1, 1, 1, 4, 16)), {"ranks": 0})],
    "PTO-R002": [(replace(PLAIN, root=1), {"root": 2}), (PLAIN, {"root": -1}), (CCU, {"root": 2})],
    "PTO-R003": [
        (PLAIN, {"odd": {"shape": (1, 1, 1, 3, 16)}}),
        (PLAIN, {"odd": {"stride": (128, 128, 128, 24, 1)}}),
        (PLAIN, {"odd": {"layout": "dn"}}),
        (
            replace(PLAIN, slice=(1, 1, 1, 1, 16), local=(1, 1, 1, 2, 16), tile=(1, 16)),
            {"odd": {"shape": (1, 1, 1, 2, 16)}},
        ),
    ],
    "PTO-R004": [(PLAIN, {"tile_dtype": "int32"}), (PLAIN, {"local_dtype": "int32"}), (CCU, {"local_dtype": "int32"})],
    "PTO-R005": [
        (PLAIN, {"tile_layout": "dn", "tile": (8, 16), "valid": (4, 16)}),
        (DN, {"local_layout": "nd"}),
        (DN, {"local_stride": (1024, 1024, 1024, 2, 32)}),
    ],
    "PTO-R006": [
        (PLAIN, {"local": (1, 1, 1, 8, 15)}),
        (PLAIN, {"local": (1, 1, 2, 8, 16)}),
        (PLAIN, {"local": (1, 2, 1, 8, 16)}),
        (PLAIN, {"local": (2, 1, 1, 8, 16)}),
    ],
    "PTO-R007": [
        (PLAIN, {"local": (1, 1, 1, 7, 16)}),
        (replace(PLAIN, op="tgather"), {"local": (1, 1, 1, 7, 16)}),
        (replace(FOUR, op="tbroadcast"), {"local": (1, 1, 1, 3, 16)}),
        (replace(FOUR, op="treduce"), {"local": (1, 1, 1, 3, 16)}),
    ],
    "PTO-R008": [
        (DYNAMIC, {"set_valid": None}),
        (replace(PLAIN, local=(1, 1, 1, -1, 16), actual=(1, 1, 1, 8, 16)), {"actual": None}),
    ],
    "PTO-R009": [(DYNAMIC, {"set_valid": (4, 0)}), (DYNAMIC, {"set_valid": (0, 16)})],
    "PTO-R010": [
        (replace(PLAIN, pong="alike"), {"pong": pto.Tile("float32", 8, 16)}),
        (replace(PLAIN, pong="alike"), {"pong": pto.Tile("float32", 4, 24)}),
        (replace(PLAIN, pong="alike"), {"pong": pto.Tile("float32", 4, 16, valid=(3, 16))}),
        (replace(FOUR, op="treduce"), {"acc": pto.Tile("float32", 8, 16)}),
    ],
    "PTO-R011": [
        (CHUNKED, {"tile": (3, 16)}),
        (CHUNKED, {"tile": (4, 16), "valid": (4, 15)}),
        # Both must divide once chunked, even the one that would fit.
        (CHUNKED, {"tile": (8, 8)}),
        (
            replace(CHUNKED, valid=(-1, 8), set_valid=(2, 8)),
            {"valid": (-1, 6), "set_valid": (2, 6)},
        ),
    ],
    "PTO-R012": [
        (
            replace(PLAIN, slice=(1, 2, 1, 16, 8), local=(1, 2, 1, 32, 8), tile=(32, 8)),
            {"layout": "nz", "tile_layout": "nz", "tile": (16, 16)},
        )
    ],
    "PTO-R013": [(PLAIN, {"loc": "mat"}), (PLAIN, {"tile": (4, 20), "valid": (4, 16)})],
    "PTO-R014": [(replace(PLAIN, pong="alike"), {"pong": "ping"})],
    "PTO-R015": [(replace(PLAIN, dtype="float8_e4m3", tile=(4, 32), valid=(4, 16)), {"target": "a2a3"})],
    "PTO-R016": [(CCU, {"target": "a2a3"}), (CCU, {"target": "cpu"})],
    "PTO-R017": [(replace(CCU, ranks=16, local=(1, 1, 1, 64, 16)), {"ranks": 17, "local": (1, 1, 1, 68, 16)})],
    "PTO-R018": [
        (CCU, {"slice": (1, 1, 2, 4, 16), "local": (1, 1, 2, 8, 16)}),
        (CCU, {"local_stride": (1024, 1024, 1024, 17, 1)}),
        (CCU, {"layout": "dn"}),
    ],
    "PTO-R019": [
        (CCU, {"op": "tbroadcast", "local": (1, 1, 1, 4, 16)}),
        (CCU, {"op": "treduce", "local": (1, 1, 1, 4, 16)}),
    ],
    "PTO-R020": [(replace(FOUR, op="treduce", tile=(4, 32), valid=(4, 16), dtype="float16"), {"dtype": "float8_e4m3"})],
    "PTO-R021": [
        (DYNAMIC, {"set_valid": (4, 17)}),
        (replace(DYNAMIC, op="tgather"), {"set_valid": (8, 32)}),
        (replace(DN, valid=(4, 16)), {"valid": (5, 16)}),
    ],
    "PTO-R022": [
        (replace(DYNAMIC, set_valid=(2, 16)), {"set_valid": (3, 16)}),
        (replace(DYNAMIC, set_valid=(2, 8)), {"set_valid": (2, 5)}),
    ],
    "PTO-R023": [
        (PLAIN, {"local": (1, 1, 1, 9, 16)}),
        (replace(PLAIN, op="tgather"), {"local": (1, 1, 1, 9, 16)}),
        (replace(FOUR, op="tbroadcast"), {"local": (1, 1, 1, 5, 16)}),
    ],
}
CASES = [(id_, at) for id_, cases in NEIGHBOURS.items() for at in range(len(cases))]


def test_every_rule_has_a_neighbour() -> None:
    assert set(NEIGHBOURS) == {rule.id for rule in RULES}


@pytest.mark.parametrize(("id_", "at"), CASES)
def test_the_legal_call_has_nothing_to_tell(id_: str, at: int) -> None:
    assert NEIGHBOURS[id_][at][0].findings() == []


@pytest.mark.parametrize(("id_", "at"), CASES)
def test_the_smallest_illegal_neighbour(id_: str, at: int) -> None:
    legal, change = NEIGHBOURS[id_][at]
    (found,) = replace(legal, **change).findings()
    (rule,) = [one for one in RULES if one.id == id_]
    assert (found.id, found.severity, found.fix) == (id_, rule.severity, rule.fix)
    assert found.target == change.get("target", legal.target)
    assert found.message.startswith(f"{change.get('op', legal.op)}: ")
    assert found.facts["needs"] == rule.needs


def message(ask: Ask) -> str:
    (found,) = ask.findings()
    return found.message


def test_the_first_rank_that_differs_is_named() -> None:
    ask = replace(PLAIN, ranks=3, local=(1, 1, 1, 12, 16), odd={"shape": (1, 1, 1, 3, 16)})
    assert "rank 2 differs from rank 0: its destination has shape (1, 1, 1, 3, 16)" in message(ask)


def test_strides_of_single_elements_do_not_differ() -> None:
    assert replace(PLAIN, odd={"stride": (9, 99, 999, 16, 1)}).findings() == []


def test_missing_rows_are_counted() -> None:
    told = message(replace(PLAIN, ranks=3, local=(1, 1, 1, 10, 16)))
    assert told == "tscatter: the source has 10 rows; 3 ranks of 4 rows need 12."


def test_the_example_of_the_specification_writes_95_elements_past() -> None:
    ask = Ask(slice=(1, 1, 1, 5, 13), local=(1, 1, 1, 10, 13), tile=(16, 32), valid=(16, 32))
    (found,) = ask.findings()
    assert (found.id, found.severity) == ("PTO-R021", "warning")
    assert "95 elements past each rank's part of the destination" in found.message


@pytest.mark.parametrize("op", ["tscatter", "tgather", "tbroadcast", "treduce"])
@pytest.mark.parametrize("dim", range(5))
def test_nothing_to_move_has_nothing_to_tell(op: str, dim: int) -> None:
    slice_ = tuple(0 if at == dim else extent for at, extent in enumerate((1, 1, 1, 4, 16)))
    local = tuple(0 if at == dim else extent for at, extent in enumerate((1, 1, 1, 8, 16)))
    ask = Ask(op=op, slice=slice_, local=local, tile=(3, 16), valid=(-1, -1), set_valid=(0, 5))  # type: ignore[arg-type]
    assert ask.findings() == []


def test_the_pong_of_a_ccu_does_not_matter() -> None:
    assert replace(CCU, pong=pto.Tile("float32", 3, 8)).findings() == []


def test_alignment_is_not_asked_for_on_cpu() -> None:
    ask = replace(PLAIN, tile=(4, 20), valid=(4, 16))
    assert [one.id for one in ask.findings()] == ["PTO-R013"]
    assert replace(ask, target="cpu").findings() == []


def test_every_error_is_told_at_once() -> None:
    ask = replace(PLAIN, root=5, tile_dtype="int32", local=(1, 1, 1, 7, 15))
    assert [one.id for one in ask.findings()] == ["PTO-R002", "PTO-R004", "PTO-R006", "PTO-R007"]


TENSOR = PLAIN.tensor((1, 1, 1, 8, 16))
TILE = PLAIN.staging()


@pytest.mark.parametrize(
    ("args", "keywords", "kind", "words"),
    [
        (("tscater", TENSOR, [TENSOR], TILE), {}, pto.PtoValueError, "Did you mean 'tscatter'?"),
        ((3, TENSOR, [TENSOR], TILE), {}, pto.PtoTypeError, "op=3"),
        (("tscatter", np.zeros(3), [TENSOR], TILE), {}, pto.PtoTypeError, "the source is an ndarray"),
        (("tscatter", TENSOR, TENSOR, TILE), {}, pto.PtoTypeError, "a list of one GlobalTensor per rank"),
        (("tgather", TENSOR, [TENSOR, None], TILE), {}, pto.PtoTypeError, "the tensor of rank 1"),
        (("tscatter", TENSOR, [TENSOR], None), {}, pto.PtoTypeError, "ping is"),
        (("tscatter", TENSOR, [TENSOR], TILE), {"root": 0.5}, pto.PtoTypeError, "root is 0.5"),
        (("tscatter", TENSOR, [TENSOR], TILE), {"engine": "cpu"}, pto.PtoValueError, "engine='cpu'"),
        (("tscatter", TENSOR, [TENSOR], TILE), {"target": "a6"}, pto.PtoValueError, "target='a6'"),
        (("tscatter", TENSOR, [TENSOR], TILE), {"acc": TILE}, pto.PtoTypeError, "tscatter takes no acc"),
        (("treduce", TENSOR, [TENSOR], TILE), {}, pto.PtoTypeError, "acc is missing"),
        (("treduce", TENSOR, [TENSOR], TILE), {"acc": TILE, "reduce": "mean"}, pto.PtoValueError, "reduce='mean'"),
        (("tscatter", TENSOR, [TENSOR], TILE), {"rot": 0}, pto.PtoTypeError, "rot"),
    ],
)
def test_what_is_no_operand_is_refused(
    args: tuple[Any, ...], keywords: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words.replace("?", "[?]")):
        pto.comm.check(*args, **keywords)
