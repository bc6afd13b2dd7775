"""A cell as a model to use: it takes the user's table, and answers with the user's labels."""

import json
from dataclasses import replace

import numpy as np
import pandas
import pytest

from kbench import Cell, Dataset, DatasetError, ExportError, PluginError, Protocol, Ref
from kbench.machine import cluster_id, machine_id
from kbench.planning.planned import PlannedCell, task_key
from kbench.records import DatasetFacts, Manifest, Result, Split
from kbench.registry.installed import how_to_get, list_plugins
from kbench.registry.registry import build
from kbench.results.rows import Row
from kbench.storage.journal import Journal, state_folder
from kbench_tables.export.decode_table import fit_encoder
from kbench_tables.export.encoder import TableEncoder
from kbench_tables.export.fit import refit, to_labels
from kbench_tables.export.model_folder import _code, card, recall_results, write
from kbench_tables.export.pipeline import NamedClasses
from tests.support.command_here import command

pytestmark = pytest.mark.usefixtures("forked_sandboxes", "without_code")


@pytest.fixture(scope="module")
def registry():
    return build(list_plugins())


def table(n=60):
    rng = np.random.default_rng(0)
    odd = np.arange(n) % 2
    frame = pandas.DataFrame(
        {
            "age": rng.normal(40 + 20 * odd, 5).round(1),
            "city": np.array(["Oslo", "Rome"])[odd],
            "plan": rng.integers(1, 4, n),
            "member": rng.random(n) < 0.5,
            "churn": np.array(["no", "yes"])[odd],
        }
    )
    frame.loc[::13, "age"] = np.nan
    frame.loc[::17, "city"] = None
    return frame


@pytest.fixture
def customers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = table()
    frame.to_csv("customers.csv", index=False)
    return frame


METHOD = ["--feature-map", "identity", "--learner", "ridge"]


def loaded(folder):
    import joblib

    return joblib.load(next(folder.glob("*/model.joblib")))


def test_the_model_takes_the_table_and_gives_the_labels(customers, tmp_path, capfd):
    words = ["customers.csv", "--target", "churn", "--categorical", "plan", *METHOD]
    code, out, err = command("export", *words, "-o", "model", capfd=capfd)
    assert code == 0, err
    assert "predicts the same on all 60 rows" in out
    assert "The folder holds code, which runs when the model is loaded" in out
    model = loaded(tmp_path / "model")
    # as a user has it: read anew, another order, a column too many, an unknown city
    new = pandas.read_csv("customers.csv").drop(columns="churn")[["member", "plan", "city", "age"]]
    new["extra"] = "x"
    assert np.mean(model.predict(new) == customers["churn"]) > 0.9
    new.loc[0, "city"] = "Bergen"
    assert set(model.predict(new)) == {"no", "yes"}
    assert model.classes_.tolist() == ["no", "yes"]
    with pytest.raises(ValueError, match="no column 'age'"):
        model.predict(new.drop(columns="age"))
    card = (tmp_path / "model" / "README.md").read_text()
    assert "`plan`: one of 1, 2, 3" in card
    assert "scores: not evaluated" in card


def test_a_model_encodes_dates_and_many_categories_as_its_search_did(tmp_path, monkeypatch, capfd):
    from sklearn.base import clone

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    n = 160
    street = rng.integers(0, 40, n)
    days = pandas.Timestamp("2021-01-01") + pandas.to_timedelta(rng.integers(0, 900, n), "D")
    score = (street % 3 == 0) + rng.normal(size=n) / 3
    frame = pandas.DataFrame(
        {
            "id": np.arange(n),
            "street": [f"S{k}" for k in street],
            "joined": days.strftime("%d.%m.%Y"),
            "wage": rng.normal(size=n).round(2),
            "churn": np.where(score > 0.5, "yes", "no"),
        }
    )
    frame.loc[::9, "wage"] = np.nan
    frame.loc[::11, "joined"] = None
    frame.to_csv("eu.csv", sep=";", decimal=",", index=False, encoding="utf-8-sig")
    code, out, err = command(
        *["export", "eu.csv", "--target", " churn ", *METHOD, "-o", "model"], capfd=capfd
    )
    assert code == 0, err
    assert "left out: 'id', row numbers" in err
    assert "predicts the same on all 160 rows" in out
    model = loaded(tmp_path / "model")
    answers = model.predict(frame)
    assert (answers == frame["churn"]).mean() > 0.75
    # dates of a type for dates are the same; names of columns may have blanks
    typed = frame.assign(joined=pandas.to_datetime(frame["joined"], format="%d.%m.%Y"))
    np.testing.assert_array_equal(model.predict(typed.rename(columns=lambda n: f" {n} ")), answers)
    assert set(model.predict(frame.assign(street="elsewhere"))) <= {"no", "yes"}
    with pytest.raises(ValueError, match=r"'joined' must be dates written as %d\.%m\.%Y: 'soon'"):
        model.predict(frame.assign(joined="soon"))
    card = (tmp_path / "model" / "README.md").read_text()
    assert "`joined`: date in the format %d.%m.%Y" in card
    # the encoding is fitted by the pipeline too, for other rows
    again = clone(model).fit(frame, frame["churn"])
    np.testing.assert_array_equal(again.predict(frame), answers)


