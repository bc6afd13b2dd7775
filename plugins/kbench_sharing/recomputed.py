"""Records of recomputed splits: the result, the author, the time and the verdict.

A record names a result by a hash of what it says, so that it holds for the same result in any
bundle or rows file, and for no other. In a results repository, records lie in ``checks/<name of
the rows file>/<SHA-256 of the content>.jsonl``: files that are never changed, with a line for each
split.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from pydantic import NonNegativeInt

from kbench import features
from kbench.errors import BundleError
from kbench.features import now_ms
from kbench.messages import plural
from kbench.records.canonical import digest
from kbench_sharing import bundle_records
from kbench_sharing.checks import DAY_MS
from kbench_sharing.columns import dump_line
from kbench_sharing.reading import ROWS
from kbench_sharing.untrusted_text import check_digest, parse_json
from kbench_sharing.zip_file import read_named, sha256

_KIND = "recomputed"


class Record(bundle_records.Line):
    """A recomputed split: `result` is `hash_result` what its author says."""

    format: Literal[1] = 1
    cell: bundle_records.CellKey
    split: NonNegativeInt
    result: Annotated[str, bundle_records.validate_with(check_digest, "the hash of a result")]
    verdict: features.Verdict
    author: bundle_records.Author
    cpu: bundle_records.CPU
    versions: bundle_records.Versions
    at_ms: NonNegativeInt

    def check(self) -> features.Check:
        """Return what rows say of it."""
        return features.Check(self.split, self.verdict, self.author or features.HERE, self.at_ms)


# Records by key of the cell and number of the split.
Records = Mapping[tuple[str, int], list[Record]]


def hash_result(result: bundle_records.SharedResult) -> str:
    """Return the SHA-256 of a result, without the place that its machine has in a file."""
    return digest(result.model_dump(exclude={"machine"}))


def make_record(
    result: bundle_records.SharedResult,
    verdict: features.Verdict,
    author: str,
    versions: Mapping[str, str],
) -> Record:
    """Return the record of a split that was recomputed now, on this machine."""
    return Record(
        cell=result.cell,
        split=result.split,
        result=hash_result(result),
        verdict=verdict,
        author=author,
        cpu=features.machine.cpu_model(),
        versions=dict(versions),
        at_ms=now_ms(),
    )


def keep(record: Record) -> None:
    """Keep a record in the state folder of this machine; JournalError where it cannot be."""
    _journal().append(_KIND, **record.model_dump())


def list_records() -> Records:
    """Return the records that are kept here; damaged lines are left out."""
    records = []
    for line in _journal().read(_KIND):
        with suppress(BundleError):
            fields = {name: value for name, value in line.items() if name not in ("kind", "crc")}
            records.append(Record.read(fields, "a record"))
    return group_records(records)


def _journal() -> features.Journal:
    return features.Journal(features.state_folder() / f"{_KIND}.jsonl")


def group_records(records: Iterable[Record]) -> Records:
    """Return records by key of the cell and number of the split."""
    return features.group_values(((record.cell, record.split), record) for record in records)


def list_checks(
    results: Mapping[int, bundle_records.SharedResult], records: Records
) -> list[features.Check]:
    """Return the checks of the results of a cell, by number of the split; the oldest first."""
    checks = []
    for split, result in results.items():
        if same := records.get((result.cell, split), ()):
            name = hash_result(result)
            checks += [record.check() for record in same if record.result == name]
    return sorted(checks, key=lambda check: (check.at_ms, check.split, check.by))


def check_record(
    record: Record, result: bundle_records.SharedResult | None, author: str, now_ms: int
) -> None:
    """Check a record of a repository against the result that it names; BundleError if wrong."""
    if not record.author:
        raise BundleError("it does not name who recomputed")
    if record.author == author:
        raise BundleError("it is the author's recomputation, which is no evidence")
    if result is None or record.result != hash_result(result):
        raise BundleError(f"split {record.split} differs from the result that was recomputed")
    if result.status != "ok":
        raise BundleError(f"split {record.split} is not ok, and was not recomputed")
    if record.at_ms < result.ended_ms or record.at_ms > now_ms + DAY_MS:
        raise BundleError(f"split {record.split} was recomputed before it ended, or in the future")


# Folder of these files in a repository.
CHECKS = "checks"

# Bytes of such a file.
MAX_CHECKS = 8 << 20


def records_file(rows_key: str, records: Iterable[Record]) -> tuple[str, bytes]:
    """Return name and content of the file of records of a rows file."""
    ordered = sorted(records, key=lambda record: record.split)
    data = b"".join(dump_line(record.model_dump()) for record in ordered)
    return f"{CHECKS}/{rows_key}/{sha256(data)}{ROWS}", data


def read_records(repository: Path, name: str, bundle: bundle_records.Bundle) -> list[Record]:
    """Read and check a file of records of the results of a rows file."""
    if PurePosixPath(name).suffix != ROWS:
        raise BundleError(f"it does not belong in {CHECKS}")
    lines = enumerate(read_named(repository, name, MAX_CHECKS).splitlines(), 1)
    places = [(f"line {number}", line) for number, line in lines]
    records = [Record.read(parse_json(line, place), place) for place, line in places]
    splits = {(record.cell, record.split) for record in records}
    if len(splits) < len(records) or not records:
        raise BundleError(f"it has {plural(len(records), 'line')} of {len(splits)} splits")
    for record in records:
        result = bundle.results.get(record.cell, {}).get(record.split)
        check_record(record, result, bundle.author, now_ms())
    return records
