"""What the columns of a user's table hold, and how each of them is encoded."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kbench.errors import DatasetError
from kbench.messages import list_some, option, plural, printable
from kbench.tables.table import TEXT_ABOVE
from kbench.tables.texts import ISO, PARTS, DateColumn, UnitColumn, is_dates, is_number, parse_days
from kbench_tables.text_scan import UnitScan, guess_formats, sentence, several_formats

if TYPE_CHECKING:
    import pandas

# Maximum number of categories for one-hot encoding; columns with more are target-encoded.
MAX_INDICATORS = 20

# Maximum number of different values that are counted.
MAX_KEPT = 100_000

# Number of different numbers or dates above which another string is an error, not a category.
MIN_NUMBERS = 20

# Maximum number of exceptions of a column in a message.
MAX_ODD = 5

# Maximum length of a value in a message.
SHOWN = 40

_ID = re.compile(r"(^|[\W_])(id|ids|uuid|guid|key|index)$|[a-z](Id|ID)$", re.ASCII)
_LOWER_ID = re.compile(r"(^|[\W_])(id|uuid|guid)([\W_]|$)", re.IGNORECASE | re.ASCII)

_CODE = re.compile(
    r"((^|[\W_])(zip|postal|post ?code|code|fips|iban|phone)|plz|postleitzahl)([\W_]|code|$)", re.I
)
_GROUP = re.compile(
    r"(^|[\W_])(patient|customer|client|user|person|subject|participant|household|device|machine"
    r"|sensor|store|shop|school|site|hospital|animal|session|account|employee|student)"
    r"([\W_]?(no|nr|num|number|code|name))?$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Role:
    """The encoding of one column."""

    name: str
    read_as: str
    encoded_as: str
    """Its encoding, or that it is left out."""
    n_columns: int
    note: str = ""
    """The reason, and which option changes it."""


@dataclass
class ColumnProfile:
    """Profile of the values of one column; a `kbench.tables.table_rows.Scan`."""

    name: str
    date: DateColumn | None = None
    note: str = ""
    decimal: str = "."

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Discard all values before another pass."""
        self.n_rows = self.n_missing = 0
        self.kinds: set[str] = set()
        self.low, self.high = np.inf, -np.inf
        self.is_whole, self.is_consecutive = True, True
        self._last: float | None = None
        self.different: set[object] = set()
        self.is_many = False
        self.formats: list[str] | None = [self.date.format] if self.date else None
        self._lost: tuple[str, str] | None = None  # a format, and the first string without it
        self._n_dates = 0
        self.has_times = False
        self.units = UnitScan(self.decimal)

    def wants(self, series: pandas.Series | None = None) -> bool:
        """Return True."""
        return True

    def add(self, series: pandas.Series) -> None:
        """Add the next values."""
        import pandas
        from pandas.api import types

        self.n_rows += len(series)
        if isinstance(series.dtype, np.dtype) and series.dtype.kind in "if" and not self.date:
            self._add_plain(series.to_numpy())  # thousands of columns take no checks of types
            return
        present = series[series.notna()]
        self.n_missing += len(series) - len(present)
        if not len(present):
            return
        if self.date and types.is_numeric_dtype(series.dtype):
            present = present.astype(object).map("{:.15g}".format)  # 20240131 is a date too
        if is_dates(series):
            self.kinds.add("dates")
            self._add_dates(parse_days(present))
        elif isinstance(series.dtype, pandas.CategoricalDtype):
            self.kinds.add("categories")
            self._add_different(series.cat.categories)
        elif types.is_bool_dtype(present.dtype):
            self.kinds.add("booleans")
            self._add_different(present.unique())
        elif types.is_numeric_dtype(present.dtype):
            self.kinds.add("numbers")
            self._add_numbers(present.to_numpy(dtype=np.float64))
        else:
            self.kinds.add("strings")
            self._add_texts(present)

    def _add_plain(self, values: np.ndarray) -> None:
        """Add the values of a numpy array; NaN is missing."""
        if values.dtype.kind == "f" and (missing := np.isnan(values)).any():
            self.n_missing += int(np.count_nonzero(missing))
            values = values[~missing]
        if len(values):
            self.kinds.add("numbers")
            self._add_numbers(values.astype(np.float64, copy=False))

    def _add_numbers(self, values: np.ndarray) -> None:
        self.low, self.high = min(self.low, values.min()), max(self.high, values.max())
        is_whole = np.isfinite([self.low, self.high]).all() and np.all(values == np.round(values))
        self.is_whole = self.is_whole and bool(is_whole)
        if self.is_whole:
            steps = np.diff(values if self._last is None else np.append(self._last, values))
            self.is_consecutive = self.is_consecutive and bool(np.all(steps == 1))
            self._last = float(values[-1])
            self._add_different(np.unique(values))

    def _add_texts(self, present: Any) -> None:
        values = present.unique()
        if self.formats is None or self.formats:
            self._filter_formats(values)
        self.units.add(values)
        self._add_different(values)

    def _filter_formats(self, values: Any) -> None:
        """Keep the date formats that all strings so far match."""
        texts = [str(value) for value in values]
        if self.formats is None:
            self.formats = guess_formats(texts[:20]) if {type(v) for v in values} == {str} else []
        formats: list[str] = []
        for form in self.formats:
            if formats and _same(form, formats[0]):  # slow, and without new information
                formats.append(form)
                continue
            days = parse_days(texts, form)
            wrong = np.flatnonzero(np.isnan(days))
            if not len(wrong):
                formats.append(form)
                if len(formats) == 1:
                    self._add_dates(days)
            elif self._lost is None and self._n_dates + wrong[0] >= MIN_NUMBERS:
                self._lost = (form, texts[wrong[0]])
        self.formats = formats

    def _add_dates(self, days: np.ndarray) -> None:
        self._n_dates += len(days)
        self.low, self.high = min(self.low, days.min()), max(self.high, days.max())
        self.has_times = self.has_times or bool(np.any(days != np.floor(days)))

    def _add_different(self, values: Any) -> None:
        if not self.is_many:
            self.different.update(values.tolist() if hasattr(values, "tolist") else list(values))
            if len(self.different) > MAX_KEPT:
                self.is_many, self.different = True, set()

    @property
    def n_different(self) -> int:
        """Different values; more than `MAX_KEPT` are not counted."""
        return MAX_KEPT + 1 if self.is_many else len(self.different)

    @property
    def n_values(self) -> int:
        """Rows with a value."""
        return self.n_rows - self.n_missing

    def lost(self) -> tuple[str, list[str]] | None:
        """Return the type of nearly all values and exceptions, first one first; or None."""
        if self._lost is not None and not self.formats:
            return f"dates ({self._lost[0]})", [self._lost[1]]
        units = self.units
        if self.kinds == {"strings"} and units.is_nearly(MIN_NUMBERS):
            return f"numbers with {units.unit!r}", [units.odd]
        if self.kinds != {"strings"} or self.is_many:
            return None
        texts = {str(value) for value in self.different}
        # a column with two decimal marks is one of numbers too
        odd = {string for string in texts if not is_number(string.replace(",", "."))}
        n_numbers = len(texts) - len(odd)
        if n_numbers > MIN_NUMBERS and len(odd) < n_numbers / 4:
            first = re.search(r"which has '(.*)'\)$", self.note)
            by_comma = {string for string in texts if "," in string}
            odd = odd or min(by_comma, texts - by_comma, key=len)
            known = dict.fromkeys([*([first[1]] if first else []), *sorted(odd)])
            return ("numbers", [*known]) if odd else None
        return None


