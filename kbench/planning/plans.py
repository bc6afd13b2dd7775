"""Plans in the journal: the cells of each suite, and the stores that they are for.

A result line has its key, but no suite. With the plan next to it, results can be delivered later,
although the suite's file, its data or a plugin are gone, or its code has changed.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kbench.errors import KbenchError
from kbench.planning.cached_results import Validity, recall, recall_added
from kbench.planning.current_state import Present
from kbench.planning.planned import PlannedCell
from kbench.records import Cell, DatasetFacts, Metric, Problem, Ref, Suite, canonical
from kbench.records.canonical import dumps, from_json, read_protocol, to_json, to_json_with_label
from kbench.storage.journal import Journal

_PLAIN = ("key", "n_splits", "equivalence", "family")
"""Fields of a planned cell that are kept as they are."""


_WRONG = (TypeError, KeyError, ValueError, IndexError, AttributeError, KbenchError)
"""Errors of lines of another version."""


class Plans:
    """The plans that a journal keeps."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        # plans that the last call of `cells` skipped: of another version of kbench
        self.unread = 0

    def keep(
        self,
        suite: Suite,
        store: str,
        cells: Sequence[PlannedCell],
        codes: Mapping[str, str] | None = None,
        reopen: bool = False,
    ) -> None:
        """Write the plan of a suite for a store (`Store.name`), unless the journal has it.

        Cells whose data are still to be fetched are left out. `codes` are the fingerprints
        of metrics that are added to results. `reopen` says that the results change,
        although no task is to be computed.
        """
        content = _pack([cell for cell in cells if cell.dataset or cell.problem])
        if not content["cells"]:
            return
        content["metric"] = {"name": suite.compared.name, "better": suite.compared.better}
        if suite.equal_budget:
            content["equal_budget"] = suite.equal_budget
        if codes:
            content["codes"] = dict(codes)
        digest = canonical.digest(content)[:32]
        latest = {line["store"]: line["digest"] for line in self._read_plans(suite.name)}
        if latest.get(store) != digest:
            self._journal.append(
                "plan", suite=suite.name, store=store, digest=digest, content=content
            )
        elif (reopen or any(cell.missing for cell in cells)) and (
            suite.name not in self.list_open(store)
        ):
            self._journal.append("reopened", suite=suite.name, store=store)

    def settle(self, suite: str, store: str) -> None:
        """Record that a store has all finished cells of a suite."""
        if suite in self.list_open(store):
            self._journal.append("settled", suite=suite, store=store)

    def list_open(self, store: str) -> list[str]:
        """Return the suites of which a store may lack results that were computed for it."""
        is_open = {
            line["suite"]: line["kind"] != "settled"
            for line in self._journal.read("plan", "reopened", "settled")
            if line["store"] == store
        }
        return [suite for suite, open_ in is_open.items() if open_]

    def suites(self) -> dict[str, set[str]]:
        """Return for each suite the stores for which it was run, or to which it was delivered."""
        stores: dict[str, set[str]] = {}
        for line in self._journal.read("plan", "delivered"):
            stores.setdefault(line["suite"], set()).add(line["store"])
        return stores

    def cells(self, suite: str, store: str | None = None) -> tuple[list[PlannedCell], Metric]:
        """Return the cells of a suite as last planned, with their results, and its metric.

        The latest cell of each name, over all plans, or over those for one
        store: without cells that a later plan has under other labels, or whose
        dataset has other data there. A cell has the newest valid results, or else the
        newest, and says in `outdated` why these are not valid.
        """
        planned: dict[str, PlannedCell] = {}
        metric = Metric()
        codes: dict[str, str] = {}
        self.unread = 0
        for line in self._read_plans(suite):
            if store not in (None, line["store"]):
                continue
            try:
                new = {cell.cell.name: cell for cell in _unpack(line["content"])}
                metric = Metric(**line["content"]["metric"])
                codes |= dict(line["content"].get("codes", {}))
            except _WRONG:
                # it is unknown what it replaces: nothing earlier is safe to deliver
                self.unread += 1
                planned.clear()
                continue
            keys, current = {cell.key for cell in new.values()}, checksums(new.values())
            planned = {
                name: cell
                for name, cell in planned.items()
                if name in new or not _is_replaced(cell, keys, current)
            }
            planned |= new
        validity = Validity(self._journal, Present(), also_outdated=True)
        recall(planned.values(), validity)
        recall_added(planned.values(), validity, codes)
        validity.present.save()
        return [*planned.values()], metric

    def datasets(self, suite: str) -> dict[str, tuple[Ref, str]]:
        """Return the lines of the datasets that were planned last, with their checksums."""
        datasets: dict[str, tuple[Ref, str]] = {}
        for line in self._read_plans(suite):
            with contextlib.suppress(*_WRONG):
                for each in _unpack(line["content"]):
                    if each.dataset is not None:
                        datasets[each.cell.dataset.label] = each.cell.dataset, each.dataset.checksum
        return datasets

    def budget(self, suite: str, store: str | None = None) -> str:
        """Return the budget that a suite declares, as last planned; empty for none."""
        contents = [x["content"] for x in self._read_plans(suite) if store in (None, x["store"])]
        return str(contents[-1].get("equal_budget", "")) if contents else ""

    def _read_plans(self, suite: str) -> Iterator[dict[str, Any]]:
        return (line for line in self._journal.read("plan") if line["suite"] == suite)


