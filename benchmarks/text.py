"""Programs as text: how fast they are read, printed and checked, and how long the command line takes to start.

There is no other reader of these forms to hold it against; the figures stand for themselves, as operations a second.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from benchmarks.frame import Contender, Workload
from ptokit.ir import parse
from ptokit.ir.check import check

HEAD = """module attributes {pto.target_arch = "a5"} {
func.func @update(%table: !pto.ptr<f32>, %grads: !pto.ptr<f32>, %rows: !pto.ptr<i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %tv = pto.make_tensor_view %table, shape = [%c64, %c16], strides = [%c16, %c1] : !pto.tensor_view<64x16xf32>
  %gv = pto.make_tensor_view %grads, shape = [%c8, %c16], strides = [%c16, %c1] : !pto.tensor_view<8x16xf32>
  %rv = pto.make_tensor_view %rows, shape = [%c1, %c8], strides = [%c8, %c1] : !pto.tensor_view<1x8xi32>
  %t = pto.partition_view %tv, offsets = [%c0, %c0], sizes = [%c64, %c16] : !pto.tensor_view<64x16xf32>
  %g = pto.partition_view %gv, offsets = [%c0, %c0], sizes = [%c8, %c16] : !pto.tensor_view<8x16xf32>
  %r = pto.partition_view %rv, offsets = [%c0, %c0], sizes = [%c1, %c8] : !pto.tensor_view<1x8xi32>
  %src = pto.alloc_tile : !pto.tile_buf<vec, 8x16xf32>
  %idx = pto.alloc_tile : !pto.tile_buf<vec, 1x8xi32>
"""
ROUND = """  pto.tload ins(%g : !pto.partition_tensor_view<8x16xf32>) outs(%src : !pto.tile_buf<vec, 8x16xf32>)
  pto.tload ins(%r : !pto.partition_tensor_view<1x8xi32>) outs(%idx : !pto.tile_buf<vec, 1x8xi32>)
  pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
  pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
  pto.tadd ins(%src, %src : !pto.tile_buf<vec, 8x16xf32>, !pto.tile_buf<vec, 8x16xf32>) outs(%src : !pto.tile_buf<vec, 8x16xf32>)
  pto.mscatter ins(%src, %idx : !pto.tile_buf<vec, 8x16xf32>, !pto.tile_buf<vec, 1x8xi32>) outs(%t : !pto.partition_tensor_view<64x16xf32>) {coalesce = #pto<coalesce row>, scatterOob = #pto<scatter_oob skip>}
  pto.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
  pto.wait_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
"""  # noqa: E501 - as it is written
TAIL = """  pto.barrier <PIPE_ALL>
  pto.dcci
  pto.dsb
  return
}
}
"""


def program(rounds: int) -> tuple[str, int]:
    """A text of so many rounds, and how many operations it has."""
    return HEAD + ROUND * rounds + TAIL, HEAD.count("= ") + 8 * rounds + 4


def workloads(quick: bool) -> Iterator[Workload]:
    """Reading, printing, checking, starting."""
    rounds = 20 if quick else 100
    text, count = program(rounds)
    module = parse(text)
    yield Workload(
        "T1",
        f"{count} operations",
        (
            Contender("parse", lambda: parse(text), ours=True),
            Contender("print as dps", lambda: module.to("dps"), ours=True),
            Contender("check on a5: rules, flags, memory", lambda: check(module, ("a5",)), ours=True),
        ),
        goal=f"parse {count / 2:.0f} ms (2,000 a second), check {count * 2:.0f} ms (500 a second)",
    )
    start = [sys.executable, "-m", "ptokit", "--help"]
    bare = [sys.executable, "-c", "pass"]
    yield Workload(
        "T2",
        "start of the command line",
        (
            Contender("python -c pass", lambda: subprocess.run(bare, check=True)),
            Contender("ptokit --help", lambda: subprocess.run(start, check=True, capture_output=True), ours=True),
        ),
        goal="300 ms",
    )
