"""Bayesian linear models of targets and of classes."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular
from scipy.optimize import minimize_scalar
from scipy.special import softmax
from sklearn.utils import check_random_state, gen_batches

from kbench.parameters import integer, number
from kbench_learners._design import dense_where_quicker
from kbench_learners._estimator import (
    LinearRegressor,
    Predictive,
    ProbabilityClassifier,
    class_numbers,
    row_weights,
)
from kbench_learners._ridge import column_gram, row_gram, weighted_mean

EVIDENCE = "evidence"

# An eigendecomposition of this size takes about a minute.
_MAX_SIDE = 6000

# Ratios of the variance of the function to that of the noise that are tried, with so many
# per factor of 10: beyond them the data have no signal or no noise.
_MIN_SIGNAL, _MAX_SIGNAL, _PER_DECADE = 1e-8, 1e10, 8

_BLOCK_ENTRIES = 2_000_000


@dataclass(eq=False, repr=False)
class BayesianLinearRegression(Predictive, LinearRegressor):
    r"""Bayesian linear regression, a Gaussian process on explicit features.

    .. math:: y = b + w^\top x + e, \quad w \sim N(0, s I), \quad e \sim N(0, \sigma^2),

    with a uniform prior of the intercept b. The mean of the posterior is ridge regression
    with the penalty :math:`\sigma^2 / s`. Either variance is given, or chosen by maximising the
    marginal likelihood of the targets, where one eigendecomposition of the Gram matrix of the
    columns or rows, whichever is smaller, serves all values: with :math:`\rho = s / \sigma^2`,
    eigenvalues :math:`\lambda_j` and components :math:`c_j` of the n targets,

    .. math:: -2 \log p(y) = n \log(2 \pi \sigma^2) + \sum_j \log(1 + \rho \lambda_j)
              + \frac{1}{\sigma^2} \sum_j \frac{c_j^2}{1 + \rho \lambda_j}.

    Parameters
    ----------
    noise_variance : float or "evidence", default "evidence"
        Variance :math:`\sigma^2` of an observation.
    weight_variance : float or "evidence", default "evidence"
        Variance s of each coefficient before the data are seen.
    fit_intercept : bool, default True
        Whether there is an intercept. Its uncertainty is part of the predictive variance.

    Attributes
    ----------
    coef_ : ndarray, shape (n_features,)
        Mean of the posterior.
    intercept_ : float
    noise_variance_, weight_variance_ : float
        The variances, given or chosen.
    log_marginal_likelihood_ : float
        Of the targets; with an intercept, of their n - 1 contrasts (differences that do not
        depend on it).
    converged_ : bool
        Whether the maximisation converged; true if both variances are given.

    Notes
    -----
    The marginal likelihood may have several maxima. It is evaluated on a grid of
    :math:`\rho`, in which the noise variance has a closed form, and the best value is refined.
    At the ends of the grid there is no signal, or no noise.

    A weight counts a row that many times, in the posterior and in the marginal likelihood.

    References
    ----------
    D. J. C. MacKay, Bayesian interpolation, Neural Computation 4 (1992); C. E. Rasmussen and
    C. K. I. Williams, Gaussian Processes for Machine Learning, MIT Press 2006, sections 2.1
    and 2.7.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 3))
    >>> y = X @ [1.0, -2.0, 0.5] + 0.3 * rng.standard_normal(200)
    >>> model = BayesianLinearRegression().fit(X, y)
    >>> round(model.noise_variance_**0.5, 1)
    0.3
    >>> mean, sd = model.predict([[0.0, 0.0, 0.0], [100.0, 0.0, 0.0]], return_std=True)
    >>> bool(sd[0] < sd[1])
    True
    """

    noise_variance: float | str = number(EVIDENCE, above=0, otherwise=(EVIDENCE,))
    weight_variance: float | str = number(EVIDENCE, above=0, otherwise=(EVIDENCE,))
    fit_intercept: bool = True

    def _deviations(self, X) -> np.ndarray:
        return np.sqrt(self._variance(X))

    def _fit(self, X, y, sample_weight) -> None:
        X = dense_where_quicker(X)
        weight = row_weights(sample_weight, len(y))
        if weight is not None and not weight.all():
            X, y, weight = X[weight > 0], y[weight > 0], weight[weight > 0]
        n, p = X.shape
        count = float(n if weight is None else weight.sum())
        if min(n, p) > _MAX_SIDE:
            raise ValueError(
                f"{type(self).__name__} factorises a matrix of the rows or of the columns, up to "
                f"{_MAX_SIDE:,}, and there are {n:,} rows and {p:,} columns; take fewer features"
            )
        if count <= bool(self.fit_intercept) and EVIDENCE in self._given():
            rows = "1 sample" if count == 1 else f"weights that sum to {count:g}"
            raise ValueError(
                f"the evidence cannot choose a variance from {rows}: a weight counts a row that "
                "many times, and there must be more than one row"
            )
        self._centre = weighted_mean(X, weight) if self.fit_intercept else np.zeros(p)
        target = float(np.average(y, weights=weight)) if self.fit_intercept else 0.0
        solve = _by_columns if p <= n else _by_rows
        spectrum = solve(X, y - target, self._centre, weight, count - bool(self.fit_intercept))
        ratio, noise, self.converged_ = spectrum.variances(
            *(None if isinstance(v, str) else float(v) for v in self._given())
        )
        self.noise_variance_, self.weight_variance_ = noise, ratio * noise
        self.log_marginal_likelihood_ = spectrum.log_likelihood(ratio, noise)
        self._count = count if self.fit_intercept else np.inf
        self._keep(spectrum, X, weight, ratio)
        self.intercept_ = target - float(self._centre @ self.coef_)

    def _given(self):
        return self.noise_variance, self.weight_variance

    def _keep(self, spectrum, X, weight, ratio) -> None:
        """Set the coefficients, and what the variance of a prediction needs."""
        shrunk = 1.0 / (1.0 + ratio * spectrum.values)
        V = spectrum.vectors
        if X.shape[1] <= X.shape[0]:
            self.coef_ = V @ (ratio * shrunk * spectrum.moments)
            self._rows = None
            self._factor = V * np.sqrt(self.weight_variance_ * shrunk)
            return
        root = np.ones(len(V)) if weight is None else np.sqrt(weight)
        dual = root * (V @ (ratio * shrunk * spectrum.components))
        self.coef_ = X.T @ dual - self._centre * dual.sum()
        self._rows = X
        self._factor = root[:, None] * V * np.sqrt(self.weight_variance_ * ratio * shrunk)

    def _variance(self, X) -> np.ndarray:
        """Return the variance of a new observation at each row."""
        n = X.shape[0]
        explained = np.empty(n)
        step = max(1, _BLOCK_ENTRIES // max(self._factor.shape[0], X.shape[1]))
        for rows in gen_batches(n, step):
            explained[rows] = self._function_variance(X[rows])
        return self.noise_variance_ * (1.0 + 1.0 / self._count) + explained

    def _function_variance(self, X) -> np.ndarray:
        """Return the variance of ``w'(x - centre)`` under the posterior."""
        if self._rows is None:
            Z = X @ self._factor - self._centre @ self._factor
            return np.einsum("ij,ij->i", Z, Z)
        Z = np.asarray(X.toarray() if hasattr(X, "toarray") else X) - self._centre
        K = (self._rows @ Z.T).T - (Z @ self._centre)[:, None]
        K = K @ self._factor
        prior = self.weight_variance_ * np.einsum("ij,ij->i", Z, Z)
        return np.maximum(prior - np.einsum("ij,ij->i", K, K), 0.0)


