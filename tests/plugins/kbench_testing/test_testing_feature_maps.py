"""A planted defect of a map is caught by the check that names it, and by no other."""

import sys

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from kbench import Ref, Tune
from kbench_testing import CHECKS, ConformanceWarning, checks_of, components, run
from tests.support.conformance import failures, map_plugin, sklearn_failure
from tests.support.defective_maps import (
    MAP_DEFECTS,
    MAP_DEFECTS_OF_SKLEARN,
    Demanding,
    Elsewhere,
    Fourier,
    Meddling,
    Nosy,
    OfTheStandard,
    Portable,
    Shrunken,
    Sloped,
)


def test_a_good_map_passes_everything(plugin_of):
    outcomes = list(run(components(map_plugin(plugin_of, Fourier))))
    assert {each.status for each in outcomes} == {"passed"}
    applied = {each.check for each in outcomes}
    # of those for maps, all but those of what it does not declare
    undeclared = {"check_metrics", "check_unbiased"}
    wanted = {each.__name__ for each in CHECKS["feature map"]} - undeclared
    assert wanted <= applied


def test_a_map_with_gradients_passes_everything(plugin_of):
    assert not failures(map_plugin(plugin_of, Sloped))


def test_a_map_for_any_library_of_arrays_passes_everything(plugin_of):
    assert not failures(map_plugin(plugin_of, Portable))


def test_a_map_that_computes_in_one_library_only_is_caught(plugin_of):
    pytest.importorskip("torch", reason="the extra gpu is not installed")
    (found,) = failures(map_plugin(plugin_of, OfTheStandard)).items()
    assert found[0] == "check_array_api"
    assert "fails on arrays of torch: AttributeError" in found[1]


@pytest.mark.parametrize("missing", ["array_api_strict", "array_api_compat.torch"])
def test_one_library_of_arrays_is_enough(plugin_of, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    if missing == "array_api_strict":
        pytest.importorskip("torch", reason="the extra gpu is not installed")
    assert list(failures(map_plugin(plugin_of, Elsewhere))) == ["check_array_api"]


@pytest.mark.parametrize("make", MAP_DEFECTS, ids=lambda make: make.__name__)
def test_a_defect_of_a_map_is_caught_by_its_check(plugin_of, make):
    found = failures(map_plugin(plugin_of, make))
    assert list(found) == [MAP_DEFECTS[make]], found


@pytest.mark.parametrize("make", MAP_DEFECTS_OF_SKLEARN, ids=lambda make: make.__name__)
def test_a_defect_of_a_map_that_scikit_learn_finds_is_explained(plugin_of, make):
    assert MAP_DEFECTS_OF_SKLEARN[make] in sklearn_failure(map_plugin(plugin_of, make))


def test_an_error_that_many_checks_meet_is_printed_once(plugin_of):
    message = sklearn_failure(map_plugin(plugin_of, Meddling))
    assert message.count("RuntimeError") == 1
    assert "more: RuntimeError" in message


def test_a_map_that_is_declared_unbiased_must_be(plugin_of):
    assert not failures(map_plugin(plugin_of, Shrunken))
    found = failures(map_plugin(plugin_of, Shrunken, unbiased=True))
    assert list(found) == ["check_unbiased"]
    assert "where the kernel is" in found["check_unbiased"]
    assert not failures(map_plugin(plugin_of, Fourier, unbiased=True))
    found = failures(map_plugin(plugin_of, Fourier, unbiased=True, kernel=None))
    assert "needs a kernel" in found["check_unbiased"]


def test_a_map_that_needs_y_must_say_so(plugin_of):
    # without y it cannot even be fitted, so every check meets the defect
    found = failures(map_plugin(plugin_of, Demanding))
    assert "supervised=True" in found["check_learns_nothing_from_y"]
    assert not failures(map_plugin(plugin_of, Demanding, supervised=True))


def test_a_declared_use_of_y_is_allowed(plugin_of):
    assert not failures(map_plugin(plugin_of, Nosy, supervised=True))


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        ({"gama": (1.0,)}, "did you mean 'gamma'"),
        ({"gamma": ()}, "at least one value"),
        ({"gamma": "auto"}, "at least one value"),
        ({"gamma": (1.0, Ref("no-such-kernel"))}, "cannot be built"),
        ({"gamma": (Ref("my-map", {"gamma": Tune((1.0, Ref("no-such-map")))}),)}, "no-such-map"),
    ],
)
def test_a_wrong_grid_is_caught(plugin_of, grid, words):
    found = failures(map_plugin(plugin_of, Fourier, grid=grid))
    assert list(found) == ["check_grid"]
    assert words in found["check_grid"]


@pytest.mark.parametrize(
    "metrics", [lambda fitted, X, y: {"a=b": 1.0}, lambda fitted, X, y: {"a": "much"}]
)
def test_wrong_metrics_are_caught(plugin_of, metrics):
    assert list(failures(map_plugin(plugin_of, Fourier, metrics=metrics))) == ["check_metrics"]


def test_what_is_only_missing_is_a_warning(plugin_of):
    class Bare(BaseEstimator):
        """No names, no set_output."""

        def fit(self, X, y=None):
            validate_data(self, X)
            return self

        def transform(self, X):
            check_is_fitted(self)
            return validate_data(self, X, reset=False, dtype=np.float64) / 2

    checked = components(map_plugin(plugin_of, Bare, grid={}, kernel=None))[1]
    (check,) = (each for each in checks_of(checked) if each.__name__ == "check_set_output")
    with pytest.warns(ConformanceWarning, match="my-map"):
        check(checked)


@pytest.mark.parametrize("requires", ["nonnegative", "unit_ball"])
def test_inputs_satisfy_what_the_map_requires(plugin_of, requires):
    class Strict(Fourier):
        def fit(self, X, y=None):
            self._look(X)
            return super().fit(X, y)

        def transform(self, X):
            self._look(X)
            return super().transform(X)

        def _look(self, X):
            X = np.asarray(X.toarray() if hasattr(X, "tocsr") else X, dtype=float)
            if requires == "nonnegative" and X.min() < 0:
                raise RuntimeError("negative input")
            if requires == "unit_ball" and (X**2).sum(axis=1).max() > 1:
                raise RuntimeError("outside of the unit ball")

    found = failures(map_plugin(plugin_of, Strict, requires=requires))
    assert not {name for name, message in found.items() if "RuntimeError" in message}


def test_scikit_learns_own_checks_run_and_name_what_failed(plugin_of):
    class Greedy(Fourier):
        def fit(self, X, y=None):
            self.n_components_ = len(self.get_params())
            self.gamma = float(self.gamma) + 1  # fit must not change a parameter
            return super().fit(X, y)

    plugin = map_plugin(plugin_of, Greedy, kernel=None)
    outcomes = {each.check: each for each in run(components(plugin))}
    assert outcomes["check_sklearn"].status == "failed"
    assert "check_dont_overwrite_attributes" in outcomes["check_sklearn"].message or (
        "check_dict_unchanged" in outcomes["check_sklearn"].message
        or "check_estimators_overwrite_params" in outcomes["check_sklearn"].message
    )
