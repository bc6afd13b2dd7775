"""A user's data frame as a parquet file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas
import pyarrow.interchange
import pyarrow.parquet

from kbench.errors import DatasetError
from kbench.messages import list_some
from kbench.tables.table import find_repeated

# Types of values that an object column may hold, in addition to missing ones.
_ONE_TYPE = {
    *("empty", "string", "boolean", "integer", "floating", "mixed-integer-float", "decimal"),
    *("date", "datetime", "datetime64"),
}


def is_frame(data: object) -> bool:
    """Whether an object is a data frame of some library."""
    return any(hasattr(data, name) for name in ("__arrow_c_stream__", "__dataframe__")) and (
        hasattr(data, "columns") or hasattr(data, "column_names") or hasattr(data, "schema")
    )


def write_frame(data: Any, path: Path) -> list[str]:
    """Write a data frame as a parquet file; return notices on what is dropped."""
    if not is_frame(data):
        raise DatasetError(
            "data must be a data frame (of pandas, polars, pyarrow or another library with the "
            f"interchange protocol) or the path of a file, got {type(data).__name__}"
        )
    notices: list[str] = []
    if type(data).__module__.partition(".")[0] == "pandas":
        table = _read_pandas(data, notices)
    else:
        table = _read_other_frame(data)
    if not table.num_columns:
        raise DatasetError("data has no columns")
    if not table.num_rows:
        raise DatasetError("data has no rows")
    _refuse_twice(table.column_names)
    pyarrow.parquet.write_table(table.replace_schema_metadata(None), path)
    return notices


def _read_other_frame(data: object) -> pyarrow.Table:
    try:
        if hasattr(data, "__arrow_c_stream__"):
            return pyarrow.table(data)
        return pyarrow.interchange.from_dataframe(data)
    except Exception as error:  # errors of other libraries have no common base
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise DatasetError(f"data cannot be read as a data frame: {first}") from None


def _read_pandas(frame: pandas.DataFrame, notices: list[str]) -> pyarrow.Table:
    if frame.columns.nlevels > 1:
        raise DatasetError(
            f"data has names of columns with {frame.columns.nlevels} levels; join them: "
            "data.columns = ['_'.join(map(str, name)) for name in data.columns]"
        )
    names = [str(name) for name in frame.columns]
    _refuse_twice(names)
    index = frame.index
    matters = index.nlevels > 1 or index.name is not None
    if matters or not pandas.api.types.is_integer_dtype(index.dtype):
        kind = (
            list_some([str(name) for name in index.names if name is not None]) or "without a name"
        )
        notices.append(
            f"the index of data ({kind}) is not a column and is dropped: data.reset_index() "
            "makes it one"
        )
    columns = {name: _plain(frame.iloc[:, at], name) for at, name in enumerate(names)}
    try:
        return pyarrow.Table.from_pandas(pandas.DataFrame(columns), preserve_index=False)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, pyarrow.ArrowNotImplementedError) as e:
        raise DatasetError(f"data cannot be stored: {str(e).splitlines()[0]}") from None


def _refuse_twice(names: Sequence[str]) -> None:
    if two := find_repeated(names):
        raise DatasetError(f"data has several columns named {list_some(two)}; rename or drop them")


def _plain(series: Any, name: str) -> Any:
    """Return a column of a type that parquet files and kbench support."""
    series = series.reset_index(drop=True)
    dtype = series.dtype
    if isinstance(dtype, pandas.SparseDtype):
        return series.sparse.to_dense()
    if isinstance(dtype, pandas.DatetimeTZDtype):
        return series.dt.tz_convert(None)  # as UTC, which times without a zone are
    if isinstance(dtype, pandas.CategoricalDtype):
        if series.cat.categories.inferred_type == "string":
            return series
        return series.cat.rename_categories([str(each) for each in series.cat.categories])
    if dtype.kind in "cm" or isinstance(dtype, pandas.PeriodDtype | pandas.IntervalDtype):
        raise DatasetError(
            f"column {name!r} of data has the type {dtype}: convert it to numbers, dates, "
            "strings or categories, or drop it"
        )
    if not pandas.api.types.is_object_dtype(dtype):
        return series
    return _check_one_type(series, name)


def _check_one_type(series: pandas.Series, name: str) -> pandas.Series:
    kind = pandas.api.types.infer_dtype(series, skipna=True)
    if kind not in _ONE_TYPE:
        present = series[series.notna()]
        types = present.map(lambda value: type(value).__name__)
        rows = {t: int((types == t).to_numpy().argmax()) for t in dict.fromkeys(types)}
        shown = [f"{t} ({present.iloc[row]!r:.40})" for t, row in list(rows.items())[:4]]
        raise DatasetError(
            f"column {name!r} of data holds values of several types, or of an unsupported type: "
            f"{', '.join(shown)}. Convert it to one type, e.g. data[{name!r}].astype(str) or "
            f"pandas.to_numeric(data[{name!r}], errors='coerce')"
        )
    if kind in ("decimal", "mixed-integer-float", "integer", "floating"):
        return pandas.to_numeric(series.where(series.notna(), None), errors="coerce").astype(float)
    return series.where(series.notna(), None)
