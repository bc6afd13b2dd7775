"""Small files that unpack to much: refused before they are in memory."""

import bz2
import gzip
import lzma
import zipfile
from decimal import Decimal

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from kbench import DatasetError
from kbench.tables.arff import read_arff
from kbench.tables.table import to_dataset
from kbench_files._files import load_csv, load_parquet, load_svmlight

LIMIT_MB = 2
ROWS = "0,0,x\n1,0,y\n"


@pytest.fixture(autouse=True)
def low_limit(monkeypatch, tmp_path):
    monkeypatch.setenv("KBENCH_MAX_DATASET_MIB", str(LIMIT_MB))
    monkeypatch.chdir(tmp_path)


def pack(name, text):
    if name.endswith(".zip"):
        with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("data.csv", text)
        return
    opened = {"gz": gzip.open, "bz2": bz2.open, "xz": lzma.open}[name.rpartition(".")[2]]
    with opened(name, "wt") as file:
        file.write(text)


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz", "zip"])
def test_a_packed_table_is_measured_as_it_is_unpacked(ending):
    pack(f"small.csv.{ending}", "a,b,y\n" + ROWS * 20)
    assert load_csv(f"small.csv.{ending}", "y").X.shape == (40, 2)
    pack(f"bomb.csv.{ending}", "a,b,y\n" + ROWS * 200_000)
    with pytest.raises(DatasetError, match="more than the 2 MiB allowed"):
        load_csv(f"bomb.csv.{ending}", "y")


@pytest.mark.parametrize(
    "text", ["x" * 4_000_000, "a,y\n" + "x" * 4_000_000, "a,y\n" + "," * 4_000_000]
)
def test_a_line_without_an_end_is_not_read_to_its_end(text):
    pack("bomb.csv.gz", text)
    with pytest.raises(DatasetError, match="more than the 2 MiB allowed"):
        load_csv("bomb.csv.gz", "y")


def test_a_packed_svmlight_file_is_measured_too():
    pack("bomb.svmlight.gz", "0 1:1\n1 2:1\n" * 500_000)
    with pytest.raises(DatasetError, match="more than the 2 MiB allowed"):
        load_svmlight("bomb.svmlight.gz")


@pytest.mark.parametrize("n_features", [None, 2_000_000_000])
def test_the_columns_of_a_sparse_file_are_counted(tmp_path, n_features):
    last = 3 if n_features else 1_900_000_000
    (tmp_path / "wide.svmlight").write_text(f"0 1:1\n1 2:1 {last}:1\n" * 10)
    with pytest.raises(DatasetError, match="00,000,000 columns need"):
        load_svmlight("wide.svmlight", n_features=n_features)


def write_parquet(**columns):
    pyarrow.parquet.write_table(pyarrow.table(columns), "mine.parquet", store_schema=False)


def test_a_parquet_file_of_few_values_and_many_rows():
    write_parquet(a=np.zeros(200_000), y=["x", "y"] * 100_000)
    with pytest.raises(DatasetError, match="200,000 rows with 2 columns need 3 MiB"):
        load_parquet("mine.parquet", "y")


def test_a_parquet_file_of_one_long_text_in_many_rows():
    words = pyarrow.array(["x" * 10_000])
    codes = pyarrow.array(np.zeros(1000, dtype=np.int32))
    text = pyarrow.DictionaryArray.from_arrays(codes, words)
    write_parquet(a=text, b=np.arange(1000.0), y=["x", "y"] * 500)
    # read block by block, the text is there once
    assert load_parquet("mine.parquet", "y").X.shape == (1000, 2)


def test_ordinary_parquet_files_are_read_as_before():
    write_parquet(a=[1.0, None, 3.0, 4.0], b=["u", None, "v", "u"], y=["x", "y", "x", "y"])
    data = load_parquet("mine.parquet", "y")
    assert data.feature_names == ("a", "b=u", "b=v")
    assert data.X.shape == (4, 3)


def test_decimals_of_a_parquet_file_are_numbers():
    prices = [Decimal("1.50"), None, Decimal("3.25"), Decimal("4.00")]
    write_parquet(price=prices, y=["x", "y", "x", "y"])
    data = load_parquet("mine.parquet", "y")
    assert data.feature_names == ("price",)
    np.testing.assert_array_equal(data.X.ravel(), [1.5, np.nan, 3.25, 4.0])


def test_missing_categories_of_a_sparse_file_are_counted(tmp_path):
    names = ",".join(f"c{i}" for i in range(2000))
    head = f"@relation r\n@attribute a {{{names}}}\n@attribute y {{u,v}}\n@data\n"
    (tmp_path / "bomb.arff").write_text(head + "{0 ?, 1 v}\n{0 ?}\n" * 500)
    table = read_arff(tmp_path / "bomb.arff", "bomb")
    with pytest.raises(DatasetError, match="'a' alone has 2,000 categories"):
        to_dataset(table, "bomb", "y")


def test_an_address_is_never_fetched(tmp_path, monkeypatch):
    # pandas would fetch it, and there is a file of that name after all
    (tmp_path / "http:" / "127.0.0.1:9").mkdir(parents=True)
    (tmp_path / "http:" / "127.0.0.1:9" / "x.csv").write_text("a,y\n" + "1,u\n2,v\n" * 5)
    assert load_csv("http://127.0.0.1:9/x.csv", "y").X.shape == (10, 1)
    for address in (
        "http://127.0.0.1:9/gone.csv",
        "ftp://h/x.csv",
        "file:///etc/passwd",
        "s3://b/k",
    ):
        with pytest.raises(DatasetError, match="No such file"):
            load_csv(address, "y")
        with pytest.raises(DatasetError, match="No such file"):
            load_parquet(address, "y")
