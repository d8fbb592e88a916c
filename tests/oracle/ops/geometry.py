"""Where pixels are: cutting, turning, binning, resampling."""

import numpy as np
from scipy import ndimage

from ..case import Axes, operation
from ..edges import without_nan
from ..images import STACKS
from ..judge import Choice, Close

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


@operation(*MOVES, inputs=[("wide",), ("holes",)], native=True, out="same")
def move(name, a):
    return MOVES[name](a)


@operation(*STACK_MOVES, inputs=[("wide",), ("holes",)], native=True, out="same", shapes=STACKS)
def stack_move(name, a):
    return STACK_MOVES[name](a)


@operation("crop", inputs=[("wide",), ("holes",)], native=True, out="same",
           variants=[{"y": 0, "x": 0, "height": 1, "width": 1}, {"y": 3, "x": 2, "height": 9, "width": 13},
                     {"y": 1, "x": 0, "height": 16, "width": 16}, {"x": 1}, {}, {"z": 1, "depth": 1}, {"z": 2, "y": 1}],
           only=lambda shape, p, content: inside(shape, **p))  # fmt: skip
def crop(a, z=0, y=0, x=0, depth=None, height=None, width=None):
    a = a[..., y:, x:][..., :height, :width]
    return a[z:][:depth] if a.ndim == 3 else a


def inside(shape, z=0, y=0, x=0, depth=1, height=1, width=1):
    """Whether there is such a part; one pixel at least where nothing is said."""
    if len(shape) == 2 and (z, depth) != (0, 1):
        return False
    ends = (z + depth, y + height, x + width)[-len(shape) :]
    return all(end <= length for end, length in zip(ends, shape))


PAD = {"clamp": "edge", "zero": "constant", "reflect": "symmetric", "wrap": "wrap"}


@operation("pad", inputs=[("noise",), ("wide",), ("holes",)], native=True, out="same",
           variants=[{"before": 2}, {"before": Axes(1, 0, 3), "after": Axes(0, 2, 40)}, {"before": 1, "value": 7.0},
                     *({"before": Axes(1, 2, 3), "after": 9, "boundary": rule} for rule in PAD)])  # fmt: skip
def pad(a, before, after=None, boundary="zero", value=0.0):
    after = before if after is None else after
    widths = list(zip(np.broadcast_to(before, a.ndim), np.broadcast_to(after, a.ndim)))
    options = {"constant_values": a.dtype.type(value)} if boundary == "zero" else {}
    return np.pad(a, widths, PAD[boundary], **options)


