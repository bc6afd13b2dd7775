"""Dialects of CSV files: delimiter, decimal mark, thousands mark and encoding of a sample.

A guess is never silent: `Found.sentence` says what was chosen, and `Found.doubts` what a
sample leaves open. Options replace a guess.
"""

import codecs
import contextlib
import csv
import io
import lzma
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from kbench import DatasetError
from kbench.messages import list_some, option
from kbench.tables.texts import BLANKS, MISSING, build_sign_pattern, build_translation
from kbench_files._layout import SEP, Layout, Row, find_layout, survey_lines
from kbench_files._reading import open_bounded

if TYPE_CHECKING:
    import pandas

SAMPLE = 1 << 20
"""Bytes of a file, unpacked, from which its dialect is guessed."""

CHUNK = 1 << 18
"""Bytes that are decoded together; Python takes 8 KiB, less than one row of a wide table.

CPython has no public way to say so; an interpreter without the attribute ignores it.
"""

SAMPLE_ROWS = 1000
"""Rows of the sample that are looked at."""

DELIMITERS = (",", ";", "\t", "|")

_BOMS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_NAMES = {",": "`,`", ";": "`;`", "\t": "tabs", "|": "`|`", " ": "blanks"}


@dataclass(frozen=True)
class Dialect:
    """The dialect of a CSV file."""

    delimiter: str = ","
    decimal: str = "."
    """One of {".", ","}. Decimal mark."""
    thousands: str = ""
    """Thousands separator; empty if there is none. A space stands for all `BLANKS`."""
    encoding: str = "utf-8"
    na_values: Sequence[str] = ()
    """Strings that stand for missing values, in addition to the usual ones."""
    header_row: str = ""
    """The row of column names, ``"4"``, or ``"2-3"``; notes and totals below are left out then."""
    keep_totals: bool = False

    def check(self, label: str) -> "Dialect":
        """Return the dialect; DatasetError where it has a wrong value."""
        if self.decimal not in (".", ","):
            raise DatasetError(f"{label}: decimal must be '.' or ',', got {self.decimal!r}")
        if self.thousands not in ("", ".", ",", "'", "_", *BLANKS):
            raise DatasetError(
                f"{label}: thousands must be one of '.', ',', \"'\", '_' or a space, got "
                f"{self.thousands!r}"
            )
        if self.thousands == self.decimal:
            raise DatasetError(
                f"{label}: decimal and thousands must differ, both are {self.decimal!r}"
            )
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise DatasetError(
                f"{label}: no encoding is named {self.encoding!r}; usual ones are utf-8, utf-16, "
                "cp1252 and latin-1"
            ) from None
        return self

    @property
    def number(self) -> re.Pattern[str]:
        """Pattern of the numbers, with groups of exactly three digits."""
        return build_sign_pattern(self.decimal, self.thousands)

    def read(self, lines: Iterable[str]) -> Any:
        """Return the rows of lines, as the standard library reads them."""
        return csv.reader(lines, delimiter=self.delimiter, skipinitialspace=True)

    def plain(self, series: "pandas.Series") -> "pandas.Series":
        """Return strings that are numbers of this dialect as Python writes them."""
        return series.str.translate(build_translation(self.decimal, self.thousands))


@dataclass(frozen=True)
class Found:
    """The dialect of a file, in words, and what a sample of it leaves open."""

    dialect: Dialect
    sentence: str
    doubts: Sequence[str] = ()


def detect(file: Path, label: str, fixed: Mapping[str, object]) -> Found:
    """Return the dialect of a file; values that are `fixed` are not guessed."""
    with open_bounded(file, label) as opened:
        raw = opened.read(SAMPLE)
    dialect = replace(Dialect(), **fixed).check(label)
    doubts = []
    if "encoding" not in fixed:
        encoding, doubt = _encoding(raw, label)
        dialect = replace(dialect, encoding=encoding)
        doubts += doubt
    try:
        decoder = codecs.getincrementaldecoder(dialect.encoding)()
        content = decoder.decode(raw).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise DatasetError(not_encoded(error, label)) from None
    if len(raw) == SAMPLE:  # the last line is cut
        content = content[: content.rfind("\n") + 1] or content
    sign = SEP.fullmatch(content.partition("\n")[0].strip())
    if "delimiter" not in fixed:
        delimiter, doubt = (sign[1], []) if sign and sign[1] else _delimiter(content)
        dialect = replace(dialect, delimiter=delimiter)
        doubts += doubt
    layout = lay_out(file, label, dialect)
    rows: Iterable[Row] = [row for row in _rows(content, dialect.delimiter) if row][1:]
    if not layout.is_plain:
        dialect = replace(dialect, header_row=layout.header_row)
        doubts += layout.notices
        rows = layout.select(
            row if len(row) == layout.width else [] for row in _rows(content, dialect.delimiter)
        )
    rows = list(rows)
    if "decimal" not in fixed or "thousands" not in fixed:
        dialect, doubt = _marks(dialect, rows, fixed)
        doubts += doubt
    if infinite := _find_infinite(dialect, rows):
        dialect = replace(dialect, na_values=(*dialect.na_values, *infinite))
        doubts.append(f"infinite values are read as missing: {list_some(infinite)}")
    return Found(dialect, _sentence(dialect, raw.startswith((*_BOMS,))), doubts)


