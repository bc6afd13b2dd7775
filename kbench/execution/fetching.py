"""Fetching of datasets into the cache, each loaded in a sandbox."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager

from kbench.execution.sandbox import CallOutcome
from kbench.execution.warm_parents import WARM, Preload, WarmParents, variables_of_sources
from kbench.machine import memory_mib
from kbench.planning.planner import Planner
from kbench.records import DatasetFacts, Mistake, Problem, Ref
from kbench.records.canonical import from_json, to_json
from kbench.registry.registry import Registry
from kbench.storage.datacache import DataCache
from kbench.tables.limits import max_bytes

LOAD_TIME_S = 900.0
"""Wall clock for fetching one dataset; sources have shorter time-outs."""

LOAD_MEMORY_MB = 1024
"""Memory for fetching one dataset, in addition to `LOAD_COPIES` of the largest one."""

LOAD_COPIES = 4
"""Copies of a dataset that its source may have in memory, as text and as numbers."""

MEMORY_SHARE = 0.8
"""Share of the machine's memory that fetching one dataset may take."""


def load_memory_mib() -> float:
    """Return the memory limit of a call that loads one dataset.

    A source checks sizes before it reads; this is for those that do not, and for
    files that lie about their size.
    """
    wanted = LOAD_MEMORY_MB + LOAD_COPIES * max_bytes() / 2**20
    limit = MEMORY_SHARE * memory_mib()
    return min(wanted, limit) if limit else wanted


def is_offline() -> bool:
    """Whether ``KBENCH_OFFLINE`` is set, and not to 0, false or no."""
    return os.environ.get("KBENCH_OFFLINE", "").strip().lower() not in ("", "0", "false", "no")


class Fetching:
    """Fetches datasets one after the other; each source runs in a sandbox.

    A server that does not answer is not asked again; none is asked where `offline`.
    """

    def __init__(self, planner: Planner, parents: WarmParents, offline: bool) -> None:
        self._planner, self._parents, self._offline = planner, parents, offline
        self._unreachable: set[str] = set()

    def expand(self, ref: Ref) -> list[Ref]:
        """Return the datasets that an entry of a suite stands for; itself if unknown."""
        source = self._planner.registry.get("dataset", ref.name)
        if source.expand is None or source.expanded_by not in ("", *ref.params):
            return [ref]
        outcome = self._run("expand", ref)
        refs = outcome.value.get("refs") if outcome.status == "ok" else None
        return [from_json(line) for line in refs or ()] or [ref]

    def fetch(self, ref: Ref) -> DatasetFacts | Problem:
        """Load a dataset into the cache; return its facts, or the problem with it."""
        outcome = self._run("load", ref)
        if outcome.status != "ok":
            return Problem(outcome.status, f"loading failed: {outcome.error}")
        if (manifest := self._planner.present.build(outcome.recorded)) is not None:
            self._planner.cache.keep_manifest(*self._planner.origin(ref), manifest)
        reason = outcome.value.get("unavailable", "the data cache does not keep it")
        if outcome.value.get("mistake"):
            return Mistake("error", reason)
        return self._planner.dataset(ref) or Problem("unavailable", reason)

    def dataset(self, ref: Ref) -> DatasetFacts | Problem:
        """Return the facts of a dataset from the cache, or fetch it."""
        return self._planner.dataset(ref) or self.fetch(ref)

    def _run(self, function: str, ref: Ref) -> CallOutcome:
        _, _, code = self._planner.origin(ref)
        payload = {
            "dataset": to_json(ref),
            "code": code,
            "cache": str(self._planner.cache.root),
            # one time-out shows that a server does not answer
            "offline": self._offline or ref.name in self._unreachable,
        }
        with self._parents.using(self._planner.registry.list_plugins(("dataset", ref))) as sandbox:
            outcome = sandbox.run(
                f"kbench.execution.task_functions:{function}",
                payload,
                time_s=LOAD_TIME_S,
                memory_mib=load_memory_mib(),
            )
        if outcome.status == "ok" and outcome.value.get("unreachable"):
            self._unreachable.add(ref.name)
        return outcome


@contextmanager
def open_fetching(registry: Registry, many: bool = False) -> Iterator[Fetching]:
    """Open a `Fetching` outside of a run.

    For `many` datasets, plugins and scikit-learn are loaded once for all of them.
    """
    preload: Preload = {**variables_of_sources(registry), **({(): WARM} if many else {})}
    with closing(WarmParents(preload)) as parents:  # starts with the first call
        yield Fetching(Planner(registry, DataCache()), parents, offline=is_offline())
