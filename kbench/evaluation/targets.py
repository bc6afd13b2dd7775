"""Targets of a split: their scale, and what predictions are scored against."""

from dataclasses import dataclass, replace

import numpy as np

from kbench.errors import DatasetError
from kbench.records import TaskType


@dataclass(frozen=True)
class LogTargets:
    """Logarithms of targets, and means of targets from predicted logarithms.

    The largest logarithm that is not lowered is `highest`: that of e times the largest training
    target. `shift` is added to the targets: 1 if one of the training set is 0. `smearing` is the
    mean of exp(residual) of the training rows (Duan, JASA 78, 1983).
    """

    highest: float
    shift: float = 0.0
    smearing: float = 1.0

    @classmethod
    def fit(cls, y: np.ndarray) -> "LogTargets":
        """Return the logarithms of training targets; raise DatasetError if one is negative."""
        if y.min() < 0:
            raise DatasetError(
                f'target_scale = "log" needs targets that are not negative, and one is {y.min():g}'
            )
        shift = float(y.min() == 0)
        return cls(float(np.log(y.max() + shift)) + 1.0, shift)

    def log(self, y: np.ndarray) -> np.ndarray:
        """Return the logarithms of targets, of the smallest number for those that have none."""
        return np.asarray(np.log(np.maximum(y + self.shift, np.finfo(np.float64).tiny)))

    def mean(self, log: np.ndarray) -> np.ndarray:
        """Return means of targets with these predicted logarithms; none is negative."""
        mean = self.smearing * np.exp(np.minimum(log, self.highest)) - self.shift
        return np.asarray(np.maximum(mean, 0.0))


@dataclass(frozen=True)
class Scale:
    """Mean and standard deviation of the training targets; 0 and 1 for labels.

    Learners are fitted on standardised targets, so that their penalties mean the same
    on every dataset. What they predict is mapped back. With `log` the targets are logarithms,
    and predictions means in the units of the dataset, without standard deviations.
    """

    mean: float = 0.0
    sd: float = 1.0
    log: LogTargets | None = None

    @classmethod
    def fit(cls, y: np.ndarray, task: TaskType, weight: np.ndarray | None = None) -> "Scale":
        """Return the scale of training targets.

        Rows of weight 0 do not count. Raises DatasetError if all targets are equal.

        >>> Scale.fit(np.array([1.0, 3.0]), "regression")
        Scale(mean=2.0, sd=1.0, log=None)
        """
        if task == "classification":
            return cls()
        if weight is not None and not weight.all():
            y, weight = y[weight > 0], weight[weight > 0]
        if not len(y):
            raise DatasetError("all weights of the training set are 0")
        # not by the deviation, of which rounding may leave something
        if y.min() == y.max():
            raise DatasetError(f"all targets of the training set are {y[0]:g}")
        mean = float(np.average(y, weights=weight))
        sd = float(np.sqrt(np.average((y - mean) ** 2, weights=weight)))
        if sd == 0:
            raise DatasetError(
                f"the standard deviation of targets from {y.min():g} to {y.max():g} is too "
                "small for float64"
            )
        return cls(mean, sd)

    def standardise(self, y: np.ndarray) -> np.ndarray:
        """Return targets with mean 0 and standard deviation 1; labels stay as they are."""
        return y if self == Scale() else (y - self.mean) / self.sd

    def restore(self, predicted: np.ndarray) -> np.ndarray:
        """Map standardised predictions back to the target's units."""
        if self == Scale():
            return predicted
        restored = self.mean + self.sd * np.asarray(predicted)
        return restored if self.log is None else self.log.mean(restored)

    def smeared(self, residuals: np.ndarray, weight: np.ndarray | None = None) -> "Scale":
        """Return the scale with Duan's smearing, from standardised residuals of training rows."""
        if self.log is None:
            return self
        smearing = float(np.average(np.exp(self.sd * residuals), weights=weight))
        return replace(self, log=replace(self.log, smearing=smearing))


@dataclass(frozen=True)
class Truth:
    """What the predictions of some rows are scored against.

    Parameters
    ----------
    y : ndarray, shape (n,)
        Labels, or targets in their units.
    task : {"classification", "regression"}
    classes : ndarray of int, shape (n_classes,)
        Labels of the training set, sorted; empty for regression.
    scale : Scale
        Of the training set.
    weight : ndarray of float, shape (n,), optional
        Weights of the rows.
    """

    y: np.ndarray
    task: TaskType
    classes: np.ndarray
    scale: Scale = Scale()
    weight: np.ndarray | None = None

    @classmethod
    def make(
        cls,
        y: np.ndarray,
        weight: np.ndarray | None,
        task: TaskType,
        y_train: np.ndarray,
        weight_train: np.ndarray | None,
    ) -> "Truth":
        """Return the truth of some rows, given the training set."""
        labels = np.unique(y_train) if task == "classification" else np.empty(0, dtype=np.int64)
        return cls(y, task, labels, Scale.fit(y_train, task, weight_train), weight)
