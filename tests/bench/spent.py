"""Processor time instead of the clock's, for machines that others use at the same time.

What a call would take alone is estimated: the least processor time of all its threads together,
times the share of the thread that did most of it where the work was shared best. It is no measure of
what memory allows, and nothing that a bar is met by: it finds what is slow.
"""

import os
import time
from pathlib import Path


def of_threads(process):
    """Nanoseconds that each thread of another process has run, exact while it sleeps."""
    spent = {}
    for task in Path(f"/proc/{process}/task").iterdir():
        try:
            spent[task.name] = int((task / "schedstat").read_text().split()[0])
        except OSError:  # it has just ended
            continue
    return spent


class Spent:
    """Answers with an estimate of a runner's seconds, from all its turns so far."""

    def __init__(self, run, threads, process=None):
        self.run, self.threads, self.process = run, threads, process or os.getpid()
        self.total, self.share = float("inf"), 1.0

    def __call__(self, calls=1):
        for _ in range(calls - 1):
            self.run()
        if self.process == os.getpid():
            whole, main = time.process_time(), time.thread_time()
            kept = self.run()
            main, whole = time.thread_time() - main, time.process_time() - whole
            del kept
            most = max(main, (whole - main) / max(self.threads - 1, 1))
        else:
            before = of_threads(self.process)
            self.run()
            after = of_threads(self.process)
            each = [(after[task] - before.get(task, 0)) * 1e-9 for task in after]
            whole, most = sum(each), max(each)
        if whole > 0:
            self.total = min(self.total, whole)
            self.share = min(self.share, max(most / whole, 1 / self.threads))
        return self.total * self.share
