"""The test of Gram matrices."""

import numpy as np
import pytest

from kbench.kernels import Polynomial
from kbench_testing import is_psd


def test_mercer_tells_how_far():
    K = np.diag([1.0, -0.25])
    check = is_psd(K)
    assert not check
    assert check.smallest == pytest.approx(-0.25)
    assert is_psd(K, tolerance=0.3)
    assert not is_psd(np.array([[1.0, 0.3], [0.0, 1.0]]))
    assert is_psd(np.empty((0, 0)))
    # a Gram matrix of rank 6 with 30 rows: rounding does not fail it
    X = np.random.default_rng(2).normal(size=(30, 2))
    assert is_psd(Polynomial(2)(X))


@pytest.mark.parametrize(("K", "message"), [([[1.0, 2.0]], "square"), ([[np.nan]], "finite")])
def test_what_is_no_gram_matrix_is_refused(K, message):
    with pytest.raises(ValueError, match=message):
        is_psd(K)
