"""Which machine it was: a figure without it says nothing."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("ptokit", "numpy", "ml_dtypes", "torch", "jax", "xdsl", "mpi4py")


def describe() -> dict[str, str]:
    """CPU, cores, caches, memory, interpreter and the packages that take part."""
    told = {
        "cpu": _first(r"model name\s*:\s*(.+)", "/proc/cpuinfo") or platform.processor() or platform.machine(),
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "caches": _caches(),
        "memory": _memory(),
        "huge pages": _chosen("/sys/kernel/mm/transparent_hugepage/enabled"),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }
    for name in PACKAGES:
        try:
            told[name] = version(name)
        except PackageNotFoundError:
            continue
    return {key: value for key, value in told.items() if value}


def sentence() -> str:
    """The machine in one line."""
    told = describe()
    parts = [told["cpu"], f"{told['cores']} cores", told.get("caches", ""), told.get("memory", "")]
    return ", ".join(part for part in parts if part) + f"; Python {told['python']}"


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _first(pattern: str, path: str) -> str:
    found = re.search(pattern, _read(path))
    return found.group(1).strip() if found else ""


def _chosen(path: str) -> str:
    found = re.search(r"\[(\w+)\]", _read(path))
    return found.group(1) if found else ""


def _caches() -> str:
    found = []
    for index in range(4):
        place = f"/sys/devices/system/cpu/cpu0/cache/index{index}"
        level, kind, size = (_read(f"{place}/{name}").strip() for name in ("level", "type", "size"))
        if level and kind != "Instruction":
            found.append(f"L{level} {size}")
    return " ".join(found)


def _memory() -> str:
    kilobytes = _first(r"MemTotal:\s*(\d+)", "/proc/meminfo")
    return f"{int(kilobytes) / (1 << 20):.0f} GiB" if kilobytes else ""
