"""Checks of feature maps."""

import contextlib
import os
from importlib import import_module
from typing import Any

import numpy as np
from sklearn import config_context

from kbench.arrays import namespace, to_numpy
from kbench.errors import PluginError
from kbench.features import check_embedding, resolve
from kbench_testing import _subject
from kbench_testing._subject import Estimator, Subject, dense, quiet, same


def _inputs(subject: Subject, n_samples: int = 60, seed: int = 0) -> np.ndarray:
    return _subject.inputs(subject.record.requires, n_samples, seed)


def _fit_map(subject: Subject, X: np.ndarray, **params: object) -> Estimator:
    return subject.fitted(X, _subject.targets(dense(X), subject.task), **params)


def _steady(subject: Subject, fitted: Estimator, X: np.ndarray) -> Any:
    """Return the features, or skip where they have a defect that another check names."""
    Z = subject.output(fitted, X)
    if getattr(Z, "shape", ())[:1] != X.shape[:1] or not np.isfinite(dense(Z)).all():
        raise subject.skip("no finite row for each input: see check_outputs")
    if not same(Z, subject.output(fitted, X)):
        raise subject.skip("not deterministic: see check_determinism")
    return Z


def _apply_map(subject: Subject) -> tuple[np.ndarray, Estimator, Any]:
    """Return inputs, a map fitted on them, and its features of them."""
    X = _inputs(subject)
    fitted = _fit_map(subject, X)
    return X, fitted, _steady(subject, fitted, X)


def check_outputs(subject: Subject) -> None:
    """Features are a finite matrix of floats with one row per input."""
    X, X_new = _inputs(subject), _inputs(subject, 17, seed=1)
    fitted = _fit_map(subject, X)
    widths = set()
    for rows in (X, X_new):
        Z = subject.output(fitted, rows)
        advice = "{error}; guard divisions, logarithms and roots against 0"
        with subject.failing(advice, PluginError):
            check_embedding(Z, rows.shape[0], "it")
        if np.dtype(Z.dtype).kind != "f":
            raise subject.fail(f"transform returns {Z.dtype}; return float64 (or float32)")
        widths.add(Z.shape[1])
    subject.fail_if(
        len(widths) > 1,
        f"gives {widths} features for different batches; fit must determine their number",
    )


def check_rows_are_independent(subject: Subject) -> None:
    """phi(x) depends neither on the other rows of the batch nor on their order."""
    X, X_new = _inputs(subject), _inputs(subject, 20, seed=1)
    fitted = _fit_map(subject, X)
    Z = dense(_steady(subject, fitted, X_new))
    parts = [dense(subject.output(fitted, X_new[i : i + 1])) for i in range(0, 20, 5)]
    subject.fail_if(
        not same(Z[::5], np.vstack(parts), rtol=1e-6),
        "phi(x) of a row alone differs from phi(x) in a batch; learn means, norms and "
        "landmarks in fit, not in transform",
    )
    order = np.random.default_rng(0).permutation(20)
    if not same(Z[order], subject.output(fitted, X_new[order]), rtol=1e-6):
        raise subject.fail("phi(x) depends on the order of the rows; compute each row alone")


def check_transform_learns_nothing(subject: Subject) -> None:
    """Transforming test data changes nothing in the fitted map."""
    X, fitted, expected = _apply_map(subject)
    with quiet():
        fitted.transform(_inputs(subject, 20, seed=1))
    subject.fail_if(
        not same(expected, subject.output(fitted, X)),
        "features change after other data were transformed, so test data leak into the "
        "map; set attributes in fit only",
    )


def check_learns_nothing_from_y(subject: Subject) -> None:
    """An unsupervised map ignores `y`."""
    X = _inputs(subject)
    y = _subject.labels(X)

    def features(target: np.ndarray | None) -> Any:
        estimator = subject.build()
        with quiet(_subject.SEED):
            estimator.fit(X.copy(), target)
        return subject.output(estimator, X)

    first, again, other = (features(target) for target in (y, y, 1 - y))
    advice = "give y the default None, or declare supervised=True in the record"
    with subject.failing(f"cannot be fitted without y ({{error}}); {advice}"):
        without = features(None)
    subject.skip_if(not same(first, again), "not deterministic: see check_determinism")
    subject.fail_if(
        not (same(first, other) and same(first, without)),
        "features depend on y; declare supervised=True in the record, or do not use y",
    )


