"""The source `openml`: the canonical form, every fault of a server, and offline use."""

import importlib.util
import json
import multiprocessing
import os
import pickle
import re
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from kbench import Dataset, DatasetError, Ref
from kbench.datacache import DataCache
from kbench.errors import SourceUnreachable
from kbench_openml import _server, _source, _transport
from kbench_openml._arff import read_arff
from kbench_openml._source import expand, load
from kbench_openml._table import to_dataset

MIRROR = Path(__file__).parents[2] / "shared" / "openml-mirror"
needs_mirror = pytest.mark.skipif(
    not (MIRROR / "openml_mirror.py").exists(),
    reason="needs the mirror of OpenML next to the checkout (../shared/openml-mirror)",
)


def _module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


OpenMLServer = _module(Path(__file__).with_name("openml_server.py")).OpenMLServer


@pytest.fixture(autouse=True)
def quick(monkeypatch, tmp_path):
    """Short waits, no proxy, and caches of the test's own."""
    monkeypatch.setattr(_transport, "BACKOFF_S", 0.01)
    monkeypatch.setattr(_transport, "CONNECT_S", 5.0)
    monkeypatch.setattr(_server, "CONNECT_S", 5.0)
    monkeypatch.setattr(_transport, "SILENCE_S", 10.0)
    monkeypatch.setenv("KBENCH_CACHE_DIR", str(tmp_path / "kbench"))
    monkeypatch.delenv("KBENCH_OFFLINE", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def connect(monkeypatch, tmp_path):
    """Point the openml client at a server, with an empty cache."""
    import openml

    cache = tmp_path / "openml"
    monkeypatch.setattr(openml.config, "_root_cache_directory", cache)

    def to(server):
        monkeypatch.setattr(openml.config, "server", server.url)
        return Path(openml.config.get_cache_directory())

    return to


# -- the canonical form


def test_dense_data_in_canonical_form(connect):
    with OpenMLServer() as server:
        connect(server)
        data = load(data_id=9001)
    nan = np.nan
    assert data.feature_names == (
        *("a size", "colour=red", "colour=dark green", "colour=it's blue", "count"),
    )
    assert data.feature_kinds == ("numeric", "nominal", "nominal", "nominal", "numeric")
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


def test_whole_numbers_do_not_wrap_around(connect):
    with OpenMLServer() as server:
        connect(server)
        data = load(data_id=9001)
    assert (data.X[:, -1] + data.X[:, -1]).max() == 510


def test_sparse_data_stay_sparse(connect):
    with OpenMLServer() as server:
        connect(server)
        data = load(data_id=9002)
    assert scipy.sparse.issparse(data.X)
    assert data.X.format == "csr"
    expected = [[3, 0, 0.5], [0, 1, 0], [0, 0, 0], [2, 7, 1.25], [0, 0, 0]]
    np.testing.assert_array_equal(data.X.toarray(), expected)
    assert [data.target_names[code] for code in data.y] == ["news", "sport", "news", "art", "sport"]


def test_names_do_not_reach_the_terminal_with_control_codes(connect):
    with OpenMLServer(faults=["control-codes"]) as server:
        connect(server)
        assert load(data_id=61).name == "a\ufffdb"


def test_another_target_and_ignored_columns(connect):
    with OpenMLServer() as server:
        connect(server)
        data = load(data_id=9001, target="colour", ignore=["count"])
    assert data.target_names == ("red", "dark green", "it's blue")
    assert data.feature_names == ("a size", "Class=no", "Class=yes, it is", "Class=never")
    assert data.row_ids.tolist() == [0, 1, 2, 4, 5]


def test_unknown_target_names_the_close_one(connect):
    with OpenMLServer() as server:
        connect(server)
        with pytest.raises(DatasetError, match="did you mean 'Class'"):
            load(data_id=9001, target="class")


def test_by_name_and_version(connect):
    with OpenMLServer() as server:
        connect(server)
        assert load(dataset="iris").X.shape == (150, 4)
        assert load(dataset="iris", version=1).X.shape == (150, 4)
        with pytest.raises(DatasetError, match="no such"):
            load(dataset="iris", version=2)
        with pytest.raises(DatasetError, match="no such"):
            load(dataset="irises")
        with pytest.raises(DatasetError, match="no such"):
            load(data_id=4711)


def test_names_from_the_server_are_no_paths(connect, tmp_path):
    with OpenMLServer() as server:
        connect(server)
        data = load(data_id=9003)
    assert data.name == "../../evil"
    cache = DataCache(tmp_path / "kbench")
    checksum = cache.store(data)
    assert cache.load(checksum).feature_names == data.feature_names
    assert not list(tmp_path.parent.glob("*evil*"))
    assert {p.name for p in tmp_path.iterdir()} == {"openml", "kbench"}


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({}, "none is given"),
        ({"data_id": 61, "task_id": 3}, "data_id, task_id are given"),
        ({"data_id": 0}, "data_id=0 must be"),
        ({"data_id": True}, "data_id=True must be"),
        ({"data_id": "61"}, "data_id='61' must be"),
        ({"data_id": 61, "version": 1}, "version=1"),
        ({"dataset": "../x"}, "dataset='../x'"),
        ({"task_id": 3, "target": "class"}, "target='class'"),
    ],
)
def test_parameters_that_name_no_dataset(params, why):
    with pytest.raises(ValueError, match=re.escape(why)):
        load(**params)


