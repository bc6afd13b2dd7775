"""Speed of the mesh, search and fit on a large set, and what its parts are worth.

    python tests/benchmarks/bench_mesh.py [--rows 100000] [--repeat 5]
    python tests/benchmarks/bench_mesh.py --kdd [--rows 494021]
    python tests/benchmarks/bench_mesh.py --ablations [--dataset pendigits ...] [--rows 1500]

The first prints the transform against writing its CSR arrays once plus one sort of p
numbers per row and root, with numba's and numpy's kernels, and time per row over n, d and
roots. One thread; the methods take turns, and medians of CPU times are compared.

The second searches C of a linear SVM (3 folds, two values) on 4 roots, with fixed numbers of
rows and columns of KDDCup99, which comes from OpenML or its client's cache; with
../shared/openml-mirror next to the checkout, from there; else a synthetic set of its shape.

The third prints accuracies (mean of 2 random splits, C by 3-fold cross-validation) of the
mesh with 4 roots, of random binning with the same roots and at equal non-zeros (bandwidth
searched), and of the mesh without rotation, with two levels, with half of the pitch, and
projected.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
import warnings
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
os.environ["no_proxy"] = "127.0.0.1"

import numpy as np  # noqa: E402
from sklearn.model_selection import StratifiedKFold, train_test_split  # noqa: E402
from sklearn.preprocessing import MinMaxScaler  # noqa: E402
from sklearn.svm import LinearSVC  # noqa: E402
from turns import medians, writing  # noqa: E402

from kbench_nbcs import SimplicialMeshMap, _mesh, _mesh_cells  # noqa: E402

MIRROR = Path(__file__).parents[3] / "shared" / "openml-mirror" / "openml_mirror.py"
KDD = 1113
DATASETS = {"pendigits": 32, "optdigits": 28, "spambase": 44, "kr-vs-kp": 3, "splice": 46}


def with_numpy(function):
    """Call a function with the numpy kernels."""
    kept = _mesh.kernels
    try:
        _mesh.kernels = _mesh_cells
        return function()
    finally:
        _mesh.kernels = kept


def sorting(n, p, n_roots):
    """Sort p numbers per row and root, copied from elsewhere (a sort is in place)."""
    numbers = np.random.default_rng(0).random((n, p))
    rows = np.empty_like(numbers)

    def sort():
        for _ in range(n_roots):
            np.copyto(rows, numbers)
            rows.sort(axis=1)

    return sort


def speed(n, repeat):
    rng = np.random.default_rng(0)
    print(f"transform of its training rows; n = {n:,}; kernels: {_mesh.kernels.__name__}")
    print(
        f"{'d':>4}{'roots':>6}{'vertices':>10}   ns per row and root: write, sort, transform, numpy"
    )
    for d, n_roots, rows in ((16, 4, n), (16, 16, n // 4), (8, 4, n), (64, 4, n)):
        X = rng.standard_normal((rows, d))
        mesh = SimplicialMeshMap(n_roots, random_state=0).fit(X)
        p = mesh.dimension_
        found = medians(
            {
                "write": writing(rows, n_roots * (p + 1)),
                "sort": sorting(rows, p, n_roots),
                "numba": lambda mesh=mesh, X=X: mesh.transform(X),
                "numpy": lambda mesh=mesh, X=X: with_numpy(lambda: mesh.transform(X)),
            },
            repeat,
        )
        each = ", ".join(f"{seconds / rows / n_roots * 1e9:.0f}" for seconds in found.values())
        base = found["write"] + found["sort"]
        print(
            f"{d:4}{n_roots:6}{mesh.n_vertices_:10,}   {each}; ratio {found['numba'] / base:.2f}, "
            f"numpy {found['numpy'] / found['numba']:.2f} times that"
        )
    X = rng.standard_normal((n, 16))

    def line(title, cases):
        found = medians({key: call for key, (call, _) in cases.items()}, max(2, repeat // 2))
        per = ", ".join(f"{key}: {found[key] / cases[key][1] * 1e9:.0f}" for key in cases)
        print(f"{title:44}{per}")

    mesh = SimplicialMeshMap(4, random_state=0).fit(X[: n // 4])
    sizes = (n // 4, n // 2, n)
    line("ns a row over n", {m: (lambda m=m: mesh.transform(X[:m]), m) for m in sizes})
    fits = {m: (lambda m=m: SimplicialMeshMap(4, random_state=0).fit(X[:m]), m) for m in sizes}
    line("ns a row over n, fit", fits)
    cases = {}
    for n_roots in (1, 2, 4, 8):
        fitted = SimplicialMeshMap(n_roots, random_state=0).fit(X[: n // 4])
        cases[n_roots] = (lambda fitted=fitted: fitted.transform(X[: n // 4]), n // 4 * n_roots)
    line("ns a row and root over roots", cases)
    cases = {}
    for d in (4, 8, 16, 32):
        part = rng.standard_normal((n // 4, d))
        fitted = SimplicialMeshMap(4, projection_dim=None, random_state=0).fit(part)
        cases[d] = (lambda fitted=fitted, part=part: fitted.transform(part), n * (d + 1))
    line("ns a value over d = p (with a d x p product)", cases)


def fetched(data_id):
    from kbench_openml._source import load

    if MIRROR.exists():
        import openml

        spec = importlib.util.spec_from_file_location("openml_mirror", MIRROR)
        module = importlib.util.module_from_spec(spec)
        sys.dont_write_bytecode = True
        spec.loader.exec_module(module)
        with module.Mirror() as mirror:
            openml.config.server = mirror.url
            return load(data_id=data_id)
    return load(data_id=data_id)


def kdd(n):
    try:
        data = fetched(KDD)
        X, y, name = data.X, np.asarray(data.y), "KDDCup99"
        X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    except Exception as error:
        print(f"KDDCup99 cannot be had ({type(error).__name__}): a synthetic set of its shape")
        rng, name = np.random.default_rng(0), "synthetic, 23 clusters of 41 columns"
        y = rng.choice(23, size=n, p=np.r_[0.57, 0.22, 0.19, np.full(20, 0.001)])
        X = rng.standard_normal((23, 41))[y] * 3 + rng.standard_normal((n, 41))
    rows = np.random.default_rng(0).permutation(len(y))[:n]
    X, y = X[rows], y[rows]
    cut = len(y) * 2 // 3
    print(f"{name}: {cut:,} training rows, {X.shape[1]} columns, {len(np.unique(y))} classes")
    A, B, a, b = X[:cut], X[cut:], y[:cut], y[cut:]
    clock = time.process_time()
    fold = np.random.default_rng(1).integers(3, size=cut)
    values, scores = (0.1, 1.0), np.zeros(2)
    for k in range(3):
        Z, Z_out, _ = embedded(SimplicialMeshMap(4, random_state=0), A[fold != k], A[fold == k])
        for i, C in enumerate(values):
            svm = LinearSVC(C=C, tol=1e-3, dual=True).fit(Z, a[fold != k])
            scores[i] += svm.score(Z_out, a[fold == k]) / 3
    searched = time.process_time()
    Z, Z_out, mesh = embedded(SimplicialMeshMap(4, random_state=0), A, B)
    svm = LinearSVC(C=values[int(scores.argmax())], tol=1e-3, dual=True).fit(Z, a)
    fitted = time.process_time()
    print(
        f"search (3 folds, 2 values of C) {searched - clock:.1f} s, fit {fitted - searched:.1f} s "
        f"of CPU; {mesh.n_vertices_:,} columns, accuracy {svm.score(Z_out, b):.4f}"
    )


def embedded(mesh, X, X_out):
    mesh.fit(X)
    return mesh.transform(X), mesh.transform(X_out), mesh


def ablations(names, n):
    from kbench_baselines import RandomBinningFeatures

    def binning(n_grids):
        return [
            lambda seed, f=f: RandomBinningFeatures(n_grids, bandwidth_factor=f, random_state=seed)
            for f in (0.5, 1.0, 2.0)
        ]

    def mesh(n_roots=4, **params):
        return [lambda seed: SimplicialMeshMap(n_roots, random_state=seed, **params)]

    for name in names:
        data = fetched(DATASETS[name])
        X, y = np.asarray(data.X), np.asarray(data.y)
        p = min(16, X.shape[1])
        candidates = {
            "mesh, 4 roots": mesh(),
            "random binning, 4 grids": binning(4),
            f"random binning, {4 * (p + 1)} grids": binning(4 * (p + 1)),
            "not rotated": mesh(rotate=False),
            "two levels, 4 roots": mesh(n_levels=2),
            "two levels, 2 roots": mesh(2, n_levels=2),
            "pitch 0.75": mesh(pitch=0.75),
            "projected to 4": mesh(projection_dim=4),
            "projected to 4, 14 roots": mesh(14, projection_dim=4),
            "projected to 8, 8 roots": mesh(8, projection_dim=8),
            "all dimensions": mesh(projection_dim=None),
        }
        rows = min(n, len(y) * 7 // 10)
        print(f"\n{name}: {rows} training rows, {X.shape[1]} columns, {len(np.unique(y))} classes")
        print(f"{'':28}{'accuracy':>9}{'s.e.':>7}{'non-zeros':>11}{'columns':>9}{'CPU s':>8}")
        splits = [
            train_test_split(X, y, train_size=rows, random_state=seed, stratify=y)
            for seed in range(2)
        ]
        for label, makes in candidates.items():
            found = [measured(makes, *split, seed) for seed, split in enumerate(splits)]
            accuracy, n_test, nnz, columns, seconds = np.mean(found, axis=0)
            error = np.sqrt(accuracy * (1 - accuracy) / (2 * n_test))
            print(
                f"{label:28}{accuracy:9.4f}{error:7.4f}{nnz:11.0f}{columns:9.0f}{seconds:8.2f}",
                flush=True,
            )


def measured(makes, A, B, a, b, seed):
    """Accuracy with the best of several maps and values of C, and what it cost."""
    start = time.process_time()
    scaler = MinMaxScaler(clip=True).fit(A)
    A, B = scaler.transform(A), scaler.transform(B)
    folds = list(StratifiedKFold(3, shuffle=True, random_state=seed).split(A, a))
    best = (-1.0, None, None)
    for make in makes:
        values = (0.1, 1.0, 10.0)
        scores = np.zeros(len(values))
        for train, test in folds:
            Z, Z_out, _ = embedded(make(seed), A[train], A[test])
            for i, C in enumerate(values):
                svm = LinearSVC(C=C, tol=1e-3, dual=True).fit(Z, a[train])
                scores[i] += svm.score(Z_out, a[test]) / 3
        best = max(best, (scores.max(), make, values[int(scores.argmax())]), key=lambda t: t[0])
    _, make, C = best
    Z, Z_out, _ = embedded(make(seed), A, B)
    svm = LinearSVC(C=C, tol=1e-3, dual=True).fit(Z, a)
    seconds = time.process_time() - start
    return svm.score(Z_out, b), len(b), Z.nnz / len(a), Z.shape[1], seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--kdd", action="store_true")
    parser.add_argument("--ablations", action="store_true")
    parser.add_argument("--dataset", action="append", choices=list(DATASETS))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.kdd:
        kdd(args.rows or 494_021)
    elif args.ablations:
        ablations(args.dataset or list(DATASETS), args.rows or 1500)
    else:
        speed(args.rows or 100_000, args.repeat)


if __name__ == "__main__":
    main()
