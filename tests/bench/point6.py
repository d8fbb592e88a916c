"""Six pointwise steps on 2048 x 2048 frames, against Halide, numba, OpenCV and numpy.

    raw u16 -> (raw - dark) * gain -> at least 0 -> 2 * sqrt(. + 3/8) -> (. - 4) * 3.5 -> 0..255 -> u8

In one pass 11 bytes move per pixel.
"""

import os
import sys
import tempfile
from pathlib import Path

import numpy as np

from .clock import Limits, race
from .frames import COUNT, PIXELS, SIDE, frames, report, turns
from .ours import Refused, Server
from .seg2k import in_turn, on_frame

OURS = [
    {"op": "subtract_images", "args": [], "inputs": ["raw", "dark"]},
    {"op": "multiply_images", "args": [], "inputs": [0, "gain"]},
    {"op": "clip", "args": ["low=0"], "inputs": [1]},
    {"op": "affine_intensity", "args": ["offset=0.375"], "inputs": [2]},
    {"op": "sqrt", "args": [], "inputs": [3]},
    {"op": "affine_intensity", "args": ["scale=7", "offset=-14"], "inputs": [4]},
    {"op": "cast", "args": ["type=u8"], "inputs": [5]},
]


def numpy_steps(raw, dark, gain):
    v = np.maximum((raw - dark) * gain, np.float32(0))
    v = (np.sqrt(v + np.float32(0.375)) * np.float32(2) - np.float32(4)) * np.float32(3.5)
    return np.clip(np.rint(v), 0, 255).astype(np.uint8)


def halide_program():
    import halide as hl

    x, y, band, row = (hl.Var(name) for name in ("x", "y", "band", "row"))
    raw, dark, gain = hl.ImageParam(hl.UInt(16), 2), hl.ImageParam(hl.Float(32), 2), hl.ImageParam(hl.Float(32), 2)
    v = hl.max((hl.cast(hl.Float(32), raw[x, y]) - dark[x, y]) * gain[x, y], 0.0)
    v = hl.clamp(hl.sqrt(v + 0.375) * 7.0 - 14.0, 0.0, 255.0)
    made = hl.Func("point6")
    made[x, y] = hl.cast(hl.UInt(8), v + 0.5)
    made.split(y, band, row, 64).vectorize(x, 32).parallel(band)
    made.compile_jit()
    return hl, raw, dark, gain, made


def numba_program(threads):
    import numba

    numba.set_num_threads(threads)

    @numba.njit(parallel=True, fastmath=True)
    def steps(raw, dark, gain, out):
        for y in numba.prange(raw.shape[0]):
            for x in range(raw.shape[1]):
                v = max((np.float32(raw[y, x]) - dark[y, x]) * gain[y, x], np.float32(0))
                v = np.sqrt(v + np.float32(0.375)) * np.float32(7) - np.float32(14)
                out[y, x] = np.uint8(np.int32(min(max(v, np.float32(0)), np.float32(255)) + np.float32(0.5)))

    return steps


def opencv_steps(threads):
    import cv2

    cv2.setNumThreads(threads)

    def steps(raw, dark, gain):
        v = cv2.multiply(cv2.subtract(raw, dark, dtype=cv2.CV_32F), gain)
        v = cv2.sqrt(cv2.add(cv2.max(v, 0.0), 0.375))
        return cv2.addWeighted(v, 7.0, v, 0.0, -14.0, dtype=cv2.CV_8U)

    return steps


def run(args):
    os.environ["HL_NUM_THREADS"] = str(args.threads)
    raws, dark, gain = frames()
    wanted = numpy_steps(raws[0], dark, gain).astype(int)
    out = np.empty((SIDE, SIDE), np.uint8)
    hl, raw, dark_in, gain_in, made = halide_program()
    dark_in.set(hl.Buffer(dark))
    gain_in.set(hl.Buffer(gain))
    buffers, target = [hl.Buffer(r) for r in raws], hl.Buffer(out)

    def halide(number):
        raw.set(buffers[number])
        made.realize(target)

    halide(0)
    # Halves are rounded up by some and to even by others.
    wrong = lambda name, got: [f"WRONG: {name} is off by more than 1"] if np.abs(got - wanted).max() > 1 else []
    faults = wrong("halide", out)
    numba, opencv = numba_program(args.threads), opencv_steps(args.threads)
    runners = {
        "halide": turns(halide),
        "numba": turns(lambda i: numba(raws[i], dark, gain, out)),
        "opencv": turns(lambda i: opencv(raws[i], dark, gain)),
        "numpy": turns(lambda i: numpy_steps(raws[i], dark, gain)),
    }
    with tempfile.TemporaryDirectory() as folder:
        server = Server(args.server, Path(folder), args.threads)
        server.load({"dark": dark, "gain": gain, **{f"raw{i}": r for i, r in enumerate(raws)}})
        for device in args.devices:
            try:
                programs = [server.prepare(device, on_frame(OURS, i)) for i in range(COUNT)]
                programs[0]()
                faults += wrong(device, programs[0].results()[0])
                runners[device] = in_turn(programs)
            except Refused as refused:
                print(f"{device}: {refused}", file=sys.stderr)
        best, _ = race(runners, max(args.rounds, 20), 4 * args.budget)
        server.close()
    limits = Limits(args.threads)
    remarks = [f"11 bytes a pixel at the speed of reading: {limits.read / 11 / 1e6:.0f} Mpix/s"]
    return report("point6", best, [("cpu:0", "halide", 1.0)], args, remarks, faults)
