"""The command line; see `--help`."""

import argparse
import json
import sys
import tempfile
import time
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from . import batch, files, catalogue, ops, selftest  # noqa: F401
from .case import OPERATIONS
from .images import FLOATING, TYPES, generator
from .judge import Verdict, agree, identical, judge, read, same
from .refusals import REFUSALS, of_all
from .report import Report


def chosen(words, types, shapes):
    """The cases of these operations, element types and shapes."""
    for word in words:
        if word not in OPERATIONS:
            near = get_close_matches(word, OPERATIONS, 1)
            sys.exit(f"error: there is no operation `{word}`" + (f"; did you mean `{near[0]}`?" if near else ""))
    cases = []
    for name, operation in OPERATIONS.items():
        if not words or name in words:
            cases += [case for case in operation.cases(shapes) if not types or case.dtype in types]
    return cases


def covering(cases):
    """A few cases of each operation that have every shape, type and parameter among them."""
    kept = []
    seen = set()
    for at in generator("quick").permutation(len(cases)):
        traits = {(cases[at].operation.name, *trait) for trait in cases[at].traits()}
        if not traits <= seen:
            seen |= traits
            kept.append(at)
    return [cases[at] for at in sorted(kept)]


def sparse(cases, fast):
    """Two cases of each operation, of f32 and of another element type, by turns, and in fast mode the
    first of them: for devices that take a while to compile each kernel."""
    kept = []
    for turn, name in enumerate(dict.fromkeys(case.operation.name for case in cases)):
        own = [case for case in cases if case.operation.name == name]
        types = list(dict.fromkeys(case.dtype for case in own))
        chosen = dict.fromkeys(("f32" if "f32" in types else types[0], types[turn % len(types)]))
        for dtype in list(chosen)[: 1 if fast else 2]:
            some = [case for case in own if case.dtype == dtype]
            kept.append(some[generator("sparse", name, dtype).integers(len(some))])
    return kept


def against_reference(cases, answers, folder, args, flags):
    """The results of one device against numpy, scipy and scikit-image."""
    report = Report()
    known = catalogue.read(args.warploom)
    for case, error in zip(cases, answers):
        command = case.command(folder, args.warploom, flags)
        try:
            verdict = Verdict(False, text=error) if error else judge(case, read(folder.output(case)))
            verdict = promised(verdict, known[case.operation.name])
        except (OSError, ValueError, KeyError) as unreadable:
            verdict = Verdict(False, text=f"{type(unreadable).__name__}: {unreadable}")
        report.add(case, verdict, command)
        tidy(verdict, folder.output(case))
    return report


def promised(verdict, op):
    """No farther off than the operation's page says, however generous the judge is."""
    ulps = catalogue.ulps(op, "reference")
    if verdict.ok and ulps and verdict.error > ulps * np.finfo(np.float32).eps:
        return Verdict(False, verdict.error, f"off by {verdict.error:.2g} of the scale; its page says {ulps} ulp")
    return verdict


def tidy(verdict, *results):
    """Only what is wrong is worth keeping."""
    for path in results if verdict.ok else ():
        path.unlink(missing_ok=True)


def against_cpu(cases, answers, folder, args, flags, cpu):
    """The results of another device, or of fast mode, against the processor's in strict mode."""
    report = Report()
    is_wgpu = args.device.startswith("wgpu")
    known = catalogue.read(args.warploom)
    # As every page says.
    bits = 46 if is_wgpu else None
    bound = "fast" if args.fast else "wgpu" if is_wgpu else "strict"
    for case, error in zip(cases, answers):
        op = known[case.operation.name]
        ulps = catalogue.ulps(op, bound)
        equal = identical if bound == "strict" and not catalogue.mixes_zeros(op) else same
        verdict = Verdict(False, text=error) if error else None
        try:
            if not error:
                ours, right = read(folder.output(case)), read(cpu.output(case))
                verdict = agree(ours, right, ulps, case.scale(), bits, equal)
        except (OSError, ValueError, KeyError) as unreadable:
            verdict = Verdict(False, text=f"{type(unreadable).__name__}: {unreadable}")
        report.add(case, verdict, case.command(folder, args.warploom, flags))
        tidy(verdict, folder.output(case), cpu.output(case))
    return report


def rounded(cases, args):
    """Those fast mode states a bound for that is not zero, without NaN and infinities: it is allowed
    to take them for numbers."""
    known = catalogue.read(args.warploom)
    plain = lambda case: not any(key[0] in FLOATING for key in case.keys)
    return [case for case in cases if plain(case) and catalogue.ulps(known[case.operation.name], "fast")]


