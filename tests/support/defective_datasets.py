"""Datasets with one planted defect each, and the check that must catch it."""

import numpy as np

from kbench import Dataset

X_SMALL = np.arange(12.0).reshape(6, 2)
Y_SMALL = np.array([0, 1, 0, 1, 0, 1])


def dataset(**changed):
    return Dataset("small", **{"X": X_SMALL, "y": Y_SMALL, **changed})


DATASET_DEFECTS = [
    (lambda: (X_SMALL, Y_SMALL), "check_is_dataset"),
    (lambda: dataset(y=Y_SMALL[:-2]), "check_shapes"),
    (lambda: dataset(feature_names=["one"]), "check_shapes"),
    (lambda: dataset(feature_kinds=["numeric", "colour"]), "check_shapes"),
    (lambda: dataset(X=np.where(X_SMALL > 10, np.inf, X_SMALL)), "check_finite"),
    (lambda: dataset(X=X_SMALL.astype(int)), "check_finite"),
    (lambda: dataset(y=Y_SMALL + 1), "check_labels"),
    (lambda: dataset(y=np.zeros(6, dtype=int)), "check_labels"),
    (lambda: dataset(y=Y_SMALL.astype(float)), "check_labels"),
    (lambda: dataset(y=np.full(6, 0.5)), "check_labels"),
    (lambda: dataset(y=np.where(Y_SMALL, np.nan, 0.5)), "check_labels"),
    (lambda: dataset(y=Y_SMALL + 0.5, sample_weight=-np.ones(6)), "check_weights"),
    (lambda: dataset(sample_weight=np.ones((6, 1))), "check_weights"),
    (lambda: dataset(sample_weight=np.zeros(6)), "check_weights"),
    (lambda: dataset(X=np.random.default_rng().random((6, 2))), "check_checksum"),
]
