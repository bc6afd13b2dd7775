"""Finding, building, fitting and applying a component of a plugin that is checked.

The checks must not see each other's defects: a component that mutates its inputs,
or keeps state between calls, is to be caught by the check of that name only. So
everything here works on copies, and with numpy's global state reset.
"""

import copy
import importlib
import importlib.util
import textwrap
import unittest
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from kbench import features
from kbench.errors import DatasetError, FeatureError, KbenchError, PluginError
from kbench.features import Feature, Plugin
from kbench.messages import did_you_mean
from kbench.records import Dataset, Ref, TaskType, Tune

N_FEATURES = 4

# An estimator of a plugin, which may lack what the checks ask for.
Estimator = Any


def inputs(requires: str | None = None, n_samples: int = 60, seed: int = 0) -> np.ndarray:
    """Return random inputs, shape (n_samples, 4), whose rows satisfy what a map requires.

    They are multiples of 1/64, so that float32 holds the same numbers; a tenth of
    the entries are zero.

    Examples
    --------
    >>> X = inputs("unit_ball")
    >>> bool((X**2).sum(axis=1).max() <= 1)
    True
    """
    rng = np.random.default_rng(seed)
    X = (rng.random if requires == "nonnegative" else rng.standard_normal)((n_samples, N_FEATURES))
    X[rng.random(X.shape) < 0.1] = 0.0
    if requires == "unit_ball":
        X /= 1.05 * np.linalg.norm(X, axis=1).max()
        return np.trunc(X * 64) / 64  # rounding must not leave the ball
    return np.round(X * 64) / 64


def labels(X: np.ndarray) -> np.ndarray:
    """Return labels 0 and 1 that the inputs determine, both of them present."""
    score = X[:, 0] + X[:, 1]
    return np.asarray(score > np.median(score), dtype=np.int64)


def targets(X: np.ndarray, task: TaskType | None) -> np.ndarray:
    """Return what inputs determine: labels, or for regression standardised numbers."""
    return standardise(X[:, 0] + X[:, 1]) if task == "regression" else labels(X)


def standardise(y: np.ndarray) -> np.ndarray:
    """Return numbers with mean 0 and variance 1, as kbench gives them to regressors."""
    return np.asarray((y - y.mean()) / y.std())


