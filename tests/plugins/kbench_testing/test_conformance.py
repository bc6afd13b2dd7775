"""The conformance kit over all built-in plugins; a few of them in the default run."""

import pytest

from kbench_testing import checks_of, components

QUICK = ("feature map rff", "feature map nystroem", "learner linear-svm", "kernel gaussian")
QUICK += ("dataset iris", "plugin ", "suite uci")

FILES = ("csv", "parquet", "arff", "svmlight")
PARAMS = {
    "sum": {"left": "linear", "right": "gaussian"},
    "product": {"left": "linear", "right": "gaussian"},
    "scaled": {"kernel": "gaussian", "weight": 2.0},
    "normalized": {"kernel": "polynomial"},
    **{each: {"path": each, "target": "y"} for each in FILES},
    "svmlight": {"path": "svmlight"},
    # quick here, and with all rounds of the other learned maps
    "rff-learned": {"rounds": 1},
    "nystroem-learned": {"rounds": 1},
}


@pytest.fixture(scope="module")
def data_folder(tmp_path_factory):
    """Write the files that PARAMS name."""
    import numpy as np
    import pandas as pd
    from sklearn.datasets import dump_svmlight_file

    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((12, 2)), columns=["a", "b"]).assign(y=["no", "yes"] * 6)
    frame.to_csv(folder / "csv", index=False)
    dump_svmlight_file(frame[["a", "b"]], [0, 1] * 6, str(folder / "svmlight"))
    header = "@relation r\n@attribute a real\n@attribute b real\n@attribute y {no,yes}\n@data\n"
    (folder / "arff").write_text(header + frame.to_csv(index=False, header=False))
    frame.to_parquet(folder / "parquet")
    return folder


def cases():
    for component in components("kbench-core", PARAMS):
        for check in checks_of(component):
            quick = str(component).startswith(QUICK) and check.__name__ != "check_sklearn"
            marks = [] if quick else [pytest.mark.slow]
            yield pytest.param(component, check, marks=marks, id=f"{component}-{check.__name__}")


@pytest.mark.parametrize(("component", "check"), list(cases()))
def test_built_ins_conform(component, check, request, monkeypatch):
    if component.name == "lightgbm":
        pytest.importorskip("lightgbm", reason="needs the extra 'reference'")
    if component.name in FILES:
        monkeypatch.chdir(request.getfixturevalue("data_folder"))
    check(component)


FITTED = {
    "learner": ("predict", "predict_proba", "decision_function"),
    "feature map": ("transform",),
}


def estimators():
    """Return the built-in learners and feature maps, once for each task."""
    return [each for each in components("kbench-core", PARAMS) if each.kind in FITTED]


@pytest.mark.parametrize("component", estimators(), ids=str)
def test_built_ins_that_are_not_fitted_say_so(component):
    from sklearn.exceptions import NotFittedError
    from sklearn.utils import get_tags

    if component.name == "lightgbm":
        pytest.importorskip("lightgbm", reason="needs the extra 'reference'")
    estimator = component.build()
    if not get_tags(estimator).requires_fit:
        pytest.skip("is not fitted: AdditiveChi2Sampler of scikit-learn")
    for method in FITTED[component.kind]:
        if hasattr(estimator, method):
            with pytest.raises(NotFittedError):
                getattr(estimator, method)([[0.0, 1.0], [1.0, 0.0]])
