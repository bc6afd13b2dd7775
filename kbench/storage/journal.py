"""The write-ahead log: what has been computed survives whatever comes after.

One file per user and machine, one JSON object per line. A line counts once it
is complete and its checksum fits; what a kill, a full disk or a bad sector
leaves behind is skipped and counted. Nothing is ever rewritten.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import time
import zlib
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kbench.errors import JournalError
from kbench.machine import machine_id
from kbench.storage.files import sync_folder, write_file
from kbench.storage.locks import Holder, read_holder, try_lock, write_holder

_CHECKSUM = ',"crc":"%08x"}'
_CHECKSUM_LENGTH = len(_CHECKSUM % 0)
_POLL_S = 0.1


def state_folder(place: str = "") -> Path:
    """Folder of what kbench remembers of one place for this user.

    ``$KBENCH_STATE_DIR/<place>``, or ``$XDG_STATE_HOME/kbench/<place>``, or
    ``~/.local/state/kbench/<place>``: a home folder may be shared by machines,
    times may not.

    Parameters
    ----------
    place : str, optional
        Where things were computed: this machine by default, or its
        `kbench.machine.cluster_id`.
    """
    place = place or machine_id()
    if own := os.environ.get("KBENCH_STATE_DIR"):
        return Path(own) / place
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local/state") / "kbench" / place


class Journal:
    """An append-only log of JSON lines, safe for several processes and threads.

    Parameters
    ----------
    path : Path, optional
        The file, ``journal.jsonl`` in `state_folder` by default. Blobs and
        locks are kept in folders beside it.

    Attributes
    ----------
    damaged : int
        Number of lines that the latest `read` of every kind skipped: torn by
        a kill or changed since they were written.

    Examples
    --------
    >>> import tempfile
    >>> journal = Journal(Path(tempfile.mkdtemp()) / "journal.jsonl")
    >>> journal.append("result", task_key="a/0", status="ok", measures={"accuracy": 0.9})
    >>> journal.results()["a/0"]["measures"]
    {'accuracy': 0.9}
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = Path(path) if path is not None else state_folder() / "journal.jsonl"
        self.damaged = 0

    def append(self, kind: str, **fields: Any) -> None:
        """Write one line; it is on the disk when this returns.

        Parameters
        ----------
        kind : str
            What the line says, such as "result" or "delivered".
        **fields : plain JSON values
            NaN and infinities pass; "crc" is reserved.

        Raises
        ------
        ValueError
            If a field is called "crc".
        TypeError
            If a value is not JSON.
        JournalError
            If the disk is full or the file cannot be written. What was
            written of the line does no harm.
        """
        if "crc" in fields:
            raise ValueError("a field of a journal line cannot be called 'crc': it is reserved")
        body = json.dumps({"kind": kind, **fields}, separators=(",", ":")).encode("ascii")[:-1]
        line = body + (_CHECKSUM % zlib.crc32(body)).encode("ascii") + b"\n"
        with _writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # opened anew each time: a file that was removed must not get lines
            fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                size = os.fstat(fd).st_size
                if size and os.pread(fd, 1, size - 1) != b"\n":
                    line = b"\n" + line  # a kill tore the line before
                written = os.write(fd, line)
                if written < len(line):  # what is there is a torn line
                    raise OSError(f"only {written} of {len(line)} bytes could be written")
                os.fsync(fd)
            finally:
                os.close(fd)
            if not size:
                sync_folder(self.path.parent)

    def read(self, *kinds: str) -> Iterator[dict[str, Any]]:
        """Yield every intact line, oldest first, up to the end of the file now.

        Parameters
        ----------
        *kinds : str
            Only lines of these kinds, all others being passed over unread;
            every line by default.

        Yields
        ------
        dict
            The line, with its "kind".
        """
        return self._read(tuple(_start(kind) for kind in kinds))

    def _read(
        self, starts: tuple[bytes, ...], wanted: Callable[[bytes], bool] = lambda line: True
    ) -> Iterator[dict[str, Any]]:
        self.damaged = 0
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            return
        with file:
            # No writer is halfway through a line while we look at the size.
            fcntl.flock(file, fcntl.LOCK_SH)
            left = os.fstat(file.fileno()).st_size
            fcntl.flock(file, fcntl.LOCK_UN)
            for line in file:
                left -= len(line)
                if left < 0:
                    return
                if (not starts or line.startswith(starts)) and wanted(line):
                    if (fields := _parse(line)) is not None:
                        yield fields
                    elif line != b"\n":
                        self.damaged += 1
                if left == 0:
                    return

    def results(self, task_keys: Collection[str] | None = None) -> dict[str, dict[str, Any]]:
        """Return the latest line of kind "result" of each "task_key".

        Parameters
        ----------
        task_keys : collection of str, optional
            Only these; all by default. A journal holds the results of years.
        """
        # the key comes first, so that most lines need no parsing
        start = _start("result") + b',"task_key":"'
        keys = None if task_keys is None else {json.dumps(key)[1:-1].encode() for key in task_keys}

        def wanted(line: bytes) -> bool:
            if keys is None or not line.startswith(start):
                return True
            key = line[len(start) : line.find(b'"', len(start))]
            return key in keys or b"\\" in key

        with _no_collection():
            return {
                line["task_key"]: line
                for line in self._read((_start("result"),), wanted)
                if task_keys is None or line["task_key"] in task_keys
            }

    def save_blob(self, task_key: str, name: str, data: bytes) -> None:
        """Keep a large by-product of a task; do so before its line is written.

        It is the file ``blobs/??/<task_key>.<name>`` beside the journal, both
        names quoted as in a URL.

        Parameters
        ----------
        task_key, name : str
            The task and what it is, such as "predictions". One that is there
            already is replaced, at once or not at all.
        data : bytes
            The content.

        Raises
        ------
        JournalError
            If it cannot be written.
        """
        path = self._blob(task_key, name)
        with _writing(path):
            write_file(path, data, mode=0o600)

    @contextlib.contextmanager
    def lock(
        self,
        name: str,
        waiting: Callable[[Holder | None], None] | None = None,
        *,
        shared: bool = False,
        poll: Callable[[], None] | None = None,
    ) -> Iterator[None]:
        """Hold a lock that one process at a time can have, or several that share it.

        The kernel releases it when the holder ends, however that happens. It
        is not reentrant.

        Parameters
        ----------
        name : str
            What is locked, say suite and store.
        waiting : callable, optional
            Called with the `Holder` when there is one, and again with the next
            one; with None where it is not known. What it raises ends the wait.
        shared : bool, default False
            Hold it beside others who share it; no one else holds it alone then.
        poll : callable, optional
            Called again and again while waiting. What it raises ends the wait.

        Yields
        ------
        None
            While the lock is held.
        """
        short = f"{quote(name, safe='')[:100]}-{zlib.crc32(name.encode()):08x}.lock"
        path = self.path.parent / "locks" / short
        with _writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            told: list[Holder | None] = []
            while not try_lock(fd, shared):
                holder = read_holder(fd)
                if waiting is not None and told != [holder]:
                    told = [holder]
                    waiting(holder)
                if poll is not None:
                    poll()
                time.sleep(_POLL_S)
            with _writing(path):
                write_holder(fd, shared)
            yield
        finally:
            # Not deleted: someone may be waiting for this very file.
            os.close(fd)

    def _blob(self, task_key: str, name: str) -> Path:
        file = f"{quote(task_key, safe='')}.{quote(name, safe='')}"
        # spread over 256 folders: one with a million entries is slow
        return self.path.parent / "blobs" / f"{zlib.crc32(task_key.encode()) & 0xFF:02x}" / file


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Say in one line what keeps a file from being written."""
    try:
        yield
    except OSError as error:
        raise JournalError(
            f"{path} cannot be written: {error.strerror or error}. Nothing that was kept is lost; "
            "make room and run the same command again"
        ) from error


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Look for no garbage while much is read: each look takes longer than the one before."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _start(kind: str) -> bytes:
    """Return how every line of a kind begins."""
    return json.dumps({"kind": kind}, separators=(",", ":")).encode("ascii")[:-1]


def _parse(line: bytes) -> dict[str, Any] | None:
    line = line.removesuffix(b"\n")  # a kill may have torn off just that
    body, end = line[:-_CHECKSUM_LENGTH], line[-_CHECKSUM_LENGTH:]
    if end != (_CHECKSUM % zlib.crc32(body)).encode("ascii"):
        return None
    fields: dict[str, Any] = json.loads(body + b"}")
    return fields
