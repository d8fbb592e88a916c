"""Each pixel by itself, and what takes one number from the whole image first."""

import numpy as np

from ..case import operation
from ..images import SHAPES, TYPES, cast
from ..judge import Close, Near, Sides

PLAIN = [("noise",), ("wide",), ("holes",)]


@operation("affine_intensity", inputs=[("noise",), ("holes",), ("wide",)], variants=[{"scale": 2.5, "offset": -3.0}, {"scale": -0.125, "offset": 0.0}],
           scale=lambda a, scale, offset: np.abs(a.astype(float)).max() * abs(scale) + abs(offset))  # fmt: skip
def affine_intensity(a, scale, offset):
    return a * scale + offset


@operation("power", inputs=[("positive",), ("small",), ("holes",)], judge=Close(64, relative=True),
           variants=[{"exponent": 2.0}, {"exponent": 0.5}, {"exponent": 1.7}, {"exponent": -1.0}, {"exponent": 0.0},
                     {"exponent": 3.0}])  # fmt: skip
def power(a, exponent):
    return a**exponent


@operation("gamma", inputs=[("positive",), ("gaps",)], judge=Close(64, relative=True),
           variants=[{"gamma": 0.5}, {"gamma": 2.2}, {"gamma": 0.8, "maximum": 200.0}])  # fmt: skip
def gamma(a, gamma, maximum=None):
    maximum = maximum or np.nanmax(a)
    return (a / maximum) ** gamma * maximum


@operation("invert", inputs=[("noise",), ("gaps",), ("wide",)], judge=Close(2, relative=True), variants=[{}, {"maximum": 255.0}])
def invert(a, maximum=None):
    return (np.nanmax(a) if maximum is None else maximum) - a


@operation("exp", inputs=[("small",), ("holes",)], judge=Close(64, relative=True), variants=[{"scale": 1.0}, {"scale": -0.75}])
def exp(a, scale):
    return np.exp(a * scale)


@operation("log1p", inputs=[("positive",), ("small",), ("holes",)], judge=Close(16, relative=True))
def log1p(a):
    return np.log1p(a)


@operation("sqrt", inputs=[("positive",), ("small",), ("holes",)], judge=Close(2, relative=True))
def sqrt(a):
    return np.sqrt(a)


@operation("abs", inputs=PLAIN, judge=Close(1, relative=True))
def absolute(a):
    return np.abs(a)


@operation("clip", inputs=[("noise",), ("holes",)], judge=Close(1, relative=True), variants=[{"low": -20.0, "high": 100.0}, {"low": 5.0, "high": 5.0}, {"low": 3.0}, {"high": 3.0}])
def clip(a, low=None, high=None):
    return np.clip(a, low, high)


COMPARE = {
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "equal": np.equal,
}


@operation(*COMPARE, inputs=[("small",), ("noise",), ("wide",), ("holes",)], out="u8",
           variants=[{"value": 3.0}, {"value": -2.5}, {"value": 0.0}])  # fmt: skip
def compare(name, a, value):
    return COMPARE[name](a, value).astype(np.uint8)


@operation("between", inputs=[("small",), ("noise",), ("holes",)], out="u8", variants=[{"low": 2.0, "high": 5.0}])
def between(a, low, high):
    return ((a >= low) & (a <= high)).astype(np.uint8)


PAIRS = {
    "add_images": np.add,
    "subtract_images": np.subtract,
    "multiply_images": np.multiply,
    "absolute_difference": lambda a, b: np.abs(a - b),
}


@operation(*PAIRS, inputs=[("noise", "noise"), ("holes", "holes"), ("small", "noise"), ("noise", "noise:u8"), ("wide", "wide"), ("wide", "wide:u32")],
           judge=Close(2, relative=True))  # fmt: skip
def pairs(name, a, b):
    return PAIRS[name](a, b)


@operation("maximum_images", "minimum_images", inputs=[("noise", "noise"), ("wide", "wide"), ("small", "small:u8"), ("holes", "holes")],
           native=True, out="common")  # fmt: skip
def extreme(name, a, b):
    return (np.fmax if name == "maximum_images" else np.fmin)(a, b)


@operation("divide_images", inputs=[("noise", "positive"), ("holes", "holes"), ("noise", "small"), ("small", "small")],
           judge=Close(2, relative=True))  # fmt: skip
def divide_images(a, b):
    return a / b


@operation("mask_image", inputs=[("noise", "mask:u8"), ("holes", "holes:f32"), ("wide", "mask:f32")], out="same", native=True)
def mask_image(a, mask):
    return np.where(mask != 0, a, 0)


@operation("select", inputs=[("mask:u8", "noise", "noise"), ("mask:u8", "holes", "holes"), ("mask:u16", "wide", "wide"), ("mask:f32", "noise", "noise:u8")],
           native=True, out="common")  # fmt: skip
def select(mask, a, b):
    return np.where(mask != 0, a, b)


