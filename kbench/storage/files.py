"""Atomic, crash-safe file writes; reads of small files that others may have planted.

Locks name their holders. A state shows in a microsecond that a file is unchanged; it is not relied
on where it can lie: on a file system in memory, where a write through a memory map changes no time,
and for a file that changed in the last seconds, which may change again within one tick of the
clock.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import platform
import secrets
import stat
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from kbench.messages import mask, printable

# For syntax trees, of headers of arrays too: Python 3.11 counts the depth of all threads together,
# and raises SystemError.
PARSING = threading.Lock()

_SHARED = stat.S_IWGRP | stat.S_IWOTH

_REMEDIES = {
    errno.ENOSPC: "make room",
    errno.EDQUOT: "your quota is used up: make room in it",
    errno.EROFS: "the file system is read-only: name a folder that can be written in {0}",
    errno.EACCES: "you have no permission to write there: name a folder of yours in {0}",
    errno.EPERM: "you have no permission to write there: name a folder of yours in {0}",
    errno.ENAMETOOLONG: "the name is too long: name a folder with a shorter path in {0}",
    errno.ENOTDIR: "a part of the path is a file: name a folder in {0}",
    errno.EMFILE: "too many files are open: raise the limit (`ulimit -n`)",
    errno.ENFILE: "too many files are open on this machine: close some",
    errno.EFBIG: "files may not be as large: raise the limit (`ulimit -f`)",
    errno.EIO: "the disk may be damaged: name a folder on another one in {0}",
}


def remedy(error: OSError, setting: str) -> str:
    """Return the remedy for an error of the system; `setting` names the folder to write to.

    >>> remedy(OSError(errno.EROFS, ""), "KBENCH_STATE_DIR")
    'the file system is read-only: name a folder that can be written in KBENCH_STATE_DIR'
    """
    return _REMEDIES.get(error.errno or 0, "name another folder in {0}").format(setting)


def make_temporary_name(folder: Path) -> Path:
    """Return a temporary name in a folder that no other process uses."""
    # not tempfile, whose files nobody else may read: users may share a cache
    return folder / f".tmp-{os.getpid()}-{secrets.token_hex(8)}"


@contextlib.contextmanager
def open_descriptor(path: Path, flags: int = os.O_RDONLY) -> Iterator[int]:
    """Open a file or a folder; the permissions of a new file are those of its owner."""
    descriptor = os.open(path, flags, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def write_file(
    path: Path, data: bytes, mode: int = 0o666, like: Path | None = None, flush: bool = True
) -> None:
    """Write a small file atomically; its folder is made where it is missing.

    The permissions are `mode` less the umask of the process, or, with `like`, those of
    a shared folder (see `share`). Without `flush`, a loss of power may leave a damaged file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = make_temporary_name(path.parent)
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if flush:
                os.fsync(handle)
        if like is not None:
            share(temporary, like)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    if flush:
        sync_folder(path.parent)


def read_file(path: Path, most: int) -> bytes:
    """Read a regular file of at most `most` bytes; OSError for anything else.

    Symbolic links are not followed, and pipes are not waited for.
    """
    with open_descriptor(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK) as handle:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        with os.fdopen(handle, "rb", closefd=False) as file:
            # `read` reserves all the memory that it is allowed to fill
            data = file.read(min(status.st_size, most) + 1)
            if len(data) > status.st_size:
                # it has grown, or is of a file system that tells no sizes
                data += file.read(max(most - len(data), 0) + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"larger than {most:,} bytes", str(path))
    return data


def file_digest(path: str | Path) -> str | None:
    """Return the SHA-256 of a file (hex); None if it cannot be read."""
    with contextlib.suppress(OSError), Path(path).open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
    return None


def make_folder(path: Path, like: Path) -> None:
    """Make a folder in the shared folder `like`; raises OSError if it is a symbolic link."""
    try:
        path.mkdir()
    except FileExistsError:
        if path.is_symlink() or not path.is_dir():
            raise
    else:
        share(path, like)


def share(path: Path, like: Path) -> None:
    """Give a new file or folder the permissions of a folder that others may write.

    The umask decides where only its owner may write that folder.
    """
    mode = stat.S_IMODE(like.stat().st_mode)
    if mode & _SHARED:
        path.chmod(mode if path.is_dir() else mode & 0o666)


def rename_folder(temporary: Path, final: Path) -> None:
    """Rename a folder; `FileExistsError` where the name is taken, on every system."""
    try:
        temporary.rename(final)
    except OSError as error:
        if final.exists():
            raise FileExistsError(final) from error
        raise


def sync_folder(folder: Path) -> None:
    """Flush the names of new files in a folder to the disk."""
    with open_descriptor(folder) as handle:
        os.fsync(handle)


# Age up to which a change may be followed by another one with the same times.
RECENT_NS = 2_000_000_000

State = list[int]


def read_state(path: str | Path) -> State | None:
    """Return device, inode, size and times of a file or folder; None if it does not exist."""
    try:
        status = os.stat(path)  # noqa: PTH116 (thousands of files: Path takes twice as long)
    except (OSError, ValueError):
        return None
    return [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def may_lie(state: State) -> bool:
    """Return whether a file may have changed although its state has not."""
    return state[0] in _devices_in_memory() or max(state[3:]) > time.time_ns() - RECENT_NS


@cache
def _devices_in_memory() -> frozenset[int]:
    devices = set()
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
            mount, _, described = line.partition(" - ")
            if described.split()[0] in ("tmpfs", "ramfs", "hugetlbfs"):
                major, _, minor = mount.split()[2].partition(":")
                devices.add(os.makedev(int(major), int(minor)))
    return frozenset(devices)


_HOLDERS_BYTES = 2**15


@dataclass(frozen=True)
class Holder:
    """The process that holds a lock.

    `command` is its command line, `since` the Unix time at which it got the lock.
    """

    pid: int
    host: str
    command: str
    since: float


def describe_holder(holder: Holder | None) -> str:
    """Name the holder of a lock, for a message."""
    if holder is None:
        return "another kbench"
    # again: an earlier version wrote the command as it was
    command = " ".join(map(mask, holder.command.split(" ")))
    return printable(f"{command} (process {holder.pid} on {holder.host})")


def try_lock(fd: int, shared: bool) -> bool:
    """Take a lock if it is free."""
    try:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def write_holder(fd: int, shared: bool) -> None:
    """Record this process as the holder: the only line, or an additional one."""
    holder = Holder(os.getpid(), platform.node(), " ".join(map(mask, sys.argv)), time.time())
    line = json.dumps(asdict(holder)).encode() + b"\n"
    if shared:
        # the others' lines stay, without those of processes that are gone
        alive = [json.dumps(asdict(other)).encode() + b"\n" for other in _holders(fd)]
        line = b"".join(alive)[-_HOLDERS_BYTES:] + line
    os.pwrite(fd, line, 0)
    os.ftruncate(fd, len(line))


def read_holder(fd: int) -> Holder | None:
    """Return the process that has held the lock longest; None if it is unknown."""
    return next(iter(_holders(fd)), None)


def _holders(fd: int) -> list[Holder]:
    import psutil

    holders = []
    for line in os.pread(fd, 2 * _HOLDERS_BYTES, 0).splitlines():
        with contextlib.suppress(ValueError, TypeError):
            holder = Holder(**json.loads(line))
            # a process of another machine may always still run
            if holder.host != platform.node() or psutil.pid_exists(holder.pid):
                holders.append(holder)
    return holders