@dataclass(frozen=True)
class Roles:
    """The encodings of all columns, and the loader options for them."""

    roles: tuple[Role, ...]
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    date_formats: tuple[str, ...] = ()
    target_encode: tuple[str, ...] = ()
    strip_units: tuple[str, ...] = ()


@dataclass(frozen=True)
class Params:
    """The options that the user gave for columns, and those that the loader supports.

    `taken` has the names of the loader's parameters, `target` and `group` are columns.
    """

    what: str
    target: str
    drop: Collection[str] = ()
    categorical: Collection[str] = ()
    keep: Collection[str] = ()
    date_formats: Mapping[str, DateColumn] = field(default_factory=dict)
    taken: Collection[str] = tuple(each.name for each in fields(Roles)[1:])
    group: str | None = None


def decide(profiles: Mapping[str, ColumnProfile], names: Sequence[str], asked: Params) -> Roles:
    """Decide how each column is encoded; raise DatasetError if a few values have another type."""
    lists: dict[str, list[Any]] = {each.name: [] for each in fields(Roles)}
    known = {*asked.drop, *asked.categorical, *asked.keep, *asked.date_formats, asked.group}
    free = [each for name, each in profiles.items() if name not in known and "drop" in asked.taken]
    if found := [(each, *lost) for each in free if (lost := each.lost())]:
        raise DatasetError(_describe(found, asked))
    numbers = [each for each in free if each.kinds == {"numbers"}]
    if infinite := [e.name for e in numbers if np.isinf([e.low, e.high]).any()]:
        raise DatasetError(
            f"{asked.what}: infinite values, or numbers above 1e308, in {list_some(infinite)}. "
            f"Correct the file, or leave them out: {_option('drop', infinite)}"
        )
    for name in names:
        if name == asked.target:
            role = Role(name, "target", "the target", 0)
        elif name == asked.group:
            role = Role(name, "groups", LEFT_OUT, 0, "groups stay on one side of each split")
        elif name in asked.drop:
            role = Role(name, "not read", LEFT_OUT, 0, option("drop"))
        else:
            role = _assign_role(profiles[name], asked)
        _add(lists, role, profiles.get(name), asked)
    decided = Roles(**{name: tuple(values) for name, values in lists.items()})
    if not any(role.n_columns for role in decided.roles):
        out = [f"{f.name!r} ({f.read_as})" for f in decided.roles if f.encoded_as == LEFT_OUT]
        why = f": {', '.join(out[:5])} {'is' if len(out) == 1 else 'are'} left out" if out else ""
        raise DatasetError(f"{asked.what}: there is no feature column{why}")
    return decided


