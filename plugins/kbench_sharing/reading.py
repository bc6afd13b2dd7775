"""Reads a bundle that somebody else made: nothing in it is executed or unpickled."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from kbench.errors import BundleError
from kbench.features import read_file
from kbench.messages import masked, printable
from kbench.records.canonical import Json, dumps
from kbench_sharing import container, form
from kbench_sharing.checks import (
    SplitHashes,
    check_cells,
    check_datasets,
    check_result,
    now_ms,
)
from kbench_sharing.columns import Columns, check_number, packed
from kbench_sharing.container import Bounds
from kbench_sharing.dependencies import read_dependencies
from kbench_sharing.fetching import fetched
from kbench_sharing.form import (
    Bundle,
    Head,
    Line,
    Manifest,
    Origin,
    SharedCell,
    SharedDataset,
    SharedDependencies,
    SharedPlugin,
    SharedPredictions,
    SharedResult,
)
from kbench_sharing.texts import (
    MOST_COLUMN,
    check_author,
    check_component,
    check_digest,
    check_label,
    check_version,
    parsed,
)

if TYPE_CHECKING:
    from kbench.features import Predictions

Record = TypeVar("Record", bound=Line)

MOST_SUITE = 1 << 20

MOST_LINES = 100_000
"""Datasets, cells or plugins."""

MOST_ROWS = 64 << 20
"""Bytes of a rows file."""

ROWS = ".jsonl"
"""End of the names of rows files."""


def read_bundle(path: Path) -> Bundle:
    """Read and check a bundle: a zip file, a folder, or a rows file of a results repository.

    BundleError says in one sentence what is damaged, forged or impossible.
    """
    try:
        if path.suffix == ROWS and not path.is_dir():
            return bundle_of_rows(_rows(path))
        is_packed = not path.is_dir()
        files = container.read(path)
        return bundle_of(files, Bounds(path.stat().st_size, True) if is_packed else None)
    except BundleError as error:
        raise BundleError(f"{path} is refused: {error}") from None


def read_fetched(url: str) -> Bundle:
    """Fetch a bundle or a rows file from a server, and check it as a file is checked.

    BundleError is raised where it cannot be fetched, or is refused.
    """
    data = fetched(url)
    try:
        if data.startswith(container.ZIP):
            return bundle_of(container.of_zip(data), Bounds(len(data), is_packed=True))
        if len(data) > MOST_ROWS:
            raise BundleError(f"a rows file has {MOST_ROWS >> 20} MB at most")
        return bundle_of_rows(data)
    except BundleError as error:
        raise BundleError(f"what {printable(masked(url), 200)} sent is refused: {error}") from None


def bundle_of(files: dict[str, bytes], bounds: Bounds | None = None) -> Bundle:
    """Check the files of a bundle; BundleError says what is wrong.

    `bounds` are by default those of files that were not packed.
    """
    if form.MANIFEST not in files:
        raise BundleError(f"it has no {form.MANIFEST}")
    bounds = bounds or Bounds(sum(map(len, files.values())), is_packed=False)
    _check_lists(files.values(), bounds)
    check_number(files.get(form.RESULTS, b""))
    manifest = _manifest(files)
    suite_text = _text(files, form.SUITE)
    try:
        tomllib.loads(suite_text)
    except (tomllib.TOMLDecodeError, RecursionError):
        raise BundleError(f"{form.SUITE} is not TOML") from None
    listed = list(_lines(files, form.DATASETS, SharedDataset))
    check_datasets(listed)
    datasets = {each.ref.label: each for each in listed}
    cells = list(_lines(files, form.CELLS, SharedCell))
    check_cells(cells, datasets)
    plugins = list(_lines(files, form.PLUGINS, SharedPlugin))
    _check_plugins(plugins)
    lines = _parsed_lines(files[form.RESULTS], f" of {form.RESULTS}")
    columns = Columns(lines, [cell.key for cell in cells], bounds.results)
    results = _results(columns, len(manifest.machines), cells, datasets)
    lines_of_dependencies: Iterable[SharedDependencies] = ()
    if form.DEPENDENCIES in files:
        lines_of_dependencies = _lines(files, form.DEPENDENCIES, SharedDependencies)
    dependencies = read_dependencies(lines_of_dependencies, results, manifest.format)
    return Bundle(
        id=container.sha256(files[form.MANIFEST]),
        manifest=manifest,
        suite_text=suite_text,
        lock=_text(files, form.LOCK),
        datasets=datasets,
        cells=cells,
        results=results,
        plugins=plugins,
        files=files,
        dependencies=dependencies,
        predictions=_predictions(files, cells, datasets, results, bounds.predictions),
    )


def bundle_of_rows(data: bytes) -> Bundle:
    """Check a rows file, which has one cell; BundleError says what is wrong.

    Its lines are a head, the dataset, the cell, and the columns of the results. The bundle has
    no suite file.
    """
    bounds = Bounds(len(data), is_packed=False)
    _check_lists([data], bounds)
    lines = data.splitlines(keepends=True)
    if len(lines) < 4:
        raise BundleError("it has less than a head, a dataset, a cell and results")
    values = []
    for number, line in enumerate(lines[:3], 1):
        value = parsed(line, f"line {number}")
        if line.endswith(b"\r\n"):
            raise BundleError(
                "its lines end with CR LF, as an editor or `git` with core.autocrlf makes them: "
                "copy it as it was published"
            )
        # the same results have one form only, and so one name
        if (dumps(value) + "\n").encode("utf-8", "surrogatepass") != line:
            raise BundleError(f"line {number} is not written as kbench writes it")
        values.append(value)
    head = Head.read(values[0], "line 1")
    dataset = SharedDataset.read(values[1], "line 2")
    cell = SharedCell.read(values[2], "line 3")
    origin = {name: getattr(head, name) for name in Origin.model_fields}
    manifest = Manifest(**origin, files={})
    _check_texts(manifest)
    if not head.author:
        raise BundleError("it names no author")
    check_datasets([dataset])
    datasets = {dataset.ref.label: dataset}
    check_cells([cell], datasets)
    _check_plugins(head.plugins)
    written = b"".join(lines[3:])
    given_results = list(Columns(_parsed_lines(written, "", first=4), [cell.key], bounds.results))
    results = _results(given_results, len(manifest.machines), [cell], datasets)
    again = packed((result for _, result in given_results), [cell.key])
    if "".join(f"{line}\n" for line in again).encode() != written:
        raise BundleError("its results are not written as kbench writes them")
    if head.format < form.FORMAT and "dependencies" in head.model_fields_set:
        raise BundleError(f"it has dependencies, which the format {head.format} does not have")
    return Bundle(
        id=container.sha256(data),
        manifest=manifest,
        suite_text="",
        lock="",
        datasets=datasets,
        cells=[cell],
        results=results,
        plugins=head.plugins,
        files={form.ROWS_FILE: data},
        dependencies=read_dependencies(head.dependencies, results, head.format),
    )


def _predictions(
    files: dict[str, bytes],
    cells: list[SharedCell],
    datasets: dict[str, SharedDataset],
    results: dict[str, dict[int, SharedResult]],
    most: int,
) -> Mapping[tuple[str, int], Sequence[Predictions]]:
    if form.PREDICTIONS not in files:
        return {}
    from kbench_sharing.predictions import Kept

    lines = (
        (place, SharedPredictions.read(value, place))
        for place, value in _parsed_lines(files[form.PREDICTIONS], f" of {form.PREDICTIONS}")
    )
    return Kept(lines, cells, datasets, results, most).by_unit


def _rows(path: Path) -> bytes:
    try:
        return read_file(path, MOST_ROWS)
    except OSError as error:
        raise BundleError(f"it cannot be read: {error.strerror or error}") from error


def _check_lists(files: Iterable[bytes], bounds: Bounds) -> None:
    """Count lists and objects before they are parsed: two characters become 60 bytes or more."""
    n_lists = sum(data.count(b"[") + data.count(b"{") for data in files)
    if n_lists > bounds.lists:
        raise BundleError(
            f"it has {n_lists:,} lists and objects, more than the {bounds.lists:,} allowed for its "
            "size"
        )


def _manifest(files: dict[str, bytes]) -> Manifest:
    """Return the manifest, whose sizes and sums are those of the other files."""
    value = parsed(files[form.MANIFEST], form.MANIFEST)
    given = value.get("format") if isinstance(value, dict) else None
    if type(given) is int and given not in form.READABLE:
        advice = "update it" if given > form.FORMAT else "ask for a new file"
        raise BundleError(
            f"it has the format {given}, and this version of kbench reads {form.FORMAT}: {advice}"
        )
    manifest = Manifest.read(value, form.MANIFEST)
    needed = set(form.FILES) - ({form.DEPENDENCIES} if manifest.format < form.FORMAT else set())
    if missing := sorted(needed - files.keys()):
        raise BundleError(f"it lacks {missing[0]}")
    if manifest.files.keys() != files.keys() - {form.MANIFEST}:
        raise BundleError(f"it has other files than {form.MANIFEST} lists")
    for name, listed in manifest.files.items():
        data = files[name]
        if listed.n_bytes != len(data) or listed.sha256 != container.sha256(data):
            raise BundleError(f"{name} was changed: its sum is not that in {form.MANIFEST}")
    _check_texts(manifest)
    return manifest


def _check_texts(manifest: Manifest) -> None:
    check_label(manifest.suite, "suite")
    check_author(manifest.author)
    check_component(manifest.measure, "measure")
    for name, version in manifest.versions.items():
        check_version(name, version)
    for machine in manifest.machines:
        check_label(machine.cpu, "CPU")


def _check_plugins(plugins: Iterable[SharedPlugin]) -> None:
    for plugin in plugins:
        check_label(plugin.name, "plugin")
        check_label(plugin.distribution, "plugin")
        check_label(plugin.version, "version")
        check_digest(plugin.fingerprint, "the fingerprint of a plugin")


def _parsed_lines(data: bytes, of: str, first: int = 1) -> Iterator[tuple[str, Json]]:
    """Yield the place and the value of each line of columns."""
    for number, line in enumerate(data.splitlines(), first):
        place = f"line {number}{of}"
        yield place, parsed(line, place, MOST_COLUMN)


def _results(
    given: Iterable[tuple[str, Json]],
    n_machines: int,
    cells: list[SharedCell],
    datasets: dict[str, SharedDataset],
) -> dict[str, dict[int, SharedResult]]:
    by_key = {cell.key: cell for cell in cells}
    results: dict[str, dict[int, SharedResult]] = {}
    hashes, now = SplitHashes(), now_ms()
    for place, value in given:
        result = SharedResult.read(value, f"a result of {place}")
        cell = by_key[result.cell]
        dataset = datasets[cell.dataset]
        check_result(result, cell, dataset, n_machines, now)
        hashes.check(result, cell, dataset)
        check_label(result.version, "version")
        of_cell = results.setdefault(result.cell, {})
        if result.split in of_cell:
            raise BundleError(
                f"it has split {result.split} of {cell.feature_map.label} + {cell.learner.label} "
                f"on {cell.dataset} twice"
            )
        of_cell[result.split] = result
    return results


def _lines(files: dict[str, bytes], name: str, record: type[Record]) -> Iterator[Record]:
    if files[name].count(b"\n") > MOST_LINES:
        raise BundleError(f"{name} has more than {MOST_LINES:,} lines")
    for number, line in enumerate(files[name].splitlines(), 1):
        place = f"line {number} of {name}"
        yield record.read(parsed(line, place), place)


def _text(files: dict[str, bytes], name: str) -> str:
    if len(files[name]) > MOST_SUITE:
        raise BundleError(f"{name} has more than {MOST_SUITE >> 20} MB")
    try:
        return files[name].decode("utf-8")
    except UnicodeDecodeError:
        raise BundleError(f"{name} is not UTF-8 text") from None
