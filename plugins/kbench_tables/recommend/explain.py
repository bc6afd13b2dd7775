"""Permutation importances and errors of the recommended method.

A column of the table is permuted among the test rows, and the score is compared with that of the
original rows (Breiman 2001). The columns that it was encoded as are permuted together.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from kbench import features
from kbench.messages import option, plural
from kbench.records import Dataset, Inputs, Metric
from kbench.tables.texts import DateColumn

# Number of permutations of a column.
REPEATS = 3

# Maximum number of values in the test rows of all permutations; above it, rows are sampled.
MAX_VALUES = 20_000_000

# Maximum number of test rows.
MAX_ROWS = 2000

# Minimum number of test rows, and the number for which time is reserved.
MIN_ROWS, WANTED_ROWS = 10, 200

# Minimum number of training rows if the method is fitted on a sample.
MIN_FITTED = 500

# Fraction of the time that a fit may take; if all rows take longer, it is fitted on a sample.
FIT_SHARE = 0.5

# Minimum fraction of the time for fits and predictions, however long loading took.
OWN_SHARE = 0.5

# Maximum number of classes of a confusion matrix.
MAX_CLASSES = 12

# Number of columns that the command line prints.
SHOWN = 12


@dataclass(frozen=True)
class Importance:
    """Loss in the metric if a column is permuted: mean and standard deviation."""

    column: str
    mean: float
    sd: float


@dataclass(frozen=True)
class Explanation:
    """Permutation importances and errors of a method on test rows of the first split."""

    importances: tuple[Importance, ...]
    n_rows: int
    confusion: tuple[tuple[int, ...], ...] = ()
    """Rows by class and predicted class; empty for regression and for many classes."""
    classes: tuple[str, ...] = ()
    repeats: int = 3
    fitted: tuple[int, ...] = ()
    """Training rows of its fit, and those of the split; empty if they are equal."""

    def sentences(self, words: str) -> list[str]:
        """Name the most important columns; `words` is the name of the metric."""
        useful = [each for each in self.importances if each.mean > 2 * each.sd and each.mean > 0]
        if not useful:
            return [f"No column alone changes the {words} if it is permuted{self._sample}."]
        named = ", ".join(f"{each.column} ({each.mean:.3f})" for each in useful[:SHOWN])
        more = f" and {len(useful) - SHOWN} more" if len(useful) > SHOWN else ""
        rest = len(self.importances) - len(useful)
        return [
            f"Permutation importances, as the loss in {words}, on {self.n_rows:,} test "
            f"rows{self._sample}: {named}{more}."
            + (f" No effect of {plural(rest, 'other')}." if rest else "")
        ]

    @property
    def _sample(self) -> str:
        """Where the time limit reduced the effort."""
        parts = ["once"] if self.repeats == 1 else []
        if self.fitted:
            parts.append("fitted on {:,} of {:,} rows".format(*self.fitted))
        return f" ({', '.join(parts)}, to save time)" if parts else ""


@dataclass(frozen=True)
class Effort:
    """Rows to fit and to permute, and permutations of a column, that fit into some seconds."""

    n_train: int
    n_test: int
    repeats: int

    @classmethod
    def within(
        cls, seconds: float, planned: features.PlannedCell, n_columns: int, most: int
    ) -> Effort:
        """Return the largest effort for some seconds; it may have too few test rows.

        The fit takes time in proportion to the rows, or less.
        """
        fit_s, row_s = _times(planned)
        n_train = round(planned.done[0].metrics.get("n_train", 0.0))
        least = max(MIN_FITTED, 2 * _width(planned))
        for_fit = max(0.0, FIT_SHARE * seconds)
        n_fitted = n_train
        if fit_s > for_fit and n_train > least:
            n_fitted = max(least, int(n_train * for_fit / fit_s))
            fit_s *= n_fitted / n_train
        for repeats in (REPEATS, 1):
            row_copies_s = row_s * (n_columns * repeats + 1)
            n_test = most
            if row_copies_s > 0 and seconds < math.inf:
                n_test = int(min(most, max(0.0, seconds - fit_s) / row_copies_s))
            if n_test >= WANTED_ROWS:
                break
        return cls(n_fitted, n_test, repeats)


def seconds_to_explain(planned: features.PlannedCell, n_columns: int) -> float:
    """Return the seconds needed to explain an evaluated method well."""
    fit_s, row_s = _times(planned)
    return fit_s + row_s * (n_columns * REPEATS + 1) * WANTED_ROWS


def explain(
    planned: features.PlannedCell,
    registry: features.Registry,
    metric: Metric,
    seconds: float = math.inf,
) -> Explanation | str:
    """Explain an evaluated method, or return the reason why that is impossible.

    The method is fitted again, in this process, with the parameters that the search chose. If that
    should take more than `seconds`, it is fitted on a sample of the training rows, with fewer test
    rows and permutations.
    """
    started = time.monotonic()
    facts, cell = planned.dataset, planned.cell
    assert facts is not None
    dataset = features.DataCache().load_for(facts)
    if hasattr(dataset.X, "indptr"):
        return f"{option('explain')}: importances are not available for sparse data"
    method = features.FitMethod(
        **features.map_side(cell.feature_map, registry),
        **features.learner_side(cell.learner, registry, dataset.task),
    )
    index = planned.done[0].split
    seed = features.derive_seed(cell.protocol.seed, dataset.checksum, index)
    candidate = _chosen_candidate(planned, method, seed)
    if candidate is None:
        return f"{option('explain')}: the chosen parameters are not stored"
    assignment = features.assign(dataset, cell.protocol, index, np.arange(len(dataset.y)))
    groups = _groups(dataset, cell.dataset.params.get("date_formats", ()))
    rng = np.random.default_rng(seed)
    width = max(dataset.X.shape[1], _width(planned))
    most = MAX_VALUES // max(1, (len(groups) * REPEATS + 1) * width)
    most = min(MAX_ROWS, len(assignment.y_test), max(MIN_ROWS, most))
    # reading the data again may take long on a loaded machine: half of the time is for the work
    remaining = max(seconds - (time.monotonic() - started), OWN_SHARE * seconds)
    effort = Effort.within(remaining, planned, len(groups), most)
    if effort.n_test < min(most, MIN_ROWS):
        return (
            f"{option('explain')}: a fit on {effort.n_train:,} rows and {len(groups) + 1:,} "
            f"predictions of each test row take longer than the {features.duration(remaining)} "
            f"that are left: increase {option('time_limit')}"
        )
    shown = _sample(assignment, effort, rng)
    data, columns = features.parts(Inputs.make(dataset), shown.visible, cell.protocol)
    X = np.asarray(columns[:])
    repeats = effort.repeats
    copies = [X, *(_permute(X, places, rng) for _, places in groups for _ in range(repeats))]
    fitted = features.fit_in_memory(features.Fitting(method, data, cell.protocol, seed), candidate)
    predictions = fitted.predict(np.concatenate(copies))
    n = len(X)
    every = [
        _check_part(predictions, slice(i * n, (i + 1) * n), fitted, shown, method.learner.label)
        for i in range(len(copies))
    ]
    values = [features.split_scores(shown, each).get(metric.name, np.nan) for each in every]
    gains = np.array([metric.gain(value) for value in values])
    drops = (gains[0] - gains[1:]).reshape(len(groups), repeats)
    # with one permutation, the columns together estimate the noise: most matter little
    noise = float(np.median(np.abs(drops))) if repeats == 1 else 0.0
    importances = [
        Importance(name, float(row.mean()), float(row.std(ddof=1)) if repeats > 1 else noise)
        for (name, _), row in zip(groups, drops, strict=True)
    ]
    importances.sort(key=lambda each: -each.mean)
    n_train = len(assignment.visible.train)
    sampled = (effort.n_train, n_train) if effort.n_train < n_train else ()
    plain = Explanation(tuple(importances), n, repeats=repeats, fitted=sampled)
    names = tuple(dataset.target_names)
    if dataset.task == "regression" or len(names) > MAX_CLASSES:
        return plain
    counts = np.zeros((len(names), len(names)), dtype=int)
    np.add.at(counts, (shown.y_test, every[0].predicted.astype(int)), 1)
    return replace(plain, confusion=tuple(map(tuple, counts.tolist())), classes=names)


def _chosen_candidate(
    planned: features.PlannedCell, method: features.FitMethod, seed: int
) -> features.Candidate | None:
    chosen = planned.done[0].details.chosen
    every = features.candidates(method.feature_map, method.learner, planned.cell.protocol, seed)
    for candidate in every:
        if {name: _plain(value) for name, value in candidate.params.items()} == dict(chosen):
            return candidate
    return None


def _plain(value: Any) -> Any:
    return [_plain(each) for each in value] if isinstance(value, tuple | list) else value


def _groups(dataset: Dataset, dates: Sequence[str]) -> list[tuple[str, list[int]]]:
    """Return the columns of the table, and the positions of their encoded columns."""
    parts_of = {
        part: date.name
        for date in (DateColumn.parse(spec, "") for spec in dates)
        for part in date.feature_names
    }
    columns = (
        name.rpartition("=")[0] if kind == "onehot" and "=" in name else parts_of.get(name, name)
        for name, kind in zip(dataset.feature_names, dataset.feature_kinds, strict=True)
    )
    groups = features.group_values((column, place) for place, column in enumerate(columns))
    return list(groups.items())


def _times(planned: features.PlannedCell) -> tuple[float, float]:
    metrics, protocol = planned.done[0].metrics, planned.cell.protocol
    fit_s = metrics.get("fit_time_s", 0.0)
    if protocol.calibration != "none":
        fit_s *= 1 + protocol.inner_folds
    return fit_s, metrics.get("predict_time_s", 0.0) / max(1.0, metrics.get("n_test", 1.0))


def _width(planned: features.PlannedCell) -> int:
    return int(planned.done[0].metrics.get(features.WIDTH, 0.0))


def _sample(
    assignment: features.Assignment, effort: Effort, rng: np.random.Generator
) -> features.Assignment:
    """Return a split with some of its rows; each class keeps a training row."""
    seen = assignment.visible
    rows = np.sort(rng.permutation(len(assignment.y_test))[: effort.n_test])
    places = np.arange(len(seen.train))
    if effort.n_train < len(places):
        drawn = rng.permutation(len(places))
        least = np.array([], dtype=int)
        if assignment.task == "classification":
            least = drawn[np.unique(seen.y_train[drawn], return_index=True)[1]]
        places = np.union1d(drawn[: effort.n_train], least)
    visible = replace(
        seen,
        train=seen.train[places],
        test=seen.test[rows],
        y_train=seen.y_train[places],
        weight_train=_at(seen.weight_train, places),
        parts_train=_at(seen.parts_train, places),
    )
    return replace(
        assignment,
        visible=visible,
        y_test=assignment.y_test[rows],
        seen=None,
        weight_test=_at(assignment.weight_test, rows),
    )


def _at(values: np.ndarray | None, rows: np.ndarray | slice) -> np.ndarray | None:
    return None if values is None else values[rows]


def _permute(X: np.ndarray, places: list[int], rng: np.random.Generator) -> np.ndarray:
    X = X.copy()
    X[:, places] = X[rng.permutation(len(X))][:, places]
    return X


def _check_part(
    predictions: features.Predictions,
    rows: slice,
    fitted: Any,
    shown: features.Assignment,
    label: str,
) -> features.Predictions:
    """Return the predictions of some of the rows, in the units of the targets."""
    names = [field.name for field in fields(predictions)]
    outputs: list[Any] = [_at(getattr(predictions, name), rows) for name in names]
    part, n = features.Predictions(*outputs), len(shown.y_test)
    if fitted.task == "regression":
        return features.unstandardise(part, fitted.scale, n, label)
    return part.validate(fitted.task, np.unique(fitted.y), n, label)
