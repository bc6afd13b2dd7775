"""What the modules, files, variables and distributions of manifests are now."""

import base64
import contextlib
import csv
import hashlib
import json
import os
import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import cache, cached_property, reduce
from importlib import metadata
from operator import or_
from pathlib import Path
from typing import Any

from kbench.planning.digests import Digests, syntax_digest
from kbench.records import INSTALLED, NAMESPACE, Manifest
from kbench.registry.dependencies import find_folders, find_source, is_installed, locate_in_package
from kbench.storage.files import read_state

CHANGED = "changed while it was read"
"""Digest of what was not the same from the first read until the end: it is never valid."""

Recorded = Mapping[str, Any]
"""What a process has reported of itself; see `kbench.execution.recording`."""


class Present:
    """Looks up what manifests name, as it is now; each is looked up once.

    Examples
    --------
    >>> now = Present()
    >>> now.why_changed(Manifest({"kbench.errors": now.module("kbench.errors")}))
    ()
    >>> now.why_changed(Manifest({"no_such_module": "1", "kbench.errors": "2"}))
    ('kbench/errors.py changed', 'no_such_module is not there')
    """

    def __init__(self) -> None:
        self._sources: dict[str, Path | None] = {}
        self._reasons: dict[str, tuple[str, ...]] = {}
        self._built: dict[str, Manifest] = {}
        self._digests = Digests()
        self.module = cache(self._module)
        self.file = cache(lambda name: self._path_digest(self.find_path(name)))
        self.distribution = cache(self._distribution)

    def why_changed(self, manifest: Manifest) -> tuple[str, ...]:
        """Return what is otherwise now than in a manifest; empty if nothing is."""
        if manifest.digest not in self._reasons:
            differences = manifest.differences(self.refresh(manifest))
            self._reasons[manifest.digest] = tuple(map(self._readable, differences))
        return self._reasons[manifest.digest]

    def refresh(self, manifest: Manifest) -> Manifest:
        """Return what a manifest names as it is now."""
        versions = {name: self.distribution(name) for name in manifest.distributions}
        for name, was in manifest.distributions.items():
            if was is not None and " " not in was:  # of another host: its version counts
                versions[name] = (versions[name] or "").partition(" ")[0] or None
        return Manifest(
            # a module that was hashed may have been installed with a version since
            {
                name: self.module(name) if was in (None, INSTALLED) else self._hash(name)
                for name, was in manifest.modules.items()
            },
            {name: self.file(name) for name in manifest.files},
            {name: variable(name) for name in manifest.variables},
            versions,
        )

    def build(self, recorded: Iterable[Recorded]) -> Manifest | None:
        """Return the manifest of what a process has reported; None if it reported nothing."""
        recorded = list(recorded)
        # tasks of one warm process report the same: the code was loaded once
        if (manifest := self._built.get(key := json.dumps(recorded))) is None and recorded:
            written = {path for each in recorded for path in each.get("written", ())}
            manifest = reduce(or_, (self._build(each, written) for each in recorded))
            # a task may read a file several times, and what has changed may become as it was
            if not manifest.files and CHANGED not in manifest.modules.values():
                self._built[key] = manifest
        return manifest

    def save(self) -> None:
        """Keep the digests that were computed."""
        self._digests.save()

    def _build(self, recorded: Recorded, written: Collection[str]) -> Manifest:
        modules: dict[str, str | None] = {}
        files: dict[str, str | None] = {}
        for name, (sha, path) in recorded.get("modules", {}).items():
            source = self._source(name)
            if sha is None or (not path and not source):
                modules[name] = None if sha is None else self.module(name)
            elif path and source != Path(path):
                # a file that no import finds under this name: it was read as a file is
                files[path] = sha
            elif sha and self._digests.hash_file(source or path) != sha:
                modules[name] = CHANGED
            else:
                modules[name] = self._hash(name)
        distributions: dict[str, str | None] = {"python": python()}
        for top in recorded.get("packages", ()):
            owners = [each.metadata["Name"] for each in self._owners.get(top, ())]
            modules[top] = INSTALLED if owners else self._hash(top)
            distributions |= {owner: self.distribution(owner) for owner in owners}
        distributions |= {n: self.distribution(n) for n in recorded.get("distributions", ())}
        files |= {
            locate_in_package(Path(path), self._sources) or path: self._digest_as_read(path, state)
            for path, state in recorded.get("files", {}).items()
            if path not in written
        }
        return Manifest(modules, files, recorded.get("variables", {}), distributions)

    def _digest_as_read(self, path: str, state: object) -> str | None:
        if state is None:
            return None
        now = self._path_digest(Path(path))
        return now if state in (now, read_state(path)) else CHANGED

    # -- modules

    def _module(self, name: str) -> str | None:
        """Return what stands for a module in manifests; None if it is not found."""
        path = self._source(name)
        if path is not None and is_installed(path) and "." not in name:
            return INSTALLED
        value = self._hash(name)
        # a package of several distributions, such as `google` or `nvidia`, has no file
        return INSTALLED if value == NAMESPACE and name in self._owners else value

    def _hash(self, name: str) -> str | None:
        if (path := self._source(name)) is None:
            return NAMESPACE if find_folders(name, self._sources) else None
        if path.suffix == ".py":
            return self._digests.hash_content(path, syntax_digest)
        return self._digests.hash_file(path)  # compiled

    def _source(self, module: str) -> Path | None:
        return find_source(module, self._sources)

    def _readable(self, reason: str) -> str:
        name, changed, _ = reason.partition(" changed")
        path = self._source(name) if changed and " " not in name else None
        if path is None:
            return reason
        folders = name.split(".")[: None if path.stem == "__init__" else -1]
        return "/".join((*folders, path.name)) + changed

    # -- files

    def _path_digest(self, path: Path) -> str | None:
        if os.path.isdir(path):  # noqa: PTH112 (Path refuses names that are too long)
            return folder_digest(path)
        return self._digests.hash_file(path)

    def find_path(self, name: str) -> Path:
        """Return the path of a file of a manifest."""
        package, _, relative = name.partition(":")
        if Path(name).is_absolute() or not relative:
            return Path(name)
        path = self._source(package)
        folders = [str(path.parent)] if path else find_folders(package, self._sources)
        paths = [Path(folder, relative) for folder in folders]
        existing = (each for each in paths if read_state(each) is not None)
        return next(existing, Path(*folders[:1], relative))

    # -- distributions

    def _distribution(self, name: str) -> str | None:
        """Return version and digest of the files of a distribution; None if there is none."""
        if name == "python":
            return python()
        try:
            installed = metadata.distribution(name)
            version, record = installed.version, installed.read_text("RECORD") or ""
        except (metadata.PackageNotFoundError, ValueError, TypeError):
            return None
        return f"{version} {self._files_digest(installed, record)}" if record else version

    def _files_digest(self, package: metadata.Distribution, record: str) -> str:
        """Return a digest of the files of a package, without scripts and bytecode.

        The installer has hashed them. One that changed after the installation is hashed again.
        """
        root = str(package.locate_file(""))
        until = max((read_state(getattr(package, "_path", root)) or [0] * 5)[3:]) + 2_000_000_000
        lines = []
        for path, sha, *_ in csv.reader(record.splitlines()):
            if path.startswith(("..", "/")) or path.endswith(".pyc") or ".dist-info/" in path:
                continue
            state = read_state(f"{root}/{path}")
            if state is not None and sha and max(state[3:]) <= until:
                lines.append(f"{path} {sha}")
                continue
            actual = None if state is None else self._digests.hash_file(f"{root}/{path}")
            # as RECORD has it
            digest = actual and base64.urlsafe_b64encode(bytes.fromhex(actual)).decode().rstrip("=")
            lines.append(f"{path} {digest and f'sha256={digest}'}")
        return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]

    @cached_property
    def _owners(self) -> Mapping[str, list[metadata.Distribution]]:
        """The distributions of each top-level module; `packages_distributions` is slow."""
        owners = defaultdict(list)
        for each in metadata.distributions():
            declared = (each.read_text("top_level.txt") or "").split()
            for top in declared or {*_TOP.findall(each.read_text("RECORD") or "")}:
                owners[top].append(each)
        return owners


_TOP = re.compile(r"^([^/,\n]+?)(?:/[^,\n]*)?\.py,", re.MULTILINE)
"""The top-level module of a line of RECORD."""


def python() -> str:
    """Return the version of Python that counts."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def variable(name: str) -> str | None:
    """Return the digest of an environment variable's value; None if it is not set."""
    value = None
    with contextlib.suppress(ValueError):  # a name that no variable can have
        value = os.environ.get(name)
    return None if value is None else hashlib.sha256(os.fsencode(value)).hexdigest()


def folder_digest(path: str | Path) -> str | None:
    """Return the digest of the names in a folder, without bytecode; None if it cannot be read."""
    try:
        names = os.listdir(path)  # noqa: PTH208 (names only)
    except OSError:
        return None
    counted = sorted(name for name in names if name != "__pycache__")
    return hashlib.sha256("\0".join(counted).encode("utf-8", "surrogateescape")).hexdigest()
