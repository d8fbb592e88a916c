"""Backgrounds, illumination, deconvolution, registration."""

import numpy as np
from scipy import ndimage
from skimage import restoration

from ..case import operation
from ..edges import active
from ..judge import Close


@operation("subtract_rolling_ball", inputs=("cells",), variants=[{"radius": 3}, {"radius": 12}], judge=Close(32))
@active
def subtract_rolling_ball(a, radius):
    return a - restoration.rolling_ball(a, radius=radius)
