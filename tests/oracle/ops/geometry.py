"""Where pixels are: cutting, turning, binning, resampling."""

import numpy as np
from scipy import ndimage

from ..case import Axes, operation
from ..images import STACKS
from ..judge import Close, Exact

MOVES = {
    "flip_x": lambda a: np.flip(a, -1),
    "flip_y": lambda a: np.flip(a, -2),
    "transpose_xy": lambda a: np.swapaxes(a, -1, -2),
}
STACK_MOVES = {
    "flip_z": lambda a: np.flip(a, 0),
    "transpose_xz": lambda a: np.swapaxes(a, -1, -3),
    "transpose_yz": lambda a: np.swapaxes(a, -2, -3),
}


@operation(*MOVES, inputs=("wide",), native=True, out="same")
def move(name, a):
    return MOVES[name](a)


@operation(*STACK_MOVES, inputs=("wide",), native=True, out="same", shapes=STACKS)
def stack_move(name, a):
    return STACK_MOVES[name](a)


@operation("crop", inputs=("wide",), native=True, out="same",
           variants=[{"y": 0, "x": 0, "height": 1, "width": 1}, {"y": 3, "x": 2, "height": 9, "width": 13},
                     {"y": 1, "x": 0, "height": 16, "width": 16}],
           only=lambda shape, p: p["y"] + p["height"] <= shape[-2] and p["x"] + p["width"] <= shape[-1])  # fmt: skip
def crop(a, y, x, height, width):
    return a[..., y : y + height, x : x + width]


def tiles(a, factor):
    """Tiles along last axes; what does not fill one is cut off, an axis of one pixel is left."""
    factor = [1 if n == 1 else f for n, f in zip(a.shape, np.broadcast_to(factor, a.ndim))]
    counts = [n // f for n, f in zip(a.shape, factor)]
    a = a[tuple(slice(0, n * f) for n, f in zip(counts, factor))]
    a = a.reshape([part for n, f in zip(counts, factor) for part in (n, f)])
    return np.moveaxis(a, range(1, 2 * len(factor), 2), range(len(factor), 2 * len(factor))), len(factor)


def fits(shape, params):
    """Every axis longer than 1 has at least one tile."""
    factor = np.broadcast_to(params["factor"], len(shape))
    return all(n == 1 or n >= f for n, f in zip(shape, factor))


FACTORS = {"variants": [{"factor": 2}, {"factor": Axes(1, 3, 2)}], "only": fits}


@operation("bin_mean", "bin_sum", **FACTORS, scale=lambda a, factor: 8 * np.abs(a.astype(float)).max())
def bins(name, a, factor):
    a, rank = tiles(a, factor)
    return getattr(a, name[4:])(axis=tuple(range(rank, 2 * rank)))


@operation("bin_max", inputs=[("noise",), ("wide",)], native=True, out="same", **FACTORS)
def bin_max(a, factor):
    a, rank = tiles(a, factor)
    return a.max(axis=tuple(range(rank, 2 * rank)))


@operation("shift_linear", variants=[{"dy": 1.0, "dx": -2.0}, {"dy": 0.25, "dx": 1.75}, {"dy": -3.5, "dx": 0.5}])
def shift_linear(a, dy, dx):
    move = [0.0] * (a.ndim - 2) + [dy, dx]
    return ndimage.shift(a, move, order=1, mode="constant", cval=0.0)
