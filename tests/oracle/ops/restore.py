"""Backgrounds, deconvolution, registration."""

import numpy as np
from scipy import ndimage
from skimage import registration, restoration

from ..case import Axes, operation
from ..edges import active, mode, padded
from ..judge import Close, Exact


@operation("subtract_rolling_ball", inputs=("cells",), variants=[{"radius": 3.0}, {"radius": 12.0}, {"radius": 4.5}], edges=True,
           judge=Close(32))  # fmt: skip
@active
def subtract_rolling_ball(a, radius, boundary):
    if boundary in ("clamp", "reflect"):
        return a - restoration.rolling_ball(a, radius=radius)
    margin = int(np.ceil(radius))
    background = restoration.rolling_ball(padded(a, [margin] * a.ndim, boundary), radius=radius)
    return a - background[tuple(slice(margin, margin + n) for n in a.shape)]


# Whatever moves, moves in a circle, so that one answer is right.
@operation("phase_shift", inputs=[("rolled", "texture")], out=None, judge=Exact(),
           only=lambda shape, params, content: np.prod(shape) > 16)  # fmt: skip
def phase_shift(a, b):
    return registration.phase_cross_correlation(a, b, upsample_factor=1)[0]


def deconvolved(a, blur, mirrored, iterations):
    guess = np.ones_like(a)
    for _ in range(iterations):
        guess = guess * mirrored(a / np.maximum(blur(guess), 1e-12))
    return guess


def by_sigma(a, sigma, iterations, boundary):
    blur = lambda image: ndimage.gaussian_filter(image, sigma, mode=mode(boundary), truncate=4.0)
    return deconvolved(a, blur, blur, iterations)


# Each step multiplies, so errors are relative and add up.
@operation("richardson_lucy", inputs=[("cells",), ("cells", "spread:f32")], edges=True, judge=Close(512),
           variants=[{"sigma": 1.0}, {"sigma": Axes(0.5, 1.5, 1.0), "iterations": 4}, {"iterations": 3}],
           only=lambda shape, params, content: ("sigma" in params) == (len(content) == 1))  # fmt: skip
def richardson_lucy(a, psf=None, sigma=None, iterations=10, boundary="clamp"):
    if psf is None:
        return active(by_sigma)(a, sigma=sigma, iterations=iterations, boundary=boundary)
    psf = psf / psf.sum()
    blur = lambda image: ndimage.convolve(image, psf, mode=mode(boundary))
    mirrored = lambda image: ndimage.correlate(image, psf, mode=mode(boundary))
    return deconvolved(a, blur, mirrored, iterations)
