"""The player: it goes through the ops of a function and does on a core of `ptokit.core` what each of them says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from xdsl.dialects import cf, func, scf

from ptokit.core.block import Event
from ptokit.core.kernel import Core
from ptokit.core.pipes import Site
from ptokit.core.playing import hold, stand_at, tell
from ptokit.core.ub import UbTile
from ptokit.core.vector import OPS
from ptokit.errors import PtoError, PtoTypeError, PtoValueError
from ptokit.findings import Severity, Where
from ptokit.ir.arguments import Given
from ptokit.ir.arithmetic import ARITHMETIC, as_unsigned, width_of
from ptokit.ir.dialect import ops
from ptokit.ir.dialect.attributes import word
from ptokit.ir.dialect.types import TileBufType, TileType
from ptokit.ir.errors import OutsideViewError, RunError, WrongProgramError
from ptokit.ir.settled import is_settled
from ptokit.ir.structure import MOVE_IT, OUTSIDE
from ptokit.ir.values import Outside, Pointer, View
from ptokit.tensors import DYNAMIC, LAYOUTS

if TYPE_CHECKING:
    from xdsl.ir import Block, Operation, Region, SSAValue

    from ptokit.ir.module import Module

CANNOT = "PTO-P014"
LEFT_OUT = "PTO-P015"
MOST_CALLS = 64

PIPE_OF_EVENT = {
    "TLOAD": "MTE2",
    "TSTORE_VEC": "MTE3",
    "TVEC": "V",
    "TVECWAIT_EVENT": "V",
}
"""The pipe of a vector core on which each kind of instruction runs; the others are the cube core's."""


@dataclass(eq=False)
class Program:
    """What all blocks share: the module, and where its ops stand."""

    module: Module
    sites: dict[Operation, Site] = field(default_factory=dict)

    def site(self, op: Operation) -> Site:
        """Where the op stands, made once."""
        found = self.sites.get(op)
        if found is None:
            where = self.module.where(op) or Where(self.module.file, 0, 0)
            found = self.sites[op] = Site(None, 0, where.file, where.line, where.column)
        return found

    def refusal(self, op: Operation, message: str, mistake: PtoError | None = None) -> RunError:
        """The op cannot be played: nobody knows how, or the program is wrong there, whatever it is given."""
        is_wrong = isinstance(mistake, WrongProgramError) and is_settled(op)
        rule, fix = (OUTSIDE, MOVE_IT) if isinstance(mistake, OutsideViewError) else (CANNOT, "")
        return RunError([self.module.finding(rule, Severity.ERROR, message, op, facts={"is_wrong": is_wrong}, fix=fix)])


Values = Sequence[Any]
Handler = Callable[["Player", Any], "Values | None"]
HANDLERS: dict[str, Handler] = {}
"""What is done for each op, by its name."""


def plays(*made: Any) -> Callable[[Handler], Handler]:
    """This function plays the ops of these classes."""

    def register(handler: Handler) -> Handler:
        HANDLERS.update({one.name: handler for one in made})
        return handler

    return register


