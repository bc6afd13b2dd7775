"""The paper's Figures 2, 3 and 4, decision boundaries, and accuracy against cost.

A figure of the paper does not depend on results. Of accuracy against cost there is a curve for
each family of maps: its Pareto front on a dataset.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from sklearn.svm import LinearSVC

from kbench_nbcs._map import NestedBarycentricMap
from kbench_nbcs._theory import approximate_convex_body

# Okabe and Ito's colours, told apart with any colour vision; labels also differ
# by marker.
_COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")
_MARKERS = "osD^vP*X"
_GRID = "0.55"


def five_gon(n_samples=400, n_halfspaces=5, margin=0.05, random_state=None):
    """Draw points of the unit disc inside (1) and outside (0) a random polygon.

    Section 5 of the paper: points are uniform in the disc; the polygon is the
    intersection of halfspaces ``w . x <= b`` with w uniform on the circle and b
    uniform in [0.05, 0.95]; points within `margin` of its boundary are dropped.

    Parameters
    ----------
    n_samples : int, default 400
        Rows that are left after dropping.
    n_halfspaces : int, default 5
        Sides.
    margin : float, default 0.05
        Half the width of the empty strip.
    random_state : int, Generator or None, default None
        Seed.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
    y : ndarray of int, shape (n_samples,)
    W : ndarray of shape (n_halfspaces, 2)
        Unit normals.
    b : ndarray of shape (n_halfspaces,)
        Offsets.

    Examples
    --------
    >>> X, y, W, b = five_gon(random_state=0)
    >>> X.shape, bool(np.all((X[y == 1] @ W.T <= b - 0.05)))
    ((400, 2), True)
    """
    rng = np.random.default_rng(random_state)
    W = rng.normal(size=(n_halfspaces, 2))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    b = rng.uniform(0.05, 0.95, n_halfspaces)
    kept = np.empty((0, 2))
    while len(kept) < n_samples:
        X = rng.normal(size=(n_samples, 2))
        X *= np.sqrt(rng.random((n_samples, 1))) / np.linalg.norm(X, axis=1, keepdims=True)
        kept = np.vstack([kept, X[np.abs((X @ W.T - b).max(axis=1)) >= margin]])
    X = kept[:n_samples]
    return X, ((X @ W.T - b).max(axis=1) < 0).astype(int), W, b


def draw_decision_boundary(ax, feature_map, learner, X, y, *, simplices=True, resolution=300):
    """Draw the decisions of a fitted map and learner in the plane.

    Two classes: the boundary (value 0) as a bold line and the margins (values
    -1 and 1) dotted, where the learner has a ``decision_function``. More
    classes, or no such function: the predicted regions.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where to draw.
    feature_map : transformer
        Fitted on two columns.
    learner : classifier
        Fitted on the map's output.
    X : array-like of shape (n_samples, 2)
        Points to draw; they set the limits.
    y : array-like of shape (n_samples,)
        Their labels.
    simplices : bool, default True
        Draw the simplices too, where the map has them.
    resolution : int, default 300
        Grid points per axis.

    Raises
    ------
    ValueError
        X does not have two columns.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.preprocessing import PolynomialFeatures
    >>> from sklearn.svm import LinearSVC
    >>> X, y, _, _ = five_gon(random_state=0)
    >>> quadratic = PolynomialFeatures(2).fit(X)
    >>> svm = LinearSVC().fit(quadratic.transform(X), y)
    >>> ax = Figure().subplots()
    >>> draw_decision_boundary(ax, quadratic, svm, X, y)
    """
    X, y = np.asarray(X), np.asarray(y)
    if X.ndim != 2 or X.shape[1] != 2:
        raise ValueError(f"X must have two columns, got shape {X.shape}")
    classes = np.unique(y)
    axes, points = _plane(X, 0.05, resolution)
    Z = feature_map.transform(points)
    if len(classes) == 2 and hasattr(learner, "decision_function"):
        values = learner.decision_function(Z).reshape(resolution, resolution)
        with warnings.catch_warnings():
            # the values may stay on one side of a level
            warnings.filterwarnings("ignore", message="No contour levels")
            ax.contour(
                *axes,
                values,
                levels=[-1.0, 0.0, 1.0],
                colors="black",
                linewidths=[1.0, 2.2, 1.0],
                linestyles=["dotted", "solid", "dotted"],
            )
    else:
        regions = np.searchsorted(classes, learner.predict(Z)).reshape(resolution, resolution)
        levels = np.arange(len(classes) + 1) - 0.5
        colours = [_COLOURS[k % len(_COLOURS)] for k in range(len(classes))]
        ax.contourf(*axes, regions, levels=levels, colors=colours, alpha=0.3)
    if simplices and hasattr(feature_map, "simplices_"):
        draw_simplices(ax, feature_map.vertices_, feature_map.simplices_)
    for k, label in enumerate(classes):
        ax.scatter(
            *X[y == label].T,
            s=9,
            c=_COLOURS[k % len(_COLOURS)],
            marker=_MARKERS[k % len(_MARKERS)],
            linewidths=0,
            label=str(label),
            zorder=2,
        )
    ax.set(xlim=axes[0][[0, -1]], ylim=axes[1][[0, -1]])


def draw_simplices(ax, vertices, simplices):
    """Draw triangles as thin lines.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    vertices : ndarray of shape (n_vertices, 2)
    simplices : ndarray of int, shape (n_simplices, 3)
    """
    ax.add_collection(
        PolyCollection(vertices[simplices], facecolors="none", edgecolors=_GRID, linewidths=0.5)
    )
    ax.autoscale_view()


def _plane(points, edge, resolution):
    """Return the axes of a grid around points, and the grid's points."""
    low, high = points.min(axis=0), points.max(axis=0)
    edge = edge * (high - low)
    axes = [np.linspace(a, b, resolution) for a, b in zip(low - edge, high + edge, strict=True)]
    return axes, np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)


