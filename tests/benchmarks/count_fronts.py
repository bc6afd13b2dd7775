"""On how many sets a family of maps is on the Pareto front of accuracy against cost.

    kbench suite map-curves
    kbench results map-curves --format json > curves.json
    python tests/benchmarks/count_fronts.py curves.json [--family mesh] [--draw curves.svg]

Cost is CPU time of search and fit. Sets on which defaults were chosen are listed and not
counted.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from kbench_nbcs._curves import FAMILIES, figure_curves, pareto_table

DEVELOPMENT = ("letter", "segment")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--family", choices=FAMILIES, default="mesh")
    parser.add_argument("--draw", type=Path)
    args = parser.parse_args()
    results = json.loads(args.results.read_text())
    results = results if isinstance(results, list) else results["rows"]
    table = pareto_table(results, args.family)
    print("| dataset | front | front of maps | ahead by one s.e. | best | best other | which |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for row in table:
        marks = (("yes" if row[key] else "no") for key in ("on_front", "among_maps", "leads"))
        note = " (development)" if row["dataset"] in DEVELOPMENT else ""
        print(
            f"| {row['dataset']}{note} | {' | '.join(marks)} | {row['best']:.4f} | "
            f"{row['best_other']:.4f} | {row['other']} |"
        )
    counted = [row for row in table if row["dataset"] not in DEVELOPMENT]
    for key, words in (
        ("on_front", "on the front of all methods"),
        ("among_maps", "on the front of the maps"),
        ("leads", "ahead of all others of at most its cost by one standard error"),
    ):
        print(f"{args.family}: {words} on {sum(row[key] for row in counted)} of {len(counted)}")
    if args.draw:
        args.draw.write_bytes(as_svg(figure_curves(results)))


def as_svg(figure):
    from kbench.report.figures import save

    return save(figure, "svg")


if __name__ == "__main__":
    main()
