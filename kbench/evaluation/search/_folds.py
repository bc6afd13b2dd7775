"""Fitting and scoring candidates on inner folds, with separate maps in each."""

import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from kbench.errors import PluginError
from kbench.evaluation.checked_predictions import (
    FittedLearner,
    Predictions,
    check_embedding,
    predict_all,
    unstandardise,
)
from kbench.evaluation.embedding import Fitting, has_converged
from kbench.evaluation.lazy_rows import Matrix, whole
from kbench.evaluation.metrics import COMPUTE, Criterion, applies
from kbench.evaluation.passes import fit_map
from kbench.evaluation.search._result import Score
from kbench.evaluation.specs import Candidate, EstimatorSpec, Fit
from kbench.evaluation.splits import (
    Fold,
    Folds,
    derive_seed,
    make_folds,
    row_groups,
    strata,
    stratified_folds,
)
from kbench.evaluation.targets import Truth

if TYPE_CHECKING:
    from kbench.evaluation.search._blocks import FoldInBlocks

EmbeddedFold: TypeAlias = "FoldInMemory | FoldInBlocks"
Select: TypeAlias = "Callable[[int, Fold], EmbeddedFold]"
"""Returns the embedding of an inner fold, of which it gets the number and the rows."""


@dataclass
class FoldInMemory:
    """Embedded training and test rows of a fold, and whether the fit of the map converged."""

    training: Fitting
    Z: Matrix
    Z_test: Matrix
    converged: bool
    n_embedded: int = 0

    def fit(self, candidates: Sequence[Candidate]) -> list[Fit]:
        """Fit the learners of one path, or of one candidate, on the training rows."""
        learner, data, seed = self.training.learner, self.training.data, self.training.learner_seed
        _, y = data.scale_targets()
        return fit_learners(learner, self.Z, y, data.weight, candidates, seed)

    def embed_test_rows(self) -> Iterator[Matrix]:
        """Yield the embedded test rows, all together."""
        yield self.Z_test

    def score(
        self, estimators: Sequence[FittedLearner], truth: Truth, criterion: Criterion
    ) -> Iterable[float | None]:
        """Return a metric of the predictions of each learner for the test rows."""
        name = self.training.learner.label
        return [compute_score(each, self.Z_test, truth, criterion, name) for each in estimators]


def inner_folds(fitting: Fitting) -> Folds:
    """Return the training and test rows of the inner folds of a training set."""
    data, protocol = fitting.data, fitting.protocol
    if data.parts is not None:
        return make_folds(data.parts, protocol.inner_folds)
    apart = protocol.cv == "group_duplicates" and not data.pairwise
    groups = row_groups(whole(data.X)) if apart else None
    inner_seed = derive_seed(fitting.seed, "inner")
    return stratified_folds(strata(data.y, data.task), protocol.inner_folds, inner_seed, groups)


