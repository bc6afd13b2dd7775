"""One dataset as files: ``.npy`` arrays, and a description in JSON with their checksums.

What was verified, and when, is stored next to the entries.
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np

from kbench.errors import DatasetError
from kbench.records import Dataset, Split
from kbench.records.canonical import Json, JsonObject
from kbench.storage import files
from kbench.storage.datacache._form import Matrix, duplicate_fraction, missing_by_attribute

PREFIX = ".tmp-"

# Age in seconds from which a folder is locked, if its process is still there.
NEW_S = 60

# Age in seconds from which a folder that cannot be locked is taken for abandoned.
UNLOCKED_S = 24 * 3600


@contextmanager
def temporary(root: Path) -> Iterator[Path]:
    """Make a folder in a cache; if it still exists at the end, it is removed.

    It is locked, so that `sweep` of another process leaves it alone.
    """
    folder = files.make_temporary_name(root)
    folder.mkdir()
    try:
        with files.open_descriptor(folder) as handle:
            with contextlib.suppress(OSError):  # some file systems have no locks
                files.try_lock(handle, shared=False)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sweep(root: Path) -> None:
    """Remove the temporary folders of processes that were killed."""
    for folder in root.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            age = time.time() - folder.stat().st_mtime
            if age > UNLOCKED_S or (age > NEW_S and _is_abandoned(folder)):
                shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(folder: Path) -> bool:
    with files.open_descriptor(folder) as handle:
        return files.try_lock(handle, shared=False)


def scratch_file(array: np.ndarray, root: Path) -> Path | None:
    """Return the file in a temporary folder of a cache that holds an array, and only it."""
    base: np.ndarray | None = array
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    if not isinstance(base, np.memmap) or base.mode != "r" or base.filename is None:
        return None
    path = Path(base.filename)
    is_whole = array.flags.c_contiguous and (array.dtype, array.shape) == (base.dtype, base.shape)
    is_ours = path.parent.parent == root.resolve() and path.parent.name.startswith(PREFIX)
    try:
        size = path.stat().st_size
    except OSError:
        return None
    return path if is_whole and is_ours and size == base.offset + base.nbytes else None


# Description of an entry, as its `meta.json` has it.
Meta = Mapping[str, Json]

# Version of the layout of an entry; entries of another version are fetched again.
FORMAT = 2

# Files that an entry may have in addition to its description.
FILES = frozenset(
    f"{name}.npy"
    for name in (
        *("X", "X_data", "X_indices", "X_indptr", "y", "row_ids", "sample_weight"),
        *("splits_rows", "splits_sizes"),
    )
)

# Size of a description at most.
META_BYTES = 1 << 28

# Bytes from which a file is memory-mapped; below, reading is as cheap.
MAP_FROM = 1 << 16


class UnreadableError(DatasetError):
    """An entry that belongs to a user who does not share it: it is not damaged."""


class DamagedError(DatasetError):
    """An entry that is to be moved aside."""


def is_checksum(name: str) -> bool:
    """Whether a name is that of an entry: 64 hexadecimal digits."""
    return re.fullmatch(r"[0-9a-f]{64}", name) is not None


# Fields of a dataset in its description: `SAME` unchanged, `NAMES` as lists of strings.
SAME = ("checksum", "name", "task", "source", "dataset_family", "role", "pairwise")
NAMES = ("feature_names", "feature_kinds", "target_names")


def write(folder: Path, dataset: Dataset) -> None:
    """Write the files of an entry into an empty folder, flushed to disk."""
    stored = {}
    for name, array in _arrays(dataset).items():
        path = folder / f"{name}.npy"
        written = scratch_file(array, folder.parent)
        if written is None:
            with _open_flushed(path) as out:
                np.save(out, array, allow_pickle=False)
        else:
            written.rename(path)
            with path.open("rb+") as out:
                os.fsync(out.fileno())
        stored[path.name] = {"size": path.stat().st_size, "sha256": digest(path)}
    missing = missing_by_attribute(dataset)
    n_samples, n_features = dataset.X.shape
    meta: JsonObject = {
        "format": FORMAT,
        **{name: getattr(dataset, name) for name in SAME},
        **{name: list(map(str, getattr(dataset, name))) for name in NAMES},
        **_target_facts(dataset),
        "version": str(dataset.version),
        "is_weighted": dataset.sample_weight is not None,
        "sparse": hasattr(dataset.X, "indptr"),
        "n_samples": n_samples,
        "n_features": n_features,
        "n_classes": len(dataset.target_names),
        "n_missing": sum(missing.values()),
        "missing": missing,
        "duplicate_fraction": duplicate_fraction(dataset.X),
        "n_splits": len(dataset.splits),
        "n_bytes": sum(file["size"] for file in stored.values()),
        "files": stored,
    }
    meta["sha256"] = _meta_digest(meta)
    with _open_flushed(folder / "meta.json") as out:
        out.write(json.dumps(meta).encode("utf-8"))
    files.sync_folder(folder)


def _arrays(dataset: Dataset) -> dict[str, np.ndarray]:
    """Return the arrays of a dataset by the names of their files."""
    if hasattr(dataset.X, "indptr"):
        arrays = {f"X_{name}": getattr(dataset.X, name) for name in ("data", "indices", "indptr")}
    else:
        arrays = {"X": dataset.X}
    arrays |= {name: getattr(dataset, name) for name in ("y", "row_ids", "sample_weight")}
    if dataset.splits:
        parts = [p for s in dataset.splits for p in (s.train, s.test, s.unlabeled)]
        arrays["splits_rows"] = np.concatenate(parts)
        arrays["splits_sizes"] = np.array([len(p) for p in parts], dtype=np.int64)
    return {name: array for name, array in arrays.items() if array is not None}


def _target_facts(dataset: Dataset) -> JsonObject:
    if dataset.task == "regression":
        return {"target_mean": float(np.mean(dataset.y)), "target_sd": float(np.std(dataset.y))}
    return {"class_counts": np.bincount(dataset.y).tolist()}


@contextmanager
def _open_flushed(path: Path) -> Iterator[BinaryIO]:
    """Open a new file for writing, and flush it to disk at the end."""
    with path.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def read_meta(root: Path, checksum: str) -> Meta:
    """Read the description of an entry of a cache, and check it against its checksum."""
    if not is_checksum(checksum):
        # also keeps a name from outside from being used as a path
        raise DatasetError(f"checksum must be 64 hexadecimal digits, got {checksum!r}")
    file = root / checksum / "meta.json"
    try:
        if file.parent.is_symlink():
            raise DamagedError(f"dataset {checksum} in the cache {root} is a symbolic link")
        meta = json.loads(files.read_file(file, META_BYTES))
        expected = meta.pop("sha256")
        intact = (
            meta["format"] == FORMAT
            and expected == _meta_digest(meta)
            and meta["files"].keys() <= FILES
        )
    except FileNotFoundError:
        raise DamagedError(f"dataset {checksum} is not in the cache {root}") from None
    except PermissionError as error:
        raise UnreadableError(
            f"dataset {checksum} in the cache {root} cannot be read: {error.strerror}. Ask its "
            "owner for it, or name another folder in KBENCH_CACHE_DIR."
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        intact = False
    if not intact or meta["checksum"] != checksum:
        raise DamagedError(f"dataset {checksum} in the cache {root}: meta.json is damaged")
    meta.setdefault("task", "classification")  # entries of earlier versions
    return meta  # type: ignore[no-any-return]


def read(folder: Path, meta: Meta) -> Dataset:
    """Read the dataset that an entry describes; its arrays are memory-mapped and read-only."""
    stems = (Path(file).stem for file in meta["files"] if not file.startswith("X"))
    arrays = {name: _array(folder / f"{name}.npy") for name in stems}
    splits = []
    if "splits_sizes" in arrays:
        parts = np.split(arrays["splits_rows"], np.cumsum(arrays["splits_sizes"])[:-1])
        splits = [
            Split(i, *parts[3 * i : 3 * i + 3]) for i in range(len(arrays["splits_sizes"]) // 3)
        ]
    return Dataset(
        **{name: meta[name] for name in (*SAME, *NAMES, "version")},
        X=read_inputs(folder, meta),
        y=arrays["y"],
        row_ids=arrays.get("row_ids"),
        splits=splits,
        sample_weight=arrays.get("sample_weight"),
    )


def read_inputs(folder: Path, meta: Meta) -> Matrix:
    """Read the inputs of an entry, an array or a CSR matrix, memory-mapped and read-only."""
    if not meta["sparse"]:
        return _array(folder / "X.npy")
    import scipy.sparse

    parts = tuple(_array(folder / f"X_{part}.npy") for part in ("data", "indices", "indptr"))
    X = scipy.sparse.csr_matrix(parts, shape=(meta["n_samples"], meta["n_features"]), copy=False)
    X.has_sorted_indices = X.has_canonical_format = True  # scipy would look
    return X


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _meta_digest(meta: Meta) -> str:
    return hashlib.sha256(json.dumps(meta, sort_keys=True).encode()).hexdigest()


def _array(path: Path) -> np.ndarray:
    mapped = path.stat().st_size >= MAP_FROM
    with files.PARSING:
        loaded = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    array: np.ndarray = loaded.view(np.ndarray)  # np.memmap's class would spread to results
    array.flags.writeable = False
    return array


# Seconds for which verified files, whose size, times and inode have not changed
# since, are not verified again.
TRUST_S = 24 * 3600

_NOTE_BYTES = 1 << 16


def check_entry(root: Path, checksum: str, thorough: bool = False) -> Meta:
    """Return the description of an entry without a problem; stamp it if all bytes were read.

    Raises DamagedError if it has one, UnreadableError where another user does not share it.
    """
    meta = read_meta(root, checksum)
    folder = root / checksum
    where = f"dataset {meta['name']!r} ({checksum[:12]}) in the cache {root}"
    state = {}
    for file, facts in meta["files"].items():
        try:
            status = (folder / file).lstat()
        except OSError:
            raise DamagedError(f"{where}: {file} is missing") from None
        if not stat.S_ISREG(status.st_mode):
            raise DamagedError(f"{where}: {file} is not a regular file")
        if status.st_size != facts["size"]:
            why = f"{file} has {status.st_size} bytes instead of {facts['size']}"
            raise DamagedError(f"{where}: {why}")
        state[file] = stat_values(status)
    if not thorough and _is_trusted(root, checksum, state):
        return meta
    for file, facts in meta["files"].items():
        try:
            intact = digest(folder / file) == facts["sha256"]
        except OSError as error:
            kind = UnreadableError if isinstance(error, PermissionError) else DamagedError
            raise kind(f"{where}: {file} cannot be read: {error.strerror}") from None
        if not intact:
            raise DamagedError(f"{where}: the content of {file} has changed since it was stored")
    stamp(root, checksum, state)
    return meta


def stamp(root: Path, checksum: str, state: Mapping[str, list[int]] | None = None) -> None:
    """Record that all bytes of an entry were read or written just now."""
    with contextlib.suppress(OSError, DatasetError):  # a read-only cache works too
        if state is None:
            names = read_meta(root, checksum)["files"]
            state = {name: stat_values((root / checksum / name).lstat()) for name in names}
        noted = json.dumps({"time": time.time(), "files": state})
        files.make_folder(root / "verified", root)
        files.write_file(root / "verified" / f"{checksum}.json", noted.encode("utf-8"), like=root)


def _is_trusted(root: Path, checksum: str, state: Mapping[str, list[int]]) -> bool:
    try:
        noted = json.loads(files.read_file(root / "verified" / f"{checksum}.json", _NOTE_BYTES))
        return bool(noted["files"] == state and 0 <= time.time() - noted["time"] < TRUST_S)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def stat_values(status: os.stat_result) -> list[int]:
    """Return size, times and inode of a file, which change when it does."""
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
