"""A case: a file, what to do with it, and whether the answer is right."""

import json
import subprocess
from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np


def pixels(shape, dtype, seed=0):
    """Random bits of every sort but NaN, whose bits are not all kept by numpy itself."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    array = np.frombuffer(np.random.default_rng(seed).bytes(size), dtype).reshape(shape).copy()
    if dtype.kind == "f":
        array[~np.isfinite(array)] = 1.5
    return array


def smooth(shape, dtype):
    """An image that compresses, as images do."""
    grid = np.indices(shape).sum(0)
    return (grid % 97 if np.dtype(dtype).kind != "f" else grid / 7).astype(dtype)


@dataclass
class Case:
    """A job for the program, and a judge of what it answers: `None`, or what is wrong."""

    name: str
    job: dict
    judge: Callable[[dict], Any]
    facts: dict = field(default_factory=dict)


def same(got, want):
    """What is wrong with an array."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.shape} {got.dtype}, expected {want.shape} {want.dtype}"
    if got.tobytes() != np.ascontiguousarray(want).tobytes():
        return f"{int((got != want).sum())} of {got.size} elements are wrong"
    return None


def run(cases, program):
    """The answers of one process to all jobs."""
    lines = "".join(json.dumps(case.job) + "\n" for case in cases)
    done = subprocess.run([program], input=lines, capture_output=True, text=True, timeout=300)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if len(answers) != len(cases):
        where = cases[len(answers)].name if len(answers) < len(cases) else "the end"
        raise SystemExit(f"the program ended at {where}: {done.stderr.strip()}")
    return answers


def failures(cases, program):
    """Every case that went wrong, with the reason."""
    for case, answer in zip(cases, run(cases, program)):
        try:
            wrong = case.judge(answer)
        except Exception as error:  # A file that its judge cannot read is as wrong as one it misreads.
            wrong = f"{type(error).__name__}: {error}"
        if wrong:
            yield f"{case.name}: {wrong}"


def reads(name, path, want, folder, axes=None, channels=None, spacing=None, **job):
    """The program reads a file of another's, whole or in part."""
    out = folder / f"{name.replace('/', '-').replace(' ', '_')}.npy"

    def judge(answer):
        if "error" in answer:
            return answer["error"]
        for key, expected in (("axes", axes), ("channels", channels), ("spacing", spacing)):
            if expected is not None and answer[key] != expected:
                return f"{key} {answer[key]}, expected {expected}"
        return same(np.load(out), want)

    return Case(name, {"from": str(path), "to": str(out), **job}, judge)


def refuses(name, path, words, **job):
    """The program says no, and why."""

    def judge(answer):
        text = answer.get("error", "read")
        return None if words in text and answer.get("help") else f"`{text}`, expected `{words}`"

    return Case(name, {"from": str(path), **job}, judge)


def writes(name, array, path, look, folder, **job):
    """Another program looks at what ours wrote."""
    source = folder / f"source-{name.replace('/', '-').replace(' ', '_')}.npy"
    np.save(source, array)

    def judge(answer):
        return answer.get("error") or look(path)

    return Case(name, {"from": str(source), "to": str(path), **job}, judge)
