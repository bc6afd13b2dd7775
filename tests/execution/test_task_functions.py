"""What is said of parameters before anything runs, and what tasks share."""

import sys
import types

import pytest

from kbench import Ref, Tune
from kbench.execution import task_functions as task
from kbench.records.canonical import to_json
from kbench.storage.datacache import DataCache


def check(kind, *refs):
    components = [(f"line[{i}]", to_json(ref)) for i, ref in enumerate(refs)]
    return task.check_values({"components": {kind: components}})


@pytest.mark.parametrize(
    ("kind", "name", "parameter", "value"),
    [
        ("feature map", "rff", "n_components", "many"),
        ("feature map", "rff", "n_components", 0),
        ("feature map", "rff", "n_components", Tune((10, "many"))),
        ("feature map", "additive-chi2", "sample_steps", "two"),
        ("feature map", "rff-learned", "metric", "diag"),
        ("feature map", "rff-learned", "rounds", -1),
        ("learner", "knn", "n_neighbors", "few"),
        ("learner", "perceptron", "alpha", "small"),
    ],
)
def test_a_value_that_an_estimator_refuses_by_name_is_told(kind, name, parameter, value):
    (problem,) = check(kind, Ref(name, {parameter: value}))
    assert problem.startswith(f"line[0].{parameter}: ")
    bad = value.values[-1] if isinstance(value, Tune) else value
    assert repr(bad) in problem


def test_a_wrong_value_inside_a_component_is_told_once():
    kernel = Ref("gaussian", {"bandwidth": "median", "bandwidth_factor": Tune((1.0, 0, 2.0))})
    params = {"kernel": Tune((Ref("polynomial", {"offset": 0}), kernel)), "C": 1.0}
    assert check("learner", Ref("kernel-svm", params)) == [
        "line[0].kernel.bandwidth_factor: bandwidth_factor must be a finite number > 0, got 0"
    ]


@pytest.mark.parametrize(
    ("kind", "name", "params"),
    [
        ("feature map", "nystroem", {"n_components": 5000}),
        ("feature map", "rff", {"bandwidth": "median", "n_components": 100_000}),
        ("learner", "knn", {"n_neighbors": 500}),
        ("learner", "perceptron", {"penalty": "l2", "verbose": 0}),
    ],
)
def test_what_depends_on_the_data_is_not_refused(kind, name, params):
    assert check(kind, Ref(name, params)) == []


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (True, "n_neighbors must be a number, got true"),
        (Tune((5, False)), "n_neighbors.tune[1] must be a number, got false"),
    ],
)
def test_a_truth_value_is_not_a_number(value, words):
    components = {"learner": [("line[0]", to_json(Ref("knn", {"n_neighbors": value})))]}
    assert task.check({"components": components, "task": None}) == [f"line[0].{words}"]


def test_a_truth_value_in_the_place_of_a_name_is_refused_by_the_estimator():
    (problem,) = check("feature map", Ref("rff", {"bandwidth": True}))
    assert problem.startswith("line[0].bandwidth: bandwidth must be ")
    assert problem.endswith(", got True")


@pytest.mark.parametrize("name", ["ridge", "kernel-ridge"])
def test_a_learner_has_the_parameters_for_the_task_of_the_data(name):
    components = {"learner": [("line[0]", to_json(Ref(name, {"multiclass": "ovo"})))]}

    def problems(kind):
        return task.check({"components": components, "task": kind})

    assert problems(None) == problems("classification") == []
    (problem,) = problems("regression")
    assert problem.startswith(
        f"line[0].multiclass: {name!r} has no such parameter for regression; available: alpha, "
    )


def test_a_list_that_was_meant_as_a_search_is_refused_with_a_hint():
    assert check("learner", Ref("linear-svm", {"C": (0.1, 1.0)})) == [
        "line[0].C: C must be a finite number > 0, got [0.1, 1.0]; values to search over are "
        "{ tune = [...] }"
    ]


def test_a_component_in_the_place_of_a_number_is_refused():
    (problem,) = check("learner", Ref("linear-svm", {"C": Ref("gaussian")}))
    assert problem.startswith("line[0].C: C must be a finite number > 0, got ")


def test_a_value_that_needs_another_parameter_is_not_refused(monkeypatch):
    class Picky:
        def __init__(self, mode="plain", partner=None):
            self.mode, self.partner = mode, partner

        def fit(self, X):
            if self.mode == "fine" and self.partner is None:
                raise ValueError(f"mode={self.mode!r} needs a partner")
            return self

        def transform(self, X):
            return X

    from kbench.evaluation.specs import EstimatorSpec

    def side(ref, registry):
        return {"feature_map": EstimatorSpec(Picky, dict(ref.params))}

    monkeypatch.setattr(task, "map_side", side)
    refs = [
        ("a", Ref("picky", {"mode": "fine", "partner": 1})),
        ("b", Ref("picky", {"mode": "fine"})),
    ]
    assert task._wrong_values(refs, "feature map", None) == ["b.mode: mode='fine' needs a partner"]


def test_an_estimator_that_fails_otherwise_or_takes_long_is_not_refused(monkeypatch):
    import time

    from kbench.evaluation.specs import EstimatorSpec

    class Slow:
        def __init__(self, mode):
            self.mode = mode

        def fit(self, X):
            if self.mode == "sleep":
                time.sleep(60)
            raise RuntimeError(f"mode={self.mode!r}")

    def side(ref, registry):
        return {"feature_map": EstimatorSpec(Slow, dict(ref.params))}

    monkeypatch.setattr(task, "map_side", side)
    monkeypatch.setattr(task, "TRIAL_TIME_S", 0.1)
    refs = [("a", Ref("slow", {"mode": "sleep"})), ("b", Ref("slow", {"mode": "break"}))]
    assert task._wrong_values(refs, "feature map", None) == []


def test_libraries_are_looked_for_again_once_modules_were_imported(monkeypatch):
    first = task.thread_pools()
    assert task.thread_pools() is first
    monkeypatch.setitem(sys.modules, "a_module_that_brings_a_library", types.ModuleType("a"))
    again = task.thread_pools()
    assert again is not first
    assert again.info() == first.info()


def test_a_file_that_changes_while_it_is_loaded_is_not_kept_as_it_is_now(tmp_path, monkeypatch):
    path = tmp_path / "data.csv"
    path.write_text("a,y\n" + "1,x\n2,z\n" * 20)
    line = {"name": "csv", "params": {"path": str(path), "target": "y"}}
    payload = {"dataset": line, "code": "c", "cache": str(tmp_path / "cache"), "offline": True}
    add = DataCache.add

    def slowly(self, *arguments):
        path.write_text(path.read_text().replace("1", "9"))
        return add(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(DataCache, "add", slowly)
        assert "has changed while it was read" in task.load(payload)["unavailable"]
    cache = DataCache(tmp_path / "cache")
    assert cache.lookup(line["name"], line["params"], "c") is None
    assert task.load(payload) == {}
    assert cache.load(cache.lookup(line["name"], line["params"], "c")).X.max() == 9
