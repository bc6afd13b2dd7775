"""Targets and labels as standardised columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Targets:
    """What is fitted: targets, or labels as -1 and 1, in units of their deviations.

    Parameters
    ----------
    columns : ndarray, shape (n_rows, n_outputs)
        Standardised columns.
    strata : ndarray of int, shape (n_rows,)
        Numbers of the classes; 0 in regression.
    location, scale : ndarray, shape (n_outputs,)
        The columns are ``columns * scale + location`` in their own units.
    """

    columns: np.ndarray
    strata: np.ndarray
    location: np.ndarray
    scale: np.ndarray

    def original(self, columns: np.ndarray) -> np.ndarray:
        """Return predictions of the columns in their own units."""
        return columns * self.scale + self.location


def of_numbers(y: np.ndarray) -> Targets:
    """Return the targets of a regression."""
    return _standardised(y[:, None].astype(np.float64), np.zeros(len(y), dtype=np.intp))


def of_labels(y: np.ndarray) -> Targets:
    """Return a column for each class against the rest, and one column for two classes."""
    classes, strata = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError("y has one class, and a metric cannot be learned from it")
    columns = np.where(strata[:, None] == np.arange(len(classes)), 1.0, -1.0)
    return _standardised(columns[:, 1:] if len(classes) == 2 else columns, strata)


def _standardised(columns: np.ndarray, strata: np.ndarray) -> Targets:
    location, scale = columns.mean(axis=0), columns.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    return Targets((columns - location) / scale, strata, location, scale)
