"""The figures of suite shalev-shwartz-2011."""

import math
import re

import numpy as np
from matplotlib.figure import Figure

from kbench_zero_one._theory import sigmoid, sigmoid_polynomial, worst_case_B


def draw_transfer(results=None):
    """Draw the 0-1 and the sigmoid transfer function, Figure 1 of the paper.

    L = 10 above, L = 3 below; the polynomial within 0.1 of the sigmoid as well. `results`
    are not needed.
    """
    a = np.linspace(-1, 1, 401)
    figure = Figure(figsize=(6, 5), layout="constrained")
    for axes, L in zip(figure.subplots(2, 1, sharex=True), (10.0, 3.0), strict=True):
        polynomial = sigmoid_polynomial(L, 0.1)
        axes.plot(a, a >= 0, "b--", label="0-1")
        axes.plot(a, sigmoid(a, L), "k", label="sigmoid")
        axes.plot(a, polynomial(a), "C1", lw=1, label=f"polynomial, degree {polynomial.degree}")
        axes.set(title=f"L = {L:g}", ylabel="probability of label 1", ylim=(-0.15, 1.15))
        axes.legend(loc="upper left", fontsize="small")
    axes.set_xlabel("<w, x>")
    return figure


def draw_norm(results=None):
    """Draw the B of Lemma 2 and the P_B norm of Chebyshev polynomials against L.

    The vertical axis is log10 B, for epsilon = 0.1 and 0.01. `results` are not needed.
    """
    widths = np.array([3.0, 4, 5, 6, 8, 10, 13, 16, 20])
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for colour, epsilon in zip(("C0", "C1"), (0.1, 0.01), strict=True):
        bound = [worst_case_B(L, epsilon).log / math.log(10) for L in widths]
        axes.plot(widths, bound, colour, ls="--", label=f"Lemma 2, epsilon = {epsilon:g}")
        for nu, marker in ((0.5, "o"), (0.9, "s")):
            norms = [sigmoid_polynomial(L, epsilon, nu).log_norm / math.log(10) for L in widths]
            label = f"polynomial, epsilon = {epsilon:g}, nu = {nu:g}"
            axes.plot(widths, norms, colour, marker=marker, ms=4, label=label)
    axes.set(xlabel="Lipschitz constant L", ylabel="log10 of B", yscale="log")
    axes.legend(fontsize="small")
    return figure


def draw_noise(results):
    """Draw test errors on halfspaces against label noise and against outliers.

    `results` is a DataFrame or a sequence of mappings, one row per cell, with ``dataset``,
    ``feature_map``, ``learner`` (labels) and ``expected_error``: exact where the accuracy
    counts draws, and for a sigmoid the error of equation 1. There is one panel per series of
    datasets that differ in ``noise`` or ``outliers`` only.
    """
    rows = results.to_dict("records") if hasattr(results, "to_dict") else list(results)
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {"noise": {}, "outliers": {}}
    for row in rows:
        place, error = _place(row["dataset"]), row.get("expected_error")
        if place is None or error is None or not np.isfinite(error):
            continue
        name = row["learner"]
        if row["feature_map"] != "identity":
            name = f"{row['feature_map']} + {name}"
        for panel, x in place.items():
            panels[panel].setdefault(name, []).append((x, error))
    names = sorted({name for lines in panels.values() for name in lines})
    figure = Figure(figsize=(10, 5), layout="constrained")
    for axes, (panel, lines) in zip(figure.subplots(1, 2), panels.items(), strict=True):
        for name in sorted(lines):
            xs, ys = zip(*sorted(lines[name]), strict=True)
            i = names.index(name)
            # dotted: classes that cannot be learned; dashed: rules that draw labels
            style = ":" if name.startswith("h_sig") else "--" if "randomised" in name else "-"
            axes.plot(xs, ys, style, marker="osv^"[i // 10 % 4], ms=4, color=f"C{i}", label=name)
        axes.set(xlabel=f"share of {_WORDS[panel]}", ylabel="test error")
        axes.set_yscale("symlog", linthresh=0.01)
        axes.set_ylim(bottom=0.0)
    handles = {
        label: handle
        for axes in figure.axes
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    if handles:
        figure.legend(
            handles.values(), handles.keys(), loc="outside right center", fontsize="x-small"
        )
    return figure


_WORDS = {"noise": "flipped labels", "outliers": "far outliers in the training set"}
_PARAMETER = re.compile(r"(\w+)=([0-9.e+-]+)")


def _place(dataset):
    """Return the panels of a dataset and its place there; None if it is not a halfspace.

    Datasets that differ in anything other than noise or outliers have no place.
    """
    if not re.fullmatch(r"halfspace(\(.*\))?", dataset):
        return None
    given = {name: float(value) for name, value in _PARAMETER.findall(dataset)}
    noise, outliers = given.pop("noise", 0.0), given.pop("outliers", 0.0)
    if set(given) - {"n_splits"}:
        return None
    place = {}
    if not outliers:
        place["noise"] = noise
    if not noise:
        place["outliers"] = outliers
    return place or None
