import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import check_estimator

from kbench.evaluation.block_fits import Sample
from kbench_learners import LinearSVM, _block_fits
from kbench_learners._design import Design, inner_products
from kbench_learners._linear_svm import margin_error
from kbench_learners._newton import ActiveRows

LOSSES = {
    "squared_hinge": lambda m: np.maximum(0.0, 1.0 - m) ** 2,
    "hinge": lambda m: np.maximum(0.0, 1.0 - m),
    "logistic": lambda m: np.logaddexp(0.0, -m),
}


def objectives(coef, intercept, X, y, C, loss):
    """Objective of each one-vs-rest problem, straight from the definition."""
    classes = np.unique(y)
    positive = classes[1:] if len(classes) == 2 else classes
    out = []
    for w, b, k in zip(coef, np.atleast_1d(intercept), positive, strict=True):
        m = np.where(y == k, 1.0, -1.0) * (X @ w + b)
        out.append(0.5 * (w @ w + b * b) + C * LOSSES[loss](m).sum())
    return np.array(out)


def data(name):
    if name == "wine":
        X, y = load_wine(return_X_y=True)
    elif name == "wdbc":
        X, y = load_breast_cancer(return_X_y=True)
    else:
        X, y = load_digits(return_X_y=True)
        X, y = X[::8], y[::8]
    X = MinMaxScaler().fit_transform(X)
    return (PolynomialFeatures(2).fit_transform(X), y) if name == "polynomial" else (X, y)


@pytest.mark.parametrize("name", ["wine", "wdbc", "digits", "polynomial"])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_objective_equals_liblinear(name, C):
    X, y = data(name)
    ours = LinearSVM(C=C, multiclass="ovr").fit(X, y)
    theirs = LinearSVC(C=C, dual=False, tol=1e-8, max_iter=5000).fit(X, y)
    reached = objectives(ours.coef_, ours.intercept_, X, y, C, "squared_hinge")
    reference = objectives(theirs.coef_, theirs.intercept_, X, y, C, "squared_hinge")
    np.testing.assert_array_less(reached, reference * (1 + 1e-5))
    np.testing.assert_allclose(reached, ours.objective_, rtol=1e-7)
    assert ours.converged_


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ["wdbc", "polynomial"])
def test_gap_bounds_the_error(loss, name):
    X, y = data(name)
    y = y == y[0]
    coarse = LinearSVM(C=5.0, loss=loss, tol=1e-2).fit(X, y)
    fine = LinearSVM(C=5.0, loss=loss, tol=1e-10).fit(X, y)
    assert fine.converged_ and fine.gap_ <= 1e-10
    excess = (coarse.objective_[0] - fine.objective_[0]) / coarse.objective_[0]
    assert -1e-9 <= excess <= coarse.gap_ + 1e-9 <= 1e-2 + 1e-8


