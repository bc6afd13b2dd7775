"""Parts that the learners with a parameter `kernel` share."""

from collections.abc import Iterator

import numpy as np

from kbench.kernels import Precomputed, resolve_kernel

_BLOCK_ENTRIES, _LEAST_ENTRIES = 2**20, 2**15


class KernelMixin:
    """Gram matrix and tags of an estimator with a parameter `kernel`."""

    def _training_gram(self, X):
        """Set `kernel_`; return the rows, as the kernel takes them, and their Gram matrix."""
        self.kernel_ = resolve_kernel(self.kernel).resolve(X)
        rows = self.kernel_.take(X, np.arange(X.shape[0]))
        return rows, self.kernel_(X, rows if isinstance(self.kernel_, Precomputed) else None)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        precomputed = self.kernel == "precomputed" or isinstance(self.kernel, Precomputed)
        tags.input_tags.pairwise = precomputed
        return tags


def subproblem(kernel, X, rows):
    """Return the inputs of some training rows; of a Gram matrix the same columns too."""
    return X[np.ix_(rows, rows)] if isinstance(kernel, Precomputed) else X[rows]


def gram_blocks(
    kernel, X, centres, width: int = 1, entries: int = _BLOCK_ENTRIES
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield slices of rows and their Gram matrices against `centres`.

    A block has up to `entries` values, where a row counts as `width` at least. Nothing is
    yielded without centres: a kernel machine of none is 0.
    """
    n_centres = centres.shape[0]
    step = max(1, entries // max(width, n_centres, 1))
    for start in range(0, X.shape[0] if n_centres else 0, step):
        rows = slice(start, start + step)
        yield rows, np.asarray(kernel(X[rows], centres))


def kernel_sums(kernel, X, centres, coef, intercept, share: float = 1.0) -> np.ndarray:
    """Return ``K(X, centres) coef' + intercept``, shape (n_samples, n_sums), block by block.

    Blocks have the share of the entries that they have otherwise, but enough that calls of the
    kernel do not take longer than the values.
    """
    sums = np.tile(intercept, (X.shape[0], 1))
    entries = max(_LEAST_ENTRIES, int(share * _BLOCK_ENTRIES))
    for rows, K in gram_blocks(kernel, X, centres, entries=entries):
        sums[rows] += K @ coef.T
    return sums
