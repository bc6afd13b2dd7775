from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull
from scipy.special import comb
from sklearn.svm import LinearSVC

from kbench_nbcs import (
    NestedBarycentricMap,
    approximate_convex_body,
    hinge_bound,
    margin_error_bound,
    margin_metrics,
    refine_weights,
    theory_stages,
    vc_bound,
)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 5),
    st.integers(0, 2),
    st.integers(1, 2),
    st.sampled_from(["barycentre", "adaptive"]),
    st.integers(0, 99),
)
def test_refined_weights_describe_the_same_function(d, depth, more, split, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.random((60, d)), rng.integers(0, 2, 60)
    coarse, fine = (
        NestedBarycentricMap(q, split=split, rotate=True, random_state=seed).fit(X, y)
        for q in (depth, depth + more)
    )
    n = coarse.n_splits_
    w = rng.normal(size=coarse.n_vertices_)
    refined = refine_weights(w, fine.split_simplices_[n:], fine.split_coordinates_[n:])
    np.testing.assert_array_equal(refined[: len(w)], w)
    test = rng.random((50, d))
    np.testing.assert_allclose(
        fine.transform(test) @ refined, coarse.transform(test) @ w, atol=1e-9
    )


def body(d, n, seed, size=0.15):
    return np.random.default_rng(seed).uniform(-size, size, (n, d)) / sqrt(d)


def in_hull(points, X, tol=1e-9):
    hull = ConvexHull(points)
    return np.all(X @ hull.equations[:, :-1].T + hull.equations[:, -1] <= tol, axis=1)


def excess(approximation, points, X):
    """Share of the root's volume that is in the approximation and not in the body."""
    return np.mean(approximation.contains(X) & ~in_hull(points, X))


def in_simplex(n, root, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(len(root)), n) @ root


@pytest.mark.parametrize("initial_weight", [1.0, -1.0])
@pytest.mark.parametrize(("d", "stages"), [(2, 4), (3, 2)])
def test_theorem_2_contains_the_body_and_shrinks(d, stages, initial_weight):
    points = body(d, 9, seed=d)
    previous = np.inf
    for stage in range(1, stages + 1):
        found = approximate_convex_body(points, stage, initial_weight=initial_weight)
        X = in_simplex(4000, found.vertices[: d + 1])
        inside = np.random.default_rng(1).dirichlet(np.ones(9) / 3, 2000) @ points
        assert found.contains(inside).all()
        assert found.contains(points).all()
        now = excess(found, points, X)
        assert now <= previous + 1e-12
        previous = now
    assert previous < (0.2 if d == 2 and initial_weight < 0 else 0.8)


def test_the_weights_are_the_smallest_that_contain_the_body():
    points = body(2, 6, seed=3)
    found = approximate_convex_body(points, 3)
    dense = np.random.default_rng(0).dirichlet(np.ones(6) / 2, 20_000) @ points
    edge = np.vstack(
        [
            points + t * (np.roll(points, k, 0) - points)
            for k in range(1, 6)
            for t in np.linspace(0, 1, 40)
        ]
    )
    nbcs_values = found.decision_function(np.vstack([dense, edge]))
    assert nbcs_values.min() > -1e-9
    # every smallest simplex that the body crosses has been cut down to it
    assert nbcs_values.min() < 1e-3
    # lowering any finite weight of the last stage loses part of the body
    last = found._forest.stages[-2] + found._forest.first_split
    lowered = [k for k in range(last, len(found.weights)) if np.isfinite(found.weights[k])]
    lost = 0
    for k in lowered:
        weights = found.weights.copy()
        weights[k] -= 0.05
        object.__setattr__(found, "weights", weights)
        lost += not found.contains(np.vstack([dense, edge])).all()
        weights[k] += 0.05
    assert lost >= 0.8 * len(lowered)
    assert len(lowered) > 3


@pytest.mark.slow
def test_theorem_2_comes_near_soon():
    points = body(2, 9, seed=2, size=0.3)
    found = approximate_convex_body(points, 6)
    X = in_simplex(20_000, found.vertices[:3])
    assert excess(found, points, X) < 0.03


def test_theorem_2_as_printed_is_infeasible():
    root = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, sqrt(3) / 2]])
    touching = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.2]])  # diameter 1: contains an edge
    with pytest.raises(ValueError, match="interior of the root"):
        approximate_convex_body(touching, 1, root=root, initial_weight=-1.0)
    found = approximate_convex_body(touching, 3, root=root, initial_weight=1.0)
    assert found.contains(touching).all()
    with pytest.raises(ValueError, match="in the root"):
        approximate_convex_body(touching + 1.0, 1, root=root, initial_weight=1.0)
    with pytest.raises(ValueError, match="initial_weight must not be 0"):
        approximate_convex_body(touching, 1, root=root, initial_weight=0.0)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize("epsilon", [0.5, 0.1, 0.01])