class Player:
    """One block's way through a program."""

    def __init__(self, program: Program, core: Core) -> None:
        self.program, self.core = program, core
        self.values: dict[SSAValue, Any] = {}
        self.outside: dict[str, Outside] = {}
        self.tiles: dict[Operation, UbTile] = {}
        self.events: dict[SSAValue, Event] = {}
        self.awaited: dict[SSAValue, Event] = {}
        self.told: set[Operation] = set()
        self.calls = 0

    # Going through

    def bind(self, given: Iterable[Given], on_device: Sequence[Any]) -> None:
        """The arguments: tensors as the device has them, tiles, numbers."""
        tensors = iter(on_device)
        for one in given:
            value, argument = one.value, one.argument
            if argument.kind == "tile":
                kept = None if argument.is_output else value
                shape = None if kept is None else (kept.shape[0], kept.shape[1])
                value = Outside(argument.name, argument.value.type, kept, shape)  # type: ignore[arg-type]
                self.outside[argument.name] = value
            elif argument.kind == "pointer":
                value = Pointer(next(tensors))
            elif argument.kind == "view":
                value = View.of_tensor(next(tensors))
            elif argument.kind == "group":
                value = [View.of_tensor(next(tensors)) for _ in one.value]
            self.values[argument.value] = value

    def region(self, region: Region, arguments: Values = ()) -> tuple[Operation | None, list[Any]]:
        """Play a region from its first block on: the op that ends it, and what that op hands on."""
        block: Block | None = region.blocks[0] if region.blocks else None
        handed = list(arguments)
        while block is not None:
            self.take(block.args, handed)
            last, block, handed = self._block(block)
            if block is None:
                return last, handed
        return None, handed

    def _block(self, block: Block) -> tuple[Operation | None, Block | None, list[Any]]:
        """Play the ops of a block: the last one, where to go on, and with what."""
        for op in block.ops:
            if isinstance(op, cf.BranchOp):
                return op, op.successor, self.of(op.arguments)
            if isinstance(op, cf.ConditionalBranchOp):
                taken = self.values[op.cond]
                to = op.then_block if taken else op.else_block
                return op, to, self.of(op.then_arguments if taken else op.else_arguments)
            if isinstance(op, scf.YieldOp | func.ReturnOp | scf.ConditionOp):
                return op, None, self.of(op.operands)
            self.step(op)
        return None, None, []

    def step(self, op: Operation) -> None:
        """Play one op."""
        handler = HANDLERS.get(op.name)
        if handler is None:
            raise self.program.refusal(op, f"{op.name} is not played: no vector core has it.")
        stand_at(self.core, self.program.site(op))
        try:
            results = handler(self, op)
            if results is not None:
                self.take(op.results, results)
        except RunError:
            raise
        except PtoError as mistake:
            raise self.program.refusal(op, _sentence(mistake), mistake) from mistake

    def take(self, values: Sequence[SSAValue], handed: Values) -> None:
        """These values are what is handed on: as many as there are."""
        if len(values) != len(handed):
            raise PtoValueError(f"{len(handed)} values are handed on here, and {len(values)} are wanted")
        self.values.update(zip(values, handed, strict=True))

    def of(self, values: Iterable[SSAValue]) -> list[Any]:
        """What these values are."""
        return [self.values[value] for value in values]

    def say(self, op: Operation, severity: Severity, message: str, fix: str = "") -> None:
        """Something to say of an op, once."""
        if op not in self.told:
            self.told.add(op)
            finding = self.program.module.finding(LEFT_OUT, severity, message, op, target=self.core.target, fix=fix)
            tell(self.core, finding)

    # Operands

    def number(self, value: SSAValue) -> int:
        """A whole number."""
        found = self.values[value]
        if not isinstance(found, int):
            raise PtoTypeError(f"%{self.name(value)} is {found!r}; a whole number is wanted")
        return found

    def tile(self, value: SSAValue) -> UbTile:
        """A tile of the core."""
        found = self.values[value]
        if isinstance(found, Outside):
            return found.made(self._make_outside)
        if not isinstance(found, UbTile):
            raise PtoTypeError(f"%{self.name(value)} is no tile, {value.type}")
        return found

    def pointer(self, value: SSAValue) -> Pointer:
        """A pointer to global memory."""
        found = self.values[value]
        if not isinstance(found, Pointer):
            raise PtoTypeError(f"%{self.name(value)} is no pointer to global memory, {value.type}")
        return found

    def view(self, value: SSAValue) -> View:
        """A view on global memory."""
        found = self.values[value]
        if not isinstance(found, View):
            raise PtoTypeError(f"%{self.name(value)} is no view on global memory, {value.type}")
        return found

    def group(self, values: Iterable[SSAValue]) -> list[View]:
        """The tensors of the ranks: a view each, or a whole group from outside."""
        found: list[View] = []
        for value in values:
            given = self.values[value]
            found += given if isinstance(given, list) else [self.view(value)]
        return found

    def parts(self, op: ops.CommOp, local: View, members: list[View]) -> tuple[View, list[View]]:
        """What a collective moves: all of it."""
        return local, members

    def name(self, value: SSAValue) -> str:
        """What the text calls it."""
        return self.program.module.name(value) or "?"

    # Tiles

    def make(self, of: object, name: str, at: int | None, valid: tuple[int, int] | None) -> UbTile:
        """A tile of that type: at an address, or where there is room; `valid` gives dynamic extents their values."""
        words = tile_words(of)
        tile = self.core.tile(**words, at=at, name=name or None)
        if valid is not None and not tile.is_static:
            tile.set_valid(*valid)
        return tile

    def _make_outside(self, one: Outside, at: int | None = None) -> UbTile:
        tile = self.make(one.type, one.name, at, one.valid)
        if one.values is not None:
            hold(self.core, tile, one.values)
        return tile

    def place(self, value: SSAValue, address: int) -> UbTile:
        """`tassign`: a tile gets its place; one from outside that nobody has used is made there."""
        found = self.values[value]
        if isinstance(found, Outside) and found.tile is None:
            found.tile = self._make_outside(found, address)
            return found.tile
        return self.core.tassign(self.tile(value), address)

    def flush(self, op: Operation) -> None:
        """What a kernel does behind the part of it that a text without a function is: the host sees what was stored."""
        if self.core.target == "cpu":
            return
        behind = "pto.barrier <PIPE_ALL>, pto.dcci and pto.dsb"
        self.say(
            op, Severity.NOTE, f"A text without a function is a part of a kernel: it is run with {behind} behind it."
        )
        self.core.pipe_barrier("ALL")
        self.core.dcci()
        self.core.dsb()

    # Events

    @property
    def wait(self) -> tuple[Event, ...]:
        """What every instruction waits for since a `tsync`."""
        return tuple(self.awaited.values())

    def done(self, event: Event, *wrote: SSAValue) -> None:
        """An instruction was issued: a `tsync` on what it wrote waits for it."""
        self.events.update(dict.fromkeys(wrote, event))


