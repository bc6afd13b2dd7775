"""ARFF files as a table of one's own."""

import re
from pathlib import Path

import numpy as np
import pytest

from kbench import Cell, DatasetError, Protocol, Ref
from kbench.registry.installed import list_plugins
from kbench.registry.registry import build
from kbench_files import _typed
from kbench_files._files import load_arff
from kbench_tables.export.decode_table import example_rows
from kbench_tables.recommend.user_data import prepare_data

HEAD = """@relation r
@attribute id numeric
@attribute size real
@attribute plan {pro,basic}
@attribute const integer
@attribute note string
@attribute city string
@attribute joined date 'yyyy-MM-dd'
@attribute person integer
@attribute churn {yes,no}
@data
"""
N = 120


@pytest.fixture(scope="module")
def registry():
    return build(list_plugins())


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write_dense(name="mine.arff"):
    rows = (
        f"{i + 1},{'?' if i == 5 else i / 8},{['pro', 'basic'][i % 2]},3,'a, {i}',"
        f"{['Oslo', 'Rome', 'Bonn'][i % 3]},2024-{1 + i % 12:02d}-{1 + i % 28:02d},{i % 7},"
        f"{['yes', 'no'][i % 2]}\n"
        for i in range(N)
    )
    with Path(name).open("w") as file:
        file.write(HEAD + "".join(rows))


def write_sparse(name="sparse.arff"):
    with Path(name).open("w") as file:
        file.write("% none\n@relation r\n@attribute a real\n@attribute b real\n")
        file.write("@attribute y {no,yes}\n@data\n\n% rows\n")
        file.write("".join(f"{{{i % 2} {i + 0.5}, 2 yes}}\n{{}}\n" for i in range(N // 2)))


@pytest.mark.slow
def test_each_column_has_a_fate(registry):
    write_dense()
    data = prepare_data("mine.arff", registry, target="churn")
    fates = {f.name: (f.read_as, f.encoded_as, f.n_columns) for f in data.preview.roles}
    assert fates == {
        "id": ("row numbers", "left out", 0),
        "size": ("numbers", "number, and whether it is missing", 2),
        "plan": ("categories (2)", "2 indicators", 2),
        "const": ("a constant", "left out", 0),
        "note": ("text", "left out", 0),
        "city": ("categories (3)", "3 indicators", 3),
        "joined": ("dates", "days since 1970, sine and cosine of the week", 3),
        "person": ("numbers", "number", 1),
        "churn": ("target", "the target", 0),
    }
    assert sum("left out: " in notice for notice in data.notices) == 3
    # the loader does what the table says
    assert data.facts.n_features == 10
    assert data.facts.n_samples == N


def test_declared_categories_keep_their_order_and_texts_are_sorted():
    write_dense()
    dates = ["joined=%Y-%m-%d"]
    data = load_arff("mine.arff", "churn", ["id", "note", "const"], date_formats=dates)
    assert data.feature_names == (
        *("size", "plan=pro", "plan=basic", "city=Bonn", "city=Oslo", "city=Rome"),
        *("joined", "person"),
    )
    assert data.target_names == ("yes", "no")
    assert np.isnan(data.X[5, 0])
    assert data.X[1, 6] == (np.datetime64("2024-02-02") - np.datetime64("1970-01-01")).astype(int)


def test_the_result_does_not_depend_on_the_blocks(monkeypatch):
    write_dense()
    given = {"drop": ["note"], "date_formats": ["joined=%Y-%m-%d"], "groups": "person"}
    whole = load_arff("mine.arff", "churn", **given)
    monkeypatch.setattr(_typed, "block_rows", lambda n: 7)
    assert load_arff("mine.arff", "churn", **given).checksum == whole.checksum
    assert len(whole.splits) == 5


@pytest.mark.slow
def test_a_model_gets_the_table_as_it_is_in_the_file(registry):
    write_dense()
    ref = prepare_data("mine.arff", registry, target="churn").ref
    encoder = load_arff(**ref.params).encoder
    cell = Cell(ref, Ref("identity"), Ref("ridge"), Protocol())
    frame = example_rows(cell, encoder, registry, 10)
    assert list(frame.columns) == [name for name, _ in encoder.columns]
    assert frame["joined"].iloc[1] == "2024-02-02"
    assert list(frame["plan"].cat.categories) == ["pro", "basic"]
    write_sparse()
    assert load_arff(**prepare_data("sparse.arff", registry, target="y").ref.params).encoder is None


def test_sparse_rows_have_no_fates_and_refuse_what_needs_them(registry):
    write_sparse()
    data = prepare_data("sparse.arff", registry, target="y")
    assert data.preview is None
    assert (data.facts.sparse, data.facts.n_features, data.facts.n_samples) == (True, 2, N)
    words = "file 'sparse.arff': date_formats does not apply to sparse rows, whose"
    with pytest.raises(DatasetError, match=re.escape(words)):
        load_arff("sparse.arff", "y", date_formats=["a=ISO8601"])
    for option in ("categorical", "date_formats"):
        with pytest.raises(DatasetError, match=f"{option} does not apply to sparse rows"):
            prepare_data("sparse.arff", registry, target="y", **{option: ["a=ISO8601"]})
    with pytest.raises(DatasetError, match="`keep` does not apply to sparse rows"):
        prepare_data("sparse.arff", registry, target="y", keep=["a"])


def test_a_mistake_in_the_file_is_named_with_its_line(registry):
    write_dense()
    with Path("mine.arff").open("a") as file:
        file.write("1,2,none,3,n,Oslo,2024-01-01,1,yes\n")
    words = (
        rf"line {HEAD.count(chr(10)) + N + 1}: 'none' is not among the declared values of 'plan'"
    )
    with pytest.raises(DatasetError, match=words):
        prepare_data("mine.arff", registry, target="churn")
    write_dense()
    with pytest.raises(DatasetError, match="there is no column 'churm'; did you mean 'churn'"):
        prepare_data("mine.arff", registry, target="churm")
