"""A plugin alters numbers of its own cells at most, and then they are errors."""

import pytest

from kbench.execution.warm_parents import PLUGINS, WarmParents, preload_of
from kbench.planning.suite_file import read
from kbench.records import Ref
from kbench.registry.registry import build, installed
from tests.support.planted import run_text

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
search = "random"
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
    cells = run_text(text_of("harmful-map", "identity"), store_uri, fresh=True)[0].cells
    (own,), (other,) = (cell.results.values() for cell in cells)
    assert own.status == "error"
    assert "the plugin harmful changes global state that decides numbers" in own.error
    assert NAMES[harm] in own.error
    assert other.status == "ok"
    assert other.measures["accuracy"] == alone.measures["accuracy"]


@pytest.mark.slow
def test_a_harmless_plugin_has_a_separate_warm_parent(install_plugin, store_uri):
    install_plugin("harmless", PLUGIN.format(at_import="", in_fit="pass", name="harmless-map"))
    registry = build(installed())
    text = text_of("harmless-map", "identity")
    preload = preload_of(read(text, "trial", registry), registry)
    assert set(preload) == {(), ("harmless",)}
    assert "harmless" not in preload[()]
    cells = run_text(text, store_uri)[0].cells
    accuracies = [cell.results[0].measures["accuracy"] for cell in cells]
    assert accuracies[0] == accuracies[1]


def test_nested_components_count():
    registry = build(installed())
    learner = Ref("kernel-svm", {"kernel": Ref("gaussian")})
    assert registry.plugins_of(("learner", learner)) == ()


def test_an_idle_parent_makes_way_for_another(monkeypatch):
    monkeypatch.setattr("kbench.execution.warm_parents.MOST", 2)
    parents = WarmParents()
    with parents.using(("a",)) as first, parents.using(("b",)):
        with parents.using(("a",)) as again:
            assert again is first
        with parents.using(("c",)):
            pass  # none is idle: three are kept
        with parents.using(("b",)):
            outcome = first.run("os:getenv", PLUGINS, time_s=10)
            assert outcome.value == "a"
    with parents.using(("d",)), parents.using(("a",)) as last:
        assert (last is first) == (not first._closed)
    parents.close()
    with parents.using() as closed, pytest.raises(RuntimeError, match="closed"):
        closed.run("os:getenv", PLUGINS)
