"""Properties of a dataset that are known before a fit, from its first training split.

    python -m tests.benchmarks.study.predictors SUITE.toml -o predictors.json [--span]

`kbench.evaluate` hands the training rows of split 0 to `Probe` after the preprocessing of the
suite. Nothing is computed from test rows. With ``--span``, errors of Gram matrices of unfitted
maps with the same bandwidth are computed too. Datasets that are in the file already are kept.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from .table import GAUSSIAN, Array

GRAM_ROWS = 500
N_LANDMARKS = 64
RIDGES = (1e-6, 1e-3, 1.0)
LEADING = 20
"""Directions of the span in which errors of maps are measured."""

SPAN_WIDTHS = (32, 64, 128, 256, 512, 1024, 2048, 4096)

FOUND: list[dict[str, Any]] = []
"""Result of the probe with the most rows."""


class Probe(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer that measures its training rows, and returns one column."""

    def __init__(self, span: bool = False) -> None:
        self.span = span

    def fit(self, X: Any, y: Any = None) -> Probe:
        """Keep what is known of the rows."""
        X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)
        # a warm-up fit has fewer rows, and repeated fits have the same
        if not FOUND or len(X) > FOUND[-1]["n_rows"]:
            FOUND[:] = [{**measure(X, np.asarray(y)), "n_rows": len(X)}]
            if self.span:
                FOUND[-1]["span"] = span_errors(X)
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X: Any) -> Array:
        """Return a column that says nothing."""
        return np.ones((X.shape[0], 1))


def measure(X: Array, y: Array, seed: int = 0) -> dict[str, Any]:
    """Return the predictors of a rule from training rows.

    ``effective_rank`` is (sum of eigenvalues)^2 / sum of squares of the centred Gaussian Gram
    matrix of 500 rows, with the median distance as bandwidth. ``landmark_gain`` is what 64
    landmarks add to R^2 of ridge regression on the inputs, by three folds of the training rows.
    """
    started = time.process_time()
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(X))[:GRAM_ROWS]
    squared = _squared_distances(X[rows], X[rows])
    off = squared[np.triu_indices(len(rows), 1)]
    median = float(np.sqrt(np.median(off))) if len(off) else 0.0
    bandwidth = median or 1.0
    K = np.exp(-squared / (2 * bandwidth**2))
    K = K - K.mean(axis=0) - K.mean(axis=1, keepdims=True) + K.mean()
    spectrum = np.clip(np.linalg.eigvalsh(K), 0.0, None)
    total = float(spectrum.sum())
    rank = total**2 / float((spectrum**2).sum()) if total > 0 else 1.0
    Y = _targets(y)
    landmarks = X[rng.permutation(len(X))[:N_LANDMARKS]]
    features = _nystroem(X, landmarks, bandwidth)
    gain = _r2(features, Y, rng) - _r2(X, Y, rng)
    found = {
        "log_rows": float(np.log(len(X))),
        "log_inputs": float(np.log(X.shape[1])),
        "log_effective_rank": float(np.log(max(rank, 1.0))),
        # distances grow with the root of the number of inputs
        "log_median_distance": float(np.log(bandwidth / np.sqrt(X.shape[1]))),
        "landmark_gain": gain,
    }
    return {**found, "cpu_s": time.process_time() - started}


def _squared_distances(X: Array, Y: Array) -> Array:
    squared = (X**2).sum(axis=1)[:, None] + (Y**2).sum(axis=1) - 2 * X @ Y.T
    return np.asarray(np.maximum(squared, 0.0))


def _nystroem(X: Array, landmarks: Array, bandwidth: float) -> Array:
    values, vectors = np.linalg.eigh(_gaussian(landmarks, landmarks, bandwidth))
    kept = values > 1e-10 * values.max()
    root = vectors[:, kept] / np.sqrt(values[kept])
    return np.asarray(_gaussian(X, landmarks, bandwidth) @ root)


def _gaussian(X: Array, Y: Array, bandwidth: float) -> Array:
    return np.asarray(np.exp(-_squared_distances(X, Y) / (2 * bandwidth**2)))


def _targets(y: Array) -> Array:
    """Return indicators of classes, or standardised numbers, shape (n, n_targets)."""
    if y.dtype.kind in "iubOUS":
        classes, codes = np.unique(y, return_inverse=True)
        return np.asarray(np.eye(len(classes))[codes])
    return np.asarray(((y - y.mean()) / (y.std() or 1.0))[:, None])


def _r2(Z: Array, Y: Array, rng: np.random.Generator, n_folds: int = 3) -> float:
    """Return R^2 of ridge regression over folds, with the best of three penalties."""
    folds = rng.permutation(len(Z)) % n_folds
    errors = np.zeros(len(RIDGES))
    for fold in range(n_folds):
        train, test = folds != fold, folds == fold
        center, mean = Z[train].mean(axis=0), Y[train].mean(axis=0)
        A, B = Z[train] - center, Y[train] - mean
        gram, product = A.T @ A, A.T @ B
        size = max(float(np.trace(gram)) / len(gram), 1e-12)
        for k, ridge in enumerate(RIDGES):
            W = np.linalg.solve(gram + ridge * size * np.eye(len(gram)), product)
            errors[k] += float(((Y[test] - mean - (Z[test] - center) @ W) ** 2).sum())
    spread = float(((Y - Y.mean(axis=0)) ** 2).sum())
    return 1 - float(errors.min()) / spread if spread > 0 else 0.0


