"""What may go wrong while a large file is read: one message that names the file and the place."""

import gzip
import multiprocessing
import os
import re
import signal
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from kbench import DatasetError
from kbench.storage.datacache import DataCache, _cache, _entry
from kbench.tables import limits
from kbench.tables.limits import spilling_to
from kbench_datasets import hypersphere_shells
from kbench_files import _csv, _svmlight, _typed
from kbench_files._files import load_arff, load_csv, load_parquet, load_svmlight
from tests.support.command_here import command

N = 120


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch, tmp_path):
    monkeypatch.setattr(limits, "SPILL", 1)
    monkeypatch.setattr(_csv, "block_rows", lambda _: 7)
    monkeypatch.setattr(_typed, "block_rows", lambda _: 7)
    monkeypatch.setattr(_svmlight, "BLOCK", 50)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def cache(tmp_path):
    return DataCache(tmp_path / "cache")


def write_csv(name="mine.csv", **cells):
    rows = [[str(i + 0.25), str(i % 7), ["no", "yes"][i % 2]] for i in range(N)]
    for row, value in cells.items():
        rows[int(row.removeprefix("row")) - 1][0] = value
    Path(name).write_text("a,b,y\n" + "".join(",".join(row) + "\n" for row in rows))


def write_parquet(name="mine.parquet", n=N, **columns):
    table = {"a": np.arange(n) + 0.25, "y": ["no", "yes"] * (n // 2), **columns}
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(table), name, row_group_size=30)


def write_arff(name="mine.arff"):
    header = "@attribute a numeric\n@attribute y {no,yes}\n@data\n"
    Path(name).write_text(
        header + "".join(f"{i + 0.25},{['no', 'yes'][i % 2]}\n" for i in range(N))
    )


def stored(cache, load, *args):
    """Load a file as a sandboxed process does it, and return what the cache has then."""
    with cache.scratch("mine") as scratch, spilling_to(scratch):
        data = load(*args)
        return cache.load(cache.store(data))


def test_what_is_spilled_becomes_part_of_the_entry(cache, monkeypatch):
    write_parquet(b=[None, *range(N - 1)])
    plain = load_parquet("mine.parquet", "y")
    moved = []
    found = _entry.scratch_file
    monkeypatch.setattr(
        "kbench.storage.datacache._entry.scratch_file",
        lambda array, root: moved.append(found(array, root)) or moved[-1],
    )
    data = stored(cache, load_parquet, "mine.parquet", "y")
    assert data.checksum == plain.checksum
    np.testing.assert_array_equal(data.X, plain.X)
    assert [path is not None for path in moved] == [True, False]  # X, and y
    assert not moved[0].exists()
    assert cache.verify() == []
    assert not list(cache.root.glob(".tmp-*"))
    Path("mine.svm").write_text("".join(f"{i % 2} {i + 1}:1.5 40:{i}\n" for i in range(30)))
    sparse = stored(cache, load_svmlight, "mine.svm")
    assert sparse.checksum == load_svmlight("mine.svm").checksum
    assert cache.verify() == []


def test_text_in_a_column_of_numbers_is_named_with_its_row(cache):
    write_csv(row101="n/k")
    with pytest.raises(DatasetError) as error:
        stored(cache, load_csv, "mine.csv", "y")
    assert (
        "file 'mine.csv': text cannot be a feature: 'a' (numbers before row 101, which has 'n/k')"
        in str(error.value)
    )
    assert load_csv("mine.csv", "y", drop=["a"]).X.shape == (N, 1)


def test_missing_values_in_the_middle_are_missing(cache):
    write_csv(row61="", row99="NaN")
    data = stored(cache, load_csv, "mine.csv", "y")
    assert np.flatnonzero(np.isnan(data.X[:, 0])).tolist() == [60, 98]
    values = np.arange(N, dtype=float)
    values[77] = np.nan
    write_parquet(a=values)
    data = stored(cache, load_parquet, "mine.parquet", "y")
    assert np.flatnonzero(np.isnan(data.X[:, 0])).tolist() == [77]
    assert cache.describe(data.checksum).missing == {"a": 1}


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ({"b": [1.0] * N}, "only file 'parts/1.parquet' has 'b'"),
        (
            {"a": [str(i) for i in range(N)]},
            "column 'a' is string in file 'parts/1.parquet', but double in the files before",
        ),
    ],
)
def test_parquet_files_with_other_columns(second, words):
    write_parquet("parts/0.parquet")
    write_parquet("parts/1.parquet", **second)
    with pytest.raises(DatasetError, match=re.escape(words)):
        load_parquet("parts", "y")