def _bare(ax, title):
    ax.set_title(title, fontsize=10)
    ax.set(aspect="equal", xticks=[], yticks=[])


def _shade(ax, decision, vertices, resolution=400):
    """Fill where ``decision(points) >= 0`` in the root triangle and draw its border."""
    axes, points = _plane(vertices, 0.0, resolution)
    values = np.maximum(decision(points), -1.0).reshape(resolution, resolution)
    top = max(values.max(), 0.0) + 1.0
    ax.contourf(*axes, values, levels=[0.0, top], colors=[_COLOURS[5]], alpha=0.6)


def figure_two_polytopes(results=None):
    """Figure 2: one weight vector, and its region is an open polytope or two polytopes."""
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.9]])
    inside = np.random.default_rng(0).dirichlet([1, 1, 1], 500) @ corners
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    panels = figure.subplots(1, 2)
    for ax, depth, positive, title in (
        (panels[0], 1, [1, 3], "open polytope"),
        (panels[1], 2, [4, 5], "two disjoint polytopes"),
    ):
        nbcs = NestedBarycentricMap(depth, root="regular").fit(inside)
        vertices = nbcs.vertices_
        weights = np.full(nbcs.n_vertices_, -1.0)
        weights[positive] = 1.0

        def decision(points, nbcs=nbcs, weights=weights):
            outside = nbcs._roots[0].coordinates(points).min(axis=1) < 0
            return np.where(outside, -1.0, nbcs.transform(points) @ weights)

        _shade(ax, decision, vertices[:3])
        draw_simplices(ax, vertices, nbcs.simplices_)
        for sign, mark in ((1.0, "+"), (-1.0, "_")):
            ax.scatter(*vertices[weights == sign].T, marker=mark, c="black", s=50, zorder=3)
        _bare(ax, title)
    return figure


def figure_convex_body(results=None):
    """Figure 3: stages of the approximation of a convex polygon (Theorem 2)."""
    angles = np.deg2rad([10.0, 70.0, 140.0, 200.0, 275.0, 330.0])
    body = 0.2 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    figure = Figure(figsize=(12, 3.2), layout="constrained")
    for stage, ax in enumerate(figure.subplots(1, 4), start=1):
        approximation = approximate_convex_body(body, stage)
        _shade(ax, approximation.decision_function, approximation.vertices[:3])
        draw_simplices(ax, approximation.vertices, approximation.simplices)
        ax.add_collection(
            PolyCollection([body], facecolors="none", edgecolors="black", linewidths=2)
        )
        _bare(ax, f"{stage} stage{'s' * (stage > 1)}")
    return figure


def figure_learnt_polygon(results=None):
    """Figure 4: a random 5-gon learnt stage by stage, with margins."""
    X, y, _, _ = five_gon(600, random_state=53)
    figure = Figure(figsize=(12, 6.4), layout="constrained")
    for row, split in zip(figure.subplots(2, 4), ("barycentre", "adaptive"), strict=True):
        for stage, ax in enumerate(row, start=1):
            nbcs = NestedBarycentricMap(stage, split=split, root="regular").fit(X, y)
            svm = LinearSVC(C=2.0**7, dual=False).fit(nbcs.transform(X), y)
            draw_decision_boundary(ax, nbcs, svm, X, y)
            error = np.mean(svm.predict(nbcs.transform(X)) != y)
            name = "uniform" if split == "barycentre" else split
            _bare(ax, f"{name}, depth {stage}: training error {error:.1%}")
    return figure


# A result, by the names of its columns.
Row = Mapping[str, Any]

# Families of the suite `map-curves`, by how a map's label begins.
FAMILIES = ("mesh", "nbcs-rotated", "nystroem", "orthogonal-rff", "random-binning", "identity")
REFERENCES = ("1-NN", "gradient-boosting", "kernel-svm")


def cost(row: Row) -> float:
    """CPU seconds of search and fit."""
    return float(row["search_time_cpu_s"]) + float(row["fit_time_cpu_s"])


def family(row: Row) -> str:
    """Name the line of the chart that a row belongs to: a map's sizes, or a reference."""
    if any(row["learner"].startswith(name) for name in REFERENCES):
        return str(row["learner"]).split(" (")[0]
    return next((name for name in FAMILIES if row["feature_map"].startswith(name)), "others")


def front(rows: Sequence[Row]) -> list[Row]:
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


def by_dataset(results: Iterable[Row]) -> dict[str, list[Row]]:
    """Group the finished rows with accuracies and CPU times by dataset."""
    groups: dict[str, list[Row]] = {}
    for row in results:
        if row["status"] == "ok" and None not in (row.get("accuracy"), row.get("fit_time_cpu_s")):
            groups.setdefault(row["dataset"], []).append(row)
    return groups


def _few_ticks(panel: Axes) -> None:
    """Label a logarithmic axis in seconds, as sparsely as its range allows."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = panel.get_xlim()
    subs = (1.0, 2.0, 5.0) if high < 10 * low else (1.0, 3.0) if high < 50 * low else (1.0,)
    panel.xaxis.set_major_locator(LogLocator(subs=subs))
    panel.xaxis.set_major_formatter("{x:g}")
    panel.xaxis.set_minor_formatter(NullFormatter())


def figure_curves(results: Iterable[Row]) -> Figure:
    """Draw accuracy against search and fit time, a panel a dataset and a line a family."""
    groups = by_dataset(results)
    if not groups:
        raise ValueError("no finished cell has an accuracy and CPU times")
    colours = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "0.45")
    styles: dict[str, dict[str, object]] = {
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
