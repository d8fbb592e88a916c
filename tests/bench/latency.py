"""What is paid before the first pixel: unseen shapes, tiny images, starting the program."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from .bars import Bar
from .clock import timed
from .ours import Refused, Server
from .peers import gathered

BLUR = [{"op": "gaussian", "args": ["sigma=2"], "inputs": ["image"]}]
SCALE = [{"op": "affine_intensity", "args": ["scale=2", "offset=1"], "inputs": ["image"]}]


def shapes(seed, count):
    """Shapes that nobody has seen before."""
    rng = np.random.default_rng(seed)
    return [tuple(int(n) for n in rng.integers(200, 1200, 2)) for _ in range(count)]


def unseen(server, device, count):
    """Median seconds from a description to the first result, on shapes that are new, and apart from them
    seconds of the very first shape of all, whose kernels are compiled."""
    took = []
    for shape in shapes(int.from_bytes(os.urandom(4), "little"), count + 1):
        server.load({"image": np.ones(shape, np.float32)})
        took.append(timed(lambda: server.prepare(device, BLUR)()))
    return float(np.median(took[1:])), took[0]


def simplest(args, folder, device):
    """Seconds from a description to the first result of an operation with next to nothing to compile, where nobody
    remembers a kernel either: nearly all of them are the driver's own."""
    server = Server(args.server, folder, args.threads, Path(tempfile.mkdtemp(dir=folder)))
    try:
        server.load({"image": np.ones((200, 300), np.float32)})
        return timed(lambda: server.prepare(device, SCALE)())
    finally:
        server.close()


def unseen_by(peer, count):
    took = []
    for shape in shapes(int.from_bytes(os.urandom(4), "little"), count + 1):
        image = np.ones(shape, np.float32)
        peer.show({"image": image}, 2)
        took.append(timed(peer.call("gaussian")))
    return float(np.median(took[1:]))


def tiny(server, device):
    """Best seconds of one operation on 8 x 8 pixels, waited for."""
    server.load({"image": np.ones((8, 8), np.float32)})
    program = server.prepare(device, SCALE)
    return min(program() for _ in range(300))


def started(program, folder):
    """Best seconds of the whole program on a small image, and of a program that only starts."""
    source, target = folder / "small.npy", folder / "out.npy"
    np.save(source, np.ones((64, 64), np.float32))
    run = lambda *args: timed(lambda: subprocess.run([program, *args], check=True, capture_output=True))
    apply = ["apply", "gaussian", "sigma=2", "-i", str(source), "-o", str(target), "--device", "cpu:0"]
    return min(run(*apply) for _ in range(15)), min(run("--version") for _ in range(15))


def run(args):
    found, bars = {}, []
    peers = {peer.name: peer for peer in gathered(["cle"], args.threads)[0]}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for device in args.devices:
            # Nobody remembers a kernel, neither the driver nor we.
            memories = Path(tempfile.mkdtemp(dir=folder))
            server = Server(args.server, folder, args.threads, memories)
            try:
                later, first = unseen(server, device, 9)
                small = tiny(server, device)
                least = simplest(args, folder, device)
            except Refused as refused:
                print(f"{device}: {refused}", file=sys.stderr)
                continue
            finally:
                server.close()
            found[device] = {
                "unseen_shape_ms": 1e3 * later, "first_of_all_ms": 1e3 * first, "simplest_of_all_ms": 1e3 * least,
                "tiny_us": 1e6 * small,
            }  # fmt: skip
            # At most, so the bar is the inverse.
            bars.append(Bar(f"{device}, 20 ms over an unseen shape", 0.020 / later, 1.0))
            bars.append(Bar(f"{device}, 500 ms over the first shape of all", 0.5 / first, 1.0))
        if "cle" in peers:
            found["cle"] = {"unseen_shape_ms": 1e3 * unseen_by(peers["cle"], 4)}
        if args.warploom:
            whole, empty = started(args.warploom, folder)
            found["warploom apply"] = {"whole_ms": 1e3 * whole, "only_starting_ms": 1e3 * empty}
            bars.append(Bar("30 ms over a start of `warploom apply` on the processor", 0.030 / whole, 1.0))
    if args.json:
        print(json.dumps({"latency": found, "bars": [bar.json() for bar in bars]}))
    else:
        for who, numbers in found.items():
            print(f"{who:16} " + "  ".join(f"{name} {value:.2f}" for name, value in numbers.items()))
        for bar in bars:
            print(bar.text())
    return int(any(not bar.met for bar in bars) or not bars)
