"""Interleaved rounds, and what the memory of this machine allows."""

import concurrent.futures
import math
import time

import numpy as np


def timed(call):
    """Seconds of one call. What it returns is let go of after the clock has stopped."""
    start = time.perf_counter()
    kept = call()
    took = time.perf_counter() - start
    del kept
    return took


def race(runners, rounds, budget):
    """Best seconds of each runner.

    All take their turn in every round, so that a noisy moment hits all of them. There are at least
    `rounds`, and more while `budget` seconds last: short calls need more luck. A runner is a call
    that answers with its own seconds.
    """
    best = {}
    for name, run in runners.items():
        run()
        best[name] = math.inf
    start = time.perf_counter()
    turn = 0
    while turn < rounds or (time.perf_counter() - start < budget and turn < 8 * rounds):
        for name, run in runners.items():
            best[name] = min(best[name], run())
        turn += 1
    return best, turn


class Limits:
    """Bytes a second that `threads` threads copy and read, far beyond the caches."""

    def __init__(self, threads, megabytes=512, rounds=7):
        count = (megabytes << 20) // 8
        source, target = np.ones(count), np.zeros(count)
        cuts = np.linspace(0, count, threads + 1).astype(int)
        parts = [slice(a, b) for a, b in zip(cuts, cuts[1:])]
        with concurrent.futures.ThreadPoolExecutor(threads) as pool:
            copy = lambda: list(pool.map(lambda p: np.copyto(target[p], source[p]), parts))
            read = lambda: list(pool.map(lambda p: source[p].max(), parts))
            bytes_ = count * 8
            #: Bytes copied a second; each is read once and written once.
            self.copy = bytes_ / min(timed(copy) for _ in range(rounds))
            self.read = bytes_ / min(timed(read) for _ in range(rounds))

    def seconds(self, read, written):
        """The least time for so many bytes in and out."""
        both = min(read, written)
        return both / self.copy + (read - both) / self.read + (written - both) / self.copy
