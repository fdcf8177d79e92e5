"""A lookup with a double buffer, in Python: `python examples/lookup.py`; also `ptokit trace examples/lookup.py`."""

import numpy as np

import ptokit as pto

CHUNKS = 6


def lookup(k, table, rows, out):
    index = [k.tile("int32", 1, 8) for _ in range(2)]
    row = [k.tile("float32", 8, 16) for _ in range(2)]
    for half in range(2):
        k.set_flag("V", "MTE2", half)
        k.set_flag("MTE3", "V", half)
    for chunk in range(CHUNKS):
        half = chunk % 2
        k.wait_flag("V", "MTE2", half)
        k.tload(index[half], rows[chunk : chunk + 1, :])
        k.set_flag("MTE2", "V", half)
        k.wait_flag("MTE2", "V", half)
        k.wait_flag("MTE3", "V", half)
        k.mgather(row[half], table, index[half], coalesce="row")
        k.set_flag("V", "MTE2", half)
        k.set_flag("V", "MTE3", half)
        k.wait_flag("V", "MTE3", half)
        k.tstore(out[8 * chunk : 8 * chunk + 8, :], row[half])
        k.set_flag("MTE3", "V", half)
    for half in range(2):
        k.wait_flag("V", "MTE2", half)
        k.wait_flag("MTE3", "V", half)


table = np.arange(64 * 16, dtype=np.float32).reshape(64, 16)
rows = np.random.default_rng(1).integers(0, 64, (CHUNKS, 8), np.int32)
out = np.zeros((8 * CHUNKS, 16), np.float32)
run = pto.launch(lookup, table, rows, out, target="a5")
print("equal to NumPy's table[rows]:", bool((out == table[rows.ravel()]).all()))
print(f"{run.cycles.total:,.0f} cycles")