def test_hinge_equals_libsvm_without_intercept():
    X, y = data("wdbc")
    # libsvm's intercept is not penalised, so compare through the origin.
    X = X - X.mean(axis=0)
    ours = LinearSVM(C=3.0, loss="hinge", fit_intercept=False, tol=1e-8).fit(X, y)
    t = np.where(y == 1, 1.0, -1.0)
    doubled, labels = np.vstack([X, -X]), np.concatenate([t, -t])
    # The mirrored rows force libsvm's intercept to 0.
    svc = SVC(kernel="linear", C=1.5, tol=1e-8).fit(doubled, labels)
    np.testing.assert_allclose(ours.coef_, svc.coef_, atol=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
def test_path_equals_single_fits(loss, multiclass):
    X, y = data("wine")
    values = [10.0, 0.01, 1.0]
    path = LinearSVM(loss=loss, multiclass=multiclass).fit_path(X, y, values)
    assert [fitted.C for fitted in path] == values
    for fitted, C in zip(path, values, strict=True):
        alone = LinearSVM(C=C, loss=loss, multiclass=multiclass).fit(X, y)
        np.testing.assert_allclose(fitted.objective_, alone.objective_, rtol=3e-6)
        assert fitted.coef_.shape == (3, X.shape[1])


@pytest.mark.parametrize("shape", [(300, 20), (60, 200)])
@pytest.mark.parametrize("loss", LOSSES)
def test_sparse_equals_dense(shape, loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape) * (rng.random(shape) < 0.2)
    y = np.sign(X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=shape[0])) > 0
    dense = LinearSVM(loss=loss, tol=1e-9).fit(X, y)
    sparse = LinearSVM(loss=loss, tol=1e-9).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-4)
    np.testing.assert_array_equal(sparse.predict(sp.csr_array(X)), dense.predict(X))


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_conjugate_gradients_reach_the_same_solution(loss, monkeypatch):
    X, y = make_classification(400, 30, random_state=0)
    direct = LinearSVM(loss=loss, C=2.0, tol=1e-8).fit(X, y)
    for name in ("MAX_FACTOR_COLUMNS", "MAX_FACTOR_ROWS"):
        monkeypatch.setattr(f"kbench_learners._design.{name}", 5)
    monkeypatch.setattr("kbench_learners._newton._MAX_ROWS", 5)
    iterated = LinearSVM(loss=loss, C=2.0, tol=1e-8).fit(X, y)
    assert iterated.converged_
    np.testing.assert_allclose(iterated.objective_, direct.objective_, rtol=1e-7)


def test_ovo_is_a_fit_of_each_pair():
    X, y = data("wine")
    ovo = LinearSVM(multiclass="ovo", tol=1e-9).fit(X, y)
    for number, (first, second) in enumerate([(0, 1), (0, 2), (1, 2)]):
        rows = (y == first) | (y == second)
        pair = LinearSVM(tol=1e-9).fit(X[rows], y[rows] == first)
        np.testing.assert_allclose(ovo.coef_[number], pair.coef_[0], atol=1e-5)
    decisions = ovo.pair_decisions(X)
    np.testing.assert_allclose(decisions, -np.swapaxes(decisions, 1, 2))
    winners = (decisions > 0).sum(axis=2)
    scores = ovo.decision_function(X)
    np.testing.assert_array_equal(np.rint(scores), winners)


def test_small_sparse_rows_give_the_solution_of_an_array(monkeypatch):
    X, y = data("wine")
    X = sp.csr_array(np.where(X > 0.5, X, 0.0))
    small = LinearSVM(tol=1e-9).fit(X, y)
    monkeypatch.setattr("kbench_learners._linear_svm._SMALL", 0)
    np.testing.assert_allclose(small.coef_, LinearSVM(tol=1e-9).fit(X, y).coef_, atol=1e-5)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(4, 40),
    p=st.integers(1, 40),
    C=st.floats(1e-3, 1e3),
    loss=st.sampled_from(sorted(LOSSES)),
)
def test_no_perturbation_is_better(seed, n, p, C, loss):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X[n // 2] = X[0]  # duplicates with any labels
    y = np.arange(n) % 2
    fitted = LinearSVM(C=C, loss=loss, tol=1e-9).fit(X, y)
    best = objectives(fitted.coef_, fitted.intercept_, X, y, C, loss)[0]
    for scale in (1e-3, 1e-1):
        w = fitted.coef_ + scale * rng.normal(size=(1, p))
        b = fitted.intercept_ + scale * rng.normal()
        assert objectives(w, b, X, y, C, loss)[0] >= best * (1 - 1e-8)


def test_bad_inputs_converge_or_say_so():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6))
    y = (X[:, 0] > 0).astype(int)
    constant = np.hstack([X, np.ones((80, 2)), np.zeros((80, 1))])
    contradictory = np.vstack([X, X]), np.concatenate([y, 1 - y])
    zero_rows = X * (np.arange(80) % 3 > 0)[:, None]
    cases = [(constant, y), contradictory, (zero_rows, y), (np.zeros((80, 3)), y)]
    for inputs, labels in cases:
        assert LinearSVM(C=1e4).fit(inputs, labels).converged_
    for scale in (1e6, 1e9, 1e-9):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted = LinearSVM(C=1e3).fit(X * scale, y)
        complained = any(issubclass(w.category, ConvergenceWarning) for w in caught)
        assert fitted.converged_ is not complained
        assert np.isfinite(fitted.coef_).all()


