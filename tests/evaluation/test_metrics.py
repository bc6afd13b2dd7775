"""Metrics are those of scikit-learn where it has them, and a mean by hand elsewhere."""

import math
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics

from kbench.evaluation.checked_predictions import Predictions
from kbench.evaluation.metrics import COMPUTE, METRICS, NEVER_RANKED, applies, take_rows
from kbench.evaluation.targets import Scale, Truth

quick = settings(max_examples=60, deadline=None)


def values(truth, predictions):
    """All metrics that apply and are defined."""
    made = {
        name: compute(truth, predictions)
        for name, compute in COMPUTE.items()
        if applies(METRICS[name], truth.task, predictions)
    }
    return {name: value for name, value in made.items() if value is not None}


@st.composite
def classified(draw, least_classes=2, most_classes=4):
    """Truth and predictions: with ties, weights of 0, and classes that one part lacks."""
    k = draw(st.integers(least_classes, most_classes))
    n = draw(st.integers(1, 25))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    classes = np.arange(k)
    y = rng.choice(draw(st.sampled_from([classes, classes[:1], classes[-2:]])), n)
    # few values: ties, and probabilities of exactly 0 and 1
    raw = rng.integers(0, draw(st.sampled_from([1, 3, 1000])) + 1, (n, k)).astype(float)
    raw[raw.sum(axis=1) == 0] = 1.0
    probabilities = raw / raw.sum(axis=1, keepdims=True)
    weight = draw(st.sampled_from([None, "any", "some"]))
    if weight is not None:
        of_rows = rng.choice([0.25, 1.0, 3.0] if weight == "any" else [0.0, 1.0, 2.5], n)
        of_rows[0] = 1.0
        weight = of_rows
    truth = Truth(y, "classification", classes, weight=weight)
    return truth, Predictions(rng.choice(classes, n), probabilities)


def of_rows_that_count(truth, predictions):
    if truth.weight is None:
        return truth, predictions
    return take_rows(truth, predictions, np.flatnonzero(truth.weight))


@given(classified())
@quick
def test_metrics_of_labels_are_those_of_scikit_learn(case):
    truth, predictions = case
    found = values(truth, predictions)
    truth, predictions = of_rows_that_count(truth, predictions)
    args = (truth.y, predictions.predicted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = {
            "accuracy": metrics.accuracy_score(*args, sample_weight=truth.weight),
            "balanced_accuracy": metrics.balanced_accuracy_score(*args, sample_weight=truth.weight),
            "f1_macro": metrics.f1_score(*args, average="macro", sample_weight=truth.weight),
            "mcc": metrics.matthews_corrcoef(*args, sample_weight=truth.weight),
        }
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name


@given(classified())
@quick
def test_metrics_of_probabilities_are_those_of_scikit_learn(case):
    truth, predictions = case
    found = values(truth, predictions)
    expected = {
        "log_loss": metrics.log_loss(
            truth.y, predictions.probabilities, labels=truth.classes, sample_weight=truth.weight
        ),
        "brier_score": metrics.brier_score_loss(
            truth.y,
            predictions.probabilities
            if len(truth.classes) > 2
            else predictions.probabilities[:, 1],
            labels=truth.classes,
            sample_weight=truth.weight,
            scale_by_half=False,
        ),
    }
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name


@given(classified())
@quick
def test_metrics_of_ranks_are_the_mean_over_the_classes_of_the_test_part(case):
    truth, predictions = case
    found = values(truth, predictions)
    truth, predictions = of_rows_that_count(truth, predictions)
    y, weight = truth.y, truth.weight
    present = np.unique(y)
    if len(present) < 2:
        assert not {"roc_auc", "average_precision"} & found.keys()
        return
    compared = present[1:] if len(truth.classes) == 2 else present
    for name, of_two in (
        ("roc_auc", metrics.roc_auc_score),
        ("average_precision", metrics.average_precision_score),
    ):
        expected = np.mean(
            [
                of_two(y == label, predictions.probabilities[:, label], sample_weight=weight)
                for label in compared
            ]
        )
        assert found[name] == pytest.approx(expected, rel=1e-9, abs=1e-12), name


def test_the_area_is_scikit_learns_one_vs_rest():
    rng = np.random.default_rng(0)
    y, probabilities = rng.integers(0, 4, 200), rng.dirichlet(np.ones(4), 200)
    found = values(
        Truth(y, "classification", np.arange(4)), Predictions(np.zeros(200, int), probabilities)
    )
    expected = metrics.roc_auc_score(y, probabilities, multi_class="ovr")
    assert found["roc_auc"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "reshaped", [lambda d: d, lambda d: d[:, None], lambda d: np.stack([-d, d], axis=1)]
)
def test_decision_values_rank_as_well_as_probabilities(reshaped):
    rng = np.random.default_rng(1)
    y, decision = rng.integers(0, 2, 50), rng.normal(size=50)
    truth = Truth(y, "classification", np.arange(2))
    found = values(truth, Predictions(y, decision=reshaped(decision)))
    assert found["roc_auc"] == pytest.approx(metrics.roc_auc_score(y, decision), rel=1e-12)
    expected = metrics.average_precision_score(y, decision)
    assert found["average_precision"] == pytest.approx(expected, rel=1e-12)
    assert "log_loss" not in found


def test_decision_values_of_pairs_are_not_scores_of_classes():
    truth = Truth(np.array([0, 1, 2, 3]), "classification", np.arange(4))
    found = values(truth, Predictions(truth.y, decision=np.zeros((4, 6))))
    assert "roc_auc" not in found
    assert found["accuracy"] == 1.0


@pytest.mark.parametrize("scores", ["probabilities", "decision"])
def test_constant_scores_rank_nothing(scores):
    truth = Truth(np.array([0, 1, 2, 2]), "classification", np.arange(3))
    found = values(truth, Predictions(truth.y, **{scores: np.full((4, 3), 1 / 3)}))
    assert found["roc_auc"] == 0.5
    assert found["average_precision"] == pytest.approx(np.mean([0.25, 0.25, 0.5]))


def test_a_class_without_training_rows_is_ranked_by_a_constant():
    y = np.array([0, 1, 2, 1])
    right = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5], [0.1, 0.9]])
    found = values(Truth(y, "classification", np.array([0, 1])), Predictions(y % 2, right))
    assert found["roc_auc"] == pytest.approx(np.mean([1.0, 1.0, 0.5]))
    # 1 and the squares of what was given to the others
    brier_score = np.mean([0.02, 0.08, 1 + 0.5, 0.02])
    assert found["brier_score"] == pytest.approx(brier_score)
    assert found["log_loss"] == pytest.approx(
        np.mean([-math.log(0.9), -math.log(0.8), -math.log(np.finfo(float).eps), -math.log(0.9)])
    )


