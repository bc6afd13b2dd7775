"""Checks of feature maps."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from kbench.registry.registry import resolve
from kbench.testing._component import Component, dense, named_error, same, tags_of
from kbench.testing._samples import inputs, labels


def _inputs(component: Component, n_samples: int = 60, seed: int = 0) -> np.ndarray:
    return inputs(component.record.requires, n_samples, seed)


def _fitted(component: Component, X: Any) -> Any:
    return component.fitted(X, labels(dense(X)))


def _steady(component: Component, fitted: Any, X: Any) -> Any:
    """Return the features, or skip where they have a defect that another check names."""
    Z = component.features(fitted, X)
    if getattr(Z, "shape", ())[:1] != X.shape[:1] or not np.isfinite(dense(Z)).all():
        raise component.skip("no finite row for each input: see check_outputs")
    if not same(Z, component.features(fitted, X)):
        raise component.skip("not deterministic: see check_determinism")
    return Z


def check_outputs(component: Component) -> None:
    """Features are a finite matrix of floats with one row per input."""
    X, X_new = _inputs(component), _inputs(component, 17, seed=1)
    fitted = _fitted(component, X)
    widths = set()
    for rows in (X, X_new):
        Z = component.features(fitted, rows)
        shape = getattr(Z, "shape", None)
        if shape is None or len(shape) != 2 or shape[0] != rows.shape[0]:
            raise component.fail(
                f"transform of {rows.shape[0]} rows returns {_described(Z)}; return a matrix of "
                "shape (n_samples, n_components)"
            )
        if np.dtype(Z.dtype).kind != "f":
            raise component.fail(f"transform returns {Z.dtype}; return float64 (or float32)")
        if not np.isfinite(dense(Z)).all():
            raise component.fail(
                "features are NaN or infinite; guard divisions, logarithms and roots against 0"
            )
        widths.add(shape[1])
    if len(widths) > 1:
        raise component.fail(
            f"gives {widths} features for different batches; their number is settled by fit"
        )


def check_rows_are_independent(component: Component) -> None:
    """phi(x) depends neither on the other rows of the batch nor on their order."""
    X, X_new = _inputs(component), _inputs(component, 20, seed=1)
    fitted = _fitted(component, X)
    Z = dense(_steady(component, fitted, X_new))
    parts = [dense(component.features(fitted, X_new[i : i + 1])) for i in range(0, 20, 5)]
    if not same(Z[::5], np.vstack(parts), rtol=1e-6):
        raise component.fail(
            "phi(x) of a row alone differs from phi(x) in a batch; learn means, norms and "
            "landmarks in fit, not in transform"
        )
    order = np.random.default_rng(0).permutation(20)
    if not same(Z[order], component.features(fitted, X_new[order]), rtol=1e-6):
        raise component.fail("phi(x) depends on the order of the rows; compute each row alone")


def check_transform_learns_nothing(component: Component) -> None:
    """Transforming test data changes nothing in the fitted map."""
    X, X_new = _inputs(component), _inputs(component, 20, seed=1)
    fitted = _fitted(component, X)
    expected = _steady(component, fitted, X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted.transform(X_new.copy())
    if not same(expected, component.features(fitted, X)):
        raise component.fail(
            "features change after other data were transformed, so test data leak into the "
            "map; set attributes in fit only"
        )


def check_learns_nothing_from_y(component: Component) -> None:
    """An unsupervised map ignores `y`."""
    X = _inputs(component)
    y = labels(X)
    features = []
    for target in (y, y, 1 - y, None):
        estimator = component.build()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.random.seed(0)  # noqa: NPY002 - as in all checks but that of determinism
            try:
                estimator.fit(X.copy(), target)
            except Exception as error:
                if target is not None:
                    raise
                raise component.fail(
                    f"cannot be fitted without y ({named_error(error)}); give y the default "
                    "None, or declare supervised=True in the record"
                ) from error
        features.append(component.features(estimator, X))
    if not same(features[0], features[1]):
        raise component.skip("not deterministic: see check_determinism")
    if not (same(features[0], features[2]) and same(features[0], features[3])):
        raise component.fail(
            "features depend on y; declare supervised=True in the record, or leave y alone"
        )


def check_float32(component: Component) -> None:
    """float32 inputs give the same features, or are refused clearly."""
    X = _inputs(component)
    fitted = _fitted(component, X)
    Z = dense(_steady(component, fitted, X))
    try:
        Z32 = component.features(fitted, X.astype(np.float32))
        refit = component.features(_fitted(component, X.astype(np.float32)), X.astype(np.float32))
    except (TypeError, ValueError) as error:
        if "float32" in str(error):
            return
        raise component.fail(
            f"fails on float32: {named_error(error)}; convert with "
            "validate_data(self, X, dtype=numpy.float64), or refuse with a message naming float32"
        ) from error
    scale = max(float(np.abs(Z).max(initial=0.0)), 1e-300)
    if dense(Z32).shape != Z.shape or not np.isfinite(dense(refit)).all():
        raise component.fail("float32 inputs give features of another shape, or not finite ones")
    # a row at the edge of a cell or bin may fall on the other side by rounding
    far = (np.abs(dense(Z32) - Z) > 1e-3 * scale).any(axis=1).mean()
    if far > 0.1:
        raise component.fail(
            f"float32 inputs with the same values give other features in {far:.0%} of the rows; "
            "convert to float64 inside where float32 is not enough"
        )
    if "float32" in _kept_dtypes(fitted) and refit.dtype != np.float32:
        raise component.fail(
            f"has the tag preserves_dtype with float32, and returns {refit.dtype} for it; "
            "keep the dtype, or take float32 out of the tag"
        )


def check_sparse(component: Component) -> None:
    """Sparse inputs give the same features as dense ones, or are refused clearly."""
    from scipy.sparse import csr_matrix

    X = _inputs(component)
    fitted = _fitted(component, X)
    Z = _steady(component, fitted, X)
    results = []
    for fitted_on in (X, csr_matrix(X)):
        try:
            estimator = fitted if fitted_on is X else _fitted(component, fitted_on)
            results.append(component.features(estimator, csr_matrix(X)))
        except Exception as error:
            if isinstance(error, TypeError | ValueError) and "sparse" in str(error).lower():
                continue
            raise component.fail(
                f"fails on sparse inputs: {named_error(error)}; refuse them by "
                "validate_data(self, X), which says so, or accept them with accept_sparse='csr'"
            ) from error
    if len(results) == 1:
        raise component.fail("accepts sparse inputs in one of fit and transform only; see to both")
    if results and not same(Z, results[0], rtol=1e-6):
        raise component.fail("sparse inputs give other features than the same inputs as an array")
    if results and not np.isfinite(dense(results[1])).all():
        raise component.fail("fitted on sparse inputs, features are not finite")


def check_feature_names(component: Component) -> None:
    """Names of the features fit the features; missing ones are only a warning."""
    fitted = _fitted(component, _inputs(component))
    if not hasattr(fitted, "get_feature_names_out"):
        component.warn(
            "has no get_feature_names_out; derive it from ClassNamePrefixFeaturesOutMixin, "
            "and set self._n_features_out in fit"
        )
        return
    width = component.features(fitted, _inputs(component)).shape[1]
    try:
        names = [str(name) for name in fitted.get_feature_names_out()]
    except Exception as error:
        raise component.fail(f"get_feature_names_out fails: {named_error(error)}") from error
    if len(names) != width:
        raise component.fail(
            f"get_feature_names_out gives {len(names)} names for {width} features; with "
            "ClassNamePrefixFeaturesOutMixin, set self._n_features_out in fit"
        )
    if len(set(names)) != len(names):
        raise component.fail("get_feature_names_out gives the same name twice")


def check_set_output(component: Component) -> None:
    """`set_output(transform="pandas")` gives a frame; missing is only a warning."""
    import pandas as pd

    X = _inputs(component)
    fitted = _fitted(component, X)
    Z = _steady(component, fitted, X)
    if not hasattr(fitted, "set_output"):
        component.warn(
            "has no set_output; derive it from TransformerMixin and give it get_feature_names_out"
        )
        return
    if hasattr(Z, "tocsr"):
        return  # scikit-learn refuses frames of sparse features by itself
    names = getattr(fitted, "get_feature_names_out", lambda: ())()
    if len(names) != Z.shape[1]:
        raise component.skip("names do not fit the features: see check_feature_names")
    index = pd.Index(np.arange(len(X)) + 100)
    columns = [f"x{j}" for j in range(X.shape[1])]
    try:
        fitted = component.build().set_output(transform="pandas")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.random.seed(0)  # noqa: NPY002
            frame = pd.DataFrame(X, columns=columns, index=index)
            Z_frame = fitted.fit(frame, labels(X)).transform(frame)
    except Exception as error:
        raise component.fail(f"set_output(transform='pandas') fails: {named_error(error)}") from (
            error
        )
    if not isinstance(Z_frame, pd.DataFrame) or not Z_frame.index.equals(index):
        raise component.fail(
            "set_output(transform='pandas') gives no frame with the index of the inputs; leave "
            "the wrapping to TransformerMixin"
        )
    if Z_frame.shape != Z.shape:
        raise component.fail(f"set_output gives shape {Z_frame.shape} instead of {Z.shape}")


def check_gram_error(component: Component) -> None:
    """The features approximate the declared kernel, better so with more components."""
    kernel = resolve(component.record.kernel)
    X, X_new = _inputs(component, 200), _inputs(component, 40, seed=1)
    errors = [_gram_error(component, kernel, X, X_new, {})]
    if _width(component, X, 160) > 4 * _width(component, X, 8):
        few, many = ({"n_components": n} for n in (8, 160))
        errors = [
            sum(_gram_error(component, kernel, X, X_new, size, seed) for seed in range(5)) / 5
            for size in (few, many)
        ]
    if len(errors) == 2 and errors[1] > max(0.9 * errors[0], 1e-6):
        raise component.fail(
            f"the error of the Gram matrix is {errors[0]:.3g} with 8 components and "
            f"{errors[1]:.3g} with 160; it must shrink: check the scaling of the features "
            "(1/sqrt(n_components)?) and that `kernel` is the kernel they approximate"
        )


def _width(component: Component, X: Any, n_components: int) -> int:
    """Return how many features a map gives; 0 where it takes no such number."""
    if "n_components" not in (component.parameters() or {}):
        return 0
    try:
        fitted = component.fitted(X, labels(X), n_components=n_components)
    except ValueError:
        return 0
    return int(component.features(fitted, X[:2]).shape[1])


def _gram_error(
    component: Component, kernel: Any, X: Any, X_new: Any, params: dict[str, Any], seed: int = 0
) -> float:
    """Return the relative Frobenius error of the Gram matrix of new rows."""
    if seed:
        params = {**params, **({"random_state": seed} if _is_random(component) else {})}
    fitted = component.fitted(X, labels(X), **params)
    K = dense(kernel(fitted, X_new.copy(), X_new.copy()))
    Z = dense(_steady(component, fitted, X_new))
    if K.shape != (len(X_new), len(X_new)) or not np.isfinite(K).all():
        raise component.fail(
            f"kernel(map, X, Y) gives {_described(K)} for {len(X_new)} rows against "
            f"{len(X_new)}; it must be the finite Gram matrix"
        )
    return float(np.linalg.norm(K - Z @ Z.T)) / max(float(np.linalg.norm(K)), 1e-300)


def _is_random(component: Component) -> bool:
    return "random_state" in (component.parameters() or {})


def _kept_dtypes(fitted: Any) -> list[str]:
    tags = tags_of(fitted).transformer_tags
    return [] if tags is None else list(tags.preserves_dtype)


def _described(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return type(value).__name__ if shape is None else f"{type(value).__name__} of shape {shape}"
