"""What has to be refused, and the words the error must contain."""

from dataclasses import replace

from .case import OPERATIONS, Case
from . import ops  # noqa: F401


def refusal(name, params, *keys, words):
    """`words` is part of the error; the operation may be one that does not exist."""
    known = OPERATIONS.get(name) or replace(OPERATIONS["gaussian"], name=name)
    return Case(known, list(keys), params, refused=words)


PLANE = ("noise", (9, 11), "f32", 0)
OTHER = ("noise", (9, 10), "f32", 0)
ROW = ("noise", (11,), "f32", 0)
DEEP = ("noise", (2, 2, 3, 4), "f32", 0)
EMPTY = ("noise", (0, 4), "f32", 0)

REFUSALS = [
    refusal("gausian", {"sigma": 1.0}, PLANE, words="gaussian"),
    refusal("gaussian", {"sigm": 1.0}, PLANE, words="sigma"),
    refusal("gaussian", {}, PLANE, words="sigma"),
    refusal("gaussian", {"sigma": "nan"}, PLANE, words="sigma"),
    refusal("gaussian", {"sigma": "inf"}, PLANE, words="sigma"),
    refusal("gaussian", {"sigma": -1.0}, PLANE, words="sigma"),
    refusal("gaussian", {"sigma": "wide"}, PLANE, words="sigma"),
    refusal("gaussian", {"sigma": "1,2,3,4"}, PLANE, words="sigma"),
    refusal("gaussian", {"sigma": 1.0, "boundary": "mirror"}, PLANE, words="boundary"),
    refusal("gaussian", {"sigma": 1.0}, ROW, words="gaussian"),
    refusal("gaussian", {"sigma": 1.0}, DEEP, words="gaussian"),
    refusal("gaussian", {"sigma": 1.0}, EMPTY, words="gaussian"),
    refusal("gaussian", {"sigma": 1.0}, words="gaussian"),
    refusal("gaussian", {"sigma": 1.0}, PLANE, PLANE, words="gaussian"),
    refusal("mean_box", {"radius": 0}, PLANE, words="radius"),
    refusal("mean_box", {"radius": -3}, PLANE, words="radius"),
    refusal("mean_box", {"radius": 1.5}, PLANE, words="radius"),
    refusal("percentile_box", {"radius": 1, "q": 101.0}, PLANE, words="q"),
    refusal("add_images", {}, PLANE, words="add_images"),
    refusal("add_images", {}, PLANE, OTHER, words="add_images"),
    refusal("cast", {"type": "f16"}, PLANE, words="f16"),
    refusal("histogram", {"bins": 0, "low": 0.0, "high": 1.0}, PLANE, words="bins"),
    refusal("crop", {"y": 0, "x": 0, "height": 0, "width": 3}, PLANE, words="height"),
    refusal("crop", {"y": 4, "x": 4, "height": 6, "width": 3}, PLANE, words="crop"),
    refusal("crop", {"y": 20, "x": 0, "height": 3, "width": 3}, PLANE, words="crop"),
    refusal("max_z", {}, PLANE, words="max_z"),
]
