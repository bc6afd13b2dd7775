"""The 0-1 learner: certificate, exactness, bad input, rules."""

import pickle

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from kbench.kernels import Gaussian, Linear, Polynomial
from kbench_zero_one import (
    SigmoidHalfspace,
    ZeroOneHingeClassifier,
    ZeroOneKernel,
    ZeroOneKernelClassifier,
    halfspace,
)
from kbench_zero_one._classifier import certificates
from kbench_zero_one._data import uniform_ball
from kbench_zero_one._sigmoid import minimise_risk, risk
from kbench_zero_one._solver import mean_loss, minimise_over_ball, pivoted_cholesky

LEARNERS = (ZeroOneKernelClassifier, ZeroOneHingeClassifier)


def ball(m, d, seed=0, noise=0.2):
    """Points of the unit ball with noisy labels of a halfspace."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    X /= np.linalg.norm(X, axis=1)[:, None]
    X *= rng.uniform(size=(m, 1)) ** (1 / d)
    return X, ((X[:, 0] > 0) ^ (rng.uniform(size=m) < noise)).astype(int)


def draws(estimator):
    """sklearn's check compares the draws of a randomised rule with argmax."""
    if getattr(estimator, "rule", None) == "randomised":
        return {"check_classifiers_train": "predict draws from predict_proba"}
    return {}


@parametrize_with_checks(
    [learner(rule=rule) for learner in LEARNERS for rule in ("randomised", "threshold")]
    + [SigmoidHalfspace()],
    expected_failed_checks=draws,
)
def test_sklearn_checks(estimator, check):
    check(estimator)


# --- the kernel --------------------------------------------------------------------------


def test_kernel_is_the_power_series():
    X, _ = ball(20, 3)
    series = sum(0.7**j * (X @ X.T) ** j for j in range(200))
    kernel = ZeroOneKernel(nu=0.7)
    np.testing.assert_allclose(kernel(X), series, rtol=1e-12)
    np.testing.assert_allclose(kernel.diag(X), np.diag(series), rtol=1e-12)


def test_kernel_over_a_base_kernel():
    X, _ = ball(20, 3)
    kernel = ZeroOneKernel(nu=0.9, base=Gaussian("median"))
    resolved = kernel.resolve(X)
    assert isinstance(resolved.base.bandwidth, float)
    np.testing.assert_allclose(resolved(X), 1 / (1 - 0.9 * resolved.base(X)))
    assert np.linalg.eigvalsh(resolved(X)).min() > 0


def test_kernel_is_a_value():
    kernel = ZeroOneKernel(nu=0.25, base=Gaussian(bandwidth=2.0))
    assert eval(repr(kernel)) == kernel == pickle.loads(pickle.dumps(kernel))
    assert ZeroOneKernel() == ZeroOneKernel(base=Linear()) != ZeroOneKernel(nu=0.4)


def test_kernel_keeps_float32_and_its_inputs():
    X = np.asarray(ball(10, 3)[0], dtype=np.float32)
    before = X.copy()
    assert ZeroOneKernel()(X).dtype == np.float32
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("nu", [0.0, 1.0, -0.5, 1.5, np.nan, True, "half"])
def test_kernel_refuses_nu(nu):
    with pytest.raises(ValueError, match=r"nu must be a finite number > 0 and < 1, got"):
        ZeroOneKernel(nu=nu)


def test_kernel_refuses_large_base():
    with pytest.raises(ValueError, match=r"base must be at most 1 .* for Linear\(\)"):
        ZeroOneKernel()(np.array([[2.0, 0.0]]))
    with pytest.raises(ValueError, match="Precomputed"):
        ZeroOneKernel(base="precomputed")


# --- the solver --------------------------------------------------------------------------


def box(y, loss):
    """Target and box of the absolute or the hinge loss."""
    if loss == "absolute":
        return y.astype(float), -np.ones(len(y)), np.ones(len(y))
    s = 2.0 * y - 1
    return s, np.minimum(s, 0), np.maximum(s, 0)


