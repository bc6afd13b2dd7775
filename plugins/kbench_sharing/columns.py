"""Results in columnar form: a line is a block of results, with a list of values for each field.

xz compresses columns twice as well as rows. Fields of metrics, details, limits and candidates of a
search are separate columns. A missing field is null. A column with few different numbers lists them
once, and has a sign for each number: ``{"values": [0.5, 1.0], "signs": "[[##$][$]]"}`` is
``[[0.5, 0.5, 1.0], [1.0]]``.
"""

import itertools
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from kbench.errors import BundleError
from kbench.records.canonical import Json, JsonObject, dumps, encodable
from kbench_sharing.untrusted_text import MAX_COLUMN, parse_json

# Number of results of a block; xz compresses long columns better.
BLOCK = 10_000

# 100,000 cells of five splits
MAX_RESULTS = 500_000
# Minimum number of lists and objects counted per result.
_OF_A_RESULT = 50

_CODES = (*range(35, 44), *range(45, 91), *range(94, 123), *range(124, 127), *range(0x100, 0x800))
# Signs of values: no quote, comma, backslash or bracket; those of one byte come first.
_SIGNS = "".join(map(chr, _CODES))

# Minimum number of results whose columns have signs: rows files stay readable.
_MIN_SIGNED = 100

_LEAF = re.compile(r"[^\[\],]+")
_NUMBER = re.compile(r"[-+.0-9a-z]{1,32}")

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


def _columns(block: Sequence[JsonObject]) -> JsonObject:
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
    if len(block) < _MIN_SIGNED:
        return columns
    return {name: _sign(column) for name, column in columns.items()}


def _sign(column: list[Json]) -> Json:
    """Return a column of numbers with signs, or the same if signs save little."""
    text = dumps(column)
    leaves = _LEAF.findall(text)
    texts = sorted(set(leaves))
    few = len(texts) <= min(len(_SIGNS), len(leaves) / 2)
    if not (few and all(map(_NUMBER.fullmatch, texts))):
        return column
    sign = dict(zip(texts, _SIGNS, strict=False))
    signs = _LEAF.sub(lambda leaf: sign[leaf[0]], text).replace(",", "")
    return {"values": json.loads(f"[{','.join(texts)}]"), "signs": signs}


def _read_signs(column: JsonObject, place: str) -> Json:
    """Return the numbers of a column with signs; None if it has other values."""
    values, signs = column.get("values"), column.get("signs")
    texts = list(map(dumps, values)) if isinstance(values, list) else [""]
    if not isinstance(signs, str) or signs.strip(f"[]{_SIGNS[: len(texts)]}"):
        return None
    if not all(map(_NUMBER.fullmatch, texts)):
        return None
    ends = {ord(sign): f"{text}," for sign, text in zip(_SIGNS, texts, strict=False)}
    text = signs.translate({**ends, ord("]"): "],"}).replace(",]", "]").rstrip(",")
    return parse_json(text.encode(), place, MAX_COLUMN)


def unpack(
    lines: Iterable[tuple[str, Json]], keys: Sequence[str], most: int
) -> Iterator[tuple[str, JsonObject]]:
    """Yield each result with the place of its block; raise BundleError for an invalid one.

    `lines` are parsed JSON values with their places in a file, and `most` is the maximum number of
    lists and objects of all results.
    """
    n_results = 0
    for place, block in lines:
        columns = dict(block) if isinstance(block, dict) else {}
        signed = {name: each for name, each in columns.items() if isinstance(each, dict)}
        # a sign becomes a number, which takes half the memory of an empty list
        most -= sum(len(str(each.get("signs"))) for each in signed.values()) // 2
        columns |= {name: _read_signs(each, place) for name, each in signed.items() if most >= 0}
        sizes = {len(each) if isinstance(each, list) else 0 for each in columns.values()}
        n = sizes.pop() if len(sizes) == 1 else 0
        searched = (columns[name] for name in columns if name.startswith(_SEARCH))
        lists = (each for column in searched if isinstance(column, list) for each in column)
        most -= n * _OF_A_RESULT + sum(map(len, (each for each in lists if isinstance(each, list))))
        if most < 0:
            raise BundleError(
                f"{place} has more results or candidates of searches than are allowed for the "
                "size of the file: split it by datasets or methods"
            )
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
        yield from ((place, result) for result in _results(columns, n, keys, place))


def _results(
    columns: dict[str, list[Json]], n: int, keys: Sequence[str], place: str
) -> Iterator[JsonObject]:
    """Yield the `n` results of a block."""
    results: list[JsonObject] = [{name: {} for name in _NESTED} for _ in range(n)]
    nested = {name: [result[name] for result in results] for name in _NESTED}
    nested |= {"": results, _SEARCH: [{} for _ in range(n)]}
    for name, column in columns.items():
        outer = next((each for each in (_SEARCH, *_NESTED) if name.startswith(f"{each}/")), "")
        field = name.removeprefix(f"{outer}/") if outer else name
        if name in _NESTED:
            raise BundleError(f"{place} has {name} that are not columns")
        is_optional = outer not in ("", "limits")
        for part, value in zip(nested[outer], column, strict=True):
            if value is not None or not is_optional:
                part[field] = value
    for result, search in zip(results, nested[_SEARCH], strict=True):
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
