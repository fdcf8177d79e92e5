"""What a user can get wrong with pto.scatter and pto.gather: one clear exception, and nothing was written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ptokit as pto

Array = np.ndarray[Any, Any]


def rows() -> Array:
    return np.zeros((4, 3), np.float32)


def ones(*shape: int) -> Array:
    return np.ones(shape, np.float32)


def read_only() -> Array:
    table = rows()
    table.flags.writeable = False
    return table


def unaligned() -> Array:
    return np.zeros(49, np.uint8)[1:].view(np.float32).reshape(4, 3)


def overlapping_rows() -> Array:
    return np.lib.stride_tricks.as_strided(np.zeros(12, np.float32), (4, 3), (8, 4))


def shared() -> tuple[Array, Array]:
    both = np.zeros((4, 8), np.float32)
    return both[:, :3], both[:2, 2:5]


SCATTERS: list[tuple[str, Callable[[], object], type[Exception], str]] = [
    (
        "past the end",
        lambda: pto.scatter(rows(), ones(2, 3), [1, 4]),
        IndexError,
        r"idx[1] is 4, and the table has 4 rows",
    ),
    ("negative", lambda: pto.scatter(rows(), ones(1, 3), [-1]), IndexError, "not counted from the end"),
    (
        "the first of several, in two dimensions",
        lambda: pto.scatter(rows(), ones(2, 2, 3), np.array([[0, 1], [7, 9]], np.uint32)),
        IndexError,
        "idx[1, 0] is 7",
    ),
    ("elements", lambda: pto.scatter(rows(), ones(1), [12], coalesce="elem"), IndexError, "the table has 12 elements"),
    ("no rows to clamp to", lambda: pto.scatter(rows()[:0], ones(1, 3), [0], oob="clamp"), ValueError, "needs a slot"),
    ("a float index", lambda: pto.scatter(rows(), ones(1, 3), [1.0]), TypeError, "float64"),
    ("a mask", lambda: pto.scatter(rows(), ones(1, 3), np.array([True])), TypeError, "idx holds dtype bool"),
    ("a narrow index", lambda: pto.scatter(rows(), ones(1, 3), np.array([1], np.int16)), TypeError, "dtype int16"),
    ("a foreign index", lambda: pto.scatter(rows(), ones(1, 3), np.array([1], ">i4")), TypeError, "foreign byte order"),
    ("a huge listed index", lambda: pto.scatter(rows(), ones(1, 3), [2**63]), TypeError, "pass a uint64 array"),
    ("a ragged index", lambda: pto.scatter(rows(), ones(1, 3), [[1], [1, 2]]), ValueError, "do not make an array"),
    ("a list as table", lambda: pto.scatter([1, 2], ones(1), [0]), TypeError, "table is a list, which has no dtype"),
    ("a list as source", lambda: pto.scatter(rows(), [[1, 2, 3]], [0]), TypeError, "src is a list"),
    ("a string as table", lambda: pto.scatter("abc", ones(1), [0]), TypeError, "table is a str"),
    ("None as source", lambda: pto.scatter(rows(), None, [0]), TypeError, "src is a NoneType"),
    ("another type", lambda: pto.scatter(rows(), np.ones((1, 3)), [0]), TypeError, "src holds dtype float64"),
    ("a 64-bit table", lambda: pto.scatter(np.zeros((4, 3)), np.ones((1, 3)), [0]), TypeError, "float64"),
    (
        "the other e4m3",
        lambda: pto.scatter(np.zeros((4, 3), ml_dtypes.float8_e4m3), np.zeros((1, 3), ml_dtypes.float8_e4m3), [0]),
        TypeError,
        "float8_e4m3fn",
    ),
    ("a foreign table", lambda: pto.scatter(rows().astype(">f4"), ones(1, 3), [0]), TypeError, "foreign byte order"),
    ("a missing row axis", lambda: pto.scatter(rows(), ones(3), [0]), ValueError, "(1,) + (3,) is wanted: (1, 3)"),
    ("a source to be broadcast", lambda: pto.scatter(rows(), ones(1, 3), [0, 1]), ValueError, "src has shape (1, 3)"),
    (
        "elements of another shape",
        lambda: pto.scatter(rows(), ones(2), [[0, 1]], coalesce="elem"),
        ValueError,
        "idx.shape is wanted: (1, 2)",
    ),
    (
        "a number as table",
        lambda: pto.scatter(np.float32(1) + np.zeros((), np.float32), ones(1), [0]),
        ValueError,
        "no axis 0",
    ),
    (
        "a read-only table",
        lambda: pto.scatter(read_only(), ones(1, 3), [0]),
        ValueError,
        "table, shape (4, 3) of float32, is read-only",
    ),
    ("a table of bytes", lambda: pto.scatter(bytes(8), np.zeros(1, np.uint8), [0]), ValueError, "is read-only"),
    (
        "columns apart",
        lambda: pto.scatter(np.zeros((4, 6), np.float32)[:, ::2], ones(1, 3), [0]),
        ValueError,
        "hidden copy",
    ),
    ("elements apart", lambda: pto.scatter(rows()[:, :2], ones(1), [0], coalesce="elem"), ValueError, "hidden copy"),
    ("an unaligned table", lambda: pto.scatter(unaligned(), ones(1, 3), [0]), ValueError, "not aligned"),
    ("rows on rows", lambda: pto.scatter(overlapping_rows(), ones(1, 3), [0]), ValueError, "overlap in memory"),
    ("a source in the table", lambda: pto.scatter(*shared(), [0, 1]), ValueError, "src shares memory with the table"),
    (
        "indices in the table",
        lambda: (lambda t: pto.scatter(t, np.ones(4, np.int32), t, coalesce="elem"))(np.zeros(4, np.int32)),
        ValueError,
        "idx shares memory with the table",
    ),
    (
        "a sum of float8",
        lambda: pto.scatter(
            np.zeros(4, ml_dtypes.float8_e5m2), np.zeros(1, ml_dtypes.float8_e5m2), [0], coalesce="elem", atomic="add"
        ),
        TypeError,
        "float8_e5m2, which is only moved",
    ),
    ("an unknown policy", lambda: pto.scatter(rows(), ones(1, 3), [0], oob="clmp"), ValueError, "Did you mean 'clamp'"),
    (
        "a policy of targets",
        lambda: pto.scatter(rows(), ones(1, 3), [0], oob="undefined"),
        ValueError,
        "nothing is undefined",
    ),
    (
        "its enum",
        lambda: pto.scatter(rows(), ones(1, 3), [0], oob=pto.ScatterOOB.Undefined),
        ValueError,
        "nothing is undefined",
    ),
    (
        "a policy of gathers",
        lambda: pto.scatter(rows(), ones(1, 3), [0], oob="zero"),
        ValueError,
        "'skip' drops the write",
    ),
    (
        "the enum of gathers",
        lambda: pto.scatter(rows(), ones(1, 3), [0], oob=pto.GatherOOB.Clamp),
        TypeError,
        "GatherOOB",
    ),
    ("an integer policy", lambda: pto.scatter(rows(), ones(1, 3), [0], atomic=1), TypeError, "atomic=1 is an int"),
    ("a misspelt keyword", lambda: pto.scatter(rows(), ones(1, 3), [0], obb="skip"), TypeError, "Did you mean 'oob'"),
    ("an operand too few", lambda: pto.scatter(rows(), ones(1, 3)), TypeError, "idx is missing"),
    (
        "a policy by place",
        lambda: pto.scatter(rows(), ones(1, 3), [0], "row"),
        TypeError,
        "scatter takes table, src, idx",
    ),
]

GATHERS: list[tuple[str, Callable[[], object], type[Exception], str]] = [
    ("past the end", lambda: pto.gather(rows(), [[0], [4]]), IndexError, "idx[1, 0] is 4"),
    ("into a small array", lambda: pto.gather(rows(), [0, 1], out=ones(1, 3)), ValueError, "out has shape (1, 3)"),
    ("into another type", lambda: pto.gather(rows(), [0], out=np.zeros((1, 3))), TypeError, "out holds dtype float64"),
    (
        "into read-only memory",
        lambda: pto.gather(rows(), [0, 1, 2, 3], out=read_only()),
        ValueError,
        "out, shape (4, 3)",
    ),
    ("into columns apart", lambda: pto.gather(rows(), [0], out=ones(1, 6)[:, ::2]), ValueError, "is not contiguous"),
    ("into one row", lambda: pto.gather(rows(), [0, 1], out=np.broadcast_to(ones(1, 3), (2, 3))), ValueError, "out"),
    ("into unaligned memory", lambda: pto.gather(rows(), [0] * 4, out=unaligned()), ValueError, "is not contiguous"),
    ("into the table", lambda: (lambda t: pto.gather(t, [1, 0, 3, 2], out=t))(rows()), ValueError, "out shares memory"),
    (
        "into the indices",
        lambda: (lambda i: pto.gather(np.arange(9, dtype=np.int32), i, coalesce="elem", out=i))(np.ones(4, np.int32)),
        ValueError,
        "out shares memory with idx",
    ),
    ("too many dimensions", lambda: pto.gather(rows(), np.zeros((1,) * 64, int)), ValueError, "the result would have"),
    ("skip", lambda: pto.gather(rows(), [0], oob="skip"), ValueError, "'zero' writes zero"),
    ("an atomic", lambda: pto.gather(rows(), [0], atomic="add"), TypeError, "gather has no keyword 'atomic'"),
    ("a masked array", lambda: pto.gather(np.ma.masked_array(rows()), [0]), TypeError, "masked"),
]


@pytest.mark.parametrize(
    ("call", "kind", "says"),
    [c[1:] for c in SCATTERS + GATHERS],
    ids=[c[0] for c in SCATTERS] + [f"gather {c[0]}" for c in GATHERS],
)
def test_a_mistake_is_one_clear_exception(call: Callable[[], object], kind: type[Exception], says: str) -> None:
    with pytest.raises(kind) as told:
        call()
    assert isinstance(told.value, pto.PtoError)
    assert says in str(told.value)


def test_on_an_index_error_the_table_is_untouched() -> None:
    for count in (3, 5000, 1 << 20):
        table = np.zeros(100, np.int32)
        idx = np.zeros(count, np.int64)
        idx[-1] = 100
        with pytest.raises(pto.PtoIndexError, match=rf"idx\[{count - 1}\] is 100"):
            pto.scatter(table, np.ones(count, np.int32), idx, coalesce="elem")
        assert not table.any()
        out = np.full(count, 7, np.int32)
        with pytest.raises(pto.PtoIndexError):
            pto.gather(table, idx, coalesce="elem", out=out)
        assert (out == 7).all()


def test_views_that_only_interleave_do_not_overlap() -> None:
    both = np.zeros((4, 6), np.float32)
    both[:, 3:] = np.arange(12).reshape(4, 3)
    pto.scatter(both[:, :3], both[:, 3:], [3, 2, 1, 0])
    assert both[:, 0].tolist() == [9, 6, 3, 0]


@pytest.mark.parametrize(
    ("count", "kind"), [(0, ValueError), (-1, ValueError), (1.5, TypeError), ("2", TypeError), (True, TypeError)]
)
def test_a_number_of_threads_that_is_none(count: Any, kind: type[Exception]) -> None:
    before = pto.get_num_threads()
    with pytest.raises(kind, match="set_num_threads"):
        pto.set_num_threads(count)
    assert pto.get_num_threads() == before


def test_a_number_of_threads_is_passed_by_its_name() -> None:
    with pytest.raises(pto.PtoTypeError, match="set_num_threads has no keyword 'm'"):
        pto.set_num_threads(m=2)  # type: ignore[call-arg]


def test_more_threads_than_there_can_be_are_as_many_as_there_can_be() -> None:
    before = pto.get_num_threads()
    try:
        for many in (10**6, 10**30):
            pto.set_num_threads(many)
            assert pto.get_num_threads() == 256
    finally:
        pto.set_num_threads(before)
