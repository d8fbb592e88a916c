"""A whole segmentation of 2048 x 2048 frames, against Halide.

    c    = (raw - dark) * gain
    g    = gauss(c), sigma 2, 13 taps, edges repeated
    d    = g - gauss(g), sigma 8, 49 taps, edges repeated
    lo   = the 1 % point of d, hi = the 99.8 % point
    out  = (d - lo) / (hi - lo), limited to 0..1, as u16
    mask = out > 32767

Halide gets its two points from a histogram of 1024 bins of width 1 from -128 on; ours are exact,
which is more work, and moves lo and hi by less than one.
"""

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy import ndimage

from .clock import race
from .frames import COUNT, SIDE, frames, report, turns
from .ours import Refused, Server

BINS, FIRST = 1024, -128.0
STRIPS = 16

OURS = [
    {"op": "subtract_images", "args": [], "inputs": ["raw", "dark"]},
    {"op": "multiply_images", "args": [], "inputs": [0, "gain"]},
    {"op": "gaussian", "args": ["sigma=2", "truncate=3"], "inputs": [1]},
    {"op": "gaussian", "args": ["sigma=8", "truncate=3"], "inputs": [2]},
    {"op": "subtract_images", "args": [], "inputs": [2, 3]},
    {"op": "percentile_normalize", "args": ["low=1", "high=99.8"], "inputs": [4]},
    {"op": "cast", "args": ["type=u16", "scale_from=0,1"], "inputs": [5]},
    {"op": "greater", "args": ["value=32767"], "inputs": [6]},
]


def bell(sigma):
    """Weights from the middle outwards, three sigmas of them."""
    k = np.arange(int(3 * sigma + 0.5) + 1)
    w = np.exp(-0.5 * (k / sigma) ** 2)
    return (w / (w[0] + 2 * w[1:].sum())).astype(np.float32)


def reference(raw, dark, gain):
    """In f64, with exact percentiles."""
    blur = lambda image, sigma: ndimage.gaussian_filter(image, sigma, mode="nearest", truncate=3.0)
    g = blur((raw.astype(np.float64) - dark) * gain, 2.0)
    d = g - blur(g, 8.0)
    low, high = np.percentile(d, [1, 99.8])
    out = np.rint(65535 * np.clip((d - low) / (high - low), 0, 1))
    return out, out > 32767


