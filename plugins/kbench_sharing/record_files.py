"""Files of a results repository that say which splits of a rows file were recomputed.

They lie in ``checks/<name of the rows file>/<SHA-256 of the content>.jsonl``, are never changed,
and have a line for each split.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from pydantic import ValidationError

from kbench.errors import BundleError
from kbench.messages import counted, printable
from kbench.records.canonical import dumps
from kbench_sharing.checks import now_ms
from kbench_sharing.container import read_named, sha256
from kbench_sharing.form import Bundle
from kbench_sharing.reading import ROWS
from kbench_sharing.recomputed import Record, Records, check_record, grouped
from kbench_sharing.texts import parsed

CHECKS = "checks"
"""Folder of these files in a repository."""

MOST_CHECKS = 8 << 20
"""Bytes of such a file."""

_DEPTH = 3


def file_of(rows_key: str, records: Iterable[Record]) -> tuple[str, bytes]:
    """Return name and content of the file of records of a rows file."""
    ordered = sorted(records, key=lambda record: record.split)
    data = "".join(dumps(record.model_dump()) + "\n" for record in ordered).encode()
    return f"{CHECKS}/{rows_key}/{sha256(data)}{ROWS}", data


class RecordFiles:
    """All records of a repository: read and checked as far as they do not depend on its rows.

    `problems` has a line for each file that is refused.
    """

    def __init__(self, repository: Path) -> None:
        self.problems: list[str] = []
        self._by_rows: dict[str, list[tuple[str, list[Record]]]] = {}
        self._now_ms = now_ms()
        for name in _names(repository):
            try:
                records = _read(repository, name)
            except BundleError as error:
                self.problems.append(f"{printable(name, 300)}: {error}")
                continue
            self._by_rows.setdefault(PurePosixPath(name).parts[1], []).append((name, records))

    def of_rows(self, rows_key: str, bundle: Bundle) -> Records:
        """Return the records of a rows file that hold for its results; note those that do not."""
        good: list[Record] = []
        for name, records in self._by_rows.pop(rows_key, ()):
            try:
                for record in records:
                    results = bundle.results.get(record.cell, {})
                    check_record(record, results.get(record.split), bundle.author, self._now_ms)
            except BundleError as error:
                self.problems.append(f"{name}: {error}")
                continue
            good += records
        return grouped(good)

    def note_left(self) -> None:
        """Note the files whose rows file was never asked for."""
        for files in self._by_rows.values():
            self.problems += [
                f"{name}: the repository has no rows file of this name" for name, _ in files
            ]


def _names(repository: Path) -> Iterator[str]:
    top = repository / CHECKS
    for folder, folders, files in os.walk(top):
        folders.sort()
        links = [each for each in folders if (Path(folder) / each).is_symlink()]
        for each in sorted((*files, *links)):
            yield (Path(folder) / each).relative_to(repository).as_posix()


def _read(repository: Path, name: str) -> list[Record]:
    path = PurePosixPath(name)
    if len(path.parts) != _DEPTH or path.suffix != ROWS:
        raise BundleError(f"it has no place in {CHECKS}")
    data = read_named(repository, name, MOST_CHECKS)
    records = []
    for number, line in enumerate(data.splitlines(), 1):
        try:
            records.append(Record.model_validate(parsed(line, f"line {number}")))
        except ValidationError as error:
            wrong = error.errors(include_url=False, include_context=False, include_input=False)[0]
            where = "".join(f"[{part!r}]" for part in wrong["loc"])
            text = printable(f"{where[:200]}: {wrong['msg']}", 400)
            raise BundleError(f"line {number}{text}") from None
    splits = {(record.cell, record.split) for record in records}
    if len(splits) < len(records) or not records:
        raise BundleError(f"it has {counted(len(records), 'line')} of {len(splits)} splits")
    return records
