"""Files that are read block by block give what they give in one block."""

import numpy as np
import pandas
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbench import DatasetError
from kbench.storage.datacache import DataCache
from kbench.tables import arff, limits
from kbench.tables.limits import spilling_to
from kbench_files import _csv, _svmlight, _typed
from kbench_files._files import load_arff, load_csv, load_parquet, load_svmlight

CELLS = {
    "integers": st.integers(-3, 5).map(str),
    "large integers": st.sampled_from([2**53 + 1, 2**62 + 1, -(2**62) - 1]).map(str),
    "integers beyond int64": st.sampled_from(["9223372036854775808", "18446744073709551615"]),
    "fractions": st.floats(-1e3, 1e3, width=32).map(repr),
    "truth values": st.sampled_from(["True", "False", "true"]),
    "texts": st.sampled_from(["a", "b c", "Größe", "1x", "1e"]),
    "numbers written in several ways": st.sampled_from(["1", "1.0", "01", "+1"]),
    "nothing": st.sampled_from(["", "NA", "?"]),
}


@st.composite
def columns(draw, n):
    """Draw a column whose cells may be of another kind after some row, or now and then."""
    first, then = (draw(st.sampled_from(sorted(CELLS))) for _ in range(2))
    change = draw(st.integers(0, n))
    cells = [draw(CELLS[first if row < change else then]) for row in range(n)]
    for row in draw(st.lists(st.integers(0, n - 1), max_size=2)):
        cells[row] = draw(CELLS[draw(st.sampled_from(sorted(CELLS)))])
    return cells


@st.composite
def csv_files(draw):
    n = draw(st.integers(2, 24))
    table = [draw(columns(n)) for _ in range(draw(st.integers(1, 3)))]
    table.append(draw(st.one_of(columns(n), st.just([["no", "yes"][i % 2] for i in range(n)]))))
    header = [*(f"c{j}" for j in range(len(table) - 1)), "y"]
    return "\n".join(",".join(row) for row in [header, *zip(*table, strict=True)]) + "\n"


def outcome(load, *args, **params):
    """Return all that decides a number, or the message."""
    try:
        data = load(*args, **params)
    except DatasetError as error:
        return str(error)
    ids = None if data.row_ids is None else data.row_ids.tolist()
    names = (data.feature_names, data.feature_kinds, data.target_names)
    return data.checksum, *names, data.task, data.X.dtype, ids


@settings(max_examples=40)
@given(csv_files(), st.booleans())
def test_csv_files_do_not_depend_on_blocks(tmp_path_factory, text, is_nominal):
    file = tmp_path_factory.mktemp("csv") / "mine.csv"
    file.write_text(text)
    nominal = ["c0"] if is_nominal else []
    whole = outcome(load_csv, str(file), "y", categorical=nominal)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_csv, "block_rows", lambda _: 7)
        assert outcome(load_csv, str(file), "y", categorical=nominal) == whole


def test_labels_may_begin_after_blocks_without_any(tmp_path, monkeypatch):
    file = tmp_path / "late.csv"
    file.write_text("x,y\n" + "1,\n" * 5 + "2,a\n3,b\n4,\n5,\n6,\n")
    expected = outcome(load_csv, str(file), "y")
    monkeypatch.setattr(_csv, "block_rows", lambda n_columns: 3)
    assert outcome(load_csv, str(file), "y") == expected
    assert expected[-1] == [5, 6]


def with_holes(values, type_=None):
    return st.lists(st.one_of(values, st.none()), min_size=12, max_size=12).map(
        lambda cells: pyarrow.array(cells, type=type_)
    )


ARROWS = st.one_of(
    with_holes(st.integers(-9, 9), pyarrow.int64()),
    with_holes(st.integers(0, 9), pyarrow.uint8()),
    with_holes(st.floats(-9, 9, width=32), pyarrow.float32()),
    with_holes(st.floats(width=32, allow_infinity=False), pyarrow.float64()),
    with_holes(st.booleans()),
    with_holes(st.sampled_from(["a", "b", "Größe"])),
    with_holes(st.sampled_from([b"a", b"b"]), pyarrow.binary()),
    with_holes(st.sampled_from(["q", "p"])).map(lambda column: column.dictionary_encode()),
    with_holes(st.decimals(0, 9, places=3), pyarrow.decimal128(8, 3)),
    with_holes(st.dates(), pyarrow.date32()),
    st.just(pyarrow.nulls(12)),
)


