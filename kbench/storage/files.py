"""Atomic, crash-safe file writes; reads of small files that others may have planted."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import stat
from pathlib import Path

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
    """Say what mends an error of the system, where `setting` names the folder to write to.

    >>> remedy(OSError(errno.EROFS, ""), "KBENCH_STATE_DIR")
    'the file system is read-only: name a folder that can be written in KBENCH_STATE_DIR'
    """
    words = _REMEDIES.get(error.errno or 0, "name another folder in {0}")
    return words.format(setting)


def unused(folder: Path) -> Path:
    """Return a temporary name in a folder that no other process uses."""
    # not tempfile, whose files nobody else may read: users may share a cache
    return folder / f".tmp-{os.getpid()}-{secrets.token_hex(8)}"


def write_file(
    path: Path, data: bytes, mode: int = 0o666, like: Path | None = None, flush: bool = True
) -> None:
    """Write a small file atomically; its folder is made where it is missing.

    The permissions are `mode` less the umask of the process, or, with `like`, those of
    a shared folder (see `share`). Without `flush`, a loss of power may leave a damaged file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = unused(path.parent)
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
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        with os.fdopen(handle, "rb", closefd=False) as file:
            # `read` reserves all the memory that it is allowed to fill
            data = file.read(min(status.st_size, most) + 1)
            if len(data) > status.st_size:
                # it has grown, or is of a file system that tells no sizes
                data += file.read(max(most - len(data), 0) + 1)
    finally:
        os.close(handle)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"larger than {most:,} bytes", str(path))
    return data


def file_digest(path: str | Path) -> str | None:
    """Return the SHA-256 of a file (hex); None where it cannot be read."""
    with contextlib.suppress(OSError), Path(path).open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
    return None


def make_folder(path: Path, like: Path) -> None:
    """Make a folder in the shared folder `like`; OSError where it is a symbolic link."""
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
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
