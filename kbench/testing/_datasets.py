"""Checks of datasets."""

from __future__ import annotations

import numpy as np

from kbench.planning.lines import parameters_of
from kbench.records import Dataset, Ref
from kbench.registry.registry import resolve
from kbench.testing._component import Component


def check_is_dataset(component: Component) -> None:
    """`load` returns a `Dataset`, read through its canonical form."""
    found = component.load()
    if not isinstance(found, Dataset):
        raise component.fail(f"load returns a {type(found).__name__}; return kbench.Dataset(...)")


def _loaded(component: Component) -> Dataset:
    found = component.load()
    if not isinstance(found, Dataset):
        raise component.skip("no Dataset: see check_is_dataset")
    return found


def check_shapes(component: Component) -> None:
    """Rows, labels, names and kinds fit together."""
    data = _loaded(component)
    if data.X.ndim != 2 or 0 in data.X.shape:
        raise component.fail(f"X has shape {data.X.shape}; it must be (n_samples, n_features)")
    n_samples, n_features = data.X.shape
    if data.y.shape != (n_samples,):
        raise component.fail(f"y has shape {data.y.shape} for {n_samples} rows of X")
    for what in ("feature_names", "feature_kinds"):
        if len(getattr(data, what)) != n_features:
            raise component.fail(f"{len(getattr(data, what))} {what} for {n_features} columns")
    strange = set(data.feature_kinds) - {"numeric", "nominal"}
    if strange:
        raise component.fail(f"feature_kinds has {strange}; they are 'numeric' or 'nominal'")
    if data.pairwise and n_samples != n_features:
        raise component.fail(f"is pairwise, and X has shape {data.X.shape}; it must be square")
    for each in data.splits:
        rows = np.concatenate([each.train, each.test, each.unlabelled])
        if len(np.unique(rows)) != len(rows) or rows.min() < 0 or rows.max() >= n_samples:
            raise component.fail(
                f"split {each.index} has a row twice or one that does not exist; its parts are "
                f"disjoint, from 0 to {n_samples - 1}"
            )


def check_finite(component: Component) -> None:
    """Inputs are floats and never infinite; missing values are NaN."""
    data = _loaded(component)
    if hasattr(data.X, "tocsr") and data.X.format != "csr":
        raise component.fail(f"X is a sparse {data.X.format} matrix; call X.tocsr()")
    if data.X.dtype not in (np.float64, np.float32):
        raise component.fail(f"X is {data.X.dtype}; convert it to float64")
    values = data.X.data if hasattr(data.X, "tocsr") else data.X
    if np.isinf(values).any():
        raise component.fail("X has infinite values; a missing value is NaN")


def check_labels(component: Component) -> None:
    """Labels are 0..k-1, two or more, all of them present, each with a name."""
    data = _loaded(component)
    y = np.asarray(data.y)
    if y.dtype.kind not in "iu":
        raise component.fail(
            f"labels are {y.dtype}; they are integers 0..k-1: "
            "target_names, y = numpy.unique(labels, return_inverse=True)"
        )
    found = np.unique(y)
    if len(found) < 2 or not np.array_equal(found, np.arange(len(found))):
        raise component.fail(
            f"labels are {found[:5].tolist()}; they are 0..k-1 without a gap, two or more: "
            "target_names, y = numpy.unique(labels, return_inverse=True)"
        )
    if len(data.target_names) != len(found):
        raise component.fail(f"{len(data.target_names)} target_names for {len(found)} classes")


def check_checksum(component: Component) -> None:
    """Two loads give the same content."""
    if _loaded(component).checksum != _loaded(component).checksum:
        raise component.fail(
            "two loads give different content, so no result could ever be reused; draw with "
            "numpy.random.default_rng(seed), sort what came from a set"
        )


def check_expand(component: Component) -> None:
    """`expand` returns a list of `Ref`."""
    found = resolve(component.record.expand)(**component.given())
    if not isinstance(found, list | tuple) or not all(isinstance(each, Ref) for each in found):
        raise component.fail(f"expand returns {found!r}; return a list of kbench.Ref")


def check_endings(component: Component) -> None:
    """`load` takes ``path`` and the parameters that the endings of files imply."""
    taken = parameters_of(component.record.load)
    for ending, implied in component.record.endings.items():
        unknown = [name for name in ("path", *implied) if taken is not None and name not in taken]
        if unknown:
            raise component.fail(
                f"load has no parameter {unknown[0]!r}, which files that end in {ending} give it"
            )
