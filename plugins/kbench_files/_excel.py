"""Excel files, read by pandas."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kbench import DatasetError
from kbench.messages import did_you_mean, listed
from kbench.tables.limits import check_values
from kbench.tables.rows import FrameRows, Opened
from kbench_files._csv import UNNAMED, refuse_unnamed
from kbench_files._reading import existing, first_line


def excel_table(path: str | Path, sheet: str = "", **_: Any) -> Any:
    """Return a sheet of an Excel file as a data frame, before anything is encoded."""
    return _read(path, sheet)[0]


def _read(path: str | Path, sheet: str) -> tuple[Any, list[str]]:
    """Return a sheet, by default the first one, and the names of all sheets."""
    import pandas

    file, what = existing(path)
    try:
        with pandas.ExcelFile(file.absolute()) as book:
            sheets = [str(name) for name in book.sheet_names]
            if sheet and sheet not in sheets:
                hint = did_you_mean(sheet, sheets) or f"; there are {listed(sheets)}"
                raise DatasetError(f"{what}: no sheet is called {sheet!r}{hint}")
            frame = pandas.read_excel(book, sheet_name=sheet or sheets[0], na_values=["?"])
    except ImportError as error:
        needed = "openpyxl" if file.suffix.lower() == ".xlsx" else "xlrd"
        extra = "pip install 'kbench-core[excel]'" if needed == "openpyxl" else "pip install xlrd"
        raise DatasetError(
            f"{what}: reading it needs {needed}: {extra}, or save it as CSV"
        ) from error
    except DatasetError:
        raise
    except Exception as error:  # the readers' errors have no common base
        why = f"it cannot be read as an Excel file: {first_line(error)}"
        raise DatasetError(f"{what}: {why}") from None
    names = [str(name).strip() for name in frame.columns]
    # pandas tells columns of one name apart by a number
    twice = [name for name in names if name.endswith(".1") and name[:-2].strip() in names]
    if twice:
        raise DatasetError(
            f"{what}: several columns are named {twice[0][:-2]!r}; rename all but one"
        )
    frame.columns = names
    check_values(frame.size, what, f"{len(frame):,} rows with {len(names):,} columns")
    for name in names:
        if frame[name].dtype == object or str(frame[name].dtype) == "str":
            values = frame[name].map(_stripped)
            values = values.where(values != "").infer_objects()
            with contextlib.suppress(ValueError, TypeError):  # numbers in cells of text
                values = pandas.to_numeric(values)
            frame[name] = values
    return frame, sheets


def _stripped(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


def excel_rows(path: str | Path, sheet: str = "", ignore: Sequence[str] = (), **_: Any) -> Opened:
    """Return a sheet of an Excel file as a table in blocks."""
    frame, sheets = _read(path, sheet)
    what = existing(path)[1]
    if not sheet and len(sheets) > 1:
        what = f"{what}, sheet {sheets[0]!r} (--sheet reads another one: {listed(sheets[1:])})"
    read = list(frame.columns)
    refuse_unnamed(["" if UNNAMED.match(name) else name for name in read], read, what, ignore)
    rows = FrameRows(frame, what)
    rows.files = [existing(path)[0]]
    return Opened(rows, {}, f"the sheet {sheet or sheets[0]!r}")
