"""Whether wrong results would be noticed: right answers are spoilt, one by one.

A checker that accepts everything looks like a program without faults. Here the references' own
answers are given as results, which must pass, and then changed a little, which must not.
"""

import numpy as np

from .judge import Choice, Near, judge


def answer(case):
    """The reference's answer as a result of ours would be."""
    want = case.expected()
    if isinstance(want, Near):
        want = want.mask
    if isinstance(want, Choice):
        want = want.answer
    if isinstance(want, dict):
        return {name: list(column) for name, column in want.items()}
    return want.copy()


def spoilt(case, got):
    """Wrong answers, each with what was done to it."""
    if isinstance(got, dict):
        for name, column in got.items():
            if column:
                other = column[-1] * 1.01 + 1
                other = other if np.isfinite(other) else 7.0
                yield f"{name} of the last row", {**got, name: [*column[:-1], other]}
        yield "a column less", dict(list(got.items())[1:])
        return
    want = case.expected()
    if not isinstance(want, Near) or want.margin.max() > 0:
        yield "one pixel changed", changed(case, got, want)
    yield "a row of pixels more", np.concatenate([got, got[:1]])
    if case.wanted() is not None:
        other = np.float64 if got.dtype != np.float64 else np.float32
        yield "another element type", got.astype(other)
    turned = np.flip(got, int(np.argmax(got.shape)))
    # Wide blurs look much the same from either end.
    if not np.allclose(turned, got, rtol=0, atol=1e-3 * case.scale(), equal_nan=True):
        yield "turned round", turned


def changed(case, got, want):
    """One pixel off: by one where numbers are whole, by a thousandth of the scale elsewhere."""
    got = got.copy()
    at = np.unravel_index(np.argmax(want.margin), got.shape) if isinstance(want, Near) else (0,) * got.ndim
    if got.dtype.kind == "f":
        got[at] = 7 if not np.isfinite(got[at]) else got[at] + 1e-3 * max(abs(got[at]) + case.scale(), 1)
    else:
        # A label that no object has, where several may be right.
        got[at] = 250 if isinstance(want, Choice) else got[at] ^ 1
    return got


def run(cases):
    """Problems of the checker, as texts."""
    problems = []
    tried = 0
    np.seterr(over="ignore")
    for case in cases:
        got = answer(case)
        verdict = judge(case, got)
        if not verdict.ok:
            problems.append(f"{case}: the reference's own answer is refused: {verdict.text}")
        for what, wrong in spoilt(case, got):
            tried += 1
            if judge(case, wrong).ok:
                problems.append(f"{case}: accepted with {what}")
    return tried, problems