BAD = {
    "constant columns": lambda X, y: (np.hstack([X, np.full((len(X), 2), 3.0)]), y),
    "rows of zeros": lambda X, y: (X * (np.arange(len(X)) % 3 > 0)[:, None], y),
    "nothing but zeros": lambda X, y: (np.zeros_like(X), y),
    "opposite labels": lambda X, y: (np.vstack([X, X]), np.concatenate([y, (y + 1) % 3])),
    "huge scale": lambda X, y: (1e6 * X, y),
    "tiny scale": lambda X, y: (1e-6 * X, y),
    "mixed scales": lambda X, y: (X * [1e6, 1.0, 1e-6, 1e3], y),
    "a class of one row": lambda X, y: (X, np.where(np.arange(len(y)) == 0, 9, y)),
    "one row a class": lambda X, y: (X[:3], np.arange(3)),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_a_path_on_bad_inputs_converges_or_says_so(multiclass, loss, bad):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = (X[:, 0] + 0.5 * rng.normal(size=60) > 0).astype(int) + (X[:, 1] > 1)
    X, y = BAD[bad](X, y)
    values = [2.0**-5, 1.0, 2.0**10]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        path = LinearSVM(loss=loss, multiclass=multiclass).fit_path(X, y, values)
    complaints = [w for w in caught if issubclass(w.category, ConvergenceWarning)]
    assert len(complaints) == sum(not fitted.converged_ for fitted in path)
    for fitted in path:
        assert fitted.converged_ == (fitted.gap_ <= fitted.tol)
        assert np.isfinite(fitted.coef_).all() and np.isfinite(fitted.intercept_).all()
        assert set(fitted.predict(X)) <= set(y)
    if "scale" not in bad:
        assert not complaints


@pytest.mark.parametrize("C", [0.0, -1.0, np.inf, np.nan, "1"])
def test_a_path_names_the_value_that_is_none(C):
    with pytest.raises(ValueError, match=f"C must be a finite number > 0, got {C!r}"):
        LinearSVM().fit_path([[0.0], [1.0]], [0, 1], [1.0, C])


def test_too_few_steps_are_reported():
    X, y = data("digits")
    with pytest.warns(ConvergenceWarning, match="relative duality gap"):
        fitted = LinearSVM(C=100.0, max_iter=1).fit(X, y)
    assert not fitted.converged_ and fitted.gap_ > fitted.tol


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"C": 0.0}, "C must be a finite number > 0, got 0.0"),
        ({"C": -1.0}, "C must be a finite number > 0, got -1.0"),
        ({"loss": "huber"}, "loss must be one of 'squared_hinge', .*, got 'huber'"),
        ({"multiclass": "ecoc"}, "multiclass must be one of 'ovr', 'ovo', got 'ecoc'"),
        ({"tol": 0.0}, "tol must be a finite number > 0, got 0.0"),
        ({"max_iter": 0}, "max_iter must be an integer >= 1, got 0"),
    ],
)
def test_wrong_parameters_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        LinearSVM(**params).fit([[0.0], [1.0]], [0, 1])


def test_one_class_is_named():
    with pytest.raises(ValueError, match="1 class"):
        LinearSVM().fit([[0.0], [1.0]], ["a", "a"])


def test_intercept_scaling_frees_the_intercept():
    X, y = data("wdbc")
    shifted = X + 5.0
    tight = LinearSVM(intercept_scaling=1.0).fit(shifted, y)
    free = LinearSVM(intercept_scaling=1e3).fit(shifted, y)
    penalty = 0.5 * (tight.intercept_[0] ** 2) * (1 - 1e-6)
    assert free.objective_[0] < tight.objective_[0] - 0.01 * penalty
    assert LinearSVM(fit_intercept=False).fit(X, y).intercept_[0] == 0.0


