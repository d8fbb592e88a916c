"""Masks: zero or not in, zero or one out."""

import numpy as np
from scipy import ndimage

from ..case import operation
from ..edges import active, mode
from ..judge import Close

MASKS = {"inputs": [("mask",), ("holes",)], "native": True, "out": "u8"}


def structure(shape, rank):
    return ndimage.generate_binary_structure(rank, rank if shape == "box" else 1)


def repeated(extreme, a, near, iterations, boundary):
    """Where scipy's binary filters have no such rule, its grey ones do."""
    for _ in range(min(iterations, sum(a.shape))):
        a = extreme(a, footprint=near, mode=mode(boundary))
    return a


def eroded(a, near, iterations, boundary):
    if boundary in ("clamp", "zero"):
        return ndimage.binary_erosion(a, near, iterations, border_value=int(boundary == "clamp"))
    return repeated(ndimage.minimum_filter, a, near, iterations, boundary)


def dilated(a, near, iterations, boundary):
    if boundary in ("clamp", "zero"):
        return ndimage.binary_dilation(a, near, iterations)
    return repeated(ndimage.maximum_filter, a, near, iterations, boundary)


STEPS = {
    "binary_erode": lambda a, *how: eroded(a, *how),
    "binary_dilate": lambda a, *how: dilated(a, *how),
    "binary_open": lambda a, *how: dilated(eroded(a, *how), *how),
    "binary_close": lambda a, *how: eroded(dilated(a, *how), *how),
}


@operation(*STEPS, **MASKS, edges=True, variants=[{}, {"shape": "box"}, {"shape": "diamond", "iterations": 3}, {"shape": "box", "iterations": 40}])
def binary(name, a, boundary, shape="box", iterations=1):
    def run(a, boundary):
        return STEPS[name](a != 0, structure(shape, a.ndim), iterations, boundary).astype(np.uint8)

    return active(run)(a, boundary=boundary)


LOGIC = {"binary_and": np.logical_and, "binary_or": np.logical_or, "binary_xor": np.logical_xor}


@operation(*LOGIC, inputs=[("mask", "mask"), ("noise", "mask")], native=True, out="u8")
def logic(name, a, b):
    return LOGIC[name](a != 0, b != 0).astype(np.uint8)


@operation("binary_not", **MASKS)
def binary_not(a):
    return (a == 0).astype(np.uint8)


@operation("fill_holes", **MASKS)
@active
def fill_holes(a):
    return ndimage.binary_fill_holes(a != 0).astype(np.uint8)


# Without any zero, scipy measures from a place just outside; so do we.
@operation("distance_transform", inputs=[("mask",), ("full",)], native=True, judge=Close(2, relative=True))
def distance_transform(a):
    return ndimage.distance_transform_edt(a != 0)
