"""A cache that several users share, and files that somebody has planted in it."""

import contextlib
import json
import os
import shutil
import signal
import stat
import tempfile
from pathlib import Path

import numpy as np
import pytest

from kbench import Dataset, DatasetError
from kbench.storage.datacache import DataCache

NOBODY = 65534
SOURCE = ("my-source", {"n": 1}, "code")


@pytest.fixture
def folder():
    # not tmp_path, which lies in folders that other users may not enter
    made = Path(tempfile.mkdtemp())
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture(autouse=True)
def no_hang():
    """Fail where a pipe is waited for."""

    def fail(number, frame):
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def umask(mask):
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@contextlib.contextmanager
def another_user(*forbidden):
    """Be somebody who may neither read nor write these folders."""
    if os.geteuid() == 0:
        os.seteuid(NOBODY)
        try:
            yield
        finally:
            os.seteuid(0)
        return
    modes = [path.stat().st_mode for path in forbidden]
    for path in forbidden:
        path.chmod(0)
    try:
        yield
    finally:
        for path, mode in zip(forbidden, modes, strict=True):
            path.chmod(mode)


def data(seed=0):
    X = np.random.default_rng(seed).normal(size=(40, 3))
    return Dataset(name="some", X=X, y=np.arange(40) % 3)


def permissions(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mask", [0o077, 0o022])
def test_what_is_stored_in_a_shared_folder_is_shared_whatever_the_umask(folder, mask):
    root = folder / "cache"
    root.mkdir()
    root.chmod(0o2775)
    with umask(mask):
        DataCache(root).add(*SOURCE, data())
    made = list(root.rglob("*"))
    assert {"meta.json", "X.npy", "manifest", "verified"} <= {path.name for path in made}
    for path in made:
        assert permissions(path) == (0o2775 if path.is_dir() else 0o664), path


def test_in_any_other_folder_the_umask_decides(folder):
    with umask(0o077):
        DataCache(folder / "cache").add(*SOURCE, data())
    for path in (folder / "cache").rglob("*"):
        assert permissions(path) == (0o700 if path.is_dir() else 0o600), path


def test_an_entry_that_may_not_be_read_is_not_taken_for_a_damaged_one(folder):
    cache = DataCache(folder / "cache")
    with umask(0o022):
        cache.root.mkdir()
    with umask(0o077):
        checksum = cache.add(*SOURCE, data())
    with another_user(cache.root / checksum, cache.root / "manifest"):
        for ask in (cache.load, cache.describe, cache.inputs):
            with pytest.raises(DatasetError, match=r"Permission denied.*KBENCH_CACHE_DIR"):
                ask(checksum)
        with pytest.raises(DatasetError, match="Permission denied"):
            cache.store(data())
        (problem,) = cache.verify()
        assert "Permission denied" in problem
        assert cache.lookup(*SOURCE) is None
    assert cache.verify() == []
    assert cache.load(checksum).name == "some"


def test_a_cache_that_may_be_read_only_says_so(folder):
    cache = DataCache(folder / "cache")
    with umask(0o022):
        checksum = cache.add(*SOURCE, data())
    with another_user(cache.root / "manifest"):
        assert cache.load(checksum).name == "some"
        with pytest.raises(DatasetError, match=r"cannot be written .*KBENCH_CACHE_DIR"):
            cache.add("another-source", {}, "code", data())


def test_a_folder_that_may_not_be_entered_is_one_message(folder):
    (folder / "closed").mkdir(mode=0o700)
    cache = DataCache(folder / "closed" / "cache")
    with another_user(folder / "closed"):
        for ask in (cache.entries, cache.verify, cache.clear, lambda: cache.add(*SOURCE, data())):
            with pytest.raises(DatasetError, match="Permission denied"):
                ask()


# -- planted files


def planted(path, kind, secret):
    if kind == "link":
        path.symlink_to(secret)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "nested":
        path.write_text("[" * 100_000)
    else:
        path.mkdir()


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret"
    path.write_text("do not touch")
    return path


KINDS = ["link", "pipe", "device", "folder", "nested"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["meta.json", "X.npy"])
def test_planted_files_are_damage(tmp_path, secret, name, kind):
    cache = DataCache(tmp_path / "cache")
    checksum = cache.add(*SOURCE, data())
    (cache.root / checksum / name).unlink()
    planted(cache.root / checksum / name, kind, secret)
    with pytest.raises(DatasetError):
        cache.load(checksum)
    assert cache.lookup(*SOURCE) is None
    assert cache.add(*SOURCE, data()) == checksum
    assert cache.load(checksum).X.shape == (40, 3)
    assert secret.read_text() == "do not touch"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", ["manifest", "verified"])
def test_planted_records_are_as_good_as_none(tmp_path, secret, where, kind):
    cache = DataCache(tmp_path / "cache")
    checksum = cache.add(*SOURCE, data())
    (record,) = (cache.root / where).iterdir()
    record.unlink()
    planted(record, kind, secret)
    if kind == "folder":
        return
    assert cache.lookup(*SOURCE) == (None if where == "manifest" else checksum)
    assert cache.load(checksum).name == "some"
    assert cache.add(*SOURCE, data()) == checksum
    assert cache.lookup(*SOURCE) == checksum
    assert not record.is_symlink()
    assert secret.read_text() == "do not touch"


@pytest.mark.parametrize("name", ["manifest", "verified", "damaged"])
def test_nothing_is_written_through_a_planted_folder(tmp_path, name):
    cache, elsewhere = DataCache(tmp_path / "cache"), tmp_path / "elsewhere"
    cache.root.mkdir()
    elsewhere.mkdir()
    (cache.root / name).symlink_to(elsewhere)
    with contextlib.suppress(DatasetError):
        checksum = cache.add(*SOURCE, data())
        (cache.root / checksum / "X.npy").write_bytes(b"damaged")
        cache.load(checksum)
    cache.verify()
    cache.clear()
    assert list(elsewhere.iterdir()) == []
    assert elsewhere.is_dir()


def test_an_entry_that_is_a_link_is_not_followed(tmp_path):
    one, other = DataCache(tmp_path / "one"), DataCache(tmp_path / "other")
    checksum = one.store(data())
    other.root.mkdir()
    (other.root / checksum).symlink_to(one.root / checksum)
    with pytest.raises(DatasetError, match="link"):
        other.load(checksum)
    other.clear()
    assert one.load(checksum).name == "some"


def test_a_description_names_only_the_files_of_an_entry(tmp_path, secret):
    from kbench.storage.datacache._entry import _meta_digest

    cache = DataCache(tmp_path / "cache")
    checksum = cache.store(data())
    path = cache.root / checksum / "meta.json"
    meta = json.loads(path.read_text())
    del meta["sha256"]
    meta["files"][f"../../{secret.name}"] = meta["files"]["X.npy"]
    meta["sha256"] = _meta_digest(meta)
    path.write_text(json.dumps(meta))
    with pytest.raises(DatasetError, match=r"meta\.json is damaged"):
        cache.load(checksum)
