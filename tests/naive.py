"""A naive reference model of MSCATTER and MGATHER: one element at a time, in plain Python ints.

It is the independent second opinion of the property tests. It is written from SEMANTICS.md alone
(sections 1, 2 and 3.2; DESIGN.md section 2 for owned memory and for what cpu refuses) and shares no
code with the package. Nothing here is fast, and nothing is meant to be: an instruction is

    WALK     the lanes (row, column) in the order of the target             2.3
    INDEX    the raw index word of a lane                                   2.1, 2.4
    REMAP    what the out-of-bounds policy makes of it: a slot, or nothing  2.1
    ADDRESS  the memory position of that slot                               2.2
    MOVE     the bits, one element after the other                          2.3

Everything is kept as raw bits. Values exist only inside one addition or one comparison.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

TWO_32 = 2**32

# ---------------------------------------------------------------------------------------------
# The tables of section 1, 2.3 and 2.5
# ---------------------------------------------------------------------------------------------

SIZEOF = {
    "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4,
    "float16": 2, "bfloat16": 2, "float32": 4,
    "float8_e4m3": 1, "float8_e5m2": 1, "hifloat8": 1,
}  # fmt: skip


def types(names: str) -> frozenset[str]:
    """A set of element types, written as in the tables."""
    return frozenset(names.split())


COMMON_TYPES = types("int8 uint8 int16 uint16 int32 uint32 float16 bfloat16 float32")
FLOAT8_TYPES = types("float8_e4m3 float8_e5m2")
INDEX_TYPES = types("int32 uint32")
FLOAT_ADD_TYPES = types("float16 bfloat16 float32")

# 2.5, row "float8, hifloat8": on cpu float8 is a warning (AICore builds only), hifloat8 a no.
ELEMENT_TYPES = {
    "cpu": COMMON_TYPES | FLOAT8_TYPES,
    "a2a3": COMMON_TYPES,
    "a5": COMMON_TYPES | FLOAT8_TYPES | {"hifloat8"},
}

# 2.3 for a2a3 and a5; 2.5 "contract" for cpu, where "half" is float16.
ATOMIC_TYPES: dict[str, dict[str, frozenset[str]]] = {
    "cpu": {
        "add": types("int32 uint32 float32 float16"),
        "max": types("int32 float32"),
        "min": types("int32 float32"),
    },
    "a2a3": {
        "add": types("int8 int16 int32 float16 bfloat16 float32"),
        "max": types(""),
        "min": types(""),
    },
    "a5": {
        "add": types("int32 uint32 float16 bfloat16 float32"),
        "max": types("int32 uint32 float32"),
        "min": types("int32 uint32 float32"),
    },
}

# type: (mask of the exponent, mask of the fraction, the one NaN that stands for all)
IEEE_NAN = {
    "float32": (0x7F800000, 0x007FFFFF, 0x7FC00000),
    "float16": (0x7C00, 0x03FF, 0x7E00),
    "bfloat16": (0x7F80, 0x007F, 0x7FC0),
    "float8_e5m2": (0x7C, 0x03, 0x7E),
}

MAX_ENUMERATED_WRITERS = 6  # DESIGN.md section 2: "exact set up to 6 writers of an element"


# ---------------------------------------------------------------------------------------------
# What a test hands in, and what it gets back
# ---------------------------------------------------------------------------------------------


@dataclass
class TileCase:
    """A tile: padded extents, valid extents, layout, and raw bits in storage order."""

    dtype: str
    rows: int
    cols: int
    valid_rows: int
    valid_cols: int
    layout: str
    static: bool
    data: list[int] = field(repr=False)
    loc: str = "vec"
    fractal: int = 512


@dataclass
class Case:
    """One call of MSCATTER or MGATHER with everything that decides its result."""

    op: str
    target: str
    coalesce: str
    atomic: str
    oob: str
    conflict: str
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    table_layout: str
    offset: int
    memory: list[int] = field(repr=False)
    tile: TileCase
    idx: TileCase


@dataclass
class Result:
    """Memory and tile after the call, and what else might have come out.

    `outcomes` has every memory position that more than one lane writes, with all raw bits that may
    legally be there afterwards; positions with too many writers to enumerate are in `unbounded`.
    """

    memory: list[int]
    tile: list[int]
    outcomes: dict[int, frozenset[int]] = field(default_factory=dict)
    unbounded: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class Lane:
    """One element of the walk. NZ Row lanes also visit the padding columns (2.2)."""

    row: int
    column: int


@dataclass(frozen=True)
class Write:
    """One element on its way into memory: who brings which bits to which position."""

    lane: Lane
    position: int
    bits: int


# ---------------------------------------------------------------------------------------------
# Section 1: layouts
# ---------------------------------------------------------------------------------------------


def fractal_columns(dtype: str) -> int:
    """C0 = 32 / sizeof(T)."""
    return 32 // SIZEOF[dtype]


def tile_offset(tile: TileCase, row: int, column: int) -> int:
    """The element offset of (row, column) in a tile: the table of section 1."""
    if tile.layout == "nd":
        return row * tile.cols + column
    if tile.layout == "dn":
        return column * tile.rows + row
    c0 = fractal_columns(tile.dtype)
    return (column // c0) * (tile.rows * c0) + row * c0 + column % c0


def nz_columns(case: Case) -> int:
    """Logical columns of an NZ table, B*BCols*C0."""
    return case.shape[0] * case.shape[1] * fractal_columns(case.dtype)


def nz_table_offset(case: Case, row: int, column: int, innermost_stride: int) -> int:
    """The element offset of logical (row, column) in an NZ table, section 1."""
    c0 = fractal_columns(case.dtype)
    block = column // c0
    outer0 = block // case.shape[1]
    outer1 = block % case.shape[1]
    return (
        outer0 * case.stride[0]
        + outer1 * case.stride[1]
        + (row // 16) * case.stride[2]
        + (row % 16) * case.stride[3]
        + (column % c0) * innermost_stride
    )


# ---------------------------------------------------------------------------------------------
# 2.1: capacity, index word, slot
# ---------------------------------------------------------------------------------------------


def true_capacity(case: Case) -> int:
    """The capacity before any 32-bit truncation, by target, mode and table layout."""
    s0, s1, s2, s3, s4 = case.shape
    if case.target == "cpu":  # no Row path: always Elem
        return s0 * s1 * s2 * s3 * s4
    if case.target == "a5":
        return s3 if case.coalesce == "row" else s0 * s1 * s2 * s3 * s4
    if case.table_layout == "nz":
        rows = s2 * 16
        return rows if case.coalesce == "row" else rows * nz_columns(case)
    rows = s0 * s1 * s2 * s3
    return rows if case.coalesce == "row" else rows * s4


def effective_capacity(case: Case) -> int:
    """What a2a3 and a5 compare with: "these products are taken modulo 2^32"."""
    return true_capacity(case) % TWO_32


def index_word(case: Case, lane: Lane) -> int | None:
    """The raw 32 bits that steer a lane, or None where there are none to read.

    2.4: cpu uses offset r*idx.Cols + c "whatever the shape of idx"; it may read padding, and it may
    leave the tile: then "that element is not moved" (DESIGN.md, memory that is owned).
    """
    idx = case.idx
    if case.target == "cpu":
        at = lane.row * idx.cols + lane.column
    elif case.coalesce == "row":
        # Legal Row indices are valid [1,R] in ND or [R,1] in DN: both lie contiguously.
        at = lane.row
    else:
        at = tile_offset(idx, lane.row, lane.column)
    if 0 <= at < len(idx.data):
        return idx.data[at] % TWO_32
    return None


def sign_extended(case: Case, word: int) -> int:
    """2.1, widening on cpu: an int32 is signed there, so -1 is the element before the table."""
    if case.idx.dtype == "int32" and word >= 2**31:
        return word - TWO_32
    return word


def remap(oob: str, index: int, capacity: int) -> int | None:
    """The slot of an unsigned index under a policy, or None where nothing is to be addressed."""
    if oob == "undefined":
        return index
    if oob in ("skip", "zero"):
        return index if index < capacity else None
    if oob == "clamp":
        # A capacity that truncates to 0 "gives slot 2^32-1".
        return index if index < capacity else (capacity - 1) % TWO_32
    if oob == "wrap":
        # "Wrap divides by zero": reported, "none executed silently".
        return index % capacity if capacity > 0 else None
    raise ValueError(f"unknown out-of-bounds policy {oob!r}")


def slot_of(case: Case, word: int) -> int | None:
    """From a raw index word to a slot."""
    if case.target == "cpu":  # "the cpu form takes no policies (2.4): the raw index is used"
        return sign_extended(case, word)
    return remap(case.oob, word, effective_capacity(case))


# ---------------------------------------------------------------------------------------------
# 2.2: from a slot to an address
# ---------------------------------------------------------------------------------------------


def address(case: Case, lane: Lane, slot: int) -> int:
    """The element address of a lane's slot, relative to the base of the table."""
    if case.target == "cpu":
        return slot
    if case.target == "a5":
        if case.coalesce == "row":
            # "slot * ValidCol in 32-bit arithmetic"; the column is added to the pointer.
            return slot * case.tile.valid_cols % TWO_32 + lane.column
        return slot
    if case.table_layout == "nz":
        if case.coalesce == "row":
            # Whole 32-byte bursts: NZ Row "ignores ValidCol and stride4".
            return nz_table_offset(case, slot, lane.column, 1)
        row, column = divmod(slot, nz_columns(case))
        return nz_table_offset(case, row, column, case.stride[4])
    if case.coalesce == "row":
        return slot * case.stride[3] + lane.column  # stride3 "even across batches"
    return slot  # linear: strides are not honoured


