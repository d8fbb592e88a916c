"""The command line; see `--help`."""

import argparse
import os
import shlex
import sys


def main():
    parser = argparse.ArgumentParser(prog="bench", description="Our speed beside that of others.")
    parser.add_argument("what", choices=["ops", "seg2k", "point6", "fusion", "latency", "whole", "pools"])
    parser.add_argument("work", nargs="*", help="with ops: only these; none means all")
    parser.add_argument("--server", type=shlex.split, required=True, help="the command of our server")
    parser.add_argument("--warploom", help="with latency and whole: our program")
    parser.add_argument("--devices", type=lambda t: t.split(","), default=["cpu:0", "opencl:0"])
    parser.add_argument("--peers", type=lambda t: t.split(","), default=None, help="only these")
    parser.add_argument("--shapes", type=lambda t: t.split(","), default=["2048x2048", "64x512x512"])
    parser.add_argument("--threads", type=int, default=2, help="for us, for OpenCV, for Halide")
    parser.add_argument("--rounds", type=int, default=5, help="at least so many")
    parser.add_argument("--budget", type=float, default=1.0, help="seconds for further rounds of short calls")
    parser.add_argument("--busy", action="store_true", help="with ops: count processor time; see spent.py")
    parser.add_argument("--json", action="store_true")
    # Operations may come after options.
    args = parser.parse_intermixed_args()
    # Read by the driver when it is loaded, which is later.
    os.environ["POCL_MAX_PTHREAD_COUNT"] = str(args.threads)
    if args.what == "pools":
        from . import pools

        return pools.run(args)
    if args.what == "ops":
        from . import ops

        return ops.run(args)
    from . import fusion, latency, point6, seg2k, whole

    return {"fusion": fusion, "latency": latency, "seg2k": seg2k, "point6": point6, "whole": whole}[args.what].run(args)


sys.exit(main())