def span_errors(X: Array, n_seeds: int = 3) -> dict[str, dict[str, dict[str, float]]]:
    """Return errors of Gram matrices on held-out rows by map and width, of one bandwidth.

    ``span_error`` is the error in the span of the k leading eigenvectors U of K with eigenvalues
    L: the norm of W' (K - Z Z') W over the root of k, where W = U L^(-1/2), so that all directions
    count alike. ``gram_error_same_bandwidth`` is the relative error of all of K.
    """
    from tests.benchmarks.canon import records, unfitted

    rows = np.random.default_rng(0).permutation(len(X))
    n_held = min(GRAM_ROWS, len(X) // 3)
    held, train = X[rows[:n_held]], X[rows[n_held:]]
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name in GAUSSIAN:
        kernel = records()[name].kernel
        for width in SPAN_WIDTHS:
            errors: list[tuple[float, float]] = []
            for seed in range(n_seeds):
                try:
                    map_ = unfitted(name, width, seed).fit(train)  # type: ignore[no-untyped-call]
                    Z = map_.transform(held)
                    K = _resolve(kernel)(map_, held, held)
                except (ValueError, TypeError):
                    errors = []
                    break
                errors.append(gram_distances(np.asarray(K), np.asarray(Z)))
            if errors:
                span, gram = np.mean(errors, axis=0)
                found.setdefault(name, {})[str(width)] = {
                    "span_error": float(span),
                    "gram_error_same_bandwidth": float(gram),
                }
    return found


def _resolve(reference: Any) -> Any:
    from kbench.registry.callables import resolve

    return resolve(reference)


def gram_distances(K: Array, Z: Array) -> tuple[float, float]:
    """Return the error in the span of the leading eigenvectors, and that of the Gram matrix.

    >>> gram_distances(np.diag([4.0, 1.0]), np.diag([2.0, 1.0]))
    (0.0, 0.0)
    """
    difference = K - Z @ Z.T
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    values, vectors = values[-LEADING:], vectors[:, -LEADING:]
    kept = values > 1e-8 * values.max()
    white = vectors[:, kept] / np.sqrt(values[kept])
    inside = np.linalg.norm(white.T @ difference @ white) / np.sqrt(kept.sum())
    return float(inside), float(np.linalg.norm(difference) / np.linalg.norm(K))


def read_suite(text: str) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return the datasets of a suite file with their protocols, by label."""
    table = tomllib.loads(text)
    found: dict[str, tuple[Any, dict[str, Any]]] = {}
    blocks = [table, *table.get("block", ())]
    for block in blocks:
        for dataset in block.get("datasets", ()):
            label = dataset if isinstance(dataset, str) else dataset.get("label", dataset["name"])
            protocol = {**table.get("protocol", {}), **block.get("protocol", {})}
            protocol |= table.get("dataset_protocols", {}).get(label, {})
            found.setdefault(label, (dataset, protocol))
    return found


def protocol_of(given: Mapping[str, Any]) -> Any:
    """Return the protocol of a suite, as far as it decides the rows that a map is fitted on."""
    from kbench import Protocol

    known = {each.name for each in fields(Protocol)} - {"scaling", "n_candidates"}
    kept = {name: value for name, value in given.items() if name in known}
    scaling = given.get("scaling", "minmax")
    if isinstance(scaling, str):
        kept["scaling"] = (scaling,)
    return Protocol(**kept)


def probe(dataset: Any, protocol: Mapping[str, Any], span: bool = False) -> dict[str, Any]:
    """Return the predictors of one dataset of a suite file."""
    import kbench

    FOUND.clear()
    made = protocol_of(protocol)
    for learner in ("dummy-majority", "dummy-mean"):
        try:
            kbench.evaluate(dataset, Probe(span), learner, protocol=made, n_splits=1)
        except kbench.KbenchError:
            if FOUND or learner == "dummy-mean":
                raise
        if FOUND:
            return FOUND[0]
    return {}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("suites", nargs="+", type=Path, metavar="SUITE.toml")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--span", action="store_true", help="measure errors of maps too")
    parser.add_argument("--data", type=Path, help="folder of files that a suite names")
    given = parser.parse_args(arguments)
    found = json.loads(given.out.read_text(encoding="utf-8")) if given.out.exists() else {}
    failed = []
    for path in given.suites:
        for label, (dataset, protocol) in read_suite(path.read_text(encoding="utf-8")).items():
            if label in found and (not given.span or "span" in found[label]):
                continue
            try:
                found[label] = probe(_move(dataset, given.data), protocol, given.span)
            except Exception as error:
                # one dataset that cannot be had does not cost the others theirs
                failed.append(f"{label}: {type(error).__name__}: {error}")
                continue
            given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for line in failed:
        print(line, file=sys.stderr)
    print(f"{given.out}: {len(found)} datasets, {len(failed)} failed")
    return 1 if failed else 0


def _move(dataset: Any, folder: Path | None) -> Any:
    """Let relative paths of files begin at a folder."""
    if folder is None or isinstance(dataset, str) or "path" not in dataset:
        return dataset
    return {**dataset, "path": str(folder / dataset["path"])}


if __name__ == "__main__":
    sys.exit(main())