def tile_words(of: object) -> dict[str, Any]:
    """A tile's type as the keywords of `Core.tile`."""
    if isinstance(of, TileBufType):
        if of.layout not in LAYOUTS:
            raise PtoValueError(f"a tile in layout {of.layout}; a vector core has {', '.join(LAYOUTS)}")
        words = {"valid": of.valid, "layout": of.layout, "loc": of.loc, "fractal": of.fractal}
        return {"dtype": of.dtype, "rows": of.rows, "cols": of.cols, **words}
    if isinstance(of, TileType) and of.dims is not None and len(of.dims) == 2 and of.dtype is not None:
        return {"dtype": of.dtype, "rows": of.dims[0], "cols": of.dims[1]}
    raise PtoTypeError(f"a tile of type {of} is a placeholder, and cannot be run")


def _sentence(mistake: PtoError) -> str:
    text = " ".join(str(mistake).split())
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


# Host code


def _arithmetic(name: str) -> Handler:
    compute = ARITHMETIC[name]

    def handler(player: Player, op: Operation) -> Values:
        return (compute(op, *[player.values[value] for value in op.operands]),)

    return handler


HANDLERS.update({f"arith.{name}": _arithmetic(name) for name in ARITHMETIC})


@plays(scf.ForOp)
def _for(player: Player, op: scf.ForOp) -> Values:
    first, last, step = player.of((op.lb, op.ub, op.step))
    if step < 1:
        raise WrongProgramError(f"scf.for goes in steps of {step}; at least 1 is wanted")
    carried = player.of(op.iter_args)
    for at in range(first, last, step):
        _, carried = player.region(op.body, [at, *carried])
    return carried


@plays(scf.IfOp)
def _if(player: Player, op: scf.IfOp) -> Values:
    return player.region(op.true_region if player.values[op.cond] else op.false_region)[1]


@plays(scf.WhileOp)
def _while(player: Player, op: scf.WhileOp) -> Values:
    carried = player.of(op.arguments)
    while True:
        last, handed = player.region(op.before_region, carried)
        if not isinstance(last, scf.ConditionOp):
            raise PtoValueError("the first part of scf.while ends with scf.condition")
        goes_on, *carried = handed
        if not goes_on:
            return carried
        _, carried = player.region(op.after_region, carried)


@plays(scf.ExecuteRegionOp)
def _execute_region(player: Player, op: scf.ExecuteRegionOp) -> Values:
    return player.region(op.regions[0])[1]


