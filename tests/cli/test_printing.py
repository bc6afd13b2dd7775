"""Files that commands write are there as a whole or not at all."""

import os
import stat
import threading

import pytest

from kbench.cli.printing import write_file
from kbench.errors import SuiteError


def test_what_cannot_be_written_leaves_the_old_file(tmp_path, monkeypatch):
    page = tmp_path / "page.html"
    write_file(page, b"old")

    def fail(*args):
        raise OSError("disk full")

    # the last step: the new content is complete, and has no name yet
    monkeypatch.setattr("pathlib.Path.replace", fail)
    with pytest.raises(SuiteError, match=r"cannot write .*page\.html: disk full"):
        write_file(page, b"new")
    assert page.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [page]


def test_a_reader_of_the_old_file_sees_all_of_it(tmp_path):
    page = tmp_path / "page.html"
    write_file(page, b"old")
    with page.open("rb") as reader:
        write_file(page, b"new")
        assert reader.read() == b"old"
    assert page.read_bytes() == b"new"


def test_a_link_stays_one_and_a_private_file_stays_private(tmp_path):
    page, link = tmp_path / "page.html", tmp_path / "link.html"
    page.write_bytes(b"old")
    page.chmod(0o600)
    link.symlink_to(page)
    write_file(link, b"new")
    assert link.is_symlink()
    assert page.read_bytes() == b"new"
    assert stat.S_IMODE(page.stat().st_mode) == 0o600


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_file(pipe, b"table")
    reader.join(5)
    assert got == [b"table"]
    assert stat.S_ISFIFO(pipe.lstat().st_mode)


def test_a_folder_that_is_missing_is_not_made(tmp_path):
    with pytest.raises(SuiteError, match="No such file"):
        write_file(tmp_path / "typo" / "page.html", b"new")
    assert not list(tmp_path.iterdir())
