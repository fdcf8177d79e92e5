"""Does the checking catch mistakes? Flag pairs are left out, tiles shifted, index ranges widened, one at a time.

A mutant is caught when there is a finding that the original does not have. Where there is none, nothing is unordered:
all legal orders give one result, and that it equals the original's shows that the change cannot matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from ptokit.access.plan import Array
from ptokit.core.block import Block, flag_name
from ptokit.core.launch import launch
from ptokit.core.mutation import SHIFT, Mutation, Occurrence
from ptokit.core.pipes import Step
from ptokit.core.run import Run
from ptokit.errors import PtoValueError
from ptokit.findings import Finding, Severity, is_clean

Arguments = Callable[[], Sequence[Any]]
SCHEDULES = (("late", 0), ("program", 0), ("random", 1), ("random", 2))


class Fate(StrEnum):
    """What became of a mutant."""

    CAUGHT = "caught"
    EQUIVALENT = "equivalent"
    MISSED = "missed"


@dataclass(frozen=True)
class Mutant:
    """One change: what it is, at which lines, and the rooms of findings that should tell of it."""

    kind: str  # flag, barrier, flush, shift, range
    about: str
    lines: tuple[int, ...]
    rooms: str
    mutation: Mutation


@dataclass(frozen=True)
class Verdict:
    """A mutant, what became of it, and why."""

    mutant: Mutant
    fate: Fate
    reason: str
    findings: tuple[Finding, ...] = field(default=(), repr=False)

    def as_dict(self) -> dict[str, Any]:
        """The verdict in JSON's own types."""
        return {
            "kind": self.mutant.kind,
            "about": self.mutant.about,
            "lines": list(self.mutant.lines),
            "fate": str(self.fate),
            "reason": self.reason,
            "findings": [finding.as_dict() for finding in self.findings],
        }


@dataclass(frozen=True)
class Score:
    """All mutants of one launch."""

    verdicts: tuple[Verdict, ...]

    def count(self, fate: Fate) -> int:
        """How many ended so."""
        return sum(verdict.fate is fate for verdict in self.verdicts)

    @property
    def missed(self) -> list[Verdict]:
        """The mutants that change a result and that nothing tells of."""
        return [verdict for verdict in self.verdicts if verdict.fate is Fate.MISSED]


@dataclass(frozen=True)
class Original:
    """A kernel that is launched again and again, each time on fresh arguments."""

    kernel: Callable[..., Any]
    arguments: Arguments
    keywords: dict[str, Any]

    def play(self, schedule: str, seed: int, mutation: Mutation | None = None) -> tuple[Run, list[Array]]:
        """One run, and what the host holds afterwards."""
        given = list(self.arguments())
        keywords = {**self.keywords, "schedule": schedule, "seed": seed}
        run = launch(self.kernel, *given, **keywords, mutation=mutation)
        held = [np.array(one.memory if hasattr(one, "memory") else one) for one in given if _is_memory(one)]
        return run, held


def _is_memory(one: object) -> bool:
    return isinstance(one, np.ndarray) or hasattr(one, "memory")


def mutate(kernel: Callable[..., Any], arguments: Arguments, **keywords: Any) -> Score:
    """Mutate a kernel in every way; `arguments()` gives fresh arguments, the same every time.

    The kernel itself must be without errors and warnings: else there is nothing to hold the mutants against.
    """
    return Score(tuple(verdicts(kernel, arguments, **keywords)))


def verdicts(kernel: Callable[..., Any], arguments: Arguments, **keywords: Any) -> Iterator[Verdict]:
    """The verdicts one by one, as they are reached."""
    keywords = {name: value for name, value in keywords.items() if name not in ("schedule", "seed", "mutation")}
    original = Original(kernel, arguments, keywords)
    run, held = original.play("late", 0)
    if not is_clean(run.findings):
        worst = next(one for one in run.findings if one.severity is not Severity.NOTE)
        raise PtoValueError(f"the kernel has findings of its own, mend them first: {worst}")
    for mutant in mutants(run):
        yield _judge(original, mutant, held, run)


def mutants(run: Run) -> list[Mutant]:
    """Every change to try, from the record of a run."""
    return [*_flags(run), *_without(run, "pipe_barrier", "barrier", "SH"), *_flushes(run), *_shifts(run), *_ranges(run)]