def lay_out(file: Path, label: str, dialect: Dialect) -> Layout:
    """Find the table in a file; errors in the file are left to its reader."""
    try:
        with open_bounded(file, label, dialect.delimiter, dialect.encoding) as opened:
            known = survey_lines(decode(opened, dialect), dialect.read)
    except (csv.Error, UnicodeError, EOFError, OSError, zlib.error, lzma.LZMAError):
        known = ([], [], 0)
    try:
        return find_layout(*known, dialect.header_row, keep_totals=dialect.keep_totals)
    except ValueError as error:
        raise DatasetError(f"{label}: {error}") from None


def parse(stream: IO[bytes], dialect: Dialect, errors: str = "strict") -> Any:
    """Return the rows of an open file, as the standard library reads them."""
    return dialect.read(decode(stream, dialect, errors))


def decode(stream: IO[bytes], dialect: Dialect, errors: str = "strict") -> io.TextIOWrapper:
    """Decode an open file."""
    encoding = dialect.encoding
    if encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
        encoding = "utf-8-sig"  # pandas leaves a byte order mark out
    text = io.TextIOWrapper(stream, encoding=encoding, errors=errors, newline="")
    text._CHUNK_SIZE = CHUNK  # type: ignore[attr-defined]
    return text


def _sentence(dialect: Dialect, has_bom: bool) -> str:
    parts = [
        f"{_NAMES.get(dialect.delimiter, repr(dialect.delimiter))} as the delimiter",
        f"`{dialect.decimal}` as the decimal mark",
    ]
    if dialect.thousands:
        mark = "a blank" if dialect.thousands in BLANKS else f"`{dialect.thousands}`"
        parts.append(f"{mark} between thousands")
    parts.append(dialect.encoding + (" with a byte order mark" if has_bom else ""))
    if dialect.header_row:
        parts.append(f"names in row {dialect.header_row}")
    return ", ".join(parts)


def _encoding(raw: bytes, label: str) -> tuple[str, list[str]]:
    """Guess an encoding: a byte order mark, UTF-8, else one of western Europe."""
    for bom, name in _BOMS.items():
        if raw.startswith(bom):
            return name, []
    if b"\0" in raw:
        wide = raw[1::2].count(0) > len(raw) / 4 or raw[::2].count(0) > len(raw) / 4
        flag = option("encoding", "utf-16-le")
        hint = f"; if it is UTF-16 without a byte order mark, give {flag}" * wide
        raise DatasetError(f"{label}: it is not a text file (byte {raw.index(0) + 1} is NUL){hint}")
    lines = raw.split(b"\n")
    wide_line = bad_line = 0
    for number, line in enumerate(lines, 1):
        try:
            # the last line may be cut within a character
            codecs.getincrementaldecoder("utf-8")().decode(line, final=number < len(lines))
        except UnicodeDecodeError:
            bad_line = bad_line or number
        else:
            wide_line = wide_line or (0 if line.isascii() else number)
    if not bad_line:
        return "utf-8", []
    name = "cp1252"
    try:
        raw.decode(name)
    except UnicodeDecodeError:
        name = "latin-1"
    if wide_line:
        raise DatasetError(
            f"{label}: it has two encodings: line {wide_line:,} is UTF-8, line {bad_line:,} is "
            f"not. Convert one part, or give {option('encoding', name)} for the whole file"
        )
    doubt = (
        f"line {bad_line:,} is not UTF-8, so the file is read as {name}; {option('encoding')} "
        "selects another one"
    )
    return name, [doubt]


def not_encoded(error: UnicodeDecodeError, label: str) -> str:
    """Describe a byte that is not text in an encoding."""
    byte = error.object[error.start]
    return (
        f"{label}: it is not {error.encoding.upper()} text (byte 0x{byte:02x}). Give its "
        f"encoding, such as {option('encoding', 'cp1252')}, or convert it: `iconv -f cp1252 -t "
        "utf-8 OLD > NEW`"
    )


