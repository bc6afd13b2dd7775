"""Plans in the journal: what each suite was run for, and for which store.

A result line knows its key and nothing of suites. With the plan beside it, what
was computed can be delivered later, although the suite's file, its data or a
plugin are gone, or its code has changed.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kbench.errors import KbenchError
from kbench.planning.planner import PlannedCell, recall
from kbench.records import Cell, DatasetFacts, Measure, Problem, Protocol, Ref, Suite
from kbench.records.canonical import dumps, from_json, to_json
from kbench.storage.journal import Journal

_TOLD = ("key", "n_splits", "equivalence")
"""Fields of a planned cell that are kept as they are."""


class Plans:
    """The plans that a journal keeps.

    Parameters
    ----------
    journal : Journal
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        # plans that the last call of `cells` passed over: of another version of kbench
        self.unread = 0

    def keep(self, suite: Suite, store: str, cells: Sequence[PlannedCell]) -> None:
        """Write down what a suite is about to do for a store, unless that is known.

        Parameters
        ----------
        suite : Suite
        store : str
            URI of the MLflow store.
        cells : sequence of PlannedCell
            Those whose data are still to be fetched are left out.
        """
        content = _packed([each for each in cells if each.dataset or each.problem])
        if not content["cells"]:
            return
        content["measure"] = dataclasses.asdict(suite.measure)
        digest = hashlib.sha256(dumps(content).encode()).hexdigest()[:32]
        latest = {line["store"]: line["digest"] for line in self._of(suite.name)}
        if latest.get(store) != digest:
            self._journal.append(
                "plan", suite=suite.name, store=store, digest=digest, content=content
            )
        elif any(each.missing for each in cells) and suite.name not in self.unsettled(store):
            self._journal.append("reopened", suite=suite.name, store=store)

    def settle(self, suite: str, store: str) -> None:
        """Note that a store has all that is finished of a suite."""
        if suite in self.unsettled(store):
            self._journal.append("settled", suite=suite, store=store)

    def unsettled(self, store: str) -> list[str]:
        """Name the suites of which a store may lack what was computed for it."""
        found: dict[str, bool] = {}
        for line in self._journal.read("plan", "reopened", "settled"):
            if line["store"] == store:
                found[line["suite"]] = line["kind"] != "settled"
        return [suite for suite, open_ in found.items() if open_]

    def suites(self) -> dict[str, set[str]]:
        """Return the stores for which every suite was run, or to which it was delivered."""
        found: dict[str, set[str]] = {}
        for line in self._journal.read("plan", "delivered"):
            found.setdefault(line["suite"], set()).add(line["store"])
        return found

    def cells(self, suite: str, store: str | None = None) -> tuple[list[PlannedCell], Measure]:
        """Return the cells of a suite as last planned, with their results.

        Parameters
        ----------
        suite : str
        store : str, optional
            Only what was planned for this one.

        Returns
        -------
        cells : list of PlannedCell
            The latest of each name, over all plans: but for those that a later
            plan has under other labels, or whose dataset has other data there.
        measure : Measure
            What the suite compares.
        """
        planned: dict[str, PlannedCell] = {}
        measure = Measure()
        self.unread = 0
        for line in self._of(suite):
            if store not in (None, line["store"]):
                continue
            try:
                new = {each.cell.name: each for each in _unpacked(line["content"])}
                measure = Measure(**line["content"]["measure"])
            except (TypeError, KeyError, ValueError, IndexError, AttributeError, KbenchError):
                # what it replaces cannot be told: nothing earlier is safe to deliver
                self.unread += 1
                planned.clear()
                continue
            is_replaced = _replaced_by(new.values())
            planned = {n: each for n, each in planned.items() if n in new or not is_replaced(each)}
            planned |= new
        recall(planned.values(), self._journal)
        return [*planned.values()], measure

    def _of(self, suite: str) -> Iterator[dict[str, Any]]:
        return (line for line in self._journal.read("plan") if line["suite"] == suite)


def _replaced_by(later: Collection[PlannedCell]) -> Callable[[PlannedCell], bool]:
    """Return what tells whether an earlier cell is void: as `Store.supersede` has it."""
    keys = {each.key for each in later}
    data: dict[str, set[str]] = {}
    for each in later:
        if each.dataset is not None:
            data.setdefault(each.cell.dataset.label, set()).add(each.dataset.checksum)

    def is_replaced(earlier: PlannedCell) -> bool:
        if earlier.key in keys:
            return True
        current = data.get(earlier.cell.dataset.label)
        if earlier.dataset is None or current is None:
            return False
        return earlier.dataset.checksum not in current

    return is_replaced


def _packed(cells: Iterable[PlannedCell]) -> dict[str, Any]:
    """Write cells with each dataset, ref and protocol once."""
    datasets = _Numbered(lambda facts: facts and dataclasses.asdict(facts))
    protocols = _Numbered(to_json)
    refs = _Numbered(lambda ref: {**to_json(ref), "label": ref.label})
    rows = []
    for each in cells:
        cell = each.cell
        others = {name: getattr(each, name) for name in _TOLD}
        others["problem"] = each.problem and dataclasses.astuple(each.problem)
        rows.append(
            [
                *(refs.number(ref) for ref in (cell.dataset, cell.feature_map, cell.learner)),
                protocols.number(cell.protocol),
                datasets.number(each.dataset),
                others,
            ]
        )
    return {
        "refs": refs.values,
        "protocols": protocols.values,
        "datasets": datasets.values,
        "cells": rows,
    }


def _unpacked(content: Mapping[str, Any]) -> Iterator[PlannedCell]:
    refs = [
        Ref(made.name, made.params, each["label"])
        for each in content["refs"]
        if (made := from_json({key: each[key] for key in ("name", "params")}))
    ]
    protocols = [
        Protocol(**{name: from_json(value) for name, value in each.items()})
        for each in content["protocols"]
    ]
    for dataset, feature_map, learner, protocol, known, others in content["cells"]:
        facts = content["datasets"][known] or {}
        # earlier versions kept the time of a problem among the facts of its dataset
        since = {"since_ms": facts["since_ms"]} if "since_ms" in facts else {}
        yield PlannedCell(
            Cell(refs[dataset], refs[feature_map], refs[learner], protocols[protocol]),
            dataset=DatasetFacts.from_json(facts) if "checksum" in facts else None,
            problem=Problem(*others["problem"], **since) if others["problem"] else None,
            **{name: others[name] for name in _TOLD},
        )


class _Numbered:
    """Values in the order of first sight, each with its number.

    Parameters
    ----------
    form : callable
        Makes plain JSON of a value.
    """

    def __init__(self, form: Callable[[Any], Any]) -> None:
        self.values: list[Any] = []
        self._form = form
        self._numbers: dict[str, int] = {}
        # cells share their parts: most are written once only
        self._seen: dict[int, int] = {}

    def number(self, value: Any) -> int:
        if id(value) not in self._seen:
            plain = self._form(value)
            number = self._numbers.setdefault(dumps(plain), len(self.values))
            if number == len(self.values):
                self.values.append(plain)
            self._seen[id(value)] = number
        return self._seen[id(value)]
