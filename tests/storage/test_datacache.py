"""The cache of canonical datasets: what is kept, what is refused, what is noticed."""

import dataclasses
import errno
import json
import multiprocessing
import os
import shutil
import time

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kbench import Dataset, DatasetError, Ref, Split
from kbench.records import content_checksum
from kbench.storage.datacache import (
    DataCache,
    _cache,
    _entry,
    _form,
    check_dataset,
    duplicate_fraction,
    missing_by_column,
)

FIELDS = (
    *("name", "version", "feature_names", "feature_kinds", "target_names", "source"),
    *("dataset_family", "role", "pairwise"),
)


@pytest.fixture
def cache(tmp_path):
    return DataCache(tmp_path / "cache")


def data(n=40, d=3, seed=0, **fields):
    rng = np.random.default_rng(seed)
    fields = {"name": "some", "X": rng.normal(size=(n, d)), "y": np.arange(n) % 3, **fields}
    return Dataset(**fields)


def full():
    """Make a dataset with every field set."""
    made = data()
    made.X[3, 1] = np.nan
    rows = np.arange(40)
    splits = [
        Split(0, rows[:20], rows[30:], rows[20:30]),
        Split(1, rows[10:], rows[:10]),
    ]
    return dataclasses.replace(
        made,
        version="7",
        feature_names=("a", "b=1", "Größe"),
        feature_kinds=("numeric", "onehot", "numeric"),
        target_names=("x", "y", "z"),
        source="somewhere",
        row_ids=rows[::-1].copy(),
        dataset_family="family",
        role="development",
        splits=splits,
        checksum="",
    )


def assert_equal(one, two):
    for field in FIELDS:
        assert getattr(one, field) == getattr(two, field), field
    if scipy.sparse.issparse(one.X):
        assert two.X.format == "csr"
        np.testing.assert_array_equal(one.X.toarray(), two.X.toarray())
    else:
        np.testing.assert_array_equal(one.X, two.X)
    assert one.X.dtype == two.X.dtype
    np.testing.assert_array_equal(one.y, two.y)
    if one.row_ids is None:
        assert two.row_ids is None
    else:
        np.testing.assert_array_equal(one.row_ids, two.row_ids)
    assert [split.digest for split in one.splits] == [split.digest for split in two.splits]


# -- there and back


def test_everything_comes_back(cache):
    made = full()
    checksum = cache.store(made)
    assert checksum == made.checksum
    assert_equal(made, cache.load(checksum))


@pytest.mark.parametrize("n", [40, 20_000])  # read, and mapped
@pytest.mark.parametrize("kind", ["dense", "sparse", "float32"])
def test_kinds_of_inputs_come_back_read_only(cache, n, kind):
    made = data(n)
    if kind == "sparse":
        made = dataclasses.replace(
            made, X=scipy.sparse.csr_matrix(made.X * (made.X > 0)), checksum=""
        )
    if kind == "float32":
        made = dataclasses.replace(made, X=made.X.astype(np.float32), checksum="")
    loaded = cache.load(cache.store(made))
    assert_equal(made, loaded)
    assert loaded.checksum == content_checksum(loaded)
    values = loaded.X.data if kind == "sparse" else loaded.X
    with pytest.raises(ValueError, match="read-only"):
        values.flat[0] = 1.0
    if kind == "dense":
        assert type(loaded.X) is np.ndarray
        base = loaded.X
        while isinstance(base.base, np.ndarray):
            base = base.base
        assert isinstance(base, np.memmap) == (n == 20_000)


def test_a_pairwise_dataset_comes_back(cache):
    made = data(d=40, pairwise=True)
    assert cache.load(cache.store(made)).pairwise


def test_a_matrix_without_values_comes_back(cache):
    made = data(X=scipy.sparse.csr_matrix((40, 5)))
    assert cache.load(cache.store(made)).X.nnz == 0


def test_sparse_data_in_canonical_form_are_not_copied():
    X = scipy.sparse.random(500, 40, density=0.1, random_state=0, format="csr")
    X.sort_indices()
    assert check_dataset(data(500, X=X)).X is X
    X.indices[:2] = X.indices[1::-1].copy()
    assert check_dataset(data(500, X=X)).X is not X


