"""Exact Gaussian process regression, from scikit-learn."""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.distance import pdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from kbench.parameters import choice, integer
from kbench_learners._estimator import Predictive, Regressor

# Rows from which the length scale is set before it is optimised.
_SCALE_ROWS = 500


@dataclass(eq=False, repr=False)
class GaussianProcess(Predictive, Regressor):
    r"""Exact Gaussian process regression with noise, for small datasets.

    The covariance is :math:`\theta_1 k(|x - x'| / \theta_2) + \theta_3 \delta`. Its parameters
    maximise the marginal likelihood (L-BFGS-B), starting with the median distance as length
    scale, and from random points. Each step takes O(n³) time and O(n²) memory. It is an accuracy
    reference for explicit feature maps.

    Parameters
    ----------
    kernel : {"gaussian", "matern-1/2", "matern-3/2", "matern-5/2"}, default "gaussian"
        The correlation k.
    ard : bool, default False
        Whether each column has its own length scale.
    n_restarts : int, default 0
        Random starting points in addition to the first.
    max_iter : int, default 100
        Maximum number of steps from each starting point.
    max_rows : int, default 5000
        More training rows raise a ValueError.
    random_state : int, RandomState or None
        Decides the random starting points.

    Attributes
    ----------
    kernel_ : sklearn.gaussian_process.kernels.Kernel
        The covariance with its parameters, for standardised targets.
    log_marginal_likelihood_ : float
        That of the standardised targets.
    converged_ : bool
        Whether the best of the maximisations converged.
    n_iter_ : int
        Its steps.

    References
    ----------
    C. E. Rasmussen and C. K. I. Williams, Gaussian Processes for Machine Learning, MIT Press
    2006, sections 2.2 and 5.4.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0.0, 6.0, 20)[:, None]
    >>> model = GaussianProcess(random_state=0).fit(X, np.sin(X[:, 0]))
    >>> mean, sd = model.predict([[1.0], [30.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(1.0)) < 0.01), bool(sd[0] < 0.1 < sd[1])
    (True, True)
    """

    _takes_sparse = False

    kernel: str = choice("gaussian", ("gaussian", "matern-1/2", "matern-3/2", "matern-5/2"))
    ard: bool = False
    n_restarts: int = integer(0, least=0)
    max_iter: int = integer(100, least=1)
    max_rows: int = integer(5000, least=1)
    random_state: int | np.random.RandomState | None = None

    def _predicted(self, X) -> np.ndarray:
        return self._process.predict(X)

    def _distribution(self, X) -> tuple[np.ndarray, np.ndarray]:
        with warnings.catch_warnings():
            # variances below 0 by rounding; scikit-learn sets them to 0
            warnings.filterwarnings("ignore", "Predicted variances smaller than 0")
            mean, sd = self._process.predict(X, return_std=True)
        return mean, np.maximum(sd, self._least_sd)

    def _fit(self, X, y) -> None:
        if len(y) > self.max_rows:
            raise ValueError(
                f"GaussianProcess takes time cubic in the rows, and there are {len(y):,}; the "
                f"parameter max_rows allows {self.max_rows:,}"
            )
        optima: list = []

        def maximise(loss, start, bounds):
            options = {"jac": True, "bounds": bounds, "options": {"maxiter": self.max_iter}}
            found = minimize(loss, start, method="L-BFGS-B", **options)
            optima.append(found)
            return found.x, found.fun

        process = GaussianProcessRegressor(
            self._covariance(X),
            alpha=1e-10,
            optimizer=maximise,
            n_restarts_optimizer=self.n_restarts,
            normalize_y=True,
            random_state=self.random_state,
        )
        # a parameter at a bound: no noise, or a column without effect
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            process.fit(X, y)
        process.optimizer = None  # which no pickle could keep
        best = min(optima, key=lambda found: found.fun)
        self._process, self.kernel_ = process, process.kernel_
        self.log_marginal_likelihood_ = float(process.log_marginal_likelihood_value_)
        self.converged_, self.n_iter_ = bool(best.success), int(best.nit)
        self._least_sd = float(np.sqrt(self.kernel_.k2.noise_level) * process._y_train_std)

    def _covariance(self, X):
        distances = pdist(X[:: -(-len(X) // _SCALE_ROWS)])
        scale = float(np.median(distances[distances > 0])) if distances.any() else 1.0
        length = np.full(X.shape[1], scale) if self.ard else scale
        bounds = (1e-3 * scale, 1e3 * scale)
        if self.kernel == "gaussian":
            correlation = RBF(length, bounds)
        else:
            nu = {"1": 0.5, "3": 1.5, "5": 2.5}[self.kernel.removeprefix("matern-")[0]]
            correlation = Matern(length, bounds, nu=nu)
        return ConstantKernel(1.0, (1e-3, 1e4)) * correlation + WhiteKernel(0.1, (1e-8, 10.0))

    def _complaints(self) -> list[str]:
        return [
            f"GaussianProcess did not converge in {self.n_iter_} steps; raise max_iter or scale "
            "the inputs"
        ]