@dataclass(frozen=True)
class _Spectrum:
    """Eigenvalues of a Gram matrix, and the targets in its eigenvectors.

    `components` are the c_j, `moments` the products ``V' X' y`` (of columns only), `rest` is
    the squared length of what the features cannot explain, and `count` the number of
    independent targets.
    """

    values: np.ndarray
    vectors: np.ndarray
    components: np.ndarray
    moments: np.ndarray | None
    rest: float
    count: float

    def misfit(self, ratio: float) -> float:
        """Return ``y' (I + ratio X X')^-1 y``."""
        return self.rest + float(np.sum(self.components**2 / (1.0 + ratio * self.values)))

    def log_likelihood(self, ratio: float, noise: float) -> float:
        """Return the log density of the targets."""
        logs = self.count * np.log(2.0 * np.pi * noise) + np.sum(np.log1p(ratio * self.values))
        return -0.5 * float(logs + self.misfit(ratio) / noise)

    def variances(self, noise: float | None, weight: float | None) -> tuple[float, float, bool]:
        """Return the ratio of the variances, that of the noise, and whether a search converged.

        A variance of None is the one with the largest likelihood.
        """
        # what is left of rounding: without it, targets that are fitted exactly have no noise
        floor = np.finfo(float).eps ** 2 * max(self.misfit(0.0), np.finfo(float).tiny ** 0.25)

        def noise_at(ratio: float) -> float:
            if noise is not None:
                return noise
            if weight is not None:
                return weight / ratio
            return max(self.misfit(ratio) / self.count, floor)

        if noise is not None and weight is not None:
            return weight / noise, noise, True
        total = float(self.values.sum())
        if total <= 0.0:  # constant columns: the targets are noise
            own = noise if noise is not None else max(self.misfit(0.0) / self.count, floor)
            return (1.0 if weight is None else weight / own), own, True

        def loss(log_ratio: float) -> float:
            ratio = float(np.exp(log_ratio))
            return -self.log_likelihood(ratio, noise_at(ratio))

        unit = max(self.count, 1.0) / total  # where function and noise have equal variances
        decades = np.log10(_MAX_SIGNAL / _MIN_SIGNAL)
        grid = np.log(unit * np.geomspace(_MIN_SIGNAL, _MAX_SIGNAL, int(decades * _PER_DECADE)))
        losses = np.array([loss(x) for x in grid])
        # of equal ones the first, which has the least signal
        best = int(np.flatnonzero(losses <= losses.min() + 1e-9 * max(1.0, abs(losses.min())))[0])
        around = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        found = minimize_scalar(loss, bounds=around, method="bounded", options={"xatol": 1e-8})
        ratio = float(np.exp(found.x if found.fun < losses[best] else grid[best]))
        return ratio, noise_at(ratio), bool(found.success)


