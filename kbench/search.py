"""Inner cross-validation: which parameters, judged on the training part only."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kbench.preprocessing import Preprocessing
from kbench.records import Protocol
from kbench.splits import derive_seed, row_groups, stratified_folds


@dataclass(frozen=True)
class Component:
    """A feature map or learner with what is given and what is searched.

    Parameters
    ----------
    make : callable
        Returns an unfitted estimator.
    params : mapping
        Given parameters, nested components already made into callables that
        return a fresh one.
    space : mapping of str to sequence
        Values to search over, by parameter.
    supervised : bool
        Pass `y` to ``fit`` (a map; learners always get it).
    requires : str, optional
        What a map needs of its inputs.
    path : str, optional
        Parameter along which a learner has ``fit_path``.
    """

    make: Callable[..., Any]
    params: Mapping[str, Any] = field(default_factory=dict)
    space: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    supervised: bool = False
    requires: str | None = None
    path: str | None = None

    def build(self, chosen: Mapping[str, Any], seed: int) -> Any:
        """Return an unfitted estimator; its `random_state` is `seed` unless given."""
        values = {**self.params, **chosen}
        estimator = self.make(**{name: _made(value) for name, value in values.items()})
        if "random_state" not in values and hasattr(estimator, "random_state"):
            estimator.random_state = seed
        return estimator


@dataclass(frozen=True)
class Nested:
    """A component inside a parameter: made anew for every estimator."""

    make: Callable[..., Any]
    params: Mapping[str, Any]
    label: str

    def __repr__(self) -> str:
        return self.label


def _made(value: Any) -> Any:
    if isinstance(value, Nested):
        return value.make(**{name: _made(each) for name, each in value.params.items()})
    if isinstance(value, tuple):
        return [_made(each) for each in value]
    return value


@dataclass(frozen=True)
class Candidate:
    """One choice of everything that is searched."""

    preprocess: str
    feature_map: Mapping[str, Any]
    learner: Mapping[str, Any]

    @property
    def params(self) -> dict[str, Any]:
        """Everything that was chosen, under the names of MLflow's parameters."""
        return {
            "preprocess": self.preprocess,
            **{f"feature_map.{name}": value for name, value in self.feature_map.items()},
            **{f"learner.{name}": value for name, value in self.learner.items()},
        }


@dataclass
class Score:
    """What inner cross-validation found for one candidate."""

    candidate: Candidate
    accuracies: list[float] = field(default_factory=list)
    converged: list[bool] = field(default_factory=list)
    error: str = ""

    @property
    def mean(self) -> float:
        """Mean accuracy over the inner folds; -inf where a fit failed."""
        if self.error or not self.accuracies:
            return float("-inf")
        return float(np.mean(self.accuracies))


@dataclass(frozen=True)
class SearchResult:
    """What a search chose, and everything it saw.

    Parameters
    ----------
    best : Candidate
        The first of the candidates with the highest mean accuracy.
    scores : list of Score
        All candidates, in the order of the grid; empty where there was
        nothing to choose.
    seconds, cpu_seconds : float
        Wall-clock and CPU time of the search.
    """

    best: Candidate
    scores: list[Score]
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    @property
    def converged(self) -> float:
        """Share of the inner fits that converged; 1 where there were none."""
        flags = [flag for score in self.scores for flag in score.converged]
        return float(np.mean(flags)) if flags else 1.0

    @property
    def at_edge(self) -> list[str]:
        """Numeric parameters whose best value is the first or last of its grid."""
        edges = []
        for name, value in self.best.params.items():
            tried = [score.candidate.params[name] for score in self.scores]
            if not all(map(_is_number, tried)) or len(set(tried)) < 3:
                continue
            if value in (min(tried), max(tried)):
                edges.append(name)
        return edges


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def candidates(
    feature_map: Component, learner: Component, protocol: Protocol, seed: int
) -> list[Candidate]:
    """Return what the search compares.

    Parameters
    ----------
    feature_map, learner : Component
    protocol : Protocol
        Its `search` says whether all combinations are compared or
        `n_candidates` of them.
    seed : int
        Decides which ones are drawn.
    """
    everything = [
        Candidate(step, map_params, learner_params)
        for step in protocol.preprocess
        for map_params in _product(feature_map.space)
        for learner_params in _product(learner.space)
    ]
    if protocol.search == "grid" or len(everything) <= protocol.n_candidates:
        return everything
    rng = np.random.default_rng(seed)
    drawn = rng.choice(len(everything), size=protocol.n_candidates, replace=False)
    return [everything[i] for i in sorted(drawn)]


