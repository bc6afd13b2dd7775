"""Regressors with one planted defect each, and the check that must catch it."""

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data


class Line(RegressorMixin, BaseEstimator):
    """Ridge regression with a normal predictive distribution, without a defect."""

    def __init__(self, alpha=1e-3, random_state=None):
        self.alpha = alpha
        self.random_state = random_state

    def fit(self, X, y):
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        self.centre_, self.mean_ = X.mean(axis=0), y.mean()
        Z = X - self.centre_
        penalty = self.alpha * np.eye(Z.shape[1])
        self.coef_ = np.linalg.solve(Z.T @ Z + penalty, Z.T @ (y - self.mean_))
        self.sd_ = np.std(y - self.mean_ - Z @ self.coef_) + 1e-12
        return self

    def means(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self.mean_ + (X - self.centre_) @ self.coef_

    def deviations(self, n):
        return np.full(n, self.sd_)

    def predict(self, X, return_std=False):
        means = self.means(X)
        return (means, self.deviations(len(means))) if return_std else means

    def fit_path(self, X, y, values):
        return [type(self)(alpha=each).fit(X, y) for each in values]


class Summed(Line):
    """Ridge regression from rows or from sums, without a defect."""

    def from_sums(self, sums):
        penalty = self.alpha * np.eye(len(sums.gram))
        self.centre_, (self.mean_,) = sums.mean, sums.target_mean
        self.coef_ = np.linalg.solve(sums.gram + penalty, sums.moments)[:, 0]
        self.intercept_ = self.mean_ - self.coef_ @ self.centre_
        self.n_features_in_ = len(self.coef_)
        return self

    def fit_sums(self, sums, values):
        return [type(self)(alpha=each).from_sums(sums) for each in values]


class Averaged(Summed):
    """Weighs the penalty against the mean of the squared errors instead of their sum."""

    def from_sums(self, sums):
        self.alpha *= sums.n
        super().from_sums(sums)
        self.alpha /= sums.n
        return self


class Column(Line):
    def means(self, X):
        return super().means(X)[:, None]


class Undefined(Line):
    def means(self, X):
        return np.append(super().means(X)[1:], np.nan)


class Flat(Line):
    def means(self, X):
        return 0 * super().means(X) + self.mean_


class Certain(Line):
    def deviations(self, n):
        return np.zeros(n)


class Bold(Line):
    def deviations(self, n):
        return np.full(n, self.sd_ / 10)


class Timid(Line):
    def deviations(self, n):
        return np.full(n, self.sd_ * 10)


class ColumnOfDeviations(Line):
    def deviations(self, n):
        return np.full((n, 1), self.sd_)


class WithoutDeviations(Line):
    def predict(self, X, return_std=False):
        return self.means(X)


class Texts(Line):
    def means(self, X):
        return super().means(X).astype(str)


class Inconsistent(Line):
    def predict(self, X, return_std=False):
        means = super().predict(X)
        return (means + 0.1, self.deviations(len(means))) if return_std else means


class Backwards(Line):
    def fit_path(self, X, y, values):
        return super().fit_path(X, y, values)[::-1]


class Rough(Line):
    def fit_path(self, X, y, values):
        path = super().fit_path(X, y, values)
        for fitted in path:
            fitted.mean_ += 0.05
        return path


class Writing(Line):
    def fit(self, X, y):
        super().fit(X, y)
        if isinstance(y, np.ndarray):
            y += 1e-9
        return self


REGRESSOR_DEFECTS = {
    Column: "check_numbers",
    Undefined: "check_numbers",
    Flat: "check_better_than_mean",
    Certain: "check_distribution",
    Bold: "check_distribution",
    Timid: "check_distribution",
    ColumnOfDeviations: "check_distribution",
    WithoutDeviations: "check_distribution",
    Inconsistent: "check_distribution",
    Backwards: "check_path",
    Rough: "check_path",
    Averaged: "check_sums",
}

# what scikit-learn's estimator checks catch, and a part of the message
REGRESSOR_DEFECTS_OF_SKLEARN = {Writing: "do not write into inputs"}
