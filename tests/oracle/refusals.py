"""What has to be refused, and the words the error must contain.

Some by name; and of every operation, a call that makes sense, spoilt in every way that must not.
"""

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
    refusal("mean_sphere", {"radius": 0.0}, PLANE, words="radius"),
    refusal("mean_sphere", {"radius": -1.5}, PLANE, words="radius"),
    refusal("flat_field", {"dark": 1.0}, PLANE, PLANE, PLANE, words="dark"),
    refusal("percentile_box", {"radius": 1, "q": 101.0}, PLANE, words="q"),
    refusal("add_images", {}, PLANE, words="add_images"),
    refusal("add_images", {}, PLANE, OTHER, words="add_images"),
    refusal("cast", {"type": "f16"}, PLANE, words="f16"),
    refusal("histogram", {"bins": 0, "low": 0.0, "high": 1.0}, PLANE, words="bins"),
    refusal("crop", {"y": 0, "x": 0, "height": 0, "width": 3}, PLANE, words="height"),
    refusal("crop", {"y": 4, "x": 4, "height": 6, "width": 3}, PLANE, words="crop"),
    refusal("crop", {"y": 20, "x": 0, "height": 3, "width": 3}, PLANE, words="crop"),
    refusal("affine_linear", {"matrix": "1,0;0,1;0,0"}, PLANE, words="is 3x2"),
    refusal("affine_linear", {"matrix": "1;0;0;1"}, PLANE, words="is 4x1"),
    refusal("affine_linear", {"matrix": "1,0,0;0,1"}, PLANE, words="rows of 3, 2 numbers"),
    refusal("max_z", {}, PLANE, words="max_z"),
    refusal("median_box", {"radius": 5000}, PLANE, words="radius"),
    refusal("subtract_rolling_ball", {"radius": 900.0}, ("noise", (3, 9, 11), "f32", 0), words="radius"),
]


def spoilt(name, op):
    """Wrong calls of one operation, from a right one and from what the catalogue says of it."""
    right = next(iter(OPERATIONS[name].cases()))
    needed = sum(not image["optional"] for image in op["inputs"])
    keys, params = right.keys[:needed], right.params
    first = keys[0]
    yield keys[:-1], params
    yield [first] * (len(op["inputs"]) + 1), params
    for shape in ((11,), (2, 2, 3, 4), (0, 4), (3, 0, 4)):
        yield [(content, shape, dtype, seed) for content, _, dtype, seed in [("full", *first[1:])]] + keys[1:], params
    yield [("foreign", first[1], "i64", 0)] + keys[1:], params
    if needed > 1:
        # A kernel may have other extents, but not another number of axes.
        yield [*keys[:-1], ("full", (4, *first[1]) if len(first[1]) == 2 else first[1][1:], keys[-1][2], 0)], params
    yield keys, {**params, "zebra": 1}
    for param in op["params"]:
        if param["required"]:
            yield keys, {key: value for key, value in params.items() if key != param["name"]}
        yield keys, {**params, param["name"]: "nan"}
        yield keys, {**params, param["name"]: "zebra"}


def of_all(catalogue):
    """Every operation's wrong calls."""
    for name, op in catalogue.items():
        if name in OPERATIONS:
            for keys, params in spoilt(name, op):
                yield refusal(name, params, *keys, words=f"warploom ops {name}")
