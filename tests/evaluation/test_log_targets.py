"""Regressors that are fitted on the logarithms of targets."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge, Ridge
from sklearn.preprocessing import FunctionTransformer

from kbench import Dataset, DatasetError, Protocol, SuiteError, evaluate
from kbench.evaluation import evaluate as evaluate_module
from kbench.evaluation.evaluate import evaluate_split
from kbench.evaluation.method import Method
from kbench.evaluation.specs import EstimatorSpec
from kbench.evaluation.splits import make_split
from kbench.evaluation.targets import LogTargets, Scale
from kbench.records.canonical import read_protocol, to_json
from kbench_learners import PathRidge
from tests.evaluation.test_folds_in_blocks import REGRESSOR, RFF, evaluated

IDENTITY = EstimatorSpec(FunctionTransformer)
LOG = Protocol(scaling=("none",), target_scale="log")


def prices(zeros=0, n=200):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = np.exp(3.0 + X @ [0.5, -0.3, 0.2] + rng.normal(0, 0.7, n))
    y[:zeros] = 0.0
    return Dataset("prices", X, y)


@pytest.mark.parametrize("zeros", [0, 9])
def test_predictions_are_means_in_the_targets_units(zeros):
    data = prices(zeros)
    found = evaluate_split(data, 0, Method(IDENTITY, EstimatorSpec(Ridge)), LOG)
    rows = make_split(data, LOG, 0)
    shift = 1.0 if zeros else 0.0
    z = np.log(data.y[rows.train] + shift)
    scale = Scale.fit(z, "regression")
    peer = Ridge().fit(data.X[rows.train], scale.standardise(z))
    residuals = z - scale.restore(peer.predict(data.X[rows.train]))
    smearing = np.exp(residuals).mean()
    expected = smearing * np.exp(scale.restore(peer.predict(data.X[rows.test]))) - shift
    np.testing.assert_allclose(found.predictions.predicted, np.maximum(expected, 0.0), rtol=1e-9)
    rmse = np.sqrt(np.mean((found.predictions.predicted - data.y[rows.test]) ** 2))
    assert found.metrics["rmse"] == pytest.approx(rmse)
    sd = data.y[rows.train].std()
    assert found.metrics["rmse_standardized"] == pytest.approx(rmse / sd)


def test_a_predictive_distribution_of_logarithms_is_not_scored():
    found = evaluate_split(prices(), 0, Method(IDENTITY, EstimatorSpec(BayesianRidge)), LOG)
    assert found.predictions.sd is None
    assert "crps" not in found.metrics


def test_searches_score_logarithms():
    data, alphas = prices(), (1e-3, 1e3)
    learner = EstimatorSpec(PathRidge, {}, {"alpha": alphas}, path="alpha")
    ours = evaluate_split(data, 0, Method(IDENTITY, learner), LOG)
    logs = replace(data, y=np.log(data.y))
    theirs = evaluate_split(logs, 0, Method(IDENTITY, learner), replace(LOG, target_scale="linear"))
    of_ours, of_theirs = (
        [score["values"] for score in each.details.search] for each in (ours, theirs)
    )
    assert len(of_ours) == 2
    for one, other in zip(of_ours, of_theirs, strict=True):
        assert len(one) == 3
        assert one == pytest.approx(other, rel=0.05)  # the folds are stratified by other targets


def test_blocks_predict_as_one_matrix():
    data = replace(prices(), sample_weight=np.random.default_rng(1).uniform(0.1, 2.0, 200))
    given = data, 0, Method(RFF, REGRESSOR), LOG
    whole, in_memory = evaluated(*given)
    blocks, in_blocks = evaluated(*given, block=64)
    assert in_blocks.is_in_blocks
    assert in_blocks.scale.log.smearing == pytest.approx(in_memory.scale.log.smearing)
    np.testing.assert_allclose(blocks.predictions.predicted, whole.predictions.predicted, rtol=1e-6)


def test_each_fit_has_its_own_smearing(monkeypatch):
    """The default candidate and other seeds of a map have other residuals than what is chosen."""
    data, protocol, fits, fit = prices(), replace(LOG, map_seeds=2), [], evaluate_module.fit
    monkeypatch.setattr(evaluate_module, "fit", lambda *given: fits.append(fit(*given)) or fits[-1])
    learner = EstimatorSpec(PathRidge, {}, {"alpha": (1e4, 1e-3)}, path="alpha")
    found = evaluate_split(data, 0, Method(replace(RFF, space={}), learner), protocol)
    test = make_split(data, protocol, 0).test
    predicted = [each.scale.restore(each.predict(data.X[test]).predicted) for each in fits]
    errors = [np.sqrt(np.mean((each - data.y[test]) ** 2)) for each in predicted]
    assert len({each.scale.log.smearing for each in fits}) == 4
    assert found.details.by_seed["rmse"] == pytest.approx(errors[:2])
    assert found.metrics["default_rmse"] == pytest.approx(np.mean(errors[2:]))


def test_a_prediction_is_bounded():
    log = LogTargets.fit(np.array([1.0, 10.0]))
    assert log.mean(np.array([-1e9, 1e9])) == pytest.approx([0.0, 10 * np.e])
    assert np.isfinite(log.log(np.array([0.0, -3.0]))).all()


def test_negative_targets_have_no_logarithms():
    with pytest.raises(DatasetError, match="not negative, and one is -2"):
        LogTargets.fit(np.array([1.0, -2.0]))


def test_classes_have_no_logarithms():
    table = np.eye(40), np.arange(40) % 2
    with pytest.raises(SuiteError, match=r'target_scale = "log" .* is for regression'):
        evaluate(table, "identity", "ridge", protocol=LOG)


def test_the_scale_is_in_keys_only_if_it_is_logarithmic():
    assert "target_scale" not in to_json(Protocol())
    assert read_protocol(to_json(Protocol())) == Protocol()
    assert read_protocol(to_json(LOG)) == LOG
