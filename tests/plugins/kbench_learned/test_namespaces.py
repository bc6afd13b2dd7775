"""Learned maps learn and transform in the namespace of their inputs, as on the host."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.utils import get_tags

from kbench.arrays import host_type, namespace, to_numpy
from kbench_baselines import NystroemMap, OrthogonalFourierFeatures, RandomFourierFeatures
from kbench_learned import LearnedMetricMap, LearnedPartitionMap
from kbench_nbcs import NestedBarycentricMap
from tests.support.array_libraries import LIBRARIES, library

RNG = np.random.default_rng(0)
X, T = RNG.normal(size=(150, 4)), RNG.normal(size=(20, 4))
Y = np.sin(2 * X[:, 0]) + 0.05 * RNG.normal(size=150)


@pytest.fixture(params=LIBRARIES)
def xp(request):
    with library(request.param) as xp:
        yield xp


def learned(base, **options):
    return LearnedMetricMap(base, random_state=0, rounds=2, **options)


@pytest.mark.parametrize(
    ("base", "options"),
    [
        (RandomFourierFeatures(40), {}),
        # more features than rows
        (OrthogonalFourierFeatures(200), {"metric": "low_rank", "rank": 2}),
        (NystroemMap(20), {"metric": "diagonal", "bandwidth_factor": (0.5, 1.0)}),
        (RandomFourierFeatures(40), {"rounds": 0}),
    ],
)
@pytest.mark.parametrize("targets", ["numbers", "labels"])
def test_metrics_and_features_are_those_of_the_host(xp, base, options, targets):
    y = Y if targets == "numbers" else np.digitize(Y, [-0.5, 0.5])
    made = learned(base).set_params(**options)
    assert get_tags(made).array_api_support
    expected = made.fit(X, y)
    there = learned(base).set_params(**options).fit(xp.asarray(X), xp.asarray(y))
    assert (there.form_, there.round_, there.factor_) == (
        expected.form_,
        expected.round_,
        expected.factor_,
    )
    np.testing.assert_allclose(there.errors_, expected.errors_, rtol=1e-6)
    np.testing.assert_allclose(there.metric_, expected.metric_, atol=1e-6)
    for dtype, tolerance in ((np.float64, 1e-6), (np.float32, 1e-4)):
        rows = xp.asarray(T.astype(dtype))
        features = expected.transform(T.astype(dtype))
        for fitted in (there, expected):
            found = fitted.transform(rows)
            assert namespace(found) is namespace(rows)
            assert host_type(found) == features.dtype == dtype
            np.testing.assert_allclose(to_numpy(found), features, atol=tolerance)


def test_gradients_go_through_the_metric(xp):
    fitted = learned(RandomFourierFeatures(40)).fit(X, Y)
    coef = RNG.normal(size=(2, 40))
    there = fitted.input_gradient(xp.asarray(T), xp.asarray(coef))
    np.testing.assert_allclose(to_numpy(there), fitted.input_gradient(T, coef), atol=1e-10)


def test_map_around_one_without_support_computes_on_the_host(xp):
    made = LearnedPartitionMap(NestedBarycentricMap(2), rounds=1, random_state=0)
    assert not get_tags(made).array_api_support
    found = made.fit(xp.asarray(X), Y).transform(xp.asarray(T))
    assert isinstance(found, np.ndarray | csr_matrix)


@pytest.mark.parametrize(
    ("y", "message"), [(Y[:-1], "inconsistent numbers"), (np.full(150, np.nan), "NaN")]
)
def test_wrong_targets_are_refused_as_on_the_host(xp, y, message):
    with pytest.raises(ValueError, match=message):
        learned(RandomFourierFeatures(10)).fit(xp.asarray(X), y)
