"""A model leaves the house: its folder needs numpy, scipy and scikit-learn alone."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import venv

import numpy as np
import pandas
import pytest

from kbench import Cell, Dataset, ExportError, Protocol, Ref
from kbench.registry.callables import resolve
from kbench.registry.installed import list_plugins
from kbench.registry.registry import build
from kbench_tables.export import bundle_code, model_folder
from kbench_tables.export import load_model as opening
from kbench_tables.export.fit import refit
from kbench_tables.export.load_model import open_model
from kbench_tables.export.model_folder import write

pytestmark = pytest.mark.usefixtures("forked_sandboxes")

FEW = Protocol(
    inner_folds=2, search_method="random", n_candidates=2, missing="impute_with_indicators"
)
OWNERS = {"kbench_baselines": "kbench-core", "kbench_learners": "kbench-core"}


def table(n=120):
    rng = np.random.default_rng(0)
    street = rng.integers(0, 30, n)
    days = pandas.Timestamp("2021-01-01") + pandas.to_timedelta(rng.integers(0, 900, n), "D")
    frame = pandas.DataFrame(
        {
            "street": [f"S{k}" for k in street],
            "joined": days.strftime("%d.%m.%Y"),
            "wage": (1000 * rng.normal(size=n)).round(2),
            "plan": rng.choice(["A", "B", "C"], n),
        }
    )
    score = (street % 3 == 0) + rng.normal(size=n) / 3
    frame["churn"] = np.where(score > 0.5, "yes", "no")
    frame["price"] = (10 * score + frame["wage"] / 1000).round(3)
    frame.loc[::9, "wage"] = np.nan
    frame.loc[::11, "joined"] = None
    return frame


@pytest.fixture(scope="module")
def registry():
    return build(list_plugins())


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("customers")
    file = folder / "customers.csv"
    table().to_csv(file, sep=";", decimal=",", index=False, encoding="utf-8-sig")
    return folder


def exported(place, registry, target, feature_map, learner, name):
    other = {"churn": "price", "price": "churn"}[target]
    params = {
        "path": str(place / "customers.csv"),
        "target": target,
        "drop": (other,),
        "delimiter": ";",
        "decimal": ",",
        "date_formats": ("joined=%d.%m.%Y|year",),
        "target_encode": ("street",),
    }
    data = resolve(registry.get("dataset", "csv").load)(**params)
    cell = Cell(Ref("csv", params), Ref(feature_map), Ref(learner), FEW)
    fitted = refit(cell, data, registry)
    facts = write(place / name, cell, "key", fitted, None, OWNERS)
    return fitted, facts


@pytest.fixture(scope="module")
def classes(place, registry):
    return exported(place, registry, "churn", "rff", "linear-svm", "classes")


@pytest.fixture(scope="module")
def numbers(place, registry):
    return exported(place, registry, "price", "identity", "bayesian-linear", "numbers")


# what a user may have: nothing but numpy, scipy and scikit-learn
USER = """
import json, sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0].startswith(("kbench", "pandas", "mlflow", "lazy_loader", "pluggy",
                                              "pydantic", "pyarrow", "typer")) and (
            not name.startswith("kbench_model_")
        ):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Blocker())
sys.path[:0] = sys.argv[1:3]
import importlib
rows = json.load(sys.stdin)
answers = []
for package in sys.argv[3:]:
    model = importlib.import_module(package).load()
    answer = {"predict": model.predict(rows).tolist(), "check": list(map(str, model.check(rows)))}
    if model.classes:
        answer["proba"] = model.predict_proba(rows).tolist()
    else:
        answer["interval"] = [end.tolist() for end in model.predict_interval(rows, 0.8)]
    answers.append(answer)