def test_training_labels_with_a_gap_keep_their_columns():
    y = np.array([0, 2, 2])
    probabilities = np.array([[1.0, 0.0], [0.25, 0.75], [0.0, 1.0]])
    found = values(Truth(y, "classification", np.array([0, 2])), Predictions(y, probabilities))
    assert found["roc_auc"] == 1.0
    assert found["log_loss"] == pytest.approx(-math.log(0.75) / 3)


@given(classified())
@quick
def test_the_order_of_the_rows_does_not_matter(case):
    truth, predictions = case
    order = np.random.default_rng(0).permutation(len(truth.y))
    shuffled = values(*take_rows(truth, predictions, order))
    found = values(truth, predictions)
    assert found.keys() == shuffled.keys()
    for name, value in found.items():
        assert shuffled[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name


@given(classified(), st.sampled_from([1e-200, 7.0]))
@quick
def test_only_the_ratio_of_weights_matters_and_integers_are_copies(case, factor):
    truth, predictions = case
    counts = np.random.default_rng(0).integers(0, 3, len(truth.y))
    counts[0] = 1
    copies = values(
        *take_rows(replace(truth, weight=None), predictions, np.repeat(range(len(truth.y)), counts))
    )
    found = values(replace(truth, weight=factor * counts), predictions)
    assert found.keys() == copies.keys()
    for name, value in found.items():
        assert copies[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name


# -- the expected calibration error


def ece_by_copies(truth, predictions):
    """Compute the error from 15 copies of each row: ties share their mean, bins are equal."""
    top = predictions.probabilities.max(axis=1)
    right = truth.classes[predictions.probabilities.argmax(axis=1)] == truth.y
    rows = sorted((c, np.mean(right[top == c])) for c in top for _ in range(15))
    bins = np.split(np.array(rows), 15)
    return np.mean([abs(np.mean(part[:, 0] - part[:, 1])) for part in bins])


@given(classified())
@quick
def test_the_calibration_error_has_bins_of_equal_mass(case):
    truth, predictions = replace(case[0], weight=None), case[1]
    expected = ece_by_copies(truth, predictions)
    assert values(truth, predictions)["ece"] == pytest.approx(expected, abs=1e-12)


def test_the_calibration_error_of_a_sure_classifier():
    y = np.array([0, 0, 0, 1])
    sure = np.eye(2)[[0, 0, 0, 0]]
    found = values(Truth(y, "classification", np.arange(2)), Predictions(y, sure))
    assert found["ece"] == 0.25
    assert "never for ranking" in METRICS["ece"].definition
    assert set(NEVER_RANKED) == {"ece"}


# -- regression


@st.composite
def regressed(draw):
    n = draw(st.integers(1, 25))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    y = rng.choice([0.0, 0.5, -3.25], n) if draw(st.booleans()) else 50 * rng.normal(size=n)
    predicted = y + rng.choice([0.0, 0.5, 20.0], n)
    weight = rng.choice([0.25, 1.0, 3.0], n) if draw(st.booleans()) else None
    scale = Scale(draw(st.floats(-5, 5)), draw(st.sampled_from([0.01, 1.0, 40.0])))
    truth = Truth(y, "regression", np.empty(0), scale, weight)
    return truth, Predictions(predicted, sd=rng.choice([0.1, 1.0, 30.0], n))


@given(regressed())
@quick
def test_metrics_of_numbers_are_those_of_scikit_learn(case):
    truth, predictions = case
    found = values(truth, predictions)
    args, weight = (truth.y, predictions.predicted), truth.weight
    rmse = metrics.root_mean_squared_error(*args, sample_weight=weight)
    assert found["rmse"] == pytest.approx(rmse, rel=1e-12)
    assert found["rmse_standardized"] == pytest.approx(rmse / truth.scale.sd, rel=1e-12)
    mae = metrics.mean_absolute_error(*args, sample_weight=weight)
    assert found["mae"] == pytest.approx(mae, rel=1e-12)
    if len(truth.y) < 2:
        assert "r2" not in found
    else:
        r2 = metrics.r2_score(*args, sample_weight=weight)
        assert found["r2"] == pytest.approx(r2, rel=1e-9, abs=1e-9)


@given(regressed())
@quick
def test_metrics_of_distributions_are_those_of_the_normal(case):
    truth, predictions = case
    found = values(truth, predictions)
    y, weight, normal = truth.y, truth.weight, stats.norm(predictions.predicted, predictions.sd)
    nlpd = np.average(-normal.logpdf(y), weights=weight)
    assert found["nlpd"] == pytest.approx(nlpd, rel=1e-9, abs=1e-12)
    assert found["nlpd"] == pytest.approx(
        found["nlpd_standardized"] + math.log(truth.scale.sd), rel=1e-9, abs=1e-12
    )
    low, high = normal.interval(0.9)
    score = high - low + 20 * np.maximum(low - y, 0) + 20 * np.maximum(y - high, 0)
    assert found["interval_score_90"] == pytest.approx(np.average(score, weights=weight), rel=1e-9)
    coverage = np.average((low <= y) & (y <= high), weights=weight)
    assert found["coverage_error_90"] == pytest.approx(abs(coverage - 0.9), abs=1e-12)
    assert found["crps_standardized"] == pytest.approx(found["crps"] / truth.scale.sd, rel=1e-12)


@pytest.mark.parametrize(("y", "mu", "sd"), [(0.3, 0.0, 1.0), (-4.0, 1.0, 0.5), (2.0, 2.0, 7.0)])
def test_the_closed_form_of_the_crps_is_its_integral(y, mu, sd):
    truth = Truth(np.array([y]), "regression", np.empty(0))
    found = values(truth, Predictions(np.array([mu]), sd=np.array([sd])))["crps"]
    x = np.linspace(min(y, mu) - 12 * sd, max(y, mu) + 12 * sd, 400_001)
    integral = np.trapezoid((stats.norm(mu, sd).cdf(x) - (x >= y)) ** 2, x)
    assert found == pytest.approx(integral, rel=1e-3)


def test_a_regressor_without_a_distribution_has_none_of_its_metrics():
    truth = Truth(np.array([0.5, 1.5]), "regression", np.empty(0))
    assert values(truth, Predictions(np.array([0.5, 1.0]))).keys() == {
        "rmse", "rmse_standardized", "mae", "r2",
    }  # fmt: skip


def test_values_beyond_the_range_of_numbers_are_finite():
    truth = Truth(np.array([1e200, 0.0]), "regression", np.empty(0))
    made = values(truth, Predictions(np.array([-1e200, 0.0]), sd=np.array([1e-300, 1e-300])))
    assert all(map(math.isfinite, made.values()))
    assert made["rmse"] > 1e300


def test_equal_targets_have_the_r2_of_scikit_learn_whatever_their_mean_rounds_to():
    truth = Truth(np.full(3, 0.1), "regression", np.empty(0))
    assert values(truth, Predictions(np.full(3, 0.1)))["r2"] == 1.0
    assert values(truth, Predictions(np.array([0.1, 0.1, 0.2])))["r2"] == 0.0


def test_rows_without_weight_do_not_make_a_metric_defined():
    truth = Truth(np.array([0, 1]), "classification", np.arange(2), weight=np.array([1.0, 0.0]))
    made = values(truth, Predictions(np.array([0, 0]), np.eye(2)))
    assert made["balanced_accuracy"] == 1.0
    assert "roc_auc" not in made
    none = replace(truth, weight=np.zeros(2))
    assert values(none, Predictions(np.array([0, 0]), np.eye(2))) == {}


def test_the_host_needs_no_scikit_learn_to_score():
    code = (
        "import sys, numpy as np\n"
        "from kbench.evaluation.metrics import COMPUTE\n"
        "from kbench.evaluation.checked_predictions import Predictions\n"
        "from kbench.evaluation.targets import Truth\n"
        "y = np.array([0.5, 1.5])\n"
        "COMPUTE['crps'](Truth(y, 'regression', y), Predictions(y, sd=y))\n"
        "print([m for m in sys.modules if m.startswith('sklearn')])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
