"""`kbench.recommend`: a comparison on a data frame."""

import os
from dataclasses import replace

import numpy as np
import pandas
import pyarrow
import pyarrow.parquet
import pytest

import kbench
from kbench.errors import DatasetError, ExportError, KbenchError
from kbench_tables.frames import write_frame
from kbench_tables.recommend import compared_methods

pytestmark = pytest.mark.usefixtures("forked_sandboxes")

METHODS = {"feature_map": "identity", "learner": ["ridge", "dummy-majority"], "progress": False}


def table(n=80):
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {
            "age": rng.normal(40, 10, n),
            "city": pandas.Categorical(rng.choice(["Oslo", "Rome"], n)),
            "visits": pandas.array(rng.integers(0, 9, n), dtype="Int64"),
            "member": pandas.array(rng.random(n) < 0.5, dtype="boolean"),
            "joined": pandas.date_range("2020-01-01", periods=n, freq="100h", tz="Europe/Oslo"),
            "plan": pandas.array(rng.choice(["a", "b"], n), dtype="string"),
        }
    )
    frame.loc[::7, "visits"] = pandas.NA
    frame.loc[::9, "member"] = pandas.NA
    frame["churn"] = np.where(frame["age"] + 10 * (frame["city"] == "Rome") > 44, "yes", "<no>")
    return frame


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    here = tmp_path_factory.mktemp("here")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        run = kbench.recommend(table().set_index("age", drop=False), "churn", **METHODS)
        assert os.listdir() == []  # noqa: PTH208
    return run


def test_what_is_said_about_a_drift_is_true():
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"t": np.arange(100), "trend": np.arange(100) + rng.normal(size=100)})
    frame["y"] = frame["trend"] + rng.normal(size=100)
    given = {"time_column": "t", "learner": ["ridge", "dummy-mean"], "progress": False}
    said = {
        name: repr(kbench.recommend(frame, "y", feature_map=name, **given))
        for name in ("identity", "rff")
    }
    assert "only linear methods without" in said["identity"]
    assert "may not extrapolate" in said["rff"]


@pytest.mark.slow
def test_methods_have_the_order_of_the_recommendation(monkeypatch):
    advise = compared_methods.advise

    def turned(*args, **kwargs):
        found = advise(*args, **kwargs)
        return replace(found, ranked=found.ranked[::-1])

    monkeypatch.setattr(compared_methods, "advise", turned)
    results = kbench.recommend(table(), "churn", **METHODS).results
    assert results["learner"].tolist() == ["dummy-majority", "ridge (ovr)"]


@pytest.mark.slow
def test_a_frame_gets_a_recommendation(found):
    assert found.recommendation.startswith("Use identity + ridge")
    assert (found.feature_map, found.learner) == ("identity", "ridge (ovr)")
    assert found.results["learner"].tolist() == ["ridge (ovr)", "dummy-majority"]
    assert found.results["accuracy"].iloc[0] > found.results["accuracy"].iloc[1]
    columns = found.columns.set_index("column")
    assert columns.loc["joined", "type"] == "dates"
    assert columns.loc["visits", "type"] == "numbers"
    assert columns.loc["member", "type"] == "categories (2)"
    assert "the index of data ('age') is not a column" in found.notices[0]
    assert "80 rows" in repr(found)
    html = found._repr_html_()
    assert "<td>identity</td>" in html
    assert "<no>" not in html
    assert "&lt;no&gt;" in html


