"""Camera frames for the whole pipelines: uneven light, spots, shot noise and a camera's offset."""

import json

import numpy as np
from scipy import ndimage

from .clock import timed

SIDE = 2048
PIXELS = SIDE * SIDE
#: So many different frames take turns: one alone would stay in the cache.
COUNT = 4


def frames():
    """u16 frames, and the two f32 images that correct them: what is subtracted, what multiplies."""
    rng = np.random.default_rng(11)
    across = np.linspace(-0.5, 0.5, SIDE, dtype=np.float32)
    light = 1.0 - 0.9 * (across[:, None] ** 2 + across[None, :] ** 2)
    made = []
    for _ in range(COUNT):
        points = np.zeros((SIDE, SIDE), np.float32)
        at = rng.integers(0, SIDE, (2, PIXELS // 3500))
        points[tuple(at)] = rng.uniform(5e3, 4e4, at.shape[1])
        glow = (60.0 + ndimage.gaussian_filter(points, 3.0)) * light
        seen = rng.poisson(glow) + rng.normal(100.0, 2.0, glow.shape)
        made.append(np.clip(np.rint(seen), 0, 65535).astype(np.uint16))
    dark = rng.normal(100.0, 0.5, light.shape).astype(np.float32)
    return made, dark, (1.0 / light).astype(np.float32)


def report(title, best, bars, args, remarks, faults):
    """Prints what everybody reached, and which bars are met; the exit code."""
    rates = {name: PIXELS / seconds / 1e6 for name, seconds in best.items()}
    verdicts = []
    for ours, theirs, least in bars:
        if ours in rates and theirs in rates:
            times = rates[ours] / rates[theirs]
            verdicts.append({"bar": f"{title}, {ours} against {theirs}, {args.threads} threads", "value": times,
                             "least": least, "met": times >= least})  # fmt: skip
    if args.json:
        print(json.dumps({"bench": title, "threads": args.threads, "mpix_s": rates, "bars": verdicts, "remarks": remarks, "faults": faults}))
    else:
        for name, rate in sorted(rates.items(), key=lambda it: -it[1]):
            print(f"{title}  {args.threads} threads  {name:16} {rate:8.1f} Mpix/s")
        for text in remarks + faults:
            print(f"  {text}")
        for v in verdicts:
            print(f"{'met   ' if v['met'] else 'MISSED'}  {v['bar']}: {v['value']:.2f} (at least {v['least']:g})")
    return int(any(not v["met"] for v in verdicts) or not verdicts or bool(faults))


def turns(call):
    """A runner that gives `call` one frame after the other and answers with the seconds of the last."""
    state = {"at": 0}

    def one():
        state["at"] = (state["at"] + 1) % COUNT
        return call(state["at"])

    def run(calls=1):
        return timed(one, calls)

    return run
