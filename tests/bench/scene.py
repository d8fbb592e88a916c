"""The images: spots on an uneven background with noise, from fixed seeds."""

import numpy as np
from scipy import ndimage


def spots(shape, seed=3):
    """f32, all above zero: a gradient, noise, and blurred points of various brightness."""
    rng = np.random.default_rng(seed)
    points = np.zeros(shape, np.float32)
    count = max(1, points.size // 30 ** len(shape))
    points[tuple(rng.integers(0, n, count) for n in shape)] = rng.uniform(1e4, 6e4, count)
    image = ndimage.gaussian_filter(points, 3.0 if len(shape) == 2 else 2.0)
    image += rng.normal(100.0, 5.0, shape).astype(np.float32)
    image += np.linspace(0.0, 50.0, shape[-1], dtype=np.float32)
    return np.maximum(image, 1.0)


def scene(shape):
    """Everything the operations are given, by name."""
    image = spots(shape)
    mask = (image > np.percentile(image, 85)).astype(np.uint8)
    labels = ndimage.label(mask)[0].astype(np.uint32)
    markers = ndimage.label(image > np.percentile(image, 97))[0].astype(np.uint32)
    rank = len(shape)
    bell = np.exp(-0.5 * (np.arange(-3, 4) / 1.5) ** 2)
    kernel = bell[:, None] * bell[None] if rank == 2 else bell[:, None, None] * bell[None, :, None] * bell
    return {
        "image": image,
        "other": spots(shape, seed=4),
        "flat": (1.0 + 0.2 * np.cos(np.linspace(-1, 1, shape[-1])) * np.ones(shape)).astype(np.float32),
        "u16": np.clip(image, 0, 65535).astype(np.uint16),
        "mask": mask,
        "mask2": (spots(shape, seed=5) > 130).astype(np.uint8),
        "labels": labels,
        "markers": markers,
        "kernel": (kernel / kernel.sum()).astype(np.float32),
    }