def check_float32(subject: Subject) -> None:
    """float32 inputs give the same features."""
    X, fitted, features = _apply_map(subject)
    Z = dense(features)
    advice = "fails on float32: {error}; convert with validate_data(self, X, dtype=numpy.float64)"
    with subject.failing(advice):
        Z32 = subject.output(fitted, X.astype(np.float32))
        refit = subject.output(_fit_map(subject, X.astype(np.float32)), X.astype(np.float32))
    scale = max(float(np.abs(Z).max(initial=0.0)), 1e-300)
    if dense(Z32).shape != Z.shape or not np.isfinite(dense(refit)).all():
        raise subject.fail("float32 inputs give features of another shape, or not finite ones")
    # a row at the edge of a cell or bin may fall on the other side by rounding
    far = (np.abs(dense(Z32) - Z) > 1e-3 * scale).any(axis=1).mean()
    subject.fail_if(
        far > 0.1,
        f"float32 inputs with the same values give other features in {far:.0%} of the rows; "
        "convert to float64 inside where float32 is not enough",
    )


def check_sparse(subject: Subject) -> None:
    """Sparse inputs give the same features as dense ones, or a clear error."""
    from scipy.sparse import csr_matrix

    X, _, Z = _apply_map(subject)
    results = []
    for fitted_on in (X, csr_matrix(X)):
        with contextlib.suppress(TypeError, ValueError):  # scikit-learn checks what they say
            results.append(subject.output(_fit_map(subject, fitted_on), csr_matrix(X)))
    subject.fail_if(len(results) == 1, "accepts sparse inputs in only one of fit and transform")
    if results and not same(Z, results[0], rtol=1e-6):
        raise subject.fail("sparse and dense inputs with the same values give different features")
    if results and not np.isfinite(dense(results[1])).all():
        raise subject.fail("fitted on sparse inputs, features are not finite")


def check_array_api(subject: Subject) -> None:
    """A map with the tag `array_api_support` computes the same for arrays of other libraries."""
    X, fitted, Z = _apply_map(subject)
    if not _subject.read_tags(fitted).array_api_support:
        return
    libraries = []
    # the standard's library refuses what others do not; torch lacks methods that it has
    for package in ("array_api_strict", "array_api_compat.torch"):
        with contextlib.suppress(ImportError):
            libraries.append(import_module(package))
    subject.skip_if(not libraries, "neither array-api-strict nor torch is installed")
    # estimators of scikit-learn compute there only if scipy was imported with it
    dispatches = bool(os.environ.get("SCIPY_ARRAY_API"))
    for library in libraries:
        moved, name = library.asarray(dense(X)), library.__name__.rpartition(".")[2]
        advice = f"fails on arrays of {name}: {{error}}; compute with kbench.arrays.namespace(X)"
        with (
            subject.failing(advice),
            quiet(_subject.SEED),
            config_context(array_api_dispatch=dispatches),
        ):
            refitted = subject.fit(subject.build(), moved, _subject.targets(dense(X), subject.task))
            outputs = [each.transform(moved) for each in (fitted, refitted)]
        for output in outputs:
            is_host = namespace(output) is np
            subject.skip_if(
                is_host and type(fitted).transform.__module__.startswith("sklearn."),
                "scikit-learn computes there with SCIPY_ARRAY_API=1 in the environment",
            )
            subject.fail_if(is_host, f"returns numpy for arrays of {name}; compute where X is")
            subject.fail_if(
                not same(Z, to_numpy(output), rtol=1e-6),
                f"features of arrays of {name} differ; draw random numbers with numpy, and move "
                "them with kbench.arrays.like(draws, X)",
            )