def _occurrences(block: Block, name: str) -> dict[int, int]:
    """Per instruction of that name: which occurrence it is."""
    return {one.number: at for at, one in enumerate(other for other in block.instructions if other.name == name)}


def _flags(run: Run) -> Iterator[Mutant]:
    """Each pair of a set and its wait, by their places in the source."""
    found: dict[tuple[object, object], tuple[Step, Step, dict[int, set[Occurrence]]]] = {}
    for block in run.blocks:
        sets, waits = _occurrences(block, "set_flag"), _occurrences(block, "wait_flag")
        for step in block.steps:
            if step.word != "wait" or step.awaits is None:
                continue
            setter = step.awaits
            key = (setter.instruction.site, step.instruction.site)
            dropped = found.setdefault(key, (setter, step, {}))[2].setdefault(block.number, set())
            dropped |= {("set_flag", sets[setter.instruction.number]), ("wait_flag", waits[step.instruction.number])}
    for setter, step, dropped_by_block in found.values():
        assert step.flag is not None
        lines = (setter.instruction.site.line, step.instruction.site.line)
        mutation = Mutation({block: frozenset(dropped) for block, dropped in dropped_by_block.items()})
        yield Mutant("flag", f"without the pair {flag_name(step.flag)}", lines, "SH", mutation)


def _without(run: Run, name: str, kind: str, rooms: str) -> Iterator[Mutant]:
    """Each instruction of that name, by its place in the source."""
    found: dict[object, tuple[int, dict[int, set[Occurrence]]]] = {}
    for block in run.blocks:
        for number, at in _occurrences(block, name).items():
            site = block.instructions[number].site
            found.setdefault(site, (site.line, {}))[1].setdefault(block.number, set()).add((name, at))
    for line, by_block in found.values():
        mutation = Mutation({block: frozenset(dropped) for block, dropped in by_block.items()})
        yield Mutant(kind, f"without {name}", (line,), rooms, mutation)


def _flushes(run: Run) -> Iterator[Mutant]:
    yield from _without(run, "dcci", "flush", "H")
    yield from _without(run, "dsb", "flush", "H")


def _shifts(run: Run) -> Iterator[Mutant]:
    """Each tile, 32 bytes further on."""
    for tile in run.blocks[0].ub.tiles:
        about = f"{tile.name} {SHIFT} bytes further on"
        yield Mutant("shift", about, (tile.site.line,), "MISR", Mutation(shifted=tile.number))


def _ranges(run: Run) -> Iterator[Mutant]:
    """Each MSCATTER and MGATHER with an index one past the table: the first occurrence at each place."""
    told: set[object] = set()
    accesses = [one for one in run.blocks[0].instructions if one.name in ("mscatter", "mgather")]
    for at, one in enumerate(accesses):
        if one.site not in told:
            told.add(one.site)
            about = f"{one.name} with an index one past the table"
            yield Mutant("range", about, (one.site.line,), "I", Mutation(widened=at))


def _judge(original: Original, mutant: Mutant, held: list[Array], run: Run) -> Verdict:
    known = {(one.id, one.where, one.message) for one in run.findings}
    told: list[Finding] = []
    changed = ""
    for schedule, seed in SCHEDULES:
        mutated, holds = original.play(schedule, seed, mutant.mutation)
        told = [one for one in mutated.findings if (one.id, one.where, one.message) not in known]
        fitting = [one for one in told if one.id[4] in mutant.rooms]
        if fitting:
            return Verdict(mutant, Fate.CAUGHT, f"{fitting[0].id} at line {_line(fitting[0])}", tuple(fitting))
        if not changed and any(a.tobytes() != b.tobytes() for a, b in zip(held, holds, strict=True)):
            changed = schedule
    if changed:
        return Verdict(mutant, Fate.MISSED, f"under schedule {changed!r} the result is another one", tuple(told))
    return Verdict(
        mutant,
        Fate.EQUIVALENT,
        "no check has anything to say, and the result is the same under every schedule",
        tuple(told),
    )


def _line(finding: Finding) -> int:
    return finding.where.line if finding.where is not None else 0