# -- tasks and suites


def test_task_with_its_own_splits(connect):
    with OpenMLServer() as server:
        connect(server)
        data = load(task_id=1187)
        again = len(server.requests)
        load(task_id=1187)
        assert len(server.requests) == again  # all of it was kept
    assert data.X.shape == (178, 13)
    assert [split.index for split in data.splits] == [0, 1, 2, 3]
    for split in data.splits:
        assert sorted([*split.train, *split.test]) == list(range(178))
    assert sorted([*data.splits[2].test, *data.splits[3].test]) == list(range(178))


def test_splits_follow_the_rows_that_are_left(connect):
    with OpenMLServer() as server:
        connect(server)
        data = load(task_id=1000 + 9001)
    for split in data.splits:
        assert sorted([*split.train, *split.test]) == [0, 1, 2, 3, 4]


def test_only_classification_tasks(connect):
    with OpenMLServer() as server:
        connect(server)
        with pytest.raises(DatasetError, match="classification"):
            load(task_id=1062)


def test_suite_of_tasks(connect, monkeypatch):
    with OpenMLServer() as server:
        connect(server)
        tasks = [Ref("openml", {"task_id": 1061}), Ref("openml", {"task_id": 1187})]
        assert expand(openml_suite=7) == tasks
        assert expand(openml_suite="small") == tasks
        monkeypatch.setenv("KBENCH_OFFLINE", "1")
        asked = len(server.requests)
        assert expand(openml_suite=7) == tasks
        assert len(server.requests) == asked
        with pytest.raises(SourceUnreachable, match="cannot be reached"):
            expand(openml_suite=8)
        with pytest.raises(SourceUnreachable, match="cannot be reached"):
            load(openml_suite=8)
        with pytest.raises(DatasetError, match="stands for 2 datasets"):
            load(openml_suite=7)
    assert expand(data_id=61) == []
    with pytest.raises(ValueError, match="openml_suite"):
        expand(openml_suite="../x")
    with pytest.raises(ValueError, match="target"):
        expand(openml_suite=7, target="x")


# -- faults

RECOVERS = (
    *("http-500-twice", "http-503-twice", "busy-twice", "reset-twice"),
    *("slow=0.05", "plain", "no-md5", "no-qualities", "trickle=100000"),
    "redirect",
)
FAILS = {
    "truncate": "checksum",
    "truncate-lines": "checksum",
    "cut": "broke off",
    "bad-md5": "checksum",
    "empty": "empty answer",
    "bad-xml": "damaged",
    "html": "web page",
    "http-500": "500",
    "not-found": "404",
    "reset": "broke off",
    "wrong-id": "instead",
    "slow=1": "sent nothing",
    "trickle=200": "time allowed",
    "bomb": "larger than",
    "redirect-forever": "from one address to the next",
}


