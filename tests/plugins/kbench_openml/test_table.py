"""Tables of OpenML and of files in canonical form."""

import numpy as np
import pytest
import scipy.sparse

from kbench import DatasetError
from kbench.storage.datacache import DataCache
from kbench.tables.arff import read_arff
from kbench.tables.table import to_dataset
from kbench_openml._source import load
from tests.support.openml_server import OpenMLServer


def test_dense_data_in_canonical_form(connect_openml):
    with OpenMLServer() as server:
        connect_openml(server)
        data = load(data_id=9001)
    nan = np.nan
    assert data.feature_names == (
        *("a size", "colour=red", "colour=dark green", "colour=it's blue", "count"),
    )
    assert data.feature_kinds == ("numeric", "onehot", "onehot", "onehot", "numeric")
    np.testing.assert_array_equal(
        data.X,
        [
            [1.5, 1, 0, 0, 255],
            [nan, 0, 1, 0, 1],
            [-0.25, 0, 0, 1, 2],
            [1000.0, nan, nan, nan, 3],
            [1.5, 1, 0, 0, 255],
        ],
    )
    # the row without a label is left out, the class that no row has too
    assert data.y.tolist() == [0, 1, 0, 1, 0]
    assert data.target_names == ("no", "yes, it is")
    assert data.row_ids.tolist() == [0, 1, 2, 3, 4]
    assert (data.X.dtype, data.y.dtype) == (np.float64, np.int64)
    assert (data.name, data.version) == ("mixed", "1")


def test_whole_numbers_do_not_wrap_around(connect_openml):
    with OpenMLServer() as server:
        connect_openml(server)
        data = load(data_id=9001)
    assert (data.X[:, -1] + data.X[:, -1]).max() == 510


def test_sparse_data_stay_sparse(connect_openml):
    with OpenMLServer() as server:
        connect_openml(server)
        data = load(data_id=9002)
    assert scipy.sparse.issparse(data.X)
    assert data.X.format == "csr"
    expected = [[3, 0, 0.5], [0, 1, 0], [0, 0, 0], [2, 7, 1.25], [0, 0, 0]]
    np.testing.assert_array_equal(data.X.toarray(), expected)
    assert [data.target_names[code] for code in data.y] == ["news", "sport", "news", "art", "sport"]


def test_names_do_not_reach_the_terminal_with_control_codes(connect_openml):
    with OpenMLServer(faults=["control-codes"]) as server:
        connect_openml(server)
        assert load(data_id=61).name == "a\ufffdb"


def test_another_target_and_ignored_columns(connect_openml):
    with OpenMLServer() as server:
        connect_openml(server)
        data = load(data_id=9001, target="colour", drop=["count"])
    assert data.target_names == ("red", "dark green", "it's blue")
    assert data.feature_names == ("a size", "Class=no", "Class=yes, it is", "Class=never")
    assert data.row_ids.tolist() == [0, 1, 2, 4, 5]


def test_unknown_target_names_the_close_one(connect_openml):
    with OpenMLServer() as server:
        connect_openml(server)
        with pytest.raises(DatasetError, match="did you mean 'Class'"):
            load(data_id=9001, target="class")


def test_names_from_the_server_are_no_paths(connect_openml, tmp_path):
    with OpenMLServer() as server:
        connect_openml(server)
        data = load(data_id=9003)
    assert data.name == "../../evil"
    cache = DataCache(tmp_path / "kbench")
    checksum = cache.store(data)
    assert cache.load(checksum).feature_names == data.feature_names
    assert not list(tmp_path.parent.glob("*evil*"))
    assert {p.name for p in tmp_path.iterdir()} == {"openml", "kbench"}


def _table(folder, text):
    file = folder / "data.arff"
    file.write_text(text, encoding="utf-8")
    return read_arff(file, "data")


def test_a_table_too_large_for_memory_is_refused(tmp_path, monkeypatch):
    values = ",".join(f"v{j}" for j in range(3000))
    rows = "".join(f"v{j},{j % 2}\n" for j in range(1000))
    table = _table(tmp_path, f"@attribute a {{{values}}}\n@attribute c {{0,1}}\n@data\n{rows}")
    monkeypatch.setenv("KBENCH_MAX_DATASET_MIB", "10")
    with pytest.raises(DatasetError, match="KBENCH_MAX_DATASET_MIB"):
        to_dataset(table, "data", "c", name="data")


def test_sparse_files_with_nominal_features(tmp_path):
    table = _table(
        tmp_path,
        "@attribute a numeric\n@attribute k {x,'y y',z}\n@attribute c {0,1}\n@data\n"
        "{0 2, 1 'y y', 2 1}\n{}\n{1 ?, 2 1}\n{1 z}\n{0 ?, 2 ?}\n",
    )
    data = to_dataset(table, "data", "c", name="data")
    nan = np.nan
    assert data.feature_names == ("a", "k=x", "k=y y", "k=z")
    assert data.feature_kinds == ("numeric", "onehot", "onehot", "onehot")
    np.testing.assert_array_equal(
        data.X.toarray(), [[2, 0, 1, 0], [0, 1, 0, 0], [0, nan, nan, nan], [0, 0, 0, 1]]
    )
    assert data.y.tolist() == [1, 0, 1, 0]
    assert data.row_ids.tolist() == [0, 1, 2, 3]


def test_a_target_of_numbers(tmp_path):
    text = "@attribute a real\n@attribute n real\n@data\n1,3\n2,-1\n3,?\n4,3\n"
    data = to_dataset(_table(tmp_path, text), "data", "n", name="data")
    assert (data.target_names, data.y.tolist()) == (("-1", "3"), [1, 0, 1])
    with pytest.raises(DatasetError, match="'n' is missing in 1 row of 4"):
        to_dataset(_table(tmp_path, text.replace("-1", "0.5")), "data", "n", name="data")
    text = text.replace("-1", "0.5").replace("?", "7")
    data = to_dataset(_table(tmp_path, text), "data", "n", name="data")
    assert (data.task, data.y.tolist(), data.target_names) == ("regression", [3, 0.5, 7, 3], ())
