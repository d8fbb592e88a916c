"""Filters that look at a neighbourhood."""

import numpy as np
from scipy import ndimage

from ..case import Axes, operation
from ..edges import active, ball, mode, padded, per_axis, ranked, without_nan
from ..images import STACKS
from ..judge import Close, Near, Sides

BOXES = [{"radius": 1}, {"radius": Axes(1, 3, 2)}, {"radius": 20}]
BALLS = [{"radius": 1}, {"radius": 3}, {"radius": Axes(1, 3, 2)}, {"radius": 1.5}, {"radius": Axes(0.5, 2.75, 1.2)}]
#: Windows of one pixel, along axes of one pixel and by a ball smaller than that.
ALONE = {"box": {"radius": Axes(0, 1, 0)}, "sphere": {"radius": 0.5}}
GAPS = [("noise",), ("gaps",)]
SIGMAS = [{"sigma": 0.6}, {"sigma": Axes(0.5, 1.3, 2.2)}, {"sigma": 4.0}]


def sizes(radius, rank):
    return [2 * r + 1 for r in per_axis(radius, rank)]


def blurred(a, sigma, boundary):
    return ndimage.gaussian_filter(a, sigma, mode=mode(boundary), truncate=4.0)


@operation("gaussian", inputs=GAPS, edges=True, variants=[*SIGMAS, {"sigma": 2.0, "truncate": 3.0}, {"sigma": 0.0}, {"sigma": Axes(0.0, 1.5, 0.0)}])
@active
def gaussian(a, sigma, boundary, truncate=4.0):
    return ndimage.gaussian_filter(a, sigma, mode=mode(boundary), truncate=truncate)


@operation("subtract_gaussian_background", inputs=GAPS, edges=True, variants=SIGMAS)
@active
def subtract_gaussian_background(a, sigma, boundary):
    return a - blurred(a, sigma, boundary)


@operation("divide_gaussian_background", inputs=("positive",), edges=True, variants=SIGMAS, judge=Close(32, relative=True))
@active
def divide_gaussian_background(a, sigma, boundary):
    return a / blurred(a, sigma, boundary)


# The blur's rounding is multiplied.
@operation("unsharp", inputs=[*GAPS, ("even",)], edges=True,
           variants=[{"sigma": 1.0, "amount": 1.5}, {"sigma": Axes(0.5, 2.0, 1.0), "amount": 0.5}, {"sigma": 3.7, "amount": 100.0}],
           scale=lambda a, amount, **p: np.abs(a.astype(float)).max() * (1 + abs(amount)))  # fmt: skip
@active
def unsharp(a, sigma, amount, boundary):
    return a + amount * (a - blurred(a, sigma, boundary))


@operation("difference_of_gaussian", inputs=GAPS, edges=True,
           variants=[{"sigma1": 1.0, "sigma2": 3.0}, {"sigma1": Axes(0.5, 1.0, 1.5), "sigma2": Axes(1.0, 2.0, 4.0)}])  # fmt: skip
@active
def difference_of_gaussian(a, sigma1, sigma2, boundary):
    return blurred(a, sigma1, boundary) - blurred(a, sigma2, boundary)


@operation("laplacian_of_gaussian", inputs=GAPS, edges=True, variants=SIGMAS, judge=Close(64))
@active
def laplacian_of_gaussian(a, sigma, boundary):
    return ndimage.gaussian_laplace(a, sigma, mode=mode(boundary), truncate=4.0) if a.size > 1 else np.zeros_like(a)


@operation("mean_box", inputs=GAPS, edges=True, variants=BOXES)
@active
def mean_box(a, radius, boundary):
    return spoilt(a, radius, boundary, lambda a: ndimage.uniform_filter(a, sizes(radius, a.ndim), mode=mode(boundary)))


def spoilt(a, radius, boundary, function):
    """Of an image without NaN, then NaN in every window that holds one: scipy's sums carry it on."""
    touched = ndimage.maximum_filter(np.isnan(a).astype(np.uint8), sizes(radius, a.ndim), mode=mode(boundary))
    return np.where(touched, np.nan, function(without_nan(a, 0)))


@operation("mean_sphere", inputs=GAPS, edges=True, variants=BALLS)
@active
def mean_sphere(a, radius, boundary):
    shape = ball(radius, a.ndim)
    return ndimage.correlate(a, shape / shape.sum(), mode=mode(boundary))


