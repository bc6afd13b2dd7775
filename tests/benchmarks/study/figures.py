"""The figures of the study as SVG: colours of Okabe and Ito, and a marker for each map."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import cycle
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from .table import Option

Numbers = Mapping[str, Any]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = "osD^vPX*<>"
DASHES = ("-", "--", "-.", ":")

STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "kbench",
    "font.size": 8,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "lines.linewidth": 1.0,
    "lines.markersize": 4,
}

AXES = {
    "features": "features",
    "model_bytes": "bytes of the model",
    "fit_cpu_s": "CPU seconds of fitting",
    "predict_cpu_s": "CPU seconds per predicted row",
}

LOSS = {"classification": "error (percentage points)", "regression": "rmse (sd)"}

SHOWN, FAR = 0.3, 3.0
"""Where a mean is above the second, options above the first are named instead of shown."""


def looks(maps: list[str]) -> dict[str, dict[str, Any]]:
    """Return colour, marker and dashes of each map, the same in all figures."""
    triples = zip(sorted(maps), cycle(COLOURS), cycle(MARKERS), strict=False)
    return {
        name: {"color": c, "marker": m, "linestyle": DASHES[k // len(COLOURS) % len(DASHES)]}
        for k, (name, c, m) in enumerate(triples)
    }


def draw(results: Numbers, folder: Path) -> list[Path]:
    """Write all figures that the results have numbers for."""
    makers = {
        "curves": _draw_curves,
        "datasets": _draw_datasets,
        "front": _draw_front,
        "gain": _draw_gain,
        "boosting": _draw_boosting,
        "rule": _draw_rule,
    }
    written = []
    with matplotlib.rc_context(STYLE):  # type: ignore[arg-type]
        for task, numbers in results["tasks"].items():
            for name, make in makers.items():
                figure = make(numbers)
                if figure is not None:
                    path = folder / f"study-{task}-{name}.svg"
                    figure.savefig(path, metadata={"Date": None, "Creator": None})
                    # hundredths of a point are enough
                    path.write_text(re.sub(r"(\d\.\d\d)\d+", r"\1", path.read_text()))
                    written.append(path)
    return written


def _factor(numbers: Numbers) -> float:
    return 100.0 if numbers["task"] == "classification" else 1.0


def _curve_lines(numbers: Numbers) -> dict[str, list[Numbers]]:
    found: dict[str, list[Numbers]] = {}
    for line in numbers["curves"]:
        if line["learner"] == numbers["learner"] and line["map"] != "identity":
            found.setdefault(Option(line["map"], None, "").group, []).append(line)
    return {k: sorted(v, key=lambda x: x["model_bytes"]) for k, v in found.items()}


def _draw_curves(numbers: Numbers) -> Figure:
    """Mean loss less that of the exact kernel against each cost, references as lines.

    The differences are paired, so that their intervals do not contain how families differ.
    """
    lines, factor = _curve_lines(numbers), _factor(numbers)
    known = [x for x in numbers["curves"] if (x.get("over_kernel") or {}).get("mean") is not None]
    most = max((x["over_kernel"]["n_families"] for x in known), default=0)
    # means of fewer families are no reference for the others
    references = [x for x in known if x["reference"] and x["over_kernel"]["n_families"] == most]
    over = {id(x): factor * x["over_kernel"]["mean"] for x in known}
    left_out: list[str] = []
    if max(over.values(), default=0.0) > FAR * factor:
        high = [x for x in known if over[id(x)] > SHOWN * factor]
        left_out = list(dict.fromkeys(x["reference"] or x["map"] for x in high))
        references = [x for x in references if x["reference"] not in left_out]
    figure = Figure(figsize=(7.2, 5.6), layout="constrained")
    axes = figure.subplots(2, 2, sharey=True)
    styles = looks(list(lines))
    for axis, (cost, label) in zip(axes.flat, AXES.items(), strict=True):
        for name, all_points in lines.items():
            points = [p for p in all_points if id(p) in over and p[cost] is not None]
            if name in left_out:
                continue
            x = np.array([p[cost] for p in points], dtype=float)
            order = np.argsort(x)
            y, low, high = (
                factor * np.array([p["over_kernel"][k] for p in points], dtype=float)
                for k in ("mean", "low", "high")
            )
            axis.plot(x[order], y[order], label=name, **styles[name])
            if cost == "features":
                colour = styles[name]["color"]
                axis.fill_between(x[order], low[order], high[order], alpha=0.07, color=colour, lw=0)
        for line in references:
            axis.axhline(over[id(line)], color="0.45", lw=0.8, ls=(0, (4, 2)))
            if cost == "features":
                text = {"ha": "right", "va": "bottom", "fontsize": 6, "color": "0.3"}
                place = ("axes fraction", "data")
                axis.annotate(line["reference"], (1, over[id(line)]), xycoords=place, **text)
        _scale(axis, cost)
        axis.set_xlabel(label)
    for axis in axes[:, 0]:
        axis.set_ylabel(f"less exact kernel: {LOSS[numbers['task']]}")
    if left_out:
        text = f"above {SHOWN * factor:g}, not shown: {', '.join(left_out)}"
        figure.suptitle(text, fontsize=6, ha="left", x=0.01)
    _legend(figure, axes[0, 0])
    return figure


def _scale(axis: Axes, cost: str) -> None:
    """Make the axis of a cost logarithmic, with labels at powers only."""
    base = 2 if cost == "features" else 10
    axis.set_xscale("log", base=base)
    axis.xaxis.set_minor_formatter(NullFormatter())


def _draw_datasets(numbers: Numbers) -> Figure | None:
    """Loss against width on each dataset."""
    factor = _factor(numbers)
    lines = [
        x
        for x in numbers["dataset_curves"]
        if x["width"] is not None and x["learner"] == numbers["learner"]
    ]
    datasets = list(dict.fromkeys(x["dataset"] for x in lines))
    if not datasets:
        return None
    columns = min(4, len(datasets))
    rows = -(-len(datasets) // columns)
    figure = Figure(figsize=(1.8 * columns + 0.6, 1.5 * rows + 0.8), layout="constrained")
    axes = figure.subplots(rows, columns, sharex=True, squeeze=False)
    styles = looks(list(dict.fromkeys(x["map"] for x in lines)))
    for axis, name in zip(axes.flat, datasets, strict=False):
        for map_name, style in styles.items():
            some = [x for x in lines if x["dataset"] == name and x["map"] == map_name]
            some.sort(key=lambda x: x["width"])
            y = factor * np.array([x["loss"] for x in some])
            axis.plot([x["width"] for x in some], y, label=map_name, **style)
            if some and all(x["low"] is not None for x in some):
                ends = [factor * np.array([x[k] for x in some]) for k in ("low", "high")]
                axis.fill_between(
                    [x["width"] for x in some], *ends, alpha=0.07, color=style["color"], lw=0
                )
        axis.set_title(name, fontsize=7)
        axis.set_xscale("log", base=2)
        if max((x["loss"] for x in lines if x["dataset"] == name), default=0.0) > FAR:
            axis.set_yscale("log")
    for axis in axes.flat[len(datasets) :]:
        axis.set_visible(False)
    figure.supxlabel("features", fontsize=8)
    figure.supylabel(LOSS[numbers["task"]], fontsize=8)
    _legend(figure, axes[0, 0])
    return figure


def _draw_front(numbers: Numbers) -> Figure | None:
    """Probability that a map is the best within a budget."""
    costs = [cost for cost in AXES if numbers["fronts"][cost].get("best_at")]
    if not costs:
        return None
    figure = Figure(figsize=(7.2, 2.0 * -(-len(costs) // 2) + 0.6), layout="constrained")
    axes = figure.subplots(-(-len(costs) // 2), 2, sharey=True, squeeze=False)
    names = sorted(
        {m for c in costs for point in numbers["fronts"][c]["best_at"] for m in point["maps"]}
    )
    styles = looks(names)
    for axis, cost in zip(axes.flat, costs, strict=False):
        points = numbers["fronts"][cost]["best_at"]
        for name in names:
            shares = [p["maps"].get(name, 0.0) for p in points]
            axis.plot([p["budget"] for p in points], shares, label=name, **styles[name])
        _scale(axis, cost)
        axis.set_xlabel(f"at most so many {AXES[cost]}")
    for axis in axes.flat[len(costs) :]:
        axis.set_visible(False)
    for axis in axes[:, 0]:
        axis.set_ylabel("probability of the\nleast mean loss")
    _legend(figure, axes[0, 0])
    return figure


def _draw_gain(numbers: Numbers) -> Figure | None:
    """Share of the exact kernel's gain by width."""
    shares = [x for x in numbers["kernel_gain"]["shares"] if x["width"] is not None]
    if not shares:
        return None
    figure = Figure(figsize=(4.6, 3.0), layout="constrained")
    axis = figure.subplots()
    styles = looks(list(dict.fromkeys(x["map"] for x in shares)))
    for name, style in styles.items():
        some = [x for x in shares if x["map"] == name]
        y = np.array([x["share"] for x in some], dtype=float)
        axis.plot([x["width"] for x in some], y, label=name, **style)
    axis.axhline(1.0, color="0.45", lw=0.8, ls=(0, (4, 2)))
    axis.set_xscale("log", base=2)
    axis.set_xlabel("features")
    axis.set_ylabel("share of the exact kernel's gain\nover the linear model (median)")
    _legend(figure, axis)
    return figure