def _time_limits(monkeypatch, fault):
    if fault.startswith("slow="):
        monkeypatch.setattr(_transport, "SILENCE_S", 0.5)
    if fault.startswith("trickle=2"):
        monkeypatch.setattr(_transport, "TOTAL_S", 1.0)
    if fault == "bomb":
        monkeypatch.setenv("KBENCH_MAX_DATASET_MB", "1")


@pytest.mark.parametrize("fault", RECOVERS)
def test_what_passes_is_waited_for(connect, fault):
    with OpenMLServer() as server:
        connect(server)
        right = load(data_id=61)
    with OpenMLServer(faults=[fault]) as server:
        connect(server)
        data = load(data_id=61)
    np.testing.assert_array_equal(data.X, right.X)
    np.testing.assert_array_equal(data.y, right.y)


@pytest.mark.parametrize("fault", FAILS)
def test_what_does_not_pass_is_one_clear_error(connect, monkeypatch, fault):
    _time_limits(monkeypatch, fault)
    with OpenMLServer(faults=[fault]) as server:
        connect(server)
        start = time.monotonic()
        with pytest.raises(DatasetError, match=FAILS[fault]) as caught:
            load(data_id=61)
        assert time.monotonic() - start < 30
        assert "OpenML data 61" in str(caught.value)
        # nothing that is wrong stays behind
        server.faults.clear()
        monkeypatch.setattr(_transport, "SILENCE_S", 10.0)
        monkeypatch.setattr(_transport, "TOTAL_S", 60.0)
        monkeypatch.setenv("KBENCH_MAX_DATASET_MB", "100")
        assert load(data_id=61).X.shape == (150, 4)


@pytest.mark.parametrize("fault", ["truncate", "truncate-lines", "html@download"])
def test_without_a_checksum_rows_are_counted(connect, fault):
    with OpenMLServer(faults=["no-md5", fault]) as server:
        connect(server)
        with pytest.raises(DatasetError, match="OpenML data 61"):
            load(data_id=61)


def test_neither_checksum_nor_count_is_refused(connect):
    with OpenMLServer(faults=["no-md5", "no-qualities"]) as server:
        connect(server)
        with pytest.raises(DatasetError, match="neither a checksum nor"):
            load(data_id=61)


@pytest.mark.parametrize("fault", ["truncate", "cut", "empty", "html", "not-found", "bad-xml"])
def test_faults_of_splits(connect, fault):
    part = "@task" if fault == "bad-xml" else "@splits"
    with OpenMLServer(faults=[fault + part]) as server:
        connect(server)
        with pytest.raises(DatasetError, match="OpenML task 1061"):
            load(task_id=1061)


def test_a_server_that_asks_for_an_hour_is_not_waited_for(connect):
    with OpenMLServer(faults=["http-503-twice=3600"]) as server:
        connect(server)
        start = time.monotonic()
        with pytest.raises(DatasetError, match="asks to wait for 3600 s"):
            load(data_id=61)
        assert time.monotonic() - start < 30


def test_an_api_key_is_never_shown(connect, monkeypatch):
    import openml

    monkeypatch.setattr(openml.config, "apikey", "5ec2e7")
    monkeypatch.setattr(_source, "is_reachable", lambda _: True)
    for fault in ("cut", "not-found", "http-500", "html", "redirect-forever", "gone"):
        with OpenMLServer(faults=[fault] if fault in FAILS else []) as server:
            connect(server)
            if fault == "gone":
                server.shutdown()
                server.server_close()
            with pytest.raises(DatasetError) as caught:
                load(data_id=61)
        assert "5ec2e7" not in str(caught.value)


def _fetch(results):
    data = load(data_id=61)
    results.put(data.checksum)


def test_several_processes_fetch_a_dataset_once(connect):
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    with OpenMLServer() as server:
        connect(server)
        workers = [context.Process(target=_fetch, args=(results,)) for _ in range(3)]
        for worker in workers:
            worker.start()
        checksums = {results.get(timeout=30) for _ in workers}
        for worker in workers:
            worker.join()
        downloads = [path for path in server.requests if "download" in path]
    assert len(checksums) == 1
    assert len(downloads) == 1


# -- the client's cache


