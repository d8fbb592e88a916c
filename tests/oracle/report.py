"""What came out: a line per operation, and the commands that repeat what failed."""

from collections import defaultdict

#: Failures shown per operation; the first ones say it all.
SHOWN = 3


class Report:
    """Counts per operation, with the worst error and the failures."""

    def __init__(self):
        self.rows = defaultdict(lambda: {"cases": 0, "passed": 0, "worst": 0.0})
        self.failures = defaultdict(list)

    def add(self, case, verdict, command):
        row = self.rows[case.operation.name]
        row["cases"] += 1
        row["passed"] += verdict.ok
        if verdict.ok:
            row["worst"] = max(row["worst"], verdict.error)
        else:
            self.failures[case.operation.name].append((case, verdict.text, command))

    @property
    def failed(self):
        return sum(map(len, self.failures.values()))

    def text(self, title, unit):
        width = max(map(len, self.rows), default=2)
        lines = [title, f"{'op':{width}}  {'cases':>6} {'passed':>6}  worst {unit}"]
        for name, row in sorted(self.rows.items()):
            mark = "" if row["cases"] == row["passed"] else "  FAILED"
            worst = f"{row['worst']:.2g}" if row["worst"] else "exact"
            lines.append(f"{name:{width}}  {row['cases']:6} {row['passed']:6}  {worst}{mark}")
        for name, failures in sorted(self.failures.items()):
            lines += ["", f"{name}: {len(failures)} wrong"]
            # What was not run after a crash says nothing; the crash itself does.
            telling = sorted(failures, key=lambda it: it[1].startswith("not run"))
            for case, text, command in telling[:SHOWN]:
                lines += [f"  {case}", f"    {text}", f"    {command}"]
        cases = sum(row["cases"] for row in self.rows.values())
        # The form in which test programs close, so that whoever runs this can count.
        verdict = "FAILED" if self.failed else "ok"
        lines.append(
            f"\ntest result: {verdict}. {cases - self.failed} passed; {self.failed} failed; 0 ignored; 0 measured"
        )
        return "\n".join(lines)

    def json(self):
        return {
            name: {**row, "failures": [[str(case), text, command] for case, text, command in self.failures[name]]}
            for name, row in sorted(self.rows.items())
        }
