"""Where the table lies among the rows of a file: the names of its columns, and the rows below.

Files from spreadsheet programs have titles above the names, names in two rows, totals, notes and
other tables. This module leaves with an exported model, which reads new files in the same way.
"""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, compress, count, groupby, islice
from typing import Any, TypeAlias

from kbench.messages import list_some, option, plural
from kbench.tables.texts import MISSING

Row = Sequence[object]
Numbered: TypeAlias = "tuple[int, _Known]"
Read: TypeAlias = Callable[[Iterable[Any]], Iterator[Row]]
"""Parses lines of a file."""

HEAD, TAIL = 60_000, 12_000
"""Cells at the beginning and at the end of a file in which the table is looked for."""

FEW = 20
"""Rows up to which a row of units counts for the types of the columns."""

MAX_ABOVE = 50
"""Rows among which that of the names is."""

_VALUE = re.compile(r"[-+(\s$\u20ac\u00a3]*[.,]?\d[\d.,:'\u2019/\s%\u20ac$TZeE)+-]*|[-+]?inf", re.I)
"""A number or a date, but no name."""

SEP = re.compile(r'"?sep=(.?)"?[\s;,]*', re.IGNORECASE)
"""A first line that names the delimiter, as Excel takes it."""

_MEAN = r"averages?|mean|mittelwert|durchschnitt|moyenne|media|promedio"
_SUM = r"(grand |sub-?|all |sous-)?totals?|sum|(gesamt|teil|zwischen)?summe|gesamt|insgesamt"
_SUM += r"|(gesamt)?ergebnis|somme|suma"
_TOTAL = re.compile(rf"({_SUM}|{_MEAN})\s*:?", re.IGNORECASE)
_SUM_OF = re.compile(rf"\b({_SUM})\b", re.IGNORECASE)
"""A word for totals in a longer text, such as "Total North"."""

ROUNDING = 1e-3
"""Relative difference up to which a total is the sum of rounded numbers."""


@dataclass(frozen=True)
class Layout:
    """The rows and columns of a file that are a table; rows are counted from 1."""

    names: tuple[str, ...]
    """A name for each column in `places`, empty if it has none."""
    places: tuple[int, ...]
    """Columns of the file, from 0."""
    width: int
    """Cells of each row."""
    header_row: str
    """The row of names, or the first and the last one: ``"2-3"``."""
    rows: tuple[int, int]
    """First and last row of values."""
    notices: tuple[str, ...]
    """What is not read."""
    is_plain: bool
    """Whether names are in the first row, and everything below it is read."""
    keeps_rows: bool = False
    """Whether rows with a cell for each name are read, also empty ones."""
    sums: tuple[frozenset[int], frozenset[int], str] | None = None
    """What rows of totals are found by, as `_Sums` has it; None if there are none in the table."""

    def select(self, rows: Iterable[Row]) -> Iterator[list[object]]:
        """Yield the values of the table, of all rows of a file.

        ValueError names a row with too many or too few values.
        """
        first, last = self.rows
        unread = [p for p in range(self.places[0], self.places[-1]) if p not in self.places]
        sums = _Sums(*self.sums) if self.sums else None
        for number, row in enumerate(islice(rows, last), 1):
            if number < first or not row:
                continue
            is_kept = self.is_plain or (self.keeps_rows and len(row) == self.width)
            if not is_kept and (_is_skipped(row) or (sums and sums.are_in(row))):
                continue
            if len(row) != self.width:
                raise ValueError(
                    f"line {number:,} has {len(row):,} values, and there are {self.width:,} names"
                )
            if any(_is_filled(row[place]) for place in unread):
                raise ValueError(f"line {number:,} has a value in a column without a name")
            yield [row[place] for place in self.places]


def survey_lines(lines: Iterator[str], read: Read) -> tuple[list[Row], list[Row], int]:
    """Return what `survey` does of lines; only the first and the last ones are parsed."""
    # a quoted value may go on in the next lines
    rows = (line if '"' not in line else next(read(chain([line], lines))) for line in lines)
    return survey(rows, read)


