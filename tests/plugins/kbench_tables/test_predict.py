"""`kbench predict`: rows of a file, by an exported model."""

import csv
import json
import os

import numpy as np
import pandas
import pytest

from tests.support.command_here import command

pytestmark = pytest.mark.usefixtures("forked_sandboxes")


def table(n=120):
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {
            "age": (10 * rng.normal(40, 10, n)).round() / 10,
            "city": rng.choice(["Oslo", "Rome", "Köln"], n),
            "joined": pandas.Timestamp("2021-01-01") + pandas.to_timedelta(np.arange(n) * 5, "D"),
        }
    )
    score = (frame["age"] - 40) / 10 + 2 * (frame["city"] == "Rome") + rng.normal(0, 0.3, n)
    frame["churn"] = np.where(score > 1, "=yes", "no")
    frame["spent"] = (100 * score).round(1)
    return frame


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Export a model of classes and one of numbers."""
    from kbench.cli import main

    folder = tmp_path_factory.mktemp("models")
    frame = table()
    frame["joined"] = frame["joined"].dt.strftime("%d.%m.%Y")
    frame.drop(columns="spent").to_csv(folder / "churn.csv", sep=";", decimal=",", index=False)
    frame.drop(columns="churn").to_csv(folder / "spent.csv")  # with row numbers without a name
    method = ["--feature-map", "identity", "--learner", "ridge"]
    for target in ("churn", "spent"):
        words = ["export", str(folder / f"{target}.csv"), "--target", target, *method]
        words += ["--keep", "joined", "-o", str(folder / target)]
        words += ["--drop", "Unnamed: 0"] if target == "spent" else []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.argv", ["kbench", *words])
            with pytest.raises(SystemExit) as end:
                main()
            assert not end.value.code
    return folder


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def predict(models, name, *words, capfd):
    return command("predict", models / name, *words, capfd=capfd)


@pytest.mark.slow
def test_classes_have_probabilities_and_formulas_an_apostrophe(models, here, capfd):
    words = [models / "churn.csv", "-o", "out.csv", "--id", "city"]
    code, out, err = predict(models, "churn", *words, capfd=capfd)
    assert code == 0, err
    assert out == "out.csv: 120 rows\n"
    assert "column 'churn' is the target and is not used" in err
    with open("out.csv", encoding="utf-8", newline="") as file:  # noqa: PTH123
        lines = list(csv.reader(file))
    assert lines[0] == ["city", "prediction", "probability_=yes", "probability_no"]
    assert {line[1] for line in lines[1:]} == {"'=yes", "no"}
    assert [line[0] for line in lines[1:]] == table()["city"].tolist()
    for line in lines[1:]:
        assert float(line[2]) + float(line[3]) == pytest.approx(1, abs=2e-6)
    right = [
        line[1].lstrip("'") == label
        for line, label in zip(lines[1:], table()["churn"], strict=False)
    ]
    assert np.mean(right) > 0.85
    assert "that a spreadsheet program would run as a formula now begin with an apostrophe" in err


def test_numbers_have_intervals(models, here, capfd):
    words = [models / "spent.csv", "-o", "out.csv", "--coverage", "0.8"]
    code, _, err = predict(models, "spent", *words, capfd=capfd)
    assert code == 0, err
    found = pandas.read_csv("out.csv")
    assert found.columns.tolist() == ["prediction", "lower_80", "upper_80"]
    spent = table()["spent"]
    inside = (found["lower_80"] <= spent) & (spent <= found["upper_80"])
    assert 0.7 < inside.mean() < 0.95
    words[-1] = "0.999"
    code, _, err = predict(models, "spent", *words, "--overwrite", capfd=capfd)
    assert code == 2
    assert "need at least 999 held-out rows, but there were 120; nothing was written" in err
    assert len(pandas.read_csv("out.csv")) == 120


ODD = """extra;city;joined;age
x;Bergen;01.02.2030;41,5
x;Rome;;-1000
x;;03.02.2021;
"""


def test_what_is_unlike_training_is_reported(models, here, capfd):
    (here / "new.csv").write_text(ODD)
    code, _, err = predict(models, "churn", "new.csv", "-o", "out.csv", capfd=capfd)
    assert code == 0, err
    for sentence in (
        "the columns are matched by name",
        "columns that the training data lack are not used: 'extra'",
        "'city': 1 row has a category that the training data lacks, the first is row 1: 'Bergen'",
        "column 'joined': 1 row has a value above the training maximum",
        "'joined': 1 row has a missing value; the training data have none, the first is row 2",
        "column 'age': 1 row has a value below the training minimum",
    ):
        assert sentence in err
    assert len(pandas.read_csv("out.csv")) == 3


@pytest.mark.parametrize(
    "form", ["comma.csv", "latin.csv", "utf16.csv", "new.parquet", "new.csv.gz"]
)
def test_the_same_rows_written_otherwise_are_predicted_alike(models, here, form, capfd):
    frame = table().drop(columns=["churn", "spent"])
    typed = frame.copy()
    frame["joined"] = frame["joined"].dt.strftime("%d.%m.%Y")
    if form == "comma.csv":
        frame.to_csv(form, index=False)
    elif form.endswith("parquet"):
        typed.to_parquet(form)
    else:
        encoding = {"latin.csv": "cp1252", "utf16.csv": "utf-16"}.get(form, "utf-8")
        frame.to_csv(form, sep=";", decimal=",", index=False, encoding=encoding)
    code, _, err = predict(models, "churn", form, "-o", "out.csv", capfd=capfd)
    assert code == 0, err
    assert ("another format than the training file" in err) == (
        form in ("comma.csv", "latin.csv", "utf16.csv")
    )
    assert "training data lacks" not in err
    predict(models, "churn", models / "churn.csv", "-o", "expected.csv", capfd=capfd)
    assert (here / "out.csv").read_bytes() == (here / "expected.csv").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_rows_of_totals_are_predicted_on_request(models, here, kind, capfd):
    frame = table(40)[["city", "age", "joined"]]
    frame["joined"] = frame["joined"].dt.strftime("%d.%m.%Y")
    rows = [["Report", None, None], list(frame), *frame.to_numpy().tolist()]
    written = pandas.DataFrame([*rows, ["Total", frame["age"].sum(), None]])
    if kind == "xlsx":
        written.to_excel("new.xlsx", header=False, index=False)
    else:
        written.to_csv("new.csv", header=False, index=False)
    for words, n_rows in (([], 40), (["--keep-totals"], 41)):
        words = [f"new.{kind}", "-o", f"{n_rows}.csv", *words]
        code, out, err = predict(models, "spent", *words, capfd=capfd)
        assert (code, out) == (0, f"{n_rows}.csv: {n_rows} rows\n"), err


def test_a_table_without_rows_gives_a_file_without_rows(models, here, capfd):
    (here / "new.csv").write_text("age;city;joined\n")
    code, out, err = predict(models, "churn", "new.csv", "-o", "out.csv", capfd=capfd)
    assert (code, out) == (0, "out.csv: 0 rows\n"), err
    assert (here / "out.csv").read_text() == "prediction,probability_=yes,probability_no\n"


@pytest.mark.parametrize(
    ("content", "words", "message"),
    [
        (b"", [], "is empty"),
        (b"age;town;joined\n1;a;\n", [], "the table has no column 'city'; it has 'age', 'town'"),
        (b"age;city;joined\n1;a;\n2;b\n", [], "line 3 has 2 values"),
        (b"age;city;joined\nold;Rome;\n", [], "'age' must be numbers"),
        (
            b"age;city;joined\n1;Rome;soon\n",
            [],
            "must be dates written as %d.%m.%Y: 'soon' in row 1",
        ),
        (b"age;city;joined\n1;Rome\xe9;\n", ["--encoding", "utf-8"], "not"),
        (b"age;city;age\n1;Rome;2\n", [], "several columns"),
        (ODD.encode(), ["--id", "name"], "--id name: the table has no such column"),
        (ODD.encode(), ["--sha256", "00"], "its SHA-256 is not '00'"),
        (ODD.encode(), ["--sha256", ""], "its SHA-256 is not ''"),
        (ODD.encode(), ["--sheet", "one"], "--sheet has no meaning for csv files"),
        (ODD.encode(), ["-o", "no/out.csv"], "there is no folder"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(models, here, content, words, message, capfd):
    (here / "new.csv").write_bytes(content)
    output = [] if "-o" in words else ["-o", "out.csv"]
    code, out, err = predict(models, "churn", "new.csv", *output, *words, capfd=capfd)
    assert (code, out) == (2, ""), err
    assert message in err
    assert "Traceback" not in err
    assert os.listdir() == ["new.csv"]  # noqa: PTH208


def test_a_file_is_replaced_only_if_that_is_asked_for(models, here, capfd):
    (here / "new.csv").write_text(ODD)
    (here / "out.csv").write_text("mine")
    code, _, err = predict(models, "churn", "new.csv", "-o", "out.csv", capfd=capfd)
    assert code == 2
    assert "-o out.csv: it exists; name another file, or pass --overwrite" in err
    assert (here / "out.csv").read_text() == "mine"
    words = ["new.csv", "-o", "out.csv", "--overwrite"]
    code, out, _ = predict(models, "churn", *words, capfd=capfd)
    assert (code, out) == (0, "out.csv: 3 rows, replaced\n")
    assert sorted(path.name for path in here.iterdir()) == ["new.csv", "out.csv"]


def test_a_late_mistake_leaves_nothing(models, here, capfd):
    lines = ["age;city;joined", *["40,5;Rome;03.02.2021"] * 25_000, "40,5;Rome;never"]
    (here / "new.csv").write_text("\n".join(lines))
    code, _, err = predict(models, "churn", "new.csv", "-o", "out.csv", capfd=capfd)
    assert code == 2
    assert "'never' in row 25,001; nothing was written" in err
    assert os.listdir() == ["new.csv"]  # noqa: PTH208


def test_other_folders_and_formats_are_refused(models, here, capfd):
    (here / "new.csv").write_text(ODD)
    code, _, err = command("predict", here, "new.csv", "-o", "out.csv", capfd=capfd)
    assert (code, "has no model.json" in err) == (2, True)
    code, _, err = command("predict", models / "churn", "new.csv", capfd=capfd)
    assert (code, "-o FILE is missing" in err) == (2, True)
    facts = json.loads((models / "churn" / "model.json").read_text())
    assert facts["files"].keys() >= {"README.md", "predict.py", "requirements.txt"}


def test_sparse_rows_are_refused_by_what_predict_has(models, here, capfd):
    (here / "new.svmlight").write_text("1 1:0.5\n")
    code, _, err = predict(models, "churn", "new.svmlight", "-o", "out.csv", capfd=capfd)
    assert code == 2
    assert "rows of svmlight files cannot be predicted; write them as CSV" in err
    assert "--target" not in err
    assert not (here / "out.csv").exists()
