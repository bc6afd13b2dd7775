"""Time of one row of each map against inputs and features, in turns in one run.

    python tests/benchmarks/bench_maps.py [--rounds 7] [--json docs/measured/map_costs.json]

CPU time with one BLAS thread, medians of rounds. The first table is the claim: with 1,024 inputs
and 4,096 features, structured maps against the dense product. The second one has the number of
inputs from which structured maps are faster. The third one has every map, with 1,024 features by
inputs and with 64 inputs by features; `draw_costs.py` draws it.
"""

import argparse
import json
import os
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import time  # noqa: E402

import numpy as np  # noqa: E402
from canon import records, unfitted  # noqa: E402

DENSE, STRUCTURED = ("rff", "orthogonal-rff"), ("fastfood", "sorf")
SIZES = [(d, 1024) for d in (4, 16, 64, 256, 1024)] + [(64, n) for n in (64, 256, 4096)]
MAX_INPUTS = {
    # d (d + 1) / 2 products, and (d + 1)^2 cells
    **dict.fromkeys(("polynomial", "nbcs", "nbcs-adaptive"), 256),
    **dict.fromkeys(("nbcs-rotated", "nbcs-rotated-learned"), 64),
}
MAX_LANDMARKS = 1024
LEARNED = {(16, 1024), (64, 1024)}
"""Sizes at which learned maps are measured: they cost what their base map does, and a product."""
ROWS = 256


def timed(maps, X, rounds):
    """Microseconds of CPU per row: medians of several rounds, in turns."""
    found = {name: [] for name in maps}
    for _ in range(rounds):
        for name, fitted in maps.items():
            start = time.process_time()
            fitted.transform(X)
            found[name].append(time.process_time() - start)
    return {name: float(np.median(each)) / len(X) * 1e6 for name, each in found.items()}


def fitted(names, X, n_components):
    """Return maps by name, fitted on rows with labels at random."""
    y = np.arange(len(X)) % 2
    found = {}
    for name in names:
        map_ = unfitted(name, n_components)
        if records()[name].family == "learned":
            map_.set_params(rounds=1)  # what the features cost does not depend on what was learned
        found[name] = map_.fit(X, y)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    found = {"claim": {}, "inputs": {}, "maps": {}}

    print("1,024 inputs, 4,096 features: microseconds of CPU per row")
    for dtype in (np.float64, np.float32):
        X = rng.normal(size=(512, 1024)).astype(dtype)
        times = timed(fitted((*DENSE, *STRUCTURED), X, 4096), X, given.rounds)
        found["claim"][dtype.__name__] = times
        print(f"{dtype.__name__:8}", ", ".join(f"{k} {v:.1f}" for k, v in times.items()))
        for name in STRUCTURED:
            ratios = [f"{times[dense] / times[name]:.2f} x {dense}" for dense in DENSE]
            print(f"{'':8} {name}: {', '.join(ratios)}")

    print("\ninputs d with D = 4,096 features, float64: microseconds per row")
    for d in (16, 32, 64, 128, 256, 512, 1024, 2048):
        X = rng.normal(size=(512, d))
        times = timed(fitted((*DENSE, *STRUCTURED), X, 4096), X, given.rounds)
        found["inputs"][d] = times
        print(f"{d:5}", ", ".join(f"{name} {value:.1f}" for name, value in times.items()))

    print("\nevery map, float64: microseconds per row")
    for d, n in SIZES:
        X = rng.uniform(size=(MAX_LANDMARKS, d))
        X /= np.sqrt(d)  # in the unit ball, and not negative
        maps = fitted(measured(d, n), X, n)
        times = timed(maps, X[:ROWS], max(3, given.rounds // 2))
        found["maps"][f"{d} x {n}"] = times
        print(f"d {d}, D {n}:", ", ".join(f"{name} {value:.1f}" for name, value in times.items()))
        if given.json:
            given.json.write_text(json.dumps(rounded(found), indent=1) + "\n", encoding="utf-8")


def measured(d, n):
    """Return the names of the maps that are measured with d inputs and n features."""
    return [
        name
        for name, record in records().items()
        if d <= MAX_INPUTS.get(name, d)
        and (n <= MAX_LANDMARKS or record.family != "landmarks")
        and ((d, n) in LEARNED or record.family != "learned")
    ]


def rounded(found):
    """Return the times with three digits."""
    if isinstance(found, dict):
        return {str(key): rounded(value) for key, value in found.items()}
    return float(f"{found:.3g}")


if __name__ == "__main__":
    main()
