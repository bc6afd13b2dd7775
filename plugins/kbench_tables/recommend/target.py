"""The task of a user's target: a rule, and its result in a sentence."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge

from kbench.errors import DatasetError
from kbench.messages import option, plural, printable
from kbench.records import TaskType
from kbench.tables.target_columns import MANY_CLASSES, MAX_NUMERIC_LABELS
from kbench.tables.texts import is_number

# Maximum number of different integers of a classification target.
MAX_CLASSES = 20

# Minimum number of rows of a class that is named by a number: one for each of five folds.
MIN_ROWS = 5

# symbols and words around and between digits: currencies, thousands, per cent
_DRESS = re.compile(
    r"[\s,'\u2019%$\u20ac\u00a3\u00a5\u20b9]|^[A-Z]{3}(?=[\s\d])|(?<=[\s\d])[A-Z]{3}$"
)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([ T].*)?|\d{1,2}[./]\d{1,2}[./]\d{4}")

_CLASSES = option("task", "classification")

Count = Annotated[int, Ge(0)]
Kind = Literal["numbers", "booleans", "dates", "strings"]


@dataclass(frozen=True)
class TargetColumn:
    """Profile of a target column."""

    kind: Kind
    """One of {"numbers", "booleans", "dates", "strings"}."""
    n_different: Count
    """Number of different values, without missing ones."""
    n_rows: Count = 0
    """Number of rows with a value."""
    n_missing: Count = 0
    missing_row: Count = 0
    """Number of rows without a value, and the first of them, from 1."""
    n_rarest: Count = 0
    fraction: float | None = None
    is_row_number: bool = False
    """Whether all values are different consecutive integers."""
    n_odd: Count = 0
    odd: str = ""
    odd_row: Count = 0
    """Among numbers: the rows with a string that is not a plain number, the first such string, and
    its row, from 1."""

    @classmethod
    def from_values(cls, values: Any) -> TargetColumn:
        """Describe a column of a table, a pandas Series.

        >>> import pandas as pd
        >>> TargetColumn.from_values(pd.Series([1, 2, 2, None])).n_rarest
        1
        >>> TargetColumn.from_values(pd.Series(["yes", "no"])).kind
        'strings'
        """
        missing = values.isna().to_numpy()
        return replace(
            cls._from_present(values),
            n_rows=int((~missing).sum()),
            n_missing=int(missing.sum()),
            missing_row=int(missing.argmax()) + 1 if missing.any() else 0,
        )

    @classmethod
    def _from_present(cls, values: Any) -> TargetColumn:
        import pandas
        from pandas.api import types

        present = values[values.notna()]
        counts = present.value_counts()
        if types.is_bool_dtype(values.dtype) or {type(each) for each in counts.index} == {bool}:
            return cls("booleans", len(counts))
        if types.is_numeric_dtype(values.dtype):
            return cls._from_numbers(present.to_numpy(dtype=np.float64))
        if types.is_datetime64_any_dtype(values.dtype):
            return cls("dates", len(counts))
        if isinstance(values.dtype, pandas.CategoricalDtype):
            return cls("strings", int((counts > 0).sum()))
        return cls._from_texts(values.reset_index(drop=True), counts)

    @classmethod
    def _from_numbers(cls, numbers: np.ndarray) -> TargetColumn:
        different, counts = np.unique(numbers, return_counts=True)
        fractions = numbers[numbers != np.round(numbers)]
        return cls(
            "numbers",
            len(different),
            n_rows=len(numbers),
            n_rarest=int(counts.min(initial=len(numbers))),
            fraction=float(fractions[0]) if len(fractions) else None,
            is_row_number=len(different) == len(numbers) > 1
            and not len(fractions)
            and bool(different[-1] - different[0] == len(different) - 1),
        )

    @classmethod
    def _from_texts(cls, values: Any, counts: Any) -> TargetColumn:
        texts = [str(each).strip() for each in counts.index]
        if texts and all(map(_DATE.fullmatch, texts)):
            return cls("dates", len(texts))
        plain = np.array([is_number(string) for string in texts], dtype=bool)
        dressed = np.array([is_number(_DRESS.sub("", string)) for string in texts], dtype=bool)
        if plain.all():
            return cls._from_numbers(values.dropna().astype(str).astype(np.float64).to_numpy())
        n_rows = counts.to_numpy()
        like_numbers = plain | dressed
        if like_numbers.sum() <= MAX_CLASSES or 2 * n_rows[like_numbers].sum() <= n_rows.sum():
            return cls("strings", len(texts))
        odd_values = {value for value, ok in zip(counts.index, plain, strict=True) if not ok}
        is_odd = values.isin(odd_values)
        row = int(np.argmax(is_odd.to_numpy()))
        return cls(
            "numbers",
            len(texts),
            n_odd=int(is_odd.sum()),
            odd=printable(str(values[row]), 60),
            odd_row=row + 1,
        )

    @classmethod
    def from_labels(cls, y: np.ndarray, names: tuple[str, ...]) -> TargetColumn:
        """Describe a loaded target: numbers, or labels with their names."""
        if not names:
            return cls._from_numbers(np.asarray(y, dtype=np.float64))
        if not all(map(is_number, names)):
            return cls("strings", len(names), len(y))
        return cls._from_numbers(np.array(list(map(float, names)))[np.asarray(y)])

    @property
    def may_be_classes(self) -> bool:
        """Whether a source can treat the values as classes."""
        few = self.kind != "numbers" or self.n_odd or self.n_different <= MAX_NUMERIC_LABELS
        return bool(few) and self.n_different <= max(MANY_CLASSES, self.n_rows // 2)


def choose(
    column: TargetColumn, name: str, label: str, asked: TaskType | None = None
) -> tuple[TaskType, str]:
    """Return the task of a target and the reason in a sentence; `asked` is the user's choice.

    Strings and booleans are classes. Numbers mean regression, unless they are at most
    `MAX_CLASSES` different integers with at least `MIN_ROWS` rows each; two different integers
    always are classes.

    DatasetError is raised if the column cannot be a target of that task, or is not worth
    predicting; `label` is the dataset, for messages.

    >>> quality = TargetColumn("numbers", n_different=6, n_rows=90, n_rarest=10)
    >>> print(choose(quality, "quality", "wine.csv")[1])
    target 'quality' has 6 different integers, treated as classes (`task='regression'` treats them
    as numbers)
    >>> choose(quality, "quality", "wine.csv", "regression")[0]
    'regression'
    """
    _refuse(column, name, label, asked)
    if asked is not None:
        if asked == "regression":
            _refuse_missing(column, name, label)
        how = f"{'numbers' if asked == 'regression' else 'classes'} ({option('task', asked)})"
        return asked, f"target {name!r} has {_different(column)}, treated as {how}"
    if column.kind != "numbers":
        return "classification", f"target {name!r} has {_different(column)}: classification"
    few = column.n_different <= MAX_CLASSES
    rare = column.n_rarest < MIN_ROWS and column.n_different > 2
    if column.fraction is None and few and not rare:
        return (
            "classification",
            f"target {name!r} has {plural(column.n_different, 'different integer')}, treated "
            f"as classes ({option('task', 'regression')} treats them as numbers)",
        )
    why = ""
    if few:
        why = f", one of them in fewer than {MIN_ROWS} rows"
        if column.fraction is not None:
            why = f", of which {column.fraction:g} is not an integer"
    _refuse_missing(column, name, label)
    hint = f" ({_CLASSES} treats them as classes)" if column.may_be_classes else ""
    n_different = plural(column.n_different, "different value")
    return "regression", f"target {name!r} is numeric, with {n_different}{why}: regression{hint}"


def _different(column: TargetColumn) -> str:
    one = column.kind.removesuffix("s")
    return plural(column.n_different, one if one == "boolean" else f"different {one}")


def _refuse(column: TargetColumn, name: str, label: str, asked: TaskType | None) -> None:
    target = f"{label}: the target {name!r}"
    if column.n_different == 0:
        raise DatasetError(f"{target} has no value in any row")
    if column.n_different == 1:
        raise DatasetError(f"{target} has the same value in all rows; a constant cannot be learned")
    is_of_texts = column.kind == "strings" and not column.n_odd and asked is None
    if is_of_texts and column.n_different == column.n_rows > MAX_CLASSES:
        raise DatasetError(
            f"{target} has a different value in each of {column.n_rows:,} rows; a class needs "
            "several rows. Choose another target."
        )
    if column.n_odd and asked != "classification":
        remedy = "Write plain numbers, such as 1234.5, and remove rows without one"
        if asked is None and column.may_be_classes:
            remedy += f"; {_CLASSES} treats the {column.n_different:,} strings as classes"
        raise DatasetError(
            f"{target} holds numbers, but {plural(column.n_odd, 'row')} "
            f"{'has' if column.n_odd == 1 else 'have'} another string, first row "
            f"{column.odd_row}: {column.odd!r}. {remedy}."
        )
    if column.kind == "dates" and asked != "classification":
        remedy = "Convert them to numbers, such as days since the first date"
        if column.may_be_classes:
            remedy += f"; {_CLASSES} treats the {column.n_different:,} dates as classes"
        raise DatasetError(f"{target} holds dates. {remedy}.")
    if column.kind == "booleans" and asked == "regression":
        raise DatasetError(f"{target} holds booleans. Write them as 0 and 1.")
    if column.is_row_number and asked is None and column.n_different > MAX_CLASSES:
        raise DatasetError(
            f"{target} is a row number: each of {column.n_different:,} consecutive integers "
            f"occurs once. Choose another target, or give {option('task', 'regression')}."
        )


def _refuse_missing(column: TargetColumn, name: str, label: str) -> None:
    if column.n_missing:
        n_rows = column.n_rows + column.n_missing
        raise DatasetError(
            f"{label}: the target {name!r} is missing in {plural(column.n_missing, 'row')} of "
            f"{n_rows:,} (first row {column.missing_row}). Remove these rows: regression needs a "
            "number in each row."
        )