def test_its_report_is_a_page(found, tmp_path):
    text = found.report(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == text
    assert "Use identity + ridge" in text


@pytest.mark.slow
def test_its_model_takes_rows_as_the_frame_has_them(found, tmp_path):
    from kbench_tables.export.load_model import open_model

    assert found.export(tmp_path / "model") == tmp_path / "model"
    model = open_model(tmp_path / "model")
    frame = table()
    answers = model.predict(frame)
    assert np.mean(answers == frame["churn"]) > 0.8
    # moments with another time zone, and texts, are the same dates
    other = frame.assign(joined=frame["joined"].dt.tz_convert("UTC"))
    np.testing.assert_array_equal(model.predict(other), answers)
    texts = frame.assign(joined=[moment.isoformat() for moment in frame["joined"]])
    np.testing.assert_array_equal(model.predict(texts.to_dict("records")), answers)
    with pytest.raises(ExportError, match="it exists"):
        found.export(tmp_path / "model")


def test_frames_of_other_libraries_are_the_same(tmp_path):
    frame = table().drop(columns=["joined", "city"])
    ours = pyarrow.Table.from_pandas(frame, preserve_index=False)

    class Interchanged:
        columns = ours.column_names

        def __dataframe__(self, *args, **options):
            return ours.__dataframe__(*args, **options)

    class Streamed:
        schema = ours.schema

        def __arrow_c_stream__(self, *args, **options):
            return ours.__arrow_c_stream__(*args, **options)

    for number, data in enumerate((frame, ours, Interchanged(), Streamed())):
        write_frame(data, tmp_path / f"{number}.parquet")
        stored = pyarrow.parquet.read_table(tmp_path / f"{number}.parquet")
        assert stored.to_pylist() == ours.to_pylist()


@pytest.mark.slow
def test_a_path_is_read_as_the_command_line_does(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table().drop(columns="joined").to_csv("file.csv", sep=";", decimal=",", index=False)
    few = {**METHODS, "learner": "dummy-majority"}
    run = kbench.recommend(tmp_path / "file.csv", "churn", delimiter=";", **few)
    assert run.learner == "dummy-majority"
    assert os.listdir() == ["file.csv"]  # noqa: PTH208
    with pytest.raises(KbenchError, match=": `sheet` has no meaning for csv files"):
        kbench.recommend("file.csv", "churn", sheet="one", **few)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (table().to_numpy(), "data must be a data frame .* got ndarray"),
        (None, "data must be a data frame .* got NoneType"),
        (table()["age"], "data must be a data frame .* got Series"),
        (table().iloc[:0], "data has no rows"),
        (table().iloc[:, :0], "data has no columns"),
        (pandas.concat({"a": table()}, axis=1), "names of columns with 2 levels; join them"),
        (table().rename(columns={"plan": "age"}), "several columns named 'age'"),
        (table().rename(columns={"plan": 1, "age": "1"}), "several columns named '1'"),
        (table().assign(m=[1, "a"] * 40), r"'m' of data holds values of several types.*int \(1\)"),
        (table().assign(m=[[1]] * 80), r"'m' of data holds .*list \(\[1\]\)"),
        (table().assign(m=pandas.Timedelta("1h")), "'m' of data has the type timedelta64"),
        (table().assign(m=1j), "'m' of data has the type complex128"),
        (table().assign(m=pandas.Period("2024-01")), r"'m' of data has the type period\[M\]"),
        (table().assign(churn="yes"), "^data: the target 'churn' has the same value in all rows"),
        (table().drop(columns="churn"), "^data: there is no column 'churn'"),
    ],
)
def test_other_data_is_refused_with_one_message(data, message):
    with pytest.raises(KbenchError, match=message):
        kbench.recommend(data, "churn", **METHODS)


def test_a_refusal_names_arguments():
    frame = pandas.DataFrame({"x": [*map(str, range(40)), "unknown"], "y": ["a", "b"] * 20 + ["a"]})
    with pytest.raises(DatasetError, match=r"`drop='x'` \(drop the column\)") as refused:
        kbench.recommend(frame, "y", progress=False)
    assert "--" not in str(refused.value)
    with pytest.raises(DatasetError, match="give one of `group` and `time_column`"):
        kbench.recommend(frame, "y", group="x", time_column="y", progress=False)


def test_the_target_and_the_name_are_checked():
    with pytest.raises(KbenchError, match="target is missing"):
        kbench.recommend(table(), **METHODS)
    with pytest.raises(KbenchError, match="name must be a string without '/'"):
        kbench.recommend(table(), "churn", name="../data", **METHODS)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pandas.cut(pandas.Series([1, 2, 3]), 2).to_numpy(), None),
        (pandas.Series(pandas.Categorical([3, 1, 3])), ["3", "1", "3"]),
        (pandas.Series([1, 2.5, None], dtype=object), [1.0, 2.5, None]),
        (pandas.Series([True, None, False], dtype=object), [True, None, False]),
        (pandas.arrays.SparseArray([0, 0, 1]), [0, 0, 1]),
        (pandas.Series(["a", None, "b"], dtype=object), ["a", None, "b"]),
    ],
)
def test_columns_of_unusual_types_are_stored_as_plain_ones(tmp_path, values, expected):
    frame = pandas.DataFrame({"x": values})
    if expected is None:
        frame["x"] = pandas.cut(pandas.Series([1, 2, 3]), 2)
    write_frame(frame, tmp_path / "file.parquet")
    stored = pyarrow.parquet.read_table(tmp_path / "file.parquet")["x"].to_pylist()
    assert stored == (expected or [str(each) for each in frame["x"]])


def test_only_frames_are_written(tmp_path):
    with pytest.raises(DatasetError, match="must be a data frame"):
        write_frame({"a": [1]}, tmp_path / "file.parquet")
