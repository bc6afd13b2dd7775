"""Speed of the NBCS map, and accuracy against cost beside other methods.

    python tests/benchmarks/bench_nbcs.py [--rows 500000] [--repeat 7]
    python tests/benchmarks/bench_nbcs.py --curves [--max-rows 4000] [--dataset letter ...]

The first prints ratios: the transform against writing its CSR arrays once, against
scikit-learn's maps with as many components as a row of NBCS has non-zeros, and the
numpy kernels against numba's; then time a row over n, depth and d, and memory beyond
the output. One thread; the methods take turns, and medians are compared.

The second prints accuracy, search and fit time, prediction time a row and stored floats
on real data, each map with a linear SVM (one-against-rest, C by 3-fold cross-validation),
1-NN and gradient boosting beside them. The data come from OpenML or its client's cache;
with ../shared/openml-mirror next to the checkout, from there.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import os
import sys
import time
import tracemalloc
import warnings
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
os.environ["no_proxy"] = "127.0.0.1"

import numpy as np  # noqa: E402
from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: E402
from sklearn.kernel_approximation import Nystroem, RBFSampler  # noqa: E402
from sklearn.model_selection import StratifiedKFold, train_test_split  # noqa: E402
from sklearn.neighbors import KNeighborsClassifier  # noqa: E402
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures  # noqa: E402
from turns import medians, writing  # noqa: E402

from kbench_nbcs import NestedBarycentricMap, _descent, _forest, _roots  # noqa: E402

MIRROR = Path(__file__).parents[3] / "shared" / "openml-mirror" / "openml_mirror.py"
DATASETS = {
    "letter": 6,
    "pendigits": 32,
    "satimage": 182,
    "segment": 36,
    "optdigits": 28,
    "spambase": 44,
    "skin-segmentation": 1502,
    "shuttle": 40685,
}


def with_numpy(function):
    """Call a function with the numpy kernels."""
    modules = (_forest, _roots)
    kept = [module.kernels for module in modules]
    try:
        for module in modules:
            module.kernels = _descent
        return function()
    finally:
        for module, kernels in zip(modules, kept, strict=True):
            module.kernels = kernels


def one_root(depth=3, **params):
    return NestedBarycentricMap(depth, random_state=0, **params)


def ratios(n, repeat, d=16):
    X = np.random.default_rng(0).random((n, d))
    maps = {
        "nbcs, corner": one_root(),
        "nbcs, rotated": one_root(rotate=True),
        "RBFSampler": RBFSampler(n_components=d + 1, random_state=0),
        "Nystroem": Nystroem(n_components=d + 1, random_state=0),
        "PolynomialFeatures(2)": PolynomialFeatures(2),
    }
    functions = {"write": writing(n, d + 1)}
    for name, each in maps.items():
        # everything inside the roots: no row has to be clipped
        each.fit(X if name.startswith("nbcs") else X[:20_000])
        functions[name] = lambda each=each: each.transform(X)
    for name in ("nbcs, corner", "nbcs, rotated"):
        functions[f"{name}, numpy"] = lambda name=name: with_numpy(functions[name])
    found = medians(functions, repeat)
    print(f"transform, n = {n:,}, d = {d}, depth 3, one root; kernels: {_forest.kernels.__name__}")
    print(f"{'':28}{'ms':>9}{'M rows/s':>10}{'/ write':>9}{'/ corner':>9}{'/ rotated':>10}")
    for name, seconds in found.items():
        print(
            f"{name:28}{seconds * 1e3:9.1f}{n / seconds / 1e6:10.2f}{seconds / found['write']:9.2f}"
            f"{seconds / found['nbcs, corner']:9.2f}{seconds / found['nbcs, rotated']:10.2f}"
        )


def scaling(n, repeat):
    def line(title, cases):
        found = medians({key: call for key, (call, _) in cases.items()}, repeat)
        per = ", ".join(f"{key}: {found[key] / cases[key][1] * 1e9:.1f}" for key in cases)
        print(f"{title:44}{per}")

    rng = np.random.default_rng(0)
    X = rng.random((n, 16))
    nbcs = one_root(rotate=True).fit(X[:20_000])
    sizes = [n // 4, n // 2, n]
    line("ns a row over n", {m: (lambda m=m: nbcs.transform(X[:m]), m) for m in sizes})
    fits = {m: (lambda m=m: one_root(rotate=True).fit(X[:m]), m) for m in sizes}
    line("ns a row over n, fit", fits)
    cases = {}
    for depth in (1, 2, 3, 4, 5):
        fitted = one_root(depth, rotate=True).fit(X[:20_000])
        cases[depth] = (lambda fitted=fitted: fitted.transform(X), n)
    line("ns a row over depth (d = 16)", cases)
    for root in ("corner", "regular"):
        cases = {}
        for d in (8, 16, 32, 64):
            X_d = rng.random((n // 4, d))
            fitted = one_root(root=root, rotate=root == "regular").fit(X_d[:20_000])
            call = lambda fitted=fitted, X_d=X_d: fitted.transform(X_d)  # noqa: E731
            cases[d] = (call, n // 4 * (d + 1))
        line(f"ns a value over d, {root} root", cases)
    for m in sizes:
        part = X[:m]
        tracemalloc.start()
        Z = nbcs.transform(part)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        size = Z.data.nbytes + Z.indices.nbytes + Z.indptr.nbytes
        print(f"memory beyond the output, n = {m:,}: {(peak - size) / 2**20:.1f} MiB")


def methods(d):
    """Maps for the curves, by name; each takes the training inputs' median distance."""

    def rotated(n_roots, depth):
        return lambda _: NestedBarycentricMap(depth, n_roots=n_roots, rotate=True, random_state=0)

    found = {f"nbcs, depth {q}": lambda _, q=q: NestedBarycentricMap(q) for q in (2, 3)}
    sizes = itertools.product((1, 4, 16), (1, 2, 3))
    found |= {f"nbcs-rotated {r} roots, depth {q}": rotated(r, q) for r, q in sizes}
    for k in (64, 256, 1024):
        found[f"nystroem {k}"] = lambda s, k=k: Nystroem(
            gamma=2 / s**2, n_components=k, random_state=0
        )
        found[f"rff {k}"] = lambda s, k=k: RBFSampler(
            gamma=2 / s**2, n_components=k, random_state=0
        )
    if d <= 40:
        found["polynomial 2"] = lambda _: PolynomialFeatures(2)
    return found


