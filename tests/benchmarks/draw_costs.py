"""The chart of what a row costs: docs/images/map-costs.svg from docs/measured/map_costs.json.

python tests/benchmarks/draw_costs.py
"""

import json
from collections import defaultdict
from pathlib import Path

import matplotlib
from canon import records
from matplotlib.figure import Figure

DOCS = Path(__file__).parents[2] / "docs"
FIXED_COLUMNS, FIXED_INPUTS = 1024, 64


def curves(sizes, fixed, place):
    """Return (inputs or features, microseconds) of each map where the other number is fixed."""
    found = defaultdict(list)
    for size, times in sizes.items():
        numbers = [int(number) for number in size.split(" x ")]
        if numbers[1 - place] == fixed:
            for name, time in times.items():
                found[name].append((numbers[place], time))
    return {name: sorted(points) for name, points in found.items()}


def draw(path):
    sizes = json.loads((DOCS / "measured" / "map_costs.json").read_text(encoding="utf-8"))["maps"]
    by_inputs = curves(sizes, FIXED_COLUMNS, 0)
    by_columns = curves(sizes, FIXED_INPUTS, 1)
    families = defaultdict(list)
    for name, record in records().items():
        families[record.family or "neurons"].append(name)
    style = {"svg.fonttype": "none", "svg.hashsalt": "kbench", "font.size": 8, "axes.grid": True}
    with matplotlib.rc_context({**style, "grid.alpha": 0.3}):
        figure = Figure(figsize=(9, 2.1 * len(families)), layout="constrained")
        axes = figure.subplots(len(families), 2, sharey="row", sharex="col", squeeze=False)
        for row, (family, names) in zip(axes, families.items(), strict=True):
            for place, name in enumerate(names):
                look = {"color": f"C{place % 10}", "marker": "os^Dv"[place // 10], "markersize": 3}
                for axis, found in zip(row, (by_inputs, by_columns), strict=True):
                    if name in found:
                        axis.plot(*zip(*found[name], strict=True), label=name, linewidth=1, **look)
            row[0].set_ylabel(f"{family}\nµs of CPU per row")
            row[0].set_xscale("log", base=2)
            row[1].set_xscale("log", base=2)
            row[0].set_yscale("log")
            row[1].legend(
                *row[0].get_legend_handles_labels(),
                fontsize=6,
                loc="center left",
                bbox_to_anchor=(1, 0.5),
            )
        axes[0, 0].set_title(f"{FIXED_COLUMNS:,} features asked for, by inputs")
        axes[0, 1].set_title(f"{FIXED_INPUTS} inputs, by features asked for")
        figure.savefig(path, metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    draw(DOCS / "images" / "map-costs.svg")
