"""The lower bound: a kernel that tells nothing without the distribution."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from kbench_balcan import BalcanF1, BalcanF2, HiddenSubset, hidden_subset
from kbench_learners import LinearSVM
from kbench_testing import is_psd


@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_lower_bound_needs_the_distribution(alpha):
    """Section 5: landmarks from the distribution work, others do not."""
    n_bits = 16
    data = hidden_subset(n_bits, seed=3)
    kernel = HiddenSubset(n_bits, alpha=alpha, seed=3)
    assert data.X.shape == (256, n_bits)
    train, test = slice(0, 128), slice(128, 256)
    anywhere = np.random.default_rng(0).integers(0, 2, (20, n_bits)).astype(float)
    for make in (BalcanF1, BalcanF2):
        svm = LinearSVM(C=10.0)
        good = make_pipeline(make(kernel, n_landmarks=20, random_state=0), svm)
        good.fit(data.X[train], data.y[train])
        assert good.score(data.X[test], data.y[test]) == 1.0
        # all queries outside the hidden subset return the same: nothing is learnt
        blind = make(kernel, n_landmarks=20, random_state=0).fit(anywhere)
        Z = blind.transform(data.X)
        assert np.ptp(Z, axis=0).max() < 1e-12


@pytest.mark.parametrize("alpha", [0.0, 0.25])
def test_lower_bound_margin(alpha):
    kernel = HiddenSubset(8, alpha=alpha, seed=1)
    data = hidden_subset(8, seed=1)
    everything = ((np.arange(256)[:, None] >> np.arange(8)) & 1).astype(float)
    K = kernel(everything)
    assert is_psd(K)
    np.testing.assert_allclose(K.diagonal(), 1.0)
    np.testing.assert_array_equal(kernel.diag(everything), 1.0)
    if alpha:
        assert is_psd(K).smallest == pytest.approx(alpha)  # positive definite
    off = K[~np.eye(256, dtype=bool)] / (1 - alpha)
    assert set(np.unique(off.round(12))) == {-0.5, 1.0}
    # w = the two images' difference: margin sqrt(3)/2 (1 - alpha) in the direction of the
    # hidden labels; in the second coordinate the images are c(x) sqrt(3)/2
    codes = kernel._codes(data.X)
    signs = 2 * data.y - 1
    np.testing.assert_allclose(kernel._images(codes)[:, 1] * signs, np.sqrt(3) / 2)


def test_hidden_subset_refuses():
    for bad in (3, 0, 42, "8"):
        with pytest.raises(ValueError, match="n_bits must be an even number"):
            HiddenSubset(bad)
    with pytest.raises(ValueError, match=r"alpha must be .*got 1"):
        HiddenSubset(8, alpha=1)
    with pytest.raises(ValueError, match="0 or 1"):
        HiddenSubset(8)(np.full((1, 8), 0.5))
