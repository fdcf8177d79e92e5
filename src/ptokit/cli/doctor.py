"""`ptokit doctor`: what this installation can do, what it lacks, and how to get it."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click

from ptokit import arrays
from ptokit.cli import console


@dataclass(frozen=True)
class Answer:
    """One thing that was looked at: whether it is well, what was seen, and what to do where it is not."""

    about: str
    state: str  # "ok", "missing" (something optional), or "wrong"
    seen: str
    fix: str = ""


def compiled_module() -> Answer:
    """The native kernels of scatter and gather."""
    about = "compiled module"
    try:
        import_module("ptokit._native")
    except ModuleNotFoundError:
        return Answer(
            about,
            "missing",
            "ptokit was installed without it: scatter and gather are right, but slow",
            "Install a C++20 compiler, then: PTOKIT_REQUIRE_NATIVE=1 pip install --no-cache-dir --force-reinstall "
            "ptokit",
        )
    except ImportError as broken:
        return Answer(about, "wrong", f"it cannot be loaded: {broken}", "Install ptokit anew with this very Python.")
    return Answer(about, "ok", f"loaded; this CPU has {', '.join(arrays.levels())}")


def instruction_set() -> Answer:
    """Which kernels are used, and whether that is what was asked for."""
    asked, used = os.environ.get("PTOKIT_CPU"), arrays.level()
    if asked and asked not in arrays.levels():
        return Answer(
            "instruction set",
            "wrong",
            f"PTOKIT_CPU={asked} cannot be had, {used} is used",
            f"Set PTOKIT_CPU to one of: {', '.join(arrays.levels())}; or unset it.",
        )
    return Answer("instruction set", "ok", f"{used}{' (asked for by PTOKIT_CPU)' if asked else ''}")


def threads() -> Answer:
    """How many threads a call may use."""
    asked, count = os.environ.get("PTOKIT_NUM_THREADS"), arrays.get_num_threads()
    if asked and asked.strip() != str(count):
        return Answer(
            "threads",
            "wrong",
            f"PTOKIT_NUM_THREADS={asked} cannot be used, {count} are",
            "Set it to a whole number from 1 to 256.",
        )
    return Answer("threads", "ok", f"{count} of {arrays.usable_cpus()} usable CPUs")


def huge_pages() -> Answer:
    """Whether large results lie on huge pages: fewer page faults, fewer misses of the address cache."""
    try:
        with open("/sys/kernel/mm/transparent_hugepage/enabled", encoding="ascii") as setting:  # noqa: PTH123
            chosen = setting.read().partition("[")[2].partition("]")[0]
    except OSError:
        return Answer(
            "huge pages", "missing", "this system does not say", "Nothing: they only make large calls faster."
        )
    if chosen == "never":
        return Answer("huge pages", "missing", "switched off", "Allow them (madvise) in the kernel's settings.")
    return Answer("huge pages", "ok", chosen)


def package(name: str, gives: str, fix: str) -> Callable[[], Answer]:
    """An optional package."""

    def look() -> Answer:
        try:
            return Answer(name, "ok", f"{version(name)}: {gives}")
        except PackageNotFoundError:
            return Answer(name, "missing", f"not installed: no {gives}", fix)

    return look


def engine(about: str, look: str) -> Callable[[], Answer]:
    """An engine of ranks, or a part of one."""

    def answer() -> Answer:
        found = getattr(import_module("ptokit.comm.usable"), look)()
        return Answer(about, "ok" if found.is_well else "missing", found.seen, found.fix)

    return answer


HIF8_FIX = (
    "pip install 'ptokit[hif8]'" if sys.version_info < (3, 13) else "There are wheels for Python 3.11 and 3.12 only."
)

QUESTIONS: tuple[Callable[[], Answer], ...] = (
    compiled_module,
    instruction_set,
    threads,
    huge_pages,
    package("en_dtypes", "hifloat8", HIF8_FIX),
    package("xdsl", "programs as text: check, run, convert, judge", "pip install 'ptokit[ir]'"),
    package("pygls", "the language server: ptokit lsp", "pip install 'ptokit[lsp]'"),
    package("torch", "PyTorch tensors as operands", "Nothing, unless you use PyTorch."),
    engine("ranks: shared memory", "shared_memory"),
    engine("ranks: other processes", "foreign_memory"),
    engine("ranks: MPI", "mpi"),
    package("jax", "JAX arrays as tables of a gather", "Nothing, unless you use JAX."),
)
"""Everything that is looked at, in this order."""

SIGNS = {"ok": ("ok", "green"), "missing": ("--", "yellow"), "wrong": ("!!", "red")}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def command(as_json: bool) -> None:
    """Look at this installation: the compiled module, the CPU, threads, optional packages, the engines of ranks.

    Exit code 1 where something is wrong, 0 where things are well or only optional ones are missing.

    \b
    Examples:
      ptokit doctor
      ptokit doctor --json
      PTOKIT_CPU=baseline ptokit doctor
    """
    answers = [look() for look in QUESTIONS]
    if as_json:
        click.echo(json.dumps({**_self(), "answers": [asdict(one) for one in answers]}, indent=2))
    else:
        _show(answers)
    sys.exit(any(one.state == "wrong" for one in answers))


def _self() -> dict[str, Any]:
    """Versions of what is always there."""
    return {
        "ptokit": version("ptokit"),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "ml_dtypes": version("ml_dtypes"),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _show(answers: list[Answer]) -> None:
    to = console()
    told = _self()
    to.print(
        f"ptokit {told['ptokit']} on Python {told['python']}, NumPy {told['numpy']}, ml_dtypes {told['ml_dtypes']}, "
        f"{told['system']}",
        style="bold",
        soft_wrap=True,
    )
    for one in answers:
        sign, colour = SIGNS[one.state]
        to.print(f"  [{colour}]{sign}[/{colour}] [bold]{one.about}[/bold]: ", end="")
        to.print(one.seen, markup=False, soft_wrap=True)
        if one.fix and one.state != "ok":
            to.print(f"     {one.fix}", style="dim", markup=False, soft_wrap=True)