def test_a_cut_file_in_the_cache_is_fetched_anew(connect):
    with OpenMLServer() as server:
        cache = connect(server)
        right = load(data_id=61)
        file = cache / "datasets" / "61" / "dataset.arff"
        text = file.read_text()
        file.write_text(text[: text.index("\n", len(text) // 2) + 1])
        np.testing.assert_array_equal(load(data_id=61).X, right.X)
        assert file.read_text() == text


def test_a_damaged_description_in_the_cache_is_fetched_anew(connect):
    with OpenMLServer() as server:
        cache = connect(server)
        load(data_id=61)
        file = cache / "datasets" / "61" / "description.xml"
        file.write_text(file.read_text()[:200])
        assert load(data_id=61).X.shape == (150, 4)


def test_a_cut_file_without_a_network_is_an_error(connect, monkeypatch):
    with OpenMLServer() as server:
        cache = connect(server)
        load(data_id=61)
        file = cache / "datasets" / "61" / "dataset.arff"
        file.write_text(file.read_text()[:3000])
        monkeypatch.setenv("KBENCH_OFFLINE", "1")
        with pytest.raises(DatasetError, match=r"checksum.*Run again with a network"):
            load(data_id=61)


class _Bomb:
    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def test_pickles_in_the_cache_are_not_read(connect, tmp_path):
    bomb = pickle.dumps(_Bomb(str(tmp_path / "it ran")))
    with OpenMLServer() as server:
        cache = connect(server)
        load(task_id=1061)
        for name in (
            *("datasets/61/dataset.pkl.py3", "datasets/61/qualities.xml.pkl"),
            *("datasets/61/features.xml.pkl", "tasks/1061/datasplits.pkl.py3"),
        ):
            (cache / name).write_bytes(bomb)
        load(task_id=1061)
        load(data_id=61)
    assert not (tmp_path / "it ran").exists()


def test_no_pickles_are_written(connect):
    with OpenMLServer() as server:
        cache = connect(server)
        load(task_id=1061)
        kept = {path.name for path in cache.rglob("*") if path.is_file()}
    assert "dataset.arff" in kept
    assert not {name for name in kept if "pkl" in name or "pickle" in name}


# -- without a network


def test_offline_uses_what_is_cached(connect, monkeypatch):
    with OpenMLServer() as server:
        connect(server)
        right = load(data_id=61)
        monkeypatch.setenv("KBENCH_OFFLINE", "1")
        asked = len(server.requests)
        np.testing.assert_array_equal(load(data_id=61).X, right.X)
        with pytest.raises(DatasetError, match=r"not in the cache.*no server may be asked"):
            load(data_id=9001)
        with pytest.raises(DatasetError, match=r"not in the cache.*no server may be asked"):
            load(dataset="iris")
        with pytest.raises(DatasetError, match=r"not in the cache.*no server may be asked"):
            load(task_id=1061)
        assert len(server.requests) == asked


def test_a_server_that_is_gone_is_noticed_at_once(connect):
    with OpenMLServer() as server:
        connect(server)
        load(data_id=61)
    start = time.monotonic()
    assert load(data_id=61).X.shape == (150, 4)  # from the client's cache
    with pytest.raises(SourceUnreachable, match="cannot be reached"):
        load(data_id=9001)
    assert time.monotonic() - start < 4  # less than one time-out


def test_connecting_gives_up_in_time(monkeypatch):
    over = threading.Event()

    def connect(*_, **__):
        over.wait(60)
        raise OSError

    monkeypatch.setattr(_server, "CONNECT_S", 0.2)
    monkeypatch.setattr(socket, "create_connection", connect)
    start = time.monotonic()
    assert not _server._connects("example.org", 443)
    assert time.monotonic() - start < 10
    over.set()


def test_only_wine_has_a_bundled_equal(connect, monkeypatch):
    with OpenMLServer() as server:
        connect(server)
        real = load(data_id=187)
    monkeypatch.setenv("KBENCH_OFFLINE", "1")
    with OpenMLServer() as another:
        connect(another)
        bundled = load(data_id=187)
        assert bundled.checksum == real.checksum
        assert "bundled" in bundled.source
        for other in (61, 1510, 28):
            with pytest.raises(DatasetError):
                load(data_id=other)


def test_without_a_network_the_client_is_not_even_imported(tmp_path):
    config = tmp_path / "config" / "openml"
    config.mkdir(parents=True)
    (config / "config").write_text("server = http://127.0.0.1:1/api/v1/xml\n")
    code = (
        "import sys\n"
        "from kbench import DatasetError\n"
        "from kbench_openml._source import load\n"
        "try:\n    load(data_id=61)\n"
        "except DatasetError as error:\n    print(error)\n"
        "heavy = {'openml', 'requests', 'pandas', 'sklearn', 'pyarrow'} & set(sys.modules)\n"
        "print('heavy', sorted(heavy))\n"
    )
    environment = {
        **{key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")},
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "OPENML_CACHE_DIR": str(tmp_path / "openml"),
    }
    environment.pop("KBENCH_OFFLINE", None)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "127.0.0.1:1 cannot be reached" in done.stdout
    assert "heavy []" in done.stdout


def test_configuration_is_read_as_the_client_reads_it(connect, monkeypatch, tmp_path):
    import openml

    with OpenMLServer() as server:
        cache = connect(server)
        as_client = (openml.config.server, cache)
    monkeypatch.delitem(sys.modules, "openml.config")
    folder = tmp_path / "config" / "openml"
    folder.mkdir(parents=True)
    (folder / "config").write_text(f"server = {server.url}\ncachedir = {tmp_path / 'openml'}\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("OPENML_CACHE_DIR", raising=False)
    found = _server.configured()
    assert (found.url, found.cache) == as_client


def test_progress_tells_of_bytes(connect):
    said = []
    with OpenMLServer() as server:
        connect(server)
        with _transport.watched(lambda *what: said.append(what)):
            load(data_id=61)
    address, received, of = said[-2] if "qualities" in said[-1][0] else said[-1]
    assert "download/61" in address
    assert 0 < received == of


# -- ARFF


def _arff(tmp_path, text):
    file = tmp_path / "data.arff"
    file.write_text(text, encoding="utf-8")
    return read_arff(file, "data")


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("1,a\n2\n", "line 5 has 1 values; 2 are declared"),
        ("1,a\n2,b,3\n", "line 5 has 3 values; 2 are declared"),
        ("1,a\n\n% no\nx,b\n", "line 7: 'x' in the numeric column 'n'"),
        ("1,c\n", "line 4: 'c' is not among the declared values of 'k'"),
        ("1,'a\n", "line 4"),
        ("{0 1}\n{5 1}\n", "line 5 gives a value for column 5 of 2"),
        ("{0 1}\n{0 1, 0 2}\n", "line 5 gives a value for column 0 twice"),
        ("{0 1}\n1,a\n", "line 5 is not of the form"),
        ("{0 x}\n", "line 4: 'x' in the numeric column"),
        ("", "no rows"),
    ],
)
def test_mistakes_name_the_line(tmp_path, body, line):
    with pytest.raises(DatasetError, match=line):
        _arff(tmp_path, "@attribute n numeric\n@attribute k {a,b}\n@data\n" + body)


@pytest.mark.parametrize(
    "text",
    ["", "hello", "@relation x\n@data\n1\n", "@attribute a relational\n@data\n", "@attribute x\n"],
)
def test_what_is_no_arff_file(tmp_path, text):
    with pytest.raises(DatasetError, match="data:"):
        _arff(tmp_path, text)


def test_absurd_headers_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("kbench_openml._arff.MAX_COLUMNS", 10)
    text = "".join(f"@attribute a{j} numeric\n" for j in range(11)) + "@data\n"
    with pytest.raises(DatasetError, match="more than 10 attributes"):
        _arff(tmp_path, text)


def test_a_table_too_large_for_memory_is_refused(tmp_path, monkeypatch):
    values = ",".join(f"v{j}" for j in range(3000))
    rows = "".join(f"v{j},{j % 2}\n" for j in range(1000))
    table = _arff(tmp_path, f"@attribute a {{{values}}}\n@attribute c {{0,1}}\n@data\n{rows}")
    monkeypatch.setenv("KBENCH_MAX_DATASET_MB", "10")
    with pytest.raises(DatasetError, match="KBENCH_MAX_DATASET_MB"):
        to_dataset(table, "data", "c", name="data")


_names = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"], exclude_characters="\x85\ufeff"),
    min_size=1,
    max_size=6,
).filter(lambda text: text == text.strip() and text not in ("?",))


@given(data=st.data())
def test_quoted_and_plain_files_are_read_alike(data, tmp_path_factory):
    categories = data.draw(st.lists(_names, min_size=2, max_size=4, unique=True))
    numbers = data.draw(
        st.lists(
            st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)),
            min_size=1,
            max_size=6,
        )
    )
    codes = data.draw(
        st.lists(
            st.one_of(st.none(), st.integers(0, len(categories) - 1)),
            min_size=len(numbers),
            max_size=len(numbers),
        )
    )

    def quoted(text):
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    lines = ["@attribute 'x y' real", f"@attribute k {{{', '.join(map(quoted, categories))}}}"]
    for number, code in zip(numbers, codes, strict=True):
        value = "?" if code is None else quoted(categories[code])
        lines.append(f"{'?' if number is None else repr(number)}, {value}")
    lines.insert(2, "@data")
    table = _arff(tmp_path_factory.mktemp("arff"), "\n".join(lines))
    np.testing.assert_array_equal(
        table.columns[0].values, [np.nan if each is None else each for each in numbers]
    )
    assert table.columns[1].categories == categories
    assert table.columns[1].values.tolist() == [-1 if code is None else code for code in codes]