@operation("minmax_normalize", inputs=[("noise",), ("cells",), ("gaps",), ("wide",)], judge=Close(4, relative=True),
           only=lambda shape, params, content: np.prod(shape) > 1)  # fmt: skip
def minmax_normalize(a):
    return (a - np.nanmin(a)) / (np.nanmax(a) - np.nanmin(a))


@operation("percentile_normalize", inputs=[("noise",), ("cells",), ("gaps",), ("wide",)], judge=Close(16),
           variants=[{"low": 1.0, "high": 99.8}, {"low": 25.0, "high": 50.0}],
           scale=lambda a, low, high: 1.0 + np.abs(a.astype(float)).max() / max(
               np.ptp(np.percentile(a.astype(float), [low, high])), 1e-30),
           only=lambda shape, params, content: np.prod(shape) > 12)  # fmt: skip
def percentile_normalize(a, low, high):
    bottom, top = np.nanpercentile(a, [low, high])
    return np.clip((a - bottom) / (top - bottom), 0, 1)


@operation("flat_field", inputs=[("noise", "positive"), ("gaps", "positive"), ("cells", "positive:f32"),
                                ("noise", "positive", "dim"), ("cells", "positive:f32", "dim:u16")],
           variants=[{}, {"dark": 0.25}], only=lambda shape, params, content: not ("dark" in params and len(content) == 3),
           scale=lambda a, flat, dark=0.0: np.abs(flat_field(a.astype(float), flat.astype(float), dark)).max())  # fmt: skip
def flat_field(a, flat, dark=0.0):
    return (a - dark) / (flat - dark) * (flat - dark).mean()


def histogram_threshold(name, image, bins):
    """scikit-image's threshold, as f64; whole numbers keep their type, which gives each a bin."""
    from skimage import filters

    image = image.astype(np.float64) if image.dtype.kind == "f" else image.copy()
    image = image[~np.isnan(image)]
    options = {} if name in ("threshold_li", "threshold_mean") else {"nbins": bins}
    try:
        return float(getattr(filters, name)(image, **options))
    except IndexError:
        # It looks for the first of the thresholds that settle, and there is none: nothing is above.
        return np.inf


@operation(
    "threshold_otsu", "threshold_triangle", "threshold_li", "threshold_yen", "threshold_isodata", "threshold_mean",
    inputs=[("cells",), ("gaps",), ("even",), ("level",), ("none",)], out="u8", native=True, judge=Sides(),
    variants=[{}, {"bins": 64}, {"bins": 3}],
    only=lambda shape, params, content: np.prod(shape) > 8,
)  # fmt: skip
def threshold(name, a, bins=256):
    if np.nanmin(a) == np.nanmax(a) and not (name == "threshold_yen" and a.dtype.kind == "f"):
        # Nothing is above, however a mean is rounded.
        return Near(np.zeros(a.shape, np.uint8), np.full(a.shape, np.inf))
    t = histogram_threshold(name, a, bins)
    return Near((a > t).astype(np.uint8), np.abs(a - t))


def wrapped(a, type):
    """As numpy's astype between whole numbers; what has a fraction saturates all the same."""
    return a.astype(np.int64).astype(TYPES[type])


def mapped(a, type, low, high, to_low, to_high):
    return cast((a.astype(np.float64) - low) * (to_high - to_low) / (high - low) + to_low, TYPES[type])


@operation("cast", inputs=[("wide",), ("noise",), ("small",)], out=None, native=True, judge=Close(1, relative=True),
           variants=[*({"type": name} for name in TYPES),
                     {"type": "u8", "scale_from": [0.0, 1024.0], "scale_to": [0.0, 128.0]},
                     {"type": "u16", "scale_from": [-64.0, 64.0]},
                     {"type": "f32", "scale_to": 2.0},
                     *({"type": name, "mode": "wrap"} for name in ("u8", "i16", "u32"))],
           shapes=SHAPES[:4] + SHAPES[-4:])  # fmt: skip
def cast_image(a, type, mode="saturate", scale_from=None, scale_to=None):
    if mode == "wrap" and a.dtype.kind != "f":
        return wrapped(a, type)
    if scale_from is not None or scale_to is not None:
        return mapped(a, type, *span(scale_from, a.dtype), *span(scale_to, TYPES[type]))
    # Between whole numbers nothing is lost on the way; what has a fraction is rounded to even.
    if a.dtype.kind == "f" or type in ("f32", "f64"):
        return cast(a.astype(np.float64), TYPES[type])
    ends = np.iinfo(TYPES[type])
    return np.clip(a.astype(np.int64), ends.min, ends.max).astype(TYPES[type])


def span(given, dtype):
    """Low and high; a single number is high, and nothing is the type's whole range."""
    if given is None:
        ends = np.iinfo(dtype) if np.dtype(dtype).kind != "f" else None
        return (float(ends.min), float(ends.max)) if ends else (0.0, 1.0)
    return tuple(given) if isinstance(given, list) else (0.0, given)
