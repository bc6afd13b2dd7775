"""Results as columns of JSON lines: a few bytes for each number, and every number as it was.

A block is a line with its number of results, then a line for each column. A column says how its
values are written:

- ``same``: one value for all results;
- ``values``: one for each; a measure that a result does not have is null;
- ``table`` and ``places``: different values, and the number of the one that each result has;
- ``of`` and ``values``: integers are counts of rows, to be divided by a number of rows of the
  result, such as ``n_test``; a number with a point is one that is no such share;
- ``like`` (``one_minus``): equal to an earlier column (one minus it);
- ``steps``: differences to the result before; ``after``: milliseconds beyond start and duration.

Candidates of a search are written once where many results have the same ones, their scores as
counts of rows of the inner folds, and the chosen one by its number.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

from kbench.errors import BundleError
from kbench.records.canonical import Json, JsonObject, dumps, encodable
from kbench_sharing.container import MOST_EXPANDED

BLOCK = 2_000
"""Results of a block."""

MOST_RESULTS = 200_000
_OF_A_RESULT, _OF_A_VALUE = 500, 20
"""Characters that each result and each value in a column count for, whatever is in it."""

_HEAD = re.compile(rb'^\s*\{\s*"n"\s*:\s*([0-9]{1,9})\s*\}', re.MULTILINE)
_SEPARATOR = "/"
_NESTED = ("measures", "details", "limits")
_COUNTED = ("n_test", "n_train")
_ROWS = tuple(f"measures/{name}" for name in _COUNTED)
_ACCURACIES = ("measures/accuracy", "measures/default_accuracy")
_NO_SHARES = ("_s", "_mb")
_MOST_ROWS = 1 << 40
_LARGEST_FOLD = 100_000

Result = JsonObject
Values = list[Json]


# -- writing


def packed(results: Iterable[Result], keys: Sequence[str]) -> Iterator[str]:
    """Yield the lines of results; `keys` are those of all cells, in order.

    The same results become the same lines.
    """
    numbers = {key: number for number, key in enumerate(keys)}
    rest = iter(results)
    while block := list(itertools.islice(rest, BLOCK)):
        yield dumps({"n": len(block)})
        columns = _columns(block, numbers)
        for name in sorted(columns, key=_order):
            yield _dumped({"column": name, **_written(name, columns)})


def _dumped(value: Json) -> str:
    """Write a value; halves of characters, which UTF-8 has not, as escapes."""
    text = dumps(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return dumps(encodable(value))
    return text


def _order(name: str) -> tuple[int, str]:
    """Return the place of a column: after those that it is computed from."""
    for rank, names in enumerate((_ROWS, _ACCURACIES)):
        if name in names:
            return rank, name
    return 3 if name == "ended_ms" else 2, name


def _columns(block: Sequence[Result], numbers: Mapping[str, int]) -> dict[str, Values]:
    columns: defaultdict[str, Values] = defaultdict(lambda: [None] * len(block))
    for place, result in enumerate(block):
        for name, value in result.items():
            if name == "cell":
                columns[name][place] = numbers[value]
            elif name not in _NESTED:
                columns[name][place] = value
            else:
                for inner, each in value.items():
                    if inner not in ("search", "chosen"):
                        columns[f"{name}{_SEPARATOR}{inner}"][place] = each
        if "search" in result["details"]:
            for name, value in _search(result).items():
                columns[name][place] = value
    return dict(columns)


def _search(result: Result) -> JsonObject:
    """Return the candidates of a search as values of columns, and the chosen one."""
    details = result["details"]
    search, chosen = details["search"], details.get("chosen")
    if not search or any(
        "values" not in c or "converged" not in c or c.keys() != search[0].keys() for c in search
    ):
        return {"details/search": search, "details/chosen": chosen}
    params = [{n: v for n, v in c.items() if n not in ("values", "converged")} for c in search]
    folds = folds_of([candidate["values"] for candidate in search])
    values: Json = [candidate["values"] for candidate in search]
    if folds is not None:
        values = [[round(v * n) for v, n in zip(each, folds, strict=True)] for each in values]
    return {
        "search/params": params,
        "search/converged": [candidate["converged"] for candidate in search],
        "search/folds": folds,
        "search/values": values,
        "details/chosen": _number_of(chosen, params),
    }


def _number_of(chosen: Json, params: Sequence[Json]) -> Json:
    """Return the number of the chosen candidate; its parameters if it is none of them."""
    if chosen is not None:
        text = dumps(chosen)
        for number, each in enumerate(params):
            if each == chosen and dumps(each) == text:
                return number
    return chosen


def folds_of(scores: Sequence[Json]) -> list[int] | None:
    """Return numbers of rows such that all scores are shares of them; None if there are none.

    `scores` has a list for each candidate, with a score for each inner fold.

    >>> folds_of([[0.5, 0.25], [1.0, 0.5]])
    [4, 4]
    """
    sizes = {len(each) if isinstance(each, list) else -1 for each in scores}
    if len(sizes) != 1 or sizes & {-1, 0}:
        return None
    found = []
    for column in zip(*scores, strict=True):
        n = 1
        for value in set(column):
            if type(value) is not float or not 0.0 <= value <= 1.0:
                return None
            if (n * value) % 1 or round(n * value) / n != value:
                n = math.lcm(n, _denominator(value))
                if n > _LARGEST_FOLD:
                    return None
        if any(round(value * n) / n != value for value in column):
            return None
        found.append(n)
    # folds differ by a row at most: one size says more than what scores have in common
    return _of_one_size(found, scores)


def _of_one_size(found: list[int], scores: Sequence[Json]) -> list[int]:
    """Return larger numbers of rows, as like each other as the scores allow."""
    largest = max(found)
    made = []
    for fold, n in enumerate(found):
        for size in (largest, largest - 1, largest + 1):
            if size > 0 and all(round(each[fold] * size) / size == each[fold] for each in scores):
                n = size
                break
        made.append(n)
    return made


@lru_cache(maxsize=1 << 16)
def _denominator(value: float) -> int:
    return Fraction(value).limit_denominator(_LARGEST_FOLD).denominator


def _written(name: str, columns: Mapping[str, Values]) -> JsonObject:
    """Return how the values of a column are written."""
    column = columns[name]
    first = column[0]
    # only zeros are equal and written differently
    if (
        column.count(first) == len(column)
        and len(set(map(type, column))) == 1
        and not (first == 0.0 and _has_signs(column))
    ):
        return {"same": first}
    if name.startswith("measures/"):
        return _measure(name, columns)
    if name == "started_ms":
        return {"steps": [column[0], *(b - a for a, b in itertools.pairwise(column))]}
    if name == "ended_ms":
        starts, seconds = columns["started_ms"], columns["seconds"]
        return {
            "after": [
                end - start - round(1000 * s)
                for end, start, s in zip(column, starts, seconds, strict=True)
            ]
        }
    if any(isinstance(value, str | list | dict) for value in column):
        return _table(column)
    return {"values": column}


def _has_signs(column: Values) -> bool:
    """Tell whether a column has zeros of two signs, which are equal."""
    return len({repr(value) for value in column}) > 1


def _table(column: Values) -> JsonObject:
    """Return a column as a table, where values repeat."""
    places: dict[str, int] = {}
    table: Values = []
    found = []
    for value in column:
        place = places.setdefault(dumps(value), len(table))
        if place == len(table):
            table.append(value)
        found.append(place)
    if 2 * len(table) > len(column):
        return {"values": column}
    return {"table": table, "places": found}


def _measure(name: str, columns: Mapping[str, Values]) -> JsonObject:
    """Return a measure as what it is computed from, or as counts, or as it is."""
    column = columns[name]
    shares = all(value is None or 0.0 <= value <= 1.0 for value in column)
    if not shares or name.endswith(_NO_SHARES) or _has_negative_zero(column):
        return {"values": column}
    prefix = "measures/default_" if name.startswith("measures/default_") else "measures/"
    accuracy = columns.get(f"{prefix}accuracy")
    if accuracy is not None and name != f"{prefix}accuracy":
        if column == accuracy:
            return {"like": f"{prefix}accuracy"}
        if column == [None if value is None else 1.0 - value for value in accuracy]:
            return {"one_minus": f"{prefix}accuracy"}
    best: JsonObject = {"values": column}
    most = len(column) // 2
    for n in _COUNTED:
        rows = columns.get(f"measures/{n}")
        if rows is None or name == f"measures/{n}":
            continue
        counts = [_count(value, of) for value, of in zip(column, rows, strict=True)]
        n_counts = sum(type(count) is int for count in counts)
        if n_counts > most:
            most, best = n_counts, {"of": n, "values": counts}
    return best


def _has_negative_zero(column: Values) -> bool:
    return any(value == 0.0 and str(value) == "-0.0" for value in column)


def _count(value: float | None, rows: float | None) -> float | int | None:
    """Return a share of rows as their number, if it is exactly that; else as it is."""
    if value is None or rows is None or not 0 < rows < _MOST_ROWS or rows % 1:
        return value
    count = round(value * rows)
    return count if count / rows == value else value


# -- reading


def check_number(data: bytes) -> None:
    """Count the results of lines before any is parsed; BundleError where they are too many."""
    n_results = sum(map(int, _HEAD.findall(data)))
    if n_results > MOST_RESULTS:
        raise BundleError(
            f"it has {n_results:,} results, more than the {MOST_RESULTS:,} that are read at once: "
            "divide it, by datasets or methods"
        )


class Columns:
    """Results read from lines, one after the other; BundleError says what is wrong.

    `lines` are parsed JSON values with their places in a file, and `most` is the number of
    characters that all results may have, written one after the other: columns repeat values.
    """

    def __init__(
        self, lines: Iterable[tuple[str, Json]], keys: Sequence[str], most: int = MOST_EXPANDED
    ) -> None:
        self._lines, self._keys = iter(lines), keys
        self._left = self._most = most
        self._n_results = 0

    def __iter__(self) -> Iterator[tuple[str, Result]]:
        """Yield each result with the place of its block."""
        line = next(self._lines, None)
        while line is not None:
            place, head = line
            n = _number(head, "n", place)
            self._n_results += n
            if not 0 < n <= BLOCK or self._n_results > MOST_RESULTS:
                raise BundleError(f"{place} says that it has {n} results")
            self._spend(n * _OF_A_RESULT, place)
            columns: dict[str, Values] = {}
            line = next(self._lines, None)
            while line is not None and not (isinstance(line[1], dict) and "n" in line[1]):
                self._read(columns, *line, n)
                line = next(self._lines, None)
            given = [(*name.partition(_SEPARATOR), column) for name, column in columns.items()]
            for number in range(n):
                yield place, self._result(given, number, place)

    def _read(self, columns: dict[str, Values], place: str, line: Json, n: int) -> None:
        """Add the column of a line."""
        name = line.get("column") if isinstance(line, dict) else None
        if not isinstance(name, str) or name in columns:
            raise BundleError(f"{place} is not a new column of results")
        kind = frozenset(line) - {"column"}
        reader = _READERS.get(kind)
        if reader is None:
            raise BundleError(f"{place} has a column that is written in no known way")
        self._spend(n * _OF_A_VALUE, place)
        try:
            column = reader(line, n, columns)
        except (TypeError, ValueError, KeyError, IndexError, OverflowError, ZeroDivisionError):
            raise BundleError(f"{place} has a column that cannot be read") from None
        if len(column) != n:
            raise BundleError(f"{place} has {len(column)} values of {n}")
        if kind == {"same"}:
            self._spend(n * _length(line["same"]), place)
        elif "table" in kind:
            sizes = [_length(value) for value in line["table"]]
            self._spend(sum(sizes[i] for i in line["places"]), place)
        columns[name] = column

    def _spend(self, characters: int, place: str) -> None:
        self._left -= characters
        if self._left < 0:
            raise BundleError(
                f"{place} makes results of more than {self._most >> 20:,} MB, which is allowed for "
                "the size of the file: divide it, by datasets or methods"
            )

    def _result(
        self, columns: Iterable[tuple[str, str, str, Values]], number: int, place: str
    ) -> Result:
        """Return a result of columns whose names are divided at their separator."""
        result: Result = {name: {} for name in _NESTED}
        search: JsonObject = {}
        for outer, separator, inner, column in columns:
            value = column[number]
            if not separator:
                result[outer] = value
            elif outer == "search":
                search[inner] = value
            elif outer not in _NESTED:
                result[f"{outer}{separator}{inner}"] = value
            elif value is not None or outer == "limits":
                result[outer][inner] = value
        cell = result.get("cell")
        if type(cell) is not int or not 0 <= cell < len(self._keys):
            raise BundleError(f"{place} has a result of a cell that it does not have")
        result["cell"] = self._keys[cell]
        try:
            _add_search(result["details"], search)
        except (TypeError, ValueError, KeyError, AttributeError):
            raise BundleError(f"{place} has a search that cannot be read") from None
        return result


def _length(value: Json) -> int:
    """Return about the characters of a value as JSON."""
    if isinstance(value, str):
        return len(value)
    return len(json.dumps(value)) if isinstance(value, list | dict) else _OF_A_VALUE


def _add_search(details: JsonObject, search: Mapping[str, Json]) -> None:
    params = search.get("params")
    if params is None:
        return
    values, folds = search["values"], search.get("folds")
    if folds is not None:
        if not all(type(n) is int and 0 < n < _MOST_ROWS for n in folds):
            raise ValueError("folds are numbers of rows")
        values = [[_share(v, n) for v, n in zip(each, folds, strict=True)] for each in values]
    details["search"] = [
        {**each, "converged": converged, "values": scores}
        for each, converged, scores in zip(params, search["converged"], values, strict=True)
    ]
    chosen = details.get("chosen")
    if type(chosen) is int:
        if not 0 <= chosen < len(params):
            raise ValueError("no candidate has this number")
        details["chosen"] = dict(params[chosen])


def _share(count: Json, rows: Json) -> Json:
    """Return a count as a share of rows; anything else as it is."""
    if type(count) is not int:
        return count
    if not 0 <= count <= rows:
        raise ValueError("more rows are right than there are")
    return count / rows


def _number(head: Json, name: str, place: str) -> int:
    value = head.get(name) if isinstance(head, dict) and head.keys() == {name} else None
    if type(value) is not int:
        raise BundleError(f"{place} is not the beginning of a block of results")
    return value


def _list(value: Json) -> Values:
    if not isinstance(value, list):
        raise TypeError("a list is needed")
    return value


def _of_table(line: Json, n: int, columns: Mapping[str, Values]) -> Values:
    table = _list(line["table"])
    if any(type(place) is not int or place < 0 for place in _list(line["places"])):
        raise ValueError("places are numbers")
    return [table[place] for place in line["places"]]


def _of_counts(line: Json, n: int, columns: Mapping[str, Values]) -> Values:
    rows = columns[f"measures/{line['of']}"]
    return [_share(v, of) for v, of in zip(_list(line["values"]), rows, strict=True)]


def _of_steps(line: Json, n: int, columns: Mapping[str, Values]) -> Values:
    return list(itertools.accumulate(map(_whole, _list(line["steps"]))))


def _of_after(line: Json, n: int, columns: Mapping[str, Values]) -> Values:
    given = zip(_list(line["after"]), columns["started_ms"], columns["seconds"], strict=True)
    return [_whole(after) + _whole(start) + round(1000 * s) for after, start, s in given]


def _of_like(line: Json, n: int, columns: Mapping[str, Values]) -> Values:
    column = columns[line["like"]]
    # a text that is long would be repeated without being counted
    if not all(value is None or type(value) is float for value in column):
        raise TypeError("a measure is needed")
    return list(column)


def _of_minus(line: Json, n: int, columns: Mapping[str, Values]) -> Values:
    return [None if value is None else 1.0 - value for value in columns[line["one_minus"]]]


def _whole(value: Json) -> int:
    if type(value) is not int or abs(value) > _MOST_ROWS * 100:
        raise TypeError("an integer is needed")
    return value


_READERS: Mapping[frozenset[str], Callable[[Json, int, Mapping[str, Values]], Values]] = {
    frozenset({"same"}): lambda line, n, columns: [line["same"]] * n,
    frozenset({"values"}): lambda line, n, columns: _list(line["values"]),
    frozenset({"table", "places"}): _of_table,
    frozenset({"of", "values"}): _of_counts,
    frozenset({"like"}): _of_like,
    frozenset({"one_minus"}): _of_minus,
    frozenset({"steps"}): _of_steps,
    frozenset({"after"}): _of_after,
}