class Halide:
    """The same in Halide, by hand or by one of its autoschedulers."""

    def __init__(self, plan, threads):
        import halide as hl

        self.hl = hl
        x, y = hl.Var("x"), hl.Var("y")
        self.raw = hl.ImageParam(hl.UInt(16), 2, "raw")
        self.dark, self.gain = (hl.ImageParam(hl.Float(32), 2, name) for name in ("dark", "gain"))
        self.mid = hl.ImageParam(hl.Float(32), 2, "mid")
        self.low, self.factor = hl.Param(hl.Float(32), "low", 0.0), hl.Param(hl.Float(32), "factor", 1.0)
        inside = lambda v: hl.clamp(v, 0, SIDE - 1)

        even = hl.Func("even")
        at = inside(x), inside(y)
        even[x, y] = (hl.cast(hl.Float(32), self.raw[at]) - self.dark[at]) * self.gain[at]

        def along(axis, source, weights, name):
            made = hl.Func(name)
            step = (lambda k: source[x + k, y]) if axis == "x" else (lambda k: source[x, y + k])
            total = step(0) * float(weights[0])
            for k in range(1, len(weights)):
                total += (step(-k) + step(k)) * float(weights[k])
            made[x, y] = total
            return made

        tall = along("y", even, bell(2.0), "tall")
        small = along("x", tall, bell(2.0), "small")
        edge = hl.Func("edge")
        edge[x, y] = small[inside(x), inside(y)]
        taller = along("y", edge, bell(8.0), "taller")
        wide = along("x", taller, bell(8.0), "wide")
        self.rest = hl.Func("rest")
        self.rest[x, y] = small[x, y] - wide[x, y]

        strip, bin_ = hl.Var("strip"), hl.Var("bin")
        rows = SIDE // STRIPS
        over = hl.RDom([(0, SIDE), (0, rows)], "over")
        self.counts = hl.Func("counts")
        self.counts[bin_, strip] = hl.cast(hl.UInt(32), 0)
        value = self.mid[over.x, strip * rows + over.y] - FIRST
        self.counts[hl.cast(hl.Int(32), hl.clamp(value, 0.0, BINS - 1.0)), strip] += hl.cast(hl.UInt(32), 1)

        self.out, self.mask = hl.Func("out"), hl.Func("mask")
        level = hl.clamp((self.mid[x, y] - self.low) * self.factor, 0.0, 65535.0)
        level = hl.cast(hl.UInt(16), hl.round(level))
        self.out[x, y] = level
        self.mask[x, y] = hl.cast(hl.UInt(8), level > 32767)

        for image in (self.raw, self.dark, self.gain, self.mid):
            image.dim(0).set_bounds(0, SIDE)
            image.dim(1).set_bounds(0, SIDE)
        self.parts = [hl.Pipeline([self.rest]), hl.Pipeline([self.counts]), hl.Pipeline([self.out, self.mask])]
        if threads > 1:
            self.counts.parallel(strip)
            self.counts.update(0).parallel(strip)
        if plan == "hand":
            self.by_hand(x, y, even, tall, small, taller, threads)
        else:
            self.by_itself(plan, threads)
        target = hl.get_jit_target_from_environment()
        for part in self.parts:
            part.compile_jit(target)
        self.space = np.empty((SIDE, SIDE), np.float32), np.empty((STRIPS, BINS), np.uint32)
        self.made = np.empty((SIDE, SIDE), np.uint16), np.empty((SIDE, SIDE), np.uint8)
        self.space_buffers = [hl.Buffer(a) for a in self.space]
        self.made_buffers = [hl.Buffer(a) for a in self.made]
        self.mid.set(self.space_buffers[0])

    def by_hand(self, x, y, even, tall, small, taller, threads):
        """Bands of rows at once, columns of half a frame; the small blur slides down in a ring, and
        the tall one makes four rows from each row that it loads."""
        hl = self.hl
        lanes = 8
        band, row, four, column, cell = (hl.Var(name) for name in ("band", "row", "four", "column", "cell"))
        out = self.rest.bound(x, 0, SIDE).bound(y, 0, SIDE)
        out.split(y, band, row, SIDE // max(2, threads)).split(row, row, four, 4).split(x, column, cell, SIDE // 2)
        out.reorder(cell, four, row, column, band).vectorize(cell, 4 * lanes)
        if threads > 1:
            out.parallel(band)
        taller.compute_at(self.rest, row).reorder(y, x).unroll(y).vectorize(x, lanes)
        small.compute_at(self.rest, row).store_at(self.rest, column).vectorize(x, 4 * lanes)
        tall.compute_at(small, y).vectorize(x, 4 * lanes)
        even.compute_at(small, y).store_at(self.rest, column).vectorize(x, 2 * lanes)
        for made in (self.out, self.mask):
            made.bound(x, 0, SIDE).bound(y, 0, SIDE).vectorize(x, 2 * lanes)
            if threads > 1:
                made.split(y, band, row, 64).parallel(band)

    def by_itself(self, plan, threads):
        hl = self.hl
        library = Path(hl.__file__).parent / "lib64" / f"libautoschedule_{plan.lower()}.so"
        hl.load_plugin(str(library))
        whole = [hl.Range(0, SIDE), hl.Range(0, SIDE)]
        for it in (self.rest, self.out, self.mask, self.raw, self.dark, self.gain, self.mid):
            it.set_estimates(whole)
        self.low.set_estimate(0.0)
        self.factor.set_estimate(100.0)
        options = hl.AutoschedulerParams(plan, {"parallelism": str(threads)})
        for part in (self.parts[0], self.parts[2]):
            part.apply_autoscheduler(hl.get_jit_target_from_environment(), options)

    def show(self, raws, dark, gain):
        self.raws = [self.hl.Buffer(raw) for raw in raws]
        self.dark.set(self.hl.Buffer(dark))
        self.gain.set(self.hl.Buffer(gain))

    def __call__(self, number):
        self.raw.set(self.raws[number])
        self.parts[0].realize(self.space_buffers[0])
        self.parts[1].realize(self.space_buffers[1])
        share = np.cumsum(self.space[1].sum(0)) / (SIDE * SIDE)
        low, high = (FIRST + float(np.searchsorted(share, q)) for q in (0.01, 0.998))
        self.low.set(low)
        self.factor.set(65535.0 / max(high - low, 1.0))
        self.parts[2].realize(self.made_buffers)


#: The share of the mask that two ways of finding percentiles may decide differently.
ALLOWED = 1e-3


def wrong(name, made, wanted):
    """What is wrong with a mask, as a list of at most one fault."""
    share = np.mean((made != 0) != wanted)
    return [f"WRONG: {share:.2%} of the mask of {name} differs"] if share > ALLOWED else []


def run(args):
    os.environ["HL_NUM_THREADS"] = str(args.threads)
    raws, dark, gain = frames()
    _, mask = reference(raws[0], dark, gain)
    runners, faults = {}, []
    for name, plan in (("halide hand", "hand"), ("halide auto", "Mullapudi2016")):
        peer = Halide(plan, args.threads)
        peer.show(raws, dark, gain)
        peer(0)
        faults += wrong(name, peer.made[1], mask)
        runners[name] = turns(peer)
    with tempfile.TemporaryDirectory() as folder:
        server = Server(args.server, Path(folder), args.threads)
        server.load({"dark": dark, "gain": gain, **{f"raw{i}": raw for i, raw in enumerate(raws)}})
        for device in args.devices:
            try:
                programs = [server.prepare(device, on_frame(OURS, i), [7, 6]) for i in range(COUNT)]
                programs[0]()
                faults += wrong(device, programs[0].results(2)[0], mask)
                runners[device] = in_turn(programs)
            except Refused as refused:
                print(f"{device}: {refused}", file=sys.stderr)
        best, _ = race(runners, max(args.rounds, 8), 10 * args.budget)
        server.close()
    bars = [("cpu:0", "halide hand", 1.0), ("cpu:0", "halide auto", 1.9), ("opencl:0", "cpu:0", 1 / 1.3)]
    return report("seg2k", best, bars, args, [], faults)


def on_frame(steps, number):
    """The steps with `raw` being a certain frame."""
    return [{**step, "inputs": [f"raw{number}" if i == "raw" else i for i in step["inputs"]]} for step in steps]


def in_turn(programs):
    """A runner that takes one program after the other."""
    state = {"at": 0}

    def run(calls=1):
        next_ones = [programs[(state["at"] + call) % len(programs)] for call in range(calls)]
        state["at"] += calls
        return programs[0].server.run(next_ones)

    return run
