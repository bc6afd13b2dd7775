"""The dataset of shells: its Bayes error, and its rows that are drawn block by block."""

import numpy as np
import pytest

from kbench import DatasetError
from kbench.storage.datacache import DataCache
from kbench.tables import limits
from kbench.tables.limits import spilling_to
from kbench_datasets import _synthetic, hypersphere_shells


@pytest.mark.parametrize("n_shells", [2, 3])
def test_noise_is_the_error_of_the_classifier_that_knows_the_shells(n_shells):
    given = {"n_samples": 40_000, "n_features": 5, "n_shells": n_shells}
    noisy, clean = hypersphere_shells(**given, noise=0.2), hypersphere_shells(**given, noise=0.0)
    np.testing.assert_array_equal(noisy.X, clean.X)
    assert np.mean(noisy.y != clean.y) == pytest.approx(0.2, abs=0.01)
    # each shell has its share of the rows, and its label alternates
    norms = np.linalg.norm(clean.X.astype(np.float64), axis=1)
    y = clean.y[np.argsort(norms)]
    bounds = np.flatnonzero(np.diff(y)) + 1
    np.testing.assert_allclose(bounds / len(y), np.arange(1, n_shells) / n_shells, atol=0.01)
    assert y[0] == 0
    assert "Bayes error 0.2" in noisy.source


def test_the_first_rows_do_not_depend_on_their_number(monkeypatch):
    monkeypatch.setattr(_synthetic, "BLOCK", 64)
    few, many = hypersphere_shells(n_samples=100), hypersphere_shells(n_samples=300)
    np.testing.assert_array_equal(few.X, many.X[:100])
    np.testing.assert_array_equal(few.y, many.y[:100])
    assert len(np.unique(many.X, axis=0)) == 300  # blocks differ


def test_large_arrays_go_to_the_cache_block_by_block(tmp_path, monkeypatch):
    expected = hypersphere_shells(n_samples=70_000, n_features=3)
    monkeypatch.setattr(limits, "SPILL", 1 << 16)
    cache = DataCache(tmp_path)
    with cache.scratch("shells") as scratch, spilling_to(scratch):
        data = hypersphere_shells(n_samples=70_000, n_features=3)
        assert not data.X.flags.writeable  # mapped
        checksum = cache.store(data)
    assert checksum == expected.checksum
    np.testing.assert_array_equal(cache.load(checksum).X, expected.X)


def test_what_is_too_large_is_refused_before_it_is_drawn(monkeypatch):
    monkeypatch.setenv("KBENCH_MAX_DATASET_MIB", "1")
    with pytest.raises(DatasetError, match="1,000,000 rows with 8 columns need 31 MiB"):
        hypersphere_shells(n_samples=1_000_000)


@pytest.mark.parametrize("wrong", [{"noise": 0.5}, {"n_shells": 1}, {"n_features": 0}])
def test_wrong_shapes_are_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        hypersphere_shells(**wrong)
