"""The segmentation of `seg2k` from files to files, through `warploom run`, beside its kernels alone.

`whole` is from the first record to the last, which is what the bar is for; `process` is the whole
command, with detection, compiling and loading.

Frames are in files that the system has in memory, so that it is the overlap of reading, work and
writing that is measured, and not a disk.
"""

import json
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from .frames import COUNT, PIXELS, frames, report
from .ours import Server
from .seg2k import OURS, in_turn, on_frame

FILES = 32

PIPELINE = """
name = "seg2k"
[constants]
dark = "dark.npy"
gain = "gain.npy"
[[step]]
name = "less"
op = "subtract_images"
input = ["image", "dark"]
[[step]]
name = "even"
op = "multiply_images"
input = ["less", "gain"]
[[step]]
name = "soft"
op = "gaussian"
sigma = 2
truncate = 3
[[step]]
name = "wide"
op = "gaussian"
sigma = 8
truncate = 3
[[step]]
name = "details"
op = "subtract_images"
input = ["soft", "wide"]
[[step]]
name = "norm"
op = "percentile_normalize"
low = 1
high = 99.8
[[step]]
name = "out"
op = "cast"
type = "u16"
scale_from = [0, 1]
[[step]]
name = "mask"
op = "greater"
value = 32767
[[output]]
of = "mask"
write = "{record}-mask.npy"
[[output]]
of = "out"
write = "{record}.npy"
"""


def run(args):
    raws, dark, gain = frames()
    best = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        (folder / "seg2k.toml").write_text(PIPELINE)
        np.save(folder / "dark.npy", dark)
        np.save(folder / "gain.npy", gain)
        for number in range(FILES):
            np.save(folder / "in" / f"f{number:03}.npy", raws[number % COUNT])
        server = Server(args.server, folder, args.threads)
        server.load({"dark": dark, "gain": gain, **{f"raw{i}": raw for i, raw in enumerate(raws)}})
        for device in args.devices:
            programs = [server.prepare(device, on_frame(OURS, i), [7, 6]) for i in range(COUNT)]
            alone = in_turn(programs)
            alone()
            for _ in range(args.rounds):
                kernels = min(alone() for _ in range(FILES // 2))
                best[f"{device} kernels"] = min(kernels, best.get(f"{device} kernels", kernels))
                for part, seconds in from_files(args, folder, device).items():
                    key = f"{device} {part}"
                    best[key] = min(seconds / FILES, best.get(key, seconds / FILES))
        server.close()
    bars = [(f"{device} whole", f"{device} kernels", 0.9) for device in args.devices]
    return report("whole", best, bars, args, [f"{FILES} files of {PIXELS / 1e6:.1f} Mpix"], [])


def from_files(args, folder, device):
    """Seconds from the first record to the last, and of the process."""
    command = [args.warploom, "run", "seg2k.toml", "-i", "in", "-o", "out", "--device", device, "--json", "-q"]
    begun = time.perf_counter()
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    took = time.perf_counter() - begun
    return {"whole": json.loads(done.stdout)["seconds"], "process": took}
