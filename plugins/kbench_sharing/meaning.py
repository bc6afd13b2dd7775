"""What kbench itself says of a cell of others: its method's equivalence and family, its splits.

A cell's key has its components, parameters and protocol, but not these. Its author could name
the equivalence of a rival, whose place it would take, or plan the one split that is good. So
what an author says of them is not used. Only built-in components have an equivalence here:
reading results of others runs no code of plugins.
"""

from __future__ import annotations

import tomllib
from functools import cache

from kbench.errors import KbenchError
from kbench.features import HOST, DataCache, Planner, Registry, build, how_many_splits, installed
from kbench.records import Cell, Limits, Protocol, Ref, Search, family_of


def meaning_of(cell: Cell) -> tuple[str, str]:
    """Return equivalence and family of a cell; both are empty where a component is not built in."""
    registry = _built_in()
    try:
        family = family_of(
            registry.get("feature map", cell.feature_map.name),
            registry.get("learner", cell.learner.name),
        )
        # spans of nested components are spans of all combinations, which may be too many
        if not _is_plain(cell.feature_map):
            return "", family
        return _planner().equivalence(cell), family
    except (KbenchError, TypeError, ValueError, KeyError, AttributeError, ArithmeticError):
        return "", ""


def planned_splits(suite: str, protocol: Protocol) -> int:
    """Return the splits that a built-in suite asks for, or else the protocol.

    >>> planned_splits("uci", Protocol()), planned_splits("balcan-uci", Protocol(splits="holdout"))
    (5, 30)
    """
    return how_many_splits(protocol, Limits(n_splits=_n_splits(suite)))


def _is_plain(ref: Ref) -> bool:
    values = (v.values if isinstance(v, Search) else (v,) for v in ref.params.values())
    plain = (str, int, float, bool, type(None))
    return all(isinstance(value, plain) for given in values for value in given)


@cache
def _built_in() -> Registry:
    return build([plugin for plugin in installed() if plugin.distribution == HOST])


@cache
def _planner() -> Planner:
    # it knows the spans of all maps that it was asked for; no data are looked up
    return Planner(_built_in(), DataCache())


@cache
def _n_splits(suite: str) -> int | None:
    files = _built_in().all("suite")
    if suite not in files:
        return None
    limits = tomllib.loads(files[suite].read_text(encoding="utf-8")).get("limits", {})
    n_splits = limits.get("n_splits")
    return n_splits if isinstance(n_splits, int) else None
