"""What the progress of a run says of its tasks."""

from types import SimpleNamespace

from kbench.api import progress
from kbench.records import ACCURACY


def test_tasks_that_a_strategy_adds_are_in_the_total(monkeypatch, capsys):
    row = SimpleNamespace(status="ok", value=lambda name: 0.9)
    monkeypatch.setattr(progress, "make_row", lambda cell, metric: row)
    cell = SimpleNamespace(missing=[], dataset=None, cell=SimpleNamespace(name="a on b"))
    log = progress.Log()
    log.on_planned([], 1, ACCURACY)
    for _ in range(2):
        log.on_finished(cell, SimpleNamespace(is_ok=True))
    assert "[1/1 " in (err := capsys.readouterr().err)
    assert "[2/2 " in err