def test_margin_error_counts_the_rows_inside_the_margin():
    X, y = data("wdbc")
    fitted = LinearSVM().fit(X, y)
    m = np.where(y == 1, 1, -1) * fitted.decision_function(X)
    assert margin_error(fitted, X, y)["margin_error"] == np.mean(m < 1)
    X, y = data("wine")
    for multiclass in ("ovr", "ovo"):
        fitted = LinearSVM(C=100.0, multiclass=multiclass).fit(X, y)
        share = margin_error(fitted, X, y)["margin_error"]
        assert 1 - fitted.score(X, y) <= share < 1.0


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), n=st.integers(1, 12), p=st.integers(1, 30))
@example(seed=728, n=2, p=6)  # the copy of a row, but for rounding
def test_reduced_designs_keep_inner_products(seed, n, p):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)).round(1)
    X[-1] = X[0]
    full = Design(X, bias=2.0)
    reduced = full.reduced()
    assert reduced.shape[1] <= max(n, p + 1)
    if reduced is not full:
        np.testing.assert_allclose(reduced.X @ reduced.X.T, X @ X.T + 4.0, atol=1e-10)
        w = rng.normal(size=(reduced.shape[1], 2))
        expanded = reduced.expand(w, full)
        np.testing.assert_allclose(full.margins(expanded), reduced.margins(w), atol=1e-8)


def test_gram_of_rows_and_weights():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 7)) * (rng.random((50, 7)) < 0.5)
    rows, weights = np.arange(0, 50, 3), rng.random(17)
    A = np.hstack([X, np.full((50, 1), 0.5)])[rows]
    for inputs in (X, sp.csr_array(X)):
        design = Design(inputs, bias=0.5)
        expected = np.triu(A.T @ (weights[:, None] * A))
        np.testing.assert_allclose(np.triu(design.gram(rows, weights)), expected, atol=1e-12)
        total = design.add_gram(np.ones((8, 8)), -2.0, rows, weights)
        np.testing.assert_allclose(np.triu(total), np.triu(np.ones((8, 8))) - 2.0 * expected)
        np.testing.assert_allclose(design.row_gram(rows), A @ A.T, atol=1e-12)
        np.testing.assert_allclose(
            design.part(rows).squared_columns(weights), (A**2).T @ weights, atol=1e-12
        )


@pytest.mark.parametrize("bias", [0.0, 0.5])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_rows_that_are_not_copied_are_the_same_rows(form, bias, monkeypatch):
    rng = np.random.default_rng(0)
    X = form(rng.normal(size=(90, 6)) * (rng.random((90, 6)) < 0.5))
    rows, weights = rng.permutation(90)[:40], rng.random(40)
    copied = Design(X, bias).part(rows)
    for name, value in (("_COPY_ENTRIES", 0), ("_MIN_BLOCK_ENTRIES", 30)):
        monkeypatch.setattr(f"kbench_learners._design.{name}", value)
    design = Design(X, bias).part(rows)
    assert design.X is X
    assert design.shape == copied.shape
    w = rng.normal(size=(design.shape[1], 2))
    np.testing.assert_allclose(design.margins(w), copied.margins(w))
    np.testing.assert_allclose(design.adjoint(copied.margins(w)), copied.adjoint(copied.margins(w)))
    np.testing.assert_allclose(design.gram(), copied.gram())
    np.testing.assert_allclose(design.row_gram(), copied.row_gram())
    np.testing.assert_allclose(design.squared_columns(weights), copied.squared_columns(weights))
    some = np.array([3, 1, 8])
    np.testing.assert_allclose(design.part(some).margins(w), copied.part(some).margins(w))
    np.testing.assert_allclose(
        design.gram(some, weights[:3]), copied.gram(some, weights[:3]), atol=1e-12
    )


