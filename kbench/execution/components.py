"""The components of a suite and checks of their parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kbench.errors import SuiteError
from kbench.execution.sandbox import Sandbox
from kbench.records import Suite, TaskType
from kbench.records.canonical import to_json

CHECK_TIME_S = 120.0
TRIALS_TIME_S = 30.0

Placed = Mapping[str, Sequence[Any]]
"""Components as JSON with their places in the suite, by kind."""


def placed(suite: Suite) -> Placed:
    """Return every component of a suite with its place, by kind, as JSON."""
    places: dict[str, list[Any]] = {"dataset": [], "feature map": [], "learner": []}
    for number, block in enumerate(suite.blocks):
        at = f"block[{number}]." if len(suite.blocks) > 1 else ""
        for kind, key, refs in (
            ("dataset", "datasets", block.datasets),
            ("feature map", "feature_maps", block.feature_maps),
            ("learner", "learners", block.learners),
        ):
            places[kind] += [(f"{at}{key}[{i}]", to_json(ref)) for i, ref in enumerate(refs)]
    return places


def parameter_mistakes(
    sandbox: Sandbox, components: Placed, task: TaskType | None = None
) -> list[str]:
    """Return the mistakes in the parameters of components, checked in a sandbox.

    The `task` of the datasets decides the parameters of learners, where it is known.
    """
    payload = {"components": components, "task": task}
    outcome = sandbox.run("kbench.execution.entry_points:check", payload, time_s=CHECK_TIME_S)
    if outcome.status != "ok":
        return [f"the components cannot be checked: {outcome.error}"]
    return list(outcome.value)


def check(
    sandbox: Sandbox, components: Placed, memory_mb: float, task: TaskType | None = None
) -> None:
    """Raise a SuiteError with all mistakes in the parameters of components.

    Where there are none, trial fits with a limit of `memory_mb` show refused values.
    """
    problems = parameter_mistakes(sandbox, components, task)
    if not problems:
        trials = sandbox.run(
            "kbench.execution.entry_points:check_values",
            {"components": components},
            time_s=TRIALS_TIME_S,
            memory_mb=memory_mb,
        )
        # where a trial does harm, the tasks report which and why
        problems = trials.value if trials.status == "ok" else []
    if problems:
        raise SuiteError(*dict.fromkeys(problems))
