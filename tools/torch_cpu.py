"""Install the CPU build of PyTorch that the tests and measurements are written for, and nothing with CUDA in it.

`python tools/torch_cpu.py` says so where it cannot be had and goes on; with `--require` it stops.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version

WANTED = "2.13.0"
NOT_WANTED = ("nvidia", "cuda", "triton")
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")


def installed() -> bool:
    """The wanted version is there already."""
    try:
        return version("torch").partition("+")[0] == WANTED
    except PackageNotFoundError:
        return False


def planned() -> list[str]:
    """The packages that pip would install."""
    done = subprocess.run(
        [*PIP, "install", "--dry-run", "--report", "-", f"torch=={WANTED}"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "pip failed")
    return [item["metadata"]["name"].lower() for item in json.loads(done.stdout)["install"]]


def main() -> int:
    """Install it, or say why not."""
    if installed():
        return 0
    try:
        surplus = [name for name in planned() if name.startswith(NOT_WANTED)]
    except RuntimeError as trouble:
        why = str(trouble)
    else:
        if not surplus:
            print(f"installing PyTorch {WANTED} (CPU) ...")
            return subprocess.run([*PIP, "install", f"torch=={WANTED}"], check=False).returncode
        why = f"pip would bring {', '.join(sorted(surplus)[:3])}: that is not the CPU build"
    required = "--require" in sys.argv[1:]
    print(f"PyTorch {WANTED} is not installed: {why}.", "Stopped." if required else "What needs it is left out.")
    return int(required)


if __name__ == "__main__":
    sys.exit(main())