def peak_memory(X, y, values, **options):
    """Bytes beyond the input that a path takes at most, and its last fit."""
    learner = LinearSVM(**options)
    learner.fit_path(X[:50], y[:50], values)  # first calls load code
    tracemalloc.start()
    path = learner.fit_path(X, y, values)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, path[-1]


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_memory_beyond_the_input_is_three_gram_matrices_and_a_few_columns(multiclass, monkeypatch):
    rng = np.random.default_rng(0)
    n, p, k = 8_000, 200, 3
    X = rng.normal(size=(n, p))
    y = (X @ rng.normal(size=(p, k)) + rng.normal(size=(n, k))).argmax(axis=1)
    monkeypatch.setattr("kbench_learners._design._COPY_ENTRIES", 0)
    peak, fitted = peak_memory(X, y, [0.1, 1.0, 10.0], multiclass=multiclass)
    assert fitted.converged_
    assert peak <= 3 * 8 * (p + 1) ** 2 + 10 * 8 * n
    assert peak < 0.2 * X.nbytes


def test_memory_is_bounded_by_three_gram_matrices_where_columns_are_many():
    rng = np.random.default_rng(0)
    n, p = 3000, 600
    X = rng.normal(size=(n, p))
    y = X[:, 0] + rng.normal(size=n) > 0
    peak, _ = peak_memory(X, y, [0.1, 1.0])
    assert peak <= 3.3 * 8 * (p + 1) ** 2


@pytest.mark.parametrize("rank", [600, 100])
def test_memory_of_sparse_pairs(rank):
    rng = np.random.default_rng(0)
    n, p = 3000, 600
    X = rng.random((n, rank)) * (rng.random((n, rank)) < 0.03)
    X = sp.csr_array(np.repeat(X, p // rank, axis=1))
    y = np.arange(n) % 3
    peak, fitted = peak_memory(X, y, [0.1, 1.0])
    assert fitted.converged_
    assert peak <= 3.3 * 8 * (p + 1) ** 2 + 2 * X.nnz * 12 + 10 * 8 * n


def test_sklearn_contract():
    check_estimator(LinearSVM())


def test_a_pair_has_the_columns_that_its_rows_use():
    rng = np.random.default_rng(0)
    X, y = rng.random((90, 30)) * (rng.random((90, 30)) < 0.3), np.arange(90) % 3
    for label in range(3):
        X[y == label, 10 * label : 10 * (label + 1)] = 0.0
    dense = LinearSVM(multiclass="ovo", tol=1e-9).fit(X, y)
    sparse = LinearSVM(multiclass="ovo", tol=1e-9).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-5)
    np.testing.assert_allclose(sparse.intercept_, dense.intercept_, atol=1e-5)

    X[y < 2, 25:] = 0.0
    design = Design(sp.csr_array(X), bias=0.5)
    pair = design.subproblem(np.flatnonzero(y < 2))
    assert pair.shape == (60, 26)
    w = rng.normal(size=26)
    wide = pair.widened(w)
    assert wide.shape == (31,)
    assert not wide[25:30].any()
    np.testing.assert_allclose(pair.margins(w), design.margins(wide)[y < 2])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_columns", [3, 30])
def test_rows_without_entries(loss, fit_intercept, n_columns):
    rng = np.random.default_rng(0)
    X, y = rng.random((20, n_columns)), np.repeat([0, 1, 2], [5, 7, 8])
    some = X * (y == 2)[:, None]  # the first pair of classes has none
    for inputs in (some, sp.csr_array(some), sp.csr_array(X.shape), np.zeros(X.shape)):
        for labels, scheme in ((y, "ovo"), (y, "ovr"), (y == 0, "ovr")):
            svm = LinearSVM(loss=loss, fit_intercept=fit_intercept, multiclass=scheme)
            assert svm.fit(inputs, labels).converged_
    np.testing.assert_allclose(
        LinearSVM(loss=loss, tol=1e-9).fit(sp.csr_array(some), y).coef_,
        LinearSVM(loss=loss, tol=1e-9).fit(some, y).coef_,
        atol=1e-4,
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_sparse_pairs_of_low_rank(loss):
    rng = np.random.default_rng(0)
    X = rng.random((120, 5)) * (rng.random((120, 5)) < 0.3)
    X, y = np.tile(X, 4), np.arange(120) % 3
    pair = Design(sp.csr_array(X), bias=1.0).subproblem(np.flatnonzero(y < 2))
    reduced = pair.reduced()
    assert reduced.shape == (80, 6)
    np.testing.assert_allclose(
        reduced.X @ reduced.X.T, X[y < 2] @ X[y < 2].T + 1.0, rtol=1e-9, atol=1e-9
    )
    w = rng.normal(size=(6, 2))
    np.testing.assert_allclose(pair.margins(reduced.expand(w, pair)), reduced.margins(w))
    with pytest.MonkeyPatch.context() as patch:  # many rows times few dimensions are many values
        patch.setattr("kbench_learners._design._COPY_ENTRIES", 80 * 6 - 1)
        assert pair.reduced() is pair
    dense = LinearSVM(loss=loss, tol=1e-10).fit(X, y)
    sparse = LinearSVM(loss=loss, tol=1e-10).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.objective_, dense.objective_, rtol=1e-8)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-4)


