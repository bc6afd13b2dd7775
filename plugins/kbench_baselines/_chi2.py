"""Maps of the chi-squared kernels for histograms: scikit-learn's samplers."""

import numpy as np
from sklearn.kernel_approximation import AdditiveChi2Sampler, SkewedChi2Sampler
from sklearn.metrics.pairwise import additive_chi2_kernel
from sklearn.utils.validation import validate_data

from kbench.estimators import row_blocks
from kbench.parameters import check_integer, check_number
from kbench_baselines._base import FitsOnBlocks, dense


class AdditiveChi2Map(FitsOnBlocks, AdditiveChi2Sampler):
    """Sampled spectrum of the additive chi-squared kernel: scikit-learn's AdditiveChi2Sampler.

    The inputs must be >= 0.

    Parameters
    ----------
    sample_steps : int, default 2
        Number of points of the spectrum: there are ``2 sample_steps - 1`` features per input.
    sample_interval : float, optional
        Distance of the points; by default the best for 1, 2 or 3 of them.

    References
    ----------
    A. Vedaldi and A. Zisserman, Efficient additive kernels via explicit feature maps, IEEE PAMI
    34 (2012).

    Examples
    --------
    >>> AdditiveChi2Map().fit_transform([[0.0, 1.0]]).shape
    (1, 6)
    """


class SkewedChi2Map(FitsOnBlocks, SkewedChi2Sampler):
    """Random features of the skewed chi-squared kernel: scikit-learn's sampler.

    Differs in its default number of features, and asks for inputs >= 0 and a
    skewedness > 0, where scikit-learn accepts any inputs above -skewedness.

    Parameters
    ----------
    n_components : int, default 300
        Number of features.
    skewedness : float, default 1.0
        c > 0 in the kernel ``prod_j 2 sqrt(x_j + c) sqrt(z_j + c) / (x_j + z_j + 2 c)``.
    random_state : int, RandomState or None, default None
        Seed of frequencies and offsets.

    References
    ----------
    F. Li, C. Ionescu and C. Sminchisescu, Random Fourier approximations for
    skewed multiplicative histogram kernels, DAGM 2010, section 3.1.

    Examples
    --------
    >>> SkewedChi2Map(n_components=4, random_state=0).fit_transform([[0.0, 1.0]]).shape
    (1, 4)
    """

    def __init__(self, n_components=300, *, skewedness=1.0, random_state=None):
        super().__init__(
            n_components=n_components, skewedness=skewedness, random_state=random_state
        )

    def fit(self, X, y=None):
        """Draw the frequencies; `X` must be >= 0."""
        check_integer(self.n_components, "n_components", least=1)
        check_number(self.skewedness, "skewedness", above=0)
        for part in row_blocks(X):
            validate_data(self, part, ensure_non_negative=True)
        return SkewedChi2Sampler.fit(self, part)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


def skewed_chi2_gram(fitted, X, Y):
    """Gram matrix of the skewed chi-squared kernel of a fitted map."""
    # in u = log(x + c) the kernel is prod_j 1 / cosh((u_j - v_j) / 2)
    U, V = np.log(X + fitted.skewedness), np.log(Y + fitted.skewedness)
    logs = [np.log(np.cosh((row - V) / 2)).sum(axis=1) for row in U]
    return np.exp(-np.stack(logs).astype(np.float64))


def additive_chi2_gram(fitted, X, Y):
    """Gram matrix ``sum_j 2 x_j z_j / (x_j + z_j)`` that AdditiveChi2Sampler approximates."""
    X, Y = dense(X), dense(Y)
    # scikit-learn's kernel is - sum (x - z)^2 / (x + z)
    return (X.sum(axis=1)[:, None] + Y.sum(axis=1) + additive_chi2_kernel(X, Y)) / 2
