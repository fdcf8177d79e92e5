"""A battery of calls, run as a program: prints one digest of all results. The environment chooses CPU and threads."""

from __future__ import annotations

import hashlib

import numpy as np

import ptokit as pto
from cases import contents
from ptokit import arrays
from ptokit.dtypes import ELEMENT_TYPES, element_type

TYPES = [name for name in ELEMENT_TYPES if name not in arrays.MOVED_ONLY]


def digest() -> str:
    """Every type, operation and policy, by the queue and by the direct path, on one thread and on several."""
    rng = np.random.default_rng(12)
    told = hashlib.sha256()
    for name in TYPES:
        kind = element_type(name)
        for slots, width, count in ((40, 1, 100), (40, 1, 5000), (40, 37, 300), (1 << 16, 64, 1 << 17)):
            size = (slots + count) * width
            if size > 1 << 20:  # shared among threads, and written around the caches
                made = rng.integers(0, 100, size).astype(np.float32).astype(kind.numpy)
            else:
                made = np.array(contents(rng, name, size, "numbers"), kind.bits).view(kind.numpy)
            table, src = made[: slots * width].reshape(slots, width), made[slots * width :].reshape(count, width)
            idx = rng.integers(-5, slots + 5, count).astype(rng.choice(["int32", "uint32", "int64"]))
            for atomic in ("none", "add", "max", "min"):
                for oob in ("skip", "clamp", "wrap"):
                    result = pto.scatter(table.copy(), src, idx, atomic=atomic, oob=oob)
                    result[np.isnan(result.astype(np.float32))] = 0  # the payload of a NaN is not promised
                    told.update(result.tobytes())
            told.update(pto.gather(table, idx, oob="zero").tobytes())
    # No slots at all: whatever is read or written here is memory of somebody else.
    nothing, far = np.zeros((0, 3), np.int8), np.arange(1, 40) << 40
    told.update(pto.gather(nothing, far, oob="zero").tobytes())
    pto.scatter(nothing, np.ones((39, 3), np.int8), far, oob="skip")
    return told.hexdigest()


if __name__ == "__main__":
    print(arrays.level(), pto.get_num_threads(), digest())