@plays(scf.IndexSwitchOp)
def _switch(player: Player, op: scf.IndexSwitchOp) -> Values:
    cases = dict(zip(op.cases.get_values(), op.case_regions, strict=True))
    return player.region(cases.get(player.values[op.arg], op.default_region))[1]


@plays(cf.AssertOp)
def _assert(player: Player, op: cf.AssertOp) -> None:
    if not player.values[op.arg]:
        raise PtoValueError(f"the assertion does not hold: {op.msg.data}")


@plays(func.CallOp)
def _call(player: Player, op: func.CallOp) -> Values:
    name = str(word(op.callee))
    called = player.program.module.funcs.get(name)
    if called is None:
        raise PtoValueError(f"@{name} has no body here, and cannot be played")
    if player.calls >= MOST_CALLS:
        raise WrongProgramError(f"@{name} is called {MOST_CALLS} deep: a kernel does not call itself")
    player.calls += 1
    try:
        return player.region(called.body, player.of(op.operands))[1]
    finally:
        player.calls -= 1


# Views and tiles


@plays(func.FuncOp)
def _function(player: Player, op: Operation) -> None:
    """It is played where it is called."""


@plays(ops.ArgOp)
def _arg(player: Player, op: ops.ArgOp) -> Values:
    """It has been given, or is a tile that is written first."""
    found = player.values.get(op.value)
    return (found if found is not None else Outside(player.name(op.value), op.value.type, None),)  # type: ignore[arg-type]


@plays(ops.MakeTensorViewOp)
def _make_tensor_view(player: Player, op: ops.MakeTensorViewOp) -> Values:
    shape, strides = player.of(op.shape), player.of(op.strides)
    return (View.of(player.pointer(op.ptr), shape, strides, word(op.layout)),)


@plays(ops.PartitionViewOp)
def _partition_view(player: Player, op: ops.PartitionViewOp) -> Values:
    return (player.view(op.view).part(player.of(op.offsets), player.of(op.sizes)),)


@plays(ops.AllocTileOp)
def _alloc_tile(player: Player, op: ops.AllocTileOp) -> Values:
    """In a loop it is the same tile again."""
    address = None if op.addr is None else player.number(op.addr)
    valid = _valid(player, op)
    known = player.values.get(op.tile)
    if isinstance(known, Outside):
        known.valid = known.valid or valid
        if address is not None:
            player.place(op.tile, address)
        return (known,)
    tile = player.tiles.get(op)
    if tile is None:
        tile = player.tiles[op] = player.make(op.tile.type, player.name(op.tile), address, valid)
        return (tile,)
    if address is not None and address != tile.address:
        player.core.tassign(tile, address)
    if valid is not None:
        tile.set_valid(*valid)
    return (tile,)


def _valid(player: Player, op: ops.AllocTileOp) -> tuple[int, int] | None:
    """The extents, where dynamic ones are given; `set_validshape` may give them later."""
    of = op.tile.type
    if not isinstance(of, TileBufType) or DYNAMIC not in of.valid:
        return None
    row, col = (
        has if given is None else player.number(given)
        for has, given in zip(of.valid, (op.valid_row, op.valid_col), strict=True)
    )
    return None if DYNAMIC in (row, col) else (row, col)


@plays(ops.TAssignOp)
def _tassign(player: Player, op: ops.TAssignOp) -> Values:
    return (player.place(op.tile, player.number(op.addr)),)


@plays(ops.SetValidShapeOp)
def _set_validshape(player: Player, op: ops.SetValidShapeOp) -> None:
    player.tile(op.tile).set_valid(player.number(op.row), player.number(op.col))


# Transfers and accesses


@plays(ops.TLoadOp)
def _tload(player: Player, op: ops.TLoadOp) -> None:
    tile = player.tile(op.dst)
    padding = [
        name for name, is_operand in op.TAIL if (op.operand_called(name) if is_operand else name in op.properties)
    ]
    if padding:
        player.say(op, Severity.WARNING, f"pto.tload: {', '.join(padding)} is not played; only the valid region is.")
    event = player.core.tload(tile, player.view(op.src).tensor(tile, follows=True), wait=player.wait)
    player.done(event, op.dst)