@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)),
            st.sampled_from([None, "a", "b b"]),
        ),
        min_size=1,
        max_size=20,
    ),
    st.sampled_from([0, 64]),
)
def test_the_quick_and_the_careful_reader_agree(tmp_path_factory, rows, block):
    import kbench_openml._arff as module

    text = "@attribute x real\n@attribute k {a,b b}\n@attribute s string\n@data\n"
    for number, category in rows:
        parts = ["?" if each is None else str(each) for each in (number, category, category)]
        text += " , ".join(parts) + "\n"
    folder = tmp_path_factory.mktemp("arff")
    with pytest.MonkeyPatch.context() as patch:
        if block:
            patch.setattr(module, "BLOCK", block)
        quick = _arff(folder, text)
        careful = _arff(folder, text.replace("@data\n", "@data\n% care\n"))
        patch.setattr(module._DenseBody, "_quick", lambda *_: False)
        slow = _arff(folder, text)
    for other in (careful, slow):
        for one, two in zip(quick.columns, other.columns, strict=True):
            if one.kind == "string":
                assert one.values == two.values
            else:
                np.testing.assert_array_equal(one.values, two.values)


@given(
    st.lists(
        st.dictionaries(st.integers(0, 4), st.floats(allow_nan=False, allow_infinity=False)),
        min_size=1,
        max_size=8,
    )
)
def test_sparse_files_keep_every_value(tmp_path_factory, rows):
    text = "".join(f"@attribute a{j} numeric\n" for j in range(5)) + "@data\n"
    expected = np.zeros((len(rows), 5))
    for i, row in enumerate(rows):
        text += "{" + ", ".join(f"{j} {row[j]!r}" for j in row) + "}\n"
        for j, value in row.items():
            expected[i, j] = value
    table = _arff(tmp_path_factory.mktemp("arff"), text)
    np.testing.assert_array_equal(table.sparse.toarray(), expected)


