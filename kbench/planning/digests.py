"""Digests of files, kept by the states of the files."""

from __future__ import annotations

import contextlib
import hashlib
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kbench.registry.source import content_of
from kbench.storage.files import file_digest, write_file
from kbench.storage.journal import state_folder
from kbench.storage.states import may_lie, state_of

MOST = 20_000  # files whose digests are kept; with more, all are computed again


class Digests:
    """Digests of files, each computed again once the state of its file has changed."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file or state_folder() / "digests.json"
        self._kept: dict[str, Any] = {}
        self._of_content: dict[str, str] = {}
        self._is_changed = False
        with contextlib.suppress(OSError, ValueError):
            checksum, _, text = self._file.read_bytes().partition(b"\n")
            known = json.loads(text) if int(checksum, 16) == zlib.crc32(text) else {"files": {}}
            if 0 < len(known["files"]) <= MOST:
                self._kept, self._of_content = dict(known["files"]), dict(known["contents"])

    def of_bytes(self, path: str | Path) -> str | None:
        """Return the SHA-256 of a file (hex), one in an archive included; None for none."""
        state = state_of(path)
        if state is None:
            with contextlib.suppress(OSError, ValueError, StopIteration, KeyError):
                return hashlib.sha256(content_of(Path(path))).hexdigest()
            return None
        if not Path(path).is_file():  # a pipe would wait for a writer
            return ""
        return self.of_state(f"bytes {path}", state, lambda: file_digest(path))

    def of_content(self, path: str | Path, digest: Callable[[bytes], str]) -> str | None:
        """Return a digest that a function computes from the content of a file; None for none."""
        sha = self.of_bytes(path)
        if sha is None:
            return None
        if sha not in self._of_content:
            self._of_content[sha] = digest(content_of(Path(path)))
            self._is_changed = True
        return self._of_content[sha]

    def of_state(self, name: str, state: Any, compute: Callable[[], str | None]) -> str | None:
        """Return what was computed for a state of something, or compute it."""
        reliable = not (len(state) == 5 and may_lie(state))
        kept = self._kept.get(name)
        if reliable and kept is not None and kept[0] == state:
            return str(kept[1])
        value = compute()
        if reliable and value is not None:
            self._kept[name] = [state, value]
            self._is_changed = True
        return value

    def save(self) -> None:
        """Keep the digests for the next process; one that cannot be written computes them."""
        if self._is_changed:
            text = json.dumps({"files": self._kept, "contents": self._of_content}).encode()
            with contextlib.suppress(OSError):
                write_file(self._file, b"%08x\n" % zlib.crc32(text) + text, 0o600, flush=False)
        self._is_changed = False
