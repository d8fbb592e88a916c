"""One check of one operation, and how a declaration becomes many of them."""

import functools
import itertools
import json
import shlex
from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np

from . import edges, images
from .judge import Choice, Close, Exact

#: Every declared operation, by name.
OPERATIONS: dict[str, "Operation"] = {}


class Axes(tuple):
    """A value for z, for y and for x; a plane takes the last two."""

    def __new__(cls, *values):
        return super().__new__(cls, values)


@dataclass
class Operation:
    """What an operation takes and what it must give."""

    name: str
    reference: Callable
    #: Alternatives; each names the content of every input, with its type where that is fixed.
    inputs: list[tuple[str, ...]]
    types: list[str]
    #: The element type of the result: `same`, `common`, `real`, one of ours, or None for any.
    out: str | None
    judge: Any
    shapes: list[tuple[int, ...]]
    variants: list[dict]
    #: Takes `boundary`.
    edges: bool
    #: The reference sees the images as they are; otherwise it sees them as f64.
    native: bool
    #: The size of the numbers that rounding errors are measured by, from images and parameters.
    scale: Callable | None
    #: Which combinations make sense, from shape, parameters and contents.
    only: Callable
    table: bool = False

    def cases(self, shapes=()):
        """Types x shapes x parameters x boundary rules; of other contents than the first, all of that
        on the first shapes, and the plainest parameters on the others."""
        ranks = {len(shape) for shape in self.shapes}
        shapes = [shape for shape in shapes if len(shape) in ranks] or self.shapes
        main = list({len(shape): shape for shape in reversed(shapes)}.values())
        rules = list(edges.RULES) if self.edges else [None]
        for content, dtype, shape, variant, rule in itertools.product(
            self.inputs, self.types, shapes, self.variants, rules
        ):
            plain = variant is self.variants[0] and rule in (None, "clamp")
            if content is not self.inputs[0] and shape not in main and not plain:
                continue
            if dtype[0] != "f" and not images.FLOATING.isdisjoint(content):
                continue
            params = {
                name: value[-len(shape) :] if isinstance(value, Axes) else value
                for name, value in variant.items()
            }
            if rule and rule != "clamp":
                params["boundary"] = rule
            if self.only(shape, params, content):
                keys = []
                for seed, what in enumerate(content):
                    name, _, fixed = what.partition(":")
                    keys.append((name, shape, fixed or dtype, seed))
                yield Case(self, keys, params, dtype)


def operation(
    *names,
    inputs=("noise",),
    types=tuple(images.TYPES),
    out="real",
    judge=None,
    shapes=tuple(images.SHAPES),
    variants=({},),
    edges=False,
    native=False,
    scale=None,
    only=lambda shape, params, content: True,
    table=False,
):
    """Declares operations that share a reference; one of several names is passed to it first."""
    alternatives = [inputs] if isinstance(inputs[0], str) else list(inputs)
    # What keeps its type, and what is a mask or a label, has one right answer.
    judge = judge or (Close() if out in ("real", None) else Exact())

    def declare(reference):
        for name in names:
            chosen = functools.partial(reference, name) if len(names) > 1 else reference
            OPERATIONS[name] = Operation(
                name, chosen, alternatives, list(types), out, judge, list(shapes),
                list(variants), edges, native, scale, only, table,
            )  # fmt: skip
        return reference

    return declare


@functools.lru_cache(maxsize=4096)
def image(key):
    """The image of a key, made once."""
    content, shape, dtype, seed = key
    made = getattr(images, content)(shape, dtype, seed)
    made.setflags(write=False)
    return made


def written(value):
    """A parameter as `warploom apply` reads it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(map(written, value))
    if isinstance(value, float):
        return repr(float(value))
    return str(value)


@dataclass
class Case:
    """One operation on certain images with certain parameters."""

    operation: Operation
    keys: list[tuple]
    params: dict
    #: The element type that this case is about.
    dtype: str = "f32"
    #: A refusal: this text has to be part of the error.
    refused: str | None = None
    number: int = field(default=-1)

    @property
    def suffix(self):
        return ".json" if self.operation.table else ".npy"

    def traits(self):
        """What a small selection of cases has to cover."""
        contents = "+".join(key[0] for key in self.keys)
        yield from (("shape", self.keys[0][1]), ("type", self.dtype), ("content", contents))
        yield from ((name, str(value)) for name, value in self.params.items())

    def args(self):
        return [f"{name}={written(value)}" for name, value in self.params.items()]

    def images(self):
        return [image(key) for key in self.keys]

    def expected(self):
        """The reference's answer, in the element type ours must have."""
        # Copies, because some references want to be able to write.
        arrays = [a.copy() if self.operation.native else a.astype(np.float64) for a in self.images()]
        keywords = dict(self.params)
        if self.operation.edges:
            keywords.setdefault("boundary", "clamp")
        with np.errstate(all="ignore"):
            answer = self.operation.reference(*arrays, **keywords)
            wanted = self.wanted()
            if wanted is not None and isinstance(answer, np.ndarray):
                return images.cast(answer, wanted)
            if wanted is not None and isinstance(answer, Choice):
                answer.answer = images.cast(answer.answer, wanted)
        return answer

    def wanted(self):
        """The result's element type; None where any will do."""
        match self.operation.out:
            case None:
                return None
            case "common":
                types = {dtype for content, _, dtype, _ in self.keys if content != "mask"}
                return np.dtype(images.TYPES[types.pop() if len(types) == 1 else self.real(types)])
            case "same":
                return np.dtype(images.TYPES[self.dtype])
            case "real":
                return np.dtype(images.TYPES[self.real({self.dtype})])
            case name:
                return np.dtype(images.TYPES[name])

    @staticmethod
    def real(types):
        return "f64" if "f64" in types else "f32"

    def scale(self):
        """What rounding errors are measured by: by default the largest number that came in."""
        finite = [np.where(np.isfinite(array), array, 0) for array in self.images()]
        if self.operation.scale:
            return float(self.operation.scale(*finite, **self.params))
        return max(float(np.abs(array.astype(np.float64)).max(initial=0)) for array in finite)

    def __str__(self):
        shapes = ", ".join(f"{'x'.join(map(str, k[1]))} {k[2]} {k[0]}" for k in self.keys)
        return f"{self.operation.name} {' '.join(self.args())} on {shapes}"

    def line(self, folder):
        """What the batch says about it."""
        return json.dumps(
            {
                "op": self.operation.name,
                "args": self.args(),
                "inputs": [str(folder.input(key)) for key in self.keys],
                "output": str(folder.output(self)),
            }
        )

    def command(self, folder, program, flags):
        """The command that repeats it."""
        words = [program, "apply", self.operation.name, *self.args()]
        for key in self.keys:
            words += ["-i", str(folder.input(key))]
        return shlex.join([*words, "-o", str(folder.output(self)), *flags])