@dataclass
class FoldScorer:
    """Scores candidates on the same inner folds; each map is fitted once per fold.

    Learners with a path are fitted along it. After `deadline`, a time of `time.monotonic`, no
    further fit begins once there is a candidate to choose. `failures` has what fits raised, in
    order, and `n_embedded` counts the rows that were embedded in blocks.
    """

    fitting: Fitting
    folds: Sequence[Fold]
    criterion: Criterion
    deadline: float | None = None
    failures: list[Exception] = field(default_factory=list)
    n_embedded: int = 0
    _has_choice: bool = False

    def score(self, scores: Sequence[Score], folds: Sequence[Fold] | None = None) -> bool:
        """Fill in the values of candidates; return whether there was time for all.

        Candidates that there was no time for stay without values. `folds` are other
        (train, test) rows than those of `self.folds`.
        """
        folds = self.folds if folds is None else folds
        groups = self._order(_group(scores, lambda score: score.candidate.map_key))
        return all(self._timed_group(group, folds) for group in groups)

    def _timed_group(self, group: list[Score], folds: Sequence[Fold]) -> bool:
        """Score the candidates of one map; what they share takes an equal part of each."""
        begun, before = time.perf_counter(), sum(score.seconds for score in group)
        complete = self._score_group(group, folds)
        fit_s = sum(score.seconds for score in group) - before
        _add_seconds(group, time.perf_counter() - begun - fit_s)
        return complete

    def _score_group(self, group: list[Score], folds: Sequence[Fold]) -> bool:
        """Score the candidates of one map; return whether there was time for all.

        With one map for all folds, a subclass embeds the rows once.
        """
        candidates = [score.candidate for score in group]
        return self._score_on(
            folds, group, lambda _, fold: embed_fold(self.fitting, candidates, fold)
        )

    def _score_on(self, folds: Sequence[Fold], group: list[Score], embed: Select) -> bool:
        """Score the candidates of one map, which `embed` applies to the rows of a fold.

        Returns whether there was time for all.
        """
        # Without a budget a group is scored fold by fold, which holds one embedding at a
        # time; with one, path by path, so that as many candidates as possible are finished.
        units = (
            [group] if self.deadline is None else group_by_path(group, self.fitting.learner.path)
        )
        embedded: dict[int, EmbeddedFold | Exception] = {}
        for unit in units:
            for number, fold in enumerate(folds):
                if self._is_over():
                    clear(unit)
                    return False
                try:
                    Z = embedded.get(number) or embed(number, fold)
                except Exception as error:
                    Z = error
                if len(units) > 1:
                    embedded[number] = Z
                self._score_fold(Z, fold, unit)
                del Z  # before the next one
            self._has_choice = self._has_choice or any(score.has_value for score in unit)
        return True

    def _order(self, groups: list[list[Score]]) -> list[list[Score]]:
        """Return the groups in order; shuffled where a deadline may cut them short.

        The first groups of a grid are all alike.
        """
        if self.deadline is None:
            return groups
        rng = np.random.default_rng(derive_seed(self.fitting.seed, "order"))
        return [groups[i] for i in rng.permutation(len(groups))]

    def _is_over(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline and self._has_choice

    def _score_fold(
        self, embedded: "EmbeddedFold | Exception", fold: Fold, unit: list[Score]
    ) -> None:
        """Score the candidates of one map on one inner fold."""
        if isinstance(embedded, Exception):
            self._record_failure(unit, embedded)
            return
        for scores in group_by_path(unit, self.fitting.learner.path):
            begun = time.perf_counter()
            self._score_path(embedded, fold, scores)
            _add_seconds(scores, time.perf_counter() - begun)
        self.n_embedded += embedded.n_embedded
        embedded.n_embedded = 0

    def _score_path(self, embedded: EmbeddedFold, fold: Fold, scores: list[Score]) -> None:
        """Score the candidates of one path on one inner fold.

        Where the path fails, its candidates are fitted one by one: one value of the path
        may be the cause.
        """
        (train, test), data = fold, self.fitting.data
        training = data.y[train], data.weights(train)
        truth = Truth.make(data.y[test], data.weights(test), data.task, *training)
        try:
            fitted = embedded.fit([score.candidate for score in scores])
            values = list(embedded.score([each for each, _ in fitted], truth, self.criterion))
        except Exception as error:
            if len(scores) == 1:
                self._record_failure(scores, error)
                return
            for score in scores:
                self._score_path(embedded, fold, [score])
            return
        for score, value, (_, converged) in zip(scores, values, fitted, strict=True):
            score.add(value, converged and embedded.converged)

    def _record_failure(self, scores: list[Score], error: Exception) -> None:
        # its frames hold embeddings, for which later candidates need the memory
        traceback.clear_frames(error.__traceback__)
        self.failures.append(error)
        for score in scores:
            score.error = score.error or f"{type(error).__name__}: {error}"


def _add_seconds(scores: Sequence[Score], seconds: float) -> None:
    for score in scores:
        score.seconds += seconds / len(scores)


def clear(scores: Sequence[Score]) -> None:
    for score in scores:
        score.values.clear()
        score.converged.clear()


def group_by_path(scores: Sequence[Score], path: str | None) -> list[list[Score]]:
    """Group the candidates that differ in the path's parameter only."""
    if path is None:
        return [[score] for score in scores]

    def key(score: Score) -> str:
        return repr(sorted((k, v) for k, v in score.candidate.learner.items() if k != path))

    return _group(scores, key)


def _group(scores: Sequence[Score], key: Callable[[Score], str]) -> list[list[Score]]:
    groups: dict[str, list[Score]] = {}
    for score in scores:
        groups.setdefault(key(score), []).append(score)
    return list(groups.values())


def embed_fold(fitting: Fitting, candidates: Sequence[Candidate], fold: Fold) -> EmbeddedFold:
    """Fit the preprocessing and map of candidates on the fold's training rows; embed both parts."""
    train, test = fold
    training = fitting.select(train)
    embedding, X, is_large = fit_map(training, candidates)
    if is_large:
        # imported here, it counts for results with large embeddings only
        from kbench.evaluation.search._blocks import select_in_blocks

        alone = np.arange(len(train)), np.arange(len(train))
        selected = select_in_blocks(training, candidates, embedding, [alone])[1](0, alone)
        return replace(selected, X=fitting.data.X, fold=(alone[0], test))
    with warnings.catch_warnings(record=True, action="always") as caught:
        transform, everything = embedding.map_.transform, training.data.X
        Z = embedding.embed_all(everything, True) if X is None else transform(X)
        Z_test = embedding.embed_all(fitting.data.rows(test, train))
    # a candidate whose features are not finite must not win, and fail in the refit
    check_embedding(Z, len(train), embedding.label)
    converged = embedding.converged and has_converged(embedding.map_, caught)
    return FoldInMemory(training, Z, Z_test, converged)


def fit_learners(
    learner: EstimatorSpec,
    Z: Matrix,
    y: np.ndarray,
    weight: np.ndarray | None,
    candidates: Sequence[Candidate],
    seed: int,
) -> list[Fit]:
    """Fit the learners of one path, or of one candidate."""
    path = learner.path
    with warnings.catch_warnings(record=True, action="always") as caught:
        if path is not None and len(candidates) > 1:
            values = [candidate.learner[path] for candidate in candidates]
            params = {k: v for k, v in candidates[0].learner.items() if k != path}
            estimator = learner.build(params, seed)
            fitted = estimator.fit_path(Z, y, values, **learner.weights(estimator.fit_path, weight))
            if all(hasattr(estimator, "converged_") for estimator in fitted):
                # a warning does not name its fit of the path; the attribute belongs to one
                caught = []
        else:
            fitted = [learner.fit(candidates[0].learner, seed, Z, y, weight)]
    return [(estimator, has_converged(estimator, caught)) for estimator in fitted]


def compute_score(
    learner: FittedLearner, Z: Matrix, truth: Truth, criterion: Criterion, name: str
) -> float | None:
    """Return a metric of a fitted learner's predictions; None if it is not defined.

    The accuracy of a rule that draws its labels is the expected one. Raises PluginError if
    `name` returns what cannot be scored, or lacks what the metric needs.
    """
    metric, n = criterion.metric, len(truth.y)
    if metric.name in ("accuracy", "expected_error") and hasattr(learner, "label_probabilities"):
        predictions = Predictions(learner.predict(Z), None, None, learner.label_probabilities(Z))
        error = COMPUTE["expected_error"](truth, _check(predictions, truth, n, name))
        return 1.0 - error if error is not None and metric.name == "accuracy" else error
    if metric.needs == "predictions":
        predictions = Predictions(learner.predict(Z))
    else:
        predictions = predict_all(learner, Z, learner.predict(Z), truth.task)
    return score_predictions(predictions, truth, criterion, name)


def score_predictions(
    predictions: Predictions, truth: Truth, criterion: Criterion, name: str
) -> float | None:
    """Return a metric of predictions, standardised for regression; see `compute_score`."""
    metric = criterion.metric
    checked = _check(predictions, truth, len(truth.y), name)
    if not applies(metric, truth.task, checked):
        needs = {"distribution": "predictive distribution", "scores": "scores of classes"}
        raise PluginError(
            f"{name} has no {needs.get(metric.needs, metric.needs)}, which the "
            f"search_metric {metric.name!r} needs"
        )
    return criterion.compute(truth, checked)


def _check(predictions: Predictions, truth: Truth, n_rows: int, name: str) -> Predictions:
    if truth.task == "regression":
        return unstandardise(predictions, truth.scale, n_rows, name)
    return predictions.validate(truth.task, truth.classes, n_rows, name)