def _rows(data: str, delimiter: str) -> Iterator[list[str]]:
    reader = Dialect(delimiter).read(io.StringIO(data, newline=""))
    with contextlib.suppress(csv.Error):  # a cut or huge value: what was read suffices
        for number, row in enumerate(reader):
            if number > SAMPLE_ROWS:
                return
            yield row


def _delimiter(content: str) -> tuple[str, list[str]]:
    """Guess the sign that divides most rows into the same number of values."""
    candidates = []
    for sign in DELIMITERS:
        widths = [len(row) for row in _rows(content, sign) if row]
        for width, n in Counter(widths).most_common(1):
            if width > 1:  # titles above the names may have any width
                below = len(widths) - widths.index(width)
                candidates.append((n / len(widths), n / below, width, sign))
    if not candidates:
        return ",", []
    candidates.sort(key=lambda each: (*(-n for n in each[:3]), DELIMITERS.index(each[3])))
    (agree, *_, sign), *rest = candidates
    rivals = [other for share, *_, other in rest if share == agree == 1.0]
    if not rivals:
        return sign, []
    doubt = (
        f"{_NAMES[sign]} or {_NAMES[rivals[0]]} may be the delimiter; {_NAMES[sign]} yields more "
        f"columns and was chosen, {option('delimiter')} selects the other one"
    )
    return sign, [doubt]


def _marks(
    dialect: Dialect, rows: Sequence[Sequence[str]], fixed: Mapping[str, object]
) -> tuple[Dialect, list[str]]:
    """Guess the marks under which most columns are numbers, the plainest of equal ones."""
    width = max(map(len, rows), default=0)
    ignored = {*MISSING, *dialect.na_values}
    columns: list[set[str]] = [set() for _ in range(width)]
    for row in rows:
        for place, value in enumerate(row):
            if (value := value.strip()) not in ignored:
                columns[place].add(value)
    columns = [values for values in columns if values]
    candidates: list[tuple[int, Dialect]] = []
    for decimal in [fixed["decimal"]] if "decimal" in fixed else [".", ","]:
        for thousands in [fixed["thousands"]] if "thousands" in fixed else ["", ",", ".", " ", "'"]:
            if thousands == decimal:
                continue
            tried = replace(dialect, decimal=decimal, thousands=thousands)
            pattern = tried.number
            candidates.append((sum(all(map(pattern.fullmatch, c)) for c in columns), tried))
    most = max((n for n, _ in candidates), default=0)
    best = [tried for n, tried in candidates if n == most]
    if not best:
        return dialect, []
    chosen = next((tried for tried in best if not tried.thousands), best[0])
    other = None
    readings = {tried.decimal: tried for tried in reversed(best)}  # the first of each mark
    if len(readings) == 2 and (chosen.thousands or chosen.decimal != "."):
        # 1,234 is 1.234 or 1234: where values are divided by `;`, a comma is a decimal mark
        chosen, other = readings["."], readings[","]
        if dialect.delimiter == ";":
            chosen, other = other, chosen
    elif dialect.delimiter == ";" and chosen.decimal == ".":
        other = next((tried for tried in best if tried.thousands == "."), None)
    doubt = _doubt(chosen, other, columns) if other else ""
    return chosen, [doubt] if doubt else []


def _find_infinite(dialect: Dialect, rows: Sequence[Row]) -> list[str]:
    infinite: set[str] = set()
    rows = rows if any("inf" in str(cell).lower() for row in rows for cell in row) else ()
    for column in zip_longest(*rows, fillvalue=""):
        cells = {str(cell).strip() for cell in column} - {*MISSING, *dialect.na_values}
        signs = {cell for cell in cells if re.fullmatch("[+-]?inf(inity)?", cell, re.IGNORECASE)}
        if signs and signs < cells and all(map(dialect.number.fullmatch, cells - signs)):
            infinite |= signs
    return sorted(infinite)


def _doubt(chosen: Dialect, other: Dialect, columns: Sequence[set[str]]) -> str:
    """Say how the first number that has two readings was read, and what changes it."""
    example = next(
        (
            value
            for values in columns
            if all(map(chosen.number.fullmatch, values))
            and all(map(other.number.fullmatch, values))
            for value in sorted(values)
            if _value(value, chosen) != _value(value, other)
        ),
        None,
    )
    if example is None:
        return ""

    def options(dialect: Dialect) -> str:
        decimal, thousands = dialect.decimal, dialect.thousands
        more = f" {option('thousands', thousands)}" if thousands else ""
        return f"{option('decimal', decimal)}{more}"

    return (
        f"{example!r} is read as {_value(example, chosen):g}; {options(other)} reads it as "
        f"{_value(example, other):g}"
    )


def _value(number: str, dialect: Dialect) -> float:
    return float(number.translate(build_translation(dialect.decimal, dialect.thousands)))
