"""g++ over what is converted, against declarations of the vendor's intrinsics (tests/vendor_stub)."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

STUB = Path(__file__).parent / "vendor_stub"
COMPILER = shutil.which("g++")
QUIET = ("-Wno-unused-variable", "-Wno-unused-local-typedefs", "-Wno-unused-parameter")
LAUNCH = re.compile(r"(\w+)<<<(.*?), (.*?), (.*?)>>>\((.*?)\);")


def complaints(text: str, target: str) -> str:
    """What a C++17 compiler says of it: nothing where it is right."""
    assert COMPILER is not None
    # Only the vendor's compiler knows <<<..>>>.
    plain = LAUNCH.sub(lambda found: f"stub_launch({', '.join(word for word in found.groups() if word)});", text)
    flags = ["-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *QUIET]
    defines = ["-D__DAV_VEC__", "-D__DAV_CUBE__", f"-DSTUB_{target.upper()}"]
    command = [COMPILER, *flags, *defines, f"-I{STUB}", "-x", "c++", "-"]
    return subprocess.run(command, input=plain, text=True, capture_output=True, check=False).stderr
