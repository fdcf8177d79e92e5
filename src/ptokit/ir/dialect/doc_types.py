"""Types of the documents, which leave something open: kept as text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from ptokit.ir.dialect.elements import ELEMENTS
from ptokit.ir.dialect.raw import RawType, shaped
from ptokit.ir.dialect.refused import Misread

if TYPE_CHECKING:
    from xdsl.printer import Printer


@dataclass(frozen=True)
class Doc:
    """Text between brackets, and what could be read of it."""

    text: str
    dims: tuple[int, ...] | None = field(default=None, compare=False)
    elem: str | None = field(default=None, compare=False)


class DocType(RawType[Doc]):
    """A type of the documents, or a real one with a part left open: kept as text.

    `kind` is its name without the dialect; `dims` and `dtype` are what the text says of them, else None.
    """

    kind: ClassVar[str] = ""

    def __init__(self, text: str = "...") -> None:
        super().__init__(self.read(text))

    @property
    def text(self) -> str:
        """What stands between the brackets."""
        return self.data.text

    @property
    def dims(self) -> tuple[int, ...] | None:
        """Extents, where the text gives numbers."""
        return self.data.dims

    @property
    def dtype(self) -> str | None:
        """The element type by its name, where the text gives one."""
        return None if self.data.elem is None else ELEMENTS[self.data.elem]

    @classmethod
    def read(cls, text: str) -> Doc:
        """Anything."""
        told = " ".join(text.split())
        try:
            return Doc(told, *shaped(told))
        except Misread:
            return Doc(told)

    def written(self) -> str:
        """As it was, with single blanks."""
        return self.text

    def print_parameter(self, printer: Printer) -> None:
        """Nothing, where it says nothing."""
        if self.text:
            super().print_parameter(printer)


class TileType(DocType):
    """`!pto.tile<16x64xf32>` and `!pto.tile<...>`."""

    name, kind = "pto.tile", "tile"


class GroupType(DocType):
    """`!pto.group<...>`."""

    name, kind = "pto.group", "group"


class MemrefDocType(DocType):
    """`!pto.memref<...>`."""

    name, kind = "pto.memref", "memref"


class EventDocType(DocType):
    """`!pto.event`."""

    name, kind = "pto.event", "event"


class TileBufDocType(DocType):
    """`!pto.tile_buf<...>`."""

    name, kind = "pto.tile_buf", "tile_buf"


class TensorViewDocType(DocType):
    """`!pto.tensor_view<MxNxdtype>`."""

    name, kind = "pto.tensor_view", "tensor_view"


class PartitionTensorViewDocType(DocType):
    """`!pto.partition_tensor_view<MxNxdtype>`."""

    name, kind = "pto.partition_tensor_view", "partition_tensor_view"


class PtrDocType(DocType):
    """`!pto.ptr<...>`."""

    name, kind = "pto.ptr", "ptr"


class UnknownType(DocType):
    """The result of an op that was skipped: it is what its first user says it is."""

    name, kind = "pto.unknown", "unknown"

    def __init__(self, text: str = "") -> None:
        super().__init__(text)