def checksums(cells: Iterable[PlannedCell]) -> dict[str, set[str]]:
    """Return the checksums of the data that are planned under each dataset's label."""
    data: dict[str, set[str]] = {}
    for cell in cells:
        if cell.dataset is not None:
            data.setdefault(cell.cell.dataset.label, set()).add(cell.dataset.checksum)
    return data


def _is_replaced(
    cell: PlannedCell, keys: Collection[str], data: Mapping[str, Collection[str]]
) -> bool:
    """Return whether a later plan's keys and data replace a cell, as in `Store.supersede`."""
    current = data.get(cell.cell.dataset.label)
    has_other_data = cell.dataset and current and cell.dataset.checksum not in current
    return cell.key in keys or bool(has_other_data)


def _pack(cells: Iterable[PlannedCell]) -> dict[str, Any]:
    # not `asdict`, which copies the names of all columns
    datasets = _Numbered(lambda facts: facts and dict(vars(facts)))
    protocols = _Numbered(to_json)
    refs = _Numbered(to_json_with_label)
    rows = []
    for planned in cells:
        cell = planned.cell
        plain = {name: getattr(planned, name) for name in _PLAIN}
        plain["problem"] = planned.problem and dataclasses.astuple(planned.problem)
        rows.append(
            [
                *(refs.number(ref) for ref in (cell.dataset, cell.feature_map, cell.learner)),
                protocols.number(cell.protocol),
                datasets.number(planned.dataset),
                plain,
            ]
        )
    return {
        "refs": refs.values,
        "protocols": protocols.values,
        "datasets": datasets.values,
        "cells": rows,
    }


def _unpack(content: Mapping[str, Any]) -> Iterator[PlannedCell]:
    refs = [from_json(ref) for ref in content["refs"]]
    protocols = list(map(read_protocol, content["protocols"]))
    for dataset, feature_map, learner, protocol, index, plain in content["cells"]:
        facts = content["datasets"][index]
        yield PlannedCell(
            Cell(refs[dataset], refs[feature_map], refs[learner], protocols[protocol]),
            dataset=DatasetFacts.from_json(facts) if facts else None,
            problem=Problem(*plain["problem"]) if plain["problem"] else None,
            **{name: plain[name] for name in _PLAIN},
        )


class _Numbered:
    """Different values in the order of first use; `form` makes plain JSON of a value."""

    def __init__(self, form: Callable[[Any], Any]) -> None:
        self.values: list[Any] = []
        self._form = form
        self._numbers: dict[str, int] = {}
        # by id: cells share their parts, and most need not be written again
        self._seen: dict[int, int] = {}

    def number(self, value: object) -> int:
        if id(value) not in self._seen:
            plain = self._form(value)
            number = self._numbers.setdefault(dumps(plain), len(self.values))
            if number == len(self.values):
                self.values.append(plain)
            self._seen[id(value)] = number
        return self._seen[id(value)]
