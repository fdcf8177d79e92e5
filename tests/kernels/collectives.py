"""Collectives: the root's kernel, with the memory of every rank among its arguments."""

import numpy as np

from kernels.frame import Case, case, numbers


def initial_weights(k, weights, first, second, third):
    """Initial weights for three ranks, through two buffers in turn."""
    ping = k.tile("float32", 4, 16)
    pong = k.tile("float32", 4, 16)
    k.tscatter(weights, [first, second, third], ping, pong, root=1)


def collect_logits(k, logits, first, second):
    """The ranks' logits under each other, wider than the buffer and not a whole number of chunks."""
    staging = k.tile("float16", 8, 32, valid=(-1, -1))
    staging.set_valid(3, 24)
    k.tgather(logits, (first, second), staging)


def share_scales(k, scales, first, second):
    """Every rank gets the first row of the scales, doubled before it goes out."""
    row = k.tile("float32", 1, 16)
    staging = k.tile("float32", 1, 16)
    loaded = k.tload(row, scales[0:1, 0:16])
    doubled = k.tadd(row, row, row, wait=loaded)
    stored = k.tstore(scales[0:1, 0:16], row, wait=doubled)
    k.tbroadcast(scales[0:1, 0:16], [first, second], staging, wait=stored)


def sum_of_gradients(k, total, first, second, third):
    """Gradients of three ranks are added up, scaled, and stored."""
    acc = k.tile("float32", 4, 16)
    ping, pong = k.tile("float32", 4, 16), k.tile("float32", 4, 16)
    summed = k.treduce(total, acc, [first, second, third], ping, pong, root=2)
    mean = k.tile("float32", 8, 16)
    loaded = k.tload(mean, total)
    k.set_flag("MTE2", "V", 4)
    k.wait_flag("MTE2", "V", 4)
    scaled = k.tmuls(mean, mean, 0.5, wait=(loaded, summed))
    k.tstore(total, mean, wait=scaled)


def every_other(weights):
    """The weights of each of three ranks."""
    return {1 + rank: weights[4 * rank : 4 * rank + 4].copy() for rank in range(3)}


def rounded_sum(parts):
    """Root first, then the ranks in order, each sum rounded."""
    return ((parts[2] + parts[0]) + parts[1]) * np.float32(0.5)


CASES: list[Case] = [
    case(
        initial_weights,
        lambda: [numbers((12, 32)), *(np.zeros((4, 32), np.float32) for _ in range(3))],
        lambda args: every_other(args[0]),
        targets=("cpu", "a2a3", "a5"),
    ),
    case(
        collect_logits,
        lambda: [numbers((11, 40), "float16", seed=9), *(numbers((5, 40), "float16", seed=seed) for seed in (1, 2))],
        lambda args: {0: np.concatenate([args[1], args[2], args[0][10:]])},
    ),
    case(
        share_scales,
        lambda: [numbers((2, 16)), np.zeros((1, 16), np.float32), np.zeros((1, 16), np.float32)],
        lambda args: {
            0: np.concatenate([2 * args[0][:1], args[0][1:]]),
            1: 2 * args[0][:1],
            2: 2 * args[0][:1],
        },
    ),
    case(
        sum_of_gradients,
        lambda: [np.zeros((8, 16), np.float32), *(numbers((8, 16), seed=seed) / np.float32(7) for seed in range(3))],
        lambda args: {0: rounded_sum(args[1:])},
    ),
]