LEFT_OUT = "left out"
BY_TARGET = "target mean by category"
DRESSED = "numbers with "


def _add(
    lists: dict[str, list[Any]], role: Role, profile: ColumnProfile | None, asked: Params
) -> None:
    name = role.name
    lists["roles"].append(role)
    if role.encoded_as == LEFT_OUT and name not in asked.drop:
        lists["drop"].append(name)
    elif profile is not None and role.read_as == "dates":
        lists["date_formats"].append(_date_column(profile, asked).spec)
    elif profile is not None and role.read_as.startswith(DRESSED):
        column = profile.units.column(name)
        assert column is not None
        lists["strip_units"].append(column.spec)
    elif role.encoded_as.startswith(BY_TARGET):
        lists["target_encode"].append(name)
    if profile is not None and role.read_as.startswith("categor"):
        lists["categorical"] += [name] * (name in asked.keep or "numbers" in profile.kinds)


def _assign_role(profile: ColumnProfile, asked: Params) -> Role:
    name, n = profile.name, profile.n_rows
    is_kept = name in asked.keep or name in asked.categorical or "drop" not in asked.taken
    if not profile.n_values:
        return Role(name, "nothing", LEFT_OUT, 0, "all values are missing")
    holds_dates = "dates" in profile.kinds or (profile.formats and profile.kinds == {"strings"})
    if holds_dates and "date_formats" in asked.taken and name not in asked.categorical:
        return _encode_dates(profile, asked)
    if name in asked.date_formats:
        odd = profile._lost[1] if profile._lost else str(next(iter(profile.different), ""))
        raise DatasetError(
            f"{asked.what}: column {name!r} has values that are not dates in the format "
            f"{asked.date_formats[name].format}, such as {printable(odd, SHOWN)!r}"
        )
    is_constant = profile.n_different == 1 or (
        profile.kinds == {"numbers"} and profile.low == profile.high
    )
    if is_constant and not profile.n_missing and not is_kept:
        note = f"the same value in all rows; {_keeping(name)}"
        return Role(name, "a constant", LEFT_OUT, 0, note)
    if profile.kinds == {"numbers"} and name not in asked.categorical:
        return _encode_numbers(profile, is_kept)
    share = profile.n_different / max(1, n)
    is_free = name not in asked.categorical and "strip_units" in asked.taken
    is_free = is_free and profile.kinds == {"strings"} and not (_is_id(name) and share > 0.5)
    if is_free and (column := profile.units.column(name)) is not None:
        return _encode_units(profile, column)
    if (profile.n_different > TEXT_ABOVE and (share > 0.5 or profile.is_many)) and not is_kept:
        n_different = f"more than {MAX_KEPT:,}" * profile.is_many or f"{profile.n_different:,}"
        read_as = "an identifier" if _is_id(name) else "text"
        note = f"{n_different} different values in {n:,} rows; {_keeping(name)}"
        return Role(name, read_as, LEFT_OUT, 0, note + _hint(profile))
    return _encode_categories(profile, asked)


