"""Validate strings of a bundle for display, and parse its JSON strictly."""

import hashlib
import json
import re
import unicodedata
from functools import lru_cache
from typing import NoReturn

from kbench.errors import BundleError
from kbench.messages import printable
from kbench.records.canonical import Json, JsonObject

MAX_LABEL = 500
MAX_LINE = 8 << 20
# Bytes of a line, and of one that is a column of results.
MAX_COLUMN = 256 << 20

_DEEPEST = 40
_NESTING = frozenset((dict, list))
_COMPONENT = re.compile(r"[a-z0-9][a-z0-9_.-]{0,99}")
_VERSION = re.compile(r"[0-9][A-Za-z0-9.+!_-]{0,60}")
_LIBRARY = re.compile(r"[A-Za-z0-9.+!_ -]{1,100}")
_HEX = re.compile(r"[0-9a-f]{64}")
# Scripts with letters that look like those of another one.
_SCRIPTS = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE")

_STYLED = ("FULLWIDTH", "MATHEMATICAL")

# Variation selectors, joiners, fillers and blanks that Python takes for printable.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U00016fe4"
    "\U0001d159\U000e0100-\U000e01ef]"
)

# Words that a reader takes for Latin ones; a Greek letter alone is a symbol of mathematics.
_LIKE_LATIN = re.compile(
    "[АВЕЅІЈКМНОРСТХУҮԌԚԜасеорхуіјѕһԁԛԝѵ]+|[ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαγικνορτυχ]{2,}|[ՕՏսոօ]+|[ᎪᏴᏟᎠᎬᎻᎫᏦᏞᎷᏢᏒᏚᎢᏙᎳᏃ]+"
)

# ASCII and accented Latin letters, without those that look like others: Ð, ı, ĳ, ĸ, ŀ, ŉ, ſ.
_AUTHOR = re.compile(r"[ -~À-ÏÑ-ÖØ-öø-İĴ-ķĹ-ľŁ-ňŊ-ž]*")

_OTHER = re.compile(r"[^a-z0-9.]+")
_MAX_SLUG = 60


def slug(value: str) -> str:
    """Return a safe name of a file or folder for an untrusted string.

    Changed strings end with eight digits of their hash, so that different strings have different
    names.

    >>> slug("uci-small")
    'uci-small'
    >>> slug("../../etc/passwd")
    'etc-passwd-3754d6cb'
    """
    plain = _OTHER.sub("-", value.lower()).strip("-.")[:_MAX_SLUG].strip("-.")
    ending = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return plain if plain and plain == value else f"{plain or 'x'}-{ending}"


def _refuse(constant: str) -> NoReturn:
    raise BundleError(f"{constant}, which is not a number")


def _unique(pairs: list[tuple[str, Json]]) -> JsonObject:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise BundleError("a duplicate field")
    return values


_DECODER = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=_unique)


def parse_json(line: bytes, place: str, most: int = MAX_LINE) -> Json:
    """Parse a JSON value; raise BundleError for NaN, duplicate names and deep nesting."""
    if len(line) > most:
        raise BundleError(f"{place} has more than {most >> 20} MiB")
    try:
        value = _DECODER.decode(line.decode("utf-8"))
    except BundleError as error:
        raise BundleError(f"{place} has {error}") from None
    except UnicodeDecodeError:
        raise BundleError(f"{place} is not UTF-8 text") from None
    except (ValueError, RecursionError):
        raise BundleError(f"{place} is not JSON") from None
    # most lines have too few brackets to be deep
    if line.count(b"[") + line.count(b"{") > _DEEPEST and _depth(value) > _DEEPEST:
        raise BundleError(f"{place} is nested more than {_DEEPEST} deep")
    return value


def _depth(value: Json) -> int:
    """Return the depth of nested lists and objects, up to one more than is allowed."""
    depth = -1
    level: list[Json] = [[value]]
    while level and depth <= _DEEPEST:
        # most lists have numbers only
        level = [
            each.values() if type(each) is dict else each
            for inner in level
            if not _NESTING.isdisjoint(map(type, inner))
            for each in inner
            if type(each) in _NESTING
        ]
        depth += 1
    return depth


@lru_cache(maxsize=1 << 12)
def check_label(value: str, kind: str) -> str:
    """Raise BundleError for a string with invisible or confusable characters."""
    words = [word for word in re.findall(r"\w+", value) if not word.isascii()]
    if len(value) > MAX_LABEL:
        problem = f"has more than {MAX_LABEL} characters"
    elif not value.isprintable():
        problem = "has characters that cannot be displayed"
    elif _INVISIBLE.search(value):
        problem = "has invisible characters"
    elif unicodedata.normalize("NFC", value) != value or any(
        unicodedata.name(sign, "").startswith(_STYLED) for word in words for sign in word
    ):
        problem = "has compatibility characters"
    elif any(len(_scripts(word)) > 1 or _LIKE_LATIN.fullmatch(word) for word in words):
        problem = "has letters that look like Latin letters"
    else:
        return value
    raise BundleError(f"the {kind} {printable(value, 60)!r} {problem}")


def _scripts(word: str) -> set[str]:
    names = [unicodedata.name(sign, "") for sign in word]
    return {script for script in _SCRIPTS if any(name.startswith(script) for name in names)}


def check_author(name: str) -> str:
    """Reject a name of an author that looks like another: a small alphabet, and single blanks."""
    shown = repr(printable(check_label(name, "author"), 60))
    if not _AUTHOR.fullmatch(name):
        raise BundleError(
            f"the author {shown} may only have Latin letters (A to Z, and accented ones such as "
            "é and ł), digits, spaces and ASCII punctuation"
        )
    if name != " ".join(name.split()):
        raise BundleError(f"the author {shown} has leading, trailing or double spaces")
    return name


@lru_cache(maxsize=1 << 12)
def check_component(name: str, kind: str) -> str:
    """Raise a BundleError for a name that no component can have."""
    if not _COMPONENT.fullmatch(name):
        raise BundleError(f"the {kind} {printable(name, 60)!r} has an invalid name")
    return name


def check_versions(versions: dict[str, str]) -> dict[str, str]:
    """Accept only distributions with versions: both are part of a command for a shell."""
    for name, version in versions.items():
        pattern = _LIBRARY if name == "blas" else _VERSION
        if not _COMPONENT.fullmatch(name) or not pattern.fullmatch(version):
            shown = f"{printable(version, 60)!r} of {printable(name, 60)!r}"
            raise BundleError(f"the version {shown} is invalid")
    return versions


def check_digest(value: str, kind: str) -> str:
    """Raise a BundleError for a value that is not a SHA-256."""
    if not _HEX.fullmatch(value):
        raise BundleError(f"{kind} is not a SHA-256")
    return value
