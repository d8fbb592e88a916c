"""What the operations are given: small images of every type, shape and nature, from fixed seeds."""

import zlib

import numpy as np
from scipy import ndimage

TYPES = {
    "u8": np.uint8,
    "u16": np.uint16,
    "i16": np.int16,
    "i32": np.int32,
    "u32": np.uint32,
    "f32": np.float32,
    "f64": np.float64,
}

#: Odd, even, wider than a vector register, one row, one column, one pixel, smaller than a window.
PLANES = [(33, 47), (32, 64), (19, 131), (1, 17), (17, 1), (1, 1), (4, 3)]
#: A few planes, two planes, one plane, and stacks that are thin in another direction.
STACKS = [(5, 21, 34), (2, 16, 16), (1, 13, 19), (7, 1, 9), (4, 9, 1), (9, 3, 2)]
SHAPES = PLANES + STACKS


def short(dtype):
    """Our name of a type."""
    return next(name for name, kind in TYPES.items() if kind == np.dtype(dtype))


def generator(*key):
    """Random numbers that depend on these words and on nothing else."""
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


def cast(values, dtype):
    """As our casts: rounded to even, saturated."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return np.asarray(values, dtype)
    limits = np.iinfo(dtype)
    return np.clip(np.rint(np.nan_to_num(values)), limits.min, limits.max).astype(dtype)


def noise(shape, dtype, seed):
    """Values that f32 holds exactly, negative ones too where the type has them."""
    rng = generator("noise", shape, dtype, seed)
    kind = np.dtype(TYPES[dtype])
    if kind.kind == "f":
        return rng.normal(20.0, 50.0, shape).astype(kind)
    low = {"i": -1, "u": 0}[kind.kind] * min(np.iinfo(kind).max, 100_000)
    return rng.integers(low, min(np.iinfo(kind).max, 100_000), shape, kind, endpoint=True)


def gaps(shape, dtype, seed):
    """As `noise`, some pixels of it NaN."""
    image = noise(shape, dtype, seed)
    image[generator("gaps", shape, dtype, seed).uniform(size=shape) < 0.06] = np.nan
    return image


def holes(shape, dtype, seed):
    """As `gaps`, with infinities and a negative zero besides."""
    image = gaps(shape, dtype, seed)
    rng = generator("holes", shape, dtype, seed)
    for value in (np.inf, -np.inf, -0.0):
        image[rng.uniform(size=shape) < 0.03] = value
    return image


#: Contents that only f32 and f64 can hold.
FLOATING = {"gaps", "holes", "sunken"}


def foreign(shape, dtype, seed):
    """Elements of a type that no operation takes."""
    return np.ones(shape, np.int64)


def positive(shape, dtype, seed):
    """As `noise`, all above zero."""
    image = noise(shape, dtype, seed)
    return np.maximum(np.abs(image), 1).astype(image.dtype)


def small(shape, dtype, seed):
    """Values from 0 to 9 with many equal ones; fractions in float images."""
    rng = generator("small", shape, dtype, seed)
    step = 4 if dtype.startswith("f") else 1
    return (rng.integers(0, 9 * step, shape, endpoint=True) / step).astype(TYPES[dtype])


def wide(shape, dtype, seed):
    """The whole range of the type, its ends included."""
    rng = generator("wide", shape, dtype, seed)
    kind = np.dtype(TYPES[dtype])
    if kind.kind == "f":
        return (rng.normal(0, 1, shape) * 10.0 ** rng.uniform(-6, 6, shape)).astype(kind)
    ends = np.iinfo(kind)
    image = rng.integers(ends.min, ends.max, shape, kind, endpoint=True)
    image.flat[0], image.flat[-1] = ends.max, ends.min
    return image


def far(shape, dtype, seed):
    """Small differences far from zero: what squares and sums lose the digits of."""
    rng = generator("far", shape, dtype, seed)
    kind = np.dtype(TYPES[dtype])
    if kind.kind == "f":
        return (rng.normal(0.0, 3.0, shape) + (1e9 if dtype == "f64" else 4096.0)).astype(kind)
    return np.iinfo(kind).max - rng.integers(0, 20, shape, kind, endpoint=True)


def sunken(shape, dtype, seed):
    """NaN and minus infinity, and hardly anything else."""
    rng = generator("sunken", shape, dtype, seed)
    return rng.choice([np.nan, -np.inf, 1.0], shape, p=[0.6, 0.35, 0.05]).astype(TYPES[dtype])


def cells(shape, dtype, seed):
    """Bright spots on a sloped background with noise: what thresholds are for."""
    rng = generator("cells", shape, dtype, seed)
    spots = np.zeros(shape)
    count = max(1, spots.size // 60)
    spots.flat[rng.integers(0, spots.size, count)] = rng.uniform(2.0, 6.0, count)
    blur = ndimage.gaussian_filter(spots, [1.5 if length > 1 else 0 for length in shape])
    image = blur / max(blur.max(), 1e-9) + rng.normal(0.2, 0.03, shape)
    image += np.linspace(0, 0.1, shape[-1])
    top = {"u8": 200, "i16": 9000, "u16": 3000}.get(dtype, 20_000)
    return cast(np.clip(image, 0, 1.3) / 1.3 * top, TYPES[dtype])


def bumps(shape, dtype, seed):
    """A smooth landscape with plateaus, for floods."""
    image = ndimage.gaussian_filter(noise(shape, "f64", seed), 1.2, mode="nearest")
    image = (image - image.min()) / max(np.ptp(image), 1e-9)
    return cast(image * 60, TYPES[dtype]) if dtype[0] != "f" else image.astype(TYPES[dtype])


def mask(shape, dtype, seed):
    """Zero or not, in clumps with holes; what is not zero has various values."""
    rng = generator("mask", shape, dtype, seed)
    blur = ndimage.gaussian_filter(rng.normal(0, 1, shape), 1.0, mode="nearest")
    is_set = blur > np.quantile(blur, 0.45)
    values = rng.choice([1, 1, 2, 100, 127], shape)
    return np.where(is_set, values, 0).astype(TYPES[dtype])


def labels(shape, dtype, seed):
    """Objects of several sizes with gaps between their numbers."""
    rng = generator("labels", shape, dtype, seed)
    found, count = ndimage.label(mask(shape, "u8", seed))
    count = min(count, 100)
    numbers = np.sort(rng.choice(np.arange(1, 127), count, replace=False))
    rng.shuffle(numbers)
    lookup = np.zeros(found.max() + 1, np.int64)
    lookup[1 : count + 1] = numbers
    return lookup[found].astype(TYPES[dtype])


def markers(shape, dtype, seed):
    """A few numbered starting points."""
    rng = generator("markers", shape, dtype, seed)
    image = np.zeros(shape, TYPES[dtype])
    count = max(1, min(6, image.size // 12))
    image.flat[rng.choice(image.size, count, replace=False)] = np.arange(1, count + 1)
    return image


def none(shape, dtype, seed):
    """Nothing anywhere."""
    return np.zeros(shape, TYPES[dtype])


def even(shape, dtype, seed):
    """One value everywhere."""
    return np.full(shape, 7, TYPES[dtype])


def level(shape, dtype, seed):
    """One value everywhere that no sum of many holds: a fraction, or many digits."""
    kind = np.dtype(TYPES[dtype])
    return np.full(shape, 7.3 if kind.kind == "f" else np.iinfo(kind).max - 4, kind)


def dim(shape, dtype, seed):
    """What a camera gives in the dark: hardly anything, below zero where the type has that."""
    rng = generator("dim", shape, dtype, seed)
    if dtype.startswith("f"):
        return (rng.integers(0, 7, shape) / 8).astype(TYPES[dtype])
    return (-rng.integers(0, 9, shape) * int(dtype.startswith("i"))).astype(TYPES[dtype])


def full(shape, dtype, seed):
    """A mask without a gap."""
    return np.ones(shape, TYPES[dtype])


def texture(shape, dtype, seed):
    """The same for every seed, so that `rolled` is what it says."""
    return cells(shape, dtype, 0)


def rolled(shape, dtype, seed):
    """`texture` moved by whole pixels, less than half of each axis."""
    return np.roll(texture(shape, dtype, 0), moved(shape), range(len(shape)))


def moved(shape):
    """By how much `rolled` is moved."""
    return [(length - 1) // 2 * (-1) ** axis // 2 for axis, length in enumerate(shape)]


def narrow(shape, dtype, seed):
    """As high as `noise` of this shape, and half as wide."""
    return noise((*shape[:-1], (shape[-1] + 1) // 2), dtype, seed)


def kernel(shape, dtype, seed):
    """Weights of both signs; extents are odd, but larger and smaller than those of images."""
    return noise((3, 5, 7)[-len(shape) :], "f64", seed).astype(TYPES[dtype])


def even_kernel(shape, dtype, seed):
    """Weights around no pixel in particular."""
    return noise((2, 4, 6)[-len(shape) :], "f64", seed).astype(TYPES[dtype])


def spread(shape, dtype, seed):
    """What a point looks like: positive weights, not symmetric."""
    return positive((3, 3, 5)[-len(shape) :], "f64", seed).astype(TYPES[dtype])