def _draw_boosting(numbers: Numbers) -> Figure | None:
    """Loss of boosting less that of the exact kernel, by dataset; filled if it is significant."""
    lines = sorted(numbers["boosting"].get("datasets", []), key=lambda x: x["difference"])
    if not lines:
        return None
    factor = _factor(numbers)
    figure = Figure(figsize=(4.6, 0.17 * len(lines) + 0.9), layout="constrained")
    axis = figure.subplots()
    for place, line in enumerate(lines):
        if line["low"] is not None:
            axis.plot([factor * line["low"], factor * line["high"]], [place] * 2, color=COLOURS[0])
        decided = line["p_holm"] <= 0.05
        face = COLOURS[0] if decided else "white"
        axis.plot(factor * line["difference"], place, "o", color=COLOURS[0], mfc=face)
    axis.axvline(0.0, color="0.3", lw=0.8)
    axis.set_yticks(range(len(lines)), [line["dataset"] for line in lines], fontsize=6)
    axis.set_xlabel(f"boosting less exact kernel: {LOSS[numbers['task']]}")
    return figure


def _draw_rule(numbers: Numbers) -> Figure | None:
    """Regret against the share of compute, of the rule and the baselines."""
    rule = numbers.get("rule", {})
    kinds = [kind for kind in ("cross_validated", "tested") if kind in rule]
    if not kinds:
        return None
    figure = Figure(figsize=(3.6 * len(kinds) + 1.2, 2.8), layout="constrained")
    axes = figure.subplots(1, len(kinds), sharey=True, squeeze=False)
    for axis, kind in zip(axes.flat, kinds, strict=True):
        methods = rule[kind]["methods"]
        styles = looks(list(methods))
        for name, line in methods.items():
            look = {k: v for k, v in styles[name].items() if k != "linestyle"}
            y = line["regret"]
            errors = None
            if line["low"] is not None:
                errors = [[y - line["low"]], [line["high"] - y]]
            axis.errorbar(line["share"], y, yerr=errors, label=name, ls="none", capsize=2, **look)
        axis.set_xscale("log")
        axis.set_title(kind.replace("_", " "), fontsize=8)
        axis.set_xlabel("share of the compute of trying all")
    unit = rule[kinds[0]]["unit"]
    axes[0, 0].set_ylabel(f"regret ({'% of rmse' if unit == '%' else 'percentage points'})")
    _legend(figure, axes[0, 0])
    return figure


def _legend(figure: Figure, axis: Axes) -> None:
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize=6, frameon=False)
