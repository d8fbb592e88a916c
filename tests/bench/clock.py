"""Interleaved rounds, and what the memory of this machine allows."""

import concurrent.futures
import math
import time

import numpy as np


def timed(call, calls=1):
    """Seconds of the last of so many calls. What it returns is let go of after the clock has stopped."""
    for _ in range(calls - 1):
        call()
    start = time.perf_counter()
    kept = call()
    took = time.perf_counter() - start
    del kept
    return took


#: A longer call finds next to nothing of its last turn in the caches, whoever had a turn since.
SHORT = 0.05


def race(runners, rounds, budget):
    """Best seconds of each runner.

    All take their turn in every round, so that a noisy moment hits all of them. There are at least
    `rounds`, and more while `budget` seconds last: short calls need more luck. A runner makes as many
    calls as it is told and answers with the seconds of the last one.

    Peers of one process work on the same arrays and leave them in the caches for each other; whoever
    has copies of his own finds them pushed out by the others. So a short call is made twice in a
    turn, one right after the other, and the second one counts, for everybody: each finds what a stream of
    frames would find, in the caches and in threads that are awake.
    """
    best = {}
    for name, run in runners.items():
        run(1)
        best[name] = math.inf
    start = time.perf_counter()
    turn = 0
    while turn < rounds or (time.perf_counter() - start < budget and turn < 8 * rounds):
        for name, run in runners.items():
            best[name] = min(best[name], run(2 if best[name] < SHORT else 1))
        turn += 1
    return best, turn


class Limits:
    """Bytes a second that `threads` threads copy and read: far beyond the caches, or of arrays of so
    many megabytes over and over, which is what calls of one size one after the other find."""

    def __init__(self, threads, megabytes=512, rounds=7):
        count = (megabytes << 20) // 8
        source, target = np.ones(count), np.zeros(count)
        cuts = np.linspace(0, count, threads + 1).astype(int)
        parts = [slice(a, b) for a, b in zip(cuts, cuts[1:])]
        # Handing work to threads takes as long as copying a megabyte.
        times = max(1, 256 // megabytes)

        def copy(part):
            for _ in range(times):
                np.copyto(target[part], source[part])

        def read(part):
            for _ in range(times):
                source[part].max()

        with concurrent.futures.ThreadPoolExecutor(threads) as pool:
            bytes_ = count * 8 * times
            least = lambda work: min(timed(lambda: list(pool.map(work, parts))) for _ in range(rounds))
            #: Bytes copied a second; each is read once and written once.
            self.copy = bytes_ / least(copy)
            self.read = bytes_ / least(read)

    def seconds(self, read, written):
        """The least time for so many bytes in and out."""
        both = min(read, written)
        return both / self.copy + (read - both) / self.read + (written - both) / self.copy
