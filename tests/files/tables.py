"""Tables: pyarrow reads what ours are."""

import csv
import json
import math

import pyarrow.parquet

from .case import Case

TABLES = {
    "numbers": {"label": [1, 2, -3], "mean": [0.5, 1e300, -0.0]},
    "texts": {"record": ["A/1", "", "ä, \"b\"\nc"], "n": [1, 2, 3]},
    "limits": {"whole": [2**63 - 1, -(2**63), 0], "real": [5e-324, 1.7976931348623157e308, 0.1]},
    "gaps": {"mean": [0.5, None, 2.0]},
    "empty": {"label": []},
    "wide": {f"column {at}": [at, at + 1] for at in range(40)},
    "long": {"label": list(range(600_000)), "half": [at / 2 for at in range(600_000)]},
}


def ours(folder):
    for name, table in TABLES.items():
        # What is no number in JSON is NaN in ours.
        want = {key: [math.nan if value is None else value for value in values] for key, values in table.items()}

        def parquet(answer, path=folder / f"{name}.parquet", want=want):
            if "error" in answer:
                return answer["error"]
            found = pyarrow.parquet.read_table(path)
            found.validate(full=True)
            return differ(found.to_pydict(), want)

        def text(answer, path=folder / f"{name}.csv", want=want):
            if "error" in answer:
                return answer["error"]
            with open(path, newline="", encoding="utf-8") as file:
                names, *rows = csv.reader(file)
            columns = {key: [type(of)(row[at]) for row, of in zip(rows, want[key])] for at, key in enumerate(names)}
            return differ(columns, want)

        def objects(answer, path=folder / f"{name}.json", want=want):
            if "error" in answer:
                return answer["error"]
            found = json.loads(path.read_text(encoding="utf-8"))
            columns = {key: [row[key] for row in found["rows"]] for key in found["columns"]}
            columns = {key: [math.nan if value == "NaN" else value for value in values] for key, values in columns.items()}
            return differ(columns, want)

        for ending, judge in (("parquet", parquet), ("csv", text), ("json", objects)):
            if name == "long" and ending != "parquet":
                continue
            yield Case(f"{name} to {ending}", {"table": table, "to": str(folder / f"{name}.{ending}")}, judge)


def differ(found, want):
    """What is wrong with a table; NaN is itself."""

    def plain(table):
        return {key: ["NaN" if value != value else value for value in values] for key, values in table.items()}

    found, want = plain(found), plain(want)
    if list(found) != sorted(want):
        return f"columns {list(found)[:5]}, expected {sorted(want)[:5]}"
    for key, values in want.items():
        if found[key] != values:
            return f"column {key} is {found[key][:5]}, expected {values[:5]}"
    return None
