"""Whether a result is right, and how far off it is."""

import json
from dataclasses import dataclass

import numpy as np


@dataclass
class Verdict:
    """Right or wrong, the worst error where errors are allowed, and what is wrong."""

    ok: bool
    error: float = 0.0
    text: str = ""


@dataclass
class Near:
    """A mask that may differ where the compared numbers are equal but for rounding."""

    mask: np.ndarray
    #: The distance of each pixel from changing sides.
    margin: np.ndarray


@dataclass
class Choice:
    """An answer among several as good; `fine` says which pixels of a result are among them."""

    answer: np.ndarray
    fine: object


def first_wrong(wrong, got, want):
    """The first pixel that is wrong, for the reader."""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    share = f"{int(wrong.sum())} of {wrong.size} pixels"
    return f"{share} wrong; at {list(at)} got {got[at]!r}, expected {want[at]!r}"


def same(a, b):
    """Equal pixel by pixel; NaN equals NaN, and zeros of either sign are equal."""
    equal = a == b
    if a.dtype.kind == "f" and b.dtype.kind == "f":
        equal |= np.isnan(a) & np.isnan(b)
    return equal


def identical(a, b):
    """The same bits pixel by pixel, the sign of zero among them; any NaN is NaN."""
    equal = same(a, b)
    if a.dtype.kind == "f":
        equal &= (np.signbit(a) == np.signbit(b)) | np.isnan(a)
    return equal


@dataclass
class Exact:
    """No error at all."""

    def __call__(self, got, want, scale):
        fine = same(got, want.answer if isinstance(want, Choice) else want)
        if isinstance(want, Choice):
            fine |= want.fine(got)
            want = want.answer
        return Verdict(True) if fine.all() else Verdict(False, np.inf, first_wrong(~fine, got, want))


@dataclass
class Close:
    """Within `steps` rounding steps of the result's type, of the number and of the scale."""

    steps: float = 16.0
    #: For results whose error depends on the number alone.
    relative: bool = False

    def __call__(self, got, want, scale):
        also = None
        if isinstance(want, Choice):
            want, also = want.answer, want.fine
        epsilon = np.finfo(want.dtype if want.dtype.kind == "f" else np.float64).eps
        if got.dtype == np.float32:
            epsilon = np.finfo(np.float32).eps
        wanted, given = want.astype(np.float64), got.astype(np.float64)
        size = np.abs(wanted) + (0.0 if self.relative else scale)
        # What is too small for the type is zero, in whichever way it got there.
        size = np.maximum(size, np.finfo(np.float32).tiny)
        fine = same(given, wanted)
        with np.errstate(invalid="ignore", over="ignore"):
            error = np.where(fine, 0.0, np.abs(given - wanted) / size)
        fine |= error <= self.steps * epsilon
        if also is not None and not fine.all():
            good = also(given)
            fine |= good
            error[good] = 0.0
        worst = float(np.nanmax(error, initial=0.0))
        return Verdict(True, worst) if fine.all() else Verdict(False, worst, first_wrong(~fine, got, want))


@dataclass
class Sides:
    """A mask; wrong pixels only where the margin is within rounding."""

    steps: float = 32.0

    def __call__(self, got, want, scale):
        epsilon = np.finfo(np.float32).eps
        fine = (got == want.mask) | (want.margin <= self.steps * epsilon * scale)
        return Verdict(True) if fine.all() else Verdict(False, np.inf, first_wrong(~fine, got, want.mask))


@dataclass
class Table:
    """Columns by name; whole numbers exact, others within rounding."""

    steps: float = 64.0

    def __call__(self, got, want, scale):
        worst = 0.0
        if list(got) != list(want):
            return Verdict(False, np.inf, f"columns {list(got)}, expected {list(want)}")
        for name, column in want.items():
            column = np.asarray(column)
            found = np.asarray(got[name], column.dtype if column.size == 0 else None)
            if found.shape != column.shape:
                return Verdict(False, np.inf, f"{found.size} rows, expected {column.size}")
            judge = Exact() if column.dtype.kind in "iu" else Close(self.steps)
            if column.dtype.kind == "f":
                # Tables hold f64, but their sums are of f32 pixels at best.
                judge.steps *= np.finfo(np.float32).eps / np.finfo(np.float64).eps
            verdict = judge(found, column, scale)
            worst = max(worst, verdict.error)
            if not verdict.ok:
                return Verdict(False, worst, f"column {name}: {verdict.text}")
        return Verdict(True, worst)


def read(path):
    """A result of ours: an array, or a table as a dictionary of columns."""
    if path.suffix == ".npy":
        return np.load(path, allow_pickle=False)
    table = json.loads(path.read_text())
    return {name: [row[name] for row in table["rows"]] for name in table["columns"]}


def judge(case, got):
    """Compares a result with the reference's."""
    want = case.expected()
    if isinstance(got, np.ndarray):
        array = {Near: "mask", Choice: "answer"}.get(type(want))
        array = getattr(want, array) if array else want
        wanted = case.wanted()
        if wanted is not None and got.dtype != wanted:
            return Verdict(False, np.inf, f"elements are {got.dtype}, expected {wanted}")
        if got.shape != array.shape:
            return Verdict(False, np.inf, f"shape {got.shape}, expected {array.shape}")
    return case.operation.judge(got, want, case.scale())


def agree(got, other, ulps, scale=0.0, bits=None, equal=same):
    """Compares what two devices made of the same case: as `equal` says, or within some units in the
    last place at the largest number of the image and the result; where a device has less of f64,
    as many bits of it."""
    if isinstance(got, dict):
        return tables_agree(got, other, ulps, scale, equal)
    if got.dtype != other.dtype or got.shape != other.shape:
        text = f"{got.dtype} {got.shape} against {other.dtype} {other.shape}"
        return Verdict(False, np.inf, text)
    fine = equal(got, other)
    apart = np.zeros(got.shape)
    if ulps and got.dtype.kind == "f":
        largest = np.abs(other[np.isfinite(other)]).max(initial=scale)
        # Lists of numbers are f64 for everybody, but wgpu has to make them of f32.
        unit = float(np.spacing(np.float32(largest)))
        with np.errstate(invalid="ignore"):
            apart = np.where(fine, 0, np.abs(got - other) / unit)
        fine |= apart <= ulps
    if bits and got.dtype == np.float64:
        with np.errstate(invalid="ignore"):
            fine |= np.abs(got - other) <= np.abs(other) * 0.5**bits
    worst = float(np.nanmax(apart, initial=0))
    return Verdict(True, worst) if fine.all() else Verdict(False, worst, first_wrong(~fine, got, other))


def tables_agree(got, other, ulps, scale, equal):
    """Column by column; whole numbers exactly."""
    if list(got) != list(other):
        return Verdict(False, np.inf, f"columns {list(got)} against {list(other)}")
    worst = 0.0
    for name, column in other.items():
        whole = all(isinstance(value, int) for value in column)
        verdict = agree(*(np.array(it, np.int64 if whole else float) for it in (got[name], column)), ulps, scale, equal=equal)
        worst = max(worst, verdict.error)
        if not verdict.ok:
            return Verdict(False, worst, f"column {name}: {verdict.text}")
    return Verdict(True, worst)
