"""What our program says of its operations, and whether the cases here are about all of it."""

import json
import subprocess


def read(program):
    """The operations that `warploom ops --json` lists, by name."""
    listed = subprocess.run([program, "ops", "--json"], stdout=subprocess.PIPE, check=True).stdout
    return {op["name"]: op for op in json.loads(listed)["ops"]}


def gaps(catalogue, cases):
    """Operations, parameters and element types that no case is about, as texts."""
    about = {}
    for case in cases:
        seen = about.setdefault(case.operation.name, set())
        seen |= {f"parameter {name}" for name in case.params} | {f"type {case.dtype}"}
    found = [f"{name}: not in the catalogue" for name in about if name not in catalogue]
    for name, op in catalogue.items():
        wanted = [f"parameter {param['name']}" for param in op["params"]]
        wanted += dict.fromkeys(f"type {dtype}" for image in op["inputs"] for dtype in image["types"])
        found += [f"{name}: no case with {what}" for what in wanted if what not in about.get(name, ())]
    return found


def mixes_zeros(op):
    """Whether its page leaves the sign of zero open."""
    return any("zeros of either sign" in note for note in op["notes"])


def ulps(op, against):
    """How far `reference`, `strict`, `wgpu` or `fast` may be off, in units in the last place at the largest number of
    image and result."""
    bound = op["tolerance"][against]
    return 0 if bound == "exact" else bound["ulp"]
