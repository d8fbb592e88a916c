"""Files of other programs, and ours in theirs: numpy, tifffile and Pillow on either side.

Every image goes through an operation that leaves it as it is, so that all its bytes count.
"""

import itertools
import json
import shlex
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Callable

import numpy as np
import tifffile
from PIL import Image

from . import batch
from .images import TYPES, generator
from .judge import Verdict
from .report import Report

SHAPES = [(33, 47), (1, 1), (1, 17), (17, 1), (5, 21, 34), (1, 13, 19), (7, 1, 9), (9, 3, 2)]


def every_bit(shape, dtype):
    """An image of random bits, infinities among them, and NaN in the one form every device makes."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    array = np.frombuffer(generator("files", shape, dtype).bytes(size), dtype).reshape(shape).copy()
    array[array != array] = np.nan if dtype.kind == "f" else 0
    return array


def tif(**options):
    def write(path, array):
        tifffile.imwrite(path, array, photometric="minisblack", **options)

    return write


def png(path, array):
    Image.fromarray(array).save(path)


#: How the image comes in: a name, the ending, and what writes it.
WRITERS = [
    ("npy", ".npy", np.save),
    ("npy-fortran", ".npy", lambda path, a: np.save(path, np.asfortranarray(a))),
    ("npy-big-endian", ".npy", lambda path, a: np.save(path, a.astype(a.dtype.newbyteorder(">")))),
    ("tif", ".tif", tif()),
    ("tif-plain", ".tif", tif(metadata=None)),
    ("tif-imagej", ".tif", tif(imagej=True)),
    ("tif-ome", ".tif", tif(ome=True)),
    ("tif-bigtiff", ".tif", tif(bigtiff=True)),
    ("tif-big-endian", ".tif", tif(byteorder=">")),
    ("tif-strips", ".tif", tif(rowsperstrip=3)),
    ("tif-tiles", ".tif", tif(tile=(16, 32))),
    ("tif-deflate", ".tif", tif(compression="zlib")),
    ("tif-deflate-tiles", ".tif", tif(compression="zlib", tile=(16, 16))),
    ("png", ".png", png),
]

#: How the result goes out, and what reads it.
READERS = {
    ".npy": np.load,
    ".tif": tifffile.imread,
    ".png": lambda path: np.array(Image.open(path)),
}


@dataclass
class FileCase:
    """One image, from one format into another."""

    operation: SimpleNamespace
    ending: str
    write: Callable
    array: np.ndarray
    dtype: str
    suffix: str
    number: int

    def input(self, folder):
        path = folder.root / "inputs" / f"file-{self.number}{self.ending}"
        if not path.exists():
            self.write(path, self.array)
        return str(path)

    def args(self):
        return [f"type={self.dtype}"]

    def line(self, folder):
        output = str(folder.output(self))
        return json.dumps({"op": "cast", "args": self.args(), "inputs": [self.input(folder)], "output": output})

    def command(self, folder, program, flags):
        words = [program, "apply", "cast", *self.args(), "-i", self.input(folder)]
        return shlex.join([*words, "-o", str(folder.output(self)), *flags])

    def judge(self, folder):
        got = READERS[self.suffix](folder.output(self))
        want = self.array
        # Nothing in these files says that there is a third axis of one plane.
        if self.operation.name in ("tif-plain", "tif-imagej", "tif-ome") and want.shape[0] == 1:
            want = want.reshape(want.shape[-2:])
        if got.shape != want.shape or got.dtype != want.dtype:
            return Verdict(False, text=f"{got.shape} {got.dtype}, expected {want.shape} {want.dtype}")
        wrong = int((got.tobytes() != want.tobytes()) and (got.view("u1") != want.view("u1")).sum())
        return Verdict(not wrong, text=f"{wrong} bytes are wrong")

    def __str__(self):
        shape = "x".join(map(str, self.array.shape))
        return f"{self.operation.name} to {self.suffix}, {shape} {self.dtype}"


def possible(name, suffix, dtype, shape):
    """What formats and their writers can hold."""
    plane = len(shape) == 2
    if name == "png" and not (plane and dtype in ("u8", "u16")):
        return False
    if name == "tif-imagej" and dtype not in ("u8", "u16", "f32"):
        return False
    return suffix != ".png" or (plane and dtype in ("u8", "u16"))


def cases():
    number = 800_000
    for (name, ending, write), suffix, dtype, shape in itertools.product(WRITERS, READERS, TYPES, SHAPES):
        # Every way in once; every way out from the simplest.
        if (suffix == ".npy" or name == "npy") and possible(name, suffix, dtype, shape):
            array = every_bit(shape, np.dtype(TYPES[dtype]))
            yield FileCase(SimpleNamespace(name=name), ending, write, array, dtype, suffix, number)
            number += 1


def check(folder, program, flags):
    """All of them, in one process."""
    report = Report()
    every = list(cases())
    for case, error in zip(every, batch.run(every, folder, program, flags)):
        try:
            verdict = Verdict(False, text=error) if error else case.judge(folder)
        except (OSError, ValueError) as unreadable:
            verdict = Verdict(False, text=f"{type(unreadable).__name__}: {unreadable}")
        report.add(case, verdict, case.command(folder, program, flags))
    return report
