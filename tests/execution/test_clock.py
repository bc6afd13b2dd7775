"""A clock that is set back while a task runs changes none of its times."""

from types import SimpleNamespace

from kbench.errors import DatasetError
from kbench.execution import request
from kbench.planning.current_state import Present
from kbench.records import Limits


def test_a_task_does_not_end_before_it_starts(monkeypatch):
    times = iter([2_000_000, 1_000_000])
    monkeypatch.setattr(request, "now_ms", lambda: next(times))

    class NoData:
        cache = SimpleNamespace(root="cache")

        def get(self, task):
            raise DatasetError("too few rows")

    protocol = SimpleNamespace(device="cpu")
    cell = SimpleNamespace(feature_map=None, learner=None, protocol=protocol)
    task = SimpleNamespace(cell=cell, checksum="", kinds=(), split_index=0)
    asked = SimpleNamespace(task=task, slot=0, limits=Limits())
    answer = request.compute(asked, None, NoData(), None, 1, Present())
    assert answer.outcome.error == "too few rows"
    assert 0 <= answer.ended_ms - answer.started_ms < 10_000
