"""Boundary rules in scipy's words, and which axes an operation works along."""

import numpy as np

#: Ours, and what scipy.ndimage calls them.
RULES = {"clamp": "nearest", "zero": "constant", "reflect": "reflect", "wrap": "wrap"}


def mode(boundary):
    """scipy's name of a rule; ours where none was given is `clamp`."""
    return RULES[boundary or "clamp"]


def active(function):
    """Lets `function` see only the axes longer than 1: a stack of one plane is a plane.

    A keyword that is a list has one entry per axis and loses the same ones. An image of one pixel
    has no such axis; it becomes a row of one, whose edge is repeated whatever the rule.
    """

    def wrapped(*images, **keywords):
        shape = images[0].shape
        keep = [axis for axis, length in enumerate(shape) if length > 1] or [len(shape) - 1]
        for name, value in keywords.items():
            if isinstance(value, (list, tuple)):
                keywords[name] = [value[axis] for axis in keep]
        if images[0].size == 1 and "boundary" in keywords:
            keywords["boundary"] = "clamp"
        squeezed = [image.reshape([image.shape[axis] for axis in keep]) for image in images]
        return function(*squeezed, **keywords).reshape(shape)

    wrapped.__name__, wrapped.__doc__ = function.__name__, function.__doc__
    return wrapped


def per_axis(value, rank):
    """A number or a list, as a list."""
    return list(value) if isinstance(value, (list, tuple)) else [value] * rank


def padded(image, radius, boundary):
    """The image with `radius[axis]` more pixels on either side of each axis."""
    for axis, r in enumerate(radius):
        length = image.shape[axis]
        at = np.arange(-r, length + r)
        match boundary or "clamp":
            case "wrap":
                source = at % length
            case "reflect":
                turn = at % (2 * length)
                source = np.minimum(turn, 2 * length - 1 - turn)
            case _:
                source = np.clip(at, 0, length - 1)
        image = np.take(image, source, axis)
        if boundary == "zero":
            outside = [np.newaxis] * image.ndim
            outside[axis] = slice(None)
            image = np.where(((at < 0) | (at >= length))[tuple(outside)], 0, image)
    return image


def ranked(function):
    """Lets an order statistic see places in the sorted list of values: NaN comes last."""

    def wrapped(image, *words, **keywords):
        values, places = np.unique(image, return_inverse=True)
        return values[function(places.reshape(image.shape), *words, **keywords)]

    return wrapped


def without_nan(image, instead):
    """The image with another value in place of NaN."""
    return np.where(np.isnan(image), image.dtype.type(instead), image) if image.dtype.kind == "f" else image


def ball(radius, rank):
    """Offsets x with sum((x / r)^2) <= 1, as a mask; an axis of radius 0 has one offset."""
    radius = per_axis(radius, rank)
    reach = [int(np.floor(r)) for r in radius]
    grid = np.meshgrid(*[np.arange(-n, n + 1) for n in reach], indexing="ij")
    return sum((x / r) ** 2 if r else 0.0 * x for x, r in zip(grid, radius)) <= 1