def test_a_checksum_is_computed_when_it_is_needed(monkeypatch):
    calls = []
    monkeypatch.setattr("kbench.records._data.content_checksum", lambda d: calls.append(d) or "c")
    made = check_dataset(data())
    assert calls == []
    assert (made.checksum, made.checksum, len(calls)) == ("c", "c", 1)
    assert data(checksum="given").checksum == "given"
    with pytest.raises(AttributeError, match="'Dataset' object has no attribute 'other'"):
        made.other  # noqa: B018


def test_equal_content_has_one_name_however_it_is_written(cache):
    X = np.array([[0, 1], [2, 0], [0, 0]])
    y = np.array([0, 1, 1])
    dense = {
        cache.store(Dataset("a", form, y)) for form in (X, X.astype(float), X.astype(bool) * X)
    }
    assert len(dense) == 1
    messy = scipy.sparse.coo_matrix(([1.0, 1.0, 1.0, 0.0], ([0, 1, 1, 2], [1, 0, 0, 1])))
    sparse = {cache.store(Dataset("a", form, y)) for form in (scipy.sparse.csc_matrix(X), messy)}
    assert len(sparse) == 1


@settings(max_examples=25)
@given(
    arrays(
        np.float64,
        st.tuples(st.integers(3, 12), st.integers(1, 5)),
        elements=st.floats(allow_infinity=False),
    )
)
def test_any_finite_matrix_comes_back_bit_by_bit(tmp_path_factory, X):
    cache = DataCache(tmp_path_factory.mktemp("cache"))
    loaded = cache.load(cache.store(Dataset("any", X, np.arange(len(X)) % 2)))
    assert loaded.X.tobytes() == X.tobytes()


# -- what is refused


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"X": np.zeros((3, 2))}, "y must have shape (3,), one value per row of X, got (40,)"),
        ({"X": np.zeros(40)}, "X must have 2 dimensions, got 1"),
        ({"X": np.zeros((40, 0))}, "empty"),
        ({"X": np.full((40, 3), "a", dtype=object)}, "float64 or float32, got object"),
        ({"X": np.zeros((40, 3), dtype=complex)}, "float64 or float32, got complex"),
        ({"y": np.arange(40) % 3 + 1}, "from 1 to 3"),
        ({"y": np.array([0, 2] * 20)}, "0..1, each present"),
        ({"y": np.array([0, -1] * 20)}, "from -1 to 0"),
        ({"y": np.zeros(40, dtype=int)}, "at least 2 classes"),
        ({"y": np.arange(40) % 3 * 1.0}, "dtype float64"),
        ({"feature_names": ("a", "b")}, "feature_names must have 3 entries, got 2"),
        ({"feature_kinds": ("numeric",) * 4}, "feature_kinds must have 3 entries, got 4"),
        ({"feature_kinds": ("numeric", "real", "numeric")}, "'target_encoded'), got ['real']"),
        ({"target_names": ("a", "b")}, "target_names must have 3 entries, got 2"),
        ({"role": "test"}, "'development', got 'test'"),
        ({"row_ids": np.arange(4)}, "row_ids must have shape (40,), got (4,)"),
        ({"pairwise": True}, "a Gram matrix is square"),
        ({"splits": [Split(0, np.arange(9), np.arange(30, 41))]}, "outside 0..39"),
        ({"splits": [Split(0, np.arange(9), np.arange(8, 20))]}, "both in its training and"),
        ({"splits": [Split(0, np.arange(9), np.arange(0))]}, "no training or no test rows"),
        ({"splits": [Split(1, np.arange(9), np.arange(9, 12))]}, "has index 1"),
    ],
)  # fmt: skip
def test_what_is_not_canonical_is_refused(cache, change, why):
    wrong = data()
    for field, value in change.items():
        object.__setattr__(wrong, field, value)
    with pytest.raises(DatasetError) as caught:
        cache.store(wrong)
    assert "dataset 'some'" in str(caught.value)
    assert why in str(caught.value)
    assert cache.entries() == []


@pytest.mark.parametrize("sparse", [False, True])
def test_infinite_values_are_refused_and_missing_ones_kept(cache, sparse):
    made = data(feature_names=("a", "b", "c"))
    made.X[5, 1], made.X[6, 2] = np.inf, np.nan
    if sparse:
        made = dataclasses.replace(made, X=scipy.sparse.csr_matrix(made.X), checksum="")
    with pytest.raises(DatasetError, match=r"infinite values in the column\(s\) b"):
        cache.store(made)
    if sparse:
        made.X.data[np.isinf(made.X.data)] = 1.0
    else:
        made.X[5, 1] = 1.0
    facts = cache.describe(cache.store(made))
    assert (facts.n_missing, facts.missing) == (1, {"c": 1})


