"""Operation by operation, on a plane and on a stack."""

import json
import math
import sys
import tempfile
from pathlib import Path

from . import bars
from .clock import Limits, race, timed
from .ours import Refused, Server
from .peers import gathered
from .scene import scene
from .spent import Spent
from .work import WORK

SHAPES = {"2048x2048": (2048, 2048), "64x512x512": (64, 512, 512)}
#: A call of a peer that takes longer is measured once; it is no rival.
TOO_LONG = 6.0


def note(text):
    print(text, file=sys.stderr, flush=True)


def measure(server, work, devices, peers, args):
    """Best seconds of everybody on one piece of work."""
    runners, programs, troubles = {}, [], {}
    for device in devices:
        try:
            program = server.prepare(device, work.steps)
            program()
            process = server.process.pid
            runners[device] = Spent(program, args.threads, process) if args.busy else program
            programs.append(program)
        except Refused as refused:
            troubles[device] = str(refused)
    slow = {}
    for peer in peers:
        call = peer.call(work.name)
        if call is None:
            continue
        try:
            first = timed(call)
        except Exception as error:  # noqa: BLE001: a peer may fail in any way
            troubles[peer.name] = f"{type(error).__name__}: {error}"
            continue
        if first > TOO_LONG:
            slow[peer.name] = first
        elif args.busy:
            runners[peer.name] = Spent(call, args.threads)
        else:
            runners[peer.name] = lambda calls, call=call: timed(call, calls)
    best, rounds = race(runners, args.rounds, args.budget)
    for program in programs:
        program.drop()
    return {**best, **slow}, rounds, troubles


def run(args):
    peers, missing = gathered(args.peers, args.threads)
    for name, why in missing.items():
        note(f"{name} is left out: {why}")
    for name in args.work:
        if name not in WORK:
            sys.exit(f"error: there is nothing called `{name}` to measure; known: {' '.join(WORK)}")
    if args.busy:
        note("processor time is counted, not the clock's: shares of the limit mean nothing, bars little")
    rows, speeds = [], {}
    with tempfile.TemporaryDirectory() as folder:
        server = Server(args.server, Path(folder), args.threads)
        for size in args.shapes:
            shape = SHAPES.get(size) or tuple(map(int, size.split("x")))
            images = scene(shape)
            server.load(images)
            for peer in peers:
                peer.show(images, len(shape))
            pixels = math.prod(shape)
            limits = Limits(args.threads, max(1, 4 * pixels >> 20))
            speeds[size] = {"copy": limits.copy, "read": limits.read}
            note(f"{size}: copy {limits.copy / 1e9:.1f} GB/s, read {limits.read / 1e9:.1f} GB/s with {args.threads} threads")
            for work in WORK.values():
                if (args.work and work.name not in args.work) or len(shape) not in work.ranks:
                    continue
                seconds, rounds, troubles = measure(server, work, args.devices, peers, args)
                for who, why in troubles.items():
                    note(f"{work.name} {size}: {who}: {why}")
                bound = limits.seconds(*(moved * pixels for moved in work.moves))
                rows.append({
                    "work": work.name, "size": size, "shape": shape, "seconds": seconds, "rounds": rounds,
                    "bound": bound, "troubles": troubles,
                })  # fmt: skip
                if not args.json:
                    print(line(rows[-1], args.devices), flush=True)
        server.close()
    return finish(rows, speeds, args)


def line(row, devices):
    """One row for people: our speeds, how we compare, and how near the limit we are."""
    pixels = math.prod(row["shape"])
    words = [f"{row['work']:29} {row['size']:>11}"]
    for device in devices:
        seconds = row["seconds"].get(device)
        if seconds is None:
            words.append(f"{device} -")
            continue
        words.append(f"{device} {pixels / seconds / 1e6:7.0f} Mpix/s {row['bound'] / seconds:5.0%} of limit")
        others = {name: other / seconds for name, other in row["seconds"].items() if name not in devices}
        words += [f"{name} {times:.2f}x" for name, times in sorted(others.items(), key=lambda it: it[1])]
    return "  ".join(words)


def finish(rows, speeds, args):
    """The bars, and the exit code."""
    found = bars.bars(rows)
    missed = [bar for bar in found if not bar.met]
    if args.json:
        print(json.dumps({"limits": speeds, "rows": rows, "bars": [bar.json() for bar in found]}))
    else:
        print()
        for bar in [bar for bar in found if bar.met and "mean" in bar.name.split()] + missed:
            print(bar.text())
        print(f"{len(found) - len(missed)} of {len(found)} bars met")
    return int(bool(missed) or not found)
