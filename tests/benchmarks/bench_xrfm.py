"""Learned maps against xRFM, on the same rows and device: error and time.

    python tests/benchmarks/bench_xrfm.py FOLDER [--sets kin40k protein] [--splits 0 1]

FOLDER has regression sets with splits, as for bench_learned.py; inputs and targets are
standardised by the training rows. xRFM [1]_ needs held-out rows: a fifth of the training rows.
It is fitted with its documented default values, and with the best of nine pairs of a bandwidth
and a penalty by these rows; kbench fits a learned map with ridge regression, with all its
candidates, by inner folds of the same training rows. Times are of all fits of a search. The
first fit of each, on 500 rows, loads everything, and is not counted.

.. [1] D. Beaglehole, D. Holzmueller, A. Radhakrishnan and M. Belkin, arXiv:2508.10053 (2025).
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from bench_learned import parts, rmse
from xrfm import xRFM

from kbench import Dataset, Protocol, Split
from kbench.evaluation.evaluate import evaluate_split
from kbench.evaluation.method import Method
from kbench.evaluation.specs import EstimatorSpec
from kbench_baselines import MaternFourierFeatures, RandomFourierFeatures
from kbench_learned import LearnedMetricMap
from kbench_learners import PathRidge

ALPHAS = tuple(float(alpha) for alpha in np.logspace(-6, 2, 17))
FACTORS = (0.5, 1.0, 2.0)


def xrfm_candidates(tuned: bool) -> list[dict]:
    """Return parameters of xRFM: the default values, or nine bandwidths and penalties."""
    if not tuned:
        return [{}]
    return [
        {"bandwidth": width, "reg": reg} for width in (2.5, 5.0, 10.0) for reg in (1e-5, 1e-4, 1e-3)
    ]


def fit_xrfm(X, y, X_test, tuned: bool, device: str):
    """Return predictions of the best of the candidates by held-out rows."""
    order = np.random.default_rng(0).permutation(len(X))
    held, fit = order[: len(X) // 5], order[len(X) // 5 :]
    best = np.inf, None
    for given in xrfm_candidates(tuned):
        model = {"kernel": "l2_high_dim", "exponent": 1.0, "diag": False}
        model |= {"bandwidth": given.get("bandwidth", 10.0), "bandwidth_mode": "constant"}
        steps = {"get_agop_best_model": True, "return_best_params": True, "iters": 5}
        steps |= {"reg": given.get("reg", 1e-3), "early_stop_rfm": False}
        machine = xRFM(
            {"model": model, "fit": steps},
            device=torch.device(device),
            tuning_metric="mse",
            random_state=0,
            verbose=False,
        )
        machine.fit(
            X[fit].astype("f"), y[fit].astype("f"), X[held].astype("f"), y[held].astype("f")
        )
        error = rmse(np.ravel(_numbers(machine.predict(X[held].astype("f")))), y[held])
        if error < best[0]:
            best = error, np.ravel(_numbers(machine.predict(X_test.astype("f"))))
    return best[1]


def _numbers(found):
    return found.detach().cpu().numpy() if hasattr(found, "detach") else np.asarray(found)


def fit_kbench(X, y, X_test, y_test, make, learned: bool, width: int, device: str):
    """Return the test error of ridge regression on a map, chosen by inner folds."""
    X_all, y_all = np.vstack([X, X_test]), np.concatenate([y, y_test])
    split = Split(0, np.arange(len(X)), np.arange(len(X), len(X_all)))
    data = Dataset("made", X_all, y_all, splits=(split,))
    base = EstimatorSpec(make, {"n_components": width, "random_state": 0}, {})
    if learned:
        spec = EstimatorSpec(
            LearnedMetricMap,
            {"base_map": make(width, random_state=0), "bandwidth_factor": FACTORS},
            {},
            supervised=True,
        )
    else:
        spec = EstimatorSpec(make, base.params, {"bandwidth_factor": FACTORS})
    learner = EstimatorSpec(PathRidge, {}, {"alpha": ALPHAS}, path="alpha")
    protocol = Protocol(cv="official", inner_folds=3, device=device)
    found = evaluate_split(data, 0, Method(spec, learner), protocol)
    return found.metrics["rmse_standardized"], found.details.notes


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="*", default=["pumadyn32nm", "elevators", "kin40k"])
    parser.add_argument("--splits", nargs="*", type=int, default=[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    own = "cuda" if args.device == "cuda" else "torch-cpu"
    for name in args.sets:
        for split in args.splits:
            X, y, X_test, y_test = parts(args.folder, name, split, args.rows)
            fits = {
                "xrfm": lambda *d: rmse(fit_xrfm(*d[:3], False, args.device), d[3]),
                "xrfm, 9 candidates": lambda *d: rmse(fit_xrfm(*d[:3], True, args.device), d[3]),
                **{
                    f"{label}{'-learned' * learned}": lambda *d, make=make, learned=learned: (
                        fit_kbench(*d, make, learned, args.width, own)[0]
                    )
                    for label, make in (
                        ("rff", RandomFourierFeatures),
                        ("matern-rff", MaternFourierFeatures),
                    )
                    for learned in (False, True)
                },
            }
            for label, fit in fits.items():
                try:
                    fit(X[:500], y[:500], X_test[:100], y_test[:100])
                    start = time.perf_counter()
                    error = fit(X, y, X_test, y_test)
                    seconds = time.perf_counter() - start
                    print(
                        f"{name} split {split} {len(X):,} x {X.shape[1]}: {label:20} "
                        f"rmse {error:.4f} in {seconds:7.2f} s",
                        flush=True,
                    )
                except Exception as error:
                    print(f"{name} {label}: {type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    main()
