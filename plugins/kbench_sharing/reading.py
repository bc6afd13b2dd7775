"""Read the bundle of another user: nothing in it is executed or unpickled."""

import io
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from kbench.errors import BundleError
from kbench.features import now_ms, read_file
from kbench.messages import mask, printable
from kbench.records.canonical import Json, JsonObject
from kbench_sharing import bundle_records, zip_file
from kbench_sharing.bundle_records import Bundle
from kbench_sharing.checks import Alike, check_cells, check_datasets, check_result
from kbench_sharing.columns import dump_line, pack, unpack
from kbench_sharing.dependencies import read_dependencies
from kbench_sharing.fetching import fetch
from kbench_sharing.untrusted_text import MAX_COLUMN, MAX_LINE, parse_json
from kbench_sharing.zip_file import most_lists, most_of_predictions

Record = TypeVar("Record", bound=bundle_records.Line)

MAX_SUITE = 1 << 20

# Datasets, cells or plugins.
MAX_LINES = 100_000

# Bytes of a rows file.
MAX_ROWS = 64 << 20

# End of the names of rows files.
ROWS = ".jsonl"


def read_bundle(path: Path) -> Bundle:
    """Read and check a bundle: a zip file, a folder, or a rows file of a results repository.

    BundleError is raised for a damaged, forged or invalid bundle.
    """
    try:
        if path.is_dir():
            return parse_bundle(zip_file.read_folder(path))
        return _read_file(read_file(path, zip_file.MAX_ZIPPED))
    except OSError as error:
        why = f"it cannot be read: {error.strerror or error}"
        raise BundleError(f"{path} is invalid: {why}") from error
    except BundleError as error:
        raise BundleError(f"{path} is invalid: {error}") from None


def read_url(url: str) -> Bundle:
    """Fetch a bundle or a rows file from a server, and check it as a file is checked.

    BundleError is raised if it cannot be fetched, or is invalid.
    """
    data = fetch(url)
    try:
        return _read_file(data)
    except BundleError as error:
        raise BundleError(f"what {printable(mask(url), 200)} sent is invalid: {error}") from None


def _read_file(data: bytes) -> Bundle:
    if data.startswith(zip_file.ZIP):
        return parse_bundle(zip_file.read_zip(data), len(data))
    if not data.startswith(b"{"):
        raise BundleError("it is neither a zip file nor a rows file")
    if len(data) > MAX_ROWS:
        raise BundleError(f"a rows file has {MAX_ROWS >> 20} MiB at most")
    return bundle_of_rows(data)


def parse_bundle(files: dict[str, bytes], n_bytes: int | None = None) -> Bundle:
    """Check the files of a bundle; raise BundleError if they are invalid.

    `n_bytes` are those of the zip file, by default of files that were not packed.
    """
    if bundle_records.MANIFEST not in files:
        raise BundleError(f"it has no {bundle_records.MANIFEST}")
    n_bytes = n_bytes or sum(map(len, files.values()))
    _check_lists(files.values(), most_lists(n_bytes))
    manifest = _manifest(files)
    _check_texts(files)
    cells = list(_lines(files, bundle_records.CELLS, bundle_records.SharedCell))
    blocks = _values(files, bundle_records.RESULTS, MAX_COLUMN)
    bundle = _check_lines(
        zip_file.sha256(files[bundle_records.MANIFEST]),
        manifest,
        files,
        _lines(files, bundle_records.DATASETS, bundle_records.SharedDataset),
        cells,
        list(_lines(files, bundle_records.PLUGINS, bundle_records.SharedPlugin)),
        unpack(blocks, [cell.key for cell in cells], most_lists(n_bytes)),
        _lines(files, bundle_records.DEPENDENCIES, bundle_records.SharedDependencies),
    )
    if bundle_records.PREDICTIONS in files:
        from kbench_sharing.predictions import check_predictions

        values = _values(files, bundle_records.PREDICTIONS, MAX_COLUMN)
        read = bundle_records.SharedPredictions.read
        lines = ((place, read(value, place)) for place, value in values)
        most = most_of_predictions(n_bytes)
        return replace(bundle, predictions=check_predictions(lines, bundle, most))
    return bundle


def bundle_of_rows(data: bytes) -> Bundle:
    """Check a rows file, which has one cell; raise BundleError if it is invalid.

    Its lines are a head, the dataset, the cell, and the columns of the results. The bundle has
    no suite file.
    """
    most = most_lists(len(data))
    _check_lists([data], most)
    lines = data.splitlines(keepends=True)
    if len(lines) < 4:
        raise BundleError("it lacks a header, a dataset, a cell or results")
    values = [parse_json(line, f"line {number}") for number, line in enumerate(lines[:3], 1)]
    # the same results have one form only, and so one name
    for number, (line, value) in enumerate(zip(lines, values, strict=False), 1):
        if dump_line(value) != line:
            raise BundleError(
                f"line {number} is not in canonical form, maybe changed by an editor or by `git` "
                "with core.autocrlf: use the published file"
            )
    head = bundle_records.Head.read(values[0], "line 1")
    if not head.author:
        raise BundleError("it names no author")
    cell = bundle_records.SharedCell.read(values[2], "line 3")
    blocks = [
        (f"line {number}", parse_json(line, f"line {number}", MAX_COLUMN))
        for number, line in enumerate(lines[3:], 4)
    ]
    results = list(unpack(blocks, [cell.key], most))
    bundle = _check_lines(
        zip_file.sha256(data),
        head,
        {bundle_records.ROWS_FILE: data},
        [bundle_records.SharedDataset.read(values[1], "line 2")],
        [cell],
        head.plugins,
        results,
        head.dependencies,
    )
    if pack((result for _, result in results), [cell.key]) != b"".join(lines[3:]):
        raise BundleError("its results are not in canonical form")
    return bundle