@pytest.mark.parametrize("B", [4.0, 100.0, 2500.0])
@pytest.mark.parametrize("learner", LEARNERS)
def test_optimum_agrees_with_a_trusted_solver(learner, B):
    cp = pytest.importorskip("cvxpy")
    X, y = ball(200, 5)
    model = learner(B=B).fit(X, y)
    K = ZeroOneKernel()(X)
    root = np.linalg.cholesky(K + 1e-14 * np.eye(len(K)))
    v = cp.Variable(len(K))
    if learner is ZeroOneKernelClassifier:
        loss = cp.sum(cp.abs(root @ v - y)) / len(y)
    else:
        loss = cp.sum(cp.pos(1 - cp.multiply(2 * y - 1, root @ v))) / len(y)
    problem = cp.Problem(cp.Minimize(loss), [cp.norm(v) <= np.sqrt(B)])
    problem.solve(solver="CLARABEL")
    assert model.objective_ == pytest.approx(problem.value, abs=1e-5)
    assert model.duality_gap_ <= 1e-6
    assert model.norm_**2 <= B * (1 + 1e-9)


@settings(max_examples=40, deadline=None)
# long steps left the ball, or went in circles
@example(m=4, d=1, rank=4, log_B=-2.796875, seed=818, loss="hinge")
@example(m=12, d=2, rank=18, log_B=2.502749852024648, seed=435865, loss="absolute")
@given(
    m=st.integers(2, 40),
    d=st.integers(1, 4),
    rank=st.integers(1, 40),
    log_B=st.floats(-4, 6),
    seed=st.integers(0, 10**6),
    loss=st.sampled_from(["absolute", "hinge"]),
)
def test_certificate_holds(m, d, rank, log_B, seed, loss):
    X, y = ball(m, d, seed)
    B = 10.0**log_B
    factor = pivoted_cholesky(ZeroOneKernel(), X, rank)
    target, low, high = box(y, loss)
    found = minimise_over_ball(factor, target, low, high, B, max_iter=30)
    assert found.converged
    # the pair is feasible, and its values are what it says
    assert np.sum(found.v**2) <= B * (1 + 1e-9)
    assert np.all(found.b >= low) and np.all(found.b <= high)
    value = mean_loss(target - factor.G @ found.v, low, high)
    bound = (found.b @ target - np.sqrt(B) * np.linalg.norm(factor.G.T @ found.b)) / m
    assert value == pytest.approx(found.objective, abs=1e-9)
    assert bound == pytest.approx(found.dual, abs=1e-9)
    # weak duality: no other point of the ball is better than the bound
    other = np.random.default_rng(seed).standard_normal(factor.G.shape[1])
    other *= np.sqrt(B) / np.linalg.norm(other)
    assert mean_loss(target - factor.G @ other, low, high) >= found.dual - 1e-9


