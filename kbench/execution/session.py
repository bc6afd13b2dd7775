"""What a run computes with: warm processes, this machine, and the sources of its data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kbench.execution import components
from kbench.execution.engine import Terms, ThisMachine
from kbench.execution.fetching import Fetching, is_offline
from kbench.execution.warm_parents import WarmParents, preload_of
from kbench.planning.suite_plan import SuitePlan
from kbench.records import DatasetFacts, Problem, Ref, TaskType
from kbench.storage.locks import Holder, named


class Session:
    """Holds processes and the machine for a run.

    Parameters
    ----------
    plan : SuitePlan
    offline, exclusive : bool
        Ask no server for data; let no other kbench compute on this machine meanwhile.
    notice : callable
        Called with what the user has to wait for.
    """

    def __init__(
        self,
        plan: SuitePlan,
        offline: bool,
        exclusive: bool,
        notice: Callable[[str], None],
    ) -> None:
        self._plan, self.cache, self._notice = plan, plan.cache, notice
        self.offline = offline or is_offline()
        self.parents = WarmParents(preload_of(plan.suite, plan.registry))
        self.machine = ThisMachine(exclusive, notice)
        self._fetching = Fetching(
            plan.registry, plan.planner, self.cache, self.parents, self.offline
        )
        self._checked: set[TaskType | None] = set()

    def expand(self) -> None:
        """Replace lines of the suite that mean many datasets by these datasets."""
        refs = self._plan.suite.datasets
        self._plan.expand({ref.label: self._fetching.expanded(ref) for ref in refs})

    def fetch(self, ref: Ref) -> DatasetFacts | Problem:
        """Load a dataset into the cache; return its facts, or why it cannot be had."""
        return self._fetching.fetch(ref)

    def check_parameters(self) -> None:
        """Check the parameters of all components, in a separate process.

        Those of learners are checked for the task, and once more if it was not known before.

        SuiteError is raised where a parameter does not exist, or has a value that is refused.
        """
        task = self._plan.task
        if task not in self._checked:
            placed, limits = components.placed(self._plan.suite), self._plan.suite.limits
            with self.parents.using(self.parents.every) as sandbox:
                components.check(sandbox, placed, limits.memory_mb, task)
            self._checked |= {None, task}

    def terms(self, until: float) -> Terms:
        """Return what must hold on every host that computes tasks of the plan, until a time."""
        suite = self._plan.suite
        preload = preload_of(suite, self._plan.registry)
        return Terms(preload, components.placed(suite), suite.limits, self.offline, until)

    @contextmanager
    def alone(self, location: str) -> Iterator[None]:
        """Hold the lock of the suite: one process at a time updates it at a location."""

        def waiting(holder: Holder | None) -> None:
            self._notice(f"waiting for {named(holder)}, which runs this suite with this store")

        with self._plan.journal.lock(lock_name(self._plan.suite.name, location), waiting):
            yield

    def close(self) -> None:
        """End the processes and release the machine."""
        self.parents.close()
        self.machine.release()


def lock_name(suite: str, location: str) -> str:
    """Return the name of the lock of a suite at a location."""
    return f"{suite} in {location}"
