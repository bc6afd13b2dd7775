"""Datasets in canonical form, as memory-mapped files named by their content.

One folder per dataset, whatever its source::

    <root>/
      <checksum>/         meta.json, X.npy (or the three parts of a CSR matrix),
                          y.npy, row_ids.npy, splits
      manifest/           (source, parameters, code) -> checksum, one small file each, with
                          what the data were made from
      verified/           when the files of an entry were last read through
      damaged/            entries that failed a check, moved aside

Where others may write `<root>`, its entries get its permissions, whatever the umask.
Arrays are plain ``.npy`` files and everything else is JSON: nothing is ever
unpickled. Several processes may use one cache at once. An entry is written
under a temporary name, flushed to disk and renamed, which makes it atomic, and
every process maps the same pages. Large arrays are read into a temporary folder block
by block (`DataCache.scratch`); they are never in memory as a whole.
"""

import contextlib
import errno
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from kbench.errors import DatasetError
from kbench.parameters import list_files
from kbench.records import Dataset, DatasetFacts, Inputs, Manifest, Ref
from kbench.records.canonical import Json
from kbench.storage import files
from kbench.storage.datacache import _entry
from kbench.storage.datacache._form import check_dataset

_RECORD_BYTES = 1 << 26


def default_root() -> Path:
    """Folder of the cache.

    ``$KBENCH_CACHE_DIR``, or ``$XDG_CACHE_HOME/kbench/data``, or
    ``~/.cache/kbench/data``.
    """
    if folder := os.environ.get("KBENCH_CACHE_DIR"):
        return Path(folder).expanduser().absolute()
    from platformdirs.unix import Unix  # the same folder on macOS

    return Unix("kbench").user_cache_path / "data"


# Parameters of a source, by name.
Params = Mapping[str, object]

# Parameters that are names of files.
FILE_PARAMETERS = ("path", "split_file")


def unsure_files(params: Params) -> dict[str, str]:
    """Return the digests of files of an origin that may change although their state does not."""
    named = [params.get(name) for name in FILE_PARAMETERS]
    paths = [Path(path).expanduser().absolute() for path in named if isinstance(path, str)]
    states = [(file, files.read_state(file)) for path in paths for file in list_files(path)]
    return {
        str(file): files.file_digest(file) or ""
        for file, state in states
        if state and files.may_lie(state)
    }


def plain(value: object) -> Json:
    """Parameters as JSON values, equal for equal parameters."""
    if isinstance(value, Ref):
        return {"name": value.name, "params": plain(value.params)}
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list | np.ndarray):
        return [plain(part) for part in value]
    if isinstance(value, np.generic):
        return value.item()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _file_state(path: Path) -> list[str | int]:
    """Return the state of a file, or of all files of a folder or a pattern."""
    path = path.expanduser().absolute()
    state: list[str | int] = [str(path)]
    for file in list_files(path):
        name = [] if file == path else [str(file)]
        with contextlib.suppress(OSError):
            state += [*name, *_entry.stat_values(file.stat())]
    return state


class _ScratchFolder:
    """A temporary folder of a cache, made for the first file; see `DataCache.scratch`."""

    def __init__(self, cache: "DataCache", name: str, stack: contextlib.ExitStack) -> None:
        self._cache, self._name, self._stack = cache, name, stack
        self._folder: Path | None = None
        self._n_files = 0

    def new_file(self) -> Path:
        if self._folder is None:
            self._folder = self._stack.enter_context(self._cache.temporary())
        self._n_files += 1
        return self._folder / f"{self._n_files}.npy"

    def refusal(self, error: OSError) -> DatasetError:
        return self._cache.refusal(self._name, error)


_HALF_WRITTEN = re.compile(r"\d+ requested and \d+ written")


