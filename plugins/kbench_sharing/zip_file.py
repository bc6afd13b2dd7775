"""The file or folder of a bundle: equal content gives equal bytes; reading trusts nothing.

What it may expand to is limited by its size: a few bytes are not gigabytes. The project's
bundles unpack to 19 times their size at most; the factors here are several times larger.
"""

import hashlib
import io
import lzma
import os
import re
import secrets
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from kbench.errors import BundleError
from kbench.features import read_file, write_file
from kbench.messages import plural, printable
from kbench_sharing.bundle_records import FILES, MANIFEST, PREDICTIONS, SOURCES

# Bytes that a small file may take too.
_FREE = 8 << 20

# Factors of the size; lists and objects are counted, and not their bytes.
_UNPACKED, _LISTS, _PREDICTIONS = 100, 10, 300

_FREE_LISTS = 200_000

# Bytes of all files of a bundle together.
MAX_BYTES = 2 << 30


def most_unpacked(n_bytes: int) -> int:
    """Return the bytes that all files in a file or folder of a number of bytes may have.

    >>> most_unpacked(12_000) >> 20
    9
    """
    return min(MAX_BYTES, _FREE + _UNPACKED * n_bytes)


def most_lists(n_bytes: int) -> int:
    """Return how many lists and objects all lines, and what these become, may have."""
    return _FREE_LISTS + _LISTS * n_bytes


def most_of_predictions(n_bytes: int) -> int:
    """Return the bytes that all predictions may have."""
    return min(MAX_BYTES, _FREE + _PREDICTIONS * n_bytes)


# Bytes of the zip file.
MAX_ZIPPED = 256 << 20

# First bytes of a zip file with entries.
ZIP = b"PK\x03\x04"

MAX_FILES = 2000
MAX_NAME = 200

_SOURCE = re.compile(r"sources/[A-Za-z0-9_.-]+(/[A-Za-z0-9_-]+)*/[A-Za-z0-9_-]+\.py")
_LINES, _XZ = ".jsonl", ".xz"
# For text: the byte before tells most of the next one, and records repeat long parts.
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 4, "pb": 0, "nice_len": 273}]

# Bytes that xz may use to unpack: its presets need 65 MiB at most.
_XZ_MEMORY = 100 << 20

_DATE = (1980, 1, 1, 0, 0, 0)


def write(path: Path, files: Mapping[str, bytes]) -> None:
    """Write a zip file, or a folder where the name of `path` does not end with ``.zip``.

    The same files become the same bytes, with one version of zlib. BundleError is raised
    if the folder exists and is not empty, or it cannot be written.
    """
    try:
        if path.suffix.lower() == ".zip":
            write_file(path, pack_zip(files))
        else:
            write_folder(path, files)
    except OSError as error:
        raise BundleError(f"{path} cannot be written: {error.strerror or error}") from error


def write_folder(path: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a new or an empty folder; BundleError where it is neither."""
    with whole_folder(path) as temporary:
        for name, data in sorted(files.items()):
            write_file(temporary / name, data)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Yield a folder to write to, which becomes `path` once everything is in it.

    BundleError is raised if `path` exists and is not an empty folder, or cannot be written.
    """
    temporary = path.absolute().with_name(f".{path.absolute().name}-{secrets.token_hex(4)}")
    try:
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise BundleError(f"{path} exists: choose a new folder, or a .zip file")
        temporary.mkdir(parents=True)
        yield temporary
        if path.exists():
            # it may be the current folder of a shell, and stays the same one
            for each in temporary.iterdir():
                each.rename(path / each.name)
        else:
            temporary.rename(path.absolute())
    except OSError as error:
        raise BundleError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def pack_zip(files: Mapping[str, bytes]) -> bytes:
    """Return a zip file with sorted entries and fixed dates."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _DATE)
            entry.create_system, entry.external_attr = 3, (stat.S_IFREG | 0o644) << 16
            if name.endswith(_LINES):
                # deflate looks back 32 kB only, and a column may be longer
                entry.filename = f"{name}{_XZ}"
                archive.writestr(entry, lzma.compress(data, filters=_FILTERS), zipfile.ZIP_STORED)
            else:
                archive.writestr(entry, data, zipfile.ZIP_DEFLATED, 9)
    return content.getvalue()


def read_zip(data: bytes) -> dict[str, bytes]:
    """Return the files of a zip file by name; BundleError says what is wrong with it.

    Names and sizes are checked before anything is unpacked.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if archive.comment:
                raise BundleError("the zip file has a comment, which bundles do not have")
            entries = archive.infolist()
            most = most_unpacked(len(data))
            _check_entries(entries, most)
            remaining = most - sum(entry.file_size for entry in entries)
            files = {}
            for entry in entries:
                name = entry.filename
                with archive.open(entry) as file:
                    # never more than the entry says, whatever is packed in it
                    content = file.read(entry.file_size + 1)
                if len(content) != entry.file_size:
                    raise BundleError(f"{name!r} does not have the size stated in the zip file")
                if name.endswith(_XZ):
                    content = _decompress_xz(content, remaining, most)
                    remaining -= len(content)
                files[name.removesuffix(_XZ)] = content
            return files
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, ValueError):
        raise BundleError("the zip file is damaged") from None


