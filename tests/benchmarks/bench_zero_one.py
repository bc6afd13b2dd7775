"""The exact 0-1 learner: certified gaps, and times against a trusted solver.

Prints, in one run with one BLAS thread,

- the duality gap for B in {4, 100, 2500} at m = 200 (full rank), 1,000 (rank 500) and
  5,000 (rank 100), and at m = 200 the distance to the objective of Clarabel;
- at m = 5,000 and rank 100 the time of Clarabel (through cvxpy, on the same factor)
  over the time of the learner's solver;
- at m = 20,000 the time at rank 300 over the time at rank 100;
- the most memory that a fit takes, over the bytes of its factor (m r doubles).

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python tests/benchmarks/bench_zero_one.py
"""

import time
import tracemalloc

import numpy as np
from threadpoolctl import threadpool_limits

from kbench_zero_one import ZeroOneKernel, ZeroOneKernelClassifier
from kbench_zero_one._solver import minimise_over_ball, pivoted_cholesky

RADII = (4.0, 100.0, 2500.0)


def problem(m, d=5, noise=0.2, seed=0):
    """Uniform points of the unit ball with noisy labels of a halfspace."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    X /= np.linalg.norm(X, axis=1)[:, None]
    X *= rng.uniform(size=(m, 1)) ** (1 / d)
    return X, ((X[:, 0] > 0) ^ (rng.uniform(size=m) < noise)).astype(int)


def trusted(factor, y, B):
    """Solve equation 9 with Clarabel; None if it is not installed."""
    try:
        import cvxpy as cp
    except ImportError:
        return None
    v = cp.Variable(factor.G.shape[1])
    loss = cp.sum(cp.abs(factor.G @ v - y)) / len(y)
    program = cp.Problem(cp.Minimize(loss), [cp.norm(v) <= np.sqrt(B)])
    program.solve(solver="CLARABEL")
    # its own clock: without cvxpy's translation
    return program.value, program.solver_stats.solve_time


def solve(factor, y, B):
    box = np.ones(len(y))
    return minimise_over_ball(factor, y.astype(float), -box, box, B)


def seconds(step, repeats=3):
    """Median wall-clock time of a step."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def gaps():
    print("     m  rank       B   objective  certified gap  minus Clarabel")
    for m, rank in ((200, 200), (1000, 500), (5000, 100)):
        X, y = problem(m)
        factor = pivoted_cholesky(ZeroOneKernel(), X, rank)
        for B in RADII:
            found = solve(factor, y, B)
            reference = trusted(factor, y, B) if m == 200 else None
            difference = f"{found.objective - reference[0]:14.1e}" if reference else ""
            print(
                f"{m:6d} {len(factor.pivots):5d} {B:7g} {found.objective:11.6f} "
                f"{found.objective - found.dual:14.1e} {difference}"
            )


def against_clarabel():
    X, y = problem(5000)
    factor = pivoted_cholesky(ZeroOneKernel(), X, 100)
    for B in RADII:
        ours = seconds(lambda B=B: solve(factor, y, B))
        reference = trusted(factor, y, B)
        if reference is None:
            print("cvxpy is not installed")
            return
        print(
            f"m=5000, rank 100, B={B:g}: Clarabel {reference[1]:.2f} s, "
            f"here {ours:.3f} s, ratio {reference[1] / ours:.1f}"
        )


def growth():
    X, y = problem(20_000)
    times = {}
    for rank in (100, 300):
        model = ZeroOneKernelClassifier(B=100.0, rank=rank, certify=False)
        times[rank] = seconds(lambda model=model: model.fit(X, y))
    print(
        f"m=20000: rank 100 {times[100]:.2f} s, rank 300 {times[300]:.2f} s, "
        f"ratio {times[300] / times[100]:.1f}"
    )


def memory():
    X, y = problem(20_000)
    for certify in (False, True):
        model = ZeroOneKernelClassifier(B=100.0, rank=100, certify=certify)
        tracemalloc.start()
        model.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(
            f"m=20000, rank 100, certify={certify}: peak {peak / 2**20:.0f} MiB, "
            f"{peak / (20_000 * 100 * 8):.1f} times the factor; kernel gap {model.kernel_gap_:.3f}"
        )


def main():
    """Print all of it."""
    with threadpool_limits(1):
        gaps()
        against_clarabel()
        growth()
        memory()


if __name__ == "__main__":
    main()