def survey(rows: Iterable[Row], read: Read = iter) -> tuple[list[Row], list[Row], int]:
    """Return the first and the last rows of a file, and the number of all rows.

    Rows that are strings are parsed by `read`.
    """

    def parse(row: Row) -> Row:
        return next(read([row])) if isinstance(row, str) else row

    head: list[Row] = []
    n_cells, numbered = 0, enumerate(rows, 1)
    for _, row in numbered:
        head.append(parse(row))
        n_cells += max(1, len(head[-1]))
        if n_cells > HEAD and len(head) >= 20:
            break
    tail = deque(numbered, maxlen=max(20, TAIL * len(head) // max(n_cells, 1)))
    return head, [parse(row) for _, row in tail], tail[-1][0] if tail else len(head)


def find_layout(
    head: Sequence[Row],
    tail: Sequence[Row] = (),
    n_rows: int = 0,
    header_row: str = "",
    keeps_rows: bool = False,
    keep_totals: bool = False,
) -> Layout:
    """Find the table among the first and the last rows of a file.

    A given `header_row` is not looked for. If no row can be that of the names, the first one is
    taken, and all rows are read. With `keeps_rows`, all rows with a cell for each name are read if
    `header_row` is given or nothing is above the names. With `keep_totals`, rows of totals are
    read. ValueError is raised for a wrong `header_row`.
    """
    n_rows, head, tail = n_rows or len(head), [*map(_Known, head)], [*map(_Known, tail)]
    asks = "" if keeps_rows else f"; {option('keep_totals')} reads them"
    lengths = Counter(len(row) for row in head if not _is_skipped(row))
    width = max(lengths, key=lengths.__getitem__, default=0)
    first, last = _parse(header_row, len(head)) if header_row else _find_names(head, width)
    if not last:
        first = next((i for i, row in enumerate(head, 1) if row), 1)
        names = tuple(
            _join(head[first - 1 : first] or [[]], max(map(len, head[:first]), default=0))
        )
        places, rows = tuple(range(len(names))), (first + 1, n_rows)
        return Layout(names, places, len(names), str(first), rows, (), is_plain=True)
    names, notices = _join(head[first - 1 : last], width), []
    above = [text for row in head[: first - 1] for text in _texts(row) if not SEP.fullmatch(text)]
    keeps_rows = keeps_rows and (bool(header_row) or (not above and first == last))
    if above or first < last:
        spot = f"row {last} has" if first == last else f"rows {first} and {last} have"
        below = f", below {list_some(above, 3)}" if above else ""
        other = f"; {option('header_row')} names another row"
        notices.append(f"{spot} the names of the columns{below}{other}")
    rows = [*islice(enumerate(head, 1), last, None), *enumerate(tail, n_rows - len(tail) + 1)]
    header_row = str(last) if first == last else f"{first}-{last}"
    table = _Values(row for _, row in rows)
    others = _Values(row for _, row in rows[1:]) if 4 <= len(rows) <= FEW else table
    if rows and others.has_units(rows[0][1]):
        notices.append(f"row {last + 1} is not read: {list_some(_texts(rows[0][1]), 3)}")
        rows, last = rows[1:], last + 1
    n_kept = max(
        (i for i, (_, r) in enumerate(rows, 1) if keeps_rows and len(r) == width), default=0
    )
    inside = {} if keeps_rows or keep_totals else _find_sums(rows, table)
    if inside:
        number, row = next(iter(inside.items()))
        n_sums = plural(len(inside), "row of totals is", "rows of totals are")
        notices.append(
            f"{'at least ' * bool(tail)}{n_sums} not read, the first is row {number:,} "
            f"({_texts(row)[0]!r}){asks}"
        )
        rows = [each for each in rows if each[0] not in inside]
    kept, about = _cut(rows, table, n_kept, keep_totals, asks)
    notices += about
    dropped = [(n, row) for n, row in kept if not keeps_rows or len(row) != width]
    if skipped := [number for number, row in dropped if row and _is_skipped(row)]:
        n_skipped = plural(len(skipped), "empty row or comment", "empty rows or comments")
        notices.append(f"{n_skipped} not read, the first is row {skipped[0]:,}")
    places, about = _find_columns(kept, names)
    return Layout(
        names=tuple(names[place] for place in places),
        places=places,
        width=width,
        header_row=header_row,
        rows=(last + 1, kept[-1][0] if kept and len(kept) < len(rows) else n_rows),
        notices=(*notices, *about),
        is_plain=first == last == 1 + sum(not row for row in head[: first - 1])
        and not notices
        and not about
        and not any(r for _, r in rows[len(kept) :]),
        keeps_rows=keeps_rows,
        sums=table.sums if inside else None,
    )


def _is_filled(cell: object) -> bool:
    return bool(cell.strip()) if isinstance(cell, str) else cell is not None and cell == cell


class _Known(list[object]):
    """A row that is looked at often."""

    @cached_property
    def filled(self) -> frozenset[int]:
        """The places of cells with a text or a number."""
        # rows may have thousands of cells
        is_filled = str.strip if {*map(type, self)} == {str} else _is_filled
        return frozenset(compress(count(), map(is_filled, self)))

    @cached_property
    def values(self) -> frozenset[int]:
        """The places of numbers and dates."""
        is_value = _VALUE.fullmatch if {*map(type, self)} == {str} else _is_value
        return frozenset(compress(self.filled, map(is_value, map(self.__getitem__, self.filled))))


def _filled(row: Row) -> frozenset[int]:
    return (row if isinstance(row, _Known) else _Known(row)).filled


def _texts(row: Row) -> list[str]:
    return list(dict.fromkeys(str(row[place]).strip()[:40] for place in sorted(_filled(row))))


def _is_skipped(row: Row) -> bool:
    """Whether a row is empty, or a comment that begins with ``#``."""
    places = _filled(row)
    return not places or (len(places) == 1 and str(row[min(places)]).lstrip().startswith("#"))


def _is_value(cell: object) -> bool:
    return bool(_VALUE.fullmatch(cell)) if isinstance(cell, str) else _is_filled(cell)


def _is_marker(cell: object) -> bool:
    return _is_filled(cell) and str(cell).strip() in MISSING


def _number(cell: object, decimal: str) -> float:
    """Return a number with a decimal mark; 0 for other values."""
    if isinstance(cell, int | float):
        return float(cell) if cell == cell else 0.0
    whole, mark, rest = re.sub(r"[^\d.,-]", "", str(cell)).partition(decimal)
    try:
        return float(re.sub(r"[.,]", "", whole) + mark.replace(",", ".") + rest)
    except ValueError:
        return 0.0


def _decimal(cells: Iterable[object]) -> str:
    """Return the decimal mark of numbers.

    It is before other than three digits, after a 0 or after another mark. A mark that is nowhere
    so is that of thousands.
    """
    last: Counter[str] = Counter()
    for cell in cells:
        if isinstance(cell, str) and (marks := re.findall(r"[.,]", cell)):
            last[marks[-1]] += len({*marks}) > 1 or not re.search(r"[1-9]\d*[.,]\d{3}\D*$", cell)
    mark = max(last, key=last.__getitem__, default=".")
    return mark if last[mark] or not last else {".": ",", ",": "."}[mark]


def _parse(header_row: str, n_known: int) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", header_row)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not (1 <= first <= last <= min(first + 1, n_known)):
        raise ValueError(
            f"header_row must be a row among the first {n_known:,}, such as 4, or two, such as "
            f"2-3, got {header_row!r}"
        )
    return first, last


def _join(rows: Sequence[Row], width: int) -> list[str]:
    """Return the names in one row, or those that two rows have together.

    A name in the upper row belongs to all columns up to the next one.
    """
    *above, lower = (
        [str(cell).strip() if _is_filled(cell) else "" for cell in (*row, *[""] * width)][:width]
        for row in rows
    )
    group, names = "", []
    for upper, name in zip(above[0] if above else lower, lower, strict=True):
        group = upper or group
        names.append(
            upper if not name else name if group in ("", name) or not above else f"{group} {name}"
        )
    return names


class _Values:
    """The columns of a table that have values, and of those the ones that have numbers or dates."""

    def __init__(self, rows: Iterable[_Known]) -> None:
        self._rows = [row for row in rows if not _is_skipped(row)]
        counts = Counter(chain.from_iterable(row.filled for row in self._rows))
        self.usual = {place for place, n in counts.items() if n >= len(self._rows) / 2}
        values = Counter(chain.from_iterable(row.values for row in self._rows))
        self.numeric = {place for place in self.usual if values[place] > 0.8 * counts[place]}

    @cached_property
    def decimal(self) -> str:
        """The decimal mark of the numbers."""
        return _decimal(row[p] for row in self._rows for p in self.numeric if p < len(row))

    @property
    def sums(self) -> tuple[frozenset[int], frozenset[int], str]:
        """What rows of totals are found by."""
        return frozenset(self.numeric), frozenset(self.usual - self.numeric), self.decimal

    def are_names(self, rows: Sequence[Row], width: int) -> bool:
        """Whether these rows have a different name for each column."""
        if any(not _filled(row) or len(row) > width for row in rows):
            return False
        cells = [[row[place] for place in _filled(row)] for row in rows]
        if any(2 * sum(map(_is_value, each)) > len(each) for each in cells):
            return False
        joined = _join(rows, width)
        names = list(filter(None, joined))
        is_named = all(joined[place] for place in self.usual if place < width)
        return is_named and len({*names}) == len(names) > 1

    def has_datum(self, row: Row) -> bool:
        """Whether a row has a number, or says that it is missing, in a column of numbers."""
        return any(_is_value(row[p]) or _is_marker(row[p]) for p in self.numeric & _filled(row))

    def has_units(self, row: Row) -> bool:
        """Whether a row has several texts, such as units, where numbers belong, and no number."""
        cells = [row[p] for p in self.numeric & _filled(row) if not _is_marker(row[p])]
        return len(cells) > 1 and not any(map(_is_value, cells))

    def are_other(self, rows: Sequence[Row]) -> bool:
        """Whether rows below an empty one begin with names, so that they are another table."""
        places = {place for place in _filled(rows[0]) if not _is_marker(rows[0][place])}
        has_names = places & self.numeric and not any(_is_value(rows[0][p]) for p in places)
        is_narrow = all(2 * len(_filled(row)) <= len(self.usual) for row in rows)
        return bool(
            len(rows) > 1 < len(places) and (has_names or is_narrow) and not _label(rows[0])
        )

    def is_note(self, row: Row, is_apart: bool) -> bool:
        """Whether a row has one text only, that is not a value of the table."""
        texts = _texts(row)
        if len(_filled(row)) > 1 or len(self.usual) < 2 or _is_value(texts[0]):
            return False
        is_sentence = len(self.usual) > 2 and bool(re.search(r"\s|:", texts[0]))
        return is_apart or is_sentence or len(row) <= max(self.usual)

    def are_totals(self, row: Row, rows: Sequence[Row]) -> bool:
        """Whether a row begins with a word for totals, and has values that can be some."""
        places = self.numeric & _filled(row)
        if not _label(row) or not places or _label(row) in map(_label, rows):
            return False
        if self.usual - self.numeric - _filled(row):  # no other row lacks them
            return True
        columns = [
            [_number(r[p], self.decimal) for r in (row, *rows) if p < len(r)] for p in places
        ]
        if re.match(_MEAN, _label(row), re.IGNORECASE):
            return all(
                10 * abs(value - sum(column) / len(column)) <= max(column) - min(column)
                for value, *column in columns
                if column
            )
        n_sums = sum(value >= sum(column) * (1 - 1e-6) > 0 for value, *column in columns)
        return 2 * n_sums >= len(columns)


class _Sums:
    """The sums of columns of numbers, since the last row of totals and since the first row.

    `places` are those columns, and `texts` the others that most rows have.
    """

    def __init__(self, places: frozenset[int], texts: frozenset[int], decimal: str) -> None:
        self._places, self._texts, self._decimal = places, texts, decimal
        self._sums = [defaultdict[int, float](float), defaultdict[int, float](float)]
        self._n_rows = [0, 0]

    def are_in(self, row: Row) -> bool:
        """Whether a row has the sums of rows above it; those of any other row are added."""
        filled = _filled(row)
        known = (p for p in filled & self._places if _is_value(row[p]))
        numbers = {p: _number(row[p], self._decimal) for p in known}
        # the word for totals may be in a column of dates
        others = [str(row[p]).strip() for p in filled - numbers.keys()]
        is_total = any(map(_SUM_OF.search, others)) and any(
            sum(abs(n - sums[p]) <= ROUNDING * abs(sums[p]) != 0 for p, n in numbers.items())
            >= self._least(len(numbers), n_rows, filled, others)
            for sums, n_rows in zip(self._sums, self._n_rows, strict=True)
        )
        if is_total:
            self._sums[0].clear()
            self._n_rows[0] = 0
            return True
        self._n_rows = [n + 1 for n in self._n_rows]
        for sums in self._sums:
            for p, n in numbers.items():
                sums[p] += n
        return False

    def _least(self, n: int, n_rows: int, filled: set[int], others: Sequence[str]) -> int:
        """Return how many of `n` numbers must be sums of `n_rows` rows.

        Half of them, as the others may be means; all if the row may be of a name such as "Total
        Energies", which has all texts, or if it has the numbers of one row.
        """
        lacks = bool(self._texts - filled)
        if n_rows > 1 and (lacks or any(map(_TOTAL.fullmatch, others))):
            return max(1, (n + 1) // 2)
        return max(1 if lacks else 2, n)


def _find_sums(rows: Sequence[Numbered], table: _Values) -> dict[int, Row]:
    """Return the rows of totals among the first rows by number; none if all are below the table."""
    known = [each for i, each in enumerate(rows) if each[0] == rows[0][0] + i and _filled(each[1])]
    texts = (str(row[p]) for _, row in known for p in row.filled - row.values)
    if not any(map(_SUM_OF.search, texts)):
        return {}
    sums = _Sums(*table.sums)
    totals = {number: row for number, row in known if sums.are_in(row)}
    end = max((n for n, row in known if n not in totals and table.has_datum(row)), default=0)
    return totals if any(n < end or not _label(row) for n, row in totals.items()) else {}


def _find_names(head: Sequence[_Known], width: int) -> tuple[int, int]:
    """Return the first and the last row of names; (0, 0) if no rows can be."""
    start = [*[bool(row) and str(row[0]).startswith("#") for row in head], False].index(False)
    if start == 1 and len(head[0]) > 1 and any(map(_is_value, head[1] if len(head) > 1 else ["1"])):
        start = 0  # the only comment is the row of names
    for i in range(start, min(MAX_ABOVE, len(head))):
        row, table = head[i], _Values(head[i + 1 :])
        if table.are_names([row], width):
            is_sure = table.numeric and not table.has_datum(row)
            most = max((len(_texts(above)) for above in head[start:i]), default=0)
            are_texts = 2 * most < len(table.usual) and not any(map(_is_value, row))
            return (i + 1, i + 1) if not most or is_sure or are_texts else (0, 0)
        below, lower = _Values(head[i + 2 :]), head[i + 1 : i + 2]
        has_index = _filled(row) == {*range(1, width)}  # the values of a data frame's index
        may_pair = (
            lower and len(_texts(row)) > 1 and not has_index and not below.has_datum(lower[0])
        )
        is_pair = may_pair and below.are_names(head[i : i + 2], width)
        is_lower = below.are_names(lower, width)
        if is_pair and not is_lower:
            return i + 1, i + 2
        # it may have values, but no groups of the columns that are named below it
        if table.usual <= _filled(row) != set() and not (is_pair and is_lower and below.numeric):
            return (i + 1, i + 1) if not any(map(_filled, head[start:i])) else (0, 0)
    return 0, 0


def _label(row: Row) -> str:
    """Return the word for totals that a row begins with, empty if there is none."""
    text = next(iter(_texts(row)), "")
    return text if _TOTAL.fullmatch(text) else ""


def _cut(
    rows: Sequence[Numbered], table: _Values, n_kept: int, keep_totals: bool, asks: str
) -> tuple[Sequence[Numbered], list[str]]:
    """Leave out other tables, totals and notes below a table; return notices on them.

    The first `n_kept` rows are not left out, nor totals with `keep_totals`. `asks` follows the
    notice on totals.
    """
    notices: list[str] = []
    blocks = [[*block] for is_in, block in groupby(rows, lambda r: bool(_filled(r[1]))) if is_in]
    for block in blocks[1:]:
        is_free = not n_kept or block[0][0] > rows[n_kept - 1][0]
        if is_free and table.are_other([row for _, row in block]):
            span = f"rows {block[0][0]:,} to {blocks[-1][-1][0]:,}"
            notices.append(
                f"{span} are another table and not read: {list_some(_texts(block[0][1]))}"
            )
            rows = [each for each in rows if each[0] < block[0][0]]
            break
    below, end = [], len(rows)
    while end > n_kept:
        number, row = rows[end - 1]
        if _filled(row):
            is_apart = end < 2 or not _filled(rows[end - 2][1])
            is_note = _is_skipped(row) or table.is_note(row, is_apart)
            others = [r for _, r in rows[: end - 1]]
            if not is_note and (keep_totals or not table.are_totals(row, others)):
                break
            below.append(
                f"row {number:,} ({'a note' if is_note else 'totals'}: {_texts(row)[0]!r})"
            )
        end -= 1
    if below:
        more = f" and {len(below) - 6:,} more" if len(below) > 6 else ""
        asks = asks if any("(totals: " in each for each in below) else ""
        notices.append(f"not read below the table: {', '.join(below[:6])}{more}{asks}")
    return rows[:end], notices


def _find_columns(
    rows: Sequence[Numbered], names: Sequence[str]
) -> tuple[tuple[int, ...], list[str]]:
    """Return the columns of a table, and notices on empty ones and on a table beside it."""
    filled = {p for _, row in rows for p in _filled(row) if p < len(names)} | {
        place for place, name in enumerate(names) if name
    }
    blocks = [[*b] for is_in, b in groupby(range(len(names)), filled.__contains__) if is_in]
    ends = [max((n for n, row in rows if _filled(row) & {*b}), default=0) for b in blocks]
    notices = []
    if len(filled) < len(names):
        notices.append("empty columns without a name are not read")
    beside = []
    for block, end in zip(blocks, ends, strict=True):
        if max(ends) - end > max(2, len(rows) / 10):
            beside += block
    if beside:
        shown = list_some([names[place] for place in beside])
        notices.append(f"columns of a shorter table next to this one are not read: {shown}")
    return tuple(sorted(filled - {*beside})), notices
