"""Whether the claims of a report hold on simulated truths.

    python tests/benchmarks/bench_claims.py [--replicates 2000]

Accuracies and times of methods on datasets are simulated from known means, with effects of
datasets, of datasets and methods, and of splits. The splits of `learners` are not simulated:
two linear classifiers are trained on overlapping parts of drawn data. Goals: intervals cover
the truth in 93-99 % of the replicates of normal and exponential differences, a tied method is
excluded from the best group in at most 5 %, at most 5 % of the methods on the true front are
called dominated, variance components are unbiased within 10 %, all of it for 400 cells in 1 s.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from kbench.results import stats
from kbench_claims.components import components as variance_components

GROUPS = (5, 10, 19, 20, 40, 60)
Rng = np.random.Generator


FAMILIES: dict[str, Callable[[Rng, tuple[int, int]], np.ndarray]] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "t, 3 degrees of freedom": lambda rng, shape: rng.standard_t(3, shape),
    # errors of a few per cent, of which one method has a share more
    "share of an error": lambda rng, shape: (
        rng.gamma(1.5, 0.04, shape) * rng.normal(0.2, 0.3, shape) - 1.5 * 0.04 * 0.2
    ),
    "exponential": lambda rng, shape: rng.exponential(size=shape) - 1,
    "lognormal": lambda rng, shape: rng.lognormal(size=shape) - np.exp(0.5),
    "one disaster in ten": lambda rng, shape: (
        rng.normal(0, 0.01, shape) - 0.3 * (rng.random(shape) < 0.1) + 0.03
    ),
}
"""Differences of two methods, with mean 0."""


def intervals(rng: Rng, replicates: int) -> None:
    """Print the coverage of intervals of mean differences over datasets."""
    print(f"\nintervals of mean differences: coverage for {GROUPS} groups of datasets")
    for name, draw in FAMILIES.items():
        found = []
        for n in GROUPS:
            low, high = stats.mean_intervals(draw(rng, (n, replicates)))
            found.append(np.mean((low <= 0) & (high >= 0)))
        print(f"  {name:24s}" + "".join(f"  {share:.3f}" for share in found))


def truth(rng: Rng, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw mean accuracies and mean powers of ten of seconds; some are near ties."""
    gains, logs = rng.uniform(0.7, 0.9, k), rng.uniform(-2, 1, k)
    gains[1], logs[1] = gains[0] - 1e-4, logs[0] - 0.5  # 0 is on the front by a hair
    gains[3], logs[3] = gains[2] - 0.02, logs[2] - 1e-3
    return gains, logs


