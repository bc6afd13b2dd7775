"""Loading a dataset: what its source may take."""

import contextlib

import pytest

from kbench import DatasetSource, Ref
from kbench.execution import fetching
from kbench.execution.sandbox import CallOutcome, Sandbox
from kbench.planning.planner import Planner
from kbench.records import Problem
from kbench.registry.registry import build
from kbench.storage.datacache import DataCache


class Recorder:
    """Warm parents of sandboxes that run nothing."""

    @contextlib.contextmanager
    def using(self, plugins):
        yield self

    def run(self, function, payload, **limits):
        self.limits = limits
        return CallOutcome("out_of_memory", error="limit of 1 MiB")


@pytest.mark.parametrize(
    ("allowed_mib", "machine_mib", "memory_mib"),
    [(100, 64_000, 1424), (4096, 10_000, 8000), (100, 0, 1424)],
)
def test_a_source_has_limits_on_time_and_memory(
    plugin_of, monkeypatch, allowed_mib, machine_mib, memory_mib
):
    monkeypatch.setenv("KBENCH_MAX_DATASET_MIB", str(allowed_mib))
    monkeypatch.setattr(fetching, "memory_mib", lambda: machine_mib)
    registry = build([plugin_of(kbench_datasets=[DatasetSource("greedy", load=dict)])])
    recorder = Recorder()
    asked = fetching.Fetching(Planner(registry, DataCache()), recorder, offline=True)
    found = asked.fetch(Ref("greedy", {}))
    assert found == Problem("out_of_memory", "loading failed: limit of 1 MiB")
    assert recorder.limits == {"time_s": fetching.LOAD_TIME_S, "memory_mib": memory_mib}


def test_a_source_that_takes_more_is_ended(monkeypatch):
    monkeypatch.setattr(fetching, "LOAD_MEMORY_MB", 200)
    monkeypatch.setenv("KBENCH_MAX_DATASET_MIB", "1")
    with Sandbox() as sandbox:
        outcome = sandbox.run("builtins:bytearray", 2**30, memory_mib=fetching.load_memory_mib())
    assert outcome.status == "out_of_memory", outcome