def _by_columns(X, y, mean, weight, count) -> _Spectrum:
    """Decompose the Gram matrix of the columns."""
    values, V = _eigen(column_gram(X, mean, weight))
    weighted = y if weight is None else weight * y
    moments = V.T @ (X.T @ weighted - mean * weighted.sum())
    spanned = values > 0.0
    components, inverse = np.zeros(len(values)), np.zeros(len(values))
    components[spanned] = moments[spanned] / np.sqrt(values[spanned])
    inverse[spanned] = moments[spanned] / values[spanned]
    w = V @ inverse
    left = y - (X @ w - mean @ w)
    rest = float(np.sum(left**2 if weight is None else weight * left**2))
    return _Spectrum(values, V, components, moments, rest, count)


def _by_rows(X, y, mean, weight, count) -> _Spectrum:
    """Decompose the Gram matrix of the rows."""
    root = None if weight is None else np.sqrt(weight)
    values, U = _eigen(row_gram(X, mean, root))
    return _Spectrum(values, U, U.T @ (y if root is None else root * y), None, 0.0, count)


def _eigen(G):
    """Return eigenvalues, those of rounding errors being 0, and eigenvectors."""
    values, vectors = eigh(G, overwrite_a=True, check_finite=False, driver="evd")
    floor = len(G) * np.finfo(float).eps * max(values[-1], 0.0)
    return np.where(values > floor, values, 0.0), vectors


# A covariance matrix of this size for each class takes about a second.
_MAX_COLUMNS = 6000

_DRAWN_ENTRIES = 4_000_000