def check_set_output(subject: Subject) -> None:
    """`set_output(transform="pandas")` gives a frame with names; missing is only a warning."""
    import pandas as pd

    X, fitted, Z = _apply_map(subject)
    if not hasattr(fitted, "set_output"):
        subject.warn(
            "has no set_output and get_feature_names_out; derive it from TransformerMixin and "
            "ClassNamePrefixFeaturesOutMixin, and set self._n_features_out in fit"
        )
        return
    with subject.failing("get_feature_names_out fails: {error}"):
        names = [str(name) for name in fitted.get_feature_names_out()]
    subject.fail_if(
        len(set(names)) != Z.shape[1] or len(names) != Z.shape[1],
        f"get_feature_names_out gives {len(names)} names, {len(set(names))} different ones, for "
        f"{Z.shape[1]} features; with ClassNamePrefixFeaturesOutMixin, set self._n_features_out "
        "in fit",
    )
    if hasattr(Z, "tocsr"):
        return  # scikit-learn refuses frames of sparse features by itself
    frame = pd.DataFrame(X, index=np.arange(len(X)) + 100).add_prefix("x")
    with subject.failing("set_output(transform='pandas') fails: {error}"), quiet(_subject.SEED):
        fitted = subject.build().set_output(transform="pandas")
        Z_frame = fitted.fit(frame, _subject.targets(X, subject.task)).transform(frame)
    subject.fail_if(
        not isinstance(Z_frame, pd.DataFrame)
        or not Z_frame.index.equals(frame.index)
        or Z_frame.shape != Z.shape,
        "set_output(transform='pandas') gives no frame of the features with the index of the "
        "inputs; let TransformerMixin wrap the output",
    )


def check_unfitted(subject: Subject) -> None:
    """Use before fit raises a NotFittedError: scikit-learn's checks accept any ValueError."""
    from sklearn.exceptions import NotFittedError

    estimator = subject.build()
    with (
        subject.failing("transform before fit raises {error}; call check_is_fitted(self) first"),
        contextlib.suppress(NotFittedError),
        quiet(),
    ):
        estimator.transform(_inputs(subject))


def check_gram_error(subject: Subject) -> None:
    """The features approximate the declared kernel, better so with more components."""
    kernel = resolve(subject.record.kernel)
    X, X_new = _inputs(subject, 200), _inputs(subject, 40, seed=1)
    _gram_error(subject, kernel, X, X_new)
    if _width(subject, X, 160) <= 4 * _width(subject, X, 8):
        return
    seeds = [{"random_state": seed} for seed in range(5)] if _is_random(subject) else [{}]
    few, many = (
        sum(_gram_error(subject, kernel, X, X_new, n_components=n, **seed) for seed in seeds)
        / len(seeds)
        for n in (8, 160)
    )
    subject.fail_if(
        many > max(0.9 * few, 1e-6),
        f"the error of the Gram matrix is {few:.3g} with 8 components and {many:.3g} with 160; it "
        "must shrink: check the scaling of the features (1/sqrt(n_components)?) and that "
        "`kernel` is the kernel they approximate",
    )


def check_unbiased(subject: Subject) -> None:
    """Inner products of a map that is declared unbiased average to its kernel over seeds."""
    if subject.record.kernel is None:
        raise subject.fail("unbiased=True needs a kernel; declare it in the record")
    if not _is_random(subject):
        raise subject.fail("unbiased=True is for random maps; it has no parameter random_state")
    kernel, n_seeds = resolve(subject.record.kernel), 60
    X = _inputs(subject, 12)
    few = {"n_components": 16} if _width(subject, X, 16) else {}
    grams = []
    for seed in range(n_seeds):
        fitted = _fit_map(subject, X, **few, random_state=seed)
        Z = dense(_steady(subject, fitted, X))
        grams.append(Z @ Z.T)
    exact = dense(kernel(fitted, X.copy(), X.copy()))
    error = np.abs(np.mean(grams, axis=0) - exact)
    # 6 standard errors of 60 draws: a false alarm about once in 100,000 checks
    allowed = 6 * np.std(grams, axis=0, ddof=1) / np.sqrt(n_seeds) + 1e-6 * np.abs(exact).max()
    if (error > allowed).any():
        i, j = np.unravel_index(np.argmax(error / allowed), error.shape)
        raise subject.fail(
            f"inner products are {np.mean(grams, axis=0)[i, j]:.4g} on average over {n_seeds} "
            f"seeds where the kernel is {exact[i, j]:.4g}; check the scaling of the features, or "
            "remove unbiased=True from the record"
        )


