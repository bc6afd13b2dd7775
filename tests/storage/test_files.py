"""Files that are there as a whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from kbench.storage import files as durable


def test_a_file_is_replaced_and_its_folder_made(tmp_path):
    file = tmp_path / "new" / "folder" / "file"
    durable.write_file(file, b"old")
    durable.write_file(file, b"new", mode=0o600)
    assert file.read_bytes() == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["file"]


def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    file = tmp_path / "file"
    durable.write_file(file, b"old")

    def fail(handle):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        durable.write_file(file, b"new")
    assert file.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_file_and_its_name_are_on_the_disk(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_ino))
    durable.write_file(tmp_path / "file", b"data")
    assert synced == [(tmp_path / "file").stat().st_ino, tmp_path.stat().st_ino]


def test_a_folder_takes_no_name_that_is_taken(tmp_path):
    new, taken = tmp_path / "new", tmp_path / "taken"
    new.mkdir()
    taken.mkdir()
    (taken / "file").touch()
    with pytest.raises(FileExistsError):
        durable.rename_folder(new, taken)
    durable.rename_folder(new, tmp_path / "free")
    assert (tmp_path / "free").is_dir()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_a_file_that_tells_no_size_is_read_up_to_the_limit():
    assert durable.read_file(Path("/proc/self/status"), 1 << 20).startswith(b"Name:")
    with pytest.raises(OSError, match="larger than 100 bytes"):
        durable.read_file(Path("/proc/self/status"), 100)
