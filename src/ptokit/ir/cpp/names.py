"""Names of C++: what a text calls a value, as an identifier that nothing else has."""

from __future__ import annotations

import re

_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do
double dynamic_cast else enum explicit export extern false final float for friend goto if import inline int long
module mutable namespace new noexcept not not_eq nullptr operator or or_eq override private protected public register
reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch template this
thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
"""
_VENDOR = """
AICORE BLayout Coalesce CmpMode CompactMode DSB_DDR ENTIRE_DATA_CACHE FlushScatterOutput GatherOOB GlobalTensor Layout
MGATHER MSCATTER PadValue RoundMode SLayout ScatterAtomicOp ScatterConflict ScatterOOB Shape Stride Tile TileType
bfloat16_t blocks comm dcci dsb dynUBufSize float8_e4m3_t float8_e5m2_t get_block_idx get_block_num half hifloat8_t
int8_t int16_t int32_t int64_t main pipe_barrier pto set_flag std stream uint8_t uint16_t uint32_t uint64_t wait_flag
"""
RESERVED = frozenset((*_KEYWORDS.split(), *_VENDOR.split()))
"""Words that C++ or the vendor's headers have taken, and those that the launch wrapper uses itself."""


def identifier(name: str) -> str:
    """The name with what C++ does not allow escaped; intrinsics and macros are in capitals, so a name is not.

    >>> identifier("acc.0"), identifier("7"), identifier("float"), identifier("TADD")
    ('acc_0', 'v7', 'float_', 'TADD_')
    """
    word = re.sub(r"\W", "_", name, flags=re.ASCII)
    word = re.sub(r"__+", "_", word)
    if not word or word[0].isdigit() or re.match(r"_[A-Z]", word):
        word = f"v{word}"
    is_taken = word in RESERVED or re.fullmatch(r"(?:[TM]|PIPE_|EVENT_ID)[A-Z0-9_]{3,}", word)
    return f"{word}_" if is_taken else word


def camel(name: str) -> str:
    """The name as types are called.

    >>> camel("grad_rows")
    'GradRows'
    """
    return "".join(part[:1].upper() + part[1:] for part in identifier(name).split("_") if part)


class Names:
    """The names of one function: each is given once."""

    def __init__(self, taken: set[str] | None = None) -> None:
        self.taken = set(taken or ())

    def fresh(self, name: str) -> str:
        """The name, or the first numbered one that is free.

        >>> names = Names()
        >>> names.fresh("x"), names.fresh("x")
        ('x', 'x_1')
        """
        first = found = identifier(name)
        number = 0
        while found in self.taken:
            number += 1
            found = f"{first.rstrip('_')}_{number}"
        self.taken.add(found)
        return found


class Functions(Names):
    """The names of a file; `function` gives the C++ name of a function of the text."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[str, str] = {}

    def function(self, name: str, wanted: str | None = None) -> str:
        """The same name for the same function.

        >>> names = Functions()
        >>> names.function("main", "lookup"), names.function("main")
        ('lookup', 'lookup')
        """
        if name not in self.known:
            self.known[name] = self.fresh(wanted or name)
        return self.known[name]


class Local(Names):
    """The names of one function of a file."""

    def __init__(self, file: Functions) -> None:
        super().__init__(file.taken)
        self.function = file.function
