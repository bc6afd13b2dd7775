"""The maps F1, F2 and F3 as scikit-learn transformers."""

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import get_blas_funcs
from sklearn.utils import check_random_state, gen_batches

from kbench.estimators import ExplicitMap
from kbench.kernels import Precomputed, Similarity, resolve_kernel
from kbench.parameters import choice, integer, number
from kbench_balcan._landmarks import SAMPLINGS, choose_landmarks, orthonormal_basis
from kbench_balcan._theory import theory_sizes

DEFAULT_LANDMARKS = 100
# Entries of the Gram matrix that exist at one time during a transform (8 MiB).
CHUNK_ENTRIES = 2**20


@dataclass(eq=False, repr=False)
class _BalcanMap(ExplicitMap):
    """Base of the three maps: landmarks, and a transform in chunks of rows."""

    _mapping: ClassVar[str]

    takes_lazy_rows = True
    _row_share = 1.0

    kernel: object = "gaussian"
    _: KW_ONLY
    n_landmarks: int | str | None = integer(None, least=1, otherwise=("theory", None))
    sampling: str = choice("uniform", SAMPLINGS)
    margin: float | None = None
    epsilon: float = 0.1
    delta: float = 0.1
    alpha: float = 0.0
    radius: float = 1.0
    random_state: int | np.random.RandomState | None = None

    def _fit(self, X):
        kernel = resolve_kernel(self.kernel)
        if isinstance(kernel, Precomputed) and X.shape[0] != X.shape[1]:
            raise ValueError(
                "X must be square with kernel='precomputed', the Gram matrix of the unlabeled "
                f"points, got shape {X.shape}"
            )
        rng = check_random_state(self.random_state)
        n_landmarks = self._n_landmarks(X.shape[0])
        self.kernel_ = kernel.resolve(X)
        self.landmarks_, self.landmark_rows_ = choose_landmarks(
            X, self.kernel_, n_landmarks, self.sampling, rng
        )
        self.n_landmarks_ = self.landmarks_.shape[0]
        self._fit_components(X, rng)
        return self.n_components_

    def _n_landmarks(self, n_samples: int) -> int:
        number, reason = self.n_landmarks, ""
        if number is None:
            return min(DEFAULT_LANDMARKS, n_samples)
        if number == "theory":
            number = self._theory().n_landmarks
            given = f"margin={self.margin}, epsilon={self.epsilon} and delta={self.delta}"
            reason = f" ('theory' with {given})"
        if number > n_samples:
            raise ValueError(
                f"n_landmarks must be at most n_samples = {n_samples}, got {number}{reason}"
            )
        return int(number)

    def _theory(self):
        if self.margin is None:
            raise ValueError("margin must be a number for 'theory', got None")
        names = ("margin", "epsilon", "delta", "alpha", "radius")
        return theory_sizes(mapping=self._mapping, **{name: getattr(self, name) for name in names})

    def scale_sizes(self, row_share):
        """Scale the size of chunks, to predict the cost of all rows from some."""
        self._row_share = row_share

    def _fit_components(self, X, rng) -> None:
        self.n_components_ = self.n_landmarks_

    def _transform(self, X):
        # the Gram matrix with the landmarks is computed a few rows at a time
        features = np.empty((X.shape[0], self.n_components_), dtype=X.dtype)
        landmarks, components = self._parts(X.dtype)
        step = max(1, int(self._row_share * CHUNK_ENTRIES) // self.n_landmarks_)
        for rows in gen_batches(X.shape[0], step):
            K = self.kernel_(X[rows], landmarks)
            features[rows] = K if components is None else self._embed(K, components)
        return features

    def _parts(self, dtype):
        """Return the landmarks to compare with, and their coefficients in `dtype`, if any."""
        return self.landmarks_, None

    def _embed(self, K, components):
        """Multiply by the coefficients, in half the time where they are triangular."""
        if components.shape[0] != components.shape[1] or np.tril(components, -1).any():
            return K @ components
        # what a function returns may be in use elsewhere: do not write to it
        overwrite = not isinstance(self.kernel_, Similarity)
        multiply = get_blas_funcs("trmm", (components, K))
        return multiply(1.0, components, K.T, trans_a=True, overwrite_b=overwrite).T

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        precomputed = self.kernel == "precomputed" or isinstance(self.kernel, Precomputed)
        tags.input_tags.pairwise = precomputed
        return tags


class BalcanF1(_BalcanMap):
    """Similarities to landmarks, ``F1(x) = (k(x, x_1), ..., k(x, x_d))``.

    If a problem has a separator with margin gamma in the kernel's space, then
    F1 with ``8/epsilon (1/gamma^2 + ln(1/delta))`` random landmarks makes it
    linearly separable with error epsilon, with probability 1 - delta; the
    margin may be lost [1]_. It works with any similarity function, positive
    semidefinite or not [2]_.

    Parameters
    ----------
    kernel : str, Kernel or callable, default "gaussian"
        Name of a kernel, kernel object, or function ``k(X, Y)``;
        "precomputed" for Gram matrices.
    n_landmarks : int, "theory" or None, default None
        Number of landmarks, at most the number of points; None for 100, or all
        points if the data have fewer. "theory" computes it from `margin`,
        `epsilon` and `delta`.
    sampling : {"uniform", "kmeans", "rpcholesky", "greedy"}, default "uniform"
        Landmarks are random points (the paper's), centres of k-means, pivots
        of a randomly pivoted Cholesky decomposition, or of one that always
        takes the largest residual. The last two choose among at most 20,000
        random points and may find fewer landmarks that span all. k-means sees
        more than 20,000 points in mini-batches.
    margin : float, optional
        Assumed margin gamma, for "theory".
    epsilon, delta : float, default 0.1
        Error and failure probability of "theory", in (0, 1).
    alpha : float, default 0.0
        Share of the distribution without that margin (section 4.1): changes
        what "theory" promises, not the sizes.
    radius : float, default 1.0
        Bound on ``||phi(x)||`` for separators off the origin (section 4.1).
    random_state : int, RandomState or None, default None
        Determines the landmarks.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel, its bandwidth set.
    landmarks_ : ndarray or CSR matrix, shape (n_landmarks_, n_features_in_)
        The landmarks (their row numbers with a precomputed kernel).
    landmark_rows_ : ndarray of int, shape (n_landmarks_,), or None
        Rows of the fitted `X`; None for centres of k-means.
    n_landmarks_, n_components_ : int
        Number of landmarks and of features.

    References
    ----------
    .. [1] M.-F. Balcan, A. Blum and S. Vempala, "Kernels as features: On
       kernels, margins, and low-dimensional mappings", Machine Learning 65
       (2006), Corollary 1.
    .. [2] M.-F. Balcan, A. Blum and N. Srebro, "A theory of learning with
       similarity functions", Machine Learning 72 (2008).

    Examples
    --------
    >>> import numpy as np
    >>> from kbench.kernels import Gaussian
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> BalcanF1(Gaussian(bandwidth=1.0), n_landmarks=2, random_state=0).fit_transform(X).round(3)
    array([[0.135, 0.607],
           [0.607, 1.   ],
           [1.   , 0.607]])
    """

    _mapping = "f1"


@dataclass(eq=False, repr=False)
class BalcanF2(_BalcanMap):
    """Orthogonal projection onto the span of the landmarks' images.

    ``F2(x) = F1(x) U^-1`` with ``K(S, S) = U^T U`` for the landmarks S: inner
    products of features are those of the projections of phi(x), and a margin
    gamma becomes gamma/2 [1]_. Where the Gram matrix of the landmarks is
    rank deficient, U is that of the landmarks that are linearly independent
    (Cholesky decomposition with complete pivoting). Of a similarity that is
    not positive semidefinite the negative eigenvalues are clipped, with a
    warning. Up to a rotation, F2 with uniform landmarks is the Nystroem map.

    Parameters
    ----------
    kernel, n_landmarks, sampling, margin, epsilon, delta, alpha, radius, random_state
        As in `BalcanF1`.
    basis : {"triangular", "eigen"}, default "triangular"
        The paper's U^-1, or principal directions of the landmarks, the
        largest first. One is a rotation of the other, which matters to learners
        that are not rotation invariant, such as Winnow.
    rank_tolerance : float, optional
        A pivot (an eigenvalue, for "eigen") up to this share of the largest
        counts as zero; by default ``n_landmarks * eps`` of the input's type.

    Attributes
    ----------
    kernel_, landmarks_, landmark_rows_, n_landmarks_
        As in `BalcanF1`.
    components_ : ndarray, shape (n_landmarks_, n_components_)
        ``F2(x) = F1(x) @ components_``.
    n_components_ : int
        Number of features, the numerical rank.
    clipped_ : float
        Share of negative eigenvalues in the sum of absolute ones.

    References
    ----------
    .. [1] M.-F. Balcan, A. Blum and S. Vempala, "Kernels as features: On
       kernels, margins, and low-dimensional mappings", Machine Learning 65
       (2006), Theorem 1.

    Examples
    --------
    >>> import numpy as np
    >>> from kbench.kernels import Polynomial
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> Z = BalcanF2(Polynomial(degree=2), n_landmarks=10, random_state=0).fit_transform(X)
    >>> Z.shape, bool(np.allclose(Z @ Z.T, Polynomial(degree=2)(X)))
    ((50, 6), True)
    """

    _mapping = "f2"

    _: KW_ONLY
    basis: str = choice("triangular", ("triangular", "eigen"))
    rank_tolerance: float | None = number(None, least=0, below=1, otherwise=(None,))

    def _fit_components(self, X, rng) -> None:
        tolerance = self.rank_tolerance
        if tolerance is None:
            tolerance = self.n_landmarks_ * float(np.finfo(X.dtype).eps)
        if isinstance(self.kernel_, Precomputed):
            K = self.kernel_(X[self.landmarks_], self.landmarks_).astype(np.float64)
        else:
            # in double precision, whatever the inputs are: it is inverted
            K = self.kernel_(self.landmarks_.astype(np.float64)).astype(np.float64)
        asymmetry = float(np.abs(K - K.T).max())
        if asymmetry > 1e-6 * np.abs(K).max():
            warnings.warn(
                f"kernel={self.kernel_!r} is not symmetric (|k(x, z) - k(z, x)| up to "
                f"{asymmetry:.3g}); the mean of both is used between landmarks",
                UserWarning,
                stacklevel=4,
            )
        components, clipped = orthonormal_basis((K + K.T) / 2, self.basis, float(tolerance))
        if not components.shape[1]:
            raise ValueError(
                f"kernel={self.kernel_!r} has no positive eigenvalue on the landmarks; "
                "there is nothing to project onto"
            )
        if clipped:
            warnings.warn(
                f"kernel={self.kernel_!r} is not positive semidefinite on the landmarks: "
                f"negative eigenvalues, {clipped:.2%} of the sum of absolute ones, "
                "were clipped to 0",
                UserWarning,
                stacklevel=4,
            )
        self.clipped_, self.components_ = clipped, components
        self.n_components_ = components.shape[1]

    def _parts(self, dtype):
        # landmarks that depend on others have no weight: leave them out
        used = np.flatnonzero(self.components_.any(axis=1))
        if len(used) == self.n_landmarks_:
            return self.landmarks_, self.components_.astype(dtype, copy=False)
        return self.landmarks_[used], self.components_[used].astype(dtype, copy=False)


@dataclass(eq=False, repr=False)
class BalcanF3(BalcanF2):
    """F2 followed by a random projection, ``F3(x) = F2(x) A / sqrt(n_components)``.

    A Johnson-Lindenstrauss projection keeps a margin gamma of the kernel's
    space at gamma/4 in a number of features that grows only with
    ``ln(1/epsilon)`` [1]_.

    Parameters
    ----------
    kernel, n_landmarks, sampling, margin, epsilon, delta, alpha, radius, random_state
        As in `BalcanF1`.
    n_components : int, "theory" or None, default None
        Number of features. "theory" computes it; None for half of the
        landmarks, or theory's number where `n_landmarks` is "theory". With no
        fewer than F2 has, there is nothing to gain: F2 is returned, with a
        warning.
    projection : {"gaussian", "rademacher"}, default "gaussian"
        Entries of A: standard normal, or -1 and 1 with equal probability.
    basis, rank_tolerance
        As in `BalcanF2`.

    Attributes
    ----------
    kernel_, landmarks_, landmark_rows_, n_landmarks_, clipped_
        As in `BalcanF2`.
    components_ : ndarray, shape (n_landmarks_, n_components_)
        ``F3(x) = F1(x) @ components_``.
    n_components_ : int
        Number of features.

    References
    ----------
    .. [1] M.-F. Balcan, A. Blum and S. Vempala, "Kernels as features: On
       kernels, margins, and low-dimensional mappings", Machine Learning 65
       (2006), Theorems 2 and 3.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> BalcanF3("gaussian", n_landmarks=30, n_components=8, random_state=0).fit_transform(X).shape
    (50, 8)
    """

    _mapping = "f3"

    _: KW_ONLY
    n_components: int | str | None = integer(None, least=1, otherwise=("theory", None))
    projection: str = choice("gaussian", ("gaussian", "rademacher"))

    def _fit_components(self, X, rng) -> None:
        number = self._n_components()
        super()._fit_components(X, rng)
        if number >= self.n_components_:
            if self.n_components is not None or self.n_landmarks == "theory":
                warnings.warn(
                    f"n_components={number} is not below the {self.n_components_} features of F2; "
                    "F2 is returned, without a random projection",
                    UserWarning,
                    stacklevel=4,
                )
            return
        shape = (self.n_components_, number)
        if self.projection == "gaussian":
            A = rng.standard_normal(shape)
        else:
            A = rng.choice([-1.0, 1.0], shape)
        self.components_ = self.components_ @ (A / np.sqrt(number))
        self.n_components_ = number

    def _n_components(self) -> int:
        number = self.n_components
        if number == "theory" or (number is None and self.n_landmarks == "theory"):
            return self._theory().n_components
        return max(1, self.n_landmarks_ // 2) if number is None else int(number)