def tiles(a, factor):
    """Tiles along last axes; what does not fill one is cut off, an axis of one pixel is left."""
    factor = [1 if n == 1 else f for n, f in zip(a.shape, np.broadcast_to(factor, a.ndim))]
    counts = [n // f for n, f in zip(a.shape, factor)]
    a = a[tuple(slice(0, n * f) for n, f in zip(counts, factor))]
    a = a.reshape([part for n, f in zip(counts, factor) for part in (n, f)])
    return np.moveaxis(a, range(1, 2 * len(factor), 2), range(len(factor), 2 * len(factor))), len(factor)


def fits(shape, params, content):
    """Every axis longer than 1 has at least one tile."""
    factor = np.broadcast_to(params["factor"], len(shape))
    return all(n == 1 or n >= f for n, f in zip(shape, factor))


FACTORS = {"variants": [{"factor": 2}, {"factor": Axes(1, 3, 2)}], "only": fits}


@operation("bin_mean", "bin_sum", inputs=[("noise",), ("gaps",)], **FACTORS, scale=lambda a, factor: 8 * np.abs(a.astype(float)).max())
def bins(name, a, factor):
    a, rank = tiles(a, factor)
    return getattr(a, name[4:])(axis=tuple(range(rank, 2 * rank)))


@operation("bin_max", inputs=[("noise",), ("wide",), ("holes",)], native=True, out="same", **FACTORS)
def bin_max(a, factor):
    a, rank = tiles(without_nan(a, -np.inf), factor)
    return a.max(axis=tuple(range(rank, 2 * rank)))


@operation("shift_linear", judge=Close(8),
           variants=[{"dy": 1.0, "dx": -2.0}, {"dy": 0.25, "dx": 1.75}, {"dy": -3.5, "dx": 0.5}, {"dz": 0.75, "dx": 1.5}],
           only=lambda shape, params, content: len(shape) == 3 or "dz" not in params)  # fmt: skip
def shift_linear(a, dz=0.0, dy=0.0, dx=0.0):
    move = [dz, dy, dx][-a.ndim :]
    return ndimage.shift(a, move, order=1, mode="constant", cval=0.0)


def sampled(a, positions):
    """Linear interpolation, 0 outside; a position within rounding of the edge may count as either."""
    last = np.array(a.shape).reshape(-1, *[1] * a.ndim) - 1
    answer = ndimage.map_coordinates(a, positions, order=1, mode="constant", cval=0.0)
    inside = ndimage.map_coordinates(a, positions, order=1, mode="nearest")
    edge = np.any((np.abs(positions) < 1e-6) | (np.abs(positions - last) < 1e-6), axis=0)
    either = lambda got: edge & ((got == 0) | np.isclose(got, inside, rtol=1e-4, atol=1e-4 * np.abs(a).max()))
    return Choice(answer, either)


def places(shape):
    return np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij")).astype(np.float64)


@operation("rotate_linear", judge=Close(256), variants=[{"degrees": 30.0}, {"degrees": -90.0}, {"degrees": 180.0}, {"degrees": 7.5}])
def rotate_linear(a, degrees):
    turn = np.radians(degrees)
    cos, sin = np.cos(turn), np.sin(turn)
    at = places(a.shape)
    y, x = at[-2] - (a.shape[-2] - 1) / 2, at[-1] - (a.shape[-1] - 1) / 2
    at[-2] = cos * y + sin * x + (a.shape[-2] - 1) / 2
    at[-1] = cos * x - sin * y + (a.shape[-1] - 1) / 2
    return sampled(a, at)


PLANE = [0.9, 0.25, -0.125, 1.1]
STACK = [1.0, 0.0, 0.25, 0.0, 0.75, 0.5, 0.125, -0.25, 1.0]


@operation("affine_linear", judge=Close(256),
           variants=[{"matrix": STACK, "offset": 0.5}, {"matrix": PLANE}, {"matrix": PLANE, "offset": [1.5, -0.75]},
                     {"matrix": [1.0, 0.0, 0.5, 0.0, 1.0, -2.0]}, {"matrix": [0.5, 0, 1, 0, 2, 0, 0, 0, 1]}],
           only=lambda shape, params, content: (len(shape) == 3) == (params["matrix"] is STACK))  # fmt: skip
def affine_linear(a, matrix, offset=0.0):
    d = a.ndim
    rows = np.array(matrix, float)[: d * (len(matrix) // d if len(matrix) != (d + 1) ** 2 else d + 1)].reshape(d, -1)
    shift = np.broadcast_to(offset, d) + (rows[:, d] if rows.shape[1] > d else 0.0)
    at = np.einsum("ij,j...->i...", rows[:, :d], places(a.shape)) + shift.reshape(-1, *[1] * d)
    return sampled(a, at)


def resized(shape, factor):
    """The new extents; halves round to even, and an axis of one pixel stays."""
    factor = np.broadcast_to(factor, len(shape))
    return [1 if n == 1 else int(np.rint(n * f)) for n, f in zip(shape, factor)]


RESIZE = {
    "variants": [{"factor": 2.0}, {"factor": 0.5}, {"factor": Axes(1.0, 1.5, 0.7)}, {"factor": 3.3}],
    "only": lambda shape, params, content: all(resized(shape, params["factor"])),
}


@operation("resize_linear", **RESIZE, judge=Close(64))
def resize_linear(a, factor):
    new = resized(a.shape, factor)
    at = places(new)
    for axis, (old, length) in enumerate(zip(a.shape, new)):
        at[axis] = (at[axis] + 0.5) * old / length - 0.5
    return ndimage.map_coordinates(a, at, order=1, mode="nearest")


@operation("resize_nearest", **RESIZE, inputs=[("wide",), ("holes",)], native=True, out="same")
def resize_nearest(a, factor):
    new = resized(a.shape, factor)
    return a[np.ix_(*[(2 * np.arange(m) + 1) * n // (2 * m) for n, m in zip(a.shape, new)])]


@operation("blend_two", inputs=[("noise", "noise"), ("noise", "narrow"), ("noise", "noise:f32")], judge=Close(4),
           variants=[{"overlap": 1}, {"overlap": 9}, {"overlap": 0}],
           only=lambda shape, params, content: params["overlap"] <= (shape[-1] + 1) // 2)  # fmt: skip
def blend_two(a, b, overlap):
    w = (np.arange(overlap) + 0.5) / max(overlap, 1)
    both = a[..., a.shape[-1] - overlap :] * (1 - w) + b[..., :overlap] * w
    return np.concatenate([a[..., : a.shape[-1] - overlap], both, b[..., overlap:]], -1)
