"""Checks of datasets."""

import numpy as np

from kbench.features import read_parameters, resolve
from kbench.records import FEATURE_KINDS, Dataset, Ref
from kbench_testing._subject import Subject


def check_is_dataset(subject: Subject) -> None:
    """`load` returns a `Dataset`, read through its canonical form."""
    data = subject.load()
    if not isinstance(data, Dataset):
        raise subject.fail(f"load returns a {type(data).__name__}; return kbench.Dataset(...)")


def _load(subject: Subject) -> Dataset:
    data = subject.load()
    subject.skip_if(not isinstance(data, Dataset), "no Dataset: see check_is_dataset")
    return data


def check_shapes(subject: Subject) -> None:
    """Rows, labels, names and kinds fit together."""
    data = _load(subject)
    if data.X.ndim != 2 or 0 in data.X.shape:
        raise subject.fail(f"X has shape {data.X.shape}; it must be (n_samples, n_features)")
    n_samples, n_features = data.X.shape
    if data.y.shape != (n_samples,):
        raise subject.fail(f"y has shape {data.y.shape} for {n_samples} rows of X")
    for field in ("feature_names", "feature_kinds"):
        if len(getattr(data, field)) != n_features:
            raise subject.fail(f"{len(getattr(data, field))} {field} for {n_features} columns")
    strange = set(data.feature_kinds) - set(FEATURE_KINDS)
    subject.fail_if(strange, f"feature_kinds has {strange}; they are in {FEATURE_KINDS}")
    if data.pairwise and n_samples != n_features:
        raise subject.fail(f"is pairwise, and X has shape {data.X.shape}; it must be square")
    for split in data.splits:
        rows = np.concatenate([split.train, split.test, split.unlabeled])
        subject.fail_if(
            len(np.unique(rows)) != len(rows) or rows.min() < 0 or rows.max() >= n_samples,
            f"split {split.index} has a row twice or one that does not exist; its parts are "
            f"disjoint, from 0 to {n_samples - 1}",
        )


def check_finite(subject: Subject) -> None:
    """Inputs are floats and never infinite; missing values are NaN."""
    data = _load(subject)
    if hasattr(data.X, "tocsr") and data.X.format != "csr":
        raise subject.fail(f"X is a sparse {data.X.format} matrix; call X.tocsr()")
    if data.X.dtype not in (np.float64, np.float32):
        raise subject.fail(f"X is {data.X.dtype}; convert it to float64")
    values = data.X.data if hasattr(data.X, "tocsr") else data.X
    subject.fail_if(np.isinf(values).any(), "X has infinite values; a missing value is NaN")


def check_labels(subject: Subject) -> None:
    """Labels are 0..k-1, two or more, each with a name; targets are finite and not all equal."""
    data = _load(subject)
    y = np.asarray(data.y)
    if data.task == "regression":
        _check_targets(subject, y)
        return
    subject.fail_if(
        y.dtype.kind not in "iu",
        f"labels are {y.dtype}; they must be integers 0..k-1: target_names, y = "
        "numpy.unique(labels, return_inverse=True)",
    )
    classes = np.unique(y)
    subject.fail_if(
        len(classes) < 2 or not np.array_equal(classes, np.arange(len(classes))),
        f"labels are {classes[:5].tolist()}; they must be 0..k-1 without a gap, k >= 2: "
        "target_names, y = numpy.unique(labels, return_inverse=True)",
    )
    if len(data.target_names) != len(classes):
        raise subject.fail(f"{len(data.target_names)} target_names for {len(classes)} classes")


def _check_targets(subject: Subject, y: np.ndarray) -> None:
    """Refuse targets of regression that are not numbers, not finite or all equal."""
    subject.fail_if(y.dtype.kind not in "fiu", f"targets are {y.dtype}; convert them to float64")
    subject.fail_if(not np.isfinite(y).all(), "y has values that are not finite; drop these rows")
    if len(y) and y.min() == y.max():
        raise subject.fail(f"all targets are {y[0]:g}; nothing can be predicted")


def check_weights(subject: Subject) -> None:
    """Weights are one finite number >= 0 per row, not all 0."""
    data = _load(subject)
    if data.sample_weight is None:
        return
    weight = np.asarray(data.sample_weight)
    subject.fail_if(
        weight.shape != (data.X.shape[0],) or weight.dtype.kind != "f",
        f"sample_weight has shape {weight.shape} and dtype {weight.dtype}; give one float for "
        f"each of the {data.X.shape[0]} rows",
    )
    if not np.isfinite(weight).all() or weight.min() < 0 or not weight.any():
        raise subject.fail("sample_weight must be finite and nonnegative, and not 0 everywhere")


def check_checksum(subject: Subject) -> None:
    """Two loads give the same content."""
    subject.fail_if(
        _load(subject).checksum != _load(subject).checksum,
        "two loads return different content, so no result could be reused; use "
        "numpy.random.default_rng(seed), and sort the elements of sets",
    )


def check_expand(subject: Subject) -> None:
    """`expand` returns a list of `Ref`."""
    refs = resolve(subject.record.expand)(**subject.given())
    if not isinstance(refs, list | tuple) or not all(isinstance(ref, Ref) for ref in refs):
        raise subject.fail(f"expand returns {refs!r}; return a list of kbench.Ref")


def check_endings(subject: Subject) -> None:
    """`load` takes ``path`` and the parameters that the file extensions imply."""
    taken = read_parameters(subject.record.load)
    for ending, implied in subject.record.extensions.items():
        unknown = [name for name in ("path", *implied) if taken is not None and name not in taken]
        if unknown:
            raise subject.fail(f"load has no parameter {unknown[0]!r}, which {ending} files need")