def rank_filter(function, a, boundary, **window):
    """scipy's filters of order statistics do not know where NaN belongs: here it comes last."""
    if not np.isnan(a).any():
        return function(a, mode=mode(boundary), **window)
    # What is outside is 0, which need not be inside.
    reach = [n // 2 for n in window["size"]] if "size" in window else [n // 2 for n in window["footprint"].shape]
    wide = padded(a, reach, boundary)
    inner = tuple(slice(r, r + n) for r, n in zip(reach, a.shape))
    return ranked(lambda a: function(a, mode="nearest", **window))(wide)[inner]


@operation("median_box", inputs=[("noise",), ("wide",), ("small",), ("holes",)], out="same", native=True, edges=True,
           variants=[{"radius": 1}, {"radius": Axes(1, 3, 2)}, {"radius": 6}])  # fmt: skip
@active
def median_box(a, radius, boundary):
    return rank_filter(ndimage.median_filter, a, boundary, size=sizes(radius, a.ndim))


@operation("median_sphere", inputs=[("noise",), ("wide",), ("holes",)], out="same", native=True, edges=True, variants=BALLS)
@active
def median_sphere(a, radius, boundary):
    return rank_filter(ndimage.median_filter, a, boundary, footprint=ball(radius, a.ndim))


@operation("percentile_box", inputs=[("noise",), ("wide",), ("holes",)], out="same", native=True, edges=True,
           variants=[{"radius": 1, "q": 30.0}, {"radius": Axes(1, 3, 2), "q": 75.0}, {"radius": 2, "q": 100.0},
                     {"radius": 2, "q": 0.0}])  # fmt: skip
@active
def percentile_box(a, radius, q, boundary):
    return rank_filter(ndimage.percentile_filter, a, boundary, percentile=q, size=sizes(radius, a.ndim))


EXTREMES = {"minimum": ndimage.minimum_filter, "maximum": ndimage.maximum_filter}
#: What a window of NaN only gives.
NOTHING = {"minimum": np.inf, "maximum": -np.inf}


@operation("minimum_box", "maximum_box", inputs=[("noise",), ("wide",), ("holes",), ("sunken",)], out="same", native=True, edges=True,
           variants=[*BOXES, ALONE["box"]])  # fmt: skip
def extreme_box(name, *images, **params):
    @active
    def run(a, radius, boundary):
        a = without_nan(a, NOTHING[name[:7]])
        return EXTREMES[name[:7]](a, sizes(radius, a.ndim), mode=mode(boundary))

    return run(*images, **params)


@operation("minimum_sphere", "maximum_sphere", inputs=[("noise",), ("wide",), ("holes",)], out="same", native=True, edges=True,
           variants=[*BALLS, ALONE["sphere"]])  # fmt: skip
def extreme_sphere(name, *images, **params):
    @active
    def run(a, radius, boundary):
        a = without_nan(a, NOTHING[name[:7]])
        return EXTREMES[name[:7]](a, footprint=ball(radius, a.ndim), mode=mode(boundary))

    return run(*images, **params)


def square(a, **params):
    return np.abs(a.astype(float)).max() ** 2


def variance(a, radius, boundary):
    """From sums about the image's middle, with more digits than f64 has: what cancels is not missed. Each
    window is summed by itself, so that zeros beyond the edge cost only those that see them."""
    radius = per_axis(radius, a.ndim)
    wide = padded(a, radius, boundary).astype(np.longdouble) - np.rint(a.mean())

    def means(image):
        for axis, r in enumerate(radius):
            length = image.shape[axis] - 2 * r
            parts = (np.moveaxis(image, axis, 0)[by : by + length] for by in range(2 * r + 1))
            image = np.moveaxis(sum(parts) / (2 * r + 1), 0, axis)
        return image

    return np.maximum(means(wide**2) - means(wide) ** 2, 0).astype(np.float64)


#: Far from zero, too.
SPREADS = [*GAPS, ("far",)]


def lost(a, **params):
    """What differences of sums of squares in f64 lose; of whole numbers nothing."""
    if a.dtype.kind in "iu":
        return 1.0
    return square(a) * (1.0 if a.dtype == np.float64 else 2e-8)


@operation("variance_box", inputs=SPREADS, edges=True, variants=BOXES, judge=Close(32), scale=lost)
@active
def variance_box(a, radius, boundary):
    return spoilt(a, radius, boundary, lambda a: variance(a, radius, boundary))


def root_lost(a, **params):
    """The same of its root, which magnifies what is lost where little is left: far from zero."""
    if a.dtype.kind in "iu":
        return 1.0
    seen = a[np.isfinite(a)].astype(float)
    is_far = seen.size > 0 and np.ptp(seen) < 0.1 * np.abs(seen).max()
    near, far = (1e6, 1.6e7) if a.dtype == np.float64 else (1e-2, 4e-2)
    return square(a) ** 0.5 * (far if is_far else near)


@operation("std_box", inputs=SPREADS, edges=True, variants=BOXES, judge=Close(64), scale=root_lost)
@active
def std_box(a, radius, boundary):
    return spoilt(a, radius, boundary, lambda a: np.sqrt(variance(a, radius, boundary)))


#: Contents and scale of differences: whole numbers that f32 does not hold lose nothing either.
DIFFERENCES = [("noise",), ("gaps",), ("wide",)]


def cancelled(a, **params):
    return 0.0 if a.dtype.kind in "iu" else 32 * square(a) ** 0.5


@operation("sobel", inputs=DIFFERENCES, edges=True, scale=cancelled)
@active
def sobel(a, boundary):
    if a.size == 1:
        return np.zeros_like(a)
    return np.sqrt(sum(ndimage.sobel(a, axis, mode=mode(boundary)) ** 2 for axis in range(a.ndim)))


@operation("gradient_x", "gradient_y", inputs=DIFFERENCES, edges=True, scale=cancelled)
def gradient(name, a, boundary):
    axis = "zyx".index(name[-1]) - 3
    if a.shape[axis] == 1:
        return np.zeros_like(a)
    if boundary == "clamp":
        return np.gradient(a, axis=axis)
    wide = padded(a, [int(other == axis % a.ndim) for other in range(a.ndim)], boundary)
    part = lambda start, stop: np.take(wide, range(start, wide.shape[axis] + stop), axis)
    return (part(2, 0) - part(0, -2)) / 2


@operation("gradient_z", inputs=DIFFERENCES, edges=True, shapes=STACKS, scale=cancelled)
def gradient_z(a, boundary):
    return gradient("gradient_z", a, boundary)


@operation("laplace_diamond", inputs=DIFFERENCES, edges=True, scale=cancelled)
@active
def laplace_diamond(a, boundary):
    return -ndimage.laplace(a, mode=mode(boundary)) if a.size > 1 else np.zeros_like(a)


@operation("laplace_box", inputs=DIFFERENCES, edges=True, scale=cancelled)
@active
def laplace_box(a, boundary):
    kernel = -np.ones((3,) * a.ndim)
    kernel[(1,) * a.ndim] = 3**a.ndim - 1
    return ndimage.correlate(a, kernel, mode=mode(boundary)) if a.size > 1 else np.zeros_like(a)


def weights(a, kernel, **params):
    """The largest that a weighted sum can be."""
    return np.abs(a.astype(float)).max() * np.abs(kernel.astype(float)).sum()


KERNELS = [("noise", "kernel:f32"), ("gaps", "kernel:f32"), ("noise", "even_kernel:f32"), ("small", "kernel:u8")]


@operation("convolve", inputs=KERNELS, edges=True, scale=weights)
def convolve(a, kernel, boundary):
    return ndimage.convolve(a, kernel, mode=mode(boundary))


# The f32 transform of a stack adds up more rounding than a direct sum.
@operation("fft_convolve", inputs=KERNELS[:1] + KERNELS[2:], edges=True, scale=weights, judge=Close(64))
def fft_convolve(a, kernel, boundary):
    return ndimage.convolve(a, kernel, mode=mode(boundary))


def sides(a, **params):
    """Means of whole numbers are at least a hundredth of a thousandth from what they are not; of others
    the mean is rounded."""
    if a.dtype.kind in "iu":
        return 10.0
    return square(a) ** 0.5 * (1e-7 if a.dtype == np.float64 else 1.0)


@operation("threshold_local", inputs=[("cells",), ("noise",), ("gaps",), ("far",)], out="u8", edges=True, judge=Sides(), scale=sides,
           variants=[{"radius": 2, "offset": 0.0}, {"radius": Axes(1, 5, 3), "offset": 1.5}])  # fmt: skip
def threshold_local(a, radius, offset, boundary):
    margin = a - mean_box(a, radius=radius, boundary=boundary) - offset
    return Near((margin > 0).astype(np.uint8), np.abs(margin))


@operation("local_maxima", inputs=[("cells",), ("small",), ("holes",)], out="u8", native=True, edges=True,
           variants=[{"radius": 1, "threshold": 2.0}, {"radius": Axes(1, 3, 2)}])  # fmt: skip
def local_maxima(a, radius, boundary, threshold=-np.inf):
    highest = extreme_box("maximum_box", a, radius=radius, boundary=boundary)
    return ((a == highest) & (a > threshold)).astype(np.uint8)
