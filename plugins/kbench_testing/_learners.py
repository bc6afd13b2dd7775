"""Checks of learners for both tasks."""

from collections.abc import Iterable

import numpy as np

from kbench.features import LinearModels, Sample, Sums, Targets, is_number, labels
from kbench_testing._subject import Estimator, Subject, noise, sample

# Passes over a small set after which a fit should be done.
MAX_PASSES = 1000

# Share of the rows on which two fits must agree.
MIN_AGREEMENT = 0.95

_OF_PASSES = ("add", "step", "is_done", "nbytes", "estimators")


def check_kernelized(subject: Subject) -> None:
    """A uses_kernel learner has a parameter `kernel` or, for several of them, `kernels`."""
    subject.fail_if(
        not {"kernel", "kernels"} & set(subject.parameters() or {"kernel": None}),
        "is declared uses_kernel and has no parameter 'kernel' or 'kernels'; add it, or drop "
        "the flag",
    )


def check_path(subject: Subject) -> None:
    """`fit_path` gives the estimators that separate fits give, in order."""
    name = subject.record.path
    subject.fail_unless_parameter(name, "has the path")
    estimator = subject.build()
    subject.fail_if(
        not callable(getattr(estimator, "fit_path", None)),
        f"has the path {name!r} and no method fit_path(X, y, values); implement it, or remove path",
    )
    X, y = sample(subject)
    along = estimator.fit_path(X.copy(), y.copy(), _path_values(subject))
    _compare(subject, "fit_path", along, X, y, "each fit must end where fit alone ends")


def check_sums(subject: Subject) -> None:
    """`fit_sums`, if defined, gives the estimators that fits on the rows give, in order."""
    estimator = subject.build()
    if not callable(getattr(estimator, "fit_sums", None)):
        return
    X, y = sample(subject)
    X += np.arange(X.shape[1])  # the intercept matters
    if subject.task == "classification":
        y = 2 * y + 3
    fits = estimator.fit_sums(_make_sums(X, y, subject), _path_values(subject))
    advice = "centre by sums.mean and sums.target_mean, and weigh the penalty as fit does"
    for _, fitted in _compare(subject, "fit_sums", fits, X, y, advice):
        _check_linear(subject, "fit_sums", fitted, X)


def _make_sums(X: np.ndarray, y: np.ndarray, subject: Subject) -> Sums:
    """Return the sums of two parts of the rows, as a search adds them up."""
    targets = Targets(y, subject.task or "classification")
    parts = []
    for rows in np.array_split(np.arange(len(y)), 2):
        part = Sums.zero(X[0], targets.n_columns)
        part.add(X[rows], targets.block(rows))
        parts.append(part)
    return targets.select_present(Sums.combine(parts), np.arange(len(y)))


def check_passes(subject: Subject) -> None:
    """`begin_fit`, if defined, gives what fits on the rows give, whatever the blocks."""
    estimator = subject.build()
    if not callable(getattr(estimator, "begin_fit", None)) or subject.task == "regression":
        return
    X, codes = sample(subject)
    X += 0.1 * np.random.default_rng(1).standard_normal(X.shape)  # a fit on a sample differs
    y = 2 * codes + 3
    in_order = np.array_split(np.arange(len(y)), 3)
    backwards = np.array_split(np.arange(len(y))[::-1], 11)
    fits, has_order = _in_passes(subject, X, y, in_order)
    # steps on single rows depend on their order, and a stopping rule on the blocks
    for blocks, dtype in ((in_order if has_order else backwards, "float64"), (in_order, "float32")):
        other, _ = _in_passes(subject, X, y, blocks, dtype)
        subject.fail_if(
            not _is_close(fits, other, X),
            f"begin_fit gives something else from {len(blocks)} blocks in {dtype} than from "
            "3 in float64; a step must come after a whole pass, of sums over its blocks",
        )
    advice = (
        "give labels as sample.classes has them, take as many passes as are needed, and sum the "
        "loss over all rows"
    )
    for alone, fitted in _compare(subject, "begin_fit", fits, X, y, advice):
        subject.fail_if(
            hasattr(alone, "coef_") and not has_order and not _is_close([alone], [fitted], X),
            f"begin_fit and fit give other coefficients; {advice}",
        )
        _check_linear(subject, "begin_fit", fitted, X)


def _in_passes(
    subject: Subject, X: np.ndarray, y: np.ndarray, blocks: list[np.ndarray], dtype: str = "float64"
) -> tuple[list[Estimator], bool]:
    """Fit in passes over blocks, as a search does; return the estimators.

    Return whether the fit has an order of the rows, too.
    """
    classes, codes = np.unique(y, return_inverse=True)
    rows = np.union1d(np.unique(codes, return_index=True)[1], np.arange(0, len(y), 4))
    drawn = Sample(X[rows].copy(), codes[rows].copy(), classes, np.bincount(codes))
    fit = subject.build().begin_fit(drawn, _path_values(subject))
    lacking = [name for name in _OF_PASSES if not hasattr(fit, name)]
    subject.fail_if(
        lacking,
        f"begin_fit returns a {type(fit).__name__} without {', '.join(lacking)}; it needs "
        f"{', '.join(_OF_PASSES)}",
    )
    for _ in range(MAX_PASSES):
        if fit.is_done:
            break
        order = fit.order(len(y)) if hasattr(fit, "order") else np.concatenate(blocks)
        for rows in np.split(order, np.cumsum([len(block) for block in blocks])[:-1]):
            Z = X[rows].astype(dtype)
            block_before = Z.copy()
            fit.add(Z, codes[rows])
            subject.fail_if(
                not np.array_equal(Z, block_before),
                "add changes the block that it is given; fits of other folds get it too",
            )
        fit.step()
    else:
        raise subject.fail(
            f"begin_fit is not done after {MAX_PASSES} passes over {len(y)} rows; set is_done, "
            "at the latest after max_iter of them"
        )
    if not 0 <= fit.nbytes < np.inf:
        raise subject.fail(f"nbytes must be a number of bytes, got {fit.nbytes!r}")
    return _in_order(subject, "begin_fit", fit.estimators()), hasattr(fit, "order")


