import numpy as np
import pytest
import scipy.sparse
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kbench import Dataset, DatasetError
from kbench.evaluation.lazy_rows import take
from kbench.evaluation.preprocessing import (
    Imputer,
    Preprocessing,
    UnitBall,
)
from kbench.evaluation.split_view import missing_rows, refuse_missing


def fit(steps, X):
    return steps.fit_blocks([take(X)], [take(X)])


matrices = arrays(np.float64, (6, 3), elements=st.floats(-1e6, 1e6))
counts = arrays(np.float64, (6, 3), elements=st.integers(-9, 9).map(float))


@given(matrices, matrices)
def test_minmax_puts_training_and_test_rows_into_the_unit_cube(X, X_test):
    steps = fit(Preprocessing("minmax"), X)
    for each in (X, X_test):
        inside = steps.transform(each)
        assert inside.min() >= 0
        assert inside.max() <= 1


@given(matrices, matrices)
@example(np.full((6, 3), 4.09867693e-162), np.zeros((6, 3)))
@example(np.full((6, 3), 1e-149), np.full((6, 3), 1e-162))
def test_unit_ball_keeps_directions_and_bounds_norms(X, X_test):
    steps = fit(Preprocessing("unit_ball"), X)
    for each in (X, X_test):
        norms = np.linalg.norm(steps.transform(each), axis=1)
        assert norms.max() <= 1 + 1e-12
    # training rows are scaled by one number, so that their geometry stays
    Z = steps.transform(X)
    np.testing.assert_allclose(Z * np.linalg.norm(X, axis=1).max(), X, rtol=1e-9, atol=1e-9)


@given(counts, counts)
def test_the_unit_ball_of_sparse_rows_is_that_of_dense_ones(X, X_test):
    dense = UnitBall().partial_fit(X).transform(X_test)
    sparse = (
        UnitBall()
        .partial_fit(scipy.sparse.csr_matrix(X))
        .transform(scipy.sparse.csr_matrix(X_test))
    )
    np.testing.assert_allclose(sparse.toarray(), dense, rtol=1e-12)


@pytest.mark.parametrize("X", [np.zeros((2, 2)), np.zeros((0, 2))])
def test_rows_without_length_scale_nothing(X):
    step = UnitBall().partial_fit(X)
    found = step.transform(np.array([[0.3, 0.4], [3.0, 4.0], [0.0, 0.0]]))
    np.testing.assert_allclose(found, [[0.3, 0.4], [0.6, 0.8], [0.0, 0.0]])


def test_a_map_that_needs_the_unit_ball_gets_it_after_minmax():
    X = np.array([[0.0, 0.0], [10.0, 10.0]])
    steps = fit(Preprocessing("minmax", requires="unit_ball"), X)
    np.testing.assert_allclose(np.linalg.norm(steps.transform(X), axis=1), [0, 1])


@pytest.mark.parametrize("step", ["standard", "none", "unit_ball"])
def test_a_map_that_needs_nonnegative_inputs_gets_them(step):
    X = np.array([[-3.0, 1.0], [2.0, -5.0], [0.0, 0.0]])
    assert fit(Preprocessing(step, requires="nonnegative"), X).transform(X).min() >= 0


@pytest.mark.parametrize("step", ["minmax", "standard", "unit_ball", "none"])
def test_sparse_input_stays_sparse_and_its_zeros_zeros(step):
    X = scipy.sparse.random_array((20, 5), density=0.3, rng=0, format="csr")
    Z = fit(Preprocessing(step), X).transform(X)
    assert scipy.sparse.issparse(Z)
    assert Z.nnz == X.nnz


def test_sparse_data_that_cannot_be_made_nonnegative_are_refused():
    X = scipy.sparse.csr_matrix([[1.0, 0.0], [0.0, -1.0]])
    with pytest.raises(DatasetError, match="nonnegative"):
        fit(Preprocessing("minmax", requires="nonnegative"), X)


def test_statistics_come_from_the_fitted_rows_only():
    X = np.array([[0.0], [1.0]])
    steps = fit(Preprocessing("standard"), X)
    before = steps.transform(np.array([[0.5]]))
    steps.transform(np.array([[1e9]]))
    np.testing.assert_array_equal(steps.transform(np.array([[0.5]])), before)


def test_numeric_columns_get_medians_and_nominal_ones_the_commonest_value():
    X = np.array([[1.0, 1.0], [2.0, 0.0], [9.0, 0.0], [np.nan, np.nan]])
    fitted = Imputer(("numeric", "onehot")).fit(X.T)
    np.testing.assert_array_equal(fitted.transform(X)[3], [2.0, 0.0])


def test_columns_that_are_imputed_together_have_their_own_medians(monkeypatch):
    calls, rng = [], np.random.default_rng(0)
    partition = np.partition
    monkeypatch.setattr(np, "partition", lambda *a, **kw: calls.append(1) or partition(*a, **kw))
    X = rng.normal(size=(31, 600))
    X[rng.random(X.shape) < 0.3] = np.nan
    X[:, 7] = np.nan
    kinds = ("numeric", "onehot") * 300
    fitted = Imputer(kinds, indicates=True).fit(X.T)
    medians = [
        np.median(column[~np.isnan(column)]) if j != 7 else 0.0 for j, column in enumerate(X.T)
    ]
    np.testing.assert_array_equal(fitted.values_[::2], medians[::2])
    np.testing.assert_array_equal(fitted.values_[[1, 7]], [np.nanmin(X[:, 1]), 0.0])
    assert fitted.transform(X).shape == (31, 1200)
    assert len(calls) == 1


