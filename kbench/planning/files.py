"""Files that the dataset lines of a suite name: in which folder they are, and whether."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from kbench.errors import SuiteError
from kbench.messages import counted
from kbench.parameters import named_files
from kbench.records import Ref, Suite
from kbench.storage.datacache import FILE_PARAMETERS


def in_folder(suite: Suite, folder: Path | None) -> Suite:
    """Return a suite whose relative names of files are those in a folder.

    Labels stay as they are. Without a folder, names are relative to the current one.

    SuiteError is raised where the folder is not there; or all datasets of the suite are files
    with relative names, of which not one is there.
    """
    if folder is not None:
        folder = folder.expanduser().absolute()
        if not folder.is_dir():
            raise SuiteError(f"--data {folder}: there is no such folder")
        blocks = [
            replace(block, datasets=tuple(_moved(ref, folder) for ref in block.datasets))
            for block in suite.blocks
        ]
        _refuse_empty_folder(suite, folder)
        return replace(suite, blocks=tuple(blocks))
    _refuse_empty_folder(suite, Path.cwd())
    return suite


def _moved(ref: Ref, folder: Path) -> Ref:
    moved = {key: str(folder / name) for key, name in _relative(ref)}
    return Ref(ref.name, {**ref.params, **moved}, ref.label) if moved else ref


def _relative(ref: Ref) -> Iterator[tuple[str, Path]]:
    """Yield the parameters of a dataset that are relative names of files."""
    for key in FILE_PARAMETERS:
        name = ref.params.get(key)
        if isinstance(name, str) and not Path(name).expanduser().is_absolute():
            yield key, Path(name)


def _refuse_empty_folder(suite: Suite, folder: Path) -> None:
    """Refuse a suite of files in a folder that has not one of them."""
    names = [dict(_relative(ref)).get("path") for ref in suite.datasets]
    files = [folder / name for name in names if name is not None]
    if (
        not files
        or len(files) < len(names)
        or any(found.exists() for file in files for found in named_files(file))
    ):
        return
    source = f" {suite.data_from}" if suite.data_from else ""
    raise SuiteError(
        f"the suite {suite.name!r} reads {counted(len(files), 'file')}, and not one is there: "
        f"looked for {files[0]}{' and others' if len(files) > 1 else ''}. "
        f"Name their folder with --data FOLDER.{source}"
    )
