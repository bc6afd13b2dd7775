"""`kbench recommend` on files as they are: what is printed, and what ends with one message."""

import json
import re

import numpy as np
import pandas
import pytest

from tests.support.command_here import command

pytestmark = pytest.mark.usefixtures("forked_sandboxes")

N = 90


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def european(folder):
    rng = np.random.default_rng(0)
    x = rng.normal(size=N)
    frame = pandas.DataFrame(
        {
            "id": np.arange(N) + 1,
            "betrag ": (1000 * x).round(2),
            "datum": pandas.date_range("2021-01-01", periods=N, freq="9D").strftime("%d.%m.%Y"),
            "stadt": rng.choice(["Köln", "Bonn"], N),
            "y": np.where(x > 1.4, "ja", "nein"),
        }
    )
    (folder / "eu.csv").write_text(
        frame.to_csv(sep=";", decimal=",", index=False).replace("\n", " \n"), encoding="cp1252"
    )


METHODS = ["--feature-map", "identity", "--learner", "ridge", "--learner", "dummy-majority"]


@pytest.mark.slow
def test_a_european_file_is_read_and_all_columns_are_accounted_for(here, store_uri, capfd):
    european(here)
    words = ["recommend", "eu.csv", "--target", "y", *METHODS, "--store", store_uri, "--jobs", "1"]
    code, out, err = command(*words, "-o", "page.html", capfd=capfd)
    assert code == 0, err
    assert "Warning" not in err
    assert "eu: `;` as the delimiter, `,` as the decimal mark, cp1252" in out
    assert "is not UTF-8, so the file is read as cp1252" in err
    lines = {line.split("  ")[0]: " ".join(line.split()) for line in out.splitlines()}
    assert lines["id"].startswith("id row numbers left out 0 --keep id keeps it")
    assert lines["betrag"] == "betrag numbers number 1"
    assert "sine and cosine of the year and the week 5 format %d.%m.%Y" in lines["datum"]
    assert lines["stadt"] == "stadt categories (2) 2 indicators 2"
    # a rare class
    assert "2 classes ('nein' " in out
    assert "methods are compared by balanced accuracy" in out
    assert re.search(r"Use identity \+ ridge \(ovr\): [01]\.\d+ .*balanced accuracy", out)
    page = (here / "page.html").read_text()
    assert "How the columns of the file are encoded" in page
    assert '<td class="name">row numbers</td>' in page

    code, out, err = command(*words, "--json", "--metric", "roc_auc", capfd=capfd)
    events = [json.loads(line) for line in out.splitlines()]
    columns = next(event for event in events if event["event"] == "columns")
    assert [each["name"] for each in columns["columns"]] == ["id", "betrag", "datum", "stadt", "y"]
    assert events[-1]["metric"] == "roc_auc"
    assert events[-1]["rows"][0]["roc_auc"] > 0.9
    assert "--metric roc_auc" in events[-1]["export"]


LABELS = ["no", "yes"] * 15


def csv(*columns, header):
    rows = [header, *(",".join(map(str, row)) for row in zip(*columns, strict=True))]
    return "\n".join(rows) + "\n"


BAD = {
    "no target": (csv(range(30), LABELS, header="a,y"), ["--target", "z"], "no column 'z'"),
    "an empty target": (
        csv(np.arange(30) / 4, [""] * 30, header="a,y"),
        ["--target", "y"],
        "has no value in any row",
    ),
    "one class": (
        csv(np.arange(30) / 4, ["yes"] * 30, header="a,y"),
        ["--target", "y"],
        "the same value in all rows",
    ),
    "a class per row": (
        csv(np.arange(30) / 4, [f"k{i}" for i in range(30)], header="a,y"),
        ["--target", "y"],
        "has a different value in each of 30 rows; a class needs several rows",
    ),
    "no rows": ("a,y\n", ["--target", "y"], "it has no rows"),
    "equal names": (csv(LABELS, LABELS, header="y,y"), ["--target", "y"], "are named 'y'"),
    "ragged rows": (
        csv(np.arange(30) / 4, LABELS, header="a,y") + "1\n",
        ["--target", "y"],
        "1 row has more or fewer values: line 32 has 1",
    ),
    "NUL": (csv(range(30), LABELS, header="a,y") + "1,\0\n", ["--target", "y"], "NUL"),
    "no numbers": (
        csv([*np.arange(29) / 4, "n/k"], LABELS, header="a,y"),
        ["--target", "y"],
        "column 'a' holds numbers, but row 30 has 'n/k'",
    ),
    "a wrong metric": (
        csv(np.arange(30) / 4, LABELS, header="a,y"),
        ["--target", "y", "--metric", "rmse"],
        "--metric rmse is not for classification",
    ),
    "a column to keep that is not there": (
        csv(np.arange(30) / 4, LABELS, header="a,y"),
        ["--target", "y", "--keep", "b"],
        "--keep: there is no column 'b'",
    ),
    "a date that is none": (
        csv(np.arange(30) / 4, LABELS, header="a,y"),
        ["--target", "y", "--date", "a=soon"],
        "date must be COLUMN=FORMAT",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_one_message(here, what, capfd):
    content, words, expected = BAD[what]
    (here / "mine.csv").write_text(content)
    code, out, err = command("recommend", "mine.csv", *words, capfd=capfd)
    assert (code, out) == (2, ""), err
    assert expected in err
    assert err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("change", ["grows", "is gone"])
def test_a_file_that_changes_between_its_looks(here, monkeypatch, store_uri, capfd, ending, change):
    from kbench_tables.recommend import user_data

    frame = pandas.DataFrame({"x": np.sin(np.arange(120)), "y": np.arange(120) % 2})

    def write(n):
        some = frame.iloc[:n]
        some.to_csv("t.csv", index=False) if ending == "csv" else some.to_parquet("t.parquet")

    write(100)
    read = user_data.preview

    def looked(*given):
        found = read(*given)
        write(120) if change == "grows" else (here / f"t.{ending}").unlink()
        return found

    monkeypatch.setattr(user_data, "preview", looked)
    words = ["recommend", f"t.{ending}", "--target", "y", "-o", "page.html", "--store", store_uri]
    code, out, err = command(*words, capfd=capfd)
    message = f"file 't.{ending}' has changed while it was read; run the same command again"
    assert (code, err.strip()) == (2, f"kbench: {message}")
    assert not out.strip()
    assert not (here / "page.html").exists()
    # nothing of it is stored
    if change == "grows":
        monkeypatch.setattr(user_data, "preview", read)
        few = ["--feature-map", "identity", "--learner", "ridge", "--json"]
        code, out, err = command(*words, *few, capfd=capfd)
        assert code == 0, err
        assert json.loads(out.splitlines()[-1])["classes"] == {"0": 60, "1": 60}
