"""What the recommended method uses: importances of the table's columns, and its errors.

A column is permuted among the test rows, so that it tells nothing, and the score is compared
with that of the rows as they are (Breiman 2001). The columns that it was encoded as are
permuted together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kbench.evaluation.assignment import Assignment, assign
from kbench.evaluation.evaluate import parts
from kbench.evaluation.method import Method, learner_side, map_side
from kbench.evaluation.outputs import Predictions, restored
from kbench.evaluation.refit import fit_and_predict
from kbench.evaluation.scores import scores
from kbench.evaluation.search import Candidate, candidates
from kbench.evaluation.splits import derive_seed
from kbench.planning.planned import PlannedCell
from kbench.records import Dataset, Inputs, Measure
from kbench.registry.registry import Registry
from kbench.report.axes import duration
from kbench.report.explanation import Explanation, Importance
from kbench.storage.datacache import DataCache
from kbench.tables.dates import DateColumn

REPEATS = 3
"""Permutations of a column."""

MOST_VALUES = 20_000_000
"""Values of the test rows with permuted columns: fewer rows are taken where there are more."""

MOST_ROWS = 2000
"""Test rows at most."""

LEAST_ROWS = 10
"""Test rows of which importances say something."""

MOST_CLASSES = 12
"""Classes of a confusion matrix that is shown."""

MOST_POINTS = 500
"""Test rows of a plot of residuals."""


def explain(
    planned: PlannedCell, registry: Registry, measure: Measure, seconds: float = math.inf
) -> Explanation | str:
    """Explain a method that was measured, or say why it cannot be.

    The method is fitted once more, in this process, with the parameters that the search
    chose, if that should take at most `seconds`. Fewer test rows are permuted where all would
    take longer.
    """
    facts, cell = planned.dataset, planned.cell
    assert facts is not None
    fit_s, row_s = _times(planned)
    if fit_s > seconds:
        return (
            f"--explain: fitting the method once more should take {duration(fit_s)}, and "
            f"{duration(max(0.0, seconds))} are left for it: give a larger --time-limit"
        )
    dataset = DataCache().load(facts.checksum, facts.feature_kinds)
    if hasattr(dataset.X, "indptr"):
        return "--explain: importances of sparse data are not computed"
    method = Method(
        **map_side(cell.feature_map, registry),
        **learner_side(cell.learner, registry, dataset.task),
    )
    index = planned.done[0].split
    seed = derive_seed(cell.protocol.seed, dataset.checksum, index)
    candidate = _chosen(planned, method, seed)
    if candidate is None:
        return "--explain: the parameters that the search chose are not known"
    assignment = assign(dataset, cell.protocol, index, np.arange(len(dataset.y)))
    groups = _groups(dataset, cell.dataset.params.get("date", ()))
    rng = np.random.default_rng(seed)
    width = max(dataset.X.shape[1], int(planned.done[0].measures.get("n_components", 0)))
    n_copies = len(groups) * REPEATS + 1
    most = max(LEAST_ROWS, min(MOST_ROWS, MOST_VALUES // max(1, n_copies * width)))
    if row_s > 0:
        most = int(min(most, (seconds - fit_s) / (row_s * n_copies)))
    if most < LEAST_ROWS:
        return (
            f"--explain: {n_copies:,} predictions of each test row take too long for the "
            f"{duration(seconds)} that are left for it: give a larger --time-limit"
        )
    shown = _some(assignment, most, rng)
    data, X = parts(Inputs.of(dataset), shown.visible, cell.protocol)
    copies = [X, *(_permuted(X, places, rng) for _, places in groups for _ in range(REPEATS))]
    found = fit_and_predict(method, data, np.concatenate(copies), candidate, seed)
    n = len(X)
    every = [
        _checked(found, slice(i * n, (i + 1) * n), data, shown, method.learner.what)
        for i in range(len(copies))
    ]
    values = [scores(shown, each).get(measure.name, np.nan) for each in every]
    gains = np.array([measure.gain(value) for value in values])
    drops = (gains[0] - gains[1:]).reshape(len(groups), REPEATS)
    importances = [
        Importance(name, float(row.mean()), float(row.std(ddof=1)))
        for (name, _), row in zip(groups, drops, strict=True)
    ]
    importances.sort(key=lambda each: -each.mean)
    plain = Explanation(tuple(importances), n)
    if dataset.task == "regression":
        predicted = every[0].predicted[:MOST_POINTS]
        above = shown.y_test[:MOST_POINTS] - predicted
        return replace(plain, points=tuple(zip(predicted.tolist(), above.tolist(), strict=True)))
    names = tuple(dataset.target_names)
    if len(names) > MOST_CLASSES:
        return plain
    counts = np.zeros((len(names), len(names)), dtype=int)
    np.add.at(counts, (shown.y_test, every[0].predicted.astype(int)), 1)
    return replace(plain, confusion=tuple(map(tuple, counts.tolist())), classes=names)


def _chosen(planned: PlannedCell, method: Method, seed: int) -> Candidate | None:
    """Return the candidate that the search of a split chose."""
    chosen = planned.done[0].details.chosen
    every = candidates(method.feature_map, method.learner, planned.cell.protocol, seed)
    for candidate in every:
        if {name: _plain(value) for name, value in candidate.params.items()} == dict(chosen):
            return candidate
    return None


def _plain(value: Any) -> Any:
    return [_plain(each) for each in value] if isinstance(value, tuple | list) else value


def _groups(dataset: Dataset, dates: Sequence[str]) -> list[tuple[str, list[int]]]:
    """Return the columns of the table, and the places of what they were encoded as."""
    parts_of = {
        part: date.name
        for date in (DateColumn.parsed(spec, "") for spec in dates)
        for part in date.feature_names
    }
    groups: dict[str, list[int]] = {}
    for place, (name, kind) in enumerate(
        zip(dataset.feature_names, dataset.feature_kinds, strict=True)
    ):
        column = parts_of.get(name, name)
        if kind == "nominal" and "=" in name:
            column = name.rpartition("=")[0]
        groups.setdefault(column, []).append(place)
    return list(groups.items())


def _times(planned: PlannedCell) -> tuple[float, float]:
    """Return the seconds of a fit with the chosen parameters, and of the prediction of a row."""
    measures, protocol = planned.done[0].measures, planned.cell.protocol
    fit_s = measures.get("fit_time_s", 0.0)
    if protocol.calibration != "none":
        fit_s *= 1 + protocol.inner_folds
    return fit_s, measures.get("predict_time_s", 0.0) / max(1.0, measures.get("n_test", 1.0))


def _some(assignment: Assignment, n_rows: int, rng: np.random.Generator) -> Assignment:
    """Return a split with some of its test rows."""
    rows = np.sort(rng.permutation(len(assignment.y_test))[:n_rows])
    weight = assignment.weight_test
    return replace(
        assignment,
        visible=replace(assignment.visible, test=assignment.visible.test[rows]),
        y_test=assignment.y_test[rows],
        seen=None,
        weight_test=None if weight is None else weight[rows],
    )


def _permuted(X: np.ndarray, places: list[int], rng: np.random.Generator) -> np.ndarray:
    """Return rows with some columns of others."""
    X = X.copy()
    X[:, places] = X[rng.permutation(len(X))][:, places]
    return X


def _checked(
    found: Predictions, rows: slice, data: Any, shown: Assignment, what: str
) -> Predictions:
    """Return the predictions of some of the rows, in the units of the targets."""
    names = ("predicted", "probabilities", "decision", "label_probabilities", "sd")
    given: dict[str, Any] = {name: getattr(found, name) for name in names}
    some: dict[str, Any] = {name: v if v is None else v[rows] for name, v in given.items()}
    part = Predictions(**some)
    n = len(shown.y_test)
    if data.task == "regression":
        return restored(part, data.scale(np.arange(len(data.y))), n, what)
    return part.checked(data.task, np.unique(data.y), n, what)
