"""`python -m benchmarks [SUITE ...]`: one run, all contenders interleaved, medians, results checked for equality."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from rich.console import Console

from benchmarks import report
from benchmarks.frame import Row, UnequalResultsError, Workload, measure

FOLDER = Path(__file__).resolve().parent
NOT_SUITES = {"__init__", "__main__", "frame", "machine", "report", "peer"}


def suites() -> list[str]:
    """Every module with `workloads(quick)`."""
    return sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in NOT_SUITES)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        epilog="example: python -m benchmarks access --quick",
    )
    parser.add_argument("suite", nargs="*", help=f"one or more of {', '.join(suites())}; default: all")
    parser.add_argument(
        "--quick", action="store_true", help="smaller workloads and 3 repetitions: to see that it works"
    )
    parser.add_argument("--repetitions", type=int, metavar="N", help="per contender (default 9, 3 with --quick)")
    parser.add_argument("--only", action="append", metavar="ID", help="only workloads whose id starts so (repeatable)")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where JSON and SVG go (default docs/benchmarks; nothing is written with --quick or --only unless given)",
    )
    return parser.parse_args()


def main() -> int:
    """Measure the chosen suites."""
    given, console = arguments(), Console(width=None if sys.stdout.isatty() else 120)
    unknown = [name for name in given.suite if name not in suites()]
    if unknown:
        console.print(f"there is no suite {unknown[0]!r}; there are {', '.join(suites())}")
        return 2
    if given.repetitions is not None and given.repetitions < 1:
        console.print(f"--repetitions {given.repetitions}: at least 1 is wanted")
        return 2
    repetitions = given.repetitions or (3 if given.quick else 9)
    partial = given.quick or given.only
    folder = given.out or (None if partial else FOLDER.parent / "docs" / "benchmarks")
    for name in given.suite or suites():
        try:
            rows = run_suite(name, given.quick, repetitions, given.only, console)
        except UnequalResultsError as unequal:
            console.print(f"[red]stopped:[/red] {unequal}")
            return 1
        report.show(name, rows, console)
        limits = limits_of(name, console)
        if folder is not None and rows:
            settings = {"repetitions": repetitions, "quick": given.quick}
            for path in report.write(name, rows, folder, settings, limits):
                console.print(f"wrote {path}")
    return 0


def limits_of(name: str, console: Console) -> dict[str, str]:
    """What the machine itself can do, where the suite measures it."""
    measure_limits = getattr(import_module(f"benchmarks.{name}"), "limits", None)
    if measure_limits is None:
        return {}
    with console.status("the limits of this machine ..."):
        limits: dict[str, str] = measure_limits()
    for what, rate in limits.items():
        console.print(f"  {what}: {rate}")
    return limits


def run_suite(name: str, quick: bool, repetitions: int, only: list[str] | None, console: Console) -> list[Row]:
    """All workloads of one suite, with progress; a workload lives only while it is measured."""
    every: Iterable[Workload] = import_module(f"benchmarks.{name}").workloads(quick)
    rows: list[Row] = []
    with console.status(f"{name} ...") as status:
        for workload in every:
            if only and not any(workload.id.startswith(prefix) for prefix in only):
                continue
            status.update(f"{name}: {workload.id} {workload.title}")
            rows += measure(workload, repetitions)
    return rows


if __name__ == "__main__":
    sys.exit(main())