def refusals(folder, args, flags):
    """What makes no sense has to be an error that says so."""
    report = Report()
    every = [*REFUSALS, *of_all(catalogue.read(args.warploom))]
    cases = [case for case in every if not args.ops or case.operation.name in args.ops]
    for number, case in enumerate(cases):
        case.number = 900_000 + number
    for case, error in zip(cases, batch.run(cases, folder, args.warploom, flags)):
        verdict = Verdict(True)
        if error is None:
            verdict = Verdict(False, text=f"accepted; expected an error with `{case.refused}`")
        elif "the process ended" in error or case.refused not in error:
            verdict = Verdict(False, text=f"expected `{case.refused}` in: {error}")
        report.add(case, verdict, case.command(folder, args.warploom, flags))
    return report


def main():
    parser = argparse.ArgumentParser(prog="oracle", description="Operations against numpy, scipy and scikit-image.")
    parser.add_argument("ops", nargs="*", metavar="OP", help="operations; none means all")
    parser.add_argument("--warploom", metavar="PATH", help="the program")
    parser.add_argument("--device", default="cpu:0", help="other than cpu:0, it is compared with cpu:0")
    parser.add_argument("--types", default="", help=f"element types of the first image: {','.join(TYPES)}")
    parser.add_argument("--shapes", default="", help="other shapes than the usual, as in 300x200,5x31x64")
    parser.add_argument("--quick", action="store_true", help="a few cases of each operation")
    parser.add_argument("--sparse", action="store_true", help="two cases of each operation, one in fast mode")
    parser.add_argument("--fast", action="store_true", help="fast mode, compared with cpu:0 in strict mode")
    parser.add_argument("--selftest", action="store_true", help="whether wrong results would be noticed")
    parser.add_argument("--keep", metavar="FOLDER", help="keep images and results there")
    parser.add_argument("--json", action="store_true", help="the report as JSON")
    parser.add_argument("--list", action="store_true", help="the operations and how many cases each has")
    args = parser.parse_args()

    shapes = [tuple(map(int, shape.split("x"))) for shape in args.shapes.split(",") if shape]
    cases = chosen(args.ops, [name for name in args.types.split(",") if name], shapes)
    cases = covering(cases) if args.quick or args.selftest else cases
    if args.fast and args.warploom:
        cases = rounded(cases, args)
    cases = sparse(cases, args.fast) if args.sparse else cases
    for number, case in enumerate(cases):
        case.number = number
    if args.list:
        for name in OPERATIONS:
            print(f"{name:32} {sum(case.operation.name == name for case in cases)}")
        return 0
    if args.selftest:
        tried, problems = selftest.run(cases)
        print("\n".join(problems[:20]))
        print(f"{len(cases)} right answers and {tried} wrong ones: {len(problems)} misjudged")
        return int(bool(problems))
    if not args.warploom:
        parser.error("--warploom is needed to run anything")
    with tempfile.TemporaryDirectory() as scratch:
        return check(cases, Path(args.keep or scratch), args)


def check(cases, root, args):
    folder = batch.Folder(root)
    reports = []
    # Only a whole run can tell what was forgotten.
    gaps = [] if args.ops or args.types or args.shapes or args.quick or args.sparse or args.fast else catalogue.gaps(catalogue.read(args.warploom), cases)
    start = time.monotonic()
    flags = ["--device", "cpu:0", "--strict"]
    cpu = folder.on("cpu:0")
    cpu_answers = batch.run(cases, cpu, args.warploom, flags)
    took = time.monotonic() - start
    print(f"{len(cases)} cases on cpu:0 in {took:.1f} s", file=sys.stderr)
    if args.device == "cpu:0" and not args.fast:
        report = against_reference(cases, cpu_answers, cpu, args, flags)
        reports.append((report, "against numpy, scipy and scikit-image", "error / scale"))
        reports.append((refusals(cpu, args, flags), "what has to be refused", ""))
        if not args.ops:
            reports.append((files.check(cpu, args.warploom, flags), "files of other programs, and ours in theirs", ""))
    else:
        flags = ["--device", args.device, "--fast" if args.fast else "--strict"]
        other = folder.on(f"{args.device}-fast" if args.fast else args.device)
        # What the processor cannot do is wrong already, and found by its own check.
        cases = [case for case, error in zip(cases, cpu_answers) if not error]
        start = time.monotonic()
        answers = batch.run(cases, other, args.warploom, flags)
        took = time.monotonic() - start
        print(f"{len(cases)} cases on {args.device} in {took:.1f} s", file=sys.stderr)
        report = against_cpu(cases, answers, other, args, flags, cpu)
        mode = ", fast" if args.fast else ""
        reports.append((report, f"{args.device}{mode} against cpu:0", "ulps"))
    if args.json:
        print(json.dumps({title: report.json() for report, title, _ in reports}))
    else:
        for report, title, unit in reports:
            print(report.text(title, unit) + "\n")
    for gap in gaps:
        print(f"not checked: {gap}", file=sys.stderr)
    nothing = not reports[0][0].rows
    return int(bool(gaps) or nothing or any(report.failed for report, _, _ in reports))


sys.exit(main())
