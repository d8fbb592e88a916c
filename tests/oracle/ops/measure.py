"""Numbers and tables from images."""

import numpy as np

from ..case import operation
from ..edges import without_nan
from ..images import STACKS
from ..judge import Close, Exact, Table

PROJECTIONS = {
    "sum_z": lambda a: a.sum(0),
    "mean_z": lambda a: a.mean(0),
    "std_z": lambda a: a.std(0),
    "median_z": lambda a: np.median(a, 0),
}


@operation(*PROJECTIONS, inputs=[("noise",), ("gaps",)], shapes=STACKS, judge=Close(16), scale=lambda a: np.abs(a.astype(float)).max())
def projection(name, a):
    return PROJECTIONS[name](a)


@operation("max_z", "min_z", inputs=[("noise",), ("wide",), ("holes",), ("sunken",)], shapes=STACKS, native=True, out="same")
def extreme(name, a):
    a = without_nan(a, -np.inf if name == "max_z" else np.inf)
    return a.max(0) if name == "max_z" else a.min(0)


@operation("argmax_z", inputs=[("noise",), ("small",), ("holes",), ("sunken",)], shapes=STACKS, native=True, out="u32")
def argmax_z(a):
    # A column of NaN and -infinity only has its largest where the first -infinity is.
    highest = without_nan(a, -np.inf) == without_nan(a, -np.inf).max(0)
    return (highest & ~np.isnan(a)).argmax(0)


@operation("totals", inputs=[("noise",), ("cells",), ("gaps",)], out=None, judge=Close(1e3, relative=True))
def totals(a):
    return np.array([np.nanmin(a), np.nanmax(a), a.sum(), a.mean(), a.std()])


# Bounds that f32 holds and bins whose edges it holds too; then such as it does not hold, and those
# of the image itself.
@operation("histogram", inputs=[("small",), ("noise",), ("holes",)], out=None, judge=Exact(),
           variants=[{"bins": 8, "low": 0.0, "high": 8.0}, {"bins": 32, "low": -4.0, "high": 12.0},
                     {"bins": 256, "low": 0.0, "high": 16.0}, {"bins": 4, "low": 3.0, "high": 3.0},
                     {"bins": 10, "low": 0.1, "high": 7.3}, {"bins": 13, "low": 1 / 3}, {"bins": 7, "high": 1e6}, {"bins": 9}],
           only=lambda shape, params, content: content != ("holes",) or len(params) == 3)  # fmt: skip
def histogram(a, bins, low=None, high=None):
    low, high = a.min() if low is None else low, a.max() if high is None else high
    return np.histogram(a, bins, (low, max(low, high)))[0]


@operation("percentiles", inputs=[("noise",), ("cells",), ("wide",), ("gaps",)], out=None, judge=Close(64),
           variants=[{"q": 50.0}, {"q": [0.0, 1.0, 25.0, 99.8, 100.0]}])  # fmt: skip
def percentiles(a, q):
    return np.atleast_1d(np.nanpercentile(a, q))


@operation("label_statistics", inputs=[("labels:u32", "noise"), ("labels:u32", "gaps"), ("labels:u32", "cells")], native=True, out=None,
           judge=Table(), table=True)  # fmt: skip
def label_statistics(labels, image):
    axes = "zyx"[-labels.ndim :]
    names = ["label", "area", "sum", "mean", "minimum", "maximum", "std"]
    names += [f"{what}_{axis}" for what in ("centroid", "start", "stop") for axis in axes]
    table = {name: [] for name in names}
    image = image.astype(np.float64)
    for number in np.unique(labels[labels > 0]):
        inside = labels == number
        values, where = image[inside], np.argwhere(inside)
        least = without_nan(values, np.inf).min(), without_nan(values, -np.inf).max()
        row = [number, values.size, values.sum(), values.mean(), *least, values.std()]
        row += [*where.mean(0), *where.min(0), *(where.max(0) + 1)]
        for name, value in zip(names, row):
            table[name].append(value)
    whole = {"label", "area"} | {n for n in names if n.startswith(("start", "stop"))}
    return {name: np.array(column, np.int64 if name in whole else float) for name, column in table.items()}