@pytest.mark.parametrize("density", [0.01, 0.3])
def test_products_of_sparse_rows(density):
    rng = np.random.default_rng(0)
    X = rng.random((40, 300)) * (rng.random((40, 300)) < density)
    X[3] = 0.0
    np.testing.assert_allclose(inner_products(sp.csr_array(X)), X @ X.T, atol=1e-12)
    np.testing.assert_allclose(np.triu(Design(sp.csr_array(X)).gram()), np.triu(X.T @ X))


def test_iterations_that_take_too_long_give_way_to_a_factorisation(monkeypatch):
    monkeypatch.setattr("kbench_learners._newton._CG_EXPECTED", 0)
    monkeypatch.setattr("kbench_learners._newton._MAX_ROWS", 0)
    rng = np.random.default_rng(0)
    A = rng.normal(size=(200, 40)) * np.logspace(0, -4, 40)  # far too many iterations
    g, J = rng.normal(size=40), np.arange(0, 200, 2)
    solver = ActiveRows(Design(A))
    d = solver.direction(g, J, 1e8, 1e-12)
    np.testing.assert_allclose((np.eye(40) + 1e8 * A[J].T @ A[J]) @ d, -g, atol=1e-6)
    assert solver._cg_expected > 0
    # now that this is known, they are not even tried
    monkeypatch.setattr("kbench_learners._newton.conjugate_gradients", None)
    np.testing.assert_array_equal(solver.direction(g, J, 1e8, 1e-12), d)


def few_entries(seed, n_classes=2, n=300, p=900, per_row=6):
    """Return sparse rows whose Gram matrices take long to factorise, and labels."""
    rng = np.random.default_rng(seed)
    columns = np.sort(rng.integers(0, p, size=(n, per_row)), axis=1)
    weights = rng.dirichlet(np.ones(per_row), size=n)
    X = sp.csr_array((weights.ravel(), columns.ravel(), np.arange(0, n * per_row + 1, per_row)))
    X.sum_duplicates()
    scores = X @ rng.normal(size=(X.shape[1], n_classes)) + 0.1 * rng.normal(size=(n, n_classes))
    return X, scores.argmax(axis=1)


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    loss=st.sampled_from(sorted(LOSSES)),
    multiclass=st.sampled_from(["ovr", "ovo"]),
    n_classes=st.integers(2, 3),
)
def test_rows_of_few_entries_have_the_solution_of_an_array(seed, loss, multiclass, n_classes):
    (X, y), tol, values = few_entries(seed, n_classes), 1e-6, [1.0, 50.0]
    given = {"loss": loss, "multiclass": multiclass, "tol": tol}
    paths = [LinearSVM(**given).fit_path(each, y, values) for each in (X, X.toarray())]
    for ours, dense in zip(*paths, strict=True):
        assert ours.converged_ and ours.gap_ <= tol
        # the objective is strongly convex: a gap bounds the distance from the solution
        most = 2.0 * np.sqrt(2.0 * tol * dense.objective_)
        assert (np.linalg.norm(ours.coef_ - dense.coef_, axis=1) <= most).all()
        np.testing.assert_allclose(ours.objective_, dense.objective_, rtol=1.1 * tol)
    if loss == "squared_hinge" and n_classes == 2:
        svc = LinearSVC(C=50.0, tol=1e-8, dual=False).fit(X.toarray(), y)
        reference = objectives(svc.coef_, svc.intercept_, X, y, 50.0, loss)
        np.testing.assert_allclose(paths[0][1].objective_, reference, rtol=1.1 * tol)