@settings(max_examples=25, deadline=None)
@given(m=st.integers(1, 40), rank=st.integers(1, 40), seed=st.integers(0, 10**6))
def test_pivoted_cholesky(m, rank, seed):
    X, _ = ball(m, 3, seed)
    X = np.concatenate([X, X[: m // 2]])
    kernel = ZeroOneKernel()
    factor = pivoted_cholesky(kernel, X, rank)
    E = kernel(X) - factor.G @ factor.G.T
    assert len(factor.pivots) <= min(rank, m)
    np.testing.assert_allclose(np.diag(E), factor.residual, atol=1e-10)
    assert np.linalg.eigvalsh(E).min() > -1e-9
    np.testing.assert_array_equal(factor.G[factor.pivots], np.tril(factor.G[factor.pivots]))
    if rank >= m:
        assert np.abs(E).max() < 1e-9


def test_columns_and_whole_gram_matrix_give_one_factor():
    X, _ = ball(60, 3)
    few, many = (pivoted_cholesky(ZeroOneKernel(), X, rank) for rank in (20, 40))
    np.testing.assert_array_equal(few.pivots, many.pivots[:20])
    np.testing.assert_allclose(few.G, many.G[:, :20], atol=1e-12)


def test_inactive_ball_interpolates_with_least_norm():
    X, y = ball(50, 5)
    model = ZeroOneKernelClassifier(B=1e12).fit(X, y)
    K = ZeroOneKernel()(X)
    assert model.objective_ < 1e-6
    assert model.norm_**2 == pytest.approx(y @ np.linalg.solve(K, y), rel=1e-4)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], y, atol=1e-5)


@pytest.mark.parametrize("learner", LEARNERS)
def test_kernel_gap_bounds_the_cost_of_the_rank(learner):
    X, y = ball(200, 5)
    exact = learner(B=100.0, rank=200).fit(X, y)
    for rank in (5, 20, 60):
        model = learner(B=100.0, rank=rank).fit(X, y)
        assert model.rank_ == rank
        assert model.duality_gap_ <= 1e-6
        cost = model.objective_ - exact.objective_
        assert -1e-6 <= cost <= model.kernel_gap_ + 1e-6
    assert exact.kernel_gap_ == pytest.approx(exact.duality_gap_, abs=1e-9)
    assert np.isnan(learner(certify=False, rank=5).fit(X, y).kernel_gap_)


def test_training_values_are_those_of_the_kernel_itself():
    X, y = ball(100, 5)
    model = ZeroOneKernelClassifier(B=100.0, rank=15).fit(X, y)
    h = model.decision_function(X) + 0.5
    assert np.mean(np.abs(h - y)) == pytest.approx(model.objective_, abs=1e-9)


def test_too_few_iterations_are_reported():
    X, y = ball(100, 5)
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        model = ZeroOneKernelClassifier(max_iter=2).fit(X, y)
    assert not model.converged_
    assert model.n_iter_ == 2
    assert model.duality_gap_ > 1e-6


# --- the estimators ----------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("learner", LEARNERS)
def test_path_is_one_fit_per_value(learner, n_classes):
    X, y = ball(90, 3)
    y = y if n_classes == 2 else np.digitize(X[:, 0], [-0.2, 0.2])
    values = [4.0, 1000.0]
    path = learner(rule="threshold").fit_path(X, y, values)
    for B, model in zip(values, path, strict=True):
        alone = learner(B=B, rule="threshold").fit(X, y)
        assert model.get_params() == alone.get_params()
        assert np.shape(model.objective_) == (() if n_classes == 2 else (3,))
        np.testing.assert_allclose(model.dual_coef_, alone.dual_coef_, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(model.predict(X), alone.predict(X))


def test_larger_balls_fit_better():
    X, y = ball(150, 4)
    path = ZeroOneKernelClassifier().fit_path(X, y, [1.0, 10.0, 100.0, 1000.0])
    objectives = [model.objective_ for model in path]
    assert objectives == sorted(objectives, reverse=True)


def test_randomised_rule_draws_from_its_probabilities():
    X, y = ball(300, 3)
    model = ZeroOneKernelClassifier(B=50.0, random_state=0).fit(X, y)
    p = model.predict_proba(X)
    assert p.min() >= 0 and p.max() <= 1
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(X), model.predict(X))
    errors = [np.mean(model.set_params(random_state=seed).predict(X) != y) for seed in range(200)]
    expected = model.expected_error(X, y)
    assert expected == pytest.approx(np.mean(np.abs(p[:, 1] - y)))
    # five standard errors of a mean of 200 * 300 draws
    assert np.mean(errors) == pytest.approx(expected, abs=5 * 0.5 / np.sqrt(200 * 300))
    assert model.score(X, y) == pytest.approx(1 - expected)


def test_threshold_rule():
    X, y = ball(200, 3)
    model = ZeroOneKernelClassifier(B=50.0, rule="threshold").fit(X, y)
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X)[:, 1] >= 0.5)
    assert model.score(X, y) == np.mean(model.predict(X) == y)


def test_three_classes_draw_from_normalised_probabilities():
    X, _ = ball(300, 2)
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.3, 0.3])]
    model = ZeroOneKernelClassifier(B=1e4, random_state=1).fit(X, y)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    hit = p[np.arange(300), np.searchsorted(["a", "b", "c"], y)]
    assert model.expected_error(X, y) == pytest.approx(1 - hit.mean())
    drawn = model.predict(X)
    frequencies = [np.mean(drawn == each) for each in "abc"]
    np.testing.assert_allclose(frequencies, p.mean(axis=0), atol=5 * 0.5 / np.sqrt(300))


@settings(max_examples=50, deadline=None)
@given(h=st.floats(-5, 5), y=st.sampled_from([0, 1]))
def test_half_the_hinge_loss_lies_between_error_and_absolute_loss(h, y):
    hinge = max(0.0, 1 - (2 * y - 1) * (2 * h - 1))
    assert abs(np.clip(h, 0, 1) - y) <= hinge / 2 + 1e-12
    assert hinge / 2 <= abs(h - y) + 1e-12