def test_sparse_files_with_nominal_features(tmp_path):
    table = _arff(
        tmp_path,
        "@attribute a numeric\n@attribute k {x,'y y',z}\n@attribute c {0,1}\n@data\n"
        "{0 2, 1 'y y', 2 1}\n{}\n{1 ?, 2 1}\n{1 z}\n{0 ?, 2 ?}\n",
    )
    data = to_dataset(table, "data", "c", name="data")
    nan = np.nan
    assert data.feature_names == ("a", "k=x", "k=y y", "k=z")
    assert data.feature_kinds == ("numeric", "nominal", "nominal", "nominal")
    np.testing.assert_array_equal(
        data.X.toarray(), [[2, 0, 1, 0], [0, 1, 0, 0], [0, nan, nan, nan], [0, 0, 0, 1]]
    )
    assert data.y.tolist() == [1, 0, 1, 0]
    assert data.row_ids.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("body", ["1,a\r\n?,b\r\n", "1,a\r\n% x\r\n?,b\r\n", "1 ,\ta\n\n ? , b"])
def test_line_ends_and_white_space_do_not_matter(tmp_path, body):
    file = tmp_path / "data.arff"
    header = "\ufeff@attribute n numeric\r\n@ATTRIBUTE k { a , b }\r\n@DATA\r\n"
    file.write_bytes((header + body).encode())
    table = read_arff(file, "data")
    np.testing.assert_array_equal(table.columns[0].values, [1, np.nan])
    assert table.columns[1].values.tolist() == [0, 1]


