"""Word vectors on several ranks, the same bits on any number: `python examples/train_embedding.py --ranks 1 2 4`.

Skip-gram with negatives on a made-up corpus: words of one topic stand together. Both tables are shared out over the
ranks, and so is each batch of pairs; the gradients are sparse, and `table.scatter(..., atomic="add")` adds them in the
order of the pairs. Also under a launcher: `python -m ptokit.comm -n 4 examples/train_embedding.py`, or
`mpiexec -n 4 python -m mpi4py examples/train_embedding.py`.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time

import numpy as np

import ptokit as pto

WORDS, TOPICS, WIDTH = 600, 12, 16
BATCH, NEGATIVES, RATE = 1024, 5, np.float32(0.08)


def train(rank, steps):
    """One rank's part; returns the hash of both tables and how many words have found their topic."""
    start = np.random.default_rng(0).uniform(-0.5 / WIDTH, 0.5 / WIDTH, (WORDS, WIDTH)).astype(np.float32)
    words = pto.comm.ShardedTable(rank, WORDS, WIDTH, fill=lambda rows: start[rows])
    contexts = pto.comm.ShardedTable(rank, WORDS, WIDTH)
    progress = Progress(rank, steps)
    for step in range(steps):
        centre, targets = my_pairs(rank, step)
        word, context = words.gather(centre), contexts.gather(targets)
        error = sigmoid(dot(word[:, None], context))
        error[:, 0] -= 1  # the first target is the word that stands there, the others were drawn
        grad = (RATE * error)[..., None]
        words.scatter(centre, -added(grad * context), atomic="add")
        contexts.scatter(targets, -(grad * word[:, None]), atomic="add")
        progress.tell(step + 1, error)
    return result(rank, words, contexts)


def my_pairs(rank, step):
    """This rank's share of the batch of a step: words, and for each the target and some that are none."""
    chance = np.random.default_rng(step + 1)
    centre = chance.integers(0, WORDS, BATCH)
    near = chance.integers(0, WORDS // TOPICS, BATCH) * TOPICS + centre % TOPICS
    targets = np.concatenate([near[:, None], chance.integers(0, WORDS, (BATCH, NEGATIVES))], axis=1)
    share = slice(BATCH * rank.rank // rank.size, BATCH * (rank.rank + 1) // rank.size)
    return centre[share], targets[share]


# Additions in a fixed order, and no library function whose last bit depends on where a batch was cut.


def sigmoid(x):
    return np.float32(0.5) + np.float32(0.5) * x / (np.float32(1) + np.abs(x))


def dot(a, b):
    products = a * b
    while products.shape[-1] > 1:
        half = products.shape[-1] // 2
        products = products[..., :half] + products[..., half:]
    return products[..., 0]


def added(parts):
    total = parts[:, 0].copy()
    for one in range(1, parts.shape[1]):
        total += parts[:, one]
    return total


def result(rank, words, contexts):
    tables = [table.to_array(root=0) for table in (words, contexts)]
    if rank.rank:
        return None
    bits = hashlib.sha256(b"".join(table.tobytes() for table in tables)).hexdigest()
    unit = tables[0] / np.linalg.norm(tables[0], axis=1, keepdims=True)
    near = unit @ unit.T - 2 * np.eye(WORDS, dtype=np.float32)
    found = (near.argmax(axis=1) % TOPICS == np.arange(WORDS) % TOPICS).mean()
    return bits[:16], float(found)


class Progress:
    """A line each second, from rank 0."""

    def __init__(self, rank, steps):
        self.rank, self.steps, self.told = rank, steps, time.monotonic()

    def tell(self, step, error):
        if self.rank.rank == 0 and time.monotonic() - self.told > 1:
            self.told = time.monotonic()
            print(f"  step {step} of {self.steps}, mean error {np.abs(error).mean():.3f}", file=sys.stderr, flush=True)


def show(ranks, told, seconds):
    bits, found = told
    many = f"{ranks} rank{'s' * (ranks > 1)}"
    print(f"{many}: tables {bits}, {found:.0%} of the words next to one of their topic ({seconds:.1f} s)")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--ranks", type=int, nargs="+", default=[1, 2, 4], help="how many; several: one after the other"
    )
    parser.add_argument("--steps", type=int, default=150, help="batches of 1024 pairs (default 150)")
    return parser.parse_args()


def main():
    given = arguments()
    launched = pto.comm.world()
    if launched.size > 1:
        begun = time.monotonic()
        told = train(launched, given.steps)
        if launched.rank == 0:
            show(launched.size, told, time.monotonic() - begun)
        return 0
    seen = set()
    for ranks in given.ranks:
        begun = time.monotonic()
        with pto.comm.local(ranks) as world:
            told = world.run(train, given.steps)[0]
        show(ranks, told, time.monotonic() - begun)
        seen.add(told[0])
    print("the same bits on all of them" if len(seen) == 1 else "THE BITS DIFFER")
    return len(seen) > 1


if __name__ == "__main__":
    sys.exit(main())
