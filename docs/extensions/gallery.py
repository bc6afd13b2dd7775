"""Content of the page of a map in addition to its docstring: figure, cost and scores.

Figures are drawn by `tests/benchmarks/draw_gallery.py`. The numbers are in `docs/measured`, where
`tests/benchmarks/bench_maps.py` and `gallery_scores.py` write them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

DOCS = Path(__file__).parent.parent
NAMES = {"accuracy": "accuracy", "rmse_standardized": "standardised rmse"}


@cache
def measured(name: str) -> dict:
    """Read a file of measured numbers."""
    return json.loads((DOCS / "measured" / f"{name}.json").read_text(encoding="utf-8"))


def picture(name: str, options: str = "") -> Iterator[str]:
    """Yield the figure of a map; `options` are further ones of the directive."""
    yield f".. image:: /images/maps/{name}.png"
    yield f"   :alt: A feature of {name}, and inner products of its features"
    yield "   :loading: lazy"
    if options:
        yield f"   {options}"
    yield ""


def shown(name: str) -> Iterator[str]:
    """Yield the image with its caption."""
    yield from picture(name)
    yield (
        "About 64 features, fitted on the dots: one of the features, the inner products of the"
        " features of all points with those of +, and the kernel that these approximate, where the"
        " map declares one. Bright values are large."
    )
    yield ""


def costs(name: str) -> Iterator[str]:
    """Yield the time of a row for the numbers of inputs and features that were measured."""
    times = measured("map_costs")["maps"]
    yield "**Cost.** Microseconds of CPU for one row (one thread, float64):"
    yield ""
    yield from table(
        ("inputs", "requested features", "time per row"),
        ((*size.split(" x "), f"{at[name]:g}") for size, at in times.items() if name in at),
    )


def scores(name: str) -> Iterator[str]:
    """Yield the best place of a map, and its scores next to the best ones."""
    rows = []
    for dataset, found in measured("map_scores").items():
        if name not in found["scores"]:
            continue
        place, number, best = placed(name, found)
        mean, deviation = found["scores"][name]
        metric = f"{NAMES[found['metric']]}, {found['better']} is better"
        top = f"{found['scores'][best][0]:.3f} ({best})"
        rows.append((place, number, dataset, metric, f"{mean:.3f} ± {deviation:.3f}", top))
    if not rows:
        return
    place, number, dataset, *_ = min(rows)
    yield f"**Scores.** Its best rank among {number} maps is {place}, on {dataset}:"
    yield ""
    yield from table(
        ("dataset", "metric", "mean ± standard deviation over splits", "rank", "best map"),
        ((row[2], row[3], row[4], f"{row[0]} of {row[1]}", row[5]) for row in rows),
    )
    yield (
        "Ridge regression, five folds, the default lists of the map and six penalties in a random"
        " search. Differences below a standard deviation mean little: see :doc:`/statistics`."
    )
    yield ""


def all_scores(names) -> Iterator[str]:
    """Yield the mean scores of all maps on all datasets; the best of each dataset is strong."""
    found = measured("map_scores")
    head = [f"{name} ({NAMES[at['metric']]})" for name, at in found.items()]
    rows = []
    for name in names:
        row = []
        for at in found.values():
            mean = f"{at['scores'][name][0]:.3f}" if name in at["scores"] else ""
            row.append(f"**{mean}**" if mean and placed(name, at)[0] == 1 else mean)
        if any(row):
            rows.append((f":ref:`{name} <feature-map-{name}>`", *row))
    yield from table(("map", *head), rows)


def placed(name: str, found: dict) -> tuple[int, int, str]:
    """Return the place of a map by its mean, the number of maps, and the best one."""
    sign = 1 if found["better"] == "lower" else -1
    means = {each: sign * mean for each, (mean, _) in found["scores"].items()}
    better = sum(mean < means[name] for mean in means.values())
    return 1 + better, len(means), min(means, key=means.get)


def table(head, rows) -> Iterator[str]:
    """Yield a table."""
    yield ".. list-table::"
    yield "   :header-rows: 1"
    yield ""
    for row in (head, *rows):
        for place, cell in enumerate(row):
            yield f"   {'* -' if place == 0 else '  -'} {cell}"
    yield ""
