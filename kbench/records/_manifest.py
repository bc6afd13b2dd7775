"""What a result was made from."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from kbench.records.canonical import digest

# Stands for a top-level module of a distribution: its version and files identify it.
INSTALLED = "installed"

# Stands for a package without ``__init__.py``.
NAMESPACE = "namespace"

Values = Mapping[str, str | None]


@dataclass(frozen=True)
class Manifest:
    """What a result was made from: a result is valid while all of it is as it was.

    Parameters
    ----------
    modules : mapping
        For each module, the digest of its syntax tree, `INSTALLED` or `NAMESPACE`; None for a
        module that was not found.
    files : mapping
        Digest of the content of each file that was read, and of the names in each folder that was
        listed; None for what was not there. Names are ``"package:relative/path"`` or absolute
        paths.
    variables : mapping
        Digest of the value of each environment variable; None if it was not set.
    distributions : mapping
        Version of each distribution, and a digest of its files on the machine that computed the
        result, separated by a space; ``python`` is one of them.

    Examples
    --------
    >>> before = Manifest({"maps": "1"}, distributions={"numpy": "2.1"})
    >>> after = Manifest({"maps": "2"}, distributions={"numpy": "2.2"})
    >>> before.differences(after)
    ['numpy 2.2 instead of 2.1', 'maps changed']
    """

    modules: Values = field(default_factory=dict)
    files: Values = field(default_factory=dict)
    variables: Values = field(default_factory=dict)
    distributions: Values = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """Its digest, 32 hex digits."""
        return digest(self.to_json())[:32]

    def to_json(self) -> dict[str, dict[str, str | None]]:
        """Return plain JSON values."""
        return {part: dict(values) for part in _PARTS if (values := vars(self)[part])}

    @classmethod
    def from_json(cls, content: Any) -> Self:
        """Read what `to_json` returned; ValueError is raised for anything else."""
        try:
            parts = {str(part): dict(values) for part, values in content.items()}
            for values in parts.values():
                if not all(isinstance(v, str | None) for v in (*values, *values.values())):
                    raise TypeError("a value is not a string")
            return cls(**parts)
        except (TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"not a manifest: {error}") from None

    def __or__(self, other: Self) -> Self:
        """Return the union; what differs between the two is never valid."""
        mine, theirs = vars(self), vars(other)
        return type(self)(**{part: _union(mine[part], theirs[part]) for part in _PARTS})

    def across_hosts(self) -> Self:
        """Return the same without digests of distributions' files, which hosts may build again."""
        return replace(
            self, distributions={name: _version(v) for name, v in self.distributions.items()}
        )

    def differences(self, now: Self) -> list[str]:
        """Name what is otherwise in another manifest, versions first."""
        differences = []
        for part in reversed(_PARTS):
            mine, theirs = vars(self)[part], vars(now)[part]
            for name in sorted(mine.keys() | theirs.keys()):
                before, after = mine.get(name), theirs.get(name)
                if before != after:
                    differences.append(_describe(part, name, before, after))
        return differences


_PARTS = ("modules", "files", "variables", "distributions")


def _union(mine: Values, theirs: Values) -> dict[str, str | None]:
    both = {**mine, **theirs}
    return both | {name: "" for name in mine.keys() & theirs.keys() if mine[name] != theirs[name]}


def _version(value: str | None) -> str | None:
    return None if value is None else value.partition(" ")[0]


# What is said of a name that was not there, is not there, and of one that is another.
_SAY = {
    "modules": ("{} was not installed", "{} is not there", "{} changed"),
    "files": ("the file {} was not there", "the file {} is not there", "the file {} changed"),
    "variables": ("the environment variable {} has another value",) * 3,
}


def _describe(part: str, name: str, before: str | None, after: str | None) -> str:
    if part != "distributions":
        return _SAY[part][0 if before is None else 1 if after is None else 2].format(name)
    old, new = _version(before), _version(after)
    if new is None or old is None:
        return f"{name} {'was' if old is None else 'is'} not installed"
    return f"the files of {name} {new} changed" if old == new else f"{name} {new} instead of {old}"
