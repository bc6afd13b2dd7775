"""Results in columnar form: a line is a block of results, with a list of values for each field.

xz compresses columns twice as well as rows. Fields of metrics, details, limits and candidates of a
search are separate columns. A missing field is null.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from kbench.errors import BundleError
from kbench.records.canonical import Json, JsonObject, dumps, encodable

BLOCK = 1_000
"""Number of results of a block."""

MAX_RESULTS = 200_000
_OF_A_RESULT = 50
"""Minimum number of lists and objects counted per result."""

_NESTED = ("metrics", "details", "limits")
_SEARCH = "details/search"


def dump_line(value: Json) -> bytes:
    """Write a value as a line, with lone surrogates escaped."""
    try:
        return f"{dumps(value)}\n".encode()
    except UnicodeEncodeError:
        return f"{dumps(encodable(value))}\n".encode()


def pack(results: Iterable[JsonObject], keys: Sequence[str]) -> bytes:
    """Return the lines of results; `keys` are those of all cells, in order."""
    numbers = {key: number for number, key in enumerate(keys)}
    numbered = ({**result, "cell": numbers[result["cell"]]} for result in results)
    lines = []
    while block := list(itertools.islice(numbered, BLOCK)):
        lines.append(dump_line(_columns(block)))
    return b"".join(lines)


def _columns(block: Sequence[JsonObject]) -> dict[str, list[Json]]:
    columns: defaultdict[str, list[Json]] = defaultdict(lambda: [None] * len(block))
    for number, result in enumerate(block):
        for name, value in _fields(result):
            columns[name][number] = value
    return columns


def _fields(result: JsonObject) -> Iterator[tuple[str, Json]]:
    for name, value in result.items():
        if name not in _NESTED:
            yield name, value
            continue
        for inner, each in value.items():
            names = each[0].keys() if inner == "search" and each else ()
            if names and all(candidate.keys() == names for candidate in each):
                yield from ((f"{_SEARCH}/{key}", [c[key] for c in each]) for key in names)
            else:
                yield f"{name}/{inner}", each


def unpack(
    lines: Iterable[tuple[str, Json]], keys: Sequence[str], most: int
) -> Iterator[tuple[str, JsonObject]]:
    """Yield each result with the place of its block; raise BundleError for an invalid one.

    `lines` are parsed JSON values with their places in a file, and `most` is the maximum number of
    lists and objects of all results.
    """
    n_results = 0
    for place, block in lines:
        columns = block if isinstance(block, dict) else {}
        sizes = {len(each) if isinstance(each, list) else 0 for each in columns.values()}
        n = sizes.pop() if len(sizes) == 1 else 0
        if not 0 < n <= BLOCK:
            raise BundleError(
                f"{place} is not a block of up to {BLOCK:,} results, with a value of each of them "
                "in all columns"
            )
        n_results += n
        if n_results > MAX_RESULTS:
            raise BundleError(
                f"it has more than the {MAX_RESULTS:,} results that can be read at once: split "
                "it by datasets or methods"
            )
        most -= n * _OF_A_RESULT + sum(_n_candidates(*column) for column in columns.items())
        if most < 0:
            raise BundleError(
                f"{place} has more results or candidates of searches than are allowed for the "
                "size of the file: split it by datasets or methods"
            )
        for number in range(n):
            yield place, _result(columns, number, keys, place)


def _n_candidates(name: str, column: list[Json]) -> int:
    lists = column if name.startswith(_SEARCH) else ()
    return sum(len(each) for each in lists if isinstance(each, list))


def _result(
    columns: dict[str, list[Json]], number: int, keys: Sequence[str], place: str
) -> JsonObject:
    """Return a result of a block."""
    result: JsonObject = {}
    nested: JsonObject = {name: {} for name in _NESTED}
    search: JsonObject = {}
    for name, column in columns.items():
        value = column[number]
        outer, _, inner = name.partition("/")
        if outer not in nested:
            result[name] = value
        elif name.startswith(f"{_SEARCH}/"):
            search |= {} if value is None else {name.removeprefix(f"{_SEARCH}/"): value}
        elif value is not None or outer == "limits":
            nested[outer][inner] = value
    cell = result.get("cell")
    if type(cell) is not int or not 0 <= cell < len(keys):
        raise BundleError(f"{place} has a result of a cell that the bundle lacks")
    if search:
        sizes = {len(each) if isinstance(each, list) else None for each in search.values()}
        if len(sizes) > 1 or None in sizes:
            raise BundleError(f"{place} has a search that cannot be read")
        values = zip(*search.values(), strict=True)
        nested["details"]["search"] = [dict(zip(search, each, strict=True)) for each in values]
    return {**result, **nested, "cell": keys[cell]}