assert not [name for name in sys.modules if name in ("kbench", "pandas")]
print(json.dumps(answers))
"""


@pytest.mark.slow
def test_two_models_live_side_by_side_without_kbench(place, classes, numbers):
    fitted, facts = classes
    others, other_facts = numbers
    rows = [
        {"street": "S3", "joined": "03.04.2021", "wage": "1000,5", "plan": "A", "more": 1},
        {"street": "S99", "joined": None, "wage": -1e6, "plan": "Z"},
    ]
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-B",
            "-c",
            USER,
            str(place / "classes"),
            str(place / "numbers"),
            facts["package"],
            other_facts["package"],
        ],
        input=json.dumps(rows),
        capture_output=True,
        text=True,
        check=True,
    )
    first, second = json.loads(done.stdout)
    frame = pandas.DataFrame(rows)
    assert first["predict"] == fitted.pipeline.predict(frame).tolist()
    np.testing.assert_allclose(first["proba"], fitted.pipeline.predict_proba(frame))
    np.testing.assert_allclose(second["predict"], others.pipeline.predict(frame))
    low, high = np.array(second["interval"])
    assert (low < second["predict"]).all()
    assert (high > second["predict"]).all()
    assert [text.partition(":")[0] for text in first["check"]] == [
        "column 'street'",
        "column 'wage'",
        "column 'plan'",
    ]
    assert (
        "1 row has a category that the training data lacks, the first is row 2: 'S99'"
        in (first["check"][0])
    )


@pytest.mark.slow
def test_a_folder_says_what_it_is(place, classes, numbers):
    for name, (_, facts) in {"classes": classes, "numbers": numbers}.items():
        folder = place / name
        names = {path.name for path in folder.iterdir()}
        assert names == {
            *("README.md", "model.json", "predict.py", "requirements.txt", facts["package"])
        }
        lines = (folder / "requirements.txt").read_text().splitlines()
        assert [line.partition("==")[0] for line in lines] == ["numpy", "scipy", "scikit-learn"]
        assert (folder / facts["package"] / "LICENSES" / "kbench-core" / "LICENSE").is_file()
        stored = json.loads((folder / "model.json").read_text())
        assert set(stored["latency_s"]) == {"1", "1000"}
        assert all(0 < seconds < 10 for seconds in stored["latency_s"].values())
        assert not list(folder.rglob("__pycache__"))
        for path in folder.rglob("*.npz"):
            with np.load(path, allow_pickle=False) as file:
                assert all(not file[each].dtype.hasobject for each in file.files)
        card = (folder / "README.md").read_text()
        assert "Loading runs the code" in card
        assert "per row one row at a time" in card
    assert (
        "they are sigmoid functions of its decision values"
        in (place / "classes" / "README.md").read_text()
    )
    assert (
        "cross-conformal (Vovk 2015) over five folds"
        in (place / "numbers" / "README.md").read_text()
    )


def test_no_row_of_the_data_leaves_with_a_linear_model(place, numbers):
    fitted, facts = numbers
    with np.load(place / "numbers" / facts["package"] / "arrays.npz") as file:
        arrays = [file[name] for name in file.files]
    rows = np.nan_to_num(np.asarray(fitted.dataset.X, dtype=float))
    for array in arrays:
        if array.ndim == 2 and array.shape[1] == rows.shape[1]:
            assert not (array[:, None] == rows[None]).all(axis=2).any()


@pytest.mark.slow
def test_intervals_cover_new_rows(numbers):
    fitted, _ = numbers
    found = fitted.intervals
    assert 0.8 < found.coverage <= 1.0
    assert found.n_rows == 120
    assert found.is_relative
    with pytest.raises(ValueError, match="need at least 999 held-out rows, but there were 120"):
        found.around(np.zeros(2), np.ones(2), 0.999)


@pytest.mark.slow
def test_the_script_predicts_a_file(place, classes, tmp_path):
    fitted, _ = classes
    script = place / "classes" / "predict.py"

    def predict(*words):
        command = [sys.executable, "-B", str(script), *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)

    done = predict(place / "customers.csv", "-o", "out.csv", "--id", "plan")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "out.csv: 120 rows\n"
    assert "column 'churn' is the target and is not used" in done.stderr
    found = pandas.read_csv(tmp_path / "out.csv")
    assert found.columns.tolist() == ["plan", "prediction", "probability_no", "probability_yes"]
    assert found["prediction"].tolist() == fitted.pipeline.predict(fitted.table).tolist()
    again = predict(place / "customers.csv", "-o", "out.csv")
    assert (again.returncode, again.stdout) == (2, "")
    assert "it exists" in again.stderr


# -- damaged and hostile folders


@pytest.fixture
def copy(place, classes, tmp_path):
    return shutil.copytree(place / "classes", tmp_path / "copy")


def rewrite(folder, change):
    file = folder / "model.json"
    facts = json.loads(file.read_text())
    change(facts)
    file.write_text(json.dumps(facts))


def test_a_folder_is_loaded_as_it_was_compared(copy, classes):
    fitted, facts = classes
    digest = hashlib.sha256((copy / "model.json").read_bytes()).hexdigest()
    planted = copy / facts["package"] / "__pycache__"
    planted.mkdir()
    version = f"cpython-{sys.version_info.major}{sys.version_info.minor}"
    (planted / f"__init__.{version}.pyc").write_bytes(b"not code")
    model = open_model(copy, digest)
    np.testing.assert_array_equal(
        model.predict(fitted.table), fitted.pipeline.predict(fitted.table)
    )
    assert model.columns == ("street", "joined", "wage", "plan")
    with pytest.raises(ExportError, match="its SHA-256 is not 'abc'"):
        open_model(copy, "abc")


@pytest.mark.parametrize("name", ["objects.json", "arrays.npz", "__init__.py", "kbench/errors.py"])
def test_a_file_that_was_changed_is_refused(copy, classes, name):
    _, facts = classes
    file = copy / facts["package"] / name
    file.write_bytes(file.read_bytes() + b" ")
    with pytest.raises(ExportError, match=f"{name} is not the exported file"):
        open_model(copy)


def test_a_file_that_was_added_or_removed_is_refused(copy, classes):
    _, facts = classes
    planted = copy / facts["package"] / "numpy.py"
    planted.write_text("raise SystemExit")
    with pytest.raises(ExportError, match=r"numpy\.py is not one of the exported files"):
        open_model(copy)
    planted.unlink()
    (copy / facts["package"] / "arrays.npz").unlink()
    with pytest.raises(ExportError, match=r"arrays\.npz is missing"):
        open_model(copy)


@pytest.mark.parametrize(
    "name", ["../outside.txt", "/etc/passwd", "a/../../outside.txt", "..\\outside.txt", ""]
)
def test_names_that_lead_out_of_the_folder_are_refused(copy, name):
    (copy.parent / "outside.txt").write_text("secret")
    rewrite(copy, lambda facts: facts["files"].update({name: "0" * 64}))
    with pytest.raises(ExportError, match="which is not in the folder"):
        open_model(copy)


def test_links_that_lead_out_of_the_folder_are_refused(copy):
    (copy.parent / "outside.txt").write_text("secret")
    (copy / "link.txt").symlink_to(copy.parent / "outside.txt")
    rewrite(copy, lambda facts: facts["files"].update({"link.txt": "0" * 64}))
    with pytest.raises(ExportError, match="which is not in the folder"):
        open_model(copy)


@pytest.mark.parametrize("package", ["os", "kbench", "../evil", 3, "kbench_model_zzzzzzzzzzzz"])
def test_a_package_of_another_name_is_refused(copy, package):
    rewrite(copy, lambda facts: facts.update(package=package))
    with pytest.raises(ExportError, match="is not the name of a model's package"):
        open_model(copy)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"files": 3}', "\x00"])
def test_what_is_not_a_model_is_refused(tmp_path, content):
    with pytest.raises(ExportError, match="is not a model folder"):
        open_model(tmp_path)
    (tmp_path / "model.json").write_text(content)
    with pytest.raises(ExportError, match="does not list the files of a model"):
        open_model(tmp_path)


def test_a_model_of_another_version_is_refused_in_one_message(tmp_path):
    (tmp_path / "model.json").write_text('{"package": "kbench_model_0123456789ab", "files": {}}')
    with pytest.raises(ExportError, match="another version of kbench, in a format"):
        open_model(tmp_path)


# -- what an export checks


def test_a_model_that_needs_more_is_refused(place, registry, monkeypatch, tmp_path):
    monkeypatch.setattr(opening, "_list_modules", lambda requirements: {"numpy", "scipy"})
    with pytest.raises(ExportError, match=r"cannot be used with numpy==.* alone"):
        exported(place, registry, "price", "identity", "ridge", "lacking")
    assert not (place / "lacking").exists()


@pytest.mark.slow
def test_a_model_that_predicts_otherwise_elsewhere_is_refused(place, registry, monkeypatch):
    true = model_folder.try_out

    def tampered(*arguments):
        answers, latency = true(*arguments)
        return {name: values[::-1] for name, values in answers.items()}, latency

    monkeypatch.setattr(model_folder, "try_out", tampered)
    with pytest.raises(ExportError, match="predictions change"):
        exported(place, registry, "price", "identity", "ridge", "odd")
    assert not (place / "odd").exists()


def test_imports_become_relative():
    source = b"""
