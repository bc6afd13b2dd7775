"""The write-ahead log: computed results survive a kill, a full disk or a bad sector.

One file per user and machine, one JSON object per line. A line counts once it
is complete, its checksum fits and it has the fields of its kind; damaged lines are
skipped and counted.
Nothing is ever rewritten.
"""

import contextlib
import errno
import fcntl
import json
import os
import time
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

from kbench.errors import JournalError
from kbench.evaluation.timing import no_collection
from kbench.machine import cluster_id, machine_id
from kbench.records import Manifest
from kbench.records.canonical import Json, JsonObject
from kbench.storage import files

_FORMAT = 2
_CHECKSUM = ',"crc":"%08x"}'
_CHECKSUM_LENGTH = len(_CHECKSUM % 0)
_POLL_S = 0.1

_OF_SUITE = {"suite": str, "store": str}
# Fields that a line of a kind has, in all versions; a line without them is skipped.
FIELDS: Mapping[str, Mapping[str, type]] = {
    "result": {"task_key": str},
    "manifest": {"digest": str, "content": dict},
    "metric": {"task_key": str, "name": str, "value": float, "code": str, "ended_ms": int},
    "problem": {"cell_key": str, "reason": str, "at_ms": int},
    "trials": {"key": str, "memory_mib": float, "trials": list},
    "plan": {**_OF_SUITE, "digest": str, "content": dict},
    "reopened": _OF_SUITE,
    "settled": _OF_SUITE,
    "delivered": _OF_SUITE,
}


def state_folder(place: str = "") -> Path:
    """Folder of the user's journal, locks and blobs for one place of computation.

    ``$KBENCH_STATE_DIR/<place>``, or ``$XDG_STATE_HOME/kbench/<place>``, or
    ``~/.local/state/kbench/<place>``. The place is this machine by default, or its
    `kbench.machine.cluster_id`: machines may share a home folder but not times.
    """
    place = place or machine_id()
    if folder := os.environ.get("KBENCH_STATE_DIR"):
        return Path(folder) / place
    from platformdirs.unix import Unix  # the same folders on macOS

    return Unix("kbench").user_state_path / place


