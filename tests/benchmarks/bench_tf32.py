"""Simulate TF32 in ridge regression: Gram matrices of rounded inputs.

    python tests/benchmarks/bench_tf32.py rows.csv ...

Each file has a header line, and the target in its last column. Embedded rows are rounded to
the 10 bits of TF32's mantissa and multiplied in float32; blocks are summed in float64, as
kbench does. Errors are those of half of the rows, at most 10,000, in units of the standard
deviation of the targets.
"""

import sys

import numpy as np

from kbench_baselines import RandomFourierFeatures

PENALTIES = (1e-9, 1e-6, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
BLOCK = 4096


def to_tf32(values):
    """Round float32 values to 10 bits of mantissa, to the nearest, ties to even."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    bits = bits + np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1))
    return (bits & np.uint32(0xFFFFE000)).view(np.float32)


ROUNDINGS = {
    "float64": lambda values: values,
    "float32": lambda values: values.astype(np.float32),
    "TF32": to_tf32,
}


def compare(X, y, n_components=1024):
    """Return the largest eigenvalue, and errors by penalty and type."""
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], y[order]
    X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    y = (y - y.mean()) / y.std()
    n = min(len(X) // 2, 20_000)
    phi = RandomFourierFeatures(n_components, random_state=0).fit(X[:n])
    mean = phi.transform(X[:n]).mean(axis=0)
    Z, T = phi.transform(X[:n]) - mean, phi.transform(X[n : n + 10_000]) - mean
    sums = {}
    for name, rounded in ROUNDINGS.items():
        gram, moments = np.zeros((n_components, n_components)), np.zeros(n_components)
        for start in range(0, n, BLOCK):
            part = slice(start, min(n, start + BLOCK))
            A, b = rounded(Z[part]), rounded(y[part])
            gram += A.T @ A
            moments += A.T @ b
        sums[name] = gram, moments
    errors = {}
    for alpha in PENALTIES:
        for name, (gram, moments) in sums.items():
            w = np.linalg.solve(gram + alpha * np.eye(n_components), moments)
            errors[alpha, name] = float(np.sqrt(np.mean((T @ w - y[n : n + 10_000]) ** 2)))
    return np.linalg.eigvalsh(sums["float64"][0])[-1], errors


def main():
    for path in sys.argv[1:]:
        table = np.loadtxt(path, delimiter=",", skiprows=1)
        largest, errors = compare(table[:, :-1], table[:, -1])
        print(f"{path}: {len(table):,} rows, largest eigenvalue {largest:.3g}")
        for alpha in PENALTIES:
            values = "  ".join(f"{name} {errors[alpha, name]:.5g}" for name in ROUNDINGS)
            print(f"  alpha {alpha:g}, {alpha / largest:.0e} of the eigenvalue: {values}")


if __name__ == "__main__":
    main()