def owned_position(case: Case, relative: int) -> int | None:
    """The place of an address in the owned buffer; None outside it: not moved."""
    position = case.offset + relative
    return position if 0 <= position < len(case.memory) else None


# ---------------------------------------------------------------------------------------------
# 2.3: the walk
# ---------------------------------------------------------------------------------------------


def walk(case: Case) -> Iterator[Lane]:
    """The lanes in the sequential order of the target (a5: row-major)."""
    tile = case.tile
    if case.target == "a2a3" and case.table_layout == "nz":
        if case.coalesce == "row":
            yield from walk_rows(tile.valid_rows, nz_columns(case))
        else:
            yield from walk_block_columns(tile)
        return
    yield from walk_rows(tile.valid_rows, tile.valid_cols)


def walk_rows(rows: int, columns: int) -> Iterator[Lane]:
    """r, then c."""
    for row in range(rows):
        for column in range(columns):
            yield Lane(row, column)


def walk_block_columns(tile: TileCase) -> Iterator[Lane]:
    """a2a3 Elem NZ: "block-column, then r, then c inside the block: NOT row-major"."""
    c0 = fractal_columns(tile.dtype)
    for first in range(0, tile.valid_cols, c0):
        for row in range(tile.valid_rows):
            for column in range(first, min(first + c0, tile.valid_cols)):
                yield Lane(row, column)


