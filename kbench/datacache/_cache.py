"""Datasets in canonical form, as memory-mapped files named by their content.

One folder per dataset, whatever its source::

    <root>/
      <checksum>/         meta.json, X.npy (or the three parts of a CSR matrix),
                          y.npy, row_ids.npy, splits
      manifest/           (source, parameters, code) -> checksum, one small file each
      verified/           when the files of an entry were last read through
      damaged/            entries that failed a check, moved aside

Arrays are plain ``.npy`` files and everything else is JSON: nothing is ever
unpickled. Several processes may use one cache at once. An entry is written
under a temporary name, flushed to disk and renamed, so that it is there as a
whole or not at all, and every process maps the same pages.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kbench.datacache._form import check_dataset, duplicate_fraction, missing_by_attribute
from kbench.errors import DatasetError
from kbench.records import Dataset, Ref, Split

FORMAT = 1
"""Version of the layout of an entry; another version is fetched anew."""

TRUST_S = 24 * 3600
"""Seconds for which files that were read through, and whose size, time and
inode have not changed since, are not read through again."""

MAP_FROM = 1 << 16
"""Bytes from which a file is memory-mapped; below, reading is as cheap."""

_CHECKSUM = re.compile(r"[0-9a-f]{64}")


def default_root() -> Path:
    """Return the folder of the cache.

    Returns
    -------
    Path
        ``$KBENCH_CACHE_DIR``, else ``$XDG_CACHE_HOME/kbench/data``, else
        ``~/.cache/kbench/data``.
    """
    own = os.environ.get("KBENCH_CACHE_DIR")
    if own:
        return Path(own).expanduser().absolute()
    xdg = os.environ.get("XDG_CACHE_HOME")
    return (Path(xdg) if xdg else Path.home() / ".cache") / "kbench" / "data"


class DataCache:
    """Canonical datasets on disk, shared by processes, named by their content.

    Parameters
    ----------
    root : Path, optional
        Folder of the cache, made when the first dataset is stored; by default
        that of `default_root`.

    Notes
    -----
    *What is verified when.* The size of every file and the checksum of
    ``meta.json`` are checked by each `load`. All bytes are hashed (SHA-256) by
    `verify`, and by `load` where this was last done more than `TRUST_S` (a day)
    ago, or where the size, modification time or inode of a file has changed
    since. So a file that was edited is found by the next load, a bit that
    rotted on the disk within a day of use, and a second load of a large
    dataset reads nothing but its headers.

    Examples
    --------
    >>> import tempfile
    >>> cache = DataCache(Path(tempfile.mkdtemp()))
    >>> data = Dataset("xor", X=np.array([[0., 0], [0, 1], [1, 0], [1, 1]]),
    ...                y=np.array([0, 1, 1, 0]))
    >>> checksum = cache.add("my-source", {"n": 4}, "code", data)
    >>> cache.lookup("my-source", {"n": 4}, "code") == checksum
    True
    >>> cache.load(checksum).X.shape, cache.describe(checksum)["n_classes"]
    ((4, 2), 2)
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = Path(root) if root is not None else default_root()

    # -- datasets

    def store(self, dataset: Dataset) -> str:
        """Write a dataset, unless an intact copy is there.

        Parameters
        ----------
        dataset : Dataset
            Any dataset; it is checked by `check_dataset` first.

        Returns
        -------
        str
            Checksum of the content, under which `load` finds it.

        Raises
        ------
        DatasetError
            It is not in canonical form, or the cache cannot be written.
        """
        dataset = check_dataset(dataset)
        checksum = dataset.checksum
        final = self.root / checksum
        if final.exists():
            problem = self._problem(checksum, thorough=True)
            if problem is None:
                return checksum
            self._set_aside(checksum)
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            self._sweep()
            temporary = _unused(self.root)
            temporary.mkdir()
            try:
                self._write(temporary, dataset)
                # what another process stored in the meantime has the same content
                with contextlib.suppress(FileExistsError):
                    _rename_folder(temporary, final)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
            _sync(self.root)
        except OSError as error:
            raise DatasetError(
                f"dataset {dataset.name!r} cannot be written to the cache {self.root}: "
                f"{error.strerror or error}. Free some space, or name another folder in "
                "KBENCH_CACHE_DIR."
            ) from error
        self._stamp(checksum)
        return checksum

    def load(self, checksum: str) -> Dataset:
        """Read a dataset; its arrays are memory-mapped and read-only.

        Parameters
        ----------
        checksum : str
            What `store` or `lookup` returned.

        Returns
        -------
        Dataset
            The dataset as it was stored.

        Raises
        ------
        DatasetError
            There is no such dataset, or its files are damaged. A damaged entry
            is moved aside, so that `lookup` no longer finds it and the caller
            fetches it anew.
        """
        problem = self._problem(checksum, thorough=False)
        if problem is not None:
            if (self.root / checksum).exists():
                self._set_aside(checksum)
            raise DatasetError(problem)
        folder, meta = self.root / checksum, self._meta(checksum)
        arrays = {Path(file).stem: _read(folder / file) for file in meta["files"]}
        if meta["sparse"]:
            import scipy.sparse

            X = scipy.sparse.csr_matrix(
                (arrays["X_data"], arrays["X_indices"], arrays["X_indptr"]),
                shape=tuple(meta["shape"]),
                copy=False,
            )
            X.has_sorted_indices = X.has_canonical_format = True  # scipy would look
        else:
            X = arrays["X"]
        splits = []
        if "splits_sizes" in arrays:
            ends = np.cumsum(arrays["splits_sizes"])[:-1]
            parts = np.split(arrays["splits_rows"], ends)
            splits = [
                Split(i, *parts[3 * i : 3 * i + 3]) for i in range(len(arrays["splits_sizes"]) // 3)
            ]
        return Dataset(
            name=meta["name"],
            version=meta["version"],
            X=X,
            y=arrays["y"],
            feature_names=meta["feature_names"],
            feature_kinds=meta["feature_kinds"],
            target_names=meta["target_names"],
            checksum=checksum,
            source=meta["source"],
            row_ids=arrays.get("row_ids"),
            group=meta["group"],
            role=meta["role"],
            splits=splits,
            pairwise=meta["pairwise"],
        )

    def describe(self, checksum: str) -> Mapping[str, Any]:
        """Tell what is known of a dataset without reading its arrays.

        Parameters
        ----------
        checksum : str
            What `store` or `lookup` returned.

        Returns
        -------
        mapping
            ``name, version, source, group, role, pairwise, sparse, n_samples,
            n_features, n_classes, class_counts, n_missing, missing`` (counts by
            attribute, of those with any; the indicator columns ``colour=red``,
            ``colour=blue`` are one attribute), ``duplicate_fraction, n_splits,
            n_bytes, feature_names, feature_kinds, target_names, checksum``.

        Raises
        ------
        DatasetError
            There is no such dataset, or its description is damaged.
        """
        meta = dict(self._meta(checksum))
        for internal in ("files", "format", "shape"):
            del meta[internal]
        return meta

    # -- the manifest

    def lookup(self, source: str, params: Mapping[str, Any], code: str) -> str | None:
        """Find a dataset by what it is made from, without loading it.

        Parameters
        ----------
        source : str
            Name of the source.
        params : mapping
            Parameters of the source. One called ``path`` names a file, whose
            size and time of modification are compared too.
        code : str
            Fingerprint of the code that makes the data.

        Returns
        -------
        str or None
            The checksum; None where the dataset is not in the cache.
        """
        record = self.recall(source, params, code)
        return None if record is None else str(record["checksum"])

    def recall(self, source: str, params: Mapping[str, Any], code: str) -> dict[str, Any] | None:
        """Find a dataset as `lookup` does, and tell all that is known of it.

        Parameters
        ----------
        source, params, code
            As in `lookup`.

        Returns
        -------
        dict or None
            What `describe` tells, updated with the summary given to `remember`:
            the name, group and role under which *this* source gives data that
            another source may give as well.
        """
        try:
            record = json.loads(self._manifest_file(source, params, code).read_text("utf-8"))
            checksum = record["checksum"]
            return {**self.describe(checksum), **record["summary"], "checksum": checksum}
        except (OSError, ValueError, KeyError, TypeError, DatasetError):
            return None

    def add(self, source: str, params: Mapping[str, Any], code: str, dataset: Dataset) -> str:
        """Store a dataset and remember what it was made from.

        Parameters
        ----------
        source, params, code
            As in `lookup`.
        dataset : Dataset
            What the source returned.

        Returns
        -------
        str
            Checksum of the content.

        Raises
        ------
        DatasetError
            As `store` does.
        """
        checksum = self.store(dataset)
        own = {name: getattr(dataset, name) for name in ("name", "source", "group", "role")}
        own["version"] = str(dataset.version)
        self.remember(source, params, code, checksum, **own)
        return checksum

    def remember(
        self, source: str, params: Mapping[str, Any], code: str, checksum: str, /, **summary: Any
    ) -> None:
        """Note which dataset a source gives for its parameters.

        Parameters
        ----------
        source, params, code
            As in `lookup`.
        checksum : str
            What `store` returned.
        **summary
            JSON values that `recall` gives back, in place of those of
            `describe` where they have the same name.
        """
        record = {
            "source": source,
            "params": _plain(params),
            "code": code,
            "checksum": checksum,
            "summary": summary,
        }
        _write_text(self._manifest_file(source, params, code), json.dumps(record, indent=1))

    # -- housekeeping

    def entries(self) -> list[Mapping[str, Any]]:
        """Describe every intact-looking dataset in the cache, by name.

        Returns
        -------
        list of mapping
            As `describe` gives them.
        """
        found = []
        for checksum in self._checksums():
            with contextlib.suppress(DatasetError):
                found.append(self.describe(checksum))
        return sorted(found, key=lambda each: (each["name"], each["checksum"]))

    def verify(self) -> list[str]:
        """Read every file of the cache through and compare it with its checksum.

        Damaged entries are moved aside, so that they are fetched anew.

        Returns
        -------
        list of str
            One line per problem; empty where all is well.
        """
        problems = []
        for checksum in self._checksums():
            problem = self._problem(checksum, thorough=True)
            if problem is not None:
                problems.append(problem)
                self._set_aside(checksum)
        return problems

    def clear(self) -> int:
        """Remove everything that the cache has written, and nothing else.

        Returns
        -------
        int
            Bytes set free.
        """
        freed = 0
        if not self.root.is_dir():
            return 0
        own = [self.root / name for name in ("manifest", "verified", "damaged")]
        own += [self.root / checksum for checksum in self._checksums()]
        own += list(self.root.glob(".tmp-*"))
        for folder in own:
            if folder.is_dir() and not folder.is_symlink():
                freed += sum(f.lstat().st_size for f in folder.rglob("*") if f.is_file())
                shutil.rmtree(folder, ignore_errors=True)
        return freed

    # -- inside

    def _write(self, folder: Path, dataset: Dataset) -> None:
        arrays: dict[str, np.ndarray] = {}
        sparse = hasattr(dataset.X, "indptr")
        if sparse:
            arrays["X_data"] = dataset.X.data
            arrays["X_indices"] = dataset.X.indices
            arrays["X_indptr"] = dataset.X.indptr
        else:
            arrays["X"] = dataset.X
        arrays["y"] = dataset.y
        if dataset.row_ids is not None:
            arrays["row_ids"] = dataset.row_ids
        if dataset.splits:
            parts = [p for s in dataset.splits for p in (s.train, s.test, s.unlabelled)]
            arrays["splits_rows"] = np.concatenate(parts)
            arrays["splits_sizes"] = np.array([len(p) for p in parts], dtype=np.int64)
        files = {}
        for name, array in arrays.items():
            path = folder / f"{name}.npy"
            with path.open("wb") as file:
                np.save(file, array, allow_pickle=False)
                file.flush()
                os.fsync(file.fileno())
            files[path.name] = {"size": path.stat().st_size, "sha256": _digest(path)}
        missing = missing_by_attribute(dataset)
        meta: dict[str, Any] = {
            "format": FORMAT,
            "checksum": dataset.checksum,
            "name": dataset.name,
            "version": str(dataset.version),
            "source": dataset.source,
            "group": dataset.group,
            "role": dataset.role,
            "pairwise": dataset.pairwise,
            "sparse": sparse,
            "shape": list(dataset.X.shape),
            "n_samples": dataset.X.shape[0],
            "n_features": dataset.X.shape[1],
            "n_classes": len(dataset.target_names),
            "class_counts": np.bincount(dataset.y).tolist(),
            "n_missing": sum(missing.values()),
            "missing": missing,
            "duplicate_fraction": duplicate_fraction(dataset.X),
            "n_splits": len(dataset.splits),
            "n_bytes": sum(each["size"] for each in files.values()),
            "feature_names": [str(name) for name in dataset.feature_names],
            "feature_kinds": list(dataset.feature_kinds),
            "target_names": [str(name) for name in dataset.target_names],
            "files": files,
        }
        meta["sha256"] = _meta_digest(meta)
        with (folder / "meta.json").open("w", encoding="utf-8") as file:
            json.dump(meta, file)
            file.flush()
            os.fsync(file.fileno())
        _sync(folder)

    def _meta(self, checksum: str) -> Mapping[str, Any]:
        if not _CHECKSUM.fullmatch(checksum):
            # also keeps a name from outside from being used as a path
            raise DatasetError(f"{checksum!r} is not a checksum: 64 hexadecimal digits")
        file = self.root / checksum / "meta.json"
        try:
            meta = json.loads(file.read_text("utf-8"))
            expected = meta.pop("sha256")
            intact = meta["format"] == FORMAT and expected == _meta_digest(meta)
        except FileNotFoundError:
            raise DatasetError(f"dataset {checksum} is not in the cache {self.root}") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            intact = False
        if not intact or meta["checksum"] != checksum:
            raise DatasetError(f"dataset {checksum} in the cache {self.root}: meta.json is damaged")
        return meta  # type: ignore[no-any-return]

    def _problem(self, checksum: str, thorough: bool) -> str | None:
        """Say what is wrong with an entry; note it as verified if all bytes were read."""
        try:
            meta = self._meta(checksum)
        except DatasetError as error:
            return str(error)
        folder = self.root / checksum
        where = f"dataset {meta['name']!r} ({checksum[:12]}) in the cache {self.root}"
        state = {}
        for file, facts in meta["files"].items():
            try:
                stat = (folder / file).stat()
            except OSError:
                return f"{where}: {file} is missing"
            if stat.st_size != facts["size"]:
                return f"{where}: {file} has {stat.st_size} bytes instead of {facts['size']}"
            state[file] = [stat.st_size, stat.st_mtime_ns, stat.st_ino]
        if not thorough and self._is_trusted(checksum, state):
            return None
        for file, facts in meta["files"].items():
            try:
                digest = _digest(folder / file)
            except OSError as error:
                return f"{where}: {file} cannot be read: {error.strerror}"
            if digest != facts["sha256"]:
                return f"{where}: the content of {file} has changed since it was stored"
        self._stamp(checksum, state)
        return None

    def _is_trusted(self, checksum: str, state: Mapping[str, list[int]]) -> bool:
        try:
            stamp = json.loads((self.root / "verified" / f"{checksum}.json").read_text("utf-8"))
            return bool(stamp["files"] == state and 0 <= time.time() - stamp["time"] < TRUST_S)
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def _stamp(self, checksum: str, state: Mapping[str, list[int]] | None = None) -> None:
        with contextlib.suppress(OSError, DatasetError):  # a read-only cache works too
            if state is None:
                state = {}
                for file in self._meta(checksum)["files"]:
                    stat = (self.root / checksum / file).stat()
                    state[file] = [stat.st_size, stat.st_mtime_ns, stat.st_ino]
            stamp = json.dumps({"time": time.time(), "files": state})
            _write_text(self.root / "verified" / f"{checksum}.json", stamp)

    def _set_aside(self, checksum: str) -> None:
        aside = self.root / "damaged"
        with contextlib.suppress(OSError):
            aside.mkdir(exist_ok=True)
            (self.root / checksum).rename(aside / f"{checksum}-{secrets.token_hex(4)}")

    def _checksums(self) -> list[str]:
        if not self.root.is_dir():
            return []
        return sorted(p.name for p in self.root.iterdir() if _CHECKSUM.fullmatch(p.name))

    def _sweep(self) -> None:
        """Remove what a killed process left behind, once it is a day old."""
        for folder in self.root.glob(".tmp-*"):
            with contextlib.suppress(OSError):
                if time.time() - folder.stat().st_mtime > 24 * 3600:
                    shutil.rmtree(folder, ignore_errors=True)

    def _manifest_file(self, source: str, params: Mapping[str, Any], code: str) -> Path:
        key = {"source": source, "params": _plain(params), "code": code, "format": FORMAT}
        path = params.get("path")
        if isinstance(path, str | os.PathLike):
            key["file"] = _file_state(Path(path))
        text = json.dumps(key, sort_keys=True, allow_nan=True)
        return self.root / "manifest" / f"{hashlib.sha256(text.encode()).hexdigest()}.json"


def _file_state(path: Path) -> list[Any]:
    path = path.expanduser().absolute()
    try:
        stat = path.stat()
    except OSError:
        return [str(path)]
    return [str(path), stat.st_size, stat.st_mtime_ns]


def _plain(value: Any) -> Any:
    """Parameters as JSON values, equal for equal parameters."""
    if isinstance(value, Ref):
        return {"name": value.name, "params": _plain(value.params)}
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list | np.ndarray):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def _read(path: Path) -> np.ndarray:
    mapped = path.stat().st_size >= MAP_FROM
    loaded = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    array: np.ndarray = loaded.view(np.ndarray)  # np.memmap's class would spread to results
    array.flags.writeable = False
    return array


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _meta_digest(meta: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(meta, sort_keys=True).encode()).hexdigest()


def _rename_folder(temporary: Path, final: Path) -> None:
    try:
        temporary.rename(final)
    except OSError as error:
        if final.exists():
            raise FileExistsError(final) from error
        raise


def _unused(folder: Path) -> Path:
    # not tempfile, whose names are private: other users may share the cache
    return folder / f".tmp-{os.getpid()}-{secrets.token_hex(8)}"


def _write_text(path: Path, text: str) -> None:
    """Write a small file as a whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _unused(path.parent)
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