@plays(ops.TStoreOp)
def _tstore(player: Player, op: ops.TStoreOp) -> None:
    if op.fp is not None or op.quant is not None or word(op.relu_pre_mode, "no_relu") != "no_relu":
        raise PtoValueError("pto.tstore converts on its way only what comes from the accumulator of a cube core")
    tile = player.tile(op.src)
    tensor = player.view(op.dst).tensor(tile, follows=True)
    player.done(player.core.tstore(tensor, tile, atomic=op.atomic, wait=player.wait), op.dst)


def _coalesce(written: Any, tile: UbTile, idx: UbTile) -> str:
    """The mode: as written, else as the shapes have it by now."""
    if written is not None:
        return str(word(written))
    if tile.valid == idx.valid:
        return "elem"
    return "row" if 1 in idx.valid else "elem"


@plays(ops.MScatterOp)
def _mscatter(player: Player, op: ops.MScatterOp) -> None:
    src, idx = player.tile(op.src), player.tile(op.idx)
    event = player.core.mscatter(
        player.view(op.mem).tensor(src, follows=False),
        src,
        idx,
        coalesce=_coalesce(op.coalesce, src, idx),
        atomic=word(op.scatter_atomic_op),
        oob=word(op.scatter_oob),
        conflict=word(op.scatter_conflict),
        wait=player.wait,
    )
    player.done(event, op.mem)


@plays(ops.MGatherOp)
def _mgather(player: Player, op: ops.MGatherOp) -> None:
    if op.scratch is not None:
        raise PtoValueError("pto.mgather takes a scratch tile where it fills a tile of a cube core")
    dst, idx = player.tile(op.dst), player.tile(op.idx)
    event = player.core.mgather(
        dst,
        player.view(op.mem).tensor(dst, follows=False),
        idx,
        coalesce=_coalesce(op.coalesce, dst, idx),
        oob=word(op.gather_oob),
        wait=player.wait,
    )
    player.done(event, op.dst)


# The vector family


def _scalar(player: Player, value: SSAValue, dst: UbTile) -> int | float:
    """A scalar as the tile takes it: signless bits are unsigned where the tile's elements are."""
    found: int | float = player.values[value]
    if isinstance(found, int) and dst.dtype.kind == "uint":
        return as_unsigned(found, min(width_of(value.type), 64)) if found < 0 else found
    return found


def _vector(player: Player, op: ops.VectorFamilyOp) -> None:
    dst = player.tile(op.operand_called("dst"))  # type: ignore[arg-type]
    sources = [player.tile(value) for value in op.sources]
    scalars = {name: _scalar(player, value, dst) for name, value in op.scalars.items()}
    issue = getattr(player.core, op.row.name)
    player.done(issue(dst, *sources, **scalars, **op.options, wait=player.wait), *op.given(op.OUTS))


HANDLERS.update({ops.VECTOR_OPS[name].name: _vector for name in OPS})


@plays(*ops.COMM_OPS)
def _collective(player: Player, op: ops.CommOp) -> None:
    """The root's part, on its core: the tensors of the group are remote memory as it sees them."""
    first, _, members = op.given_operands
    name = op.collective
    tiles = {
        one: player.tile(value) for one in ("ping", "pong", "acc") if (value := op.operand_called(one)) is not None
    }
    whole, parts = player.parts(op, player.view(first[0]), player.group(members))
    local, *slices = (one.tensor(tiles["ping"], follows=True) for one in (whole, *parts))
    more = {"op": word(op.properties.get("reduceOp"), "sum")} if name == "treduce" else {}
    given = {op.FIRST[0]: local, "slices": slices, **tiles, **more, "root": op.root_rank or 0, "wait": player.wait}
    event = getattr(player.core, name)(**given)
    player.done(event, *(first[:1] if op.FIRST[0] == "dst" else members))


@plays(ops.TScatterOp)
def _tile_scatter(player: Player, op: Operation) -> None:
    raise player.program.refusal(
        op, "pto.tscatter from tile to tile is not played. (The collective is pto.comm.tscatter.)"
    )