def _product(space: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*space.values()):
        yield dict(zip(space, values, strict=True))


@dataclass(frozen=True)
class Data:
    """Training data of one search or fit.

    Parameters
    ----------
    X : ndarray or CSR matrix, shape (n_samples, n_features)
        With `pairwise`, the Gram matrix of the rows, shape (n, n).
    y : ndarray of int, shape (n_samples,)
    unlabelled : like X, optional
        Inputs without labels, on which unsupervised maps are fitted.
    impute : sequence of {"numeric", "nominal"}, optional
        Kind of each column, where missing values are to be imputed.
    pairwise : bool
        Never preprocess; slice columns as well as rows.
    """

    X: Any
    y: np.ndarray
    unlabelled: Any = None
    impute: Sequence[str] | None = None
    pairwise: bool = False

    def rows(self, rows: np.ndarray, columns: np.ndarray | None = None) -> Any:
        """Return inputs of `rows`; of a Gram matrix, against `columns`."""
        if self.pairwise:
            return self.X[np.ix_(rows, rows if columns is None else columns)]
        return self.X[rows]


def stacked(X: Any, more: Any) -> Any:
    """Return both blocks of rows as one; `more` may be None."""
    if more is None:
        return X
    if hasattr(X, "indptr"):
        from scipy.sparse import vstack

        return vstack([X, more], format="csr")
    return np.vstack([X, more])


def fit_preprocessing(data: Data, X: Any, step: str, requires: str | None) -> Preprocessing:
    """Fit the preprocessing on the inputs of both labelled and unlabelled rows."""
    steps = Preprocessing("none") if data.pairwise else Preprocessing(step, requires, data.impute)
    return steps.fit(stacked(X, data.unlabelled))


def fit_map(estimator: Any, supervised: bool, X: Any, y: np.ndarray, unlabelled: Any) -> Any:
    """Fit a map: on the unlabelled rows where there are any and it does not use y."""
    if supervised:
        return estimator.fit(X, y)
    return estimator.fit(X if unlabelled is None else unlabelled)


def has_converged(estimator: Any, caught: Sequence[warnings.WarningMessage]) -> bool:
    """Tell whether a fit converged: by its warnings and by what it says of itself."""
    if any(issubclass(each.category, _convergence_warning()) for each in caught):
        return False
    if getattr(estimator, "converged_", True) is False:
        return False
    return int(getattr(estimator, "fit_status_", 0)) == 0


def _convergence_warning() -> type[Warning]:
    from sklearn.exceptions import ConvergenceWarning

    return ConvergenceWarning  # type: ignore[no-any-return]


def search(
    feature_map: Component, learner: Component, data: Data, protocol: Protocol, seed: int
) -> SearchResult:
    """Choose parameters by stratified inner cross-validation.

    In each fold the preprocessing and each map are fitted once, on the fold's
    training rows; learners with a path are fitted along it. A candidate whose
    fit fails is out, with its error kept; if all fail, the first error is
    raised.

    Parameters
    ----------
    feature_map, learner : Component
    data : Data
        The training part.
    protocol : Protocol
        Of which `preprocess`, `inner_folds`, `search`, `n_candidates` matter.
    seed : int
        Root of the seeds of the folds, the draw, the map and the learner.

    Returns
    -------
    SearchResult
    """
    compared = candidates(feature_map, learner, protocol, derive_seed(seed, "candidates"))
    if len(compared) == 1:
        return SearchResult(compared[0], [])
    start, cpu_start = time.perf_counter(), time.process_time()
    scores = [Score(candidate) for candidate in compared]
    apart = protocol.splits == "group_duplicates" and not data.pairwise
    groups = row_groups(data.X) if apart else None
    inner_seed = derive_seed(seed, "inner")
    folds = list(stratified_folds(data.y, protocol.inner_folds, inner_seed, groups))
    failures: list[Exception] = []
    for train, test in folds:
        for group in _by_map(scores):
            failures += _score_fold(feature_map, learner, data, train, test, group, seed)
    best = max(scores, key=lambda score: score.mean)
    if best.mean == float("-inf"):
        raise failures[0]
    return SearchResult(
        best.candidate,
        scores,
        time.perf_counter() - start,
        time.process_time() - cpu_start,
    )


