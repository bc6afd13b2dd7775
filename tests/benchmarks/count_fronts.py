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
from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

from kbench_nbcs._figures import (
    FAMILIES,
    REFERENCES,
    by_dataset,
    cost,
    family,
    figure_curves,
    front,
)

DEVELOPMENT = ("letter", "segment")


def standard_error(row: Mapping[str, Any]) -> float:
    """Standard error of an accuracy over its test rows, those of all splits together."""
    accuracy = min(max(float(row["accuracy"]), 0.0), 1.0)
    return sqrt(accuracy * (1 - accuracy) / (float(row["n_test"]) * row["n_splits_done"]))


def leads(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    """Report if a row of a family beats all other families of its cost by a standard error."""
    return any(
        all(
            row["accuracy"] > other["accuracy"] + standard_error(other)
            for other in rows
            if family(other) != name and cost(other) <= cost(row)
        )
        for row in rows
        if family(row) == name
    )


def pareto_table(results: Iterable[Mapping[str, Any]], name: str = "mesh") -> list[dict[str, Any]]:
    """Report for each dataset of a report's rows whether a family is on its front.

    Each dict has ``dataset``; ``on_front`` among all methods; ``among_maps``,
    without 1-NN, gradient boosting and the kernel machine; ``leads``: some row of the
    family is better than every method of other families of at most its cost, by more
    than one standard error of the latter; ``best`` accuracy of the family and
    ``best_other`` with its ``other``.
    """
    table = []
    for dataset, rows in by_dataset(results).items():
        ours = [row for row in rows if family(row) == name]
        others = [row for row in rows if family(row) != name]
        if not ours or not others:
            continue
        maps = [row for row in rows if family(row) not in REFERENCES]
        other = max(others, key=lambda row: row["accuracy"])
        table.append(
            {
                "dataset": dataset,
                "on_front": any(family(row) == name for row in front(rows)),
                "among_maps": any(family(row) == name for row in front(maps)),
                "leads": leads(rows, name),
                "best": max(row["accuracy"] for row in ours),
                "best_other": other["accuracy"],
                "other": f"{other['feature_map']} + {other['learner']}",
            }
        )
    return table


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
    from kbench_reporting.pictures import save

    return save(figure, "svg")


if __name__ == "__main__":
    main()
