"""Element types: how the text spells them, what `ptokit.dtypes` calls them, which scalar of MLIR they are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from xdsl.dialects import builtin
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute

from ptokit.errors import PtoValueError
from ptokit.ir.dialect.refused import near

if TYPE_CHECKING:
    from xdsl.parser import AttrParser


ELEMENTS: dict[str, str] = {
    "i1": "bool",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "ui8": "uint8",
    "ui16": "uint16",
    "ui32": "uint32",
    "ui64": "uint64",
    "si8": "int8",
    "si16": "int16",
    "si32": "int32",
    "si64": "int64",
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "f8E4M3FN": "float8_e4m3",
    "f8E4M3": "float8_e4m3",
    "f8E5M2": "float8_e5m2",
    "f8E4M3FNUZ": "float8_e4m3fnuz",
    "f8E4M3B11FNUZ": "float8_e4m3b11fnuz",
    "f8E5M2FNUZ": "float8_e5m2fnuz",
    "!pto.hif8": "hifloat8",
    "!pto.f8E8M0": "float8_e8m0",
    "!pto.f4E1M2x2": "float4_e1m2x2",
    "!pto.f4E2M1x2": "float4_e2m1x2",
    "index": "index",
}
"""How the text spells an element type -> its name in `ptokit.dtypes`, or one of the same make."""

_SPELLED: dict[str, str] = {}
for _spelling, _name in ELEMENTS.items():
    _SPELLED.setdefault(_name, _spelling)


def spelling_of(dtype: object) -> str:
    """How the text spells an element type that is given by either name.

    >>> spelling_of("float32"), spelling_of("si32")
    ('f32', 'si32')
    """
    word = str(dtype)
    if word in ELEMENTS:
        return word
    if word in _SPELLED:
        return _SPELLED[word]
    raise PtoValueError(f"unknown element type {word!r}.{near(word, [*_SPELLED, *ELEMENTS])}")


_BUILTIN: dict[str, Attribute] = {
    "index": builtin.IndexType(),
    "f16": builtin.f16,
    "bf16": builtin.bf16,
    "f32": builtin.f32,
    "f64": builtin.f64,
    "f8E4M3FN": builtin.f8E4M3FN,
    "f8E4M3": builtin.f8E4M3,
    "f8E5M2": builtin.f8E5M2,
    "f8E4M3FNUZ": builtin.f8E4M3FNUZ,
    "f8E4M3B11FNUZ": builtin.f8E4M3B11FNUZ,
    "f8E5M2FNUZ": builtin.f8E5M2FNUZ,
}
_SIGNS = {"i": builtin.Signedness.SIGNLESS, "ui": builtin.Signedness.UNSIGNED, "si": builtin.Signedness.SIGNED}
for _word in ELEMENTS:
    if _found := re.fullmatch(r"(ui|si|i)(\d+)", _word):
        _BUILTIN[_word] = builtin.IntegerType(int(_found[2]), _SIGNS[_found[1]])


class SmallFloatType(ParametrizedAttribute, TypeAttribute):
    """A scalar type of the dialect's own, without parameters: hif8, f8E8M0, f4E1M2x2, f4E2M1x2."""

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """Nothing follows the name."""
        return []


def _small_float(spelling: str) -> type[SmallFloatType]:
    from xdsl.irdl import irdl_attr_definition

    name = spelling.removeprefix("!")
    made = type(f"{name.removeprefix('pto.').title()}Type", (SmallFloatType,), {"name": name, "__doc__": f"`!{name}`."})
    return irdl_attr_definition(made)


SMALL_FLOATS = tuple(_small_float(word) for word in ELEMENTS if word.startswith("!"))
_BUILTIN |= {f"!{made.name}": made() for made in SMALL_FLOATS}
_SPELLING_OF_TYPE = {scalar: word for word, scalar in _BUILTIN.items()}


def scalar_type(dtype: object) -> Attribute:
    """The MLIR type of a scalar of this element type."""
    return _BUILTIN[spelling_of(dtype)]


def dtype_of(scalar: Attribute) -> str | None:
    """The element name of an MLIR scalar type, or None where it is no scalar.

    >>> dtype_of(scalar_type("ui32"))
    'uint32'
    """
    spelling = _SPELLING_OF_TYPE.get(scalar)
    return None if spelling is None else ELEMENTS[spelling]
