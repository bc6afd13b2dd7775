"""Own results beside the figures that papers print."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kbench.records import ACCURACY, Measure, Published
from kbench.results.rows import Row, columns


@dataclass(frozen=True)
class Beside:
    """Our mean over `n` splits beside a published figure.

    `z` is the distance in standard errors,
    (ours - paper) / sqrt(sd^2 (1/n_ours + 1/n_paper)), where sd is that of one
    run, ours, ddof 1; None where it is not known.
    """

    published: Published
    ours: float | None
    standard_error: float | None
    n: int
    z: float | None


def beside_published(
    rows: Sequence[Row], published: Sequence[Published], measure: Measure = ACCURACY
) -> list[Beside]:
    """Compare rows with published figures: one per figure whose cell is planned.

    Figures of measures that the rows do not have are left out.
    """
    by_labels = {row.labels: row for row in rows}
    known = {name for row in rows for name in row.measures} | set(columns(measure))
    compared = []
    for figure in published:
        row = by_labels.get((figure.dataset, figure.feature_map, figure.learner))
        if row is None or figure.measure not in known:
            continue
        ours, sd = row.value(figure.measure), row.measures.get(f"{figure.measure}_sd")
        n = row.n_splits_done
        z = None
        if sd and figure.n_runs:
            z = (ours - figure.value) / (sd * math.sqrt(1 / n + 1 / figure.n_runs))
        error = None if sd is None else sd / math.sqrt(n)
        compared.append(Beside(figure, ours, error, n, z))
    return compared