@settings(max_examples=40)
@given(
    st.lists(ARROWS, min_size=1, max_size=3),
    ARROWS,
    st.booleans(),
    st.sampled_from([1, 5, 12]),
    st.booleans(),
)
def test_parquet_files_do_not_depend_on_blocks(
    tmp_path_factory, features, target, is_nominal, group, by_pandas
):
    file = tmp_path_factory.mktemp("parquet") / "mine.parquet"
    table = pyarrow.table({**{f"c{j}": column for j, column in enumerate(features)}, "y": target})
    if by_pandas:
        frame = table.to_pandas().convert_dtypes(dtype_backend="numpy_nullable")
        frame.index = pandas.Index([f"r{i}" for i in range(12)], name="index")
        frame.to_parquet(file, row_group_size=group)
    else:
        pyarrow.parquet.write_table(table, file, row_group_size=group)
    nominal = ["c0"] if is_nominal else []
    whole = outcome(load_parquet, str(file), "y", categorical=nominal)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_typed, "block_rows", lambda _: 7)
        assert outcome(load_parquet, str(file), "y", categorical=nominal) == whole


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_arff_files_do_not_depend_on_blocks(tmp_path, monkeypatch, task):
    rng = np.random.default_rng(0)
    lines = ["@attribute a numeric", "@attribute 'b c' {x,'y z'}", "@attribute w real"]
    lines += ["@attribute note string", "@attribute y integer", "@data"]
    for i in range(300):
        b = ("x", "?", "'y z'" if i > 200 else "x")[i % 3]
        a = "?" if i % 7 == 0 else repr(float(rng.normal()))
        lines += [f"{a},{b},{i % 5 + 1},text{i},{i % 4}", *(["% hm"] if i == 250 else [])]
    file = tmp_path / "mine.arff"
    file.write_text("\n".join(lines) + "\n")
    given = {"target": "y", "drop": ["note"], "weight": "w", "task": task}
    whole = load_arff(str(file), **given)
    monkeypatch.setattr(arff, "VALUES", 200)
    monkeypatch.setattr(limits, "SPILL", 1000)
    cache = DataCache(tmp_path / "cache")
    with cache.scratch("mine") as scratch, spilling_to(scratch):
        data = load_arff(str(file), **given)
        assert len(list(cache.root.glob(".tmp-*/*.npy"))) == 2  # the records, and the inputs
        assert outcome(lambda: data) == outcome(lambda: whole)
        np.testing.assert_array_equal(data.sample_weight, whole.sample_weight)
        assert cache.store(data) == whole.checksum
    assert not list(cache.root.glob(".tmp-*"))


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["0", "1", "nan"]),
            st.lists(st.integers(0, 9), unique=True).map(sorted),
            st.sampled_from(["0", "1.5", "nan"]),
            st.sampled_from(["", "\n", " # a comment", "\n# a comment"]),
        ),
        min_size=1,
        max_size=15,
    ),
    st.integers(0, 1),
)
def test_svmlight_files_do_not_depend_on_blocks(tmp_path_factory, rows, base):
    from sklearn.datasets import load_svmlight_file

    file = tmp_path_factory.mktemp("svmlight") / "mine.svm"
    lines = [
        f"{label} " + " ".join(f"{j + base}:{value}" for j in indices) + end
        for label, indices, value, end in rows
    ]
    file.write_text("\n".join(lines) + "\n")
    whole = outcome(load_svmlight, str(file))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_svmlight, "BLOCK", 1)
        assert outcome(load_svmlight, str(file)) == whole
    if not isinstance(whole, str):
        X, y = load_svmlight_file(str(file))
        data = load_svmlight(str(file))
        np.testing.assert_array_equal(data.X.toarray(), X[~np.isnan(y)].toarray())


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (["float32"], "float32"),
        (["float32", "int16", "uint8"], "float32"),
        (["float16"], "float32"),
        (["float32", "int32"], "float64"),
        (["float32", "float64"], "float64"),
        (["int8"], "float64"),
    ],
)
def test_parquet_columns_are_stored_in_a_type_that_holds_them(tmp_path, types, expected):
    table = {f"c{j}": np.arange(6).astype(kind) for j, kind in enumerate(types)}
    table["text"] = ["a", "b"] * 3
    table["y"] = np.arange(6.0) + 0.5
    pyarrow.parquet.write_table(pyarrow.table(table), tmp_path / "mine.parquet")
    data = load_parquet(str(tmp_path / "mine.parquet"), "y")
    assert data.X.dtype == expected
    assert data.y.dtype == np.float64
    np.testing.assert_array_equal(data.X[:, 0], np.arange(6))


