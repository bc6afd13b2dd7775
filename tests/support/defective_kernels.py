"""Kernels with one planted defect each, and the check that must catch it."""

from dataclasses import dataclass

import numpy as np

from kbench.kernels import Kernel, Polynomial


@dataclass(frozen=True)
class Skew(Polynomial):
    def _gram(self, X, Y):
        Y = X if Y is None else Y
        return super()._gram(X, Y) + 0.01 * X[:, :1] ** 2

    diag = Kernel.diag


@dataclass(frozen=True)
class Distance(Kernel):
    def _gram(self, X, Y):
        Y = X if Y is None else Y
        return np.abs(X[:, None] - Y[None]).sum(axis=2)


@dataclass(frozen=True)
class WrongDiag(Polynomial):
    def diag(self, X):
        return np.ones(len(X))


class Batched:
    def __call__(self, X, Y):
        return np.asarray(X) @ np.asarray(Y).T * len(Y) * len(X)

    def diag(self, X):
        return np.diagonal(self(X, X))

    def __repr__(self):
        return "Batched()"


class Illegible(Polynomial):
    def __repr__(self):
        return "Polynomial(degree=7)"


class Narrow:
    def __call__(self, X, Y):
        return np.asarray(X) @ np.asarray(Y[:-1]).T if len(Y) == 7 else X @ Y.T

    def diag(self, X):
        return (X**2).sum(axis=1)

    def __repr__(self):
        return "Narrow()"


class Scribbling:
    def __call__(self, X, Y):
        K = np.array(X) @ np.array(Y).T
        X += 1
        return K

    def diag(self, X):
        return (X**2).sum(axis=1)

    def __repr__(self):
        return "Scribbling()"


KERNEL_DEFECTS = {
    Skew: "check_symmetry",
    Distance: "check_psd",
    WrongDiag: "check_diag",
    Batched: "check_chunks",
    Illegible: "check_repr",
    Narrow: "check_gram",
    Scribbling: "check_inputs_untouched",
}
