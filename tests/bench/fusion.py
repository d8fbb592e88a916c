"""Random graphs of 4 to 32 operations, fused and node by node.

A fused program must never be slower, and should gain what its own cost model promises: each pass
takes as long as its bytes or its arithmetic, whichever is longer, at the speeds that the device was
measured to have.
"""

import json
import math
import random
import sys
import tempfile
from pathlib import Path

import numpy as np

from .clock import Limits, race
from .ours import Refused, Server

SIDE = 2048
GRAPHS = 12
#: Two measurements of the same program differ by as much on a busy machine.
NOISE = 1.05
#: Of the promised gain.
SHARE = 0.8

ONE = [
    ("affine_intensity", ["scale=0.5", "offset=3"]),
    ("clip", ["low=0", "high=4000"]),
    ("sqrt", []),
    ("abs", []),
    ("gaussian", ["sigma=1"]),
    ("gaussian", ["sigma=3"]),
    ("mean_box", ["radius=4"]),
    ("maximum_box", ["radius=2"]),
    ("minimum_box", ["radius=3"]),
    ("sobel", []),
    ("gradient_x", []),
    ("difference_of_gaussian", ["sigma1=1", "sigma2=2"]),
    ("unsharp", ["sigma=2", "amount=0.5"]),
]
#: Five pointwise operations, which should run at the speed of a copy.
FIVE = [
    {"op": "affine_intensity", "args": ["scale=0.5", "offset=3"], "inputs": ["large"]},
    {"op": "clip", "args": ["low=0", "high=4000"], "inputs": [0]},
    {"op": "sqrt", "args": [], "inputs": [1]},
    {"op": "multiply_images", "args": [], "inputs": [2, 2]},
    {"op": "abs", "args": [], "inputs": [3]},
]
#: Beyond the caches of any processor, as the copy is that it is held against.
LARGE = 8192
#: How near: the processor's own engine, and OpenCL on a processor.
COPY = {"cpu": 0.7, "opencl": 0.6}
TWO = ["add_images", "subtract_images", "multiply_images", "maximum_images", "absolute_difference"]


def graph(seed):
    """Steps; each reads the one before, some a second one from anywhere."""
    rng = random.Random(seed)
    steps = []
    for at in range(rng.randint(4, 32)):
        before = at - 1 if at else "raw"
        anywhere = rng.randrange(-1, at)
        other = "raw" if anywhere < 0 else anywhere
        if rng.random() < 0.35:
            steps.append({"op": rng.choice(TWO), "args": [], "inputs": [before, other]})
        else:
            op, args = rng.choice(ONE)
            steps.append({"op": op, "args": args, "inputs": [before]})
    return steps


def promised(explained, machine):
    """Seconds by the cost model."""
    costs = [it["cost"] for it in explained["passes"]]
    moving = lambda cost: cost["bytes"] / machine["bytes_per_second"]
    computing = lambda cost: cost["operations"] / machine["operations_per_second"]
    return sum(max(moving(cost), computing(cost)) for cost in costs)


def run(args):
    raw = np.random.default_rng(5).integers(0, 4000, (SIDE, SIDE)).astype(np.uint16)
    rows, faults, five = [], [], {}
    with tempfile.TemporaryDirectory() as folder:
        server = Server(args.server, Path(folder), args.threads)
        server.load({"raw": raw, "large": np.ones((LARGE, LARGE), np.float32)})
        limits = Limits(args.threads)
        for device in args.devices:
            try:
                machine = server.ask(measure=device)
            except Refused as refused:
                print(f"{device}: {refused}", file=sys.stderr)
                continue
            best, _ = race({"five": server.prepare(device, FIVE)}, max(args.rounds, 20), args.budget)
            five[device] = LARGE * LARGE * 4 / best["five"] / limits.copy
            for seed in range(GRAPHS):
                steps = graph(seed)
                fused, plain = (server.prepare(device, steps, fused=choice) for choice in (True, False))
                model = [promised(program.explained(), machine) for program in (plain, fused)]
                best, _ = race({"plain": plain, "fused": fused}, args.rounds, args.budget)
                if not np.array_equal(fused.results()[0], plain.results()[0], equal_nan=True):
                    faults.append(f"WRONG: graph {seed} on {device} has other pixels when it is fused")
                gain = best["plain"] / best["fused"]
                rows.append({"device": device, "graph": seed, "operations": len(steps), "gain": gain,
                             "promised": model[0] / model[1], "ms": best["fused"] * 1e3})  # fmt: skip
                for program in (fused, plain):
                    program.drop()
        server.close()
    verdicts = [verdict for device in args.devices for verdict in judged(device, [r for r in rows if r["device"] == device])]
    for device, share in five.items():
        least = COPY.get(device.split(":")[0], 0.6)
        bar = f"fusion, {device}, five pointwise operations against a copy"
        verdicts.append({"bar": bar, "value": share, "least": least, "met": share >= least})
    if args.json:
        print(json.dumps({"bench": "fusion", "threads": args.threads, "graphs": rows, "bars": verdicts, "faults": faults}))
    else:
        for r in rows:
            print(f"{r['device']:10} graph {r['graph']:2} of {r['operations']:2} operations: {r['ms']:8.2f} ms, "
                  f"{r['gain']:5.2f} times faster, {r['promised']:5.2f} promised")  # fmt: skip
        for text in faults:
            print(f"  {text}")
        for v in verdicts:
            print(f"{'met   ' if v['met'] else 'MISSED'}  {v['bar']}: {v['value']:.2f} (at least {v['least']:g})")
    return int(any(not v["met"] for v in verdicts) or not verdicts or bool(faults))


def judged(device, rows):
    """The bars of one device."""
    if not rows:
        return []
    least = min(row["gain"] for row in rows)
    shares = [math.log(row["gain"] / row["promised"]) for row in rows]
    share = math.exp(sum(shares) / len(shares))
    bars = [("fused against unfused, the worst graph", least, 1 / NOISE), ("share of the promised gain", share, SHARE)]
    return [{"bar": f"fusion, {device}, {name}", "value": value, "least": bar, "met": value >= bar} for name, value, bar in bars]
