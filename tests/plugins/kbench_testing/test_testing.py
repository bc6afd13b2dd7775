"""The conformance kit: what it runs on, and that every check can fail."""

import contextlib
import signal
import time
import warnings

import pytest

from kbench import DatasetSource, Figure, Learner, Metric, PluginError
from kbench_testing import CHECKS, _cases, components, parametrize_with_checks, run
from tests.support.conformance import failures, map_plugin
from tests.support.defective_datasets import DATASET_DEFECTS, dataset
from tests.support.defective_kernels import KERNEL_DEFECTS
from tests.support.defective_learners import LEARNER_DEFECTS, Centroids
from tests.support.defective_maps import MAP_DEFECTS, Careless, Centred, Leaking
from tests.support.defective_regressors import REGRESSOR_DEFECTS


def test_a_plugin_that_is_left_out_is_one_failure(plugin_of):
    plugin = plugin_of(kbench_learners=[Learner("linear-svm", classifier=Centroids)])
    found = failures(plugin)
    assert list(found) == ["check_loads"]
    assert "rename one of them" in found["check_loads"]


def test_parameters_can_be_given(plugin_of):
    def load(path):
        return dataset(source=path)

    plugin = plugin_of(kbench_datasets=[DatasetSource("file", load=load)])
    skipped = [each for each in run(components(plugin)) if each.status == "skipped"]
    assert "params={'file': {'path': ...}}" in skipped[0].message
    given = run(components(plugin, params={"file": {"path": "here"}}))
    assert {each.status for each in given} == {"passed"}


def test_a_suite_with_a_mistake_is_caught(plugin_of, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('datasets = ["iris"]\nfeature_maps = ["rfff"]\nlearners = ["ridge"]\n')
    found = failures(plugin_of(kbench_suites=[path]))
    assert "did you mean 'rff'" in found["check_suite"]


def test_a_figure_that_nothing_draws_is_caught(plugin_of):
    figure = Figure("sketch", "A sketch", draw="collections:nothing_of_this_name")
    found = failures(plugin_of(kbench_figures=[figure]))
    assert list(found) == ["check_draw"]


def test_every_check_has_a_planted_defect():
    planted = {*MAP_DEFECTS.values(), *LEARNER_DEFECTS.values(), *KERNEL_DEFECTS.values()}
    planted |= {check for _, check in DATASET_DEFECTS} | {*REGRESSOR_DEFECTS.values()}
    # those that have a test of their own
    planted |= {"check_grid", "check_metrics", "check_sklearn", "check_kernelized"}
    planted |= {
        "check_unbiased",
        "check_simpler",
        "check_number",
        "check_order_of_rows",
        "check_direction",
    }
    planted |= {"check_expand", "check_endings", "check_loads", "check_suite", "check_draw"}
    # those of features: test_features.py
    planted |= {f"check_{each}" for each in ("metadata", "hooks", "targets", "package", "run")}
    assert {check.__name__ for checks in CHECKS.values() for check in checks} == planted


def test_plugins_are_found_by_entry_point_module_and_distribution():
    import kbench_datasets

    names = [
        [str(each) for each in components(each)]
        for each in ("datasets", "kbench_datasets", kbench_datasets)
    ]
    assert names[0] == names[1] == names[2]
    assert {"plugin datasets", "dataset iris"} <= set(names[0])
    assert len([each for each in components("kbench_core") if each.kind == "plugin"]) > 3


def test_an_unknown_plugin_is_one_message():
    with pytest.raises(PluginError, match="did you mean 'baselines'"):
        components("baseline")


def test_pytest_gets_one_case_per_component_and_check():
    mark = parametrize_with_checks("datasets").mark
    ids = [each.id for each in mark.args[1]]
    assert "dataset iris-check_checksum" in ids
    assert len(set(ids)) == len(ids)


def test_a_failure_says_what_to_do(plugin_of):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for make in (Centred, Careless, Leaking):
            (message,) = failures(map_plugin(plugin_of, make)).values()
            assert ";" in message or "," in message


def test_a_check_that_does_not_end_has_failed(plugin_of, monkeypatch):
    def never(y_true, y_pred):
        while True:
            with contextlib.suppress(Exception):
                time.sleep(60)

    monkeypatch.setattr(_cases, "TIME_S", 0.2)
    ours = Metric("ours", "lower", "never", "classification", function=never)
    checked = components(plugin_of(kbench_metrics=[ours]))
    first, *others = (result for result in run(checked) if result.status != "passed")
    assert (first.status, first.message) == ("failed", "it did not end within 0.2 s")
    assert others
    assert {(r.status, r.message) for r in others} == {("skipped", f"{first.check} did not end")}
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
