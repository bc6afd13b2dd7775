"""Results rows made up for the tests of reports."""

import numpy as np

from kbench.records import Figure
from kbench.registry.registry import Registry
from kbench.report.content import Content
from kbench.results.rows import COLUMNS

NASTY = [
    '<script>alert("x")</script>',
    "</title></script><img src=x onerror=alert(1)>",
    'quote" onload="alert(1)',
    "a&b_c%$#{}~^\\ $x^2$",
    "q" * 200,
    "🐍 ' snake",
    "{{ 7 * 7 }}",
]


def row(dataset, feature_map, learner="ridge", accuracies=(0.9, 0.92, 0.88), **more):
    """Return a row as `kbench.results.rows.of_run_in_full` does."""
    ok = more.get("status", "ok") == "ok"
    found = dict.fromkeys(COLUMNS) | {
        "dataset": dataset,
        "feature_map": feature_map,
        "learner": learner,
        "status": "ok",
        "n_splits_done": len(accuracies) if ok else 0,
        "n_splits": len(accuracies),
        "group": dataset,
        "machine": "m1",
        "protocol": {"splits": "stratified", "n_folds": "3"},
        "by_split": {},
        "measure_by_split": {},
        "equivalence": "",
        "split_hash": {},
        "error": "",
        "version": "0.1.0",
        "start_ms": 1_700_000_000_000,
        "end_ms": 1_700_000_100_000,
    }
    if ok:
        found |= {
            "accuracy": float(np.mean(accuracies)),
            "accuracy_sd": float(np.std(accuracies, ddof=1)),
            "by_split": {str(i): float(a) for i, a in enumerate(accuracies)},
            "measure_by_split": {str(i): float(a) for i, a in enumerate(accuracies)},
            "split_hash": {str(i): f"{dataset[:9]}-{i}" for i in range(len(accuracies))},
            "n_train": 100.0,
            "n_test": 50.0,
            "fit_time_s": 0.01,
            "predict_time_s": 0.001,
            "search_time_s": 0.1,
            "n_components": 30,
            "peak_memory_mb": 12.5,
            "converged": True,
            "search": {
                "learner.alpha": [[0.1, 0.7, 0.02, 9, False], [10.0, 0.8, 0.01, 9, False]],
                "feature_map.gamma": [
                    [g, 0.5 + g / 10, None, 1, g == 4.0] for g in (1.0, 2.0, 4.0)
                ],
            },
        }
    return found | more


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


def nasty_rows():
    """Return rows whose names attack HTML, SVG, LaTeX and scripts."""
    rows = [
        row(dataset, feature_map, learner, (0.8 + 0.01 * i, 0.85, 0.9 - 0.01 * j), n_train=10**i)
        for i, dataset in enumerate(NASTY)
        for j, (feature_map, learner) in enumerate(zip(NASTY, reversed(NASTY), strict=True))
    ]
    rows.append(row(NASTY[1], "bad", NASTY[0], status="error", error=f"first\n{NASTY[0]}"))
    rows.append(row("gone" + NASTY[0], "bad", status="unavailable", error=NASTY[1]))
    rows[0] |= {"notes": NASTY[0], "at_edge": NASTY[2], "version": NASTY[0]}
    rows[1] |= {"converged": False, "contention": "busy"}
    return rows


def content(rows, **more):
    """Return what a page says of rows."""
    return Content(more.pop("suite", "trial"), rows, **more)


def with_figures(*figures):
    """Return a registry that holds figures only."""
    registry = Registry()
    for name, draw, suites in figures:
        registry._records["figure"][name] = Figure(name, f"Title of {name}", draw, suites)
    return registry


__all__ = ["NASTY", "content", "grid", "nasty_rows", "row", "with_figures"]
