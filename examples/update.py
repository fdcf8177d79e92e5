"""The kernel of embedding_update.pto, written in Python: `python examples/update.py`."""

import numpy as np

import ptokit as pto


def update(k, table, grads, rows):
    idx = k.tile("int32", 1, 16, at=0x0)
    grad = k.tile("float32", 16, 64, at=0x1000)
    k.tload(idx, rows)
    k.tload(grad, grads)
    k.set_flag("MTE2", "V", 0)
    k.wait_flag("MTE2", "V", 0)
    k.mscatter(table, grad, idx, coalesce="row", atomic="add", oob="skip")
    k.pipe_barrier("ALL")
    k.dcci()
    k.dsb()


table = np.zeros((128, 64), np.float32)
grads = np.ones((16, 64), np.float32)
rows = np.array([[3, 5, 3, 7, 120, 127, 128, 900, 0, 1, 2, 4, 6, 8, 9, 10]], np.int32)
run = pto.launch(update, table, grads, rows, target="a5")
print("rows 3 and 5 got", table[3, 0], "and", table[5, 0])
print("findings:", *sorted({finding.id for finding in run.findings}))
