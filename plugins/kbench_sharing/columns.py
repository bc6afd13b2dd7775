"""Results in columnar form: a line is a block of results, with a list of values for each field.

xz compresses columns twice as well as rows. Fields of metrics, details, limits and candidates of a
search are separate columns. A missing field is null.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from kbench.errors import BundleError
from kbench.records.canonical import Json, JsonObject, dumps, encodable

BLOCK = 5_000
"""Number of results of a block; xz compresses long columns better."""

# 100,000 cells of five splits
MAX_RESULTS = 500_000
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
    blocks = iter(lambda: list(itertools.islice(numbered, BLOCK)), [])
    return b"".join(dump_line(_columns(block)) for block in blocks)


def _columns(block: Sequence[JsonObject]) -> dict[str, list[Json]]:
    columns: defaultdict[str, list[Json]] = defaultdict(lambda: [None] * len(block))
    for number, result in enumerate(block):
        for name, value in result.items():
            if name not in _NESTED:
                columns[name][number] = value
                continue
            for inner, each in value.items():
                names = each[0].keys() if inner == "search" and each else ()
                if names and all(candidate.keys() == names for candidate in each):
                    for key in names:
                        columns[f"{_SEARCH}/{key}"][number] = [c[key] for c in each]
                else:
                    columns[f"{name}/{inner}"][number] = each
    return columns


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
        searched = (columns[name] for name in columns if name.startswith(_SEARCH))
        candidates = (each for column in searched for each in column if isinstance(each, list))
        most -= n * _OF_A_RESULT + sum(map(len, candidates))
        if most < 0:
            raise BundleError(
                f"{place} has more results or candidates of searches than are allowed for the "
                "size of the file: split it by datasets or methods"
            )
        yield from ((place, result) for result in _results(columns, n, keys, place))


def _results(
    columns: dict[str, list[Json]], n: int, keys: Sequence[str], place: str
) -> Iterator[JsonObject]:
    """Yield the `n` results of a block."""
    results: list[JsonObject] = [{name: {} for name in _NESTED} for _ in range(n)]
    nested = {name: [result[name] for result in results] for name in _NESTED}
    searches: list[JsonObject] = [{} for _ in range(n)]
    for name, column in columns.items():
        outer, _, inner = name.partition("/")
        parts, field = results, name
        if name.startswith(f"{_SEARCH}/"):
            parts, field = searches, name.removeprefix(f"{_SEARCH}/")
        elif outer in _NESTED:
            parts, field = nested[outer], inner
        is_optional = outer in _NESTED and outer != "limits"
        for part, value in zip(parts, column, strict=True):
            if value is not None or not is_optional:
                part[field] = value
    for result, search in zip(results, searches, strict=True):
        cell = result.get("cell")
        if type(cell) is not int or not 0 <= cell < len(keys):
            raise BundleError(f"{place} has a result of a cell that the bundle lacks")
        if search:
            sizes = {len(each) if isinstance(each, list) else None for each in search.values()}
            if len(sizes) > 1 or None in sizes:
                raise BundleError(f"{place} has a search that cannot be read")
            values = zip(*search.values(), strict=True)
            result["details"]["search"] = [dict(zip(search, each, strict=True)) for each in values]
        result["cell"] = keys[cell]
        yield result