def test_a_parquet_file_without_a_column():
    write_parquet("parts/0.parquet", b=[1.0] * N)
    write_parquet("parts/1.parquet")
    with pytest.raises(DatasetError, match=re.escape("file 'parts/1.parquet' lacks 'b'")):
        load_parquet("parts", "y")


def test_a_folder_without_parquet_files(tmp_path):
    write_parquet("hive/year=1/0.parquet")
    with pytest.raises(DatasetError, match=r"no file that ends in \.parquet or \.pq there; those"):
        load_parquet("hive", "y")
    with pytest.raises(DatasetError, match=r"no file that ends in \.parquet"):
        load_parquet("none-*.parquet", "y")


def test_lists_in_a_parquet_file_are_refused_by_name():
    write_parquet(b=[[i] for i in range(N)])
    with pytest.raises(DatasetError, match=r"not supported: 'b'.*`drop=\['b'\]`"):
        load_parquet("mine.parquet", "y")
    assert load_parquet("mine.parquet", "y", drop=["b"]).X.shape == (N, 1)


def damage(name, place):
    content = bytearray(Path(name).read_bytes())
    content[place : place + 40] = b"\xff" * 40
    Path(name).write_bytes(content)


def test_a_damaged_part_of_a_parquet_file_is_named_by_its_rows(cache):
    write_parquet(y=np.arange(N) % 2, b=np.random.default_rng(0).normal(size=N))
    file = pyarrow.parquet.ParquetFile("mine.parquet")
    damage("mine.parquet", file.metadata.row_group(2).column(2).data_page_offset)
    with pytest.raises(DatasetError, match=r"'mine.parquet': it cannot .* after row 5\d: "):
        stored(cache, load_parquet, "mine.parquet", "y")
    assert not list(cache.root.glob(".tmp-*"))


@pytest.mark.parametrize("name", ["mine.parquet", "mine.csv.gz", "mine.svm.gz"])
def test_truncated_files(name):
    if name == "mine.parquet":
        write_parquet()
    else:
        rng = np.random.default_rng(0)
        lines = [f"{i % 2} 1:{x}" for i, x in enumerate(rng.normal(size=2000))]
        text = "\n".join(lines) if "svm" in name else "a,y\n" + "\n".join(lines).replace(" ", ",")
        with gzip.open(name, "wt") as file:
            file.write(text)
    os.truncate(name, os.path.getsize(name) * 2 // 3)  # noqa: PTH202
    load = load_svmlight if "svm" in name else load_csv if "csv" in name else load_parquet
    with pytest.raises(DatasetError, match=f"'{name}': it cannot be read as"):
        load(name) if load is load_svmlight else load(name, "y")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1 5:1 3:1", "line 31: Feature indices in SVMlight/LibSVM data file should be sorted"),
        ("1 -2:1", "line 31: Invalid index -2"),
        ("1 99999999999:1", "line 31: value too large"),
        ("1 a:1", "line 31: invalid literal"),
        ("x 2:1", "line 31: could not convert"),
    ],
)
def test_svmlight_lines_with_mistakes_are_named(line, words):
    lines = [f"{i % 2} 1:{i} 4:1" for i in range(60)]
    lines[30] = line
    Path("mine.svm").write_text("\n".join(lines) + "\n")
    with pytest.raises(DatasetError, match=f"'mine.svm': it cannot be read as svmlight: {words}"):
        load_svmlight("mine.svm")