def test_scale_divides_only_what_exceeds_the_ball():
    X, y = ball(60, 3)
    assert ZeroOneKernelClassifier().fit(0.5 * X, y).ball_.divisor == 1.0
    large = ZeroOneKernelClassifier(rule="threshold").fit(10 * X, y)
    assert large.ball_.divisor == pytest.approx(10 * np.linalg.norm(X, axis=1).max())
    # what lies outside later is projected, not refused
    far = 1e6 * X[:3]
    onto = X[:3] / np.linalg.norm(X[:3], axis=1)[:, None] * large.ball_.divisor
    np.testing.assert_allclose(large.decision_function(far), large.decision_function(onto))


def test_other_kernels():
    X, y = ball(80, 3)
    gaussian = Gaussian(bandwidth=0.5)
    over = ZeroOneKernelClassifier(base_kernel=gaussian, B=50.0).fit(5 * X, y)
    assert over.ball_.divisor == 1.0
    assert over.kernel_ == ZeroOneKernel(0.5, gaussian)
    plain = ZeroOneKernelClassifier(kernel=Gaussian("median"), B=50.0).fit(5 * X, y)
    assert isinstance(plain.kernel_, Gaussian)
    np.testing.assert_allclose(
        np.mean(np.abs(plain.decision_function(5 * X) + 0.5 - y)), plain.objective_, atol=1e-9
    )


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"nu": 1.0}, r"nu must be a finite number > 0 and < 1, got 1.0"),
        ({"B": 0.0}, r"B must be a finite number > 0, got 0.0"),
        ({"B": -1}, r"B must be a finite number > 0, got -1"),
        ({"B": np.nan}, r"B must be a finite number > 0, got nan"),
        ({"rank": 0}, r"rank must be an integer >= 1, got 0"),
        ({"tol": 0.0}, r"tol must be a finite number > 0, got 0.0"),
        ({"max_iter": 1.5}, r"max_iter must be an integer >= 1, got 1.5"),
        ({"rule": "random"}, r"rule must be one of 'randomised', 'threshold', got 'random'"),
        ({"scale": False}, r"inputs must have norms of at most 1 with scale=False, got"),
        ({"base_kernel": Polynomial(degree=2)}, r"base_kernel must .* at most 1 .* Polynomial"),
        ({"base_kernel": Polynomial(degree=2), "scale": False}, r"at most 1 with scale=False"),
        ({"kernel": "one-zero"}, r"kernel.*'one-zero'"),
    ],
)
@pytest.mark.parametrize("learner", LEARNERS)
def test_bad_parameters(learner, params, message):
    X, y = ball(20, 2)
    with pytest.raises(ValueError, match=message):
        learner(**params).fit(3 * X, y)


@pytest.mark.parametrize("learner", LEARNERS)
def test_bad_data(learner):
    X, y = ball(20, 2)
    with pytest.raises(ValueError, match="one class"):
        learner().fit(X, np.zeros(20, dtype=int))
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        learner().fit(X, y)


def test_metrics():
    X, y = ball(60, 3)
    model = ZeroOneKernelClassifier(rule="threshold", rank=20).fit(X, y)
    found = certificates(model, X, y)
    assert found["expected_zero_one_error"] == model.expected_error(X, y)
    assert found["rank"] == 20 and found["kernel_gap"] >= found["duality_gap"]
    assert all(isinstance(value, float) for value in found.values())


# --- the non-convex problem --------------------------------------------------------------


def test_risk_gradient():
    X, y = ball(50, 4)
    s = 2.0 * y - 1
    W = np.random.default_rng(0).standard_normal((3, 4)) / 4
    _, gradient = risk(W, X, s, 3.0)
    for i in range(4):
        e = 1e-6 * np.eye(4)[i]
        slope = (risk(W + e, X, s, 3.0)[0] - risk(W - e, X, s, 3.0)[0]) / 2e-6
        np.testing.assert_allclose(slope, gradient[:, i], atol=1e-7)


