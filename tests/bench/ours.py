"""Our side: a process that keeps images and compiled programs, so that rounds can interleave.

One JSON object a line in, one a line out:

    {"load": NAME, "path": FILE}                                     -> {"ok": true}
    {"prepare": ID, "device": D, "steps": [...], "outputs": [...]}   -> {"ok": true}
    {"run": [ID, ...]}                                               -> {"seconds": S}, of the last one
    {"save": ID, "paths": [...]}                                     -> {"ok": true}
    {"drop": ID}                                                     -> {"ok": true}
    {"explain": ID}                                                  -> its passes over memory, and why
    {"measure": DEVICE}                                              -> bytes and operations a second

With `"fused": false`, a program is prepared node by node.

A step is {"op": NAME, "args": ["key=value"], "inputs": [...]}; an input is the name of an image or
the number of an earlier step, and so is an output. What goes wrong is {"error": TEXT}. `run` starts
with everything on the device and ends when the device has finished; the clock is the server's.
"""

import json
import os
import subprocess

import numpy as np


class Refused(Exception):
    """What the server said it cannot do."""


class Server:
    """The process; its images go through a folder."""

    def __init__(self, command, folder, threads, memories=None):
        """What drivers and we remember of earlier runs is in `memories` instead of the user's folders, if that
        is given: an empty folder is a machine that has never compiled a kernel."""
        own = {name: str(memories) for name in ("HOME", "XDG_CACHE_HOME", "POCL_CACHE_DIR") if memories}
        self.folder = folder
        self.count = 0
        # Our processor backend has as many threads as there are processors it may run on; PoCL
        # has a variable for it.
        processors = sorted(os.sched_getaffinity(0))[:threads]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "POCL_MAX_PTHREAD_COUNT": str(threads), **own},
            preexec_fn=lambda: os.sched_setaffinity(0, processors),
        )

    def ask(self, **question):
        try:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise SystemExit(f"error: the server ended ({self.process.wait()}) at {question}")
        answer = json.loads(line)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer

    def load(self, images):
        for name, image in images.items():
            path = self.folder / f"{name}.npy"
            np.save(path, image)
            self.ask(load=name, path=str(path))

    def prepare(self, device, steps, outputs=None, fused=True):
        """A program; the call that runs it once and answers with its seconds."""
        self.count += 1
        last = len(steps) - 1
        self.ask(prepare=self.count, device=device, steps=steps, outputs=outputs or [last], fused=fused)
        return Program(self, self.count)

    def run(self, programs):
        """Runs one program after the other; the seconds of the last one."""
        return self.ask(run=[program.number for program in programs])["seconds"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Program:
    """A compiled program of the server."""

    def __init__(self, server, number):
        self.server, self.number = server, number

    def __call__(self, calls=1):
        return self.server.run([self] * calls)

    def results(self, count=1):
        """What the last run made."""
        paths = [self.server.folder / f"result{i}.npy" for i in range(count)]
        self.server.ask(save=self.number, paths=[str(path) for path in paths])
        return [np.load(path) for path in paths]

    def explained(self):
        """Its passes over memory, and why there are no fewer."""
        return self.server.ask(explain=self.number)

    def drop(self):
        self.server.ask(drop=self.number)