class Journal:
    """An append-only log of JSON lines, safe for several processes and threads.

    Parameters
    ----------
    path : Path, optional
        The file, ``journal.jsonl`` in `state_folder` by default. Blobs and
        locks are kept in folders next to it.

    Attributes
    ----------
    damaged : int
        Number of lines that the latest `read` of every kind skipped: torn by
        a kill, changed since they were written, or without a field of their kind.
    unreadable : set of str
        Keys of the tasks of which the latest `results` found damaged lines only.

    Examples
    --------
    >>> import tempfile
    >>> journal = Journal(Path(tempfile.mkdtemp()) / "journal.jsonl")
    >>> journal.append("result", task_key="a/0", status="ok", metrics={"accuracy": 0.9})
    >>> [line["metrics"] for line in journal.results()["a/0"]]
    [{'accuracy': 0.9}]
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = Path(path) if path is not None else state_folder() / "journal.jsonl"
        self.damaged = 0
        self.unreadable: set[str] = set()
        self._manifests: set[str] = set()

    def append(self, kind: str, **fields: Json) -> None:
        """Write one line; it is on the disk when this returns.

        Fields are plain JSON values; NaN and infinities pass, and the names "crc" and
        "v" are reserved. Raises JournalError if the disk is full or the file cannot be
        written; the part of the line that was written does no harm.
        """
        if taken := fields.keys() & {"crc", "v"}:
            raise ValueError(f"{taken.pop()!r} is a reserved name of journal fields")
        fields = {"kind": kind, **fields, "v": _FORMAT}
        body = json.dumps(fields, separators=(",", ":")).encode("ascii")[:-1]
        line = body + (_CHECKSUM % zlib.crc32(body)).encode("ascii") + b"\n"
        with _writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # opened again each time: a file that was removed must not get lines
            with files.open_descriptor(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT) as fd:
                fcntl.flock(fd, fcntl.LOCK_EX)
                size = os.fstat(fd).st_size
                if size and os.pread(fd, 1, size - 1) != b"\n":
                    line = b"\n" + line  # a kill tore the line before
                written = os.write(fd, line)
                if written < len(line):  # what is there is a torn line
                    raise OSError(
                        errno.ENOSPC, f"only {written} of {len(line)} bytes could be written"
                    )
                os.fsync(fd)
            if not size:
                files.sync_folder(self.path.parent)

    def read(self, *kinds: str) -> Iterator[JsonObject]:
        """Yield every intact line with its "kind", oldest first, up to the present end.

        Given `kinds`, lines of all others are skipped without being parsed.
        """
        return self._read(tuple(_start(kind) for kind in kinds))

    def _read(
        self,
        starts: tuple[bytes, ...],
        wanted: Callable[[bytes], bool] = lambda line: True,
        skipped: Callable[[bytes], object] = lambda line: None,
    ) -> Iterator[JsonObject]:
        self.damaged = 0
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            return
        with file:
            # No writer is halfway through a line while we look at the size.
            fcntl.flock(file, fcntl.LOCK_SH)
            n_left = os.fstat(file.fileno()).st_size
            fcntl.flock(file, fcntl.LOCK_UN)
            for line in file:
                n_left -= len(line)
                if n_left < 0:
                    return
                if (not starts or line.startswith(starts)) and wanted(line):
                    if (fields := _parse(line)) is not None:
                        if fields.pop("v", None) != _FORMAT:
                            raise JournalError(
                                f"{self.path} was written by another version of kbench, in a "
                                "format that this one does not read. Move the file away and run "
                                "the same command again: the results are computed again"
                            )
                        yield fields
                    elif line != b"\n":
                        self.damaged += 1
                        skipped(line)
                if n_left == 0:
                    return

    def results(self, task_keys: Collection[str] | None = None) -> dict[str, list[JsonObject]]:
        """Return the lines of kind "result" of all tasks, or of those in `task_keys`, newest first.

        A journal holds the results of years: most lines are skipped unparsed.
        `unreadable` has the tasks whose lines are damaged.
        """
        results, damaged = self._read_by_task("result", task_keys)
        self.unreadable = damaged - results.keys()
        for lines in results.values():
            lines.reverse()
        return results

    def _read_by_task(
        self, kind: str, task_keys: Collection[str] | None
    ) -> tuple[dict[str, list[JsonObject]], set[str]]:
        """Return the lines of a kind by task, oldest first, and the tasks of damaged lines."""
        # the key comes first, so that most lines need no parsing
        start = _start(kind) + b',"task_key":"'
        keys = None if task_keys is None else {json.dumps(key)[1:-1].encode() for key in task_keys}
        damaged: set[str] = set()

        def key_of(line: bytes) -> bytes:
            return line[len(start) : line.find(b'"', len(start))]

        def wanted(line: bytes) -> bool:
            if keys is None or not line.startswith(start):
                return True
            return (key := key_of(line)) in keys or b"\\" in key

        def skipped(line: bytes) -> None:
            if line.startswith(start):
                damaged.add(key_of(line).decode("ascii", "replace"))

        lines: dict[str, list[JsonObject]] = {}
        with no_collection():  # whose passes grow ever longer while much is read
            for line in self._read((_start(kind),), wanted, skipped):
                if task_keys is None or line["task_key"] in task_keys:
                    lines.setdefault(line["task_key"], []).append(line)
        return lines, damaged

    def manifests(self) -> dict[str, Manifest]:
        """Return what results were made from, by the digests that are in their lines."""
        manifests = {}
        for line in self.read("manifest"):
            with contextlib.suppress(ValueError):
                manifests[line["digest"]] = Manifest.from_json(line["content"])
        return manifests

    def keep_manifest(self, manifest: Manifest) -> None:
        """Write a manifest, unless this object has done so; call it before a result has it."""
        if manifest.digest not in self._manifests:
            self.append("manifest", digest=manifest.digest, content=manifest.to_json())
            self._manifests.add(manifest.digest)

    def read_added(self, task_keys: Collection[str]) -> dict[str, list[JsonObject]]:
        """Return the lines of kind "metric" of tasks, oldest first.

        Each adds a metric to the result of its task that ended at its "ended_ms".
        """
        damaged = self.damaged
        lines, _ = self._read_by_task("metric", task_keys)
        self.damaged += damaged
        return lines

    def blob(self, address: str, name: str, most_bytes: int) -> bytes | None:
        """Return what `save_blob` has kept; None if there is nothing.

        Raises JournalError if it cannot be read, or is larger than `most_bytes`.
        """
        path = self._blob(address, name)
        try:
            with path.open("rb") as file:
                data = file.read(most_bytes + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise JournalError(f"{path} cannot be read: {error.strerror or error}") from error
        if len(data) > most_bytes:
            raise JournalError(f"{path} is larger than the {name} of its task can be")
        return data

    def save_blob(self, address: str, name: str, data: bytes) -> None:
        """Keep a large by-product of a task (`Result.address`), before its line is written.

        It becomes the file ``blobs/??/<address>.<name>`` next to the journal, both
        names quoted as in a URL; an existing one is replaced atomically. Raises JournalError
        if it cannot be written.
        """
        path = self._blob(address, name)
        with _writing(path):
            files.write_file(path, data, mode=0o600)

    @contextlib.contextmanager
    def lock(
        self,
        name: str,
        waiting: Callable[[files.Holder | None], None] | None = None,
        *,
        shared: bool = False,
        poll: Callable[[], None] | None = None,
    ) -> Iterator[None]:
        """Hold an exclusive or a shared lock within the context.

        The kernel releases it when the holder ends, however that happens. It is not
        reentrant.

        Parameters
        ----------
        name : str
            The locked thing, such as suite and store.
        waiting : callable, optional
            Called once with each `Holder` that is waited for, or with None if it is
            unknown. What it raises ends the wait.
        shared : bool, default False
            Share the lock: others may share it, none may hold it exclusively.
        poll : callable, optional
            Called again and again while waiting. What it raises ends the wait.
        """
        path = self.path.parent / "locks" / f"{_quote(name)[:100]}-{_crc(name):08x}.lock"
        with _writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            reported: list[files.Holder | None] = []
            while not files.try_lock(fd, shared):
                holder = files.read_holder(fd)
                if waiting is not None and reported != [holder]:
                    reported = [holder]
                    waiting(holder)
                if poll is not None:
                    poll()
                time.sleep(_POLL_S)
            with _writing(path):
                files.write_holder(fd, shared)
            yield
        finally:
            # not deleted: another process may be waiting for this very file
            os.close(fd)

    def _blob(self, address: str, name: str) -> Path:
        file = f"{_quote(address)}.{_quote(name)}"
        # spread over 256 folders: one with a million entries is slow
        return self.path.parent / "blobs" / f"{_crc(address) & 0xFF:02x}" / file


def journals() -> dict[str, Journal]:
    """Return the journals of this machine and of its clusters, by their owners."""
    places = machine_id(), cluster_id()
    return {place: Journal(state_folder(place) / "journal.jsonl") for place in places}


def _quote(name: str) -> str:
    return quote(name, safe="", errors="surrogatepass")


def _crc(name: str) -> int:
    return zlib.crc32(name.encode("utf-8", "surrogatepass"))


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn the reason why a file cannot be written into a message of one line."""
    try:
        yield
    except OSError as error:
        raise JournalError(
            f"{path} cannot be written: {error.strerror or error}. No stored result is lost; "
            f"{files.remedy(error, 'KBENCH_STATE_DIR')} and run the same command again"
        ) from error


def _start(kind: str) -> bytes:
    """Beginning of every line of a kind."""
    return json.dumps({"kind": kind}, separators=(",", ":")).encode("ascii")[:-1]


def _parse(line: bytes) -> JsonObject | None:
    line = line.removesuffix(b"\n")  # a kill may have torn off just that
    body, end = line[:-_CHECKSUM_LENGTH], line[-_CHECKSUM_LENGTH:]
    if end != (_CHECKSUM % zlib.crc32(body)).encode("ascii"):
        return None
    try:
        fields: JsonObject = json.loads(body + b"}")
    except (ValueError, RecursionError):
        return None
    required = FIELDS.get(fields["kind"], {}) if isinstance(fields.get("kind"), str) else {}
    return fields if all(isinstance(fields.get(k), t) for k, t in required.items()) else None