def flat_source_index(case: Case, lane: Lane) -> int:
    """The flat source index r*ValidCol + c."""
    return lane.row * case.tile.valid_cols + lane.column


# ---------------------------------------------------------------------------------------------
# 3.2: a5 kernels and threads
# ---------------------------------------------------------------------------------------------


def is_last_kernel(case: Case) -> bool:
    """2.1: atomic None, Conflict Last, and not a static (1,1) Elem call (the scalar path)."""
    if case.target != "a5" or case.op != "mscatter":
        return False
    if case.atomic != "none" or case.conflict != "last":
        return False
    tile = case.tile
    one_element = tile.valid_rows == 1 and tile.valid_cols == 1
    return not (case.coalesce == "elem" and tile.static and one_element)


def ceil_div(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)


def thread_of(case: Case, lane: Lane) -> Hashable:
    """The SIMT thread that handles a lane on a5, in every kernel but the Last one."""
    tile = case.tile
    if case.coalesce == "row":
        row_warps = min(tile.valid_rows, 32)
        warps_per_row = max(1, min(32 // row_warps, ceil_div(tile.valid_cols, 32)))
        return (lane.row % row_warps, lane.column % (32 * warps_per_row))
    warps = min(ceil_div(tile.valid_rows * tile.valid_cols, 32), 32)
    return flat_source_index(case, lane) % (32 * warps)


# ---------------------------------------------------------------------------------------------
# 2.3: numerics of one element
# ---------------------------------------------------------------------------------------------


def canonical(dtype: str, bits: int) -> int:
    """One NaN stands for all NaNs of a type; every other bit pattern is returned as it is.

    hifloat8 is only ever moved as bits, so it stays untouched.

    >>> hex(canonical("float16", 0xFE01))
    '0x7e00'
    """
    if dtype == "float8_e4m3":  # no infinities: S.1111.111 is the only NaN
        return 0x7F if bits & 0x7F == 0x7F else bits
    if dtype not in IEEE_NAN:
        return bits
    exponent, fraction, nan = IEEE_NAN[dtype]
    is_nan = bits & exponent == exponent and bits & fraction != 0
    return nan if is_nan else bits


def float_value(dtype: str, bits: int) -> float:
    """The value of one float16, bfloat16 or float32; a Python float holds each exactly."""
    value: float
    if dtype == "float16":
        (value,) = struct.unpack("<e", struct.pack("<H", bits))
    elif dtype == "bfloat16":
        (value,) = struct.unpack("<f", struct.pack("<I", bits << 16))
    else:
        (value,) = struct.unpack("<f", struct.pack("<I", bits))
    return value


def signed_value(dtype: str, bits: int) -> int:
    """The value of one integer element."""
    width = 8 * SIZEOF[dtype]
    if dtype.startswith("int") and bits >= 1 << (width - 1):
        return bits - (1 << width)
    return bits


def add(dtype: str, old: int, new: int) -> int:
    """old + new as raw bits: integers wrap, floats round to nearest even once.

    bfloat16 goes through float32. For bfloat16 operands the 16 low bits of any NaN are zero, so the
    plain bit trick of a2a3 Elem cannot carry a NaN away, and both roundings agree.
    """
    if dtype not in FLOAT_ADD_TYPES:
        return (old + new) % (1 << 8 * SIZEOF[dtype])
    a = float_value(dtype, old)
    b = float_value(dtype, new)
    with np.errstate(all="ignore"):
        if dtype == "float16":
            raw = np.asarray(np.float16(a) + np.float16(b)).tobytes()
        elif dtype == "bfloat16":
            wide = np.float32(a) + np.float32(b)
            raw = np.asarray(wide).astype(ml_dtypes.bfloat16).tobytes()
        else:
            raw = np.asarray(np.float32(a) + np.float32(b)).tobytes()
    return canonical(dtype, int.from_bytes(raw, "little"))


def exceeds(dtype: str, left: int, right: int) -> bool:
    """left > right as values; False where a NaN takes part, and between zeros of both signs."""
    if dtype in FLOAT_ADD_TYPES:
        return float_value(dtype, left) > float_value(dtype, right)
    return signed_value(dtype, left) > signed_value(dtype, right)


def combine(atomic: str, dtype: str, old: int, new: int) -> int:
    """What one write leaves in an element.

    2.3: "when the comparison is false (a NaN on either side) the table keeps its value".
    """
    if atomic == "none":
        return new
    if atomic == "add":
        return add(dtype, old, new)
    if atomic == "max":
        return new if exceeds(dtype, new, old) else old
    return new if exceeds(dtype, old, new) else old


# ---------------------------------------------------------------------------------------------
# 2.3: what may come out of one element on a5
# ---------------------------------------------------------------------------------------------


def threads_of(case: Case, writers: list[Write]) -> list[list[Write]]:
    """The writers of one element, a list per thread, each in the thread's own order.

    The own order is row, then column, which is the order of the walk.
    """
    threads: dict[Hashable, list[Write]] = {}
    for write in writers:
        threads.setdefault(thread_of(case, write.lane), []).append(write)
    return list(threads.values())


def survivors(case: Case, writers: list[Write]) -> frozenset[int]:
    """None with Default: "for each thread its last hit can survive"."""
    return frozenset(thread[-1].bits for thread in threads_of(case, writers))


def interleavings(threads: list[list[Write]]) -> Iterator[list[Write]]:
    """Every order of all writes that keeps each thread's own order."""
    if not any(threads):
        yield []
        return
    for chosen in range(len(threads)):
        if not threads[chosen]:
            continue
        rest = [thread[1:] if number == chosen else thread for number, thread in enumerate(threads)]
        for tail in interleavings(rest):
            yield [threads[chosen][0], *tail]


def interleaved_results(case: Case, before: int, writers: list[Write]) -> frozenset[int]:
    """Every value that an atomic with an order can leave in an element that held `before`."""
    results = set()
    for order in interleavings(threads_of(case, writers)):
        value = before
        for write in order:
            value = combine(case.atomic, case.dtype, value, write.bits)
        results.add(value)
    return frozenset(results)


def order_is_free(case: Case) -> bool:
    """True where the order of several writers can be seen and nothing fixes it (a5 only).

    Integer Add, Max and Min give the same bits in any order.
    """
    if case.target != "a5" or is_last_kernel(case):
        return False
    if case.atomic == "none":
        return True
    return case.dtype in FLOAT_ADD_TYPES


def note_outcomes(case: Case, writes: list[Write], result: Result) -> None:
    """Fill `outcomes` and `unbounded` of a result whose memory is final."""
    writers_of: dict[int, list[Write]] = {}
    for write in writes:
        writers_of.setdefault(write.position, []).append(write)
    for position, writers in writers_of.items():
        if len(writers) < 2:
            continue
        if not order_is_free(case):
            result.outcomes[position] = frozenset({result.memory[position]})
        elif case.atomic == "none":
            result.outcomes[position] = survivors(case, writers)
        elif len(writers) <= MAX_ENUMERATED_WRITERS:
            before = case.memory[position]
            result.outcomes[position] = interleaved_results(case, before, writers)
        else:
            result.unbounded.add(position)


# ---------------------------------------------------------------------------------------------
# MSCATTER and MGATHER
# ---------------------------------------------------------------------------------------------


def last_winners(writes: list[Write]) -> list[Write]:
    """The a5 Last kernel: slot by slot, the largest flat source index wins (Row: the largest r).

    The writes come in row-major order, so the first one of an element seen from behind is the
    winner. It is the same row for every column of a slot, since a Row write brings all columns.
    """
    taken: set[int] = set()
    winners: list[Write] = []
    for write in reversed(writes):
        if write.position in taken:
            continue
        taken.add(write.position)
        winners.append(write)
    return winners


def collect_writes(case: Case) -> list[Write]:
    """All elements that MSCATTER moves into owned memory, in the order of the walk."""
    writes: list[Write] = []
    for lane in walk(case):
        source = tile_offset(case.tile, lane.row, lane.column)
        if source >= len(case.tile.data):  # cpu only: an off-contract layout
            continue
        word = index_word(case, lane)
        if word is None:
            continue
        slot = slot_of(case, word)
        if slot is None:
            continue
        if is_last_kernel(case) and slot >= effective_capacity(case):
            continue  # 2.1: its "scan only visits real slots: it drops it"
        position = owned_position(case, address(case, lane, slot))
        if position is None:
            continue
        writes.append(Write(lane, position, case.tile.data[source]))
    return writes


def scatter(case: Case) -> Result:
    """MSCATTER: table[slot] (+)= src[lane]."""
    result = Result(list(case.memory), list(case.tile.data))
    # "Policies asked for on cpu ... ignored": within the contract, always a plain replace.
    atomic = "none" if case.target == "cpu" else case.atomic
    writes = collect_writes(case)
    issued = last_winners(writes) if is_last_kernel(case) else writes
    for write in issued:
        before = result.memory[write.position]
        result.memory[write.position] = combine(atomic, case.dtype, before, write.bits)
    note_outcomes(case, writes, result)
    return result


def gather(case: Case) -> Result:
    """MGATHER: dst[lane] = table[slot], with zeros where the Zero policy says so."""
    result = Result(list(case.memory), list(case.tile.data))
    zeroes = case.target != "cpu" and case.oob == "zero"
    if zeroes and case.coalesce == "row" and case.table_layout == "nz":
        # 3.1: "NZ fills the whole tile once and skips the DMA of out-of-bounds rows".
        result.tile = [0] * len(case.tile.data)
    for lane in walk(case):
        destination = tile_offset(case.tile, lane.row, lane.column)
        if destination >= len(case.tile.data):  # cpu only: an off-contract layout
            continue
        word = index_word(case, lane)
        if word is None:
            continue
        slot = slot_of(case, word)
        if slot is None:
            if zeroes:
                result.tile[destination] = 0
            continue
        position = owned_position(case, address(case, lane, slot))
        if position is not None:
            result.tile[destination] = case.memory[position]
    return result


def run(case: Case) -> Result:
    """Execute a legal call in the sequential order of its target; the case is not changed."""
    return scatter(case) if case.op == "mscatter" else gather(case)


# ---------------------------------------------------------------------------------------------
# 2.5: legality
# ---------------------------------------------------------------------------------------------


def legal(case: Case) -> bool:
    """Would this call be executed (True), or refused with IllegalInstruction (False)?"""
    if not common_rules(case):
        return False
    if case.target == "a2a3":
        return a2a3_rules(case)
    if case.target == "a5":
        return a5_rules(case)
    # cpu: "the ABI-contract rows of 2.5 are warnings and never raise" (DESIGN.md section 2).
    return True


def common_rules(case: Case) -> bool:
    """The rules that no target lets pass, cpu included."""
    if case.dtype not in ELEMENT_TYPES[case.target]:
        return False
    if case.idx.dtype not in INDEX_TYPES:
        return False
    if case.tile.dtype != case.dtype:
        return False
    if not extents_fit(case.tile):
        return False
    if true_capacity(case) == 0:  # 2.1: "an error at the call"
        return False
    return atomic_is_legal(case) and conflict_is_legal(case)


def extents_fit(tile: TileCase) -> bool:
    """Both valid extents >= 1, and valid <= padded."""
    return 1 <= tile.valid_rows <= tile.rows and 1 <= tile.valid_cols <= tile.cols


def atomic_is_legal(case: Case) -> bool:
    """2.3, the table of atomics; on cpu the contract of 2.5."""
    if case.op == "mgather" or case.atomic == "none":
        return True
    return case.dtype in ATOMIC_TYPES[case.target][case.atomic]


def conflict_is_legal(case: Case) -> bool:
    """2.5: only a5 has Default. A gather has no conflicts (section 2)."""
    return case.op == "mgather" or case.target == "a5" or case.conflict != "default"


def line_is_aligned(tile: TileCase) -> bool:
    """ND and NZ: Cols*sizeof % 32 == 0; DN: Rows*sizeof % 32 == 0."""
    contiguous = tile.rows if tile.layout == "dn" else tile.cols
    return contiguous * SIZEOF[tile.dtype] % 32 == 0


def same_valid_shape(left: TileCase, right: TileCase) -> bool:
    """Elem: the index has the tile's valid shape."""
    return left.valid_rows == right.valid_rows and left.valid_cols == right.valid_cols


def tiles_are_sound(case: Case) -> bool:
    """Vec tiles whose lines are aligned: the same sentence on a2a3 and on a5."""
    if case.tile.loc != "vec" or case.idx.loc != "vec":
        return False
    return line_is_aligned(case.tile) and line_is_aligned(case.idx)


def a2a3_rules(case: Case) -> bool:
    """The a2a3 column of 2.5."""
    tile, idx = case.tile, case.idx
    if not tiles_are_sound(case) or idx.layout != "nd":
        return False
    if case.coalesce == "row":
        if (idx.valid_rows, idx.valid_cols) != (1, tile.valid_rows):
            return False
    elif not same_valid_shape(idx, tile):
        return False
    if tile.layout == "nd" and case.table_layout == "nd":
        return True
    if tile.layout == "nz" and case.table_layout == "nz":
        return nz_rules(case)
    return False


def nz_rules(case: Case) -> bool:
    """2.5, row "NZ table"; the two rules about whole rows are about the bursts of Row (2.2)."""
    tile = case.tile
    c0 = fractal_columns(case.dtype)
    return (
        tile.fractal == 512
        and case.shape[3] == 16
        and case.shape[4] == c0
        and tile.cols % c0 == 0
        and tile.rows % 16 == 0
        and (case.coalesce == "elem" or (tile.cols >= nz_columns(case) and case.shape[1] < 4096))
    )


def a5_rules(case: Case) -> bool:
    """The a5 column of 2.5."""
    tile, idx = case.tile, case.idx
    if not tiles_are_sound(case):
        return False
    if tile.layout not in ("nd", "dn") or idx.layout not in ("nd", "dn"):
        return False
    if case.table_layout != "nd":
        return False
    if case.coalesce == "row":
        return a5_row_index_is_legal(case) and a5_row_table_is_packed(case)
    return same_valid_shape(idx, tile)


def a5_row_index_is_legal(case: Case) -> bool:
    """Valid [1,R] in ND or [R,1] in DN: "the crossed pairs compile and read padding"."""
    rows = case.tile.valid_rows
    if rows == 1:
        wanted = (1, 1)
    else:
        wanted = (1, rows) if case.idx.layout == "nd" else (rows, 1)
    return (case.idx.valid_rows, case.idx.valid_cols) == wanted


def a5_row_table_is_packed(case: Case) -> bool:
    """S4 == ValidCol, packed rows: the device multiplies by ValidCol whatever stride3 says."""
    return (
        case.shape[4] == case.tile.valid_cols
        and (case.shape[3] <= 1 or case.stride[3] == case.tile.valid_cols)
        and (case.shape[4] <= 1 or case.stride[4] == 1)
    )