def _decompress_xz(data: bytes, remaining: int, most: int) -> bytes:
    """Unpack a file into at most `remaining` bytes of `most`, with the memory that xz needs."""
    try:
        unpacking = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
        content = unpacking.decompress(data, max_length=max(remaining, 0) + 1)
    except (lzma.LZMAError, EOFError):
        raise BundleError("the zip file is damaged") from None
    if len(content) > remaining:
        raise BundleError(f"it unpacks to more than the {most >> 20:,} MiB allowed for its size")
    if not unpacking.eof or unpacking.unused_data:
        raise BundleError("the zip file is damaged")
    return content


def _check_entries(entries: list[zipfile.ZipInfo], most: int) -> None:
    if len(entries) > MAX_FILES:
        raise BundleError(f"it has more than {plural(MAX_FILES, 'file')}")
    seen: set[str] = set()
    for entry in entries:
        # a zero byte ends the name that zipfile shows
        name = entry.orig_filename
        content = name.removesuffix(_XZ) if name.endswith(f"{_LINES}{_XZ}") else name
        check_name(content)
        if content in seen:
            raise BundleError(f"it has the file {content!r} twice")
        seen.add(content)
        # an archiver may say nothing of the kind of a file
        if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
            raise BundleError(f"{name!r} is a link or a device, not a file")
        if entry.flag_bits & 0x1:
            raise BundleError(f"{name!r} is encrypted")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise BundleError(f"{name!r} uses an unsupported compression method")
    n_bytes = sum(entry.file_size for entry in entries)
    if n_bytes > most:
        raise BundleError(
            f"it unpacks to {n_bytes / 2**20:,.0f} MiB, more than the {most >> 20:,} MiB allowed "
            "for its size"
        )


def read_folder(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder by name; links are not followed."""
    if not os.path.lexists(folder / MANIFEST):
        # a results repository, or any other folder: its files say nothing to the user
        raise BundleError(f"it has no {MANIFEST}")
    files: dict[str, bytes] = {}
    remaining = MAX_BYTES
    for name in names_below(folder):
        check_name(name)
        try:
            files[name] = read_file(folder / name, remaining)
        except OSError as error:
            raise BundleError(
                f"{name!r} is a link, a device or too large, or cannot be read"
            ) from error
        remaining -= len(files[name])
        if len(files) > MAX_FILES:
            raise BundleError(f"it has more than {plural(MAX_FILES, 'file')}")
    return files


def names_below(folder: Path, below: str = "") -> list[str]:
    """Return the names of all files and links below a folder, sorted."""
    return sorted(
        path.relative_to(folder).as_posix()
        for path in (folder / below).rglob("*")
        if path.is_symlink() or not path.is_dir()
    )


def check_name(name: str) -> None:
    """Raise a BundleError for a file name that no bundle has: nothing of it becomes a path."""
    if len(name) > MAX_NAME:
        raise BundleError(f"it has a file whose name has more than {MAX_NAME} characters")
    parts, shown = PurePosixPath(name).parts, repr(printable(name, 80))
    if name.startswith("/") or ".." in parts or "\\" in name or ":" in name:
        raise BundleError(f"the name {shown} refers to a file outside of the bundle")
    if name in (MANIFEST, *FILES, PREDICTIONS) or (
        name.startswith(SOURCES) and _SOURCE.fullmatch(name)
    ):
        return
    raise BundleError(f"it contains the unexpected file {shown}")


def sha256(data: bytes) -> str:
    """Return the SHA-256 (hex)."""
    return hashlib.sha256(data).hexdigest()


def read_named(folder: Path, name: str, most: int) -> bytes:
    """Read a file whose name is the SHA-256 of its content; BundleError says what is wrong."""
    try:
        data = read_file(folder / name, most)
    except OSError as error:
        raise BundleError(
            f"it is a link, a device or too large, or cannot be read: {error.strerror}"
        ) from error
    if sha256(data) != PurePosixPath(name).stem:
        raise BundleError("it was changed: its name is not the SHA-256 of its content")
    return data
