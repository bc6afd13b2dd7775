"""A plugin alters numbers of its own cells at most, and then they are errors."""

import os
import subprocess
import sys

import pytest

from kbench.execution.warm_parents import PLUGINS, WarmParents, _preload, make_preload
from kbench.planning.suite_file import read
from kbench.records import Ref
from kbench.registry.installed import HOST, list_plugins
from kbench.registry.registry import build
from tests.support.planted import run_text

KINDS = ("feature map", "learner", "dataset", "metric")
PLUGIN = """
import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from kbench import FeatureMap, hookimpl


class Plain(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        {in_fit}
        return self

    def transform(self, X):
        return np.asarray(X)

{at_import}

@hookimpl
def kbench_feature_maps():
    return [FeatureMap("{name}", make=Plain)]
"""
SUITE = """
datasets = ["iris"]
feature_maps = [{maps}]
learners = ["ridge"]
[protocol]
n_folds = 2
search_method = "random"
n_candidates = 1
[limits]
n_splits = 1
"""
PATCH = """
import sklearn.linear_model._ridge as ridge
import sklearn.preprocessing
from sklearn.metrics import pairwise
pairwise.rbf_kernel = lambda *args, **kwargs: 0.0
sklearn.preprocessing.MinMaxScaler.transform = lambda self, X: X * 0.0
"""
HARM = {
    "numpy-settings": ("np.seterr(divide='raise')", ""),
    "sklearn-settings": ("import sklearn; sklearn.set_config(assume_finite=True)", ""),
    "patched": (PATCH, ""),
    "in-fit": ("", "np.seterr(over='raise')"),
}
NAMES = {
    "numpy-settings": "numpy.geterr()['divide'] is 'raise', was 'warn'",
    "sklearn-settings": "sklearn.get_config()['assume_finite'] is True, was False",
    "patched": "sklearn.metrics.pairwise.rbf_kernel was replaced",
    "in-fit": "numpy.geterr()['over'] is 'raise', was 'warn'",
}


def text_of(*maps):
    return SUITE.format(maps=", ".join(f'"{name}"' for name in maps))


@pytest.mark.slow
@pytest.mark.parametrize("harm", HARM)
def test_a_plugin_that_changes_global_state_costs_its_own_cells_only(
    harm, install_plugin, store_uri
):
    at_import, in_fit = HARM[harm]
    install_plugin(
        "harmful", PLUGIN.format(at_import=at_import, in_fit=in_fit or "pass", name="harmful-map")
    )
    alone = run_text(text_of("identity"), store_uri)[0].cells[0].results[0]
    cells = run_text(text_of("harmful-map", "identity"), store_uri, recompute=True)[0].cells
    (own,), (other,) = (cell.results.values() for cell in cells)
    assert own.status == "error"
    assert "plugin harmful changes global state that decides numbers" in own.error
    assert NAMES[harm] in own.error
    assert other.status == "ok"
    assert other.metrics["accuracy"] == alone.metrics["accuracy"]


@pytest.mark.slow
def test_a_harmless_plugin_has_a_separate_warm_parent(install_plugin, store_uri):
    install_plugin("harmless", PLUGIN.format(at_import="", in_fit="pass", name="harmless-map"))
    registry = build(list_plugins())
    text = text_of("harmless-map", "identity")
    preload = make_preload(read(text, "trial", registry), registry)
    assert set(preload) == {(), ("harmless",)}
    assert "harmless" not in preload[()]
    cells = run_text(text, store_uri)[0].cells
    accuracies = [cell.results[0].metrics["accuracy"] for cell in cells]
    assert accuracies[0] == accuracies[1]


def test_nested_components_count():
    registry = build(list_plugins())
    learner = Ref("kernel-svm", {"kernel": Ref("gaussian")})
    assert registry.list_plugins(("learner", learner)) == ()


def test_idle_parents_beyond_the_most_are_ended_the_longest_unused_first(monkeypatch):
    monkeypatch.setattr("kbench.execution.warm_parents.MOST", 2)
    parents = WarmParents()

    def used(name):
        with parents.using((name,)) as sandbox:
            return sandbox

    a, b = used("a"), used("b")
    assert used("a") is a  # used last now
    used("c")
    assert used("a") is a
    assert used("b") is not b
    parents.close()


def test_fewer_parents_than_the_most_all_stay():
    parents = WarmParents()
    with parents.using(("a",)) as a:
        pass
    with parents.using(("b",)) as b, parents.using(("c",)):
        pass
    with parents.using(("a",)) as again, parents.using(("b",)) as b_again:
        assert (again, b_again) == (a, b)
        assert again.run("os:getenv", PLUGINS, time_s=10).value == "a"
    parents.close()


def test_parents_in_use_are_not_ended(monkeypatch):
    monkeypatch.setattr("kbench.execution.warm_parents.MOST", 1)
    parents = WarmParents()
    with parents.using(("a",)) as a, parents.using(("b",)), parents.using(("c",)):
        with parents.using(("a",)) as again:
            assert again is a
        assert a.run("os:getenv", PLUGINS, time_s=10).status == "ok"
    parents.close()


def test_parents_that_are_closed_run_nothing():
    parents = WarmParents()
    parents.close()
    with parents.using() as sandbox, pytest.raises(RuntimeError, match="closed"):
        sandbox.run("os:getenv", PLUGINS)


def test_the_warm_parent_has_no_pandas_and_tasks_can_import_it():
    registry = build(list_plugins())
    suite = read(
        'datasets = ["iris"]\nfeature_maps = ["identity"]\nlearners = ["ridge"]', "s", registry
    )
    parents = WarmParents(make_preload(suite, registry))
    with parents.using() as sandbox:
        loaded = {
            name: sandbox.run("sys:modules.__contains__", name, time_s=60).value
            for name in ("pandas", "sklearn")
        }
        pandas = sandbox.run("importlib:import_module", "pandas", time_s=60)
    parents.close()
    assert loaded == {"pandas": False, "sklearn": True}
    assert "not JSON" in pandas.error  # it returned the module


def modules_of_built_in_components():
    registry = build([plugin for plugin in list_plugins() if plugin.distribution == HOST])
    components = [(kind, Ref(name)) for kind in KINDS for name in registry.all(kind)]
    return _preload((), components, registry)


def test_built_in_modules_are_trusted_unless_they_depend_on_other_packages():
    preload = list(modules_of_built_in_components())
    trust = preload.index("kbench.execution.task_functions:trust_built_in")
    assert preload[trust - 1] == "kbench_learners._lightgbm"
    assert preload.index("kbench_nbcs._map") > trust
    assert preload.count("kbench_learners._lightgbm") == 1


@pytest.mark.slow
def test_modules_that_are_trusted_start_no_thread():
    script = (
        "import sys\n"
        "from kbench.execution.sandbox import child\n"
        "trusted = [name for name in sys.argv[1:] if child.probe(name) is not True]\n"
        "assert not trusted, trusted\n"
    )
    preload = [name for name in modules_of_built_in_components() if "_lightgbm" not in name]
    environment = {**os.environ, PLUGINS: "", "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", script, *preload], env=environment, check=True)
