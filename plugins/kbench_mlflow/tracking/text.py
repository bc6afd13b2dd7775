"""Names and values of any kind, put into MLflow's alphabet and lengths.

MLflow cuts longer values at their end, silently, and refuses other names.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections import Counter
from collections.abc import Collection, Mapping

PARAM_CHARS, TAG_CHARS, NAME_CHARS, KEY_CHARS, DIGEST_CHARS = 6000, 8000, 500, 250, 36


def sha(text: str) -> str:
    """Return the SHA-256 of `text` in hex digits."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def printable(value: object) -> str:
    """Return text that every database and JSON can hold."""
    return re.sub("[\x00\ud800-\udfff]", "\ufffd", str(value))


def cut(value: object, limit: int) -> str:
    """Return text of at most `limit` characters; the end matters more than the beginning."""
    text = printable(value)
    if len(text) <= limit:
        return text
    mark = f" [... {len(text) - limit} or more characters cut ...] "
    head = (limit - len(mark)) // 8
    return text[:head] + mark + text[len(text) - (limit - len(mark) - head) :]


def cut_all(values: Mapping[str, str], limit: int) -> dict[str, str]:
    """Return `values` under allowed names, each of at most `limit` characters."""
    names = allowed(values)
    return {names[name]: cut(value, limit) for name, value in values.items()}


def allowed(names: Collection[str]) -> dict[str, str]:
    """Map names into MLflow's alphabet, distinct ones staying distinct.

    >>> allowed(["a b", "ä", "../x"])
    {'a b': 'a b', 'ä': '_', '../x': '_/x'}
    >>> len(set(allowed(["ä", "ö", "_"]).values()))
    3
    """
    clean = {}
    for name in names:
        parts = re.sub(r"[^A-Za-z0-9_.\-/ :]", "_", name).split("/")
        kept = "/".join("_" if part in (".", "..") else part for part in parts if part)
        clean[name] = kept[:KEY_CHARS] or "_"
    counts = Counter(clean.values())
    return {
        old: new if counts[new] == 1 or new == old else f"{new[: KEY_CHARS - 7]}_{sha(old)[:6]}"
        for old, new in clean.items()
    }


def inside(path: str) -> str:
    """Return an artifact's path, kept inside its run."""
    parts = [part for part in posixpath.normpath(printable(path)).split("/") if part]
    return "/".join(part for part in parts if part not in (".", "..")) or "artifact"
