"""Backgrounds, deconvolution, registration."""

import numpy as np
from scipy import ndimage
from skimage import registration, restoration

from ..case import Axes, operation
from ..edges import active
from ..judge import Close, Exact


@operation("subtract_rolling_ball", inputs=("cells",), variants=[{"radius": 3.0}, {"radius": 12.0}], judge=Close(32))
@active
def subtract_rolling_ball(a, radius):
    return a - restoration.rolling_ball(a, radius=radius)


# Whatever moves, moves in a circle, so that one answer is right.
@operation("phase_shift", inputs=[("rolled", "texture")], out=None, judge=Exact(),
           only=lambda shape, params, content: np.prod(shape) > 100)  # fmt: skip
def phase_shift(a, b):
    return registration.phase_cross_correlation(a, b, upsample_factor=1)[0]


def deconvolved(a, blur, mirrored, iterations):
    guess = np.ones_like(a)
    for _ in range(iterations):
        guess = guess * mirrored(a / np.maximum(blur(guess), 1e-12))
    return guess


def by_sigma(a, sigma, iterations):
    blur = lambda image: ndimage.gaussian_filter(image, sigma, mode="nearest", truncate=4.0)
    return deconvolved(a, blur, blur, iterations)


# Each step multiplies, so errors are relative and add up.
@operation("richardson_lucy", inputs=[("cells",), ("cells", "spread:f32")], judge=Close(512),
           variants=[{"sigma": 1.0}, {"sigma": Axes(0.5, 1.5, 1.0), "iterations": 4}, {"iterations": 3}],
           only=lambda shape, params, content: ("sigma" in params) == (len(content) == 1))  # fmt: skip
def richardson_lucy(a, psf=None, sigma=None, iterations=10):
    if psf is None:
        return active(by_sigma)(a, sigma=sigma, iterations=iterations)
    psf = psf / psf.sum()
    blur = lambda image: ndimage.convolve(image, psf, mode="nearest")
    mirrored = lambda image: ndimage.correlate(image, psf, mode="nearest")
    return deconvolved(a, blur, mirrored, iterations)
