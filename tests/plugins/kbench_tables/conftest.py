"""What makes the many exports of these tests quick."""

import functools

import pytest


@pytest.fixture(autouse=True, scope="session")
def quick_exports():
    """Parse each module once for all exports, and time a model for five predictions only."""
    from kbench_tables.export import bundle_code, closure, load_model

    find = functools.cache(lambda source, found=closure.find_imports: tuple(found(source)))
    with pytest.MonkeyPatch.context() as patch:
        for module in (bundle_code, closure):
            patch.setattr(module, "find_imports", find)
        patch.setattr(load_model, "_TRIAL", load_model._TRIAL.replace("< 0.5", "< 0"))
        yield


@pytest.fixture
def without_code(monkeypatch):
    """Write a model as a pickle: without its code, and without a trial in a new process."""
    import joblib

    from kbench_tables.export import model_folder

    def write_package(folder, package, cell, fitted, owners):
        (folder / package).mkdir()
        joblib.dump(fitted.pipeline, folder / package / "model.joblib")
        return {
            "package": package,
            "requirements": [],
            "optional": [],
            "licences": {},
            "versions": {"python": "3"},
            "columns_named": "encode" in fitted.pipeline.named_steps,
            "has_probabilities": hasattr(fitted.pipeline, "predict_proba"),
        }

    seconds = {"1": 1.0, "1000": 1.0}
    monkeypatch.setattr(model_folder, "write_package", write_package)
    monkeypatch.setattr(model_folder, "_compare_in_process", lambda *_: seconds)
