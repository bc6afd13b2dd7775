"""One task on several workers: sums of parts add up to those of one pass."""

import numpy as np
import pytest

from kbench.evaluation.gram_sums import Sums, Targets
from kbench.evaluation.lazy_rows import iterate_row_numbers
from kbench_baselines import RandomFourierFeatures
from kbench_datasets import hypersphere_shells
from kbench_learners import PathRidgeClassifier

distributed = pytest.importorskip("distributed")

N, D, ALPHAS = 40_000, 200, [1.0, 1e-2, 100.0]


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.slow
def test_sums_of_two_workers_give_the_models_of_one(client):
    def sums_of(first, last, fitted, shift):
        # each worker reads the rows from its own cache; only sums travel
        data = hypersphere_shells(n_samples=N)
        targets = Targets(data.y, "classification")
        sums = Sums.zero(shift, targets.n_columns)
        for rows in iterate_row_numbers(np.arange(first, last)):
            sums.add(fitted.transform(data.X[rows].astype(float)), targets.block(rows))
        return sums

    data = hypersphere_shells(n_samples=N)
    fitted = RandomFourierFeatures(n_components=D, bandwidth=4.0, random_state=0).fit(data.X[:1000])
    shift = fitted.transform(data.X[:1000].astype(float)).mean(axis=0)
    half = N // 2 + 100
    workers = list(client.scheduler_info()["workers"])
    parts = [
        client.submit(sums_of, *rows, fitted, shift, workers=[worker], pure=False)
        for rows, worker in zip([(0, half), (half, N)], workers, strict=True)
    ]
    together = Sums.combine(client.gather(parts))
    alone = sums_of(0, N, fitted, shift)
    np.testing.assert_allclose(together.gram, alone.gram, rtol=0, atol=1e-12 * alone.gram.max())
    targets = Targets(data.y, "classification")
    models = [
        PathRidgeClassifier().fit_sums(targets.select_present(sums, np.arange(N)), ALPHAS)
        for sums in (together, alone)
    ]
    for first, second in zip(*models, strict=True):
        np.testing.assert_allclose(first.coef_, second.coef_, rtol=1e-8, atol=1e-10)
        Z = fitted.transform(data.X[:2000].astype(float))
        np.testing.assert_array_equal(first.predict(Z), second.predict(Z))
