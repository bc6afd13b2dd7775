"""Search and fit a method on all rows of its dataset."""

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kbench import features
from kbench.errors import DatasetError
from kbench.records import Cell, Dataset
from kbench_tables.export.decode_table import decode_table, fit_encoder
from kbench_tables.export.held_out import Fold, calibration, cross_val_predictions, intervals
from kbench_tables.export.intervals import Intervals

# a 64-bit integer in canonical decimal form
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")


@dataclass(frozen=True)
class Fitted:
    """A pipeline that was fitted on all rows of a dataset, in canonical form.

    `table` has all rows as the input of the pipeline, the user's original table if `raw`. `chosen`
    has the parameters chosen by the search on all rows. `brier` is the Brier score of calibrated
    probabilities, on the rows that calibrated them.
    """

    pipeline: Any
    table: Any
    dataset: Dataset
    chosen: Mapping[str, Any]
    raw: bool
    intervals: Intervals | None = None
    brier: float | None = None


def refit(cell: Cell, dataset: Dataset, registry: features.Registry) -> Fitted:
    """Search and fit the method of a cell on all rows of its dataset, in canonical form.

    ExportError is raised for a Gram matrix, for missing values that the protocol does not impute,
    and for weights that the learner does not support.
    """
    from sklearn.pipeline import Pipeline
    from threadpoolctl import threadpool_limits

    from kbench_tables.export.pipeline import NamedClasses, PreprocessingStep, ScaledTarget

    if dataset.pairwise:
        raise DatasetError(
            f"{dataset.name} is a Gram matrix: an exported model could not compute it for new rows"
        )
    encoder, is_own = None, False
    if not hasattr(dataset.X, "indptr"):
        encoder, is_own = fit_encoder(cell, dataset, registry)
    protocol = cell.protocol
    if protocol.missing == "error":
        features.refuse_missing(dataset)
    parts = features.inner_parts(dataset, protocol, np.arange(len(dataset.y)))
    if protocol.missing == "drop_rows":
        rows, weight = np.flatnonzero(~features.missing_rows(dataset.X)), dataset.sample_weight
        parts = None if parts is None else parts[rows]
        dataset = replace(
            dataset,
            X=dataset.X[rows],
            y=np.asarray(dataset.y)[rows],
            row_ids=None,
            sample_weight=None if weight is None else weight[rows],
            splits=(),
        )
    X, task = dataset.X, dataset.task
    kinds, missing = list(dataset.feature_kinds), protocol.missing
    data = features.Data(
        X,
        np.asarray(dataset.y),
        None,
        kinds,
        missing,
        task=task,
        weight=dataset.sample_weight,
        parts=parts,
    ).on_scale(protocol.target_scale)
    method = features.FitMethod(
        **features.map_side(cell.feature_map, registry),
        **features.learner_side(cell.learner, registry, task),
        **features.search_side(protocol.search_metric, registry, len(dataset.target_names)),
    )
    learner = method.learner
    seed = features.derive_seed(protocol.seed, dataset.checksum, "export")
    fitting = features.Fitting(method, data, protocol, seed)

    def predict(train: np.ndarray, test: np.ndarray) -> Fold:
        """Fit the method on `train` and predict `test`."""
        part = features.fit_in_memory(fitting, best, train)
        embedded = part.embedding.embed(data.X[test])
        if task == "classification":
            return Fold(test, np.asarray(part.learner.decision_function(embedded)))
        # errors of logarithms are those of logarithms
        last = ScaledTarget(part.learner).with_fitted(part.learner, replace(part.scale, log=None))
        if not last.has_distribution or data.log is not None:
            return Fold(test, last.predict(embedded))
        return Fold(test, *last.predict(embedded, return_std=True))

    folds = dataset.splits if protocol.cv == "official" else ()
    groups = features.row_hashes(X) if protocol.cv == "group_duplicates" else None
    with threadpool_limits(limits=protocol.threads):
        best = features.search(fitting).best
        fitted = features.fit_in_memory(fitting, best)
        for warning in (*fitted.embedding.caught, *fitted.caught):
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
        unfitted = learner.build(best.learner, features.derive_seed(seed, "learner"))
        last: Any
        errors = brier = None
        if task == "regression":
            last = ScaledTarget(unfitted, data.log is not None)
            last = last.with_fitted(fitted.learner, fitted.scale)
            by_time = bool(folds and cell.dataset.params.get("time_column"))
            held_out = cross_val_predictions(predict, data.y, task, seed, folds, groups)
            errors = intervals(held_out, data.y, by_time)
            lowest = 0.0 if dataset.y.min() >= 0 else -np.inf
            log = fitted.scale.log
            factors = None if log is None else (log.shift, log.smearing)
            errors = replace(errors, lowest=lowest, log=factors)
        else:
            last = NamedClasses(unfitted, to_labels(dataset.target_names))
            # as its own `fit` would do, but with the estimator that is fitted already
            last.estimator_ = fitted.learner
            last.threshold_, notes = features.find_threshold(fitting, best)
            for note in notes:
                warnings.warn(note, stacklevel=2)
            if not hasattr(fitted.learner, "predict_proba") and hasattr(
                fitted.learner, "decision_function"
            ):
                last.calibration_, brier = calibration(
                    cross_val_predictions(predict, data.y, task, seed, folds, groups), data.y
                )
    embedding = fitted.embedding
    prepare = PreprocessingStep.from_fitted(embedding.steps)
    steps = [("prepare", prepare), ("feature_map", embedding.map_), ("learner", last)]
    if encoder is not None:
        steps.insert(0, ("encode", encoder))
    table = X if encoder is None else decode_table(X, encoder)
    chosen = {name: getattr(value, "label", value) for name, value in best.params.items()}
    return Fitted(Pipeline(steps), table, dataset, chosen, is_own, errors, brier)


def to_labels(names: Sequence[str]) -> np.ndarray:
    """Return class names with the type of the user's table: strings, integers or booleans."""
    if all(_WHOLE.fullmatch(name) for name in names):
        return np.array([int(name) for name in names])
    if set(names) <= {"False", "True"}:
        return np.array([name == "True" for name in names])
    return np.array(names)
