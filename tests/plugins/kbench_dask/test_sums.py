"""Sums of parts that several workers compute."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from kbench.evaluation.gram_sums import Sums, Targets
from kbench.evaluation.lazy_rows import iterate_row_numbers
from kbench_baselines import RandomFourierFeatures
from kbench_dask.worker import sum_rows
from kbench_datasets import hypersphere_shells
from kbench_learners import PathRidgeClassifier

N, D, ALPHAS = 40_000, 200, [1.0, 1e-2, 100.0]


def small_sums(first, last):
    rows = np.sqrt(np.arange(first, last))[:, None]
    sums = Sums.zero(np.ones(1), 1)
    sums.add(rows, np.sin(rows))
    return sums


@pytest.mark.parametrize("n_parts", [1, 3, 7])
def test_parts_are_all_rows_and_are_added_in_order(n_parts):
    with ThreadPoolExecutor(2) as executor:
        found = sum_rows(executor, small_sums, 1001, n_parts)
    ends = [1001 * part // n_parts for part in range(n_parts + 1)]
    parts = [small_sums(*each) for each in itertools.pairwise(ends)]
    expected = Sums.combine(parts)
    for name in ("n", "z", "zz", "y", "zy", "yy"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert found.n == 1001
    np.testing.assert_allclose(found.zz, small_sums(0, 1001).zz, rtol=1e-13)


@pytest.mark.slow
def test_sums_do_not_depend_on_the_number_of_workers():
    def sums_of(first, last):
        # each worker makes the rows itself; only sums travel
        data = hypersphere_shells(n_samples=N)
        targets = Targets(data.y, "classification")
        sums = Sums.zero(shift, targets.n_columns)
        for rows in iterate_row_numbers(np.arange(first, last)):
            sums.add(fitted.transform(data.X[rows].astype(float)), targets.block(rows))
        return sums

    distributed = pytest.importorskip("distributed")
    data = hypersphere_shells(n_samples=N)
    fitted = RandomFourierFeatures(n_components=D, bandwidth=4.0, random_state=0).fit(data.X[:1000])
    shift = fitted.transform(data.X[:1000].astype(float)).mean(axis=0)
    found = []
    for n_workers in (1, 2):
        with (
            distributed.LocalCluster(
                n_workers=n_workers, threads_per_worker=1, dashboard_address=None
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            found.append(sum_rows(client.get_executor(pure=False), sums_of, N, n_parts=8))
    np.testing.assert_array_equal(found[0].zz, found[1].zz)
    np.testing.assert_array_equal(found[0].zy, found[1].zy)
    alone = sums_of(0, N)
    targets = Targets(data.y, "classification")
    models = [
        PathRidgeClassifier().fit_sums(targets.select_present(sums, np.arange(N)), ALPHAS)
        for sums in (found[1], alone)
    ]
    for first, second in zip(*models, strict=True):
        np.testing.assert_allclose(first.coef_, second.coef_, rtol=1e-8, atol=1e-10)
