"""kbench from Python: the same numbers, journal and runs as the command line."""

import subprocess
import sys

import numpy as np
import pandas
import pytest

import kbench
from kbench import Dataset, DatasetError, Protocol, Ref, SuiteError, Tune
from kbench.results.rows import COLUMNS
from tests.support.command_here import command

pytestmark = pytest.mark.usefixtures("forked_sandboxes")

SUITE = """
datasets = ["iris"]
feature_maps = ["identity"]
learners = ["dummy-majority", "ridge"]
[protocol]
n_folds = 2
"""


@pytest.fixture
def suite(tmp_path, store_uri, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store_uri)
    path = tmp_path / "tiny.toml"
    path.write_text(SUITE)
    return str(path)


def test_importing_kbench_loads_nothing_heavy():
    code = (
        "import sys, kbench; dir(kbench)\n"
        "print([m for m in ('sklearn', 'pandas', 'mlflow', 'rich', 'scipy', 'kbench.runner')"
        " if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.slow
def test_a_suite_from_python_and_from_the_command_line_are_one(suite, capfd):
    frame = kbench.run_suite(suite, learner="dummy-majority", progress=False).to_frame()
    assert list(frame.columns) == list(COLUMNS)
    assert frame["status"].tolist() == ["ok"]
    assert capfd.readouterr() == ("", "")
    # the command line finds in the journal what Python computed
    code, _, err = command("suite", suite, "--jobs", "1", capfd=capfd)
    assert code == 0, err
    assert "2 tasks to compute, 2 cached" in err
    loaded = kbench.load_results("tiny").to_frame()
    assert list(loaded.columns) == list(COLUMNS)
    assert set(loaded["learner"]) == {"dummy-majority", "ridge (ovr)"}
    both = loaded.set_index("learner")["accuracy"]
    assert both["dummy-majority"] == pytest.approx(frame["accuracy"][0])
    assert loaded.attrs["experiment"] == frame.attrs["experiment"] == "tiny"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dataset": "irs"}, "did you mean 'iris'"),
        ({"task_timeout": 0}, "`task_timeout` must be a finite number > 0, or inf, got 0"),
        ({"n_splits": 0}, "`n_splits` must be an integer >= 1, got 0"),
        ({"jobs": 0}, "`jobs` must be an integer >= 1, or None, got 0"),
    ],
)
def test_wrong_options_are_refused_before_anything_runs(suite, options, words):
    with pytest.raises(SuiteError, match=words):
        kbench.run_suite(suite, progress=False, **options)


def test_what_is_searched_in_a_component_is_a_number_of_the_chosen_parameters():
    kernel = Ref("gaussian", {"bandwidth_factor": Tune((1.0, 1000.0))})
    given = Ref("kernel-svm", {"kernel": kernel, "C": 1.0})
    found = kbench.evaluate("iris", "identity", given, n_splits=2)
    assert set(found["learner.kernel"]) == {"gaussian"}
    assert found["learner.kernel.bandwidth_factor"].tolist() == [1.0, 1.0]
    assert found["n_candidates"].tolist() == [2.0, 2.0]


def test_evaluate_takes_names_lines_and_refs():
    line = {"name": "rff", "n_components": 20, "bandwidth_factor": 1.0}
    first = kbench.evaluate("iris", line, "ridge", n_splits=2)
    ref = Ref("rff", {"n_components": 20, "bandwidth_factor": 1.0})
    second = kbench.evaluate(Ref("iris"), ref, Ref("ridge"), n_splits=2)
    assert first["accuracy"].tolist() == second["accuracy"].tolist()
    assert first["n_components"].tolist() == [20, 20]
    assert first["learner.alpha"].notna().all()
    assert first.attrs["feature_map"] == "rff(n_components=20, bandwidth_factor=1)"


def test_evaluate_and_a_suite_give_the_same_numbers(suite):
    protocol = Protocol(n_folds=2)
    here = kbench.evaluate("iris", learner="ridge", protocol=protocol)
    there = kbench.run_suite(suite, learner="ridge", progress=False).to_frame()
    assert here["accuracy"].mean() == pytest.approx(there["accuracy"][0], abs=1e-12)


def test_evaluate_takes_estimators_and_arrays():
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import PolynomialFeatures

    data = load_iris(as_frame=True)
    names = data.target_names[data.target]
    found = kbench.evaluate((data.data, names), PolynomialFeatures(2), LogisticRegression())
    assert len(found) == 5
    assert found["accuracy"].mean() > 0.8
    assert found["n_components"].eq(15).all()
    arrays = (data.data.to_numpy(), data.target.to_numpy())
    again = kbench.evaluate(arrays, PolynomialFeatures(2), LogisticRegression())
    assert again["accuracy"].tolist() == found["accuracy"].tolist()


def test_an_instance_of_a_registered_map_keeps_what_its_record_says():
    from kbench_baselines import RandomFourierFeatures
    from kbench_zero_one import ZeroOneFeatures

    found = kbench.evaluate("iris", RandomFourierFeatures(20), "ridge", n_splits=1)
    assert "gram_error_frobenius" in found
    # needs the unit ball, which the scaling to [0, 1] leaves
    assert len(kbench.evaluate("iris", ZeroOneFeatures(), "ridge", n_splits=1)) == 1