def _check_lines(
    id: str,
    origin: bundle_records.Origin,
    files: Mapping[str, bytes],
    datasets: Iterable[bundle_records.SharedDataset],
    cells: list[bundle_records.SharedCell],
    plugins: list[bundle_records.SharedPlugin],
    entries: Iterable[tuple[str, JsonObject]],
    dependencies: Iterable[bundle_records.SharedDependencies],
) -> Bundle:
    """Return a bundle with consistent records; raise BundleError otherwise."""
    by_label = check_datasets(datasets)
    check_cells(cells, by_label)
    by_key = {cell.key: cell for cell in cells}
    results, named = bundle_records.PackedResults(), set[str]()
    alike, now = Alike(), now_ms()
    for key, entries_of_cell in groupby(entries, key=lambda entry: entry[1]["cell"]):
        cell = by_key[key]
        dataset = by_label[cell.dataset]
        values: list[JsonObject] = []
        of_cell: dict[int, bundle_records.SharedResult] = {}
        for place, value in entries_of_cell:
            result = bundle_records.SharedResult.read(value, f"a result of {place}")
            check_result(result, cell, dataset, len(origin.machines), now)
            alike.check_rows(result, cell, dataset)
            if of_cell.setdefault(result.split, result) is not result:
                raise BundleError(f"it has split {result.split} of {cell.name} twice")
            values.append(value)
            named.add(result.manifest)
        if key in results:
            raise BundleError(f"the results of {cell.name} are not next to each other")
        results.add(key, of_cell, values)
    manifests = read_dependencies(dependencies, named - {""})
    return Bundle(id, origin, by_label, cells, results, plugins, files, manifests)


def _check_lists(files: Iterable[bytes], most: int) -> None:
    """Count lists and objects before they are parsed: two characters become 60 bytes or more."""
    n_lists = sum(data.count(b"[") + data.count(b"{") for data in files)
    if n_lists > most:
        raise BundleError(
            f"it has {n_lists:,} lists and objects, more than the {most:,} allowed for its size"
        )


def _manifest(files: dict[str, bytes]) -> bundle_records.Manifest:
    """Return the manifest, whose sizes and sums are those of the other files."""
    manifest = bundle_records.Manifest.read(
        parse_json(files[bundle_records.MANIFEST], bundle_records.MANIFEST), bundle_records.MANIFEST
    )
    if missing := sorted(set(bundle_records.FILES) - files.keys()):
        raise BundleError(f"it lacks {missing[0]}")
    if manifest.files.keys() != files.keys() - {bundle_records.MANIFEST}:
        raise BundleError(f"its files differ from those listed in {bundle_records.MANIFEST}")
    for name, listed in manifest.files.items():
        data = files[name]
        if listed.n_bytes != len(data) or listed.sha256 != zip_file.sha256(data):
            raise BundleError(
                f"{name} was changed: its SHA-256 differs from that in {bundle_records.MANIFEST}"
            )
    return manifest


def _values(
    files: Mapping[str, bytes], name: str, most: int = MAX_LINE
) -> Iterator[tuple[str, Json]]:
    """Yield the place and the value of each line of a file."""
    for number, line in enumerate(io.BytesIO(files[name]), 1):
        place = f"line {number} of {name}"
        yield place, parse_json(line, place, most)


def _lines(files: Mapping[str, bytes], name: str, record: type[Record]) -> Iterator[Record]:
    if files[name].count(b"\n") > MAX_LINES:
        raise BundleError(f"{name} has more than {MAX_LINES:,} lines")
    for place, value in _values(files, name):
        yield record.read(value, place)


def _check_texts(files: Mapping[str, bytes]) -> None:
    """Check the files that are shown or read as text."""
    for name in (bundle_records.SUITE, bundle_records.LOCK):
        if len(files[name]) > MAX_SUITE:
            raise BundleError(f"{name} has more than {MAX_SUITE >> 20} MiB")
        try:
            content = files[name].decode("utf-8")
            tomllib.loads(content if name == bundle_records.SUITE else "")
        except UnicodeDecodeError:
            raise BundleError(f"{name} is not UTF-8 text") from None
        except (tomllib.TOMLDecodeError, RecursionError):
            raise BundleError(f"{name} is not TOML") from None
