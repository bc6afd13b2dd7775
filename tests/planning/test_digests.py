"""Digests are kept by the states of files, and never where a state can lie."""

import hashlib
import json
import mmap
import os
import zipfile
from pathlib import Path

import pytest

from kbench.planning import digests
from kbench.planning.digests import Digests
from kbench.storage import files

IN_MEMORY = Path("/dev/shm")


@pytest.fixture
def settled(monkeypatch):
    """No file has changed in the last seconds, nor lies in memory."""
    monkeypatch.setattr(files, "RECENT_NS", -(10**15))
    monkeypatch.setattr(files, "_devices_in_memory", frozenset)


@pytest.fixture
def hashed(monkeypatch):
    """The files whose content is read."""
    read, compute = [], digests.file_digest
    monkeypatch.setattr(digests, "file_digest", lambda path: read.append(path) or compute(path))
    return read


@pytest.fixture
def kept(tmp_path):
    return tmp_path / "digests.json"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "data.bin"
    path.write_bytes(b"one")
    return path


def sha(content):
    return hashlib.sha256(content).hexdigest()


def test_a_file_is_read_again_once_its_state_has_changed(settled, hashed, kept, file):
    for content, reads in ((b"one", 1), (b"one", 1), (b"two", 2), (b"two", 2)):
        if file.read_bytes() != content:
            file.write_bytes(content)
        # the next process reads what this one has kept
        of_process = Digests(kept)
        assert of_process.hash_file(file) == of_process.hash_file(str(file)) == sha(content)
        of_process.save()
        assert len(hashed) == reads
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_time_that_was_set_back_hides_no_change(settled, kept, file):
    before, one = file.stat(), Digests(kept)
    assert one.hash_file(file) == sha(b"one")
    file.write_bytes(b"two")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert one.hash_file(file) == sha(b"two")


def test_a_file_that_has_just_changed_is_always_read(hashed, kept, file, monkeypatch):
    monkeypatch.setattr(files, "_devices_in_memory", frozenset)
    one = Digests(kept)
    state = files.read_state(file)
    monkeypatch.setattr(digests, "read_state", lambda path: state)  # two writes in one tick
    assert one.hash_file(file) == sha(b"one")
    file.write_bytes(b"two")
    assert one.hash_file(file) == sha(b"two")
    one.save()
    assert not kept.exists()
    # neither do old times of modification help
    state[3] = 0
    assert files.may_lie(state)


@pytest.mark.skipif(not os.access(IN_MEMORY, os.W_OK), reason="no file system in memory")
def test_a_write_through_memory_is_noticed(kept, monkeypatch):
    monkeypatch.setattr(files, "RECENT_NS", -(10**15))
    path = IN_MEMORY / f"kbench-test-{os.getpid()}"
    try:
        path.write_bytes(b"one")
        if not files.may_lie(files.read_state(path)):
            pytest.skip("/dev/shm is on a disk")
        with path.open("r+b") as opened, mmap.mmap(opened.fileno(), 3) as memory:
            memory[:1] = b"O"  # the page is mapped: no further write changes a time
            one, state = Digests(kept), files.read_state(path)
            assert one.hash_file(path) == sha(b"One")
            memory[:] = b"two"
            assert files.read_state(path) == state
            assert one.hash_file(path) == sha(b"two")
    finally:
        path.unlink(missing_ok=True)


def test_what_is_computed_of_a_content_is_computed_once(settled, kept, tmp_path, file):
    computed = []

    def digest(content):
        computed.append(content)
        return f"digest of {content.decode()}"

    copy = tmp_path / "copy.bin"
    copy.write_bytes(b"one")
    for _ in range(2):
        of_process = Digests(kept)
        assert {of_process.hash_content(each, digest) for each in (file, copy)} == {"digest of one"}
        of_process.save()
    assert computed == [b"one"]
    file.write_bytes(b"two")
    assert Digests(kept).hash_content(file, digest) == "digest of two"


def test_what_is_not_there_has_no_digest(kept, tmp_path):
    one = Digests(kept)
    for path in (tmp_path / "gone", tmp_path / "gone" / "file", "\0", ""):
        assert one.hash_file(path) is None
    os.mkfifo(tmp_path / "pipe")  # nobody writes into it
    for path in (tmp_path, tmp_path / "pipe"):
        assert one.hash_file(path) == ""
    assert one.hash_content(tmp_path / "gone", lambda content: "never") is None
    one.save()
    assert not kept.exists()


def test_a_file_in_an_archive_has_a_digest(kept, tmp_path):
    with zipfile.ZipFile(tmp_path / "lab.zip", "w") as archive:
        archive.writestr("lab.py", "x = 1\n")
    one = Digests(kept)
    assert one.hash_file(tmp_path / "lab.zip" / "lab.py") == sha(b"x = 1\n")
    assert one.hash_content(tmp_path / "lab.zip" / "lab.py", lambda content: "read") == "read"
    assert one.hash_file(tmp_path / "lab.zip" / "other.py") is None


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "null", "\x00", "0\n", "zz\n{}", "[" * 100_000),
        *('{"files": {}}', '{"files": {"bytes x": 5}, "contents": {}}'),
    ],
)
def test_a_damaged_file_of_digests_is_written_anew(settled, kept, file, text):
    kept.write_text(text)
    one = Digests(kept)
    assert one.hash_file(file) == sha(b"one")
    one.save()
    assert len(json.loads(kept.read_text().partition("\n")[2])["files"]) == 1


def test_too_many_digests_are_forgotten(settled, hashed, kept, file, monkeypatch):
    for most, reads in ((1, 1), (1, 1), (0, 2)):
        monkeypatch.setattr(digests, "MOST", most)
        one = Digests(kept)
        one.hash_file(file)
        one.save()
        assert len(hashed) == reads


def test_digests_that_cannot_be_kept_are_computed(settled, file, tmp_path):
    one = Digests(file / "digests.json")
    assert one.hash_file(file) == sha(b"one")
    one.save()