def linear(n_samples: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs, shape (n_samples, 4), in the unit cube and linear targets with normal noise.

    The variance of the targets is about 1, of which the noise has a fifth.
    """
    rng = np.random.default_rng(seed)
    X = rng.random((n_samples, N_FEATURES))
    return X, (X - 0.5) @ np.array([2.5, -1.5, 1.0, 0.0]) + 0.45 * rng.standard_normal(n_samples)


def blobs(n_classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return 2 to 4 well separated classes in the unit cube, the first one twice as large."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([0, *range(n_classes)], 20))
    centres = 0.2 + 0.6 * np.eye(N_FEATURES)[:n_classes]
    return np.clip((centres[y] + 0.04 * rng.standard_normal((len(y), N_FEATURES))), 0.0, 1.0), y


def noise(task: TaskType | None = None, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return uniform inputs, shape (80, 40), and targets that are independent of them.

    A third of the labels are 1; targets of regression are normal. A model can only learn
    them by heart, and has enough columns to do so.
    """
    rng = np.random.default_rng(seed)
    X = rng.random((80, 40))
    if task == "regression":
        return X, standardise(rng.standard_normal(80))
    return X, np.asarray(rng.random(80) < 1 / 3, dtype=np.int64)


SEED = 0


class Nonconforming(AssertionError):
    """A component breaks a rule: what is wrong, and how to correct it."""


class ConformanceWarning(UserWarning):
    """Something is missing that a component can do without, but should have."""


@dataclass(frozen=True)
class Subject:
    """A component of a plugin that is checked.

    Parameters
    ----------
    kind : str
        "feature map", "kernel", "learner", "dataset", "metric", "suite", "figure",
        "feature", or "plugin" for the plugin itself.
    name : str
        Its name in suite files.
    record : object
        What the hook returned; for a plugin, the reason why it was left out; a `Feature`.
    registry : Registry
        Where the names of kernels in grids are looked up.
    params : mapping, optional
        Parameters with which it is checked, in addition to its defaults.
    task : {"classification", "regression"}, optional
        The task for which it is checked: of learners and of maps that use targets.
    """

    kind: str
    name: str
    record: Any = field(repr=False)
    registry: features.Registry = field(repr=False, default_factory=features.Registry)
    params: Mapping[str, object] = field(default_factory=dict)
    task: TaskType | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" + (f" ({self.task})" if self.task else "")

    def fail(self, message: str) -> Nonconforming:
        """Return the error to raise, its message beginning with the component."""
        return Nonconforming(f"{self}: {message}")

    def fail_if(self, condition: object, message: str) -> None:
        """Raise the error of `fail` if something is wrong."""
        if condition:
            raise self.fail(message)

    def skip_if(self, condition: object, message: str) -> None:
        """Raise the error of `skip` if a check does not apply."""
        if condition:
            raise self.skip(message)

    def warn(self, message: str) -> None:
        """Warn of something that is only missing."""
        warnings.warn(f"{self}: {message}", ConformanceWarning, stacklevel=3)

    @contextmanager
    def failing(
        self, message: str = "{error}", kind: type[Exception] = Exception
    ) -> Iterator[None]:
        """Turn an exception into a failure; ``{error}`` in the message stands for it."""
        try:
            yield
        except kind as error:
            reason = str(error) if isinstance(error, KbenchError) else named_error(error)
            raise self.fail(message.replace("{error}", reason)) from error

    def skip(self, message: str) -> unittest.SkipTest:
        """Return the error that makes pytest skip a check."""
        return unittest.SkipTest(f"{self}: {message}")

    def parameters(self) -> Mapping[str, Any] | None:
        """Return the parameters of what makes the component, or None if it takes any."""
        return features.read_parameters(self._make)

    def fail_unless_parameter(self, name: str, where: str) -> None:
        """Raise the error of `fail` if a declaration names no parameter."""
        allowed = self.parameters()
        if allowed is not None and name not in allowed:
            hint = did_you_mean(str(name), allowed)
            raise self.fail(f"{where} {name!r}, which is not a parameter{hint}")

    @property
    def _make(self) -> Any:
        """What makes the component: a loader, or the estimator of the task."""
        if self.is_learner:
            return self.record.estimator(self.task or "classification")
        return self.record.load if self.kind == "dataset" else self.record.make

    def given(self) -> dict[str, object]:
        """Return the parameters to check with: given ones, and those of the grid without a default.

        Raises
        ------
        unittest.SkipTest
            A parameter has no default, and no value is given.
        """
        values = dict(self.params)
        grid = getattr(self.record, "grid", {})
        for name, parameter in (self.parameters() or {}).items():
            if name in values or not parameter.is_required:
                continue
            if not len(grid.get(name, ())):
                raise self.skip(
                    f"the parameter {name!r} has no default; give the checks a value with "
                    f"params={{{self.name!r}: {{{name!r}: ...}}}}"
                )
            values[name] = next(iter(grid[name]))
        return values

    def build(self, **more: object) -> Any:
        """Return the unfitted component, with `random_state` set as kbench sets it."""
        values = {**self.given(), **more}
        made = {name: self.made(value) for name, value in values.items()}
        with quiet():
            built = features.resolve(self._make)(**made)
        if "random_state" not in values and hasattr(built, "random_state"):
            built.random_state = SEED
        return built

    def made(self, value: object) -> Any:
        """Return a parameter's value, a `Ref` made into its component; the first of a `Tune`."""
        if isinstance(value, Tune):
            return self.made(value.values[0])
        if isinstance(value, tuple):
            return [self.made(item) for item in value]
        if not isinstance(value, Ref):
            return value
        record = self.registry.get_nested(value.name)
        return features.resolve(record.make)(**{k: self.made(v) for k, v in value.params.items()})

    @property
    def is_learner(self) -> bool:
        """Whether it predicts; else it is a map, or not an estimator."""
        return self.kind == "learner"

    def fit(self, estimator: Estimator, X: np.ndarray, y: np.ndarray) -> Estimator:
        """Fit an estimator on these very arrays; maps get `y` where they declare it."""
        wants_y = self.is_learner or self.record.supervised
        return estimator.fit(X, y) if wants_y else estimator.fit(X)

    def apply(self, fitted: Estimator, X: np.ndarray) -> Any:
        """Return what an estimator itself makes of these very inputs: predictions or features."""
        return fitted.predict(X) if self.is_learner else fitted.transform(X)

    def fitted(self, X: np.ndarray, y: np.ndarray | None = None, **params: object) -> Estimator:
        """Return the estimator, fitted on copies."""
        estimator = self.build(**params)
        with quiet(SEED):
            return self.fit(estimator, X.copy(), np.array(y))

    def output(self, fitted: Estimator, X: np.ndarray) -> Any:
        """Return predictions or phi(X), of a copy of a fitted estimator on a copy of the inputs."""
        with quiet(SEED):
            made = self.apply(copy.deepcopy(fitted), X.copy())
            return np.asarray(made) if self.is_learner else made

    def load(self) -> Dataset:
        """Load the dataset.

        Raises
        ------
        unittest.SkipTest
            The data is unavailable here.
        """
        values = self.given()
        try:
            with quiet():
                return features.resolve(self.record.load)(**values)  # type: ignore[no-any-return]
        except DatasetError as error:
            raise self.skip(f"is unavailable: {error}") from error
        except ValueError as error:
            if values or not self.parameters():
                raise
            raise self.skip(f"is unavailable without parameters: {error}") from error


@contextmanager
def quiet(seed: int | None = None) -> Iterator[None]:
    """Ignore warnings of the component, which are not checked; reset numpy's global state."""
    with warnings.catch_warnings(action="ignore"):
        if seed is not None:
            np.random.seed(seed)  # noqa: NPY002 - what plugins may draw from by mistake
        yield


def dense(Z: Any) -> np.ndarray:
    """Return features as a dense array of floats."""
    return np.asarray(Z.toarray() if hasattr(Z, "toarray") else Z, dtype=np.float64)


def same(A: Any, B: Any, rtol: float = 1e-7) -> bool:
    """Return whether two arrays are equal up to rounding, relative to their largest entry."""
    A, B = dense(A), dense(B)
    if A.shape != B.shape or not np.array_equal(np.isfinite(A), np.isfinite(B)):
        return False
    A, B = (np.where(np.isfinite(M), M, 0.0) for M in (A, B))  # finiteness is another check's
    scale = max(np.abs(A).max(initial=0.0), np.abs(B).max(initial=0.0), 1e-300)
    return bool(np.abs(A - B).max(initial=0.0) <= rtol * scale)


def read_tags(estimator: Estimator) -> Any:
    """Return scikit-learn's tags, its defaults where an estimator has none."""
    from sklearn.base import BaseEstimator
    from sklearn.utils import get_tags

    try:
        return get_tags(estimator)
    except (AttributeError, TypeError):
        return get_tags(BaseEstimator())


def most_classes(subject: Subject) -> int:
    """Return 3, or 2 for a learner whose tags allow two classes only."""
    tags = read_tags(subject.build()).classifier_tags
    return 3 if tags is None or tags.multi_class else 2


def sample(subject: Subject, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs that suit an estimator, and targets that they determine."""
    if not subject.is_learner:
        X = inputs(subject.record.requires, seed=seed)
        return X, targets(X, subject.task)
    if subject.task == "classification":
        return blobs(most_classes(subject), seed)
    X, y = linear(seed=seed)
    return X, standardise(y)


def is_poor(subject: Subject) -> bool:
    """Whether a learner has scikit-learn's tag that it is meant to be poor."""
    tags = read_tags(subject.build())
    of_task = tags.regressor_tags if subject.task == "regression" else tags.classifier_tags
    return bool(of_task is not None and of_task.poor_score)


def named_error(error: BaseException) -> str:
    """Return the beginning of an exception as one line."""
    return textwrap.shorten(f"{type(error).__name__}: {error}", 240)


# A plugin, its module, or the name of its entry point, module or distribution.
Named = ModuleType | Plugin | str

_Named = TypeVar("_Named", Plugin, Feature)

# Distribution of a package that is checked without having been installed.
NOT_INSTALLED = "not installed"


def find_features(feature: Named) -> list[Feature]:
    """Return the features that a module, or a name, stands for, if any."""
    name = feature.__name__ if isinstance(feature, ModuleType) else str(feature)
    return _find_by_name(name, features.features()) or _not_installed(name)


def _not_installed(name: str) -> list[Feature]:
    """Return the feature of a package that has metadata and is not installed."""
    try:
        spec = importlib.util.find_spec(name) if name.isidentifier() else None
    except (ImportError, ValueError):
        spec = None
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (path := Path(folder) / features.FEATURE_FILE).is_file():
            made = Feature(name.replace("_", "-"), name, NOT_INSTALLED)
            try:
                return [replace(made, metadata=features.read_feature(path))]
            except FeatureError as error:
                return [replace(made, reason=str(error))]
    return []


def find(plugin: Named, installed: Sequence[Plugin], optional: bool = False) -> list[Plugin]:
    """Return the plugins that a module, or a name, stands for.

    The name is that of an entry point, a module or a distribution, which may bring
    several plugins. A module that is not installed as a plugin is imported.

    Raises
    ------
    PluginError
        There is none of that name, and it is not `optional`.
    """
    if isinstance(plugin, Plugin):
        return [plugin]
    name = plugin.__name__ if isinstance(plugin, ModuleType) else str(plugin)
    if (matches := _find_by_name(name, installed)) or optional:
        return matches
    if isinstance(plugin, ModuleType):
        return [Plugin(name, NOT_INSTALLED, "", lambda: plugin, module=name)]
    if is_module(name):
        load = partial(importlib.import_module, name)
        return [Plugin(name, NOT_INSTALLED, "", load, module=name)]
    both: list[Plugin | Feature] = [*installed, *features.features()]
    names = {field for each in both for field in (each.name, each.distribution)}
    raise PluginError(
        f"no plugin, module or distribution is named {name!r}{did_you_mean(name, names)}"
    )


def _find_by_name(name: str, among: Iterable[_Named]) -> list[_Named]:
    """Return those of a name; if there are none, of a module, and then of a distribution."""
    for attribute in ("name", "module", "distribution"):
        if matches := [e for e in among if _normalized(getattr(e, attribute)) == _normalized(name)]:
            return matches
    return []


def _normalized(name: str) -> str:
    """Write a name one way: distributions are the same under hyphens and underscores."""
    return name.lower().replace("_", "-")


def is_module(name: str) -> bool:
    """Whether there is a module of that name, which may be one that cannot be imported."""
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
    except Exception:  # raised by its package at import; loading the module reports it
        return True
