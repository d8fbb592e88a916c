"""Many cases in one process of ours.

The process is `warploom apply --batch FILE`: one JSON object a line in, `{"op", "args", "inputs",
"output"}`, and one a line out, `{"ok": true}` or `{"error": "…"}`, in the same order. A process
that dies takes one case with it; the next process goes on behind that one.
"""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np

from .case import image

#: So many crashes in one run are one bug, not many.
CRASHES = 20


class Folder:
    """Where inputs and results are."""

    def __init__(self, root):
        self.root = Path(root).resolve()
        (self.root / "inputs").mkdir(parents=True, exist_ok=True)
        self.results = self.root / "results"

    def on(self, device):
        """The same inputs, with the results of one device."""
        other = Folder(self.root)
        other.results = self.root / device.replace(":", "-")
        shutil.rmtree(other.results, ignore_errors=True)
        other.results.mkdir()
        return other

    def input(self, key):
        content, shape, dtype, seed = key
        path = self.root / "inputs" / f"{content}-{'x'.join(map(str, shape))}-{dtype}-{seed}.npy"
        if not path.exists():
            np.save(path, image(key))
        return path

    def output(self, case):
        return self.results / f"{case.number:06}-{case.operation.name}{case.suffix}"


def run(cases, folder, program, flags):
    """Runs all; answers with an error text or None for each case, in order."""
    answers = []
    crashes = 0
    while len(answers) < len(cases):
        rest = cases[len(answers) :]
        some, why = start(rest, folder, program, flags)
        answers += some
        if len(some) < len(rest):
            crashes += 1
            # Started but never answered: either this case is deadly, or, when nothing was ever
            # answered, nothing works.
            answers.append(why)
            if crashes == CRASHES or crashes == len(answers) == 4:
                answers += [f"not run, after {crashes} crashes"] * (len(cases) - len(answers))
    return answers


def start(cases, folder, program, flags):
    """One process: the answers it gave, and why it gave no more."""
    batch = folder.results / "batch.jsonl"
    batch.write_text("".join(case.line(folder) + "\n" for case in cases))
    for case in cases:
        folder.output(case).unlink(missing_ok=True)
    ran = subprocess.run(
        [program, "apply", "--batch", str(batch), *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    answers = []
    for line in ran.stdout.decode(errors="replace").splitlines():
        answer = json.loads(line)
        answers.append(None if answer.get("ok") else answer.get("error") or "an error without words")
    said = ran.stderr.decode(errors="replace").strip().splitlines()
    said = next((line for line in said if "panicked" in line), said[-1] if said else "nothing")
    return answers[: len(cases)], f"the process ended with {ran.returncode} and said: {said}"
