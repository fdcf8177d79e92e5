"""Small kernels as people write them, each with its arguments and what must come out.

Every case of `CASES` is right: under any schedule it gives the expected arrays, no error and no warning.
The kernels of `kernels.broken` are wrong, each in one way.
"""

from kernels import blocks, collectives, elements, gathers, onchip, pipelines, rows, sequences, tables
from kernels.frame import Case

CASES: list[Case] = [
    *rows.CASES,
    *tables.CASES,
    *elements.CASES,
    *gathers.CASES,
    *onchip.CASES,
    *pipelines.CASES,
    *sequences.CASES,
    *blocks.CASES,
    *collectives.CASES,
]

__all__ = ["CASES", "Case"]