def check_input_gradient(subject: Subject) -> None:
    """An optional `input_gradient` has the derivatives of the features."""
    fitted = _fit_map(subject, _inputs(subject))
    if not hasattr(fitted, "input_gradient"):
        return
    rows = 0.9 * _inputs(subject, 20, seed=1) + 0.02  # off the borders of what is required
    width = dense(_steady(subject, fitted, rows)).shape[1]
    coef = np.random.default_rng(0).standard_normal((2, width))
    with subject.failing("input_gradient(X, coef) fails: {error}"):
        gradients = np.asarray(fitted.input_gradient(rows.copy(), coef.copy()))
        single = np.asarray(fitted.input_gradient(rows.copy(), coef[0].copy()))
    subject.fail_if(
        gradients.shape != (2, *rows.shape) or single.shape != rows.shape,
        f"input_gradient gives shapes {single.shape} for one vector of coefficients and "
        f"{gradients.shape} for two, at {rows.shape[0]} rows of {rows.shape[1]} inputs; they "
        f"must be {rows.shape} and {(2, *rows.shape)}",
    )
    if not same(single, gradients[0], rtol=1e-6):
        raise subject.fail("input_gradient of one of two functions differs from that of it alone")
    expected = _differences(subject, fitted, rows, coef)
    scale = max(float(np.abs(expected).max()), 1e-300)
    # a row at a face between two cells has no derivative
    far = (np.abs(gradients - expected) > 1e-3 * scale).any(axis=(0, 2)).mean()
    subject.fail_if(
        far > 0.2,
        f"input_gradient differs from finite differences of transform in {far:.0%} of the "
        "rows; it must be the gradient of coef . phi(x) in x, with all factors of phi",
    )


def _differences(
    subject: Subject, fitted: Estimator, X: np.ndarray, coef: np.ndarray
) -> np.ndarray:
    """Return central differences of functions of the features, in the shape of gradients."""
    step, slopes = 1e-5, []
    for unit in np.eye(X.shape[1]) * step:
        above, below = (dense(subject.output(fitted, X + sign * unit)) for sign in (1, -1))
        slopes.append(coef @ (above - below).T / (2 * step))
    return np.stack(slopes, axis=-1)


def _width(subject: Subject, X: np.ndarray, n_components: int) -> int:
    """Return how many features a map gives; 0 where it takes no such number."""
    if "n_components" not in (subject.parameters() or {}):
        return 0
    try:
        fitted = _fit_map(subject, X, n_components=n_components)
    except ValueError:
        return 0
    return int(subject.output(fitted, X[:2]).shape[1])


def _gram_error(
    subject: Subject, kernel: Any, X: np.ndarray, X_new: np.ndarray, **params: object
) -> float:
    """Return the relative Frobenius error of the Gram matrix of new rows."""
    fitted = _fit_map(subject, X, **params)
    K = dense(kernel(fitted, X_new.copy(), X_new.copy()))
    Z = dense(_steady(subject, fitted, X_new))
    subject.fail_if(
        K.shape != (len(X_new), len(X_new)) or not np.isfinite(K).all(),
        f"kernel(map, X, Y) gives shape {K.shape} for {len(X_new)} rows against "
        f"{len(X_new)}; it must be the finite Gram matrix",
    )
    return float(np.linalg.norm(K - Z @ Z.T)) / max(float(np.linalg.norm(K)), 1e-300)


def _is_random(subject: Subject) -> bool:
    return "random_state" in (subject.parameters() or {})
