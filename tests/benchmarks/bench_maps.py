"""Time of one row of each map against inputs and features, in turns in one run.

    python tests/benchmarks/bench_maps.py [--rounds 7] [--json FILE]

CPU time with one BLAS thread. The first table is the claim: with 1,024 inputs and 4,096 features,
structured maps against the dense product. The second one has the number of inputs from which
structured maps are faster, and the third one the time of a row for every map.
"""

import argparse
import json
import os
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import time  # noqa: E402

import numpy as np  # noqa: E402

from kbench_baselines import (  # noqa: E402
    FastfoodFeatures,
    LeverageFourierFeatures,
    MondrianFeatures,
    NystroemMap,
    OptimizedMaclaurinFeatures,
    OrthogonalFourierFeatures,
    PolynomialSketch,
    ProductSketch,
    RandomBinningFeatures,
    RandomFourierFeatures,
    RandomMaclaurinFeatures,
    RandomTreesFeatures,
    SplineFeatures,
    StructuredOrthogonalFeatures,
)

DENSE = {"rff": RandomFourierFeatures, "orthogonal-rff": OrthogonalFourierFeatures}
STRUCTURED = {"fastfood": FastfoodFeatures, "sorf": StructuredOrthogonalFeatures}
EVERY = {
    **DENSE,
    **STRUCTURED,
    "leverage-rff": lambda n, **seed: LeverageFourierFeatures(n, pool_factor=2, **seed),
    "product-sketch": ProductSketch,
    "product-sketch-srht": lambda n, **seed: ProductSketch(n, projection="srht", **seed),
    "product-sketch-countsketch": lambda n, **seed: ProductSketch(
        n, projection="countsketch", **seed
    ),
    "polynomial-sketch": PolynomialSketch,
    "optimized-maclaurin": OptimizedMaclaurinFeatures,
    "random-maclaurin": RandomMaclaurinFeatures,
    "nystroem": NystroemMap,
    "random-binning": lambda n, **seed: RandomBinningFeatures(max(1, n // 10), **seed),
    "mondrian": lambda n, **seed: MondrianFeatures(max(1, n // 10), **seed),
    "tree-embedding": lambda n, **seed: RandomTreesFeatures(max(1, n // 32), **seed),
    "splines": lambda n, **seed: SplineFeatures(),
}


def timed(maps, X, rounds):
    """Microseconds of CPU per row: the least of several rounds, in turns."""
    least = dict.fromkeys(maps, np.inf)
    for _ in range(rounds):
        for name, fitted in maps.items():
            start = time.process_time()
            fitted.transform(X)
            least[name] = min(least[name], time.process_time() - start)
    return {name: seconds / len(X) * 1e6 for name, seconds in least.items()}


def fitted(makes, X, n_components):
    return {name: make(n_components, random_state=0).fit(X) for name, make in makes.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json")
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    found = {"claim": {}, "inputs": {}, "maps": {}}

    print("1,024 inputs, 4,096 features: microseconds of CPU per row")
    for dtype in (np.float64, np.float32):
        X = rng.normal(size=(512, 1024)).astype(dtype)
        times = timed(fitted({**DENSE, **STRUCTURED}, X, 4096), X, given.rounds)
        found["claim"][dtype.__name__] = times
        print(f"{dtype.__name__:8}", ", ".join(f"{k} {v:.1f}" for k, v in times.items()))
        for name in STRUCTURED:
            ratios = [f"{times[dense] / times[name]:.2f} x {dense}" for dense in DENSE]
            print(f"{'':8} {name}: {', '.join(ratios)}")

    print("\ninputs d with D = 4,096 features, float64: microseconds per row")
    for d in (16, 32, 64, 128, 256, 512, 1024, 2048):
        X = rng.normal(size=(512, d))
        times = timed(fitted({**DENSE, **STRUCTURED}, X, 4096), X, given.rounds)
        found["inputs"][d] = times
        print(f"{d:5}", ", ".join(f"{name} {value:.1f}" for name, value in times.items()))

    print("\nevery map, float64: microseconds per row")
    for d, n in ((16, 300), (16, 1200), (128, 300), (128, 1200), (1024, 1200)):
        X = np.abs(rng.normal(size=(1000, d)))
        times = timed(fitted(EVERY, X, n), X, max(2, given.rounds // 2))
        found["maps"][f"{d} x {n}"] = times
        print(f"d {d}, D {n}:", ", ".join(f"{name} {value:.1f}" for name, value in times.items()))
    if given.json:
        Path(given.json).write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
