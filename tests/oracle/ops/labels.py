"""Numbered objects."""

import numpy as np
from scipy import ndimage
from skimage import segmentation

from ..case import operation
from ..edges import active
from .masks import structure

LABELS = {"inputs": ("labels",), "types": ["u8", "u16", "i16", "i32", "u32"], "native": True, "out": "u32"}


def in_scan_order(found):
    """Numbers from 1 in the order of each object's first pixel."""
    numbers, first = np.unique(found, return_index=True)
    first = first[numbers > 0]
    lookup = np.zeros(int(numbers.max()) + 1, np.int64)
    lookup[numbers[numbers > 0][np.argsort(first)]] = np.arange(1, first.size + 1)
    return lookup[found]


@operation("label_box", "label_diamond", inputs=[("mask",), ("noise",), ("holes",)], native=True, out="u32")
def label(name, a):
    def run(a):
        return in_scan_order(ndimage.label(a != 0, structure(name[6:], a.ndim))[0])

    return active(run)(a)


def kept(a, keep, relabel):
    sizes = np.bincount(a.ravel())
    result = np.where(keep(sizes)[a], a, 0)
    return segmentation.relabel_sequential(result)[0] if relabel else result


@operation("remove_small_labels", **LABELS,
           variants=[{"minimum": 5}, {"minimum": 1}, {"minimum": 8, "relabel": True}])  # fmt: skip
def remove_small_labels(a, minimum, relabel=False):
    return kept(a, lambda sizes: sizes >= minimum, relabel)


@operation("remove_large_labels", **LABELS,
           variants=[{"maximum": 9}, {"maximum": 6, "relabel": True}])  # fmt: skip
def remove_large_labels(a, maximum, relabel=False):
    return kept(a, lambda sizes: sizes <= maximum, relabel)


# Of `small` images neighbours have other labels: pieces meet at corners in every way.
@operation("clear_border", **{**LABELS, "inputs": [("labels",), ("small",)]})
@active
def clear_border(a):
    return segmentation.clear_border(a)


@operation("relabel_sequential", **LABELS)
def relabel_sequential(a):
    return segmentation.relabel_sequential(a)[0]


@operation("expand_labels", **{**LABELS, "inputs": [("markers",), ("labels",), ("none",)]},
           variants=[{"distance": 1.0}, {"distance": 3.5}, {"distance": 50.0}, {"distance": 0.0}])  # fmt: skip
def expand_labels(a, distance):
    return segmentation.expand_labels(a, distance)


@operation("watershed", inputs=[("markers:u32", "bumps"), ("markers:u32", "bumps", "mask:u8"), ("markers:u32", "small")],
           native=True, out="u32")  # fmt: skip
def watershed(markers, image, mask=None):
    mask = None if mask is None else mask != 0
    return segmentation.watershed(image, markers.astype(np.int32), mask=mask).astype(np.uint32)
