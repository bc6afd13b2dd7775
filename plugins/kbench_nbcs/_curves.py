"""Accuracy against cost: the datasets where a family of maps is on the Pareto front."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# Families of the suite `map-curves`, by how a map's label begins.
FAMILIES = ("mesh", "nbcs-rotated", "nystroem", "orthogonal-rff", "random-binning", "identity")
REFERENCES = ("1-NN", "gradient-boosting", "kernel-svm")


def cost(row: Mapping[str, Any]) -> float:
    """CPU seconds of search and fit."""
    return float(row["search_time_cpu_s"]) + float(row["fit_time_cpu_s"])


def family(row: Mapping[str, Any]) -> str:
    """Name the line of the picture that a row belongs to: a map's sizes, or a reference."""
    if any(row["learner"].startswith(name) for name in REFERENCES):
        return str(row["learner"]).split(" (")[0]
    return next((name for name in FAMILIES if row["feature_map"].startswith(name)), "others")


def front(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Rows that no other is at least as good as, at no more cost, and better in one of both."""
    return [
        row
        for row in rows
        if not any(
            other["accuracy"] >= row["accuracy"]
            and cost(other) <= cost(row)
            and (other["accuracy"] > row["accuracy"] or cost(other) < cost(row))
            for other in rows
        )
    ]


def by_dataset(results: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Group the finished rows with accuracies and CPU times by dataset."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in results:
        known = (row.get("accuracy"), row.get("fit_time_cpu_s"))
        if row["status"] == "ok" and None not in known:
            groups.setdefault(row["dataset"], []).append(row)
    return groups


def _few_ticks(panel: Any) -> None:
    """Label a logarithmic axis in seconds, as sparsely as its range allows."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = panel.get_xlim()
    subs = (1.0, 2.0, 5.0) if high < 10 * low else (1.0, 3.0) if high < 50 * low else (1.0,)
    panel.xaxis.set_major_locator(LogLocator(subs=subs))
    panel.xaxis.set_major_formatter("{x:g}")
    panel.xaxis.set_minor_formatter(NullFormatter())


def figure_curves(results: Iterable[Mapping[str, Any]]) -> Any:
    """Draw accuracy against search and fit time, a panel a dataset and a line a family."""
    from matplotlib.figure import Figure

    groups = by_dataset(results)
    if not groups:
        raise ValueError("no finished cell has an accuracy and CPU times")
    colours = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "0.45")
    styles: dict[str, dict[str, Any]] = {
        name: {"color": colour, "marker": "o", "ms": 3.5, "lw": 2 if name == "mesh" else 1}
        for name, colour in zip(FAMILIES, colours, strict=True)
    }
    for name, marker in zip(REFERENCES, "x*+", strict=True):
        styles[name] = {"color": "k", "marker": marker, "ls": "none"}
    n_columns = min(3, len(groups))
    n_rows = -(-len(groups) // n_columns)
    figure = Figure(figsize=(3.4 * n_columns, 2.6 * n_rows + 0.5), layout="constrained")
    panels = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for panel, (dataset, rows) in zip(panels, groups.items(), strict=False):
        for name, style in styles.items():
            part = [row for row in rows if family(row) == name]
            if name in FAMILIES:
                part = sorted(front(part), key=cost)
            accuracies = [row["accuracy"] for row in part]
            panel.plot([cost(row) for row in part], accuracies, label=name, **style)
        panel.set_xscale("log")
        _few_ticks(panel)
        panel.set_title(dataset, fontsize=9, parse_math=False)
        panel.tick_params(which="both", labelsize=7)
        best = max(row["accuracy"] for row in rows)
        panel.set_ylim(max(best - 0.12, min(row["accuracy"] for row in rows)) - 0.005, best + 0.01)
    for panel in panels[len(groups) :]:
        panel.axis("off")
    figure.supxlabel("search and fit, seconds of CPU", fontsize=9)
    figure.supylabel("accuracy", fontsize=9)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=5, fontsize=8)
    return figure