def curve(name, X, y):
    from kbench_learners import LinearSVM

    rng = np.random.default_rng(0)
    A, B, a, b = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    scaler = MinMaxScaler(clip=True).fit(A)
    A, B = scaler.transform(A), scaler.transform(B)
    pairs = rng.integers(0, len(A), (2, 2000))
    spread = max(np.median(np.linalg.norm(A[pairs[0]] - A[pairs[1]], axis=1)), 1e-3)
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(A, a))
    values = [2.0**k for k in (-5, 0, 5, 10, 15)]
    print(f"\n{name}: {len(a)} training rows, {X.shape[1]} columns, {len(np.unique(y))} classes")
    print(f"{'':26}{'accuracy':>9}{'search+fit s':>14}{'predict us/row':>16}{'floats':>10}")

    def show(label, model, seconds, predict, floats, note=""):
        start = time.perf_counter()
        accuracy = np.mean(predict(B) == b)
        rate = (time.perf_counter() - start) / len(b) * 1e6
        print(f"{label:26}{accuracy:9.4f}{seconds:14.2f}{rate:16.2f}{floats:10d}{note}", flush=True)

    for label, make in methods(A.shape[1]).items():
        start = time.perf_counter()
        scores = np.zeros(len(values))
        for train, test in folds:
            feature_map = make(spread).fit(A[train])
            fitted = LinearSVM().fit_path(feature_map.transform(A[train]), a[train], values)
            Z = feature_map.transform(A[test])
            scores += [np.mean(each.predict(Z) == a[test]) for each in fitted]
        feature_map = make(spread).fit(A)
        svm = LinearSVM(C=values[int(np.argmax(scores))]).fit(feature_map.transform(A), a)
        seconds = time.perf_counter() - start
        floats = svm.coef_.size + svm.intercept_.size
        if label.startswith("nbcs"):
            floats += sum(root.vertices.size for root in feature_map._roots)
        elif label.startswith("nystroem"):
            floats += feature_map.components_.size + feature_map.normalization_.size
        elif label.startswith("rff"):
            floats += feature_map.random_weights_.size + feature_map.random_offset_.size
        note = f"   C = 2^{np.log2(svm.C):.0f}" + ("" if svm.converged_ else ", not converged")
        show(
            label,
            svm,
            seconds,
            lambda T, m=feature_map, s=svm: s.predict(m.transform(T)),
            floats,
            note,
        )
    for label, model in (
        ("1-NN", KNeighborsClassifier(1)),
        ("gradient boosting", HistGradientBoostingClassifier(early_stopping=False, random_state=0)),
    ):
        start = time.perf_counter()
        model.fit(A, a)
        seconds = time.perf_counter() - start
        nodes = getattr(model, "_predictors", None)
        # a node of a tree has a threshold, a column, two children and a value
        floats = A.size if nodes is None else 5 * sum(len(t.nodes) for s in nodes for t in s)
        show(label, model, seconds, model.predict, floats)


def curves(names, max_rows):
    from kbench_openml._source import load

    if MIRROR.exists():
        import openml

        spec = importlib.util.spec_from_file_location("openml_mirror", MIRROR)
        module = importlib.util.module_from_spec(spec)
        sys.dont_write_bytecode = True
        spec.loader.exec_module(module)
        mirror = module.Mirror()
        mirror.__enter__()
        openml.config.server = mirror.url
    for name in names:
        data = load(data_id=DATASETS[name])
        rows = np.random.default_rng(0).permutation(len(data.y))[:max_rows]
        X, y = np.asarray(data.X)[rows], np.asarray(data.y)[rows]
        common = np.isin(y, np.flatnonzero(np.bincount(y) >= 10))  # shuttle's rarest classes
        curve(name, X[common], y[common])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--curves", action="store_true")
    parser.add_argument("--max-rows", type=int, default=4000)
    parser.add_argument("--dataset", action="append", choices=list(DATASETS))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.curves:
        curves(args.dataset or list(DATASETS), args.max_rows)
        return
    ratios(args.rows, args.repeat)
    scaling(args.rows // 2, max(3, args.repeat // 2))


if __name__ == "__main__":
    main()
