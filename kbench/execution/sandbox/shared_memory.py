"""Shared memory of a task: what it holds in addition to resident memory, and what it leaves behind.

Pages of a memfd, of a file in ``/dev/shm`` or of a System V segment that no process maps
are in no resident memory, and such files and segments outlive every process.
"""

import contextlib
import ctypes
import fcntl
import os
import re
import shutil
import signal
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from kbench.execution.sandbox import processes

FOLDER = Path("/dev/shm")
_IN_CREATE, _IN_MOVED_TO = 0x100, 0x80
_IPC_RMID = 0
_BLOCK = 512
_PREFIX = f"{FOLDER}/"
_libc = ctypes.CDLL(None)
# names that libraries make of the process id, for files that are not kept open
_NAMED_BY_PID = re.compile(r"(?:joblib_memmapping_folder_|sem\.loky-|torch_)(\d+)[_-]")


class SharedMemory:
    """Files in memory that the processes of one task have written.

    A new file in the folder is the task's if a process of it had it open or mapped for writing, or
    gave it its process id as a name; no file of another program is. The kernel
    reports who created a segment.
    """

    def __init__(self) -> None:
        self._before = {entry.name: entry.inode() for entry in _entries()}
        self._segments_before = {segment.id for segment in _segments()}
        self._own: set[int] = set()  # inodes, in the folder
        self._older: dict[int, int] = {}  # bytes of older files when first seen, by inode
        self._pids: set[int] = set()
        self._mapped: dict[int, int] = {}  # resident bytes when mappings were read, by process

    def scan(self, pids: Iterable[int]) -> int:
        """Return the bytes that these processes of the task hold, and record their files."""
        held: dict[tuple[int, int], int] = {}  # by device and inode
        seen = []
        for pid in pids:
            seen.append(pid)
            for path, status in _open_for_writing(pid):  # first: they may be closed soon
                self._record(path, status)
                size = status.st_blocks * _BLOCK - self._older.get(status.st_ino, 0)
                held[status.st_dev, status.st_ino] = size
        self._pids.update(seen)
        for pid in seen:
            self._record_mapped(pid)
        for entry, status in self._remaining():
            files = _inside(entry) if stat.S_ISDIR(status.st_mode) else [status]
            held |= {(file.st_dev, file.st_ino): file.st_blocks * _BLOCK for file in files}
        return sum(held.values()) + sum(segment.resident for segment in self._own_segments())

    def clean(self) -> None:
        """Remove the task's files and segments, except those that a process still uses."""
        for segment in self._own_segments():
            if not segment.n_users:
                _libc.shmctl(segment.id, _IPC_RMID, None)
        for path, status in self._remaining():
            with contextlib.suppress(OSError):
                if stat.S_ISDIR(status.st_mode):
                    shutil.rmtree(path)
                elif _is_unused(path, status.st_ino):
                    path.unlink()

    def _record(self, path: str, status: os.stat_result) -> None:
        if not path.startswith(_PREFIX):
            return
        name, _, inside = path.removeprefix(_PREFIX).partition("/")
        if name in self._before if inside else status.st_ino in self._before.values():
            self._older.setdefault(status.st_ino, status.st_blocks * _BLOCK)
        elif not inside:
            self._own.add(status.st_ino)

    def _record_mapped(self, pid: int) -> None:
        # the list of mappings is long; without resident pages, it has none of these
        if (resident := processes.memory(pid).shared) == self._mapped.get(pid, 0):
            return
        self._mapped[pid] = resident
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
                _, access, _, _, inode, *path = line.split(maxsplit=5)
                if access.startswith("rw-s") and path and path[0].startswith(_PREFIX):
                    with contextlib.suppress(OSError):
                        status = os.lstat(path[0])
                        if status.st_ino == int(inode):
                            self._record(path[0], status)

    def _own_segments(self) -> "list[_Segment]":
        return [
            segment
            for segment in _segments()
            if segment.creator in self._pids and segment.id not in self._segments_before
        ]

    def _remaining(self) -> Iterator[tuple[Path, os.stat_result]]:
        for entry in _entries():
            if entry.name in self._before:
                continue
            match = _NAMED_BY_PID.match(entry.name)
            if entry.inode() in self._own or (match and int(match[1]) in self._pids):
                with contextlib.suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    if status.st_uid == os.getuid():
                        yield Path(entry.path), status


def creations() -> int | None:
    """Return a descriptor that can be read whenever a file appears in the folder."""
    if not processes.LINUX:
        return None
    if (descriptor := _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)) < 0:
        return None
    _libc.inotify_add_watch(descriptor, os.fsencode(FOLDER), _IN_CREATE | _IN_MOVED_TO)
    return int(descriptor)


class _Segment(NamedTuple):
    """A segment of System V shared memory."""

    id: int
    creator: int
    n_users: int
    resident: int


def _segments() -> list[_Segment]:
    with contextlib.suppress(OSError):
        head, *lines = Path("/proc/sysvipc/shm").read_text().splitlines()
        rows = [dict(zip(head.split(), line.split(), strict=True)) for line in lines]
        columns = ("shmid", "cpid", "nattch", "rss")
        return [_Segment(*(int(row[column]) for column in columns)) for row in rows]
    return []


def _entries() -> list[os.DirEntry[str]]:
    with contextlib.suppress(OSError), os.scandir(FOLDER) as entries:
        return list(entries)
    return []


def _inside(folder: Path) -> list[os.stat_result]:
    files = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                files.append(os.lstat(entry.path))
    return files


def _open_for_writing(pid: int) -> Iterator[tuple[str, os.stat_result]]:
    folder = f"/proc/{pid}/fd"
    descriptors: list[str] = []
    with contextlib.suppress(OSError):
        descriptors = os.listdir(folder)  # noqa: PTH208 (ten times slower)
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            # the path first: to ask for the state of another file may take a network
            path = os.readlink(f"{folder}/{descriptor}")  # noqa: PTH115
            if path.startswith(("/memfd:", _PREFIX)):
                about = Path(f"/proc/{pid}/fdinfo/{descriptor}").read_text()
                if int(about.partition("flags:")[2].split()[0], 8) & os.O_ACCMODE:
                    yield path, os.stat(f"{folder}/{descriptor}")  # noqa: PTH116


def _is_unused(path: Path, inode: int) -> bool:
    """Whether no process has a file open or mapped: only then the kernel grants a lease."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        # who opens it now waits, and this process is told by a signal that does nothing
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        return os.fstat(descriptor).st_ino == inode
    except OSError:
        return False
    finally:
        os.close(descriptor)
