import numpy as np
import pytest

from kbench.evaluation.gram_sums import Sums, Targets


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(60, 4)) + 3.0
    return Z, rng.normal(size=(60, 2)), rng.uniform(0.0, 2.0, 60)


def summed(Z, Y, weight=None, shift=None, step=7):
    sums = Sums.zero(Z[:step].mean(axis=0) if shift is None else shift, Y.shape[1])
    for start in range(0, len(Z), step):
        part = slice(start, start + step)
        sums.add(Z[part], Y[part], None if weight is None else weight[part])
    return sums


@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_add_up_to_the_centred_products_of_all_rows(rows, weighted):
    Z, Y, weight = rows
    sums = summed(Z, Y, weight if weighted else None)
    w = weight if weighted else np.ones(len(Z))
    mean, target_mean = np.average(Z, axis=0, weights=w), np.average(Y, axis=0, weights=w)
    centred, targets = Z - mean, Y - target_mean
    assert sums.n == pytest.approx(w.sum(), rel=1e-12)
    np.testing.assert_allclose(sums.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(sums.target_mean, target_mean, rtol=1e-10)
    np.testing.assert_allclose(sums.gram, (centred.T * w) @ centred, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(sums.moments, (centred.T * w) @ targets, rtol=1e-10, atol=1e-12)
    assert sums.largest_eigenvalue() == pytest.approx(
        np.linalg.eigvalsh((centred.T * w) @ centred)[-1], rel=1e-2
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_the_squared_error_of_linear_functions_needs_no_rows(rows, weighted):
    Z, Y, weight = rows
    Y, w = Y[:, :1], weight if weighted else None
    W, b = np.random.default_rng(1).normal(size=(4, 3)), np.array([0.5, -1.0, 2.0])
    expected = np.average((Z @ W + b - Y) ** 2, axis=0, weights=w)
    np.testing.assert_allclose(summed(Z, Y, w).squared_errors(W, b), expected, rtol=1e-10)


def test_parts_are_added_and_stay_as_they_are(rows):
    Z, Y, _ = rows
    shift = Z[0]
    first, second = summed(Z[:20], Y[:20], shift=shift), summed(Z[20:], Y[20:], shift=shift)
    before = first.zz.copy()
    together, whole = Sums.combine([first, second]), summed(Z, Y, shift=shift)
    np.testing.assert_allclose(together.gram, whole.gram, rtol=1e-12)
    np.testing.assert_array_equal(first.zz, before)


def test_a_shift_keeps_the_digits_of_float32():
    rng = np.random.default_rng(0)
    Z = (rng.normal(size=(4000, 5)) * 0.01 + 1.0).astype(np.float32)
    Y = np.zeros((4000, 1))
    centred = Z.astype(float) - Z.astype(float).mean(axis=0)
    exact = centred.T @ centred

    def error(shift):
        return np.abs(summed(Z, Y, shift=shift, step=1000).gram - exact).max() / exact.max()

    assert error(Z[:1000].mean(axis=0).astype(float)) < 1e-5
    assert error(np.zeros(5)) > 1e-4


def test_labels_become_indicators_of_the_classes_that_the_rows_have():
    y = np.array([4, 1, 4, 9])
    targets = Targets(y, "classification")
    block = targets.block(np.array([1, 2]))
    np.testing.assert_array_equal(block, [[1, 0, 0], [0, 1, 0]])
    sums = summed(np.eye(4)[:, :2], targets.block(np.arange(4)))
    named = targets.select_present(sums, np.array([0, 3]))
    np.testing.assert_array_equal(named.classes, [4, 9])
    assert (named.zy.shape, named.yy.tolist()) == ((2, 2), [[2, 0], [0, 1]])


def test_numbers_are_standardised_on_all_rows():
    targets = Targets(np.array([1.0, 3.0, 5.0]), "regression")
    assert targets.block(np.array([1])).tolist() == [[0.0]]
    assert targets.scale.restore(0.0) == 3.0
