"""What a run computes with: warm processes, this machine, and the sources of its data."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from kbench.errors import SuiteError
from kbench.execution.engine import Terms, ThisMachine
from kbench.execution.fetching import Fetching, is_offline
from kbench.execution.sandbox import Sandbox
from kbench.execution.warm_parents import WarmParents, make_preload
from kbench.planning.component_refs import LISTS
from kbench.planning.planned import PlannedCell
from kbench.planning.suite_file import find, read
from kbench.planning.suite_plan import Options, SuitePlan
from kbench.records import Suite, TaskType
from kbench.records.canonical import dumps, to_json
from kbench.registry.installed import HOST
from kbench.storage.files import Holder, describe_holder


class Session:
    """Holds processes and the machine for a run of a plan.

    `notice` is called with what the user waits for. A feature may have started the ``parents``.
    """

    def __init__(self, plan: SuitePlan, options: Options, notice: Callable[[str], None]) -> None:
        self._plan, self.cache, self._notice = plan, plan.cache, notice
        self.offline = options.offline or is_offline()
        self.parents: WarmParents = options.given.get("parents") or WarmParents()
        self.parents.preload.update(make_preload(plan.suite, plan.registry))
        self.machine = ThisMachine(options.exclusive, notice)
        self.fetching = Fetching(plan.planner, self.parents, self.offline)
        self._checked: set[TaskType | None] = set()

    def expand(self) -> None:
        """Replace entries of the suite that stand for several datasets by these datasets."""
        refs = self._plan.suite.datasets
        self._plan.expand({ref.label: self.fetching.expand(ref) for ref in refs})

    def check_parameters(self, cells: Iterable[PlannedCell] = (), *, light: bool = False) -> None:
        """Check the parameters of all components, in a separate process; again for a new task.

        Components of finished cells are right. A `light` process is not for tasks too, and is not
        started for components that tests of kbench check.
        Raises SuiteError if a parameter does not exist, or has an invalid value.
        """
        if (task := self._plan.task) in self._checked:
            return
        right = (self._list_tested() if light else set()) | {
            dumps(to_json(ref))
            for planned in cells
            for ref in (planned.cell.dataset, planned.cell.feature_map, planned.cell.learner)
            if planned.done or (ref is planned.cell.dataset and planned.dataset)
        }
        components = {
            kind: [each for each in placed if dumps(each[1]) not in right]
            for kind, placed in list_components(self._plan.suite).items()
        }
        if any(components.values()):
            parents = self.parents.light() if light else self.parents
            memory_mib = self._plan.suite.limits.task_memory_mib
            with parents.using(parents.every) as sandbox:
                check_components(sandbox, components, memory_mib, task)
            if light:
                parents.close()
        self._checked |= {None, task}

    def _list_tested(self) -> set[str]:
        """Return the components, as JSON, in the file of a suite that comes with kbench.

        Its tests check them; one whose packages are not installed is left out.
        """
        name, registry = self._plan.suite.name, self._plan.registry
        if name not in registry.all("suite") or registry.owner("suite", name).distribution != HOST:
            return set()
        placed = list_components(read(*find(name, registry), registry))
        return {
            dumps(ref)
            for kind in LISTS.values()
            for _, ref in placed[kind]
            if all(map(self._plan.planner.present.module, registry.get(kind, ref["name"]).depends))
        }

    def terms(self, until: float) -> Terms:
        """Return what must hold on every host that computes tasks of the plan, until a time."""
        suite = self._plan.suite
        preload = make_preload(suite, self._plan.registry)
        return Terms(preload, list_components(suite), suite.limits, self.offline, until)

    def hold_lock(self, location: str) -> AbstractContextManager[None]:
        """Hold the lock of the suite: one process at a time updates it at a location."""

        def waiting(holder: Holder | None) -> None:
            self._notice(
                f"waiting for {describe_holder(holder)}, which runs this suite with this store"
            )

        return self._plan.journal.lock(lock_name(self._plan.suite.name, location), waiting)

    def close(self) -> None:
        """End the processes and release the machine."""
        self.parents.close()
        self.machine.release()


def lock_name(suite: str, location: str) -> str:
    """Return the name of the lock of a suite at a location."""
    return f"{suite} in {location}"


CHECK_TIME_S = 120.0
TRIALS_TIME_S = 30.0

Placed = Mapping[str, Sequence[Any]]
"""Components as JSON with their places in the suite, by kind."""


def list_components(suite: Suite) -> Placed:
    """Return every component of a suite with its place, by kind, as JSON."""
    places = [f"block[{n}]." for n in range(len(suite.blocks))] if suite.blocks[1:] else [""]
    return {
        kind: [
            (f"{at}{key}[{i}]", to_json(ref))
            for at, block in zip(places, suite.blocks, strict=True)
            for i, ref in enumerate(getattr(block, key))
        ]
        for key, kind in LISTS.items()
    }


def parameter_mistakes(
    sandbox: Sandbox, components: Placed, task: TaskType | None = None
) -> list[str]:
    """Return the errors in the parameters of components, checked in a sandbox.

    The `task` of the datasets decides the parameters of learners, if it is given.
    """
    payload = {"components": components, "task": task}
    outcome = sandbox.run("kbench.execution.task_functions:check", payload, time_s=CHECK_TIME_S)
    if outcome.status != "ok":
        return [f"the components cannot be checked: {outcome.error}"]
    return list(outcome.value)


def check_components(
    sandbox: Sandbox, components: Placed, memory_mib: float, task: TaskType | None = None
) -> None:
    """Raise a SuiteError with all errors in the parameters of components.

    If there are none, trial fits with a limit of `memory_mib` detect invalid values.
    """
    if not (problems := parameter_mistakes(sandbox, components, task)):
        trials = sandbox.run(
            "kbench.execution.task_functions:check_values",
            {"components": components},
            time_s=TRIALS_TIME_S,
            memory_mib=memory_mib,
        )
        # where a trial does harm, the tasks report which and why
        problems = trials.value if trials.status == "ok" else []
    if problems:
        raise SuiteError(*dict.fromkeys(problems))