def test_fewer_columns_than_a_svmlight_file_has():
    Path("mine.svm").write_text("0 1:1\n1 9:1\n")
    with pytest.raises(DatasetError, match="n_features is 3, but it has 9 columns"):
        load_svmlight("mine.svm", n_features=3)


@pytest.mark.parametrize("change", ["grows", "is cut", "is gone"])
def test_a_file_that_changes_while_it_is_read(cache, monkeypatch, change):
    write_csv()
    scan = _csv.CsvRows.scan

    def scanned(rows, scans):
        n_rows = scan(rows, scans)
        if change == "grows":
            with Path("mine.csv").open("a") as file:
                file.write("text,text,text\n")
        elif change == "is cut":
            os.truncate("mine.csv", 100)
        else:
            Path("mine.csv").unlink()
        return n_rows

    monkeypatch.setattr(_csv.CsvRows, "scan", scanned)
    with pytest.raises(DatasetError, match=r"file 'mine.csv' has changed while it was read; run"):
        stored(cache, load_csv, "mine.csv", "y")
    assert cache.entries() == []
    assert not list(cache.root.glob(".tmp-*"))


@pytest.mark.parametrize(
    ("load", "given"),
    [
        (load_parquet, ("mine.parquet", "y")),
        (load_arff, ("mine.arff", "y")),
        (hypersphere_shells, (1000,)),
    ],
)
def test_a_disk_that_is_full(cache, monkeypatch, load, given):
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this system")
    write_parquet()
    write_arff()
    monkeypatch.setattr(_cache._ScratchFolder, "new_file", lambda _: Path("/dev/full"))
    with pytest.raises(DatasetError) as error:
        stored(cache, load, *given)
    assert str(error.value) == (
        f"dataset 'mine' cannot be written to the cache {cache.root}: No space left on device; "
        "make room"
    )
    assert cache.entries() == []


def _killed(root):
    cache = DataCache(root)
    with cache.scratch("mine") as scratch, spilling_to(scratch):
        rows = limits.GrowingArray(np.float64)
        rows.append(np.zeros(100_000))
        os.kill(os.getpid(), signal.SIGKILL)


def test_what_a_killed_process_leaves_is_removed_later_and_never_found(cache):
    process = multiprocessing.get_context("fork").Process(target=_killed, args=(cache.root,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    (left,) = cache.root.glob(".tmp-*")
    assert (left / "1.npy").stat().st_size > 100_000
    assert cache.entries() == []
    old = left.stat().st_mtime - 2 * _entry.NEW_S
    os.utime(left, (old, old))
    with _entry.temporary(cache.root) as alive:
        os.utime(alive, (old, old))
        write_csv()
        stored(cache, load_csv, "mine.csv", "y")
        assert not left.exists()
        assert alive.exists()


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["other columns", "a cut file", "a wrong index"])
def test_the_command_line_says_it_in_one_message(fault, capfd, monkeypatch, tmp_path):
    monkeypatch.setenv("KBENCH_CACHE_DIR", str(tmp_path / "cache"))
    arguments, words = {
        "other columns": (["parts.parquet", "--target", "y"], "only file"),
        "a cut file": (["mine.parquet", "--target", "y"], "it cannot be read as parquet"),
        "a wrong index": (["mine.svm"], "line 3: Invalid index -1"),
    }[fault]
    write_parquet("parts.parquet/0.parquet")
    write_parquet("parts.parquet/1.parquet", b=[0.0] * N)
    write_parquet()
    os.truncate("mine.parquet", 500)
    Path("mine.svm").write_text("0 1:1\n1 1:2\n0 -1:3\n")
    code, out, err = command("recommend", *arguments, capfd=capfd)
    assert (code, out) == (2, ""), err
    assert words in err
    assert "Traceback" not in err
    assert DataCache(tmp_path / "cache").entries() == []
    assert not list((tmp_path / "cache").glob(".tmp-*"))


def test_a_wrong_call_names_the_function():
    with pytest.raises(TypeError, match=r"^load_csv\(\) missing a required argument: 'target'"):
        load_csv("data.csv")