@plays(ops.SkippedOp)
def _skipped(player: Player, op: ops.SkippedOp) -> None:
    raise player.program.refusal(op, f"{op.op_name.data} is an op that nobody knows here: it cannot be played.")


# Order


@plays(ops.SetFlagOp, ops.WaitFlagOp)
def _flag(player: Player, op: Any) -> None:
    _issue_flag(player, op, word(op.src_pipe), word(op.dst_pipe), word(op.event_id))


@plays(ops.SetFlagDynOp, ops.WaitFlagDynOp)
def _flag_dyn(player: Player, op: Any) -> None:
    _issue_flag(player, op, word(op.src_pipe), word(op.dst_pipe), player.number(op.event_id))


@plays(ops.RecordEventOp, ops.WaitEventOp)
def _event(player: Player, op: Any) -> None:
    source, sink = _pipe_of(op.src_op), _pipe_of(op.dst_op)
    if source == sink:
        return  # in order anyway
    _issue_flag(player, op, source, sink, word(op.event_id))


def _issue_flag(player: Player, op: Operation, source: str, sink: str, number: int) -> None:
    sets = "set" in op.name or "record" in op.name
    (player.core.set_flag if sets else player.core.wait_flag)(source, sink, number)


def _pipe_of(attr: Any) -> str:
    kind = word(attr)
    if kind not in PIPE_OF_EVENT:
        raise PtoValueError(f"{kind} runs on a cube core; a vector core has {', '.join(PIPE_OF_EVENT)}")
    return PIPE_OF_EVENT[kind]


@plays(ops.BarrierOp)
def _barrier(player: Player, op: ops.BarrierOp) -> None:
    player.core.pipe_barrier(word(op.pipe))


@plays(ops.BarrierSyncOp)
def _barrier_sync(player: Player, op: ops.BarrierSyncOp) -> None:
    player.core.pipe_barrier(_pipe_of(op.op_type))


@plays(ops.TSyncOp)
def _tsync(player: Player, op: ops.TSyncOp) -> None:
    """What comes next waits for the instructions that wrote these values."""
    for value in op.events:
        if value in player.events:
            player.awaited[value] = player.events[value]
    if not op.events:
        player.core.pipe_barrier("ALL")


@plays(ops.DcciOp)
def _dcci(player: Player, op: Operation) -> None:
    player.core.dcci()


@plays(ops.DsbOp)
def _dsb(player: Player, op: Operation) -> None:
    player.core.dsb()


@plays(ops.SectionVectorOp)
def _section_vector(player: Player, op: Operation) -> None:
    player.region(op.regions[0])


@plays(ops.SectionCubeOp)
def _section_cube(player: Player, op: Operation) -> None:
    player.say(op, Severity.NOTE, "pto.section.cube is left out: vector cores are simulated.")


# Blocks and scalars


@plays(ops.GetBlockIdxOp)
def _block_idx(player: Player, op: Operation) -> Values:
    return (player.core.block_idx,)


@plays(ops.GetBlockNumOp)
def _block_num(player: Player, op: Operation) -> Values:
    return (player.core.block_num,)


@plays(ops.AddPtrOp)
def _addptr(player: Player, op: ops.AddPtrOp) -> Values:
    return (player.pointer(op.ptr).moved(player.number(op.offset)),)


@plays(ops.LoadScalarOp)
def _load_scalar(player: Player, op: ops.LoadScalarOp) -> Values:
    pointer = player.pointer(op.ptr)
    found = player.core.load_scalar(pointer.tensor, pointer.offset + player.number(op.offset))
    if isinstance(found, int) and pointer.tensor.dtype.kind == "uint":
        bits = width_of(op.value.type)
        return (found - (1 << bits) if bits > 1 and found >> (bits - 1) else found,)
    return (found,)


@plays(ops.StoreScalarOp)
def _store_scalar(player: Player, op: ops.StoreScalarOp) -> None:
    pointer = player.pointer(op.ptr)
    value = player.values[op.value]
    if isinstance(value, int) and value < 0 and pointer.tensor.dtype.kind == "uint":
        value = as_unsigned(value, width_of(op.value.type))
    player.core.store_scalar(pointer.tensor, pointer.offset + player.number(op.offset), value)