@dataclass(eq=False, repr=False)
class DirichletGPClassifier(ProbabilityClassifier):
    r"""Classification by Gaussian process regression on Dirichlet log-probabilities.

    A label is one observation of a Dirichlet distribution with parameters :math:`\alpha`, and
    :math:`\alpha + 1` for the class that was seen. Its components are gamma variables, whose
    logarithms are taken as normal with

    .. math:: v_{ik} = \log(1 + 1 / \alpha_{ik}), \quad
              \tilde y_{ik} = \log \alpha_{ik} - v_{ik} / 2,

    so that each class is a linear regression of :math:`\tilde y_k` on the features, with normal
    weights and noise of the known variances :math:`v_{ik}`. It is solved in closed form. Use it
    for class probabilities by an explicit feature map without an iterative fit; its errors are
    about those of ridge regression on the labels.

    Parameters
    ----------
    alpha : float, default 0.01
        Parameter :math:`\alpha` of a class that was not seen, positive. The smaller it is, the
        more a label says.
    weight_variance : float or "labels", default "labels"
        Variance of each coefficient before the data are seen: the variance of a function value
        where features have length 1. By default the variance of all transformed labels.
    n_draws : int, default 1000
        Draws of the function values of a row, of which the mean of the softmax is the
        probability. All rows have the same normal variables, so that a prediction does not
        depend on the other rows.
    random_state : int, RandomState or None, default None
        Draws these variables.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels.
    coef_ : ndarray, shape (n_classes, n_features)
        Mean of the posterior.
    prior_mean_ : float
        Mean of all transformed labels, from which the functions deviate.
    weight_variance_ : float
        The variance that was used.

    Raises
    ------
    ValueError
        For parameters out of range, one class, or more than 6,000 features.

    Notes
    -----
    A class has two noise variances, that of its rows and that of the others. With Z the features
    and :math:`Z_k` those of the class, the precision of its weights is
    :math:`I / s + Z'Z / v_0 + (1 / v_1 - 1 / v_0) Z_k'Z_k`, so that the products of all classes
    cost two Gram matrices, and a class one Cholesky factor.

    References
    ----------
    D. Milios, R. Camoriano, P. Michiardi, L. Rosasco and M. Filippone, Dirichlet-based Gaussian
    processes for large-scale calibrated classification, NeurIPS 2018, section 3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DirichletGPClassifier(random_state=0).fit(X, y)
    >>> model.predict_proba(X[:1]).round(1).tolist()
    [[1.0, 0.0, 0.0]]
    """

    _takes_sparse = False

    alpha: float = number(0.01, above=0)
    weight_variance: float | str = number("labels", above=0, otherwise=("labels",))
    n_draws: int = integer(1000, least=1)
    random_state: int | np.random.RandomState | None = None

    def predict_proba(self, X):
        """Predict the probabilities of the classes.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray, shape (n_samples, n_classes)
            Rows sum to 1.
        """
        X = self._inputs(X)
        out = np.empty((len(X), len(self.classes_)))
        step = max(1, _DRAWN_ENTRIES // max(self._normals.size, X.shape[1]))
        for rows in gen_batches(len(X), step):
            mean, deviation = self._function(X[rows])
            drawn = mean[:, None, :] + deviation[:, None, :] * self._normals
            out[rows] = softmax(drawn, axis=2).mean(axis=1)
        return out

    def _training_data(self, X, y):
        X, y = self._validated(X, y)
        codes = class_numbers(self, y)
        if X.shape[1] > _MAX_COLUMNS:
            raise ValueError(
                f"{type(self).__name__} factorises a matrix of the columns for each class, up to "
                f"{_MAX_COLUMNS:,}, and there are {X.shape[1]:,}; take fewer features"
            )
        return X, codes

    def _fit(self, Z, codes) -> None:
        n_classes, p = len(self.classes_), Z.shape[1]
        seen, other = _log_gamma(self.alpha + 1.0), _log_gamma(self.alpha)
        # of the n n_classes transformed labels, a share of 1 / n_classes is that of a seen class
        share = 1.0 / n_classes
        self.prior_mean_ = share * seen.mean + (1.0 - share) * other.mean
        spread = share * (1.0 - share) * (seen.mean - other.mean) ** 2
        given = self.weight_variance
        self.weight_variance_ = spread if isinstance(given, str) else float(given)
        gram, total = Z.T @ Z, Z.sum(axis=0)
        more = 1.0 / seen.variance - 1.0 / other.variance
        self.coef_ = np.empty((n_classes, p))
        self._factors = np.empty((n_classes, p, p))
        for k in range(n_classes):
            own = Z[codes == k]
            precision = gram / other.variance + more * (own.T @ own)
            precision.flat[:: p + 1] += 1.0 / self.weight_variance_
            sums = own.sum(axis=0)
            moments = (seen.mean - self.prior_mean_) / seen.variance * sums
            moments += (other.mean - self.prior_mean_) / other.variance * (total - sums)
            factor = cholesky(precision, lower=True, overwrite_a=True, check_finite=False)
            half = solve_triangular(factor, moments, lower=True, check_finite=False)
            self.coef_[k] = solve_triangular(factor, half, lower=True, trans="T")
            self._factors[k] = factor
        rng = check_random_state(self.random_state)
        self._normals = rng.standard_normal((self.n_draws, n_classes))

    def _function(self, Z) -> tuple[np.ndarray, np.ndarray]:
        """Return means and deviations of the functions at each row, shape (rows, n_classes)."""
        mean = self.prior_mean_ + Z @ self.coef_.T
        deviation = np.empty_like(mean)
        for k, factor in enumerate(self._factors):
            half = solve_triangular(factor, Z.T, lower=True, check_finite=False)
            deviation[:, k] = np.sqrt(np.einsum("ij,ij->j", half, half))
        return mean, deviation


class _Label(NamedTuple):
    """Mean and variance of the logarithm of a gamma variable, taken as normal."""

    mean: float
    variance: float


def _log_gamma(shape: float) -> _Label:
    variance = float(np.log1p(1.0 / shape))
    return _Label(float(np.log(shape)) - variance / 2.0, variance)