def test_a_column_without_any_value_becomes_zero():
    X = np.full((3, 1), np.nan)
    assert (Imputer(("numeric",)).fit(X.T).transform(X) == 0).all()


def test_a_median_of_zeros_has_no_sign():
    X = np.array([[-0.0, -0.0], [-0.0, 1.0], [1.0, np.nan]])
    assert not np.signbit(Imputer(("numeric",) * 2).fit(X.T).values_).any()


def test_imputing_is_the_first_step():
    X = np.array([[0.0], [10.0], [np.nan]])
    steps = fit(Preprocessing("minmax", kinds=("numeric",), missing="impute"), X)
    np.testing.assert_allclose(steps.transform(X).ravel(), [0, 1, 0.5])


def test_missing_values_are_refused_with_columns_counts_and_what_to_do():
    X = np.array([[np.nan, 1.0], [np.nan, 2.0]])
    data = Dataset("d", X, np.array([0, 1]), feature_names=["age", "height"])
    with pytest.raises(DatasetError, match=r"2 missing values in age \(2\); set missing"):
        refuse_missing(data)
    with pytest.raises(DatasetError, match=r"age \(2\)"):
        refuse_missing(Dataset("d", scipy.sparse.csr_matrix(X), data.y, feature_names=["age", "h"]))


def test_rows_with_missing_values_are_found_in_dense_and_sparse_data():
    X = np.array([[0.0, 0.0], [np.nan, 1.0], [2.0, 0.0], [0.0, np.nan], [0.0, 0.0]])
    expected = [False, True, False, True, False]
    assert missing_rows(X).tolist() == expected
    assert missing_rows(scipy.sparse.csr_matrix(X)).tolist() == expected


KINDS = ("target_encoded", "numeric")


def categories(n=300, k=30, seed=0):
    """Return numbers of categories beside a number, and labels that say nothing of them."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, k, n), rng.normal(size=n)])
    return X, rng.integers(0, 2, n)


def test_training_rows_are_encoded_without_their_own_targets():
    X, y = categories(k=150)
    steps = Preprocessing("none", kinds=KINDS)
    encoded = steps.fit_transform(X, y)[:, 1]
    # means that contained a row's own target would tell it
    assert abs(np.corrcoef(encoded, y)[0, 1]) < 0.25
    assert np.corrcoef(steps.transform(X)[:, 1], y)[0, 1] > 0.4


def test_means_are_those_of_scikit_learn_and_come_after_other_columns():
    from sklearn.preprocessing import TargetEncoder

    X, y = categories()
    steps = Preprocessing("none", kinds=KINDS)
    steps.fit_transform(X, y)
    expected = TargetEncoder().fit(X[:, :1], y).transform(X[:, :1])[:, 0]
    np.testing.assert_allclose(steps.transform(X)[:, 1], expected)
    np.testing.assert_array_equal(steps.transform(X)[:, 0], X[:, 1])


def test_three_classes_have_a_mean_each_and_numbers_one():
    X, _ = categories()
    y = np.arange(300) % 3
    assert Preprocessing("none", kinds=KINDS).fit_transform(X, y).shape == (300, 4)
    steps = Preprocessing("none", kinds=KINDS, task="regression")
    assert steps.fit_transform(X, X[:, 1]).shape == (300, 2)


def test_missing_and_new_categories_have_means():
    X, y = categories()
    X[:40, 0], y[:40] = np.nan, 1
    steps = Preprocessing("minmax", kinds=KINDS, missing="impute_with_indicators")
    assert np.isfinite(steps.fit_transform(X, y)).all()
    new = steps.transform(np.array([[np.nan, 0.0], [99.0, 0.0]]))
    assert new[0, 1] > new[1, 1]  # all rows without a category are of class 1
    raw = Preprocessing("none", kinds=KINDS)
    raw.fit_transform(X, y)
    assert raw.transform(np.array([[99.0, 0.0]]))[0, 1] == pytest.approx(y.mean())


def test_few_rows_of_a_class_are_encoded_too():
    X, y = categories(n=12)
    y[:] = 0
    y[3] = 1
    assert np.isfinite(Preprocessing("none", kinds=KINDS).fit_transform(X, y)).all()


def test_categories_are_not_encoded_once_for_all_inner_folds():
    X, _ = categories()
    with pytest.raises(DatasetError, match="need refit_maps_in_inner_folds = true"):
        fit(Preprocessing("minmax", kinds=KINDS), X)


def test_an_indicator_per_pattern_says_what_was_missing():
    X = np.array([[1.0, np.nan, np.nan, 4.0], [2.0, 3.0, 5.0, np.nan], [3.0, 4.0, 6.0, 7.0]])
    steps = fit(Preprocessing("none", kinds=("numeric",) * 4, missing="impute_with_indicators"), X)
    np.testing.assert_array_equal(steps.transform(X)[:, 4:], [[1, 0], [0, 1], [0, 0]])
    # the pattern is that of the training rows
    assert steps.transform(np.full((1, 4), np.nan)).shape == (1, 6)
    complete = fit(Preprocessing("none", kinds=steps.kinds, missing=steps.missing), X[2:])
    assert complete.transform(X).shape == (3, 4)