def write_parts(folder, *tables):
    folder.mkdir(parents=True)
    for number, table in enumerate(tables):
        pyarrow.parquet.write_table(pyarrow.table(table), folder / f"part-{number}.parquet")


def test_several_parquet_files_are_one_table(tmp_path):
    parts = tmp_path / "parts"
    one = {"a": [1, 2, 3], "t": ["x", "y", "x"], "e": [None] * 3, "y": ["u", "v", "u"]}
    two = {"y": ["v", "w"], "t": ["z", None], "a": [0.5, None], "e": [4.0, 5.0]}
    write_parts(parts, one, two)
    (parts / "_SUCCESS").write_text("")
    (parts / ".part.crc").write_text("x")
    whole = load_parquet(str(parts), "y")
    assert whole.name == "parts"
    assert whole.feature_names == ("a", "t=x", "t=y", "t=z", "e")
    assert whole.target_names == ("u", "v", "w")
    np.testing.assert_array_equal(whole.X[:, 0], [1, 2, 3, 0.5, np.nan])
    np.testing.assert_array_equal(whole.X[:, 4], [np.nan, np.nan, np.nan, 4, 5])
    pattern = load_parquet(str(parts / "part-?.parquet"), "y")
    assert (pattern.checksum, pattern.name) == (whole.checksum, "parts")
    one_file = load_parquet(str(parts / "part-0.parquet"), "y", drop=["e"])
    assert one_file.X.shape == (3, 3)


def test_dictionaries_of_several_files_are_joined_in_their_order(tmp_path):
    kinds = [pyarrow.array(values).dictionary_encode() for values in (["b", "c"], ["c", "a"])]
    write_parts(tmp_path / "p", *({"k": kind, "y": ["u", "v"]} for kind in kinds))
    data = load_parquet(str(tmp_path / "p"), "y")
    assert data.feature_names == ("k=b", "k=c", "k=a")
    assert data.X.tolist() == [[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]]


def test_a_column_of_timestamps_is_no_text_and_the_message_says_what_to_do(tmp_path):
    path = tmp_path / "times.parquet"
    when = pandas.date_range("2024-01-01", periods=300, freq="h")
    frame = pandas.DataFrame({"when": when, "a": np.arange(300.0), "y": np.arange(300) % 2})
    frame.to_parquet(path)
    with pytest.raises(DatasetError) as raised:
        load_parquet(path, target="y")
    message = str(raised.value)
    assert "dates cannot be features as they are: 'when'" in message
    assert "`date=['when=ISO8601']`" in message
    read = load_parquet(path, target="y", date_formats=["when=ISO8601"])
    assert read.feature_names == ("when", "a")


def test_a_byte_that_changed_in_a_parquet_page_with_a_checksum_is_noticed(tmp_path):
    table = pyarrow.table({"a": np.linspace(0, 1, 5000), "y": np.arange(5000) % 2})
    path = tmp_path / "mine.parquet"
    pyarrow.parquet.write_table(
        table, path, write_page_checksum=True, use_dictionary=False, compression="none"
    )
    stored = bytearray(path.read_bytes())
    stored[20_000] ^= 0xFF
    path.write_bytes(stored)
    with pytest.raises(DatasetError, match="CRC checksum verification failed"):
        load_parquet(str(path), "y")