def test_a_target_of_numbers(tmp_path):
    text = "@attribute a real\n@attribute n real\n@data\n1,3\n2,-1\n3,?\n4,3\n"
    data = to_dataset(_arff(tmp_path, text), "data", "n", name="data")
    assert (data.target_names, data.y.tolist()) == (("-1", "3"), [1, 0, 1])
    with pytest.raises(DatasetError, match="no class label"):
        to_dataset(_arff(tmp_path, text.replace("-1", "0.5")), "data", "n", name="data")


# -- the full mirror


@pytest.fixture(scope="module")
def mirror_module():
    return _module(MIRROR / "openml_mirror.py")


def _catalogue():
    if not (MIRROR / "catalogue.json").exists():
        return []
    return json.loads((MIRROR / "catalogue.json").read_text())["datasets"]


SMALL = [entry for entry in _catalogue() if entry["bytes"] < 100_000]
LARGE = [entry for entry in _catalogue() if entry["bytes"] >= 100_000]


def _check_entry(entry, mirror, connect, tmp_path) -> Dataset:
    with mirror.Mirror() as server:
        connect(server)
        data = load(data_id=entry["id"])
        cache = DataCache(tmp_path / "kbench")
        checksum = cache.store(data)
        facts = cache.describe(checksum)
    assert facts["n_samples"] == entry["rows"]
    assert facts["n_classes"] == entry["classes"]
    by_name = dict(zip(facts["target_names"], facts["class_counts"], strict=True))
    assert by_name == {name: n for name, n in entry["class_counts"].items() if n}
    assert facts["n_missing"] == entry["missing_values"]
    assert facts["missing"] == entry["missing_by_attribute"]
    return data


@needs_mirror
@pytest.mark.parametrize("entry", SMALL, ids=lambda entry: entry["name"])
def test_small_datasets_of_the_mirror(entry, mirror_module, connect, tmp_path):
    _check_entry(entry, mirror_module, connect, tmp_path)


@needs_mirror
@pytest.mark.slow
@pytest.mark.parametrize("entry", LARGE, ids=lambda entry: entry["name"])
def test_large_datasets_of_the_mirror(entry, mirror_module, connect, tmp_path):
    _check_entry(entry, mirror_module, connect, tmp_path)


@needs_mirror
@pytest.mark.slow
@pytest.mark.parametrize("entry", _catalogue(), ids=lambda entry: entry["name"])
def test_values_equal_the_parquet_copies(entry, mirror_module, connect, tmp_path):
    """The copies were made by another reader: value by value, they must agree."""
    import pandas

    copy = MIRROR / "data" / f"{entry['id']}.pq"
    if not copy.exists():
        pytest.skip("the mirror has no parquet copy of it")
    frame = pandas.read_parquet(copy)
    data = _check_entry(entry, mirror_module, connect, tmp_path)
    columns = dict(zip(data.feature_names, data.X.T, strict=True))
    for name in frame.columns:
        if name == entry["default_target_attribute"]:
            labels = np.asarray(data.target_names)[data.y]
            assert list(labels) == [str(value) for value in frame[name]]
            continue
        if name in columns:
            np.testing.assert_array_equal(columns[name], frame[name].to_numpy(dtype=float))
            continue
        for other in [column for column in columns if column.rpartition("=")[0] == name]:
            value = other.rpartition("=")[2]
            given = frame[name]
            expected = np.where(given.isna(), np.nan, given.astype(str) == value).astype(float)
            np.testing.assert_array_equal(columns[other], expected)


