"""The command line; see `--help`."""

import argparse
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from . import tables, tiffs, zarrs
from .case import failures, same


def selftest():
    """Whether wrong arrays would be noticed."""
    want = np.arange(6, dtype="u2").reshape(2, 3)
    wrong = [want.T, want.astype("u4"), want + 1, want[:1], want.astype("i2")]
    missed = [array for array in wrong if not same(array, want)]
    return [f"an array of {array.shape} {array.dtype} passed for another" for array in missed] + (["a right one did not pass"] if same(want, want) else [])


def main():
    parser = argparse.ArgumentParser(prog="files", description="Files of other programs in ours, and ours in theirs.")
    parser.add_argument("--program", required=True, metavar="PATH", help="the example `convert` of warploom-io")
    parser.add_argument("--keep", metavar="FOLDER", help="keep the files there")
    parser.add_argument("parts", nargs="*", default=[], help="of tiffs, zarrs, tables; none means all")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    parts = {"tiffs": [tiffs.theirs, tiffs.ours], "zarrs": [zarrs.theirs, zarrs.ours], "tables": [tables.ours]}
    wrong = selftest()
    with tempfile.TemporaryDirectory() as scratch:
        for name in args.parts or parts:
            for make in parts[name]:
                start = time.monotonic()
                folder = Path(args.keep or scratch) / f"{name}-{make.__name__}"
                folder.mkdir(parents=True, exist_ok=True)
                cases = list(make(folder))
                bad = list(failures(cases, args.program))
                wrong += bad
                took = time.monotonic() - start
                print(f"{name} {make.__name__}: {len(cases)} cases, {len(bad)} wrong, {took:.1f} s")
    for line in wrong[:40]:
        print(f"wrong: {line}")
    return int(bool(wrong))


sys.exit(main())