def test_theory_stages_is_the_least_that_the_proof_allows(d, epsilon):
    s = theory_stages(d, epsilon)
    rho = epsilon / (2 * sqrt(2) * d * d)
    z = next(z for z in range(1, 10**6) if (d / (d + 1)) ** z <= rho)
    assert s % (z * d) == 0
    k = s // (z * d)
    assert z * (1 - np.exp(-d)) ** k <= epsilon / 2 < z * (1 - np.exp(-d)) ** (k - 1)


def test_bounds_are_the_printed_formulas_with_the_corrections():
    n, k, delta = 1000, 7, 0.1
    choices = comb(n, k, exact=True)
    assert vc_bound(0.1, n, 12, k, delta, constant=2.0) == pytest.approx(
        0.1 + 2 * sqrt(12 / 993) + sqrt(log(choices / delta) / (2 * 993))
    )
    assert hinge_bound(0.2, 3.0, n, k, delta) == pytest.approx(
        0.2
        + 12 / sqrt(993)
        + sqrt(log(log(6, 2)) / 993)
        + sqrt(log(2 * choices / delta) / (2 * 993))
    )
    assert margin_error_bound(0.2, 0.25, n, 4, k, delta) == pytest.approx(
        0.2 + 4 / sqrt(993) + sqrt(log(4 * choices / delta) / 993)
    )
    # a larger norm is a smaller margin: the printed form went the other way
    assert hinge_bound(0.1, 8.0, n) > hinge_bound(0.1, 4.0, n) > hinge_bound(0.1, 0.5, n)
    assert margin_error_bound(0.1, 0.1, n, 3, k=5) > margin_error_bound(0.1, 0.1, n, 3)
    with pytest.raises(ValueError, match="k must be an integer >= 0 and <= 9, got 10"):
        vc_bound(0.1, 10, 3, k=10)
    with pytest.raises(ValueError, match=r"delta must be .*, got 0"):
        hinge_bound(0.1, 1.0, 10, delta=0)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_roots", [1, 3])
def test_margin_metrics_are_those_of_the_rescaled_classifier(n_classes, n_roots):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (600, 2))
    y = np.digitize(np.linalg.norm(X, axis=1), [0.5, 0.9][: n_classes - 1])
    nbcs = NestedBarycentricMap(2, n_roots=n_roots, rotate=True, random_state=0).fit(X)
    Z = nbcs.transform(X)
    svm = LinearSVC(C=100.0, dual=False).fit(Z, y)
    found = margin_metrics(nbcs, svm, X, y, delta=0.1)
    psi = Z.toarray() / sqrt(n_roots)
    assert np.linalg.norm(psi, axis=1).max() <= 1 + 1e-12
    # weights without intercept on psi that give the decision function exactly
    decision = svm.decision_function(Z).reshape(len(X), -1)
    w = sqrt(n_roots) * (svm.coef_ + svm.intercept_[:, None] / n_roots)
    np.testing.assert_allclose(psi @ w.T, decision, atol=1e-9)
    assert found["margin"] == pytest.approx(1 / np.linalg.norm(w, axis=1).max())
    sign = np.where(y[:, None] == (svm.classes_[1:] if n_classes == 2 else svm.classes_), 1, -1)
    assert found["margin_error"] == pytest.approx((sign * decision < 1).mean(axis=0).max())
    k = 4 + 3 * n_roots
    assert found["compression_size"] == k
    # each problem has its part of delta, so that all bounds hold at once
    margins, part = sign * decision, 0.1 / decision.shape[1]
    bounds = [
        (
            vc_bound(np.mean(each <= 0), 600, n_roots * (3 + 1 + 3), k, part),
            hinge_bound(np.mean(np.maximum(0, 1 - each)), norm, 600, k, part),
            margin_error_bound(np.mean(each < 1), min(1, 1 / norm), 600, 2, k, part),
        )
        for each, norm in zip(margins.T, np.linalg.norm(w, axis=1), strict=True)
    ]
    for name, expected in zip(
        ("bound_vc", "bound_hinge", "bound_margin_constant_1"), np.max(bounds, axis=0), strict=True
    ):
        assert found[name] == pytest.approx(expected), name
    for name in ("bound_vc", "bound_hinge", "bound_margin_constant_1"):
        assert found[f"{name}_vacuous"] == (found[name] >= 1)


