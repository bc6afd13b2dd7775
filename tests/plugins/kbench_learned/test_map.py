"""The learned metric: what it finds, how it chooses, and what it refuses."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from kbench import Ref
from kbench.evaluation.method import map_side
from kbench.execution.plugins import load_registry
from kbench.kernels import Cosine, Matern
from kbench_baselines import (
    ArcCosineFeatures,
    Identity,
    NystroemMap,
    OrthogonalFourierFeatures,
    PolynomialMap,
    RandomFourierFeatures,
)
from kbench_learned import LearnedMetricMap
from kbench_learned._map import DIFFERENTIABLE
from kbench_learned._metric import (
    Fitted,
    Trajectory,
    choose,
    judge,
    low_rank_root,
    one_hot_groups,
    read_diagonal,
    root,
    standard_error,
)
from kbench_learned._ridge import PENALTIES, make_folds, ridge_path
from kbench_nbcs import NestedBarycentricMap, SimplicialMeshMap
from kbench_testing import components, run

RNG = np.random.default_rng(0)
X = RNG.standard_normal((400, 6))
ALONG = np.array([1.0, 1.0, 0, 0, 0, 0]) / np.sqrt(2)
Y = np.sin(2 * X @ ALONG) + 0.05 * RNG.standard_normal(400)


def learned(base=None, **options):
    base = RandomFourierFeatures(200) if base is None else base
    return LearnedMetricMap(base, **{"random_state": 0, **options})


def angle(fitted, direction):
    """Degrees between a direction and the first eigenvector of the metric."""
    first = np.linalg.eigh(fitted.metric_)[1][:, -1]
    return np.degrees(np.arccos(min(1.0, abs(first @ direction))))


def test_a_full_metric_finds_a_planted_direction():
    fitted = learned(metric="full").fit(X, Y)
    assert angle(fitted, ALONG) < 5
    assert fitted.round_ > 0
    assert fitted.errors_[fitted.round_] < 0.5 * fitted.errors_[0]
    assert fitted.errors_.argmin() == fitted.round_


def test_a_low_rank_metric_leaves_few_inputs():
    fitted = learned(metric="low_rank", rank=2).fit(X, Y)
    assert fitted.transform_.shape == (6, 2)
    assert fitted.base_map_.n_features_in_ == 2


def test_a_low_rank_is_cut_after_learning():
    low, full = (learned(metric=form, rank=2, rounds=1).fit(X, Y) for form in ("low_rank", "full"))
    assert low.round_ == full.round_ == 1
    np.testing.assert_allclose(low.metric_, full.metric_)  # all directions are in it
    assert np.linalg.matrix_rank(low.metric_) == 6
    assert np.linalg.matrix_rank(low.transform_) == 2
    assert low.errors_[0] == full.errors_[0]
    assert low.errors_[1] != full.errors_[1]  # that of the map with two inputs


def test_a_diagonal_metric_finds_the_columns():
    fitted = learned(metric="diagonal").fit(X, np.sin(2 * X[:, 3]))
    np.testing.assert_array_equal(fitted.metric_, np.diag(np.diag(fitted.metric_)))
    assert np.diag(fitted.metric_).argmax() == 3
    assert np.sort(np.diag(fitted.metric_))[-2] < 0.05


def test_auto_is_the_better_of_both_forms():
    errors = {
        form: learned(metric=form, rounds=1).fit(X, Y).errors_.min()
        for form in ("full", "diagonal", "auto")
    }
    assert errors["auto"] == min(errors.values())
    assert errors["full"] != errors["diagonal"]


def test_of_several_bandwidths_the_best_is_kept():
    tried = [learned(bandwidth_factor=f, rounds=1).fit(X, Y).errors_.min() for f in (0.5, 2.0)]
    fitted = learned(bandwidth_factor=(0.5, 2.0), rounds=1).fit(X, Y)
    assert fitted.factor_ == (0.5, 2.0)[int(np.argmin(tried))]
    assert fitted.errors_.min() == min(tried)


def test_where_directions_do_not_matter_nothing_is_learned():
    noise = RNG.standard_normal(400)
    fitted = learned(rounds=3).fit(X, noise)
    # held-out errors may fall by chance, but by less than a standard error of the difference
    assert fitted.round_ == 0
    without = learned(rounds=0).fit(X, noise)
    np.testing.assert_array_equal(without.metric_, np.eye(6))
    base = RandomFourierFeatures(200, random_state=0).fit(X - X.mean(axis=0))
    np.testing.assert_array_equal(without.transform(X), base.transform(X - X.mean(axis=0)))


def test_learning_is_equivariant_to_rotations():
    turn = np.linalg.qr(RNG.standard_normal((6, 6)))[0]
    base = NystroemMap(100)  # its features do not change with a rotation
    one, other = (learned(base, metric="full", rounds=2).fit(Z, Y) for Z in (X, X @ turn))
    np.testing.assert_allclose(
        turn @ other.metric_ @ turn.T / np.trace(other.metric_),
        one.metric_ / np.trace(one.metric_),
        atol=1e-4,
    )


@pytest.mark.parametrize(
    "base",
    [
        OrthogonalFourierFeatures(101),
        NystroemMap(100),
        NystroemMap(400, kernel=Matern(nu=0.5)),  # each row is a landmark, with a cusp there
        ArcCosineFeatures(300),
        SimplicialMeshMap(8, scaling="common"),
    ],
    ids=str,
)
def test_every_differentiable_map_can_learn(base):
    fitted = learned(base, metric="full", rounds=2).fit(X, Y)
    assert angle(fitted, ALONG) < 20
    assert fitted.transform(X[:5]).shape == (5, len(fitted.get_feature_names_out()))


@pytest.mark.parametrize("base", [RandomFourierFeatures(50), NystroemMap(30)], ids=str)
def test_float32_is_kept_and_learns_the_same(base):
    exact = learned(base, rounds=1).fit(X, Y)
    single = X.astype(np.float32)
    found = learned(base, rounds=1).fit(single, Y)
    assert found.transform(single).dtype == np.float32
    assert found.transform(X).dtype == np.float64
    # the last bit of a Nystroem map decides a rotation of its columns
    grams = [Z @ Z.T for Z in (exact.transform(X), found.transform(single))]
    np.testing.assert_allclose(grams[1], grams[0], atol=2e-3)
    assert found.__sklearn_tags__().transformer_tags.preserves_dtype == ["float64", "float32"]


def test_nested_simplices_can_learn():
    nested = NestedBarycentricMap(2, n_roots=4, rotate=True)
    fitted = LearnedMetricMap(nested, metric="low_rank", rank=2, random_state=0).fit(X, Y)
    assert fitted.metric_.shape == (6, 6)


def test_labels_are_learned_one_against_the_rest():
    labels = np.array(["a", "b", "c"])[(X @ ALONG > 0.5).astype(int) + (X @ ALONG > -0.5)]
    fitted = learned(metric="full").fit(X, labels)
    assert angle(fitted, ALONG) < 10


def test_gradients_follow_the_chain_rule():
    fitted = learned(rounds=1).fit(X, Y)
    coef, step = RNG.standard_normal(200), 1e-6
    expected = [
        (fitted.transform(X[:9] + unit) - fitted.transform(X[:9] - unit)) @ coef / (2 * step)
        for unit in step * np.eye(6)
    ]
    np.testing.assert_allclose(
        fitted.input_gradient(X[:9], coef), np.transpose(expected), atol=1e-6
    )


@pytest.mark.parametrize("kernel", ["laplacian", Matern(nu=0.5)], ids=str)
def test_gradients_between_landmarks_are_those_of_finite_differences(kernel):
    fitted = learned(NystroemMap(80, kernel=kernel), metric="full", rounds=1).fit(X[:100], Y[:100])
    assert fitted.n_rounds_ == 1
    new, coef, step = RNG.standard_normal((20, 6)), RNG.standard_normal(80), 1e-6
    expected = [
        (fitted.transform(new + unit) - fitted.transform(new - unit)) @ coef / (2 * step)
        for unit in step * np.eye(6)
    ]
    np.testing.assert_allclose(
        fitted.input_gradient(new, coef), np.transpose(expected), rtol=1e-5, atol=1e-4
    )


@pytest.mark.parametrize("kernel", ["laplacian", Matern(nu=0.5)], ids=str)
@pytest.mark.parametrize("metric", ["diagonal", "full"])
def test_landmarks_that_are_repeated_rows_with_cusps_do_no_harm(kernel, metric):
    # each row thrice, a constant column, a column of two values, and all rows as landmarks
    Z = np.hstack([X[:60], np.full((60, 1), 7.0), (X[:60, :1] > 0).astype(float)])
    Z, targets = np.repeat(Z, 3, axis=0), np.repeat(np.sin(2 * X[:60, 0]), 3)
    base = NystroemMap(1000, kernel=kernel)
    fitted = learned(base, metric=metric, rounds=3).fit(Z, targets)
    assert np.isfinite(fitted.errors_).all()
    assert np.isfinite(fitted.transform(Z)).all()
    assert fitted.n_rounds_ > 0
    assert fitted.round_ == 0 or not fitted.metric_[6].any()
    at = fitted.input_gradient(Z, np.ones(fitted.transform(Z[:1]).shape[1]))
    assert np.isfinite(at).all()
    np.testing.assert_array_equal(at[::3], at[1::3])


def test_a_constant_column_has_no_weight():
    fixed = np.column_stack([X, np.full(400, 3.0)])
    for form in ("full", "diagonal"):
        fitted = learned(metric=form).fit(fixed, Y)
        assert not fitted.metric_[6].any()
        assert not fitted.transform_[6].any()
    with pytest.raises(ValueError, match="no column that varies"):
        learned().fit(np.ones((20, 3)), np.arange(20.0))


def test_indicators_of_one_attribute_share_a_weight():
    codes = RNG.integers(4, size=400)
    Z = StandardScaler().fit_transform(np.hstack([X[:, :2], np.eye(4)[codes]]))
    (group,) = one_hot_groups(Z)
    np.testing.assert_array_equal(group, [2, 3, 4, 5])
    fitted = learned(metric="diagonal").fit(Z, Y + (codes == 1))
    weights = np.diag(fitted.metric_)[2:]
    assert fitted.round_ == 0 or len(set(weights.round(12))) == 1
    single = read_diagonal(np.diag(np.arange(1.0, 7.0)), [np.array([0, 2])])
    np.testing.assert_array_equal(np.diag(single), [2, 2, 2, 4, 5, 6])


def test_a_function_without_slope_ends_learning_with_a_word():
    with pytest.warns(UserWarning, match="all gradients are 0 after round 0"):
        fitted = learned().fit(X, np.zeros(400))
    np.testing.assert_array_equal(fitted.metric_, np.eye(6))


def test_a_class_of_one_row_does_no_harm():
    labels = np.zeros(60, dtype=int)
    labels[30:59], labels[59] = 1, 2
    assert np.isfinite(learned().fit(X[:60], labels).transform(X)).all()
    lonely = np.zeros(60, dtype=int)
    lonely[0] = 1  # in one part there are no two classes to tell apart
    assert np.isfinite(learned().fit(X[:60], lonely).metric_).all()
    with pytest.raises(ValueError, match="one class"):
        learned().fit(X, np.zeros(400, dtype=int))


@pytest.mark.parametrize(
    ("base", "options", "words"),
    [
        (PolynomialMap(), {}, "PolynomialMap has no method input_gradient. Maps of kbench"),
        (Identity(), {}, "rff, orthogonal-rff"),
        (NystroemMap(kernel=Cosine()), {}, "no gradient with kernel="),
        (ArcCosineFeatures(order=0), {}, "order=0"),
        ("rff", {}, 'got the string .rff.; a suite file has base_map = { name = "rff" }'),
        (Ridge(), {}, "base_map must be a feature map"),
        (NestedBarycentricMap(), {"n_components": 9}, "n_components is not a parameter of"),
        (None, {"metric": "diag"}, "metric must be one of 'auto', 'full'"),
        (None, {"rounds": -1}, "rounds must be an integer >= 0, got -1"),
        (None, {"patience": 0}, "patience must be"),
        (None, {"groups": "auto"}, "groups must be one of 'one-hot', or None"),
        (None, {"groups": [[9]], "metric": "diagonal"}, "column numbers from 0 to 5"),
        (None, {"groups": [["a"]], "metric": "diagonal"}, "column numbers from 0 to 5, got"),
        (None, {"bandwidth_factor": []}, "at least one value"),
        (None, {"bandwidth_factor": -1.0}, "bandwidth_factor must be a finite number > 0"),
        (None, {"n_components": 0}, "n_components must be an integer >= 1"),
    ],
)
def test_mistakes_are_named(base, options, words):
    with pytest.raises(ValueError, match="(?s)" + words.replace("(", r"\(")):
        learned(base, **options).fit(X, Y)


def test_sparse_inputs_are_refused_with_a_way_out():
    with pytest.raises(ValueError, match=r"metric of 6 columns .* base_map without learning"):
        learned().fit(csr_matrix(X), Y)


def test_all_penalties_are_those_of_ridge_regression():
    Z = RNG.standard_normal((50, 8)) + 3.0
    targets = RNG.standard_normal((50, 2))
    centred = Z - Z.mean(axis=0)
    unit = (centred**2).sum() / 50
    wide = RNG.standard_normal((50, 80)) - 2.0
    for features, scale in ((Z, unit), (wide, ((wide - wide.mean(axis=0)) ** 2).sum() / 50)):
        path = ridge_path(
            lambda rows, F=features: F[rows], np.arange(50), targets, features.shape[1]
        )
        for i in (4, 9, 14):
            model = Ridge(alpha=PENALTIES[i] * scale).fit(features, targets)
            np.testing.assert_allclose(path.coef(i), model.coef_, atol=1e-6)
            losses = ((model.predict(features) - targets) ** 2).mean(axis=1)
            np.testing.assert_allclose(path.losses(features, targets)[i], losses, rtol=1e-5)


def test_small_penalties_are_solved_with_fewer_rows_than_features():
    # features of two columns are almost dependent: the Gram matrix has eigenvalues near rounding
    Z = RandomFourierFeatures(150, bandwidth_factor=2.0, random_state=0).fit_transform(X[:100, :2])
    train, y = np.arange(80), Y[:80, None]
    path = ridge_path(lambda rows: Z[rows], train, y, 150)
    unit = ((Z[:80] - Z[:80].mean(axis=0)) ** 2).sum() / 80
    for i in (2, 4, 6):
        model = Ridge(alpha=PENALTIES[i] * unit, solver="svd").fit(Z[:80], y)
        expected = np.mean((model.predict(Z[80:]).reshape(-1, 1) - Y[80:100, None]) ** 2)
        assert path.losses(Z[80:], Y[80:100, None])[i].mean() == pytest.approx(expected, rel=1e-3)


def test_all_folds_have_one_penalty():
    """A choice in each fold would be noise where few rows are held out."""
    losses = [np.array([[1.0, 1.0], [3.0, 0.0]]), np.array([[2.0, 2.0], [1.0, 1.0]])]
    penalty, by_row = judge([Fitted(None, None, np.eye(1), each, 1) for each in losses])
    assert penalty == 1
    np.testing.assert_array_equal(by_row, [3.0, 0.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("n_rows", "n_folds", "held_out"),
    [(3, 0, 0), (4, 2, 4), (200, 5, 200), (900, 5, 900), (2_500, 2, 1000), (50_000, 1, 10_000)],
)
def test_about_a_thousand_rows_are_held_out(n_rows, n_folds, held_out):
    folds = make_folds(np.zeros(n_rows, dtype=int), np.random.RandomState(0))
    assert len(folds) == n_folds
    rows = {row for fold in folds for row in fold.held_out}
    assert len(rows) == held_out
    assert all(set(fold.fit).isdisjoint(fold.held_out) for fold in folds)


def test_a_gain_must_be_larger_than_its_standard_error():
    plain = np.ones(100)
    spread = np.tile([-0.1, 0.1], 50)
    error = standard_error(spread, 80)
    assert error == pytest.approx(0.1 * np.sqrt(1 / 100 + 1 / 80))  # not 0.1 / 10
    matrices = [np.eye(1)] * 2
    for gain, expected in ((2.25 * error, (0, 0)), (2.4 * error, (0, 1))):
        tried = [Trajectory([plain, (plain - gain - spread) ** 2], matrices)]
        assert choose(tried, 80) == expected


def test_a_few_rows_do_not_decide_whether_to_learn():
    plain, matrices = np.ones(1000), [np.eye(1)] * 2
    plain[:3] = 400.0  # absolute errors of 20
    only_those = np.full(1000, 1.01)
    only_those[:3] = 100.0  # squares fall by two fifths, and 997 of 1,000 rows are worse
    assert choose([Trajectory([plain, only_those], matrices)], 800) == (0, 0)
    all_others = RNG.uniform(0.5, 0.9, 1000)
    all_others[:3] = 200.0, 600.0, 400.0  # they hide it: less than a standard error of squares
    gains = plain - all_others
    assert 0 < gains.mean() < standard_error(gains, 800)
    assert choose([Trajectory([plain, all_others], matrices)], 800) == (0, 1)
    all_others[:3] = 1000.0  # the metric is a mean of squares
    assert choose([Trajectory([plain, all_others], matrices)], 800) == (0, 0)


def test_learning_stops_where_errors_hardly_fall():
    def trajectory(*errors):
        return Trajectory([np.full(4, error**2) for error in errors], [])

    assert trajectory(1.0).without_progress == 0
    assert trajectory(1.0, 0.9, 0.8).without_progress == 0
    assert trajectory(1.0, 0.9, 0.899, 0.898).without_progress == 2
    assert trajectory(1.0, 0.9, 0.897).without_progress == 1
    assert trajectory(1.0, 0.9, 0.897, 0.894).without_progress == 0  # 0.7 % in two rounds
    assert trajectory(1.0, 1.1, 1.2).without_progress == 2


def test_memory_is_bounded_by_blocks(monkeypatch):
    import kbench_learned._ridge as ridge

    expected = learned(rounds=2).fit(X, Y)
    monkeypatch.setattr(ridge, "_BLOCK_VALUES", 1)  # 64 rows at a time
    blocked = learned(rounds=2).fit(X, Y)
    np.testing.assert_allclose(blocked.metric_, expected.metric_, atol=1e-8)


def test_roots_are_those_of_the_metric():
    A = RNG.standard_normal((5, 5))
    M = A @ A.T
    full = root(M, 0.0)
    np.testing.assert_allclose(full @ full.T, M / np.diag(M).max())
    few = low_rank_root(M, 5)
    np.testing.assert_allclose(few @ few.T, M / np.diag(M).max())


def test_fits_are_reproducible_and_leave_the_base_alone():
    base = RandomFourierFeatures(50)
    one, other = (learned(clone(base), rounds=1).fit(X, Y).transform(X) for _ in range(2))
    np.testing.assert_array_equal(one, other)
    assert base.random_state is None
    assert not hasattr(base, "sampler_")


def test_all_maps_with_a_gradient_are_named_to_those_who_choose_another():
    registry, found = load_registry(), set()
    for name, record in registry.all("feature map").items():
        spec = map_side(Ref(name), registry)["feature_map"]
        if record.family != "learned" and name != "kernel-kmeans":
            map_ = spec.build({key: values[0] for key, values in spec.space.items()}, 0)
            found |= {name} if hasattr(map_, "input_gradient") else set()
    assert found == set(DIFFERENTIABLE)


@pytest.mark.slow
def test_a_run_finds_the_parts_by_their_names():
    names = {"rff-learned", "nbcs-rotated-learned", "rfm"}
    subjects = [each for each in components("learned") if each.name in names]
    outcomes = list(run(subjects, slow=False))
    assert {each.status for each in outcomes} == {"passed"}, outcomes
