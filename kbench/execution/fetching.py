"""Datasets come into the cache: each loaded in a process of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from kbench.execution.sandbox import Sandbox
from kbench.planning.planner import Planner
from kbench.records import DatasetFacts, Problem, Ref
from kbench.records.canonical import from_json, to_json
from kbench.registry.registry import Registry
from kbench.storage.datacache import DataCache

LOAD_TIME_S = 900.0
"""Wall clock for fetching one dataset; sources have shorter time-outs of their own."""

OFFLINE = "KBENCH_OFFLINE"


def is_offline() -> bool:
    """Tell whether ``KBENCH_OFFLINE`` is set to anything but 0 or nothing."""
    return os.environ.get(OFFLINE, "").strip().lower() not in ("", "0", "false", "no")


class Fetching:
    """Fetches datasets one after the other, asking no server that does not answer twice.

    Parameters
    ----------
    registry : Registry
    planner : Planner
    data_cache : DataCache
    sandbox : Sandbox
        In which the sources run.
    offline : bool
        Ask no server.
    """

    def __init__(
        self,
        registry: Registry,
        planner: Planner,
        data_cache: DataCache,
        sandbox: Sandbox,
        offline: bool,
    ) -> None:
        self._registry, self._planner, self._cache = registry, planner, data_cache
        self._sandbox, self._offline = sandbox, offline
        self._unreachable: set[str] = set()

    def expanded(self, ref: Ref) -> list[Ref]:
        """Return the datasets that a line means; itself where that cannot be told."""
        source = self._registry.get("dataset", ref.name)
        if source.expand is None or self._planner.dataset(ref) is not None:
            return [ref]
        outcome = self._run("expand", ref)
        refs = outcome.value.get("refs") if outcome.status == "ok" else None
        if not refs:
            return [ref]
        plain = [(from_json({k: each[k] for k in ("name", "params")}), each) for each in refs]
        return [Ref(made.name, made.params, each["label"]) for made, each in plain]

    def fetch(self, ref: Ref) -> DatasetFacts | Problem:
        """Load a dataset into the cache.

        Returns
        -------
        DatasetFacts or Problem
            What the cache tells of it, or why it cannot be had.
        """
        outcome = self._run("load", ref)
        if outcome.status != "ok":
            return Problem(outcome.status, f"loading failed: {outcome.error}")
        reason = outcome.value.get("unavailable", "the data cache does not keep it")
        return self._planner.dataset(ref) or Problem("unavailable", reason)

    def dataset(self, ref: Ref) -> DatasetFacts | Problem:
        """Return what the cache tells of a dataset, which is loaded if need be."""
        return self._planner.dataset(ref) or self.fetch(ref)

    def _run(self, what: str, ref: Ref) -> Any:
        payload = {
            "dataset": to_json(ref),
            "code": self._planner.source_code(ref),
            "cache": str(self._cache.root),
            # one time-out is enough to know that a server does not answer
            "offline": self._offline or ref.name in self._unreachable,
        }
        outcome = self._sandbox.run(
            f"kbench.execution.entry_points:{what}", payload, time_s=LOAD_TIME_S
        )
        if outcome.status == "ok" and outcome.value.get("unreachable"):
            self._unreachable.add(ref.name)
        return outcome


@contextmanager
def opened(registry: Registry, many: bool = False) -> Iterator[Fetching]:
    """Open what fetches datasets outside of a run.

    Parameters
    ----------
    registry : Registry
    many : bool, default False
        Load plugins and scikit-learn once, for all of the datasets.
    """
    cache = DataCache()
    preload = ("kbench.execution.entry_points:warm",) if many else ()
    with closing(Sandbox(preload=preload)) as sandbox:  # starts with the first call
        planner = Planner(registry, cache)
        yield Fetching(registry, planner, cache, sandbox, offline=is_offline())