import json, kbench.kernels as kk
import other_maps.parts
from kbench import hookimpl
from other_maps.parts import (
    One,
)
from . import near
def f():
    from kbench.parameters import check_choice
    import numpy.linalg
"""
    module = bundle_code._Module("other_maps.sub.here", False, source)
    assert (
        module.rewrite({"kbench", "other_maps"}).decode()
        == """
import json; from ...kbench import kernels as kk
from ... import other_maps; from ...other_maps import parts as _
from ...kbench import hookimpl
from ...other_maps.parts import One
from . import near
def f():
    from ...kbench.parameters import check_choice
    import numpy.linalg
"""
    )
    outside = dict(module.imports_outside({"kbench", "other_maps"}))
    assert outside == {"numpy": False}


PLUGIN = '''
import numpy as np
import kbench.kernels
from sklearn.base import BaseEstimator, TransformerMixin

from kbench import FeatureMap, hookimpl


class Squares(TransformerMixin, BaseEstimator):
    """Squares of the inputs."""

    def __init__(self, power=2.0, random_state=None):
        self.power, self.random_state = power, random_state

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return np.abs(np.asarray(X)) ** self.power


@hookimpl
def kbench_feature_maps():
    return [FeatureMap("squares", make="third_party_squares:Squares")]
'''


@pytest.mark.slow
def test_a_map_of_a_third_party_leaves_too(place, install_plugin, tmp_path):
    install_plugin("third_party_squares", PLUGIN)
    registry = build(list_plugins())
    owners = {**OWNERS, "third_party_squares": "third-party-squares"}
    params = {"path": str(place / "customers.csv"), "target": "price"}
    params |= {"delimiter": ";", "decimal": ",", "drop": ("churn", "street", "joined")}
    data = resolve(registry.get("dataset", "csv").load)(**params)
    cell = Cell(Ref("csv", params), Ref("squares"), Ref("ridge"), FEW)
    fitted = refit(cell, data, registry)
    facts = write(tmp_path / "model", cell, "key", fitted, None, owners)
    copied = (tmp_path / "model" / facts["package"] / "third_party_squares.py").read_text()
    assert "from .kbench import FeatureMap, hookimpl" in copied
    model = open_model(tmp_path / "model")
    assert type(model.pipeline[2]).__module__ == f"{facts['package']}.third_party_squares"
    np.testing.assert_allclose(model.predict(fitted.table), fitted.pipeline.predict(fitted.table))


def test_a_second_module_of_an_installed_plugin_is_bundled(tmp_path, monkeypatch):
    site = tmp_path / "site-packages"
    (site / "lab-1.0.dist-info").mkdir(parents=True)
    (site / "lab-1.0.dist-info" / "METADATA").write_text("Name: lab\nVersion: 1.0\n")
    (site / "lab-1.0.dist-info" / "top_level.txt").write_text("lab_plugin\nlab_tools\n")
    (site / "lab_plugin.py").write_text("import lab_tools, lab_other\n")
    for name in ("lab_tools", "lab_other"):
        (site / f"{name}.py").write_text("")
    monkeypatch.syspath_prepend(str(site))
    code = bundle_code.collect_code(["lab_plugin"], ["lab_plugin"])
    assert {"lab_plugin.py", "lab_tools.py"} <= code.files.keys()
    assert code.needed == ("lab_other",)


@pytest.mark.slow
def test_every_built_in_method_can_be_saved(registry, tmp_path):
    iris = resolve(registry.get("dataset", "iris").load)()
    rows = np.arange(0, 100, 2)  # two classes: some learners are binary
    data = {
        "classification": Dataset("iris-2", iris.X[rows], np.asarray(iris.y)[rows]),
        "regression": Dataset("petals", iris.X[rows, :3], iris.X[rows, 3]),
    }
    one = Protocol(inner_folds=2, search_method="random", n_candidates=1, missing="impute")
    owners = {plugin.module.partition(".")[0]: plugin.distribution for plugin in registry.plugins}
    methods = [(name, "ridge", "classification") for name in registry.all("feature map")]
    methods += [
        ("identity", name, task)
        for name, record in registry.all("learner").items()
        for task in record.tasks
    ]
    for number, (map_, learner, task) in enumerate(methods):
        cell = Cell(Ref("iris"), Ref(map_), Ref(learner), one)
        fitted = refit(cell, data[task], registry)
        write(tmp_path / str(number), cell, "key", fitted, None, owners)


@pytest.mark.slow
def test_a_fresh_environment_needs_the_requirements_alone(place, classes, tmp_path):
    fitted, _ = classes
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    listed = place / "classes" / "requirements.txt"
    done = subprocess.run(
        [python, "-m", "pip", "install", "-q", "-r", listed], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("no package index can be reached")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [python, "-B", place / "classes" / "predict.py", place / "customers.csv", "-o"]
    subprocess.run([*command, tmp_path / "out.csv"], check=True, env=clean)
    found = pandas.read_csv(tmp_path / "out.csv")
    assert found["prediction"].tolist() == fitted.pipeline.predict(fitted.table).tolist()
    listing = subprocess.run(
        [python, "-m", "pip", "list", "--format=json"], capture_output=True, text=True, check=True
    )
    names = {each["name"].lower() for each in json.loads(listing.stdout)}
    assert not names & {"pandas", "mlflow", "kbench-core"}
    assert re.fullmatch(r"kbench_model_[0-9a-f]{12}", classes[1]["package"])