def test_bounds_count_what_the_map_depends_on():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    y = (np.linalg.norm(X, axis=1) < 0.7).astype(int)

    def measured(**params):
        nbcs = NestedBarycentricMap(2, random_state=0, **params).fit(X, y)
        svm = LinearSVC(dual=False).fit(nbcs.transform(X), y)
        return nbcs, margin_metrics(nbcs, svm, X, y)

    nbcs, found = measured(split="adaptive", rotate=True)
    assert found["compression_size"] == 4 + 3 + nbcs.n_splits_
    _, found = measured(split="adaptive", split_point="mean", rotate=True)
    assert not any("bound" in name or name == "compression_size" for name in found)
    _, found = measured()
    assert found["compression_size"] == 4


def test_margins_one_against_one_count_the_rows_of_a_pair():
    from kbench_learners import LinearSVM

    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    y = np.digitize(X[:, 0], [-0.3, 0.4])
    nbcs = NestedBarycentricMap(1, n_roots=2, rotate=True, random_state=0).fit(X)
    svm = LinearSVM(C=100.0, multiclass="ovo").fit(nbcs.transform(X), y)
    found = margin_metrics(nbcs, svm, X, y)
    decisions = svm.pair_decisions(nbcs.transform(X))
    errors = []
    for a, b in ((0, 1), (0, 2), (1, 2)):
        rows = (y == a) | (y == b)
        signs = np.where(y[rows] == a, 1, -1)
        errors.append(np.mean(signs * decisions[rows, a, b] < 1))
    assert found["margin_error"] == pytest.approx(max(errors))
    assert not any(name.startswith("bound") for name in found)


@pytest.mark.parametrize("name", ["linear-svm", "linear-svm-ovr", "ridge", "logistic", "knn"])
def test_margins_are_metrics_of_a_run_where_they_are_defined(name):
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier

    from kbench.evaluation.evaluate import evaluate_split
    from kbench.evaluation.method import Method
    from kbench.evaluation.specs import EstimatorSpec
    from kbench.records import Dataset, Protocol
    from kbench_learners import LinearSVM, PathRidgeClassifier
    from kbench_nbcs._map import metrics

    make = {
        "linear-svm": LinearSVM,
        "linear-svm-ovr": lambda: LinearSVM(multiclass="ovr"),
        "ridge": PathRidgeClassifier,
        "logistic": LogisticRegression,
        "knn": KNeighborsClassifier,
    }[name]
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    data = Dataset("rings", X=X, y=np.digitize(np.linalg.norm(X, axis=1), [0.5, 0.9]))
    method = Method(EstimatorSpec(NestedBarycentricMap), EstimatorSpec(make), map_metrics=metrics)
    found = evaluate_split(data, 0, method, Protocol(cv="holdout")).metrics
    defined = name not in ("logistic", "knn")
    assert ("train_margin" in found) == defined
    assert ("bound_vc_vacuous" in found) == (name in ("linear-svm-ovr", "ridge"))
    assert 0 <= found["outside"] <= 1


def test_the_vc_dimension_is_that_of_a_system_that_no_row_decides():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    X[:, 1] *= 0.01 * X[:, 0]  # most simplices of stage 3 are empty
    y = (X[:, 0] > 0).astype(int)

    def measured(**params):
        nbcs = NestedBarycentricMap(4, n_roots=2, rotate=True, random_state=0, **params).fit(X, y)
        svm = LinearSVC(dual=False).fit(nbcs.transform(X), y)
        return nbcs, svm, margin_metrics(nbcs, svm, X, y)

    nbcs, svm, found = measured()
    full = 2 * (3 + 1 + 3 + 9 + 27)
    assert nbcs.n_vertices_ < full
    error = np.mean(svm.predict(nbcs.transform(X)) != y)
    assert found["bound_vc"] == pytest.approx(vc_bound(error, 300, full, nbcs.compression_size_))
    # of simplices of too few rows nothing is known but that they are in the full system
    _, _, found = measured(min_samples_split=10)
    assert "bound_vc" in found and "bound_hinge" not in found
    nbcs, svm, found = measured(split="adaptive")
    error = np.mean(svm.predict(nbcs.transform(X)) != y)
    expected = vc_bound(error, 300, nbcs.n_vertices_, nbcs.compression_size_)
    assert found["bound_vc"] == pytest.approx(expected)


def test_margins_never_hold_the_whole_embedding(monkeypatch):
    from kbench_nbcs import _margins

    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    y = (X[:, 0] > 0).astype(int)
    nbcs = NestedBarycentricMap(2, n_roots=2, rotate=True, random_state=0).fit(X)
    svm = LinearSVC(dual=False).fit(nbcs.transform(X), y)
    whole = margin_metrics(nbcs, svm, X, y)
    sizes = []
    transform = nbcs.transform
    monkeypatch.setattr(_margins, "CHUNK_VALUES", 600)
    monkeypatch.setattr(nbcs, "transform", lambda X: sizes.append(len(X)) or transform(X))
    assert margin_metrics(nbcs, svm, X, y) == whole
    assert sizes == [100, 100, 100]