def _path_values(subject: Subject) -> list[float]:
    """Return the last and the first value of the grid, or two that surround the default."""
    values = list(subject.record.grid.get(subject.record.path, ()))
    if len(values) < 2:
        default = getattr(subject.build(), subject.record.path)
        values = [default, 2 * default]
    return [values[-1], values[0]]


def _in_order(subject: Subject, how: str, fits: Iterable[Estimator]) -> list[Estimator]:
    """Return the estimators of a path, which have its values in order."""
    name, values, estimators = subject.record.path, _path_values(subject), list(fits)
    params = [fitted.get_params()[name] for fitted in estimators]
    subject.fail_if(
        params != values,
        f"{how} gives estimators with {name}={params} for the values {values}; keep the order "
        "of the values",
    )
    return estimators


def _compare(
    subject: Subject, how: str, fits: Iterable[Estimator], X: np.ndarray, y: np.ndarray, advice: str
) -> list[tuple[Estimator, Estimator]]:
    """Return fits on the rows and the estimators of a path, which predict the same."""
    name, pairs = subject.record.path, []
    for value, fitted in zip(_path_values(subject), _in_order(subject, how, fits), strict=True):
        alone = subject.fitted(X, y, **{name: value})
        first, second = subject.output(alone, X), subject.output(fitted, X)
        is_regression = subject.task == "regression"
        equal = np.abs(first - second) <= 1e-3 * y.std() if is_regression else first == second
        subject.fail_if(
            np.mean(equal) < MIN_AGREEMENT,
            f"{how} and fit disagree on {1 - np.mean(equal):.0%} of the rows at {name}={value!r}; "
            f"{advice}",
        )
        pairs.append((alone, fitted))
    return pairs


def _check_linear(subject: Subject, how: str, fitted: Estimator, X: np.ndarray) -> None:
    """Refuse predictions that are not those of the linear functions."""
    values, predicted = LinearModels([fitted]).values(X)[0], subject.output(fitted, X)
    subject.fail_if(
        not np.allclose(values[:, 0], predicted, rtol=1e-6, atol=1e-6)
        if subject.task == "regression"
        else not np.array_equal(labels(values, fitted.classes_), predicted),
        f"predicts something else than X @ coef_.T + intercept_ after {how}; kbench predicts "
        "blocks of rows with these",
    )


def _is_close(some: list[Estimator], rest: list[Estimator], X: np.ndarray) -> bool:
    """Whether linear functions are equal up to what the stopping rules of two fits allow."""
    first, second = (
        np.hstack([X @ np.atleast_2d(e.coef_).T + e.intercept_ for e in fits])
        for fits in (some, rest)
    )
    size = np.abs(first).max(initial=0.0)
    return first.shape == second.shape and bool(np.abs(first - second).max() <= 0.02 * size)


def check_simpler(subject: Subject) -> None:
    """`simpler` orders the values of numeric parameters, the simpler model fitting noise worse."""
    how = 'set simpler={"C": "smaller"}, or "larger", for each parameter that regularises'
    for name, direction in subject.record.simpler.items():
        subject.fail_unless_parameter(name, "simpler names")
        if direction not in ("smaller", "larger"):
            raise subject.fail(f"simpler says {direction!r} of {name!r}; {how}")
        values = list(subject.record.grid.get(name, ()))
        if strange := [value for value in values if not is_number(value)]:
            raise subject.fail(
                f"simpler orders {name!r}, and its grid has {strange[0]!r}, which is not a "
                "Python number: the one-standard-error rule would skip it"
            )
        if len(set(values)) > 1:
            _check_order(subject, name, direction, sorted(values, reverse=direction == "larger"))


def _check_order(subject: Subject, name: str, direction: str, values: list[float]) -> None:
    """Fit random targets, which a simpler model cannot learn by heart as well."""
    X, y = noise(subject.task)
    simplest, other = (
        _find_fit(subject, subject.output(subject.fitted(X, y, **{name: value}), X), y)
        for value in (values[0], values[-1])
    )
    if simplest > other + 0.05:
        is_regression = subject.task == "regression"
        kind, share = ("numbers", "variance") if is_regression else ("labels", "training rows")
        raise subject.fail(
            f"simpler says that {direction} values of {name!r} make simpler models, but "
            f"{name}={values[0]!r} fits random {kind} better than {name}={values[-1]!r} does "
            f"({simplest:.0%} of the {share}, {other:.0%}): reverse the direction"
        )


def _find_fit(subject: Subject, predicted: np.ndarray, y: np.ndarray) -> float:
    """Return the share of labels, or of the variance of numbers, that predictions explain."""
    if subject.task == "regression":
        return 1.0 - float(np.mean((predicted - y) ** 2) / y.var())
    return float(np.mean(predicted == y))