def test_labels_that_are_numbers_stay_numbers(customers, tmp_path, capfd):
    customers.assign(churn=(customers["churn"] == "yes") * 2).to_csv("numbers.csv", index=False)
    words = ["numbers.csv", "--target", "churn", *METHOD, "-o", "out/model"]
    code, _, err = command("export", *words, capfd=capfd)
    assert code == 0, err
    model = loaded(tmp_path / "out" / "model")
    assert set(model.predict(customers).tolist()) == {0, 2}


def test_rows_without_a_label_are_no_trouble(customers, tmp_path, capfd):
    customers.loc[5, "churn"] = None
    customers.to_csv("customers.csv", index=False)
    words = ["customers.csv", "--target", "churn", *METHOD]
    code, out, err = command("export", *words, "-o", "model", capfd=capfd)
    assert code == 0, err
    assert "on all 59 rows" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["uci"], "-o FOLDER"),
        (["uci", "-o", "there"], "it exists"),
        (["ucy", "-o", "m"], "did you mean 'uci'"),
        (
            ["uci", "nystroem + rigde on iris", "-o", "m"],
            "did you mean 'nystroem + ridge (ovr) on iris'",
        ),
        (["uci", "--dataset", "iris", "-o", "m"], "28 cells match: name one"),
        (["uci", "--target", "y", "-o", "m"], "--target does not apply to a suite"),
        (["customers.csv", "-o", "m", *METHOD], "--target is missing: name the column"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(customers, tmp_path, arguments, words, capfd):
    (tmp_path / "there").mkdir()
    before = sorted(tmp_path.iterdir())
    code, out, err = command("export", *arguments, capfd=capfd)
    assert (code, out) == (2, "")
    assert words in err
    assert sorted(tmp_path.iterdir()) == before


def test_extras_are_found_by_package():
    assert how_to_get("numba") == ": pip install 'kbench-core[numba]'"
    assert how_to_get("requests") == ""
    assert how_to_get("numba", plugin="not-installed") == ""


IRIS = Ref("iris")
FACTS = DatasetFacts("c" * 64)
FEW = Protocol(inner_folds=2, search_method="random", n_candidates=2, missing="impute")


@pytest.fixture(scope="module")
def iris(registry):
    from kbench.registry.callables import resolve

    return resolve(registry.get("dataset", "iris").load)()


@pytest.mark.slow
def test_a_cell_of_a_suite_is_named_by_its_name_or_key(tmp_path, monkeypatch, store_uri, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.toml").write_text(
        'datasets = ["iris"]\nfeature_maps = ["identity"]\nlearners = ["ridge", "dummy-majority"]\n'
        "[protocol]\nn_folds = 2\n"
    )
    code, _, err = command("suite", "tiny.toml", "--store", store_uri, "-q", capfd=capfd)
    assert code == 0, err
    words = ["tiny.toml", "identity + dummy-majority", "-o", "first"]
    code, out, err = command("export", *words, capfd=capfd)
    assert code == 0, err
    facts = json.loads((tmp_path / "first" / "model.json").read_text())
    assert facts["measured"]["n_splits_done"] == 2
    assert facts["classes"] == ["setosa", "versicolor", "virginica"]
    assert "0.3333" in (tmp_path / "first" / "README.md").read_text()
    words = ["tiny.toml", facts["cell_key"][:8], "-o", "second"]
    code, out, _ = command("export", *words, capfd=capfd)
    assert "second: identity + dummy-majority on iris" in out


def finish(planned, place, accuracies):
    """Write a journal of some place in which the first splits of a cell are known."""
    journal, nothing = Journal(state_folder(place) / "journal.jsonl"), Manifest()
    journal.keep_manifest(nothing)
    for index, accuracy in enumerate(accuracies):
        key, metrics = task_key(planned.key, index), {"accuracy": accuracy}
        result = Result(key, planned.key, index, "ok", metrics, manifest=nothing.digest)
        journal.append("result", **result.to_json())


@pytest.mark.parametrize(
    ("here", "there", "expected"),
    [
        ((), (), ([], "")),
        ((0.5,), (), ([0.5], "")),
        ((), (0.25, 0.75), ([0.25, 0.75], "cluster-")),
        ((0.5,), (0.25, 0.75), ([0.25, 0.75], "cluster-")),
        ((0.5, 0.5), (0.25, 0.75), ([0.5, 0.5], "")),
    ],
)
def test_results_of_clusters_are_known_but_not_mixed_with_this_machines(here, there, expected):
    planned = PlannedCell(Cell(IRIS, Ref("identity"), Ref("ridge"), FEW), "k" * 64, FACTS, 2)
    finish(planned, machine_id(), here)
    finish(planned, cluster_id(), there)
    found, where = recall_results(planned)
    assert [result.metrics["accuracy"] for result in found.done] == expected[0]
    assert where == expected[1] + machine_id()
    assert not planned.results


def test_the_card_says_where_it_was_measured(registry, iris, tmp_path):
    cell = Cell(IRIS, Ref("identity"), Ref("ridge"), FEW)
    fitted = refit(cell, iris, registry)
    metrics = {"accuracy": 0.5, "accuracy_sd": 0.1, "fit_time_s": 1.0, "predict_time_s": 1.0}
    row = Row("iris", "identity", "ridge", "ok", 5, 5, metrics)
    for where, told in (("m1", "over 5 splits; "), ("cluster-m1", "over 5 splits, on a cluster; ")):
        folder = tmp_path / where
        write(folder, cell, "key", fitted, replace(row, machine=where), {})
        assert told in (folder / "README.md").read_text()
        assert json.loads((folder / "model.json").read_text())["measured"]["machine"] == where


def test_the_card_says_that_classes_are_balanced(registry, iris, tmp_path):
    for value in (True, False):
        cell = Cell(IRIS, Ref("identity"), Ref("ridge", {"balanced": value}), FEW)
        folder = tmp_path / str(value)
        facts = write(folder, cell, "key", refit(cell, iris, registry), None, {})
        assert 0 < facts["brier_score"] < 0.4  # predicting the frequencies scores 2/3
        words = "decisions favour rare classes (`balanced`); probabilities are at the actual "
        words += "frequencies, with a Brier score (sum over the classes) of "
        words += f"{facts['brier_score']:.4f} on held-out rows\n"
        assert (words in (folder / "README.md").read_text()) == value


@pytest.mark.parametrize("by", ["time_column", "groups", ""])
def test_the_card_names_the_splits_of_the_intervals(houses, tmp_path, registry, by):
    from kbench.registry.callables import resolve

    path = tmp_path / "t.csv"
    houses.assign(part=np.arange(len(houses)) % 20).to_csv(path, index=False)
    given = {"path": str(path), "target": "price"} | ({by: "part"} if by else {})
    data = resolve(registry.get("dataset", "csv").load)(**given)
    if not by:
        rows = np.arange(len(data.y))
        data = replace(
            data, splits=[Split(0, rows[20:], rows[:20]), Split(1, rows[:40], rows[40:50])]
        )
    cell = Cell(Ref("csv", given), Ref("identity"), Ref("ridge"), replace(FEW, cv="official"))
    fitted = refit(cell, data, registry)
    write(tmp_path / "model", cell, "key", fitted, None, {})
    facts = json.loads((tmp_path / "model" / "model.json").read_text())
    shown = card(facts, fitted, "", mlflow=False)
    told = {"time_column": "by time", "groups": "by groups", "": "of the dataset"}[by]
    assert f"over the splits {told}:" in shown
    assert ("% of the last held-out" in shown) == (by == "time_column")


@pytest.mark.slow
def test_an_mlflow_model_has_signature_and_example(registry, iris, tmp_path):
    import mlflow

    cell = Cell(IRIS, Ref("nystroem", {"n_components": 20}), Ref("ridge"), FEW)
    fitted = refit(cell, iris, registry)
    write(tmp_path / "model", cell, "key", fitted, None, {}, mlflow=True)
    folder = str(tmp_path / "model" / "mlflow")
    served = mlflow.pyfunc.load_model(folder)
    assert np.array_equal(served.predict(fitted.table), fitted.pipeline.predict(fitted.table))
    assert served.metadata.signature.inputs.input_names() == list(iris.feature_names)
    assert served.input_example is not None


def test_sparse_inputs_stay_sparse(registry, tmp_path):
    import scipy.sparse

    X = scipy.sparse.random(40, 6, density=0.5, random_state=0, format="csr")
    y = np.arange(40) % 2
    data = Dataset("sparse", X, y, target_names=["ham", "spam"])
    cell = Cell(Ref("sparse"), Ref("identity"), Ref("ridge"), FEW)
    fitted = refit(cell, data, registry)
    assert set(fitted.pipeline.predict(X)) <= {"ham", "spam"}
    assert write(tmp_path / "model", cell, "key", fitted, None, {})["n_rows"] == 40
    assert "sparse matrix with 6 columns" in (tmp_path / "model" / "README.md").read_text()


def test_dropped_rows_are_not_predicted(registry, tmp_path):
    X = np.arange(60.0).reshape(30, 2)
    X[3, 1] = np.nan
    data = Dataset("holes", X, np.arange(30) % 2)
    drop = Protocol(inner_folds=2, missing="drop_rows")
    cell = Cell(Ref("holes"), Ref("identity"), Ref("ridge"), drop)
    fitted = refit(cell, data, registry)
    assert len(fitted.dataset.y) == 29
    assert write(tmp_path / "model", cell, "key", fitted, None, {})["n_rows"] == 29


def test_gram_matrices_are_refused(registry):
    data = Dataset("gram", np.eye(4), np.array([0, 1, 0, 1]), pairwise=True)
    cell = Cell(Ref("gram"), Ref("identity"), Ref("ridge"), FEW)
    with pytest.raises(DatasetError, match="Gram matrix"):
        refit(cell, data, registry)


def test_indicators_of_other_datasets_are_columns_of_categories(registry):
    names = ["a=x", "a=y", "n", "a=1", "b"]
    kinds = ["onehot", "onehot", "numeric", "onehot", "onehot"]
    X, y = np.zeros((2, 5)), np.array([0, 1])
    data = Dataset("odd", X, y, feature_names=names, feature_kinds=kinds)
    encoder, is_own = fit_encoder(Cell(Ref("odd"), Ref("m"), Ref("l"), FEW), data, registry)
    assert not is_own
    assert encoder.columns == [("a", ["x", "y"]), ("n", None), ("a", ["1"]), ("b", None)]


def test_the_encoder_is_that_of_the_source(tmp_path, registry):
    from kbench.registry.callables import resolve

    frame = table()
    frame.to_csv(tmp_path / "c.csv", index=False)
    given = {"path": str(tmp_path / "c.csv"), "target": "churn", "categorical": ("plan",)}
    data = resolve(registry.get("dataset", "csv").load)(**given)
    encoder = TableEncoder(**vars(data.encoder))
    np.testing.assert_array_equal(encoder.transform(pandas.read_csv(tmp_path / "c.csv")), data.X)
    # numbers that a missing value has turned into floats are the same categories
    floats = frame.assign(plan=frame["plan"].astype(float))
    np.testing.assert_array_equal(encoder.transform(floats), data.X)
    # the data cache has no encoder: the file is read again
    cell = Cell(Ref("csv", given), Ref("identity"), Ref("ridge"), FEW)
    again, is_own = fit_encoder(cell, replace(data, encoder=None), registry)
    assert is_own
    assert again.columns == encoder.columns
    (tmp_path / "c.csv").write_text(frame[::-1].to_csv(index=False))
    with pytest.raises(ExportError, match="no longer has the inputs"):
        fit_encoder(cell, replace(data, encoder=None), registry)


@pytest.mark.parametrize("categories", [["False", "True"], ["0", "1"]])
@pytest.mark.parametrize(
    "given", [[True, False], [1, 0], [1.0, 0.0], ["1", "0"], ["True", "False"], ["true", "false"]]
)
def test_truth_values_may_be_written_as_numbers(categories, given):
    encoder = TableEncoder([("member", categories)])
    found = encoder.transform(pandas.DataFrame({"member": given}))
    assert found.tolist() == [[0, 1], [1, 0]]
    # numbers beside others are no truth values
    more = TableEncoder([("n", ["1", "2"])]).transform(pandas.DataFrame({"n": [False, 2]}))
    assert more.tolist() == [[0, 0], [0, 1]]


def test_arrays_are_taken_where_all_columns_are_numbers():
    encoder = TableEncoder([("a", None), ("b", None)])
    assert encoder.transform([[1, 2]]).tolist() == [[1, 2]]
    with pytest.raises(ValueError, match="must have shape \\(n_samples, 2\\)"):
        encoder.transform([[1, 2, 3]])
    with pytest.raises(ValueError, match="X must be a data frame with the columns a, c"):
        TableEncoder([("a", None), ("c", ["x"])]).transform([[1, 2]])
    with pytest.raises(ValueError, match="column 'a' must be numbers"):
        encoder.transform(pandas.DataFrame({"a": ["one"], "b": [2]}))


def test_a_fitted_pipeline_can_be_fitted_again(registry, iris):
    from sklearn.base import clone

    cell = Cell(IRIS, Ref("identity"), Ref("ridge"), FEW)
    fitted = refit(cell, iris, registry)
    names = fitted.pipeline.predict(fitted.table)
    again = clone(fitted.pipeline).fit(
        fitted.table, np.asarray(iris.target_names)[np.asarray(iris.y)]
    )
    assert np.array_equal(again.predict(fitted.table), names)
    assert isinstance(again.named_steps["learner"], NamedClasses)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["-1", "0", "25"], [-1, 0, 25]),
        (["False", "True"], [False, True]),
        (["--5", "5"], ["--5", "5"]),
        (["-", "5"], ["-", "5"]),
        (["05", "5"], ["05", "5"]),
        (["-0", "1"], ["-0", "1"]),
        (["1" * 30, "2"], ["1" * 30, "2"]),  # no number of 64 bits
        (["\u0663", "1"], ["\u0663", "1"]),  # a digit of another script
    ],
)
def test_classes_are_numbers_only_where_they_are_written_so(names, expected):
    assert to_labels(names).tolist() == expected


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("age", "`age`"),
        ("a_b*c", "`a_b*c`"),
        ("a`b", "`` a`b ``"),
        ("``", "``` `` ```"),
        ("two\nlines", "`two lines`"),
    ],
)
def test_names_of_columns_are_shown_as_they_are(name, code):
    assert _code(name) == code


