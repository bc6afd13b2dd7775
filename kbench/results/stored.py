"""Results that are read back: a query for them, and what is found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kbench.records import Measure
from kbench.results.rows import Labels, Row


@dataclass(frozen=True)
class Query:
    """Which results are wanted.

    Parameters
    ----------
    suite : str
        Its name, or the path of its file.
    given : mapping of str to object
        Options of features, by name, such as the store.
    machine : str, optional
        Id of the machine that computed them, or "all". By default this machine, else the
        machine that wrote last.
    superseded : bool, default False
        Also results of earlier code, data or labels.
    outdated : bool, default False
        Also results that are out of date: their rows say so.
    file : str
        A file to read instead of a location; empty for none.
    notice : callable
        Called with a text that names the machine, where there is a choice.
    """

    suite: str
    given: Mapping[str, Any] = field(default_factory=dict)
    machine: str | None = None
    superseded: bool = False
    outdated: bool = False
    file: str = ""
    notice: Callable[[str], None] = lambda text: None


@dataclass(frozen=True)
class StoredResults:
    """Results of a suite: at least one row, ordered by dataset.

    Parameters
    ----------
    rows : list of Row
    name : str
        The name of the suite there.
    measure : Measure
        What the suite compares.
    budget : str
        The equal budget that the suite claims.
    source : str
        Where they are, without credentials.
    links : mapping
        The address of a page for a row, by its labels.
    left_out : str
        How many cells are out of date and left out, and why; empty for none.
    is_imported : bool
        Others computed them: they have no times.
    """

    rows: list[Row]
    name: str
    measure: Measure
    budget: str = ""
    source: str = ""
    links: Mapping[Labels, str] = field(default_factory=dict)
    left_out: str = ""
    is_imported: bool = False
