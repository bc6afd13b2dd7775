"""What is checked: a component of a plugin, and how it is built, fitted and applied.

The checks must not see each other's defects: one that mutates its inputs, or
keeps state between calls, is to be caught by the check of that name only. So
everything here works on copies, and with numpy's global state reset.
"""

from __future__ import annotations

import copy
import unittest
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kbench.planning.lines import parameters_of
from kbench.records import Dataset, Ref
from kbench.registry.registry import Registry, resolve

SEED = 0


class Nonconforming(AssertionError):
    """A component breaks a rule: what is wrong, and how to mend it."""


class ConformanceWarning(UserWarning):
    """Something is missing that a component can do without, but should have."""


@dataclass(frozen=True)
class Component:
    """One thing that a plugin gives.

    Parameters
    ----------
    kind : str
        "feature map", "kernel", "learner", "dataset", "suite", "figure",
        "dashboard", or "plugin" for the plugin itself.
    name : str
        Its name in suite files.
    record : object
        What the hook returned; for a plugin, the reason why it was left out.
    registry : Registry
        Where the names of kernels in grids are looked up.
    params : mapping, optional
        Parameters with which it is checked, beside its defaults.
    """

    kind: str
    name: str
    record: Any = field(repr=False)
    registry: Registry = field(repr=False, default_factory=Registry)
    params: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    def fail(self, message: str) -> Nonconforming:
        """Return the error to raise, its message beginning with the component."""
        return Nonconforming(f"{self}: {message}")

    def warn(self, message: str) -> None:
        """Say what is only missing."""
        warnings.warn(f"{self}: {message}", ConformanceWarning, stacklevel=3)

    def skip(self, message: str) -> unittest.SkipTest:
        """Return the error that makes pytest skip a check."""
        return unittest.SkipTest(f"{self}: {message}")

    def parameters(self) -> Mapping[str, Any] | None:
        """Return the parameters of `make` (of `load`), or None where it takes any."""
        return parameters_of(_maker(self.record))

    def given(self) -> dict[str, Any]:
        """Return the parameters to check with: given ones, and the grid's where needed.

        Raises
        ------
        unittest.SkipTest
            A parameter has no default and no value is known.
        """
        values = dict(self.params)
        grid = getattr(self.record, "grid", {})
        for name, parameter in (self.parameters() or {}).items():
            if name in values or parameter.default is not parameter.empty:
                continue
            if not len(grid.get(name, ())):
                raise self.skip(
                    f"the parameter {name!r} has no default; give the checks a value with "
                    f"params={{{self.name!r}: {{{name!r}: ...}}}}"
                )
            values[name] = next(iter(grid[name]))
        return values

    def build(self, **more: Any) -> Any:
        """Return what `make` makes, unfitted, with `random_state` set as kbench sets it."""
        values = {**self.given(), **more}
        with _quiet():
            built = resolve(_maker(self.record))(
                **{name: self.made(value) for name, value in values.items()}
            )
        if "random_state" not in values and hasattr(built, "random_state"):
            built.random_state = SEED
        return built

    def made(self, value: Any) -> Any:
        """Return a parameter's value, a `Ref` made into what it stands for."""
        if isinstance(value, tuple):
            return [self.made(each) for each in value]
        if not isinstance(value, Ref):
            return value
        record = self.registry.nested(value.name)
        return resolve(record.make)(**{k: self.made(v) for k, v in value.params.items()})

    def fitted(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Return the estimator, fitted on copies; maps get `y` where they declare it."""
        estimator = self.build(**params)
        wants_y = self.kind == "learner" or self.record.supervised
        with _quiet():
            np.random.seed(SEED)  # noqa: NPY002 - what plugins may draw from by mistake
            if wants_y:
                return estimator.fit(X.copy(), np.array(y))
            return estimator.fit(X.copy())

    def features(self, fitted: Any, X: Any) -> Any:
        """Return phi(X) of a copy of a fitted map, on a copy of the inputs."""
        with _quiet():
            np.random.seed(SEED)  # noqa: NPY002
            return copy.deepcopy(fitted).transform(X.copy())

    def predictions(self, fitted: Any, X: Any) -> Any:
        """Return the labels that a copy of a fitted learner predicts."""
        with _quiet():
            np.random.seed(SEED)  # noqa: NPY002
            return np.asarray(copy.deepcopy(fitted).predict(X.copy()))

    def load(self) -> Dataset:
        """Load the dataset.

        Raises
        ------
        unittest.SkipTest
            The data cannot be had here.
        """
        from kbench.errors import DatasetError

        values = self.given()
        try:
            with _quiet():
                return resolve(self.record.load)(**values)  # type: ignore[no-any-return]
        except DatasetError as error:
            raise self.skip(f"cannot be had: {error}") from error
        except ValueError as error:
            if values or not self.parameters():
                raise
            raise self.skip(f"cannot be had without parameters: {error}") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Warnings of the component are not what is checked."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _maker(record: Any) -> Any:
    return record.load if hasattr(record, "load") else record.make


def dense(Z: Any) -> np.ndarray:
    """Return features as a dense array of floats."""
    return np.asarray(Z.toarray() if hasattr(Z, "toarray") else Z, dtype=np.float64)


def same(A: Any, B: Any, rtol: float = 1e-7) -> bool:
    """Tell whether two arrays are equal up to rounding, relative to their largest entry."""
    A, B = dense(A), dense(B)
    if A.shape != B.shape or not np.array_equal(np.isfinite(A), np.isfinite(B)):
        return False
    A, B = (np.where(np.isfinite(M), M, 0.0) for M in (A, B))  # finiteness is another check's
    scale = max(np.abs(A).max(initial=0.0), np.abs(B).max(initial=0.0), 1e-300)
    return bool(np.abs(A - B).max(initial=0.0) <= rtol * scale)


def tags_of(estimator: Any) -> Any:
    """Return scikit-learn's tags, its defaults where an estimator has none."""
    from sklearn.base import BaseEstimator
    from sklearn.utils import get_tags

    try:
        return get_tags(estimator)
    except (AttributeError, TypeError):
        return get_tags(BaseEstimator())


def named_error(error: BaseException) -> str:
    """Return an exception as one line."""
    return f"{type(error).__name__}: {error}".splitlines()[0]