def test_missing_values_in_a_gram_matrix_are_refused(cache):
    made = data(d=40, pairwise=True)
    made.X[0, 1] = np.nan
    with pytest.raises(DatasetError, match="Gram"):
        cache.store(made)


def test_a_cache_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DatasetError, match="KBENCH_CACHE_DIR"):
        DataCache(tmp_path / "file" / "cache").store(data())


@pytest.mark.parametrize("at", ["np.save", "os.fsync"])
def test_a_disk_that_fills_while_an_entry_is_written(cache, monkeypatch, at):
    def fail(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(*{"np.save": (np, "save"), "os.fsync": (os, "fsync")}[at], fail)
        with pytest.raises(DatasetError, match="No space left on device; make room"):
            cache.store(data())
    assert list(cache.root.iterdir()) == []
    assert cache.store(data())


def test_numpy_does_not_say_that_the_disk_is_full(cache, monkeypatch):
    def half(*_, **__):
        raise OSError("1200000 requested and 393200 written")

    with monkeypatch.context() as patch:
        patch.setattr(np, "save", half)
        with pytest.raises(DatasetError, match="No space left on device; make room"):
            cache.store(data())
    assert list(cache.root.iterdir()) == []


# -- descriptions


def test_describe_reads_no_arrays(cache):
    checksum = cache.store(full())
    for file in (cache.root / checksum).glob("*.npy"):
        file.unlink()
    facts = cache.describe(checksum)
    assert facts.checksum == checksum
    assert (facts.n_samples, facts.n_features, facts.n_classes) == (40, 3, 3)
    assert facts.class_counts == (14, 13, 13)
    assert (facts.dataset_family, facts.role, facts.source) == (
        "family",
        "development",
        "somewhere",
    )
    assert (facts.sparse, facts.n_splits, facts.missing) == (False, 2, {"b": 1})
    json.dumps(dataclasses.asdict(facts))


def test_a_missing_value_spread_over_indicators_counts_once(cache):
    made = data(d=5, feature_names=("a", "c=x", "c=y", "c=z", "d"),
                feature_kinds=("numeric", "onehot", "onehot", "onehot", "numeric"))  # fmt: skip
    made.X[[3, 7], 1:4] = np.nan
    made.X[3, 4] = np.nan
    facts = cache.describe(cache.store(made))
    assert (facts.n_missing, facts.missing) == (3, {"c": 2, "d": 1})


def test_entries_are_sorted_by_name(cache):
    for name in ("b", "a"):
        cache.store(data(name=name, seed=ord(name)))
    assert [entry.name for entry in cache.entries()] == ["a", "b"]


@pytest.mark.parametrize("as_sparse", [False, True])
def test_duplicate_fraction_of_known_rows(as_sparse):
    X = np.array([[1.0, 2], [0.0, 3], [1, 2], [2, 1], [-0.0, 3], [0, 0]])
    form = scipy.sparse.csr_matrix(X) if as_sparse else X
    assert duplicate_fraction(form) == 4 / 6
    assert duplicate_fraction(form[[3, 5]]) == 0
    assert duplicate_fraction(form[:0]) == 0


@given(
    arrays(
        np.float64,
        st.tuples(st.integers(1, 15), st.integers(1, 3)),
        elements=st.sampled_from([0.0, -0.0, 1.0, 2.0, np.nan]),
    )
)
def test_duplicate_fraction_equals_counting(X):
    rows = [tuple("nan" if value != value else value for value in row) for row in X.tolist()]
    counted = sum(rows.count(row) > 1 for row in rows) / len(rows)
    assert duplicate_fraction(X) == pytest.approx(counted)


def test_checks_go_through_large_data_in_pieces(monkeypatch):
    monkeypatch.setattr(_form, "CHUNK", 7)
    made = data(100, 4)
    made.X[::9, 2] = np.nan
    made.X[50] = made.X[98]
    assert missing_by_column(made.X).tolist() == [0, 0, 12, 0]
    assert duplicate_fraction(made.X) == 2 / 100
    made.X[98, 3] = -np.inf
    with pytest.raises(DatasetError, match="x3"):
        check_dataset(made)


# -- the manifest


def test_lookup_needs_source_parameters_and_code(cache):
    checksum = cache.store(data())
    cache.remember("s", {"n": 1, "names": ("a", "b")}, "code", checksum)
    assert cache.lookup("s", {"names": ["a", "b"], "n": 1}, "code") == checksum
    assert cache.lookup("t", {"n": 1, "names": ("a", "b")}, "code") is None
    assert cache.lookup("s", {"n": 2, "names": ("a", "b")}, "code") is None
    assert cache.lookup("s", {"n": 1, "names": ("a", "b")}, "other") is None


@pytest.mark.parametrize(
    ("one", "other"),
    [({"n": 1}, {"n": True}), ({"n": 1}, {"n": "1"}), ({"n": None}, {}), ({"n": 0.5}, {"n": 0.25}),
     ({"k": Ref("a", {"x": 1})}, {"k": Ref("a", {"x": 2})})],
)  # fmt: skip
def test_different_parameters_are_told_apart(cache, one, other):
    cache.remember("s", one, "code", cache.store(data()))
    assert cache.lookup("s", one, "code")
    assert cache.lookup("s", other, "code") is None


def test_the_source_keeps_its_own_name_for_shared_content(cache):
    first = cache.add("other", {}, "code", data(name="one", dataset_family="g1"))
    second = cache.add("s", {}, "code", data(name="two", dataset_family="g2", source="there"))
    assert first == second
    found = cache.recall("s", {}, "code")
    assert (found.name, found.dataset_family, found.source) == ("two", "g2", "there")
    assert (found.checksum, found.n_samples) == (first, 40)
    assert cache.recall("other", {}, "code").name == "one"
    cache.remember("third", {}, "code", first, dataset_family="g3")
    assert cache.recall("third", {}, "code").dataset_family == "g3"
    assert cache.recall("fourth", {}, "code") is None


def test_the_source_keeps_its_own_kinds_of_columns_for_shared_content(cache):
    """They are not part of the content, and decide how missing values are imputed."""
    first, second = ("numeric",) * 3, ("numeric", "onehot", "numeric")
    checksum = cache.add("s", {}, "code", data(feature_kinds=first))
    assert cache.add("s", {}, "edited", data(feature_kinds=second)) == checksum
    assert cache.recall("s", {}, "code").feature_kinds == first
    assert cache.recall("s", {}, "edited").feature_kinds == second
    assert cache.load(checksum).feature_kinds == first
    found = cache.load(checksum, cache.recall("s", {}, "edited").feature_kinds)
    assert (found.feature_kinds, found.checksum) == (second, checksum)


def test_the_source_keeps_its_own_names_of_columns_and_classes_for_shared_content(cache):
    """A file of the same numbers must not get the classes of another file, or predict them."""
    names = {"feature_names": ("x", "y", "z"), "target_names": ("no", "so", "yes")}
    checksum = cache.add("s", {}, "code", data())
    assert cache.add("s", {}, "edited", data(**names)) == checksum
    mine, first = cache.recall("s", {}, "edited"), cache.recall("s", {}, "code")
    assert (mine.feature_names, mine.target_names) == (("x", "y", "z"), ("no", "so", "yes"))
    assert cache.load_for(mine).target_names == ("no", "so", "yes")
    assert cache.load_for(mine).feature_names == ("x", "y", "z")
    assert cache.load_for(first).target_names == first.target_names == data().target_names
    assert cache.load_for(mine).checksum == checksum


def test_a_changed_file_is_not_found(cache, tmp_path, monkeypatch):
    file = tmp_path / "data.csv"
    file.write_text("a")
    cache.remember("csv", {"path": str(file)}, "code", cache.store(data()))
    assert cache.lookup("csv", {"path": str(file)}, "code")
    monkeypatch.chdir(tmp_path)
    assert cache.lookup("csv", {"path": str(tmp_path / "data.csv")}, "code")
    file.write_text("ab")
    assert cache.lookup("csv", {"path": str(file)}, "code") is None
    file.unlink()
    assert cache.lookup("csv", {"path": str(file)}, "code") is None


@pytest.mark.parametrize("path", ["parts", "parts/*.parquet"])
def test_a_folder_in_which_a_file_has_changed_is_not_found(cache, tmp_path, path):
    (tmp_path / "parts").mkdir()
    file, params = tmp_path / "parts" / "1.parquet", {"path": str(tmp_path / path)}
    file.write_text("old")
    cache.remember("parquet", params, "code", cache.store(data()))
    (tmp_path / "parts" / "_SUCCESS").write_text("")
    assert cache.lookup("parquet", params, "code")
    file.write_text("new")  # which changes nothing of the folder
    assert cache.lookup("parquet", params, "code") is None
    cache.remember("parquet", params, "code", cache.store(data()))
    (tmp_path / "parts" / "2.parquet").write_text("more")
    assert cache.lookup("parquet", params, "code") is None


@pytest.mark.parametrize("edit", ["in place", "replaced"])
def test_a_file_that_was_edited_with_its_old_time_and_size_is_not_found(cache, tmp_path, edit):
    file, params = tmp_path / "data.csv", {"path": str(tmp_path / "data.csv")}
    file.write_text("old")
    cache.remember("csv", params, "code", cache.store(data()))
    assert cache.lookup("csv", params, "code")
    times, where = file.stat(), file
    if edit == "replaced":
        where = tmp_path / "other.csv"
    where.write_text("new")
    os.utime(where, ns=(times.st_atime_ns, times.st_mtime_ns))
    where.rename(file)
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (3, times.st_mtime_ns)
    assert cache.lookup("csv", params, "code") is None


def test_a_copied_cache_or_a_restored_file_is_read_again_and_gives_the_same(cache, tmp_path):
    file, params = tmp_path / "data.csv", {"path": str(tmp_path / "data.csv")}
    file.write_text("old")
    checksum = cache.add("csv", params, "code", data())
    shutil.copytree(cache.root, tmp_path / "copy")
    copied = DataCache(tmp_path / "copy")
    assert copied.lookup("csv", params, "code") == checksum
    assert copied.load(checksum).checksum == checksum
    shutil.copy2(file, tmp_path / "backup")
    (tmp_path / "backup").rename(file)
    assert cache.lookup("csv", params, "code") is None
    assert cache.add("csv", params, "code", data()) == checksum
    assert cache.lookup("csv", params, "code") == checksum


def test_a_file_that_changes_while_it_is_read_is_not_taken_for_what_was_read(cache, tmp_path):
    file, params = tmp_path / "data.csv", {"path": str(tmp_path / "data.csv")}
    file.write_text("old")
    before = cache.origin("csv", params, "code")
    file.write_text("newer")
    cache.add("csv", params, "code", data(), before)
    assert cache.lookup("csv", params, "code") is None


def test_a_damaged_manifest_is_as_good_as_none(cache):
    cache.remember("s", {}, "code", cache.store(data()))
    for file in (cache.root / "manifest").iterdir():
        file.write_text("{")
    assert cache.lookup("s", {}, "code") is None


# -- damage


def flip(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    times = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # as a disk does it: unnoticed


@pytest.mark.parametrize("file", ["X.npy", "y.npy", "row_ids.npy", "splits_rows.npy", "meta.json"])
@pytest.mark.parametrize("place", [3, -5])
def test_verify_finds_a_flipped_byte_anywhere(cache, file, place):
    checksum = cache.store(full())
    other = cache.store(data(seed=1))
    assert cache.verify() == []
    flip(cache.root / checksum / file, place)
    (problem,) = cache.verify()
    assert file in problem
    assert checksum[:12] in problem
    assert cache.verify() == []  # it was moved aside
    with pytest.raises(DatasetError, match="not in the cache"):
        cache.load(checksum)
    assert cache.load(other).name == "some"
    assert len(list((cache.root / "damaged").iterdir())) == 1


def test_load_reads_all_bytes_once_a_day(cache, monkeypatch):
    checksum = cache.store(data())
    flip(cache.root / checksum / "X.npy", -5)
    _entry.stamp(cache.root, checksum)  # a disk changes no time, which no test can set back
    cache.load(checksum)  # trusted: it was written a moment ago
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + _entry.TRUST_S + 1)
    with pytest.raises(DatasetError, match=r"X\.npy has changed"):
        cache.load(checksum)


def test_load_notices_an_edited_file_with_its_old_time_at_once(cache):
    checksum = cache.store(data())
    flip(cache.root / checksum / "X.npy", -5)
    with pytest.raises(DatasetError, match=r"X\.npy has changed"):
        cache.load(checksum)


def test_load_notices_an_edited_file_at_once(cache):
    checksum = cache.store(data())
    cache.load(checksum)
    file = cache.root / checksum / "y.npy"
    content = bytearray(file.read_bytes())
    content[-8] ^= 1
    file.write_bytes(content)
    with pytest.raises(DatasetError, match=r"y\.npy has changed"):
        cache.load(checksum)


@pytest.mark.parametrize("damage", ["cut", "gone", "meta gone", "folder gone"])
def test_damaged_entries_are_stored_anew(cache, damage):
    made = full()
    checksum = cache.store(made)
    cache.remember("s", {}, "code", checksum)
    folder = cache.root / checksum
    if damage == "cut":
        os.truncate(folder / "X.npy", 100)
    elif damage == "gone":
        (folder / "X.npy").unlink()
    elif damage == "meta gone":
        (folder / "meta.json").unlink()
    else:
        folder.rename(cache.root / "elsewhere")
    with pytest.raises(DatasetError):
        cache.load(checksum)
    assert cache.lookup("s", {}, "code") is None
    assert cache.store(made) == checksum
    assert_equal(cache.load(checksum), made)


def test_storing_again_mends_a_damaged_entry(cache):
    made = full()
    checksum = cache.store(made)
    flip(cache.root / checksum / "X.npy", -5)
    cache.store(made)
    assert cache.verify() == []
    assert_equal(cache.load(checksum), made)


@pytest.mark.parametrize("name", ["", "../x", "A" * 64, "0" * 63, "0" * 64])
def test_only_checksums_name_entries(cache, name):
    with pytest.raises(DatasetError):
        cache.load(name)


def test_pickled_arrays_are_not_read(cache):
    checksum = cache.store(data())
    np.save(cache.root / checksum / "y.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(DatasetError):
        cache.load(checksum)


# -- housekeeping


def test_clear_leaves_what_is_not_its_own(cache):
    cache.remember("s", {}, "code", cache.store(data()))
    (cache.root / "my notes").mkdir()
    (cache.root / "my notes" / "x").write_text("x")
    (cache.root / "readme").write_text("x")
    assert cache.clear() > 1000
    assert {path.name for path in cache.root.iterdir()} == {"my notes", "readme"}
    assert cache.entries() == []
    assert DataCache(cache.root / "none").clear() == 0


def test_a_crash_while_writing_leaves_nothing_to_be_found(cache, monkeypatch):
    def crash(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_cache.files, "rename_folder", crash)
        with pytest.raises(KeyboardInterrupt):
            cache.store(data())
    assert cache.entries() == []
    left = cache.root / ".tmp-1-killed"
    left.mkdir()
    cache.store(data())
    assert left.exists()
    os.utime(left, (0, 0))
    cache.store(data(seed=1))
    assert not left.exists()


def test_the_folder_is_found_by_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("KBENCH_CACHE_DIR", str(tmp_path / "a"))
    assert DataCache().root == tmp_path / "a"
    monkeypatch.delenv("KBENCH_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "b"))
    assert DataCache().root == tmp_path / "b" / "kbench" / "data"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "c"))
    assert DataCache().root == tmp_path / "c" / ".cache" / "kbench" / "data"


def _store(root, barrier, results):
    cache = DataCache(root)
    barrier.wait()
    checksum = cache.store(full())
    cache.remember("s", {}, "code", checksum)
    results.put((checksum, cache.load(checksum).name))


def test_several_processes_store_the_same_at_once(tmp_path):
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier(4), context.Queue()
    workers = [context.Process(target=_store, args=(tmp_path, barrier, results)) for _ in range(4)]
    for worker in workers:
        worker.start()
    found = {results.get(timeout=30) for _ in workers}
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert len(found) == 1
    cache = DataCache(tmp_path)
    assert cache.verify() == []
    assert len(cache.entries()) == 1
    assert not list(tmp_path.glob(".tmp-*"))
    assert cache.lookup("s", {}, "code")


def test_an_entry_of_earlier_versions_is_of_classification(cache):
    checksum = cache.store(data())
    path = cache.root / checksum / "meta.json"
    meta = json.loads(path.read_text())
    del meta["sha256"], meta["task"]
    path.write_text(json.dumps({**meta, "sha256": _entry._meta_digest(meta)}))
    assert cache.load(checksum).task == cache.inputs(checksum).task == "classification"
