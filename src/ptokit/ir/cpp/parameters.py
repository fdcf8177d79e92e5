"""Functions of a text, and what they take: pointers, numbers, tensors, tiles, and what the text leaves open."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from xdsl.ir import Attribute, Block, Operation, SSAValue

from ptokit.ir.cpp import types
from ptokit.ir.cpp.bodies import Body
from ptokit.ir.cpp.names import camel
from ptokit.ir.cpp.views import RANK, Number, View, packed
from ptokit.ir.dialect import ops
from ptokit.ir.dialect.types import (
    DYNAMIC,
    DocType,
    PartitionTensorViewType,
    PtrType,
    TensorViewType,
    TileBufType,
)

VIEWS = (TensorViewType, PartitionTensorViewType)


@dataclass(eq=False)
class Function:
    """One function of the text: `args` with their values, and the block that it runs; None where it has none."""

    op: Operation
    name: str
    args: list[SSAValue]
    block: Block | None
    results: list[Attribute] = field(default_factory=list)
    is_called: bool = False

    @property
    def is_kernel(self) -> bool:
        """The host launches it: nothing in the text calls it, and it takes nothing that lives on the chip."""
        on_chip = any(isinstance(arg.type, TileBufType | DocType) for arg in self.args)
        return self.block is not None and not (self.is_called or on_chip or self.open_tiles or self.results)

    @cached_property
    def open_tiles(self) -> list[SSAValue]:
        """Tiles whose types the text leaves open: whoever calls the function has them."""
        if self.block is None or self.is_called:
            return []
        tiles = [op.tile for op in self.block.walk() if isinstance(op, ops.AllocTileOp)]
        return [tile for tile in tiles if types.held_tile(tile.type) is None]


class Parameters:
    """The parameters of a function: declarations (`words`), names (`called`), templates and types before it."""

    def __init__(self, one: Function, body: Body) -> None:
        self.one = one
        self.body = body
        self.words: list[str] = []
        self.called: list[str] = []
        self.templates: list[str] = []
        self.preamble: list[str] = []
        self.pending: list[tuple[SSAValue, View]] = []
        for arg in one.args:
            self._take(arg)
        for tile in one.open_tiles:
            self._template(tile)

    def _take(self, arg: SSAValue) -> None:
        held = arg.type
        scalar = types.scalar(held)
        if isinstance(held, DocType):
            self._document(arg, held)
        elif isinstance(held, VIEWS):
            self._view(arg, held.dtype, held.dims)
        elif isinstance(held, TileBufType):
            self._tile(arg, held)
        elif scalar is not None:
            name = self.body.words[arg] = self.body.fresh(arg, "arg")
            space = scalar if isinstance(held, PtrType) else f"{scalar} "
            self._say(f"{space}{name}", name)
        else:
            owner = self.one.op
            self.body.refuse(owner, f"a parameter of type {held} has no name in C++")

    def _say(self, word: str, name: str) -> None:
        self.words.append(word)
        self.called.append(name)

    # On the chip

    def _tile(self, arg: SSAValue, held: TileBufType) -> None:
        of = types.tile(held, self.body.target)
        if of is None:
            self.body.refuse(self.one.op, f"{held.elem} has no name in C++")
            return
        name = self.body.words[arg] = self.body.fresh(arg, "tile")
        called = self.body.types[arg] = self.body.names.fresh(camel(name) + "Tile")
        self.preamble.append(f"using {called} = {of};")
        self._say(f"{called} &{name}", name)

    def _document(self, arg: SSAValue, held: DocType) -> None:
        tile = types.held_tile(held)
        if tile is not None:
            self._tile(arg, tile)
        elif held.kind in ("memref", "partition_tensor_view", "tensor_view") and held.dims and held.dtype:
            self._view(arg, held.dtype, held.dims)
        else:
            # What the text leaves open is left open: a parameter of the template.
            self._template(arg)

    def _template(self, arg: SSAValue) -> str:
        name = self.body.words[arg] = self.body.fresh(arg, "arg")
        called = self.body.types[arg] = self.body.names.fresh(camel(name) + "T")
        self.templates.append(called)
        self._say(f"{called} &{name}", name)
        return name

    # In global memory

    def _view(self, arg: SSAValue, dtype: str, dims: tuple[int, ...]) -> None:
        if self.one.is_kernel:
            self._packed(arg, dtype, dims)
        elif self.one.is_called:
            name = self._template(arg)
            self.body.views[arg] = _of_tensor(name, dtype, dims)
        else:
            self._tensor(arg, dtype, dims)

    def _packed(self, arg: SSAValue, dtype: str, dims: tuple[int, ...]) -> None:
        """A kernel gets the pointer and what is not known of the shape; the tensor has no gaps."""
        called = self.body.fresh(arg, "view")
        of = types.element(dtype)
        pointer = self.body.names.fresh(f"{called}_data")
        self._say(f"__gm__ {of} *{pointer}", pointer)
        shape: list[Number] = []
        for at, dim in enumerate(dims):
            if dim == DYNAMIC:
                word = self.body.names.fresh(f"{called}_dim{at}")
                self._say(f"int64_t {word}", word)
                shape.append(word)
            else:
                shape.append(dim)
        self.body.names.taken.discard(called)
        self.pending.append((arg, View(pointer, dtype, tuple(shape), packed(shape))))

    def declare_views(self) -> None:
        """The tensors of a kernel's views, at the beginning of its body."""
        for value, view in self.pending:
            self.body.view(value, view, declared=True)

    def _tensor(self, arg: SSAValue, dtype: str, dims: tuple[int, ...]) -> None:
        """A function that is not called here takes the tensor itself, without gaps."""
        of = types.element(dtype)
        if of is None or len(dims) > RANK:
            self.body.refuse(self.one.op, f"a tensor of {len(dims)} dimensions of {dtype} has no name in C++")
            return
        name = self.body.words[arg] = self.body.fresh(arg, "view")
        shape: list[Number] = ["" if dim == DYNAMIC else dim for dim in dims]
        view = View("", dtype, tuple(shape), packed(shape))
        called = self.body.types[arg] = self.body.names.fresh(camel(name) + "Tensor")
        parts = (types.five("Shape", view.five_extents), types.five("Stride", view.five_strides))
        self.preamble.append(f"using {called} = GlobalTensor<{of}, {', '.join(parts)}, Layout::ND>;")
        self.body.views[arg] = _of_tensor(name, dtype, dims)
        self._say(f"{called} &{name}", name)


def _of_tensor(name: str, dtype: str, dims: tuple[int, ...]) -> View:
    """The numbers of a tensor that somebody else has made."""
    axes = range(RANK - len(dims), RANK)
    shape: list[Number] = [
        f"{name}.GetShape(GlobalTensorDim::DIM_{axis})" if dim == DYNAMIC else dim
        for axis, dim in zip(axes, dims, strict=True)
    ]
    strides = tuple(f"{name}.GetStride(GlobalTensorDim::DIM_{axis})" for axis in axes)
    return View(f"{name}.data()", dtype, tuple(shape), strides)
