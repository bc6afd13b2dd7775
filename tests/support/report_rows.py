"""Results rows made up for the tests of reports."""

import dataclasses

import numpy as np

from kbench.records import Figure
from kbench.registry.registry import Registry
from kbench.report.content import ReportData
from kbench.results.rows import Row

NASTY = [
    '<script>alert("x")</script>',
    "</title></script><img src=x onerror=alert(1)>",
    'quote" onload="alert(1)',
    "a&b_c%$#{}~^\\ $x^2$",
    "q" * 200,
    "🐍 ' snake",
    "{{ 7 * 7 }}",
]


_FIELDS = {each.name for each in dataclasses.fields(Row)}


def changed(row, **more):
    """Return a row with other fields; what is no field is a metric, None where it has none."""
    fields = {name: value for name, value in more.items() if name in _FIELDS}
    metrics = {**row.metrics, **fields.pop("metrics", {})}
    metrics |= {name: value for name, value in more.items() if name not in _FIELDS}
    kept = {name: float(value) for name, value in metrics.items() if value is not None}
    return dataclasses.replace(row, **fields, metrics=kept)


def row(dataset, feature_map, learner="ridge", accuracies=(0.9, 0.92, 0.88), **more):
    """Return a row as `kbench.results.row_builders.of_run` does."""
    ok = more.get("status", "ok") == "ok"
    made = Row(
        dataset,
        feature_map,
        learner,
        "ok",
        n_splits_done=len(accuracies) if ok else 0,
        n_splits=len(accuracies),
        machine="m1",
        protocol={"cv": "stratified", "n_folds": "3"},
        version="0.1.0",
        start_ms=1_700_000_000_000,
        end_ms=1_700_000_100_000,
    )
    if ok:
        made = changed(
            made,
            accuracy=np.mean(accuracies),
            accuracy_sd=np.std(accuracies, ddof=1),
            values_by_split={"accuracy": {str(i): float(a) for i, a in enumerate(accuracies)}},
            split_hash={str(i): f"{dataset[:9]}-{i}" for i in range(len(accuracies))},
            n_train=100.0,
            n_test=50.0,
            fit_time_s=0.01,
            predict_time_s=0.001,
            search_time_s=0.1,
            n_components=30,
            peak_memory_mib=12.5,
            converged=True,
            search={
                "learner.alpha": [[0.1, 0.7, 0.02, 9, False], [10.0, 0.8, 0.01, 9, False]],
                "feature_map.gamma": [
                    [g, 0.5 + g / 10, None, 1, g == 4.0] for g in (1.0, 2.0, 4.0)
                ],
            },
        )
    return changed(made, **more)


def grid(n_datasets, n_methods, n_splits=5, seed=0):
    """Return rows of a full product; later maps are better and slower."""
    rng = np.random.default_rng(seed)
    rows = []
    for d in range(n_datasets):
        base = rng.uniform(0.6, 0.9)
        for m in range(n_methods):
            accuracies = np.clip(base + 0.01 * m + rng.normal(0, 0.02, n_splits), 0, 1)
            rows.append(
                row(
                    f"data-{d}",
                    f"map-{m}",
                    accuracies=accuracies,
                    n_train=100.0 * 2 ** (d % 4),
                    fit_time_s=float(0.001 * 2**m * rng.lognormal(0, 0.2))
                    if m < 20
                    else float(rng.lognormal()),
                    predict_time_s=float(0.001 * rng.lognormal()),
                )
            )
    return rows


def regression_row(dataset, feature_map, errors, sd=1.0, **more):
    """Return a row of a regression task: `errors` by split, standardised; `sd` of the target."""
    names = ("rmse_standardized", "rmse")
    values = {name: np.array(errors) * size for name, size in zip(names, (1.0, sd), strict=True)}
    spreads = {f"{name}_sd": float(np.std(each, ddof=1)) for name, each in values.items()}
    by_split = {name: dict(enumerate(each.tolist())) for name, each in values.items()}
    return changed(
        row(dataset, feature_map, accuracies=errors),
        task="regression",
        accuracy=None,
        accuracy_sd=None,
        values_by_split={
            name: {str(i): value for i, value in each.items()} for name, each in by_split.items()
        },
        **{name: float(each.mean()) for name, each in values.items()},
        **spreads,
        **more,
    )


def searched(rows, inner=0.85, default=0.8, optimism=0.01):
    """Return rows with what their searches found on the inner folds."""
    found = {"search_inner": inner, "search_inner_default": default, "search_optimism": optimism}
    curve = [[0.1, default], [1.0, inner]]
    return [changed(each, budget_curve=curve, **found) for each in rows]


def nasty_rows():
    """Return rows whose names attack HTML, SVG, LaTeX and scripts."""
    rows = [
        row(dataset, feature_map, learner, (0.8 + 0.01 * i, 0.85, 0.9 - 0.01 * j), n_train=10**i)
        for i, dataset in enumerate(NASTY)
        for j, (feature_map, learner) in enumerate(zip(NASTY, reversed(NASTY), strict=True))
    ]
    rows = searched(rows)
    rows.append(row(NASTY[1], "bad", NASTY[0], status="error", error=f"first\n{NASTY[0]}"))
    rows.append(row(NASTY[1], "big", NASTY[0], status="skipped", error=NASTY[2]))
    rows.append(row("gone" + NASTY[0], "bad", status="unavailable", error=NASTY[1]))
    rows[0] = changed(rows[0], notes=NASTY[0], at_boundary=NASTY[2], version=NASTY[0])
    rows[1] = changed(rows[1], converged=False, contention="busy")
    return rows


def content(rows, **more):
    """Return what a page says of rows."""
    return ReportData(more.pop("suite", "trial"), rows, **more)


def with_figures(*figures):
    """Return a registry that holds figures only."""
    registry = Registry()
    for name, draw, suites in figures:
        registry._records["figure"][name] = Figure(name, f"Title of {name}", draw, suites)
    return registry


__all__ = [
    "NASTY",
    "changed",
    "content",
    "grid",
    "nasty_rows",
    "regression_row",
    "row",
    "with_figures",
]