def _encode_numbers(profile: ColumnProfile, is_kept: bool) -> Role:
    name, n = profile.name, profile.n_rows
    is_id = _is_id(name) and profile.is_whole and profile.n_different > n / 2
    counts = profile.is_whole and profile.is_consecutive and n > 2 and not profile.n_missing
    if counts and (is_id or profile.low in (0, 1)) and not is_kept:
        return Role(name, "row numbers", LEFT_OUT, 0, _keeping(name))
    if is_id and profile.n_different > TEXT_ABOVE and not is_kept:
        note = f"{profile.n_different:,} different integers; {_keeping(name)}"
        return Role(name, "an identifier", LEFT_OUT, 0, note)
    note = ""
    if profile.is_whole and 19_000_101 <= profile.low <= profile.high <= 21_001_231:
        note = f"if these are dates: {option('date', f'{name}=%Y%m%d')}"
    elif _is_id(name) and profile.is_whole:
        note = f"if these are categories: {option('categorical', name)}"
    return _encode_missing(Role(name, "numbers", "number", 1, note), profile.n_missing > 0)


def _encode_missing(role: Role, has_missing: bool) -> Role:
    """Add a column that is 1 where the value is missing, if some values are."""
    if not has_missing:
        return role
    encoded_as = f"{role.encoded_as}, and whether it is missing"
    return replace(role, encoded_as=encoded_as, n_columns=role.n_columns + 1)


def _encode_units(profile: ColumnProfile, column: UnitColumn) -> Role:
    read_as = DRESSED + (f"`{column.unit}`" if column.unit else "signs")
    role = Role(profile.name, read_as, "number", 1, sentence(column))
    return _encode_missing(role, profile.n_missing > 0 or profile.units.has_missing)


def _encode_categories(profile: ColumnProfile, asked: Params) -> Role:
    name, k = profile.name, profile.n_different
    how_many = "booleans" if profile.kinds == {"booleans"} else f"categories ({k:,})"
    note = _hint(profile).removeprefix("; ")
    if k > MAX_INDICATORS and "target_encode" in asked.taken:
        return Role(name, how_many, BY_TARGET, 1, note)
    role = Role(name, how_many, plural(k, "indicator"), k, note)
    return _encode_missing(role, profile.n_missing > 0)


def _encode_dates(profile: ColumnProfile, asked: Params) -> Role:
    column = _date_column(profile, asked)
    encoded = "days since 1970"
    if column.parts:
        encoded += f", sine and cosine of the {' and the '.join(column.parts)}"
    note = ""
    if "dates" not in profile.kinds and profile.name not in asked.date_formats:
        note = f"format {column.format}"
        further = [each for each in profile.formats or () if not _same(each, column.format)]
        if further:
            note += f"; {further[0]} also fits: {option('date', f'{profile.name}={further[0]}')}"
    role = Role(profile.name, "dates", encoded, len(column.feature_names), note)
    return _encode_missing(role, profile.n_missing > 0)


