"""Learners with one planted defect each, and the check that must catch it."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted, validate_data


class Centroids(ClassifierMixin, BaseEstimator):
    """The nearest class mean, without a defect."""

    def __init__(self, shrink=0.0, random_state=None):
        self.shrink = shrink
        self.random_state = random_state

    def fit(self, X, y):
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_ = unique_labels(y)
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class only, {self.classes_[0]!r}")
        means = np.array([X[y == label].mean(axis=0) for label in self.classes_])
        self.means_ = (1 - self.shrink) * means + self.shrink * means.mean(axis=0)
        return self

    def nearest(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return ((X[:, None] - self.means_) ** 2).sum(axis=2).argmin(axis=1)

    def predict(self, X):
        nearest = self.nearest(X)
        return self.classes_[nearest]

    def fit_path(self, X, y, values):
        return [type(self)(shrink=each).fit(X, y) for each in values]


class Positions(Centroids):
    def predict(self, X):
        return self.nearest(X)


class Majority(Centroids):
    def fit(self, X, y):
        super().fit(X, y)
        self.first_ = self.classes_[np.unique(y, return_counts=True)[1].argmax()]
        return self

    def predict(self, X):
        return np.full(len(self.nearest(X)), self.first_)


class Unnormalised(Centroids):
    def predict_proba(self, X):
        return np.eye(len(self.classes_))[self.nearest(X)] * 0.5


class Unclassed(Centroids):
    def fit(self, X, y):
        super().fit(X, y)
        self.labels_ = self.classes_
        self.classes_ = self.classes_[::-1]
        return self

    def predict(self, X):
        nearest = self.nearest(X)
        return self.labels_[nearest]


class Unschemed(Centroids):
    def __init__(self, shrink=0.0, multiclass="ovr", random_state=None):
        super().__init__(shrink, random_state)
        self.multiclass = multiclass


class Crashing(Centroids):
    def fit(self, X, y):
        if len(np.unique(y)) < 2:
            raise IndexError("index 1 is out of bounds")
        return super().fit(X, y)


class Inventive(Centroids):
    def fit(self, X, y):
        if len(np.unique(y)) < 2:
            y = np.arange(len(y)) % 2
        return super().fit(X, y)


class Backwards(Centroids):
    def fit_path(self, X, y, values):
        return super().fit_path(X, y, values)[::-1]


class Unpathed(Centroids):
    fit_path = None


class Scaling(Centroids):
    def predict(self, X):
        chosen = super().predict(X)
        if isinstance(X, np.ndarray):
            X /= 2
        return chosen


class Attached(Centroids):
    def fit(self, X, y):
        super().fit(X, y)
        self.distance_ = lambda x, z: abs(x - z)
        return self

    def __deepcopy__(self, memo):
        twin = type(self)(**self.get_params())
        twin.__dict__.update(vars(self))
        return twin


class Lenient(Centroids):
    def nearest(self, X):
        check_is_fitted(self)
        X = np.hstack([check_array(X), np.zeros((len(X), 9))])[:, : self.n_features_in_]
        return ((X[:, None] - self.means_) ** 2).sum(axis=2).argmin(axis=1)


class Hasty(Centroids):
    def predict(self, X):
        _ = self.means_  # AttributeError
        return super().predict(X)


class Indicators(Centroids):
    """Least squares on indicators of the classes, from rows or from sums, without a defect."""

    def fit(self, X, y):
        super().fit(X, y)
        Y = (np.asarray(y).ravel()[:, None] == self.classes_).astype(float)
        X = np.asarray(X, dtype=np.float64)
        Z = X - X.mean(axis=0)
        return self.solve(X.mean(axis=0), Y.mean(axis=0), Z.T @ Z, Z.T @ Y)

    def solve(self, mean, target_mean, gram, moments):
        self.coef_ = np.linalg.solve(gram + (0.1 + self.shrink) * np.eye(len(gram)), moments).T
        self.intercept_ = target_mean - self.coef_ @ mean
        return self

    def nearest(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return (X @ self.coef_.T + self.intercept_).argmax(axis=1)

    def from_sums(self, sums):
        self.classes_, self.n_features_in_ = sums.classes, len(sums.mean)
        return self.solve(sums.mean, sums.target_mean, sums.gram, sums.moments)

    def fit_sums(self, sums, values):
        return [type(self)(shrink=each).from_sums(sums) for each in values]


class Uncentred(Indicators):
    def from_sums(self, sums):
        super().from_sums(sums)
        self.intercept_ = sums.target_mean + self.coef_ @ sums.mean
        return self


class Disordered(Indicators):
    def fit_sums(self, sums, values):
        return super().fit_sums(sums, sorted(values))


class Offset(Indicators):
    def nearest(self, X):
        return super().nearest(X) if hasattr(self, "means_") else self.shifted(X)

    def from_sums(self, sums):
        super().from_sums(sums)
        self.offset_, self.intercept_ = self.intercept_, self.intercept_ + np.array([9.0, 0.0, 0.0])
        return self

    def shifted(self, X):
        check_is_fitted(self)
        return (X @ self.coef_.T + self.offset_).argmax(axis=1)


class Streamed(Indicators):
    """Least squares on indicators in two passes over blocks, without a defect."""

    fit_sums = None

    def begin_fit(self, sample, values):
        return TwoPasses([type(self)(shrink=each) for each in values], sample)


class TwoPasses:
    """The mean in the first pass, products with it subtracted in the second."""

    def __init__(self, fitted, sample):
        self.fitted, self.classes, self.counts = fitted, sample.classes, sample.counts
        p, t = sample.Z.shape[1], len(sample.classes)
        self.total, self.gram, self.moments = np.zeros(p), np.zeros((p, p)), np.zeros((p, t))
        self.mean, self.passes = np.zeros(p), 0
        self.nbytes = self.gram.nbytes

    @property
    def is_done(self):
        return self.passes == 2

    def add(self, Z, codes):
        Z = Z.astype(np.float64)
        if not self.passes:
            self.total += Z.sum(axis=0)
            return
        self.gram += (Z - self.mean).T @ (Z - self.mean)
        self.moments += (Z - self.mean).T @ np.eye(len(self.classes))[codes]

    def step(self):
        self.passes += 1
        self.mean = self.total / self.counts.sum()

    def estimators(self):
        shares = self.counts / self.counts.sum()
        for each in self.fitted:
            each.classes_, each.n_features_in_ = self.classes, len(self.mean)
            each.solve(self.mean, shares, self.gram, self.moments)
        return self.fitted


class Endless(Streamed):
    def begin_fit(self, sample, values):
        class Fit(TwoPasses):
            is_done = False

        return Fit([type(self)(shrink=each) for each in values], sample)


class Forgetful(Streamed):
    def begin_fit(self, sample, values):
        class Fit(TwoPasses):
            def add(self, Z, codes):
                self.gram[:], self.moments[:] = 0.0, 0.0
                super().add(Z, codes)

        return Fit([type(self)(shrink=each) for each in values], sample)


class Satisfied(Streamed):
    """The solution on the sample, and no passes."""

    def begin_fit(self, sample, values):
        fit = TwoPasses([type(self)(shrink=each) for each in values], sample)
        fit.counts = np.bincount(sample.codes)
        for _ in range(2):
            fit.add(sample.Z, sample.codes)
            fit.step()
        return fit


class Numbered(Streamed):
    def begin_fit(self, sample, values):
        fit = super().begin_fit(sample, values)
        fit.classes = np.arange(len(fit.classes))
        return fit


class Swapped(Streamed):
    def begin_fit(self, sample, values):
        return super().begin_fit(sample, values[::-1])


class Greedy(Streamed):
    def begin_fit(self, sample, values):
        class Fit(TwoPasses):
            def add(self, Z, codes):
                super().add(Z, codes)
                Z -= self.mean

        return Fit([type(self)(shrink=each) for each in values], sample)


class Sizeless(Streamed):
    def begin_fit(self, sample, values):
        fit = super().begin_fit(sample, values)
        del fit.nbytes
        return fit


LEARNER_DEFECTS = {
    Positions: "check_labels",
    Unnormalised: "check_probabilities",
    Majority: "check_better_than_majority",
    Unschemed: "check_scheme",
    Backwards: "check_path",
    Unpathed: "check_path",
    Uncentred: "check_sums",
    Disordered: "check_sums",
    Offset: "check_sums",
    Endless: "check_passes",
    Forgetful: "check_passes",
    Satisfied: "check_passes",
    Numbered: "check_passes",
    Swapped: "check_passes",
    Greedy: "check_passes",
    Sizeless: "check_passes",
}

# what scikit-learn's estimator checks catch, and a part of the message
LEARNER_DEFECTS_OF_SKLEARN = {
    Unclassed: "set self.classes_",
    Crashing: "there is one class",
    Inventive: "there is one class",
    Scaling: "do not write into inputs",
    Attached: "keep no lambdas",
    Lenient: "call validate_data",
    Hasty: "check_is_fitted",
}