@pytest.mark.parametrize(
    ("loss", "balanced"), [*((loss, False) for loss in LOSSES), ("squared_hinge", True)]
)
def test_rows_of_few_entries_are_not_factorised(loss, balanced, monkeypatch):
    X, y = few_entries(0)
    monkeypatch.setattr("kbench_learners._design.pivoted_cholesky", None)
    monkeypatch.setattr("kbench_learners._paths.cholesky_solve", None)
    monkeypatch.setattr(Design, "gram", None)
    assert LinearSVM(loss=loss, balanced=balanced).fit(X, y).converged_
    assert not Design(X.toarray()).iterates
    assert not Design(X[:30]).iterates


@pytest.mark.parametrize("shape", [(300, 5), (60, 100)])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_balanced_classes_have_the_weights_of_liblinear(shape, n_classes, is_sparse, fit_intercept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape) * (rng.random(shape) < 0.4 if is_sparse else 1.0)
    scores = np.column_stack([np.full(len(X), 2.0), X[:, 1 : 1 + n_classes - 1]])
    y = (scores + 0.3 * rng.normal(size=scores.shape)).argmax(axis=1)
    y[:n_classes] = np.arange(n_classes)
    X = sp.csr_matrix(X) if is_sparse else X
    options = {"fit_intercept": fit_intercept, "C": 0.7}
    ours = LinearSVM(balanced=True, multiclass="ovr", tol=1e-10, **options).fit(X, y)
    theirs = LinearSVC(dual=True, tol=1e-10, max_iter=10**6, **options)
    theirs.fit(X, y, sample_weight=len(y) / n_classes / np.bincount(y)[y])
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)
    assert ours.converged_
    assert not hasattr(ours, "begin_fit")
    weighted, _ = LinearSVM(balanced=True, multiclass="ovo").fit_path(X, y, [0.7, 8.0])
    plain = LinearSVM(multiclass="ovo", C=0.7).fit(X, y)
    assert np.sum(weighted.predict(X) == 0) <= np.sum(plain.predict(X) == 0)


def test_balanced_needs_the_squared_hinge():
    with pytest.raises(ValueError, match='needs loss="squared_hinge"'):
        LinearSVM(balanced=True, loss="hinge").fit(np.eye(4), [0, 0, 1, 1])


@pytest.mark.parametrize(("n_classes", "n_copied"), [(2, 0), (3, 3)])
def test_a_fit_in_passes_copies_no_sample_of_all_rows(n_classes, n_copied, monkeypatch):
    Z = np.random.default_rng(0).normal(size=(90, 4))
    codes, taken = np.arange(90) % n_classes, []
    sample = Sample(Z, codes, np.arange(n_classes), np.bincount(codes))

    def make(X, *given):
        taken.append(X)
        return Design(X, *given)

    monkeypatch.setattr(_block_fits, "Design", make)
    LinearSVM(multiclass="ovo").begin_fit(sample, [1.0])
    assert sum(X is not Z for X in taken) == n_copied
    assert len(taken) == max(1, n_copied)


def test_sparse_columns_of_different_scales_are_factored():
    rng = np.random.default_rng(1)
    X = sp.random(600, 800, 0.01, random_state=1) @ sp.diags(10 ** rng.uniform(-2, 2, 800))
    y = (X @ (rng.normal(size=800) / 10 ** rng.uniform(-2, 2, 800)) > 0).astype(int)
    path = LinearSVM(loss="logistic").fit_path(X.tocsr(), y, [8.0, 2048.0])
    assert all(fitted.converged_ for fitted in path)