def _same(one: str, other: str) -> bool:
    """Whether two formats are equal or both begin with the year."""
    return one == other or all(form.startswith((ISO, "%Y-%m")) for form in (one, other))


def _date_column(profile: ColumnProfile, asked: Params) -> DateColumn:
    """Return the encoding of dates, with the periods that the column spans."""
    form = profile.formats[0] if profile.formats else ISO
    column = asked.date_formats.get(profile.name) or DateColumn(profile.name, form)
    span = profile.high - profile.low
    parts = [part for part, days in PARTS.items() if part != "day" and span >= days]
    if profile.has_times:
        parts.append("day")
    return replace(column, parts=column.parts or tuple(parts))


def _describe(found: Sequence[tuple[ColumnProfile, str, list[str]]], asked: Params) -> str:
    """Describe columns with exceptions: all those that the same options correct."""
    missing = [each for each in found if not is_number(each[2][0].replace(",", "."))]
    (first, kind, (odd, *_)), *others = missing or found
    names = [first.name, *(profile.name for profile, *_ in others)]
    remedy = f"{_option('drop', names)} (drop the column{'s' * bool(others)}) or "
    remedy += f"{_option('categorical', names)} (categorical)."
    row = re.search(r"before row ([\d,]*\d)", first.note)
    where = f"row {row[1]} has" if row else "it also contains"
    if not missing:
        where = f"{where} another decimal mark,"
    elif "na_values" in asked.taken:
        marks = [printable(each, SHOWN) for _, _, texts in missing for each in texts[:MAX_ODD]]
        remedy = f"{_option('na_values', [*dict.fromkeys(marks)])} (missing), {remedy}"
    more = ", ".join(f"{each.name!r} ({printable(texts[0], SHOWN)!r})" for each, _, texts in others)
    return (
        f"{asked.what}: column {first.name!r} holds {kind}, but {where} {printable(odd, SHOWN)!r}"
        f"{f'; likewise {more}' * bool(others)}. Correct the file, or give {remedy}"
    )


def _option(name: str, values: Sequence[str]) -> str:
    return option(name, values if len(values) > 1 else values[0])


def _keeping(name: str) -> str:
    return f"{option('keep', name)} keeps it"


def repeats(profile: ColumnProfile) -> bool:
    """Whether a column has the name of an identifier or a group, and most of its values repeat."""
    is_few = profile.n_different <= profile.n_values / 2 and not profile.is_many
    is_group = _is_id(profile.name) or bool(_GROUP.search(profile.name))
    return is_group and is_few and profile.n_different > TEXT_ABOVE


def is_code(profile: ColumnProfile) -> bool:
    """Whether numbers have the name of codes, such as zip codes, and about as many digits each."""
    is_whole = profile.kinds == {"numbers"} and profile.is_whole and profile.low >= 0
    # 00000 and 00007 are codes too
    low = sorted(n for n in profile.different if isinstance(n, float) and n) or [profile.low]
    is_wide = is_whole and 1000 <= profile.high < 1000 * low[len(low) // 20]
    return is_wide and bool(_CODE.search(profile.name))


def _is_id(name: str) -> bool:
    return bool(_ID.search(name) or _LOWER_ID.search(name))


def _hint(profile: ColumnProfile) -> str:
    if profile.is_many or not profile.different or profile.kinds != {"strings"}:
        return ""
    values = [str(value) for value in profile.different]
    if len(formats := several_formats(values)) > 1:
        (one, first), (other, second) = formats[:2]
        return f"; dates in several formats, {first!r} ({one}) and {second!r} ({other}): use one"
    odd = sorted(value for value in values if not is_number(value))
    if odd and len(odd) < len(values) / 5:
        return f"; numbers but {printable(odd[0], SHOWN)!r}; {option('na_values')} makes it missing"
    if not odd and len(values) > MIN_NUMBERS:
        return "; numbers stored as strings: store them as numbers to use them"
    return f"; {mixed}" if (mixed := profile.units.advice()) else ""