def test_descents_end_in_the_ball_and_lower_than_they_start():
    X, y = ball(200, 4)
    s = 2.0 * y - 1
    starts = np.random.default_rng(0).standard_normal((10, 4))
    starts /= np.linalg.norm(starts, axis=1)[:, None]
    W, risks, residual, _ = minimise_risk(X, s, 3.0, starts)
    assert np.all(np.linalg.norm(W, axis=1) <= 1 + 1e-9)
    assert np.all(risks <= risk(starts, X, s, 3.0)[0] + 1e-12)
    assert residual.max() <= 1e-6


def test_best_of_many_starts_beats_the_true_direction():
    X, y = ball(400, 3)
    learned = SigmoidHalfspace(L=5.0, random_state=0).fit(X, y)
    given = SigmoidHalfspace(L=5.0, weights=[1.0]).fit(X, y)
    assert learned.objective_ <= given.objective_
    assert learned.converged_
    np.testing.assert_array_equal(given.coef_, [1.0, 0.0, 0.0])
    assert given.expected_error(X, y) == pytest.approx(given.objective_)
    drawn = given.label_probabilities(X)[np.arange(len(y)), np.searchsorted(given.classes_, y)]
    assert 1 - drawn.mean() == pytest.approx(given.objective_)


def test_sigmoid_refuses():
    X, y = ball(20, 2)
    for params, message in (
        ({"L": 0.0}, "L must be a finite number > 0, got 0.0"),
        ({"n_starts": 0}, "n_starts must be an integer >= 1, got 0"),
        ({"weights": [2.0]}, r"weights must .* unit ball, got \[2.0\]"),
        ({"weights": [0.1, 0.1, 0.1]}, "1 to 2 numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            SigmoidHalfspace(**params).fit(X, y)


# --- the data ----------------------------------------------------------------------------


def test_halfspace_keeps_its_promises():
    data = halfspace(margin=0.2, noise=0.1, outliers=0.25, n_train=200, n_test=500, n_splits=3)
    assert np.linalg.norm(data.X, axis=1).max() <= 1 + 1e-9
    assert np.abs(data.X[:, 0]).min() >= 0.2
    wrong = (data.X[:, 0] > 0) != data.y
    seen = np.concatenate([np.r_[s.train, s.test] for s in data.splits])
    np.testing.assert_array_equal(np.sort(seen), np.arange(len(data.y)))
    for split in data.splits:
        far = np.abs(data.X[split.train, 0]) > 0.9
        assert np.sum(far & wrong[split.train]) >= 50
        assert np.mean(wrong[split.test]) == pytest.approx(0.1, abs=0.07)


@pytest.mark.parametrize("d", [2, 3, 60])
def test_inputs_are_uniform_beyond_the_margin(d):
    random = np.random.default_rng(0)
    X = uniform_ball(random, 4000, d, radius=0.5, margin=0.1)
    reference = 0.5 * ball(200_000, d, seed=1)[0]
    reference = reference[np.abs(reference[:, 0]) >= 0.1]
    for values, others in (
        (X[:, 0], reference[:, 0]),
        (X[:, 1], reference[:, 1]),
        (np.linalg.norm(X, axis=1), np.linalg.norm(reference, axis=1)),
    ):
        assert ks_2samp(values, others).pvalue > 1e-3


def test_halfspace_is_reproducible_by_split():
    few, many = halfspace(n_splits=1), halfspace(n_splits=2)
    np.testing.assert_array_equal(few.X, many.X[: len(few.X)])
    assert halfspace(seed=1).checksum != halfspace(seed=2).checksum


@pytest.mark.parametrize(
    "params", [{"noise": 0.6}, {"margin": 0.95}, {"outliers": -0.1}, {"n_train": 1}]
)
def test_halfspace_refuses(params):
    name, value = next(iter(params.items()))
    with pytest.raises(ValueError, match=f"{name} must be .*, got {value}"):
        halfspace(**params)


def test_kernel_works_in_other_estimators():
    X, y = ball(100, 3, noise=0.0)
    kernel = ZeroOneKernel(nu=0.5)
    assert SVC(kernel=kernel, C=100.0).fit(X, y).score(X, y) > 0.95
    ridge = KernelRidge(kernel="precomputed", alpha=0.1).fit(kernel(X), y)
    assert np.mean((ridge.predict(kernel(X)) > 0.5) == y) > 0.9