def test_an_instance_has_the_record_whose_preset_parameters_it_has():
    from kbench.api.functions import _find_record
    from kbench.registry.installed import list_plugins
    from kbench.registry.registry import build
    from kbench_baselines import NystroemMap
    from kbench_nbcs import NestedBarycentricMap

    registry = build(list_plugins())
    for estimator, name in [
        (NystroemMap(), "nystroem"),
        (NystroemMap(landmarks="kmeans"), "nystroem-kmeans"),
        (NystroemMap(landmarks="leverage"), "nystroem-leverage"),
        (NestedBarycentricMap(), "nbcs"),
        (NestedBarycentricMap(split="adaptive"), "nbcs-adaptive"),
        (NestedBarycentricMap(n_roots=4, rotate=True), "nbcs-rotated"),
    ]:
        assert _find_record(estimator, "feature map", registry).name == name


def test_an_instance_has_the_record_of_a_partial(plugin_of):
    from functools import partial

    from sklearn.preprocessing import PolynomialFeatures

    from kbench.api.functions import _find_record
    from kbench.registry.registry import build

    maps = [
        kbench.FeatureMap("cubic", make=partial(PolynomialFeatures, 3)),
        kbench.FeatureMap("order", make=partial(PolynomialFeatures, order="F", degree=2)),
        kbench.FeatureMap("quintic", make=partial(PolynomialFeatures, degree=5)),
    ]
    registry = build([plugin_of(kbench_feature_maps=maps)])

    def name(estimator):
        return getattr(_find_record(estimator, "feature map", registry), "name", None)

    assert name(PolynomialFeatures(5)) == "quintic"
    assert name(PolynomialFeatures(2, order="F")) == "order"
    assert name(PolynomialFeatures(2)) is None
    assert name(PolynomialFeatures(3)) == "cubic"


def test_a_map_that_needs_labels_gets_them_and_a_given_seed_is_kept():
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.feature_selection import SelectKBest

    seen = []

    class Seeded(TransformerMixin, BaseEstimator):
        def __init__(self, random_state=None):
            self.random_state = random_state

        def fit(self, X, y=None):
            seen.append(self.random_state)
            return self

        def transform(self, X):
            return X

    found = kbench.evaluate("iris", SelectKBest(k=2), "ridge", n_splits=1)
    assert found["n_components"].tolist() == [2]
    kbench.evaluate("iris", Seeded(7), "dummy-majority", n_splits=1)
    assert set(seen) == {7}


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("irs",), SuiteError, "did you mean 'iris'"),
        (("iris", "nystrom"), SuiteError, "did you mean 'nystroem'"),
        (("iris", {"name": "rff", "n_componets": 2}), SuiteError, "did you mean 'n_components'"),
        (
            ("iris", "rff", "kernel-svm"),
            SuiteError,
            "works on the inputs: its feature map must be 'identity', got rff",
        ),
        (("iris", object()), SuiteError, "fit and transform"),
        ((3,), DatasetError, "dataset must be a name"),
        (((np.eye(4), [0.5, 1, 2, 3]),), SuiteError, "is for classification, not for regression"),
        (((np.eye(4), [0.5, np.nan, 2, 3]),), DatasetError, "y has 1 missing label"),
        (((np.eye(4), [0, 0, 0, 0]),), DatasetError, "at least 2 classes"),
        (((np.eye(4), ["a", None, "b", "a"]),), DatasetError, "1 missing label"),
        (((np.eye(4), ["a", "b", np.nan, "a"]),), DatasetError, "1 missing label"),
        (((np.eye(4), pandas.Series(["a", "b", pandas.NA, None])),), DatasetError, "2 missing"),
        (((np.eye(4), ["a", 1, "b", object()]),), DatasetError, "one type, got several"),
        (((np.eye(4), [0, 1]),), DatasetError, r"y must have shape \(4,\).* got \(2,\)"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_in_words(arguments, error, words):
    with pytest.raises(error, match=words):
        kbench.evaluate(*arguments)


def test_text_in_a_frame_is_refused_by_name():
    import pandas

    X = pandas.DataFrame({"a": [1.0, 2, 3, 4], "colour": list("rgbr")})
    with pytest.raises(DatasetError, match="must have columns of numbers, got colour"):
        kbench.evaluate((X, [0, 1, 0, 1]))


def test_a_dataset_record_is_checked_and_taken():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    data = Dataset("mine", rng.normal(size=(40, 2)) + 3 * y[:, None], y)
    found = kbench.evaluate(data, learner="ridge", n_splits=2)
    assert found.attrs["dataset"] == "mine"
    assert found["accuracy"].min() > 0.8


def test_a_notebook_gets_an_output_that_needs_no_widgets(monkeypatch):
    import rich.console

    from kbench.api import progress

    monkeypatch.setattr(rich.console, "_is_jupyter", lambda: True)
    chosen = progress.choose(as_json=False, quiet=False, jobs=2)
    assert isinstance(chosen, progress.NotebookTable)


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("rmse", "search_metric 'rmse' is not for classification; available: accuracy"),
        ("log_los", "no search can optimise 'log_los'.*did you mean 'log_loss'"),
        ("zzz", "no search can optimise 'zzz'; available: [a-z0-9_, ]*$"),
        ("ece", "never for ranking"),
    ],
)
def test_evaluate_refuses_a_search_metric_that_no_search_can_optimise(metric, words):
    # nothing is searched here, so that no search would refuse it
    learner = {"name": "ridge", "alpha": 1.0}
    with pytest.raises(SuiteError, match=words):
        kbench.evaluate("iris", learner=learner, protocol=Protocol(search_metric=metric))
