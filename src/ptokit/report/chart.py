"""Lines over a number that grows, both axes logarithmic: as an SVG, and in letters for a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from ptokit.report.perfetto import replace

Told = Callable[[float], str]

COLOURS = ("#2f6fb5", "#c2571a", "#2e8b57", "#8a4fbf", "#b0892b", "#7a7a7a")
MARKS = "abcdefgh"


@dataclass(frozen=True)
class Line:
    """A name, and points from left to right; every number is above zero."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Axis:
    """From the least to the most of some numbers, on a logarithmic scale of so many units."""

    least: float
    most: float
    length: float

    @classmethod
    def over(cls, numbers: Sequence[float], length: float) -> Axis:
        """An axis that has room for all of them."""
        return cls(math.log10(min(numbers)), math.log10(max(numbers)), length)

    def at(self, number: float) -> float:
        """How far along; in the middle where all numbers are one."""
        room = self.most - self.least
        return self.length * ((math.log10(number) - self.least) / room if room else 0.5)

    def decades(self) -> list[float]:
        """The powers of ten on the axis, or its ends where there are none."""
        found = [10.0**power for power in range(math.ceil(self.least), math.floor(self.most) + 1)]
        return found or [10**self.least, 10**self.most]


def _axes(lines: Sequence[Line], width: float, height: float) -> tuple[Axis, Axis]:
    xs, ys = zip(*(point for line in lines for point in line.points), strict=True)
    return Axis.over(xs, width), Axis.over(ys, height)


def _thinned(lines: Sequence[Line], most: int) -> list[float]:
    """Numbers to write below the axis: those of the points, few enough to be read."""
    xs = sorted({x for line in lines for x, _ in line.points})
    step = -(-len(xs) // most)
    return xs[::step]


# SVG

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 860, 440, 80, 44, 180, 46


def svg(title: str, across: str, lines: Sequence[Line], told: Told) -> str:
    """The chart as a picture; `told` writes the numbers of the upright axis.

    >>> picture = svg("time", "ranks", [Line("flat", ((2, 1e-6), (4, 2e-6)))], str)
    >>> picture.startswith("<svg"), picture.count("<circle")
    (True, 2)
    """
    x, y = _axes(lines, WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM)
    body = [*_grid(lines, x, y, told), f'<text x="10" y="20" class="t">{escape(title)}</text>']
    body.append(f'<text x="{LEFT + x.length / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{escape(across)}</text>')
    for number, line in enumerate(lines):
        body += _drawn(line, number, x, y)
    style = "text{font-size:11px;fill:#333}.t{font-size:13px;font-weight:bold}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">'
        f'<style>{style}</style><rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>' + "".join(body) + "</svg>\n"
    )


def _grid(lines: Sequence[Line], x: Axis, y: Axis, told: Told) -> list[str]:
    base = HEIGHT - BOTTOM
    made = []
    for number in y.decades():
        at = base - y.at(number)
        made.append(f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        made.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{escape(told(number))}</text>')
    for number in _thinned(lines, 10):
        at = LEFT + x.at(number)
        made.append(f'<path d="M{at:.1f} {TOP}V{base}" stroke="#eee"/>')
        made.append(f'<text x="{at:.1f}" y="{base + 16}" text-anchor="middle">{number:,.0f}</text>')
    return made


def _drawn(line: Line, number: int, x: Axis, y: Axis) -> list[str]:
    colour, base = COLOURS[number % len(COLOURS)], HEIGHT - BOTTOM
    places = [(LEFT + x.at(one), base - y.at(other)) for one, other in line.points]
    # Lines that lie on one another stay to be seen: each further one is dashed.
    dashes = f' stroke-dasharray="{max(8 - number, 1)} {2 + number}"' if number else ""
    path = " ".join(f"{one:.1f},{other:.1f}" for one, other in places)
    legend = TOP + 16 * number
    return [
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>',
        *(f'<circle cx="{one:.1f}" cy="{other:.1f}" r="2.5" fill="{colour}"/>' for one, other in places),
        f'<path d="M{WIDTH - RIGHT + 12} {legend}h22" stroke="{colour}" stroke-width="2"{dashes}/>',
        f'<text x="{WIDTH - RIGHT + 40}" y="{legend + 4}">{escape(line.name)}</text>',
    ]


def write_svg(path: Path, picture: str) -> Path:
    """Put it into a file, as a whole or not at all."""
    replace(path, picture)
    return path


# Letters


def letters(across: str, lines: Sequence[Line], told: Told, width: int = 64, height: int = 14) -> list[str]:
    """The chart for a terminal: a letter for each line, `*` where several meet.

    >>> flat, tree = Line("flat", ((1, 1.0), (100, 100.0))), Line("tree", ((1, 1.0), (100, 1.0)))
    >>> print(*letters("ranks", [flat, tree], str, 21, 3), sep="\\n")  # doctest: +NORMALIZE_WHITESPACE
    100.0 |                    a
     10.0 |
      1.0 |*                   b
          +---------------------
           1                 100
           ranks
      a flat
      b tree
    """
    x, y = _axes(lines, width - 1, height - 1)
    rows = [[" "] * width for _ in range(height)]
    for mark, line in zip(MARKS, lines, strict=False):
        for one, other in line.points:
            at, up = round(x.at(one)), round(y.at(other))
            rows[up][at] = mark if rows[up][at] in (" ", mark) else "*"
    ticks = {round(y.at(number)): told(number) for number in y.decades()}
    wide = max(len(word) for word in ticks.values())
    chart = [f"{ticks.get(up, ''):>{wide}} |{''.join(rows[up])}".rstrip() for up in reversed(range(height))]
    below = [f"{'':{wide}} +{'-' * width}", f"{'':{wide}}  {_written(lines, x, width)}", f"{'':{wide}}  {across}"]
    legend = [f"  {mark} {line.name}" for mark, line in zip(MARKS, lines, strict=False)]
    return [*chart, *below, *legend]


def _written(lines: Sequence[Line], x: Axis, width: int) -> str:
    """The numbers below the axis, as many as have room."""
    line = ""
    for number in _thinned(lines, 8):
        word = f"{number:,.0f}"
        at = max(0, min(round(x.at(number)) - len(word) // 2, width - len(word)))
        if not line or at > len(line):
            line = f"{line:<{at}}{word}"
    return line
