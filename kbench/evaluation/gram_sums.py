"""Sums over rows of an embedding and their targets, from which linear least squares are fitted."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from kbench.arrays import Array, indicators, like, namespace, take_columns, to_numpy
from kbench.evaluation.lazy_rows import Matrix, is_sparse
from kbench.evaluation.targets import Scale
from kbench.records import TaskType

STRIP = 1024
"""Columns of an embedding on a device whose products with those after them are computed at once."""


@dataclass(eq=False)
class Sums:
    """Weighted sums over rows of an embedding Z, with p columns, and of targets Y, with t.

    Learners that are fitted from sums get them from `mean`, `gram`, `target_mean`,
    `moments` and `classes`.

    Parameters
    ----------
    shift : ndarray, shape (p,)
        Subtracted from all rows of Z: sums of large numbers would lose their digits.
    n : float
        Number of rows, or sum of their weights.
    z, zz, y, zy, yy : ndarray
        Sums of z, z z', y, z y' and y y'; shapes (p,), (p, p), (t,), (p, t) and (t, t). On
        a device, `shift`, `z`, `zz` and `zy` are in the namespace of Z.
    classes : ndarray, optional
        Labels that the columns of Y indicate by 0 and 1; None for regression.
    """

    shift: np.ndarray
    n: float
    z: np.ndarray
    zz: np.ndarray
    y: np.ndarray
    zy: np.ndarray
    yy: np.ndarray
    classes: np.ndarray | None = None

    @classmethod
    def zero(cls, shift: np.ndarray, n_targets: int) -> "Sums":
        """Return the sums over no rows."""
        xp, p, t = namespace(shift), shift.shape[0], n_targets
        z, zz, zy = (
            xp.zeros(size, dtype=xp.float64, device=shift.device) for size in (p, (p, p), (p, t))
        )
        return cls(shift, 0.0, z, zz, np.zeros(t), zy, np.zeros((t, t)))

    @classmethod
    def combine(cls, parts: "Iterable[Sums]") -> "Sums":
        """Return the sums over the rows of several parts with one shift."""
        parts = list(parts)
        total = cls.zero(parts[0].shift, len(parts[0].y))
        for part in parts:
            total.n += part.n
            for name in ("z", "zz", "y", "zy", "yy"):
                getattr(total, name)[...] += getattr(part, name)
        return total

    def add(
        self,
        Z: Matrix,
        Y: np.ndarray,
        weight: np.ndarray | None = None,
        buffer: np.ndarray | None = None,
    ) -> None:
        """Add a block of rows; products are computed in the type of `Z`, sums in float64.

        A `buffer` for shifted rows, as large as `Z` or larger, saves its allocation. The
        rows of a CSR matrix stay sparse; there is no shift then.
        """
        if is_sparse(Z):
            assert not self.shift.any()
        elif namespace(Z) is not np:
            Z = Z - like(self.shift, Z)
        else:
            Z = np.subtract(
                Z, self.shift.astype(Z.dtype), out=None if buffer is None else buffer[: len(Z)]
            )
        # a column of ones gives the sums of z and y, and the number of rows
        Y = np.column_stack([Y, np.ones(len(Y))])
        if weight is not None:
            root = np.sqrt(weight)[:, None]
            scale = like(root, Z)
            Z, Y = Z.multiply(scale).tocsr() if is_sparse(Z) else Z * scale, Y * root
        of_z, of_y = Z.T @ like(Y, Z), Y.T @ Y
        if namespace(Z) is np:
            products = Z.T @ Z
            self.zz += products.toarray() if is_sparse(products) else products
        else:
            self._add_strips(Z)
        self.zy += of_z[:, :-1]
        self.z += of_z[:, -1]
        self.yy += of_y[:-1, :-1]
        self.y += of_y[:-1, -1]
        self.n += float(of_y[-1, -1])

    def _add_strips(self, Z: Array) -> None:
        """Add Z'Z, of each two strips of columns one product, as numpy does for columns."""
        for start in range(0, p := Z.shape[1], STRIP):
            stop = min(start + STRIP, p)
            products = Z[:, start:stop].T @ Z[:, start:]
            self.zz[start:stop, start:] += products
            self.zz[stop:, start:stop] += products[:, stop - start :].T

    @property
    def mean(self) -> Array:
        """Mean of the rows of Z."""
        return self.shift + self.z / self.n

    @property
    def gram(self) -> Array:
        """Sum of (z - mean)(z - mean)'."""
        return self.zz - self.z[:, None] * (self.z / self.n)[None, :]

    @property
    def target_mean(self) -> np.ndarray:
        """Mean of the rows of Y."""
        return np.asarray(self.y / self.n)

    @property
    def moments(self) -> Array:
        """Sum of (z - mean)(y - target_mean)'."""
        return self.zy - self.z[:, None] * like(self.y / self.n, self.z)[None, :]

    def largest_eigenvalue(self) -> float:
        """Return the largest eigenvalue of `gram`."""
        from scipy.sparse.linalg import LinearOperator, eigsh

        G = self.gram
        if G.shape[0] == 1:
            return float(G[0, 0])
        products = LinearOperator(
            G.shape, lambda v: to_numpy(G @ like(v.ravel(), G)), dtype=np.float64
        )
        options = {"which": "LA", "v0": np.ones(G.shape[0]), "tol": 1e-3}
        return float(eigsh(products, 1, return_eigenvectors=False, **options)[0])

    def squared_errors(self, W: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the mean squared errors of the columns of ``Z @ W + b`` for one target."""
        mean = self.target_mean[0]
        variance = self.yy[0, 0] - self.n * mean**2
        products = to_numpy(self.gram @ like(W, self.zz))
        explained = 2 * to_numpy(self.moments[:, 0]) @ W - np.einsum("ij,ij->j", W, products)
        bias = mean - to_numpy(self.mean) @ W - b
        return np.asarray(np.maximum(0.0, (variance - explained) / self.n) + bias**2)


class Targets:
    """Targets of the training set in the columns that `Sums` have, for some of its rows.

    Labels become indicators of classes, whose numbers `codes` has. Numbers are standardised by
    `scale`, which is that of all rows.
    """

    def __init__(self, y: np.ndarray, task: TaskType, weight: np.ndarray | None = None) -> None:
        self.scale = Scale.fit(y, task, weight)
        self.classes: np.ndarray | None = None
        self.codes, self.n_columns = self.scale.standardise(y), 1
        if task == "classification":
            self.classes, self.codes = np.unique(y, return_inverse=True)
            self.n_columns = len(self.classes)

    def block(self, rows: np.ndarray) -> np.ndarray:
        """Return the targets of some rows, shape (n, n_columns)."""
        if self.classes is None:
            return self.codes[rows, None]
        return np.asarray(indicators(self.codes[rows], self.n_columns, np.empty(0)))

    def select_present(self, sums: Sums, rows: np.ndarray) -> Sums:
        """Return sums over `rows` with the columns of the classes that these rows have."""
        if self.classes is None:
            return sums
        present = np.bincount(self.codes[rows], minlength=self.n_columns) > 0
        y, yy = sums.y[present], sums.yy[np.ix_(present, present)]
        zy = take_columns(sums.zy, present)
        return replace(sums, y=y, zy=zy, yy=yy, classes=self.classes[present])