@pytest.fixture
def houses(tmp_path, monkeypatch):
    """A table with a target of numbers, and weights."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    area = rng.normal(100, 20, 80).round(1)
    city = np.array(["Oslo", "Rome"])[rng.integers(0, 2, 80)]
    price = 1000 * area + 20_000 * (city == "Rome") + rng.normal(0, 3000, 80)
    frame = pandas.DataFrame({"area": area, "city": city, "price": price.round(2)})
    frame["weight"] = rng.integers(0, 3, 80)
    frame.loc[::9, "area"] = np.nan
    frame.to_csv("houses.csv", index=False)
    return frame


PRICES = ["houses.csv", "--target", "price", "--drop", "weight", "--feature-map", "identity"]


@pytest.mark.slow
def test_numbers_are_predicted_in_their_units_with_intervals(houses, tmp_path, capfd):
    code, out, err = command(
        "export", *PRICES, "--learner", "bayesian-linear", "-o", "model", capfd=capfd
    )
    assert code == 0, err
    assert "target 'price' is numeric, with 80 different values: regression" in err
    assert "predicts the same on all 80 rows" in out
    mean, sd = loaded(tmp_path / "model").predict(houses, return_std=True)
    off = np.abs(mean - houses["price"])
    assert off.median() < 0.3 * houses["price"].std()
    inside = (off < 1.645 * sd).mean()
    assert 0.75 < inside < 1.0
    facts = json.loads((tmp_path / "model" / "model.json").read_text())
    assert facts["task"] == "regression"
    assert "classes" not in facts
    assert facts["target"] == {"lowest": houses["price"].min(), "highest": houses["price"].max()}
    card = (tmp_path / "model" / "README.md").read_text()
    assert "model.predict_interval(rows, coverage=0.9)" in card
    assert f"reach from {houses['price'].min():,.10g} to" in card


def test_a_learner_without_a_distribution_has_no_deviations(houses, tmp_path, capfd):
    code, _, err = command("export", *PRICES, "--learner", "ridge", "-o", "model", capfd=capfd)
    assert code == 0, err
    model = loaded(tmp_path / "model")
    assert np.corrcoef(model.predict(houses), houses["price"])[0, 1] > 0.8
    with pytest.raises(ValueError, match="predicts no standard deviations"):
        model.predict(houses, return_std=True)


def test_the_task_of_a_model_is_that_of_the_option(houses, tmp_path, capfd):
    few = houses.assign(price=houses["price"].rank().floordiv(20))
    few.loc[few["price"] == 4, "price"] = 3
    few.to_csv("houses.csv", index=False)
    words = [*PRICES, "--learner", "ridge"]
    code, _, err = command("export", *words, "-o", "classes", capfd=capfd)
    assert code == 0, err
    assert "has 4 different integers, treated as classes (--task regression treats" in err
    assert set(loaded(tmp_path / "classes").predict(houses)) <= {0, 1, 2, 3}
    code, _, err = command("export", *words, "--task", "regression", "-o", "numbers", capfd=capfd)
    assert code == 0, err
    assert loaded(tmp_path / "numbers").predict(houses).dtype == np.float64


def test_weights_of_a_dataset_are_used(houses, tmp_path, registry):
    from kbench.registry.callables import resolve

    given = {"path": str(tmp_path / "houses.csv"), "target": "price", "weight": "weight"}
    data = resolve(registry.get("dataset", "csv").load)(**given)
    cell = Cell(Ref("csv", given), Ref("identity"), Ref("ridge", {"alpha": 0.1}), FEW)
    weighted = refit(cell, data, registry)
    assert "weight" not in weighted.table
    plain = refit(cell, replace(data, sample_weight=None), registry)
    ours, theirs = (each.pipeline.predict(weighted.table) for each in (weighted, plain))
    assert not np.allclose(ours, theirs)
    counted = np.average(houses["price"], weights=houses["weight"])
    assert weighted.pipeline[-1].mean_ == pytest.approx(counted)
    write(tmp_path / "model", cell, "key", weighted, None, {})
    assert "the rows were weighted" in (tmp_path / "model" / "README.md").read_text()
    knn = Cell(Ref("csv", given), Ref("identity"), Ref("knn"), FEW)
    with pytest.raises(PluginError, match="does not take the weights"):
        refit(knn, data, registry)


def test_the_card_shows_errors_in_the_targets_units(houses, tmp_path, registry):
    from kbench.registry.callables import resolve

    given = {"path": str(tmp_path / "houses.csv"), "target": "price"}
    data = resolve(registry.get("dataset", "csv").load)(**given)
    cell = Cell(Ref("csv", given), Ref("identity"), Ref("ridge"), FEW)
    metrics = {"rmse": 3456.7, "rmse_sd": 210.0, "r2": 0.95, "coverage_error_90": 0.013}
    row = Row("houses", "identity", "ridge", "ok", 5, 5, metrics, machine="m1")
    fitted = refit(cell, data, registry)
    write(tmp_path / "model", cell, "key", fitted, row, {})
    card = (tmp_path / "model" / "README.md").read_text()
    assert "in the target's units: 3,457 ± 210.0, mean and standard deviation over 5 splits" in card
    assert "- r2: 0.9500" in card
    assert "their coverage was 1.3 percentage points off 90 %" in card
    facts = json.loads((tmp_path / "model" / "model.json").read_text())
    assert facts["measured"]["rmse"] == 3456.7
    assert facts["measured"]["n_splits_done"] == 5


@pytest.mark.parametrize("is_sparse", [False, True])
def test_copies_of_a_row_are_in_one_fold_of_the_intervals(registry, tmp_path, is_sparse):
    import scipy.sparse

    rng = np.random.default_rng(0)
    X, y = np.repeat(rng.normal(size=(30, 2)), 2, axis=0), np.repeat(rng.normal(size=30), 2)
    data = Dataset("noise", scipy.sparse.csr_matrix(X) if is_sparse else X, y)
    protocol = replace(FEW, cv="group_duplicates")
    cell = Cell(Ref("noise"), Ref("identity"), Ref("knn", {"n_neighbors": 1}), protocol)
    fitted = refit(cell, data, registry)
    # a fold with the other copy would have an error of 0
    assert np.median(fitted.intervals.errors) > 0.5
    facts = write(tmp_path / "model", cell, "key", fitted, None, {})
    assert "five folds, with equal rows in one" in (tmp_path / "model" / "README.md").read_text()
    assert facts["intervals"]["splits_by"] == "copies"


def test_copies_of_a_row_are_in_one_fold_of_the_calibration(registry):
    rng = np.random.default_rng(0)
    X, y = np.repeat(rng.normal(size=(60, 99)), 2, axis=0), np.repeat(np.arange(60) % 2, 2)
    data = Dataset("noise", X, y, target_names=("no", "yes"))
    protocol = replace(FEW, cv="group_duplicates")
    learner = Ref("kernel-svm", {"C": 1e6})
    fitted = refit(Cell(Ref("noise"), Ref("identity"), learner, protocol), data, registry)
    assert fitted.brier > 0.4  # 0.1 with copies in training; of frequencies: 0.5


@pytest.mark.parametrize("lowest", [0.0, 1.0])
def test_a_model_of_logarithms_has_positive_intervals(tmp_path, registry, lowest):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.exp(1.0 + X @ [0.5, 0.3] + rng.normal(0, 0.8, 300))
    y[:3] = lowest
    data = Dataset("prices", X, y)
    protocol = replace(FEW, target_scale="log")
    cell = Cell(Ref("prices"), Ref("identity"), Ref("ridge", {"alpha": 0.1}), protocol)
    fitted = refit(cell, data, registry)
    facts = write(tmp_path / "model", cell, "key", fitted, None, {})
    predicted = fitted.pipeline.predict(fitted.table)
    assert predicted.mean() == pytest.approx(y.mean(), rel=0.05)  # exp of means is .7 of it
    low, high = fitted.intervals.around(predicted, None, 0.9)
    assert low.min() >= 0
    assert np.mean((low <= y) & (y <= high)) == pytest.approx(0.9, abs=0.03)
    shift, smearing = fitted.intervals.log
    middle = (predicted + shift) / smearing
    product = np.sqrt((low + shift) * (high + shift))  # of ends around the median
    np.testing.assert_allclose(product[low > 0], middle[low > 0])
    assert facts["intervals"]["coverage"] == pytest.approx(0.9, abs=0.05)
    card = (tmp_path / "model" / "README.md").read_text()
    assert "absolute errors of logarithms" in card
    assert "whose logarithms are standardised" in card
    again = fitted.pipeline[-1]
    features = fitted.pipeline[:-1].transform(fitted.table)
    refitted = again.fit(features, y).predict(features)
    np.testing.assert_allclose(refitted, predicted)


def test_a_scaled_pipeline_can_be_fitted_again(houses, tmp_path, registry):
    from sklearn.base import clone

    from kbench.registry.callables import resolve

    given = {"path": str(tmp_path / "houses.csv"), "target": "price"}
    data = resolve(registry.get("dataset", "csv").load)(**given)
    learner = Ref("bayesian-linear")
    fitted = refit(Cell(Ref("csv", given), Ref("identity"), learner, FEW), data, registry)
    again = clone(fitted.pipeline).fit(fitted.table, houses["price"])
    np.testing.assert_allclose(again.predict(houses), fitted.pipeline.predict(houses))