def _by_map(scores: list[Score]) -> list[list[Score]]:
    """Group the candidates that share the preprocessing and the map."""
    groups: dict[str, list[Score]] = {}
    for score in scores:
        key = repr((score.candidate.preprocess, sorted(score.candidate.feature_map.items())))
        groups.setdefault(key, []).append(score)
    return list(groups.values())


def _score_fold(
    feature_map: Component,
    learner: Component,
    data: Data,
    train: np.ndarray,
    test: np.ndarray,
    group: list[Score],
    seed: int,
) -> list[Exception]:
    """Score the candidates of one map on one inner fold; return what failed."""
    try:
        Z, Z_test, map_converged = _embedded(feature_map, data, train, test, group[0], seed)
    except Exception as error:
        _mark(group, error)
        return [error]
    failures: list[Exception] = []
    for scores in _by_path(group, learner.path):
        try:
            fitted = _fitted_learners(
                learner, Z, data.y[train], scores, derive_seed(seed, "learner")
            )
            for score, (estimator, converged) in zip(scores, fitted, strict=True):
                # the learner's own score: accuracy, or its expectation where predictions are drawn
                score.accuracies.append(float(estimator.score(Z_test, data.y[test])))
                score.converged.append(converged and map_converged)
        except Exception as error:
            _mark(scores, error)
            failures.append(error)
    return failures


def _mark(scores: list[Score], error: Exception) -> None:
    for score in scores:
        score.error = score.error or f"{type(error).__name__}: {error}"


def _embedded(
    feature_map: Component,
    data: Data,
    train: np.ndarray,
    test: np.ndarray,
    score: Score,
    seed: int,
) -> tuple[Any, Any, bool]:
    """Fit preprocessing and map on the fold's training rows; embed both parts."""
    X = data.rows(train)
    steps = fit_preprocessing(data, X, score.candidate.preprocess, feature_map.requires)
    X, X_test = steps.transform(X), steps.transform(data.rows(test, train))
    unlabelled = None if data.unlabelled is None else steps.transform(data.unlabelled)
    embedding = feature_map.build(score.candidate.feature_map, derive_seed(seed, "map"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit_map(embedding, feature_map.supervised, X, data.y[train], unlabelled)
        Z, Z_test = embedding.transform(X), embedding.transform(X_test)
    return Z, Z_test, has_converged(embedding, caught)


def _by_path(group: list[Score], path: str | None) -> list[list[Score]]:
    """Group the candidates that differ in the path's parameter only."""
    if path is None:
        return [[score] for score in group]
    paths: dict[str, list[Score]] = {}
    for score in group:
        others = {k: v for k, v in score.candidate.learner.items() if k != path}
        paths.setdefault(repr(sorted(others.items())), []).append(score)
    return list(paths.values())


def _fitted_learners(
    learner: Component, Z: Any, y: np.ndarray, scores: list[Score], seed: int
) -> list[tuple[Any, bool]]:
    """Fit the learners of one path, or of one candidate."""
    path = learner.path
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if path is not None and len(scores) > 1:
            values = [score.candidate.learner[path] for score in scores]
            others = {k: v for k, v in scores[0].candidate.learner.items() if k != path}
            fitted = learner.build(others, seed).fit_path(Z, y, values)
            if all(hasattr(each, "converged_") for each in fitted):
                # a warning does not say which fit of the path it means; they do
                caught = []
        else:
            fitted = [learner.build(scores[0].candidate.learner, seed).fit(Z, y)]
    return [(each, has_converged(each, caught)) for each in fitted]
