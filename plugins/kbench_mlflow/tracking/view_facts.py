"""What views of MLflow's pages know of an experiment, and how it is put into their states."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kbench.records import ACCURACY, Measure
from kbench_mlflow.tracking.method_runs import on_dataset
from kbench_mlflow.tracking.stored import CHOSEN, Stored

REPEATED = ("on_dataset", "search", "chosen")
"""The texts in braces that stand for several values."""


@dataclass(frozen=True)
class Facts:
    """What a view can show.

    Parameters
    ----------
    measure : Measure
        What the suite compares.
    plain : str
        The best known measure of its task.
    on_dataset : tuple of str
        The metrics of `measure` on each dataset.
    searches : tuple of tuple of str
        For each set of parameters that some cell has searched, the metrics of their
        chosen values.
    """

    measure: Measure = ACCURACY
    plain: str = "accuracy"
    on_dataset: tuple[str, ...] = ()
    searches: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(cls, runs: Iterable[Stored], measure: Measure, plain: str) -> Facts:
        """Return the facts of an experiment's runs of cells."""
        shown = [run for run in runs if run.complete and not run.superseded]
        ok = [run for run in shown if run.status == "FINISHED"]
        datasets = sorted({run.params.get("dataset", "") for run in ok} - {""})
        searches = {
            tuple(sorted(name for name in run.means if name.startswith(CHOSEN))) for run in ok
        }
        return cls(
            measure,
            plain,
            tuple(on_dataset(measure.name, dataset) for dataset in datasets),
            # the largest sets first: they are the searches of maps with parameters
            tuple(sorted(searches - {()}, key=lambda names: (-len(names), names))),
        )

    @property
    def has_results(self) -> bool:
        """Whether some cell is finished."""
        return bool(self.on_dataset)

    @property
    def chosen(self) -> tuple[str, ...]:
        """The metrics of all chosen values."""
        return tuple(dict.fromkeys(name for names in self.searches for name in names))


def filled(value: Any, facts: Facts, bound: Mapping[str, str] | None = None) -> Any:
    """Put facts into every text; duplicates that this makes in a list are removed.

    `bound` are the texts in braces that have one value here.

    >>> filled(["{measure}", "{plain}", "{chosen}"], Facts(searches=(("a", "b"),)))
    ['accuracy', 'a', 'b']
    >>> filled({"w.{on_dataset}": 9}, Facts(on_dataset=("iris: accuracy", "wine: accuracy")))
    {'w.iris: accuracy': 9, 'w.wine: accuracy': 9}
    """
    bound = bound or {}
    if value == "{lower_is_better}":
        return facts.measure.better == "lower"
    if isinstance(value, str):
        texts = {"measure": facts.measure.name, "plain": facts.plain, **bound}
        # in one pass: what is put in is never read again
        return re.sub(r"\{(\w+)\}", lambda found: texts.get(found[1], found[0]), value)
    if isinstance(value, Mapping):
        return {
            filled(name, *each): filled(inner, *each)
            for name, inner in value.items()
            for each in _repetitions(name, facts, bound)
        }
    if isinstance(value, list):
        items = [filled(item, *each) for item in value for each in _repetitions(item, facts, bound)]
        return [item for i, item in enumerate(items) if item not in items[:i]]
    return value


def _repetitions(
    item: Any, facts: Facts, bound: Mapping[str, str]
) -> Iterator[tuple[Facts, Mapping[str, str]]]:
    """Yield the facts and values of each copy of an item; nothing where it has none."""
    text = json.dumps(item)
    if "{on_dataset}" in text and "on_dataset" not in bound:
        for name in facts.on_dataset:
            yield facts, {**bound, "on_dataset": name}
    elif "{search}" in text and "search" not in bound:
        for number, names in enumerate(facts.searches, 1):
            yield replace(facts, searches=(names,)), {**bound, "search": str(number)}
    elif isinstance(item, str) and "{chosen}" in item:
        for name in facts.chosen:
            yield facts, {**bound, "chosen": name}
    else:
        yield facts, bound