@needs_mirror
def test_bundled_wine_equals_openml_value_by_value(mirror_module, connect):
    with mirror_module.Mirror() as server:
        connect(server)
        real = load(data_id=187)
    bundled = _source._bundled_wine()
    np.testing.assert_array_equal(bundled.X, real.X)
    np.testing.assert_array_equal(bundled.y, real.y)
    assert (bundled.checksum, bundled.target_names) == (real.checksum, real.target_names)


@needs_mirror
@pytest.mark.slow
def test_bundled_others_differ_from_openml(mirror_module, connect):
    from sklearn.datasets import load_breast_cancer, load_iris

    with mirror_module.Mirror() as server:
        connect(server)
        iris, wdbc = load(data_id=61), load(data_id=1510)
    assert np.flatnonzero(np.any(load_iris().data != iris.X, axis=1)).tolist() == [34, 37]
    assert np.any(load_breast_cancer().data != wdbc.X, axis=1).sum() == 5


MIRROR_RECOVERS = (
    *("http-500-twice", "http-503-twice", "busy-twice", "reset-twice", "slow=0.2", "plain"),
    *("no-md5", "trickle=1000000"),
)
MIRROR_FAILS = (
    *("truncate", "truncate-lines", "cut", "bad-md5", "empty", "bad-xml", "html", "http-500"),
    *("not-found", "reset", "slow=3", "trickle=300"),
)


@needs_mirror
@pytest.mark.slow
@pytest.mark.parametrize("fault", MIRROR_RECOVERS + MIRROR_FAILS)
def test_every_fault_of_the_mirror(fault, mirror_module, connect, monkeypatch):
    with mirror_module.Mirror() as server:
        connect(server)
        right = load(data_id=61)
    if fault == "trickle=300":
        monkeypatch.setattr(_transport, "TOTAL_S", 2.0)
    if fault == "slow=3":
        monkeypatch.setattr(_transport, "SILENCE_S", 1.0)
    with mirror_module.Mirror(faults=[fault]) as server:
        connect(server)
        start = time.monotonic()
        if fault in MIRROR_FAILS:
            with pytest.raises(DatasetError, match="OpenML data 61"):
                load(data_id=61)
        else:
            np.testing.assert_array_equal(load(data_id=61).X, right.X)
        assert time.monotonic() - start < 60


@needs_mirror
@pytest.mark.slow
def test_tasks_and_suites_of_the_mirror(mirror_module, connect):
    with mirror_module.Mirror() as server:
        connect(server)
        small = expand(openml_suite=990002)
        assert Ref("openml", {"task_id": 3}) in small
        data = load(task_id=3)
    assert len(data.splits) == 10
    assert sorted(np.concatenate([split.test for split in data.splits])) == list(range(3196))
    assert len({split.digest for split in data.splits}) == 10


@needs_mirror
@pytest.mark.slow
def test_all_datasets_of_the_suite_uci_come_once(mirror_module, tmp_path):
    """From empty caches every set is loaded; the second time nobody is asked."""
    environment = {
        **os.environ,
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "OPENML_CACHE_DIR": str(tmp_path / "openml"),
        "KBENCH_CACHE_DIR": str(tmp_path / "kbench"),
        "no_proxy": "127.0.0.1",
    }
    environment.pop("KBENCH_OFFLINE", None)
    code = "from kbench.cli.data import app; app()"
    command = [sys.executable, "-c", code, "fetch", "uci"]
    (tmp_path / "config" / "openml").mkdir(parents=True)

    def fetch():
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=300, check=False
        )

    with mirror_module.Mirror() as server:
        config = tmp_path / "config" / "openml" / "config"
        config.write_text(f"server = {server.url}\n")
        first = fetch()
        assert first.returncode == 0, first.stdout + first.stderr
        assert "unavailable" not in first.stdout
        asked = len(server.requests)
        assert asked >= 36  # description, data and qualities of twelve sets
        second = fetch()
        assert second.stdout == first.stdout
        assert len(server.requests) == asked
    cache = DataCache(tmp_path / "kbench")
    assert cache.verify() == []
    assert len(cache.entries()) == len(first.stdout.splitlines())