def measured(
    rng: Rng, gains: np.ndarray, logs: np.ndarray, n: int, n_splits: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw means over splits on `n` datasets."""
    k = len(gains)
    noise = rng.normal(0, 0.02 / np.sqrt(n_splits), (n, k))
    g = gains + rng.normal(0, 0.1, (n, 1)) + rng.normal(0, 0.03, (n, k)) + noise
    t = logs + rng.normal(0, 0.7, (n, 1)) + rng.normal(0, 0.25, (n, k))
    return g, 10**t


def non_dominated(gains: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """Return which methods are on the true front."""
    better = gains[:, None] > gains
    cheaper = logs[:, None] < logs
    return ~(better & cheaper).any(axis=0)


def fronts(rng: Rng, replicates: int, k: int = 8) -> None:
    """Print how often statuses are wrong, and the coverage of the hypervolume."""
    print(f"\nfronts of {k} methods: wrong of the methods on the front and off it, decided,")
    print("mean P(on the front) of those on it, coverage of the hypervolume")
    for n in GROUPS:
        wrong, off, decided, sure, covered = [], [], [], [], []
        for _ in range(replicates):
            gains, logs = truth(rng, k)
            g, costs = measured(rng, gains, logs, n, int(rng.integers(2, 31)))
            found, on = stats.front(g, costs), non_dominated(gains, logs)
            status = np.array([place.status for place in found.places])
            wrong += (status[on] == "dominated").tolist()
            off += (status[~on] == "frontier").tolist()
            decided += (status != "undecided").tolist()
            sure += [p.probability for p, is_on in zip(found.places, on, strict=True) if is_on]
            worst = float(g.mean(axis=0).min()), float(np.log10(costs).mean(axis=0).max())
            area = stats.hypervolume(gains, logs, worst)[0]
            covered.append(found.low <= area <= found.high)
        print(
            f"  {n:3d} groups  dominated {np.mean(wrong):.3f}  frontier {np.mean(off):.3f}  "
            f"decided {np.mean(decided):.2f}  P {np.mean(sure):.2f}  "
            f"hypervolume {np.mean(covered):.3f}"
        )


def best_groups(rng: Rng, replicates: int, k: int = 28) -> None:
    """Print how often the best method is excluded, and how many of the worse ones are."""
    groups = (5, 6, 8, 11, 20)
    print(f"\nbest group of {k} methods that differ by 0 to 10 %: best one excluded,")
    print(f"and worse ones excluded, on {groups} groups of datasets")
    means = 0.97 - np.concatenate([[0.0], rng.uniform(0, 0.03, k - 9), np.full(8, 0.1)])
    for noise in (0.005, 0.01, 0.02):
        found = []
        for n in groups:
            scale = rng.lognormal(0, 0.7, (replicates // 10, n, 1))
            drawn = scale * (means - 0.97 + rng.normal(0, noise, (len(scale), n, k)))
            kept = [stats.stability(gains).best_group for gains in drawn]
            lost = np.mean([0 not in group for group in kept])
            found.append(f"  {lost:.3f} {np.mean([k - len(group) for group in kept]):4.1f}")
        print(f"  noise {noise}" + "".join(found))


def ties(rng: Rng, replicates: int) -> None:
    """Print how often a method is excluded that is as good as all others."""
    groups = (5, 7, 11, 20)
    print(f"\ntied methods: the first one is not in the best group, on {groups} groups of datasets")
    for kind in ("normal", "exponential", "lognormal"):
        for sign in (1, -1):
            for k in (2, 8, 28):
                found = []
                for n in groups:
                    wrong = 0
                    for _ in range(replicates // 2):
                        gains = sign * getattr(rng, kind)(size=(n, k)) * rng.lognormal(size=(n, 1))
                        wrong += stats.flip_p(gains[:, 1:] - gains[:, :1])[1].min() <= 0.05
                    found.append(wrong / (replicates // 2))
                shares = "".join(f"  {share:.3f}" for share in found)
                print(f"  {sign * 1:+d} {kind:12s} {k:2d} methods{shares}")


def missing(rng: Rng, replicates: int) -> None:
    """Print how often a tied method leads that fails where it is worst."""
    print("\ntied with the best, and failed on its worst third of 20 datasets: first by mean rank")
    print("of what all finished, and claimed to be first")
    for k in (2, 5):
        leads = claimed = 0
        for _ in range(replicates):
            gains = rng.normal(size=(20, k))
            lost = np.argsort(gains[:, 0] - gains[:, 1:].max(axis=1))[:7]
            full = np.delete(gains, lost, axis=0)
            gains[lost, 0] = np.nan
            found = stats.stability(full, tried=gains)
            leads += found.leader == 0
            claimed += found.best_group == (0,)
        print(f"  {k} methods  {leads / replicates:.3f}  {claimed / replicates:.3f}")


def components(rng: Rng, replicates: int) -> None:
    """Print the bias of variance components on balanced designs."""
    true = {"datasets": 0.01, "interaction": 9e-4, "splits": 4e-4, "residual": 2e-4, "seeds": 1e-4}
    print("\nvariance components: mean estimate over truth")
    for n, n_splits, k, n_seeds in ((5, 2, 3, 2), (20, 5, 8, 3), (60, 30, 6, 2)):
        sums = dict.fromkeys(true, 0.0)
        own = np.zeros(k)
        # the noise of a method is its own
        sizes = np.linspace(0.5, 1.5, k) * true["residual"]
        repeats = max(1, replicates * 20 // (n * n_splits))
        for _ in range(repeats):
            values = (
                rng.normal(0, true["datasets"] ** 0.5, (n, 1, 1, 1))
                + rng.normal(0, true["interaction"] ** 0.5, (n, 1, k, 1))
                + rng.normal(0, true["splits"] ** 0.5, (n, n_splits, 1, 1))
                + rng.normal(0, sizes[:, None] ** 0.5, (n, n_splits, k, 1))
                + rng.normal(0, true["seeds"] ** 0.5, (n, n_splits, k, n_seeds))
            )
            found = variance_components(list(values))
            for name in true:
                sums[name] += getattr(found, name) / repeats
            own += np.array(found.by_method) / repeats
        shares = "  ".join(f"{name} {sums[name] / true[name]:.3f}" for name in true)
        print(f"  {n} x {n_splits} x {k} x {n_seeds} ({repeats} replicates)  {shares}")
        print(f"    of each method: {' '.join(f'{share:.2f}' for share in own / sizes)}")


def accuracies(rng: Rng, n_splits: int, n: int = 150, d: int = 8) -> np.ndarray:
    """Train two linear classifiers on splits of one drawn dataset; return their accuracies."""
    y = rng.choice([-1.0, 1.0], n)
    X = rng.normal(size=(n, d)) + 0.35 * y[:, None] * (np.arange(d) < 4)
    found = []
    for _ in range(n_splits):
        order = rng.permutation(n)
        train, test = order[n // 5 :], order[: n // 5]
        scores = []
        for ridge in (1e-3, 300.0):
            A = X[train].T @ X[train] + ridge * np.eye(d)
            w = np.linalg.solve(A, X[train].T @ y[train])
            scores.append(np.mean(np.sign(X[test] @ w) == y[test]))
        found.append(scores)
    return np.array(found)


def learners(rng: Rng, replicates: int) -> None:
    """Print the coverage of intervals on one dataset, whose splits share rows."""
    true = np.mean([accuracies(rng, 1)[0] for _ in range(20 * replicates)], axis=0)
    print(f"\ntwo trained classifiers on one dataset (truth {true.round(4)}): coverage of the")
    print("difference, corrected and uncorrected; `dominated` of two with different times")
    for n_splits in (2, 5, 10, 30):
        corrected, plain, wrong = [], [], []
        for _ in range(replicates):
            values = accuracies(rng, n_splits)
            d = values[:, 0] - values[:, 1]
            real = true[0] - true[1]
            for ratio, into in ((0.25, corrected), (0.0, plain)):
                test = stats.corrected_t(d, ratio)
                into.append(
                    True if test.low is None else bool(test.low <= real <= (test.high or 0))
                )
            # the better one costs more: both are on the front
            costs = np.ones_like(values) * np.where(true == true.max(), 2.0, 1.0)
            found = stats.front(values, costs * rng.lognormal(0, 0.05, values.shape), 0.25)
            wrong.append(any(place.status == "dominated" for place in found.places))
        print(
            f"  {n_splits:3d} splits  {np.mean(corrected):.3f}  {np.mean(plain):.3f}  "
            f"dominated {np.mean(wrong):.3f}"
        )


def tibshirani(gains: np.ndarray) -> float:
    """Return the estimate of Tibshirani and Tibshirani (2009)."""
    best = gains.mean(axis=1).argmax()
    return float(np.mean(gains.max(axis=0) - gains[best]))


def optimism(rng: Rng, replicates: int) -> None:
    """Print the estimated optimism beside the true one."""
    print("\noptimism of the best of 40 candidates: estimate, Tibshirani's, truth")
    for n_folds in (3, 5, 10):
        for spread in (0.0, 0.01, 0.03):
            found = []
            for _ in range(replicates):
                means = 0.8 + rng.normal(0, spread, 40)
                folds = means[:, None] + rng.normal(0, 0.03, n_folds)
                folds = folds + rng.normal(0, 0.03, folds.shape)
                best = folds.mean(axis=1).argmax()
                actual = folds[best].mean() - means[best]
                found.append((stats.optimism(folds), tibshirani(folds), actual))
            each = "  ".join(f"{value:.4f}" for value in np.mean(found, axis=0))
            print(f"  {n_folds:2d} folds, means differ by {spread:.2f}  {each}")


def seconds(rng: Rng) -> None:
    """Print the CPU time of all claims about 400 cells."""
    print("\nCPU seconds for 400 cells, best of three")
    for n, k in ((20, 20), (40, 10), (8, 50)):
        gains, logs = truth(rng, k)
        g, costs = measured(rng, gains, logs, n, 10)
        tables = [rng.normal(size=(10, k)) for _ in range(n)]
        parts: dict[str, Callable[[], object]] = {
            "front": lambda g=g, costs=costs: stats.front(g, costs),
            "stability": lambda g=g: stats.stability(g),
            "components": lambda tables=tables: variance_components(tables),
            "intervals": lambda g=g: stats.mean_intervals(
                (g[:, :, None] - g[:, None]).reshape(len(g), -1)
            ),
        }
        best: dict[str, float] = {}
        for _ in range(3):
            for name, run in parts.items():
                begun = time.process_time()
                run()
                spent = time.process_time() - begun
                best[name] = min(best.get(name, spent), spent)
        each = "  ".join(f"{name} {spent:.3f}" for name, spent in best.items())
        print(f"  {n} x {k}  {each}  all {sum(best.values()):.3f}")


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=2000)
    parser.add_argument("--only", default="", help="names of parts, with commas between them")
    given = parser.parse_args()
    parts = (intervals, fronts, best_groups, ties, missing, components, learners, optimism)
    wanted = given.only.split(",") if given.only else []
    for part in parts:
        if not wanted or part.__name__ in wanted:
            part(np.random.default_rng(0), given.replicates)
    if not wanted or "seconds" in wanted:
        seconds(np.random.default_rng(0))


if __name__ == "__main__":
    main()
