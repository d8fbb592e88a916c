"""Grey morphology: openings, closings and what they leave."""

import numpy as np
from scipy import ndimage

from ..case import Axes, operation
from ..edges import active, ball, mode, without_nan
from .filters import ALONE, sizes

#: Erosion first, or dilation first; and which way the difference goes.
STEPS = {
    "opening": lambda small, large, a: large(small(a)),
    "closing": lambda small, large, a: small(large(a)),
    "top_hat": lambda small, large, a: a - large(small(a)),
    "bottom_hat": lambda small, large, a: small(large(a)) - a,
}


def steps(name, a, boundary, **window):
    """In whole numbers that cannot overflow; the type's ends are applied by the caller's cast."""
    a = a.astype(np.int64) if a.dtype.kind != "f" else a
    small = lambda image: ndimage.grey_erosion(without_nan(image, np.inf), mode=mode(boundary), **window)
    large = lambda image: ndimage.grey_dilation(without_nan(image, -np.inf), mode=mode(boundary), **window)
    return STEPS[name](small, large, a)


@operation("opening_box", "closing_box", "top_hat_box", "bottom_hat_box", inputs=[("noise",), ("gaps",)], out="same", native=True, edges=True,
           variants=[{"radius": 1}, {"radius": Axes(1, 4, 2)}, {"radius": 20}, ALONE["box"]])  # fmt: skip
def box(name, *images, **params):
    run = lambda a, radius, boundary: steps(name[:-4], a, boundary, size=sizes(radius, a.ndim))
    return active(run)(*images, **params)


@operation("opening_sphere", "closing_sphere", "top_hat_sphere", "bottom_hat_sphere", inputs=[("noise",), ("gaps",)], out="same", native=True,
           edges=True, variants=[{"radius": 1}, {"radius": 3}, {"radius": Axes(1, 3, 2)}, {"radius": 2.5}, ALONE["sphere"]])  # fmt: skip
def sphere(name, *images, **params):
    run = lambda a, radius, boundary: steps(name[:-7], a, boundary, footprint=ball(radius, a.ndim))
    return active(run)(*images, **params)
