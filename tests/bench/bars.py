"""What has to be reached, and whether it is."""

import math

#: The libraries that run on the processor.
LIBRARIES = ("opencv", "scipy", "skimage")
CHAINS = ("chain5", "chain5_cheap")
#: Where even the best library leaves nearly all of the memory's speed unused.
OPEN_GROUND = 0.02


class Bar:
    """A demand: what was measured, what it must be at least."""

    def __init__(self, name, value, least):
        self.name, self.value, self.least = name, value, least

    @property
    def met(self):
        return self.value >= self.least

    def text(self):
        return f"{'met   ' if self.met else 'MISSED'}  {self.name}: {self.value:.2f} (at least {self.least:g})"

    def json(self):
        return {"bar": self.name, "value": self.value, "least": self.least, "met": self.met}


def mean(values):
    """Geometric."""
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def ratio(row, ours, theirs):
    """How many times faster we are, or None where either is missing."""
    best = row["seconds"]
    return best[theirs] / best[ours] if ours in best and theirs in best else None


def fastest(row, names):
    """The fastest of these peers, or None."""
    there = [name for name in names if name in row["seconds"]]
    return min(there, key=row["seconds"].get, default=None)


def bars(rows):
    """All demands that these rows can answer."""
    found = []
    singles = [row for row in rows if row["work"] not in CHAINS]
    planes = [row for row in singles if len(row["shape"]) == 2]
    stacks = [row for row in singles if len(row["shape"]) == 3]

    def add(name, value, least):
        if value is not None and not math.isnan(value):
            found.append(Bar(name, value, least))

    def rows_of(ours, theirs, among):
        return {f"{row['work']} {row['size']}": r for row in among if (r := ratio(row, ours, theirs)) is not None}

    # The processor.
    for row in singles:
        best = fastest(row, LIBRARIES)
        add(f"cpu, {row['work']} {row['size']} against {best}", ratio(row, "cpu:0", best) if best else None, 1.0)
    add("cpu, mean against skimage", mean(rows_of("cpu:0", "skimage", singles).values()), 3.0)
    add("cpu, mean against opencv", mean(rows_of("cpu:0", "opencv", planes).values()), 1.2)
    ground = []
    for row in stacks:
        best = fastest(row, (*LIBRARIES, "numpy", "cle"))
        if best and row["bound"] / row["seconds"][best] <= OPEN_GROUND and "cpu:0" in row["seconds"]:
            ground.append(ratio(row, "cpu:0", best))
    add("cpu, mean over stacks against the best peer, where that leaves 98 % unused", mean(ground), 8.0)
    for device in ("cpu:0", "opencl:0"):
        for name in ("mean_box", "minimum_box", "maximum_box", "variance_box"):
            for size in {row["size"] for row in rows}:
                pair = [row["seconds"].get(device) for work in (name, f"{name}_30") for row in rows
                        if (row["work"], row["size"]) == (work, size)]  # fmt: skip
                if len(pair) == 2 and None not in pair:
                    add(f"{device}, {name} {size}: radius 2 or 3 against radius 30", pair[0] / pair[1], 0.85)

    # OpenCL on the processor.
    for row in singles:
        add(f"opencl, {row['work']} {row['size']} against cle", ratio(row, "opencl:0", "cle"), 2.0)
        add(f"opencl, {row['work']} {row['size']} against our cpu", ratio(row, "opencl:0", "cpu:0"), 0.7)
    add("opencl, mean against cle", mean(rows_of("opencl:0", "cle", singles).values()), 10.0)

    # Chains.
    for row in (row for row in rows if row["work"] in CHAINS):
        name = f"{row['work']} {row['size']}"
        for device, share in (("cpu:0", 0.7), ("opencl:0", 0.6)):
            seconds = row["seconds"].get(device)
            add(f"{device}, {name}: share of the copy speed", seconds and row["bound"] / seconds, share)
        add(f"opencl, {name} against cle", ratio(row, "opencl:0", "cle"), 10.0)
        add(f"opencl, {name} against cle by hand", ratio(row, "opencl:0", "cle_fused"), 2.0)
    return found
