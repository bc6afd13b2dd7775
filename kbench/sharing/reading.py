"""Reads a bundle that somebody else made: nothing in it is executed or unpickled."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from kbench.errors import BundleError
from kbench.messages import printable
from kbench.sharing import container, form
from kbench.sharing.checks import (
    SplitHashes,
    check_cells,
    check_datasets,
    check_result,
    now_ms,
)
from kbench.sharing.form import (
    Bundle,
    Manifest,
    SharedCell,
    SharedDataset,
    SharedPlugin,
    SharedResult,
)
from kbench.sharing.texts import check_component, check_digest, check_label, check_version, parsed

Line = TypeVar("Line", Manifest, SharedDataset, SharedCell, SharedResult, SharedPlugin)

MOST_SUITE = 1 << 20


def read_bundle(path: Path) -> Bundle:
    """Read and check a bundle, a zip file or a folder.

    Raises
    ------
    BundleError
        With one sentence: what is damaged, forged or impossible.
    """
    try:
        return bundle_of(container.read(path))
    except BundleError as error:
        raise BundleError(f"{path} is refused: {error}") from None


def bundle_of(files: dict[str, bytes]) -> Bundle:
    """Check the files of a bundle; BundleError says what is wrong."""
    if form.MANIFEST not in files:
        raise BundleError(f"it has no {form.MANIFEST}")
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
    for plugin in plugins:
        check_label(plugin.name, "plugin")
        check_label(plugin.distribution, "plugin")
        check_label(plugin.version, "version")
        check_digest(plugin.fingerprint, "the fingerprint of a plugin")
    return Bundle(
        id=container.sha256(files[form.MANIFEST]),
        manifest=manifest,
        suite_text=suite_text,
        lock=_text(files, form.LOCK),
        datasets=datasets,
        cells=cells,
        results=_results(files, manifest, cells, datasets),
        plugins=plugins,
        files=files,
    )


def _manifest(files: dict[str, bytes]) -> Manifest:
    """Return the manifest, whose sizes and sums are those of the other files."""
    value = parsed(files[form.MANIFEST], form.MANIFEST)
    given = value.get("format") if isinstance(value, dict) else None
    if isinstance(given, int) and given > form.FORMAT:
        raise BundleError(
            f"it has the format {given}, and this version of kbench reads {form.FORMAT}: update it"
        )
    manifest = _record(Manifest, value, form.MANIFEST)
    if missing := sorted(set(form.FILES) - files.keys()):
        raise BundleError(f"it lacks {missing[0]}")
    if manifest.files.keys() != files.keys() - {form.MANIFEST}:
        raise BundleError(f"it has other files than {form.MANIFEST} lists")
    for name, listed in manifest.files.items():
        data = files[name]
        if listed.n_bytes != len(data) or listed.sha256 != container.sha256(data):
            raise BundleError(f"{name} was changed: its sum is not that in {form.MANIFEST}")
    check_label(manifest.suite, "suite")
    check_label(manifest.author, "author")
    check_component(manifest.measure, "measure")
    for name, version in manifest.versions.items():
        check_version(name, version)
    for machine in manifest.machines:
        check_label(machine.cpu, "CPU")
    return manifest


def _results(
    files: dict[str, bytes],
    manifest: Manifest,
    cells: list[SharedCell],
    datasets: dict[str, SharedDataset],
) -> dict[str, dict[int, SharedResult]]:
    by_key = {cell.key: cell for cell in cells}
    results: dict[str, dict[int, SharedResult]] = {}
    hashes, now = SplitHashes(), now_ms()
    for result in _lines(files, form.RESULTS, SharedResult):
        cell = by_key.get(result.cell)
        if cell is None:
            raise BundleError("it has a result of a cell that it does not have")
        dataset = datasets[cell.dataset]
        check_result(result, cell, dataset, len(manifest.machines), now)
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


def _lines(files: dict[str, bytes], name: str, record: type[Line]) -> Iterator[Line]:
    for number, line in enumerate(files[name].splitlines(), 1):
        place = f"line {number} of {name}"
        yield _record(record, parsed(line, place), place)


def _record(record: type[Line], value: object, place: str) -> Line:
    try:
        return record.model_validate(value)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = "".join(f"[{part!r}]" for part in wrong["loc"])
        message = printable(f"{where[:200]}: {wrong['msg']}", 400)
        raise BundleError(f"{place}{message}") from None


def _text(files: dict[str, bytes], name: str) -> str:
    if len(files[name]) > MOST_SUITE:
        raise BundleError(f"{name} has more than {MOST_SUITE >> 20} MB")
    try:
        return files[name].decode("utf-8")
    except UnicodeDecodeError:
        raise BundleError(f"{name} is not UTF-8 text") from None