class DataCache:
    """Canonical datasets on disk, shared by processes, named by their content.

    The folder `root`, by default that of `default_root`, is made when the first
    dataset is stored.

    The size of every file and the checksum of ``meta.json`` are checked by each
    `load`. All bytes are hashed (SHA-256) by `verify`, and by `load` where this
    was last done more than `TRUST_S` (a day) ago, or where the size, a time or the
    inode of a file has changed since. The next load therefore notices an
    edited file, and a bit that rotted on the disk is noticed within a day of use;
    a second load of a large dataset reads only its headers.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> cache = DataCache(Path(tempfile.mkdtemp()))
    >>> data = Dataset("xor", X=np.array([[0., 0], [0, 1], [1, 0], [1, 1]]),
    ...                y=np.array([0, 1, 1, 0]))
    >>> checksum = cache.add("my-source", {"n": 4}, "code", data)
    >>> cache.lookup("my-source", {"n": 4}, "code") == checksum
    True
    >>> cache.load(checksum).X.shape, cache.describe(checksum).n_classes
    ((4, 2), 2)
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = Path(root) if root is not None else default_root()

    # -- datasets

    def store(self, dataset: Dataset) -> str:
        """Write a dataset, unless an intact copy exists, and return its checksum.

        Raises DatasetError if `check_dataset` rejects it, or the cache cannot be
        written.
        """
        dataset = check_dataset(dataset)
        checksum = dataset.checksum
        final = self.root / checksum
        with self._writing(dataset.name):
            if final.exists() or final.is_symlink():
                with contextlib.suppress(_entry.DamagedError):
                    self._check(checksum, thorough=True)
                    return checksum
            with self.temporary() as folder:
                _entry.write(folder, dataset)
                for path in (*folder.iterdir(), folder):
                    files.share(path, self.root)
                # a copy that another process stored meanwhile has the same content
                with contextlib.suppress(FileExistsError):
                    files.rename_folder(folder, final)
            files.sync_folder(self.root)
        _entry.stamp(self.root, checksum)
        return checksum

    def load(self, checksum: str, kinds: Sequence[str] = ()) -> Dataset:
        """Read a dataset; its arrays are memory-mapped and read-only.

        The kinds of its columns are not part of its content: they are `kinds`, as
        `recall` returns them, by default those of the source that stored it first.

        Raises DatasetError if there is no such dataset or its files are damaged.
        A damaged entry is moved aside, so that `lookup` does not find it and the
        caller fetches it again.
        """
        dataset = _entry.read(self.root / checksum, self._check(checksum))
        return replace(dataset, feature_kinds=tuple(kinds)) if kinds else dataset

    def load_for(self, facts: DatasetFacts) -> Dataset:
        """Read a dataset, as `load` does, with the names and kinds of facts of `recall`."""
        dataset = self.load(facts.checksum)
        return replace(
            dataset,
            feature_kinds=facts.feature_kinds or dataset.feature_kinds,
            feature_names=facts.feature_names or dataset.feature_names,
            target_names=facts.target_names or dataset.target_names,
        )

    def inputs(self, checksum: str, kinds: Sequence[str] = ()) -> Inputs:
        """Read a dataset without its labels, whose file is not opened; see `load`."""
        meta = self._check(checksum)
        return Inputs(
            _entry.read_inputs(self.root / checksum, meta),
            checksum,
            tuple(kinds) or tuple(meta["feature_kinds"]),
            meta["pairwise"],
            meta["task"],
        )

    def _check(self, checksum: str, thorough: bool = False) -> _entry.Meta:
        """Return the description of an intact entry; a damaged one is moved aside."""
        try:
            return _entry.check_entry(self.root, checksum, thorough)
        except _entry.DamagedError:
            aside = self.root / "damaged"
            with contextlib.suppress(OSError):
                files.make_folder(aside, self.root)
                (self.root / checksum).rename(aside / f"{checksum}-{secrets.token_hex(4)}")
            raise

    def describe(self, checksum: str) -> DatasetFacts:
        """Describe a dataset without reading its arrays.

        Raises DatasetError if there is none or its description is damaged.
        """
        return DatasetFacts.from_json(_entry.read_meta(self.root, checksum))

    @contextlib.contextmanager
    def scratch(self, name: str) -> Iterator[_ScratchFolder]:
        """Open a folder for arrays of a dataset that is still being read.

        `store` moves them to its entry instead of copying them. The others are removed at
        the end, or, where this process is killed, by a later `store`. `name` is that of the
        dataset, for messages.
        """
        with contextlib.ExitStack() as stack:
            yield _ScratchFolder(self, name, stack)

    @contextlib.contextmanager
    def temporary(self) -> Iterator[Path]:
        """Make a folder that is removed at the end; those of killed processes are removed too."""
        self.root.mkdir(parents=True, exist_ok=True)
        _entry.sweep(self.root)
        with _entry.temporary(self.root) as folder:
            yield folder

    # -- the manifest

    def lookup(self, source: str, params: Params, code: str) -> str | None:
        """Return the checksum of a dataset by its origin; None if it is not in the cache.

        The origin is a source, its parameters, and what its record says of the code that
        makes the data. The parameters ``path`` and ``split_file`` name files, whose size,
        times and inodes are compared too: a copy or a restored backup is read again.
        """
        facts = self.recall(source, params, code)
        return None if facts is None else facts.checksum

    def recall(
        self,
        source: str,
        params: Params,
        code: str,
        is_valid: Callable[[Manifest], bool] | None = None,
    ) -> DatasetFacts | None:
        """Describe a dataset by its origin, as in `lookup`; None if it is not in the cache.

        With `is_valid`, its manifest must exist and be valid.

        The facts of `describe` are updated with those given to `remember`: the name,
        group, role, and kinds and names of columns and classes that *this* source gives to
        data which another source may give as well.
        """
        try:
            record = json.loads(files.read_file(self.origin(source, params, code), _RECORD_BYTES))
            if any(
                (files.file_digest(name) or "") != sha
                for name, sha in record.get("unsure", {}).items()
            ):
                return None
            if is_valid and not is_valid(Manifest.from_json(record["manifest"])):
                return None
            facts = _entry.read_meta(self.root, record["checksum"])
            return DatasetFacts.from_json({**facts, **record["summary"]})
        except (OSError, ValueError, KeyError, TypeError, RecursionError, DatasetError):
            return None

    def keep_manifest(self, source: str, params: Params, code: str, manifest: Manifest) -> None:
        """Add its manifest to the origin of a dataset, if it was stored."""
        origin = self.origin(source, params, code)
        with contextlib.suppress(OSError, ValueError):
            record = json.loads(files.read_file(origin, _RECORD_BYTES))
            content = json.dumps({**record, "manifest": manifest.to_json()}, indent=1)
            files.write_file(origin, content.encode("utf-8"), like=self.root)

    def origin(self, source: str, params: Params, code: str) -> Path:
        """Return the manifest's file for an origin, of which parameters may name files.

        A file named by one of the parameters `FILE_PARAMETERS` counts with its size, the times of
        its last modification and change, and its inode: a tool may set the time of modification
        back, which changes the other. So does each file of a folder or a pattern. The manifest's
        file is another one once such a file has changed.
        """
        key = {"source": source, "params": plain(params), "code": code, "format": _entry.FORMAT}
        key["files"] = {
            name: _file_state(Path(path))
            for name in FILE_PARAMETERS
            if isinstance(path := params.get(name), str | os.PathLike)
        }
        content = json.dumps(key, sort_keys=True, allow_nan=True)
        return self.root / "manifest" / f"{hashlib.sha256(content.encode()).hexdigest()}.json"

    def add(
        self, source: str, params: Params, code: str, dataset: Dataset, origin: Path | None = None
    ) -> str:
        """Store a dataset, as `store` does, and remember its origin.

        It is `origin` as it was before the dataset was loaded, by default as it is now.
        """
        origin = origin or self.origin(source, params, code)
        checksum = self.store(dataset)
        names = ("name", "source", "dataset_family", "role")
        fields = {name: getattr(dataset, name) for name in names}
        fields["version"] = str(dataset.version)
        stored = self.describe(checksum)
        # the content is the same, whatever columns and classes are called
        for field in _entry.NAMES:
            if tuple(getattr(dataset, field)) != getattr(stored, field):
                fields[field] = list(map(str, getattr(dataset, field)))
        self.remember(source, params, code, checksum, origin, **fields)
        return checksum

    def remember(
        self,
        source: str,
        params: Params,
        code: str,
        checksum: str,
        origin: Path | None = None,
        /,
        **own: Json,
    ) -> None:
        """Record the origin of a stored dataset; `recall` prefers the facts given here."""
        origin = origin or self.origin(source, params, code)
        record = {
            "source": source,
            "params": plain(params),
            "code": code,
            "checksum": checksum,
            "summary": own,
            "unsure": unsure_files(params),
        }
        content = json.dumps(record, indent=1)
        with self._writing(own.get("name", source)):
            files.make_folder(origin.parent, self.root)
            files.write_file(origin, content.encode("utf-8"), like=self.root)

    # -- housekeeping

    def entries(self) -> list[DatasetFacts]:
        """Describe every intact-looking dataset in the cache, by name."""
        datasets = []
        for checksum in self._checksums():
            with contextlib.suppress(DatasetError):
                datasets.append(self.describe(checksum))
        return sorted(datasets, key=lambda facts: (facts.name, facts.checksum))

    def verify(self) -> list[str]:
        """Compare every file of the cache with its checksum; return one line per problem.

        Damaged entries are moved aside, so that they are fetched again.
        """
        problems = []
        for checksum in self._checksums():
            try:
                self._check(checksum, thorough=True)
            except DatasetError as error:
                problems.append(str(error))
        return problems

    def clear(self) -> int:
        """Remove everything that the cache has written, and nothing else; return its bytes."""
        freed = 0
        checksums = self._checksums()
        paths = [self.root / name for name in ("manifest", "verified", "damaged")]
        paths += [self.root / checksum for checksum in checksums]
        paths += list(self.root.glob(".tmp-*"))
        for folder in paths:
            if folder.is_dir() and not folder.is_symlink():
                freed += sum(f.lstat().st_size for f in folder.rglob("*") if f.is_file())
                shutil.rmtree(folder, ignore_errors=True)
        return freed

    # -- inside

    def _checksums(self) -> list[str]:
        try:
            return sorted(p.name for p in self.root.iterdir() if _entry.is_checksum(p.name))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise DatasetError(
                f"the cache {self.root} cannot be read: {error.strerror or error}. Name another "
                "folder in KBENCH_CACHE_DIR."
            ) from error

    @contextlib.contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        """Turn the reason why a dataset cannot be written into a message."""
        try:
            yield
        except OSError as error:
            raise self.refusal(name, error) from error

    def refusal(self, name: str, error: OSError) -> DatasetError:
        """Return the message for a dataset that cannot be written."""
        if error.errno is None and _HALF_WRITTEN.search(str(error)):
            # numpy does not say why fewer values were written than it asked for
            error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return DatasetError(
            f"dataset {name!r} cannot be written to the cache {self.root}: "
            f"{error.strerror or error}; {files.remedy(error, 'KBENCH_CACHE_DIR')}"
        )
