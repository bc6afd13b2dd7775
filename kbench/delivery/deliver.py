"""Finished cells become MLflow runs: what the store lacks is written, no more.

The journal has everything already; a store that is down, or was deleted, gets
it later.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kbench.delivery.as_run import as_run
from kbench.errors import JournalError, PluginError, StoreError
from kbench.planning.planner import PlannedCell, line_key
from kbench.records import ACCURACY, Measure
from kbench.registry.registry import Registry
from kbench.storage.journal import Journal
from kbench.tracking import CellRun, Experiment, Store, View, delivered_without_mlflow


@dataclass(frozen=True)
class Delivered:
    """What a delivery came to.

    Parameters
    ----------
    uri, experiment : str
        Where the runs are; the URI without its password.
    experiment_id : str
        MLflow's number of the experiment; empty where the store did not answer.
    written : int
        Runs that were written this time.
    stored : int
        Runs of the planned cells that the store has now.
    problem : str
        Why some are not there yet; empty where all are.
    """

    uri: str
    experiment: str
    experiment_id: str = ""
    written: int = 0
    stored: int = 0
    problem: str = ""


class Delivery:
    """Brings finished cells to a store from a thread of low priority.

    Parameters
    ----------
    uri : str
        The MLflow store.
    suite : str
        Name of the suite, and of the experiment.
    journal : Journal
        Remembers what was delivered where.
    machine : str
        Identity of this machine.
    measure : Measure, optional
        What the suite compares.
    views : mapping of str to View, optional
        What MLflow's page of the suite can open as.
    """

    def __init__(
        self,
        uri: str,
        suite: str,
        journal: Journal,
        machine: str,
        measure: Measure = ACCURACY,
        views: Mapping[str, View] | None = None,
    ) -> None:
        self._suite, self._journal, self._machine = suite, journal, machine
        self._measure, self._views = measure, views or {}
        self._store = Store(uri)
        self._uri = self._store.uri
        self._queue: queue.SimpleQueue[PlannedCell | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._experiment: Experiment | None = None
        self._offered: set[tuple[str, str]] = set()
        self._written = 0
        self._problem = ""

    def start(self) -> None:
        """Open the store and begin to write what `offer` brings."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="delivery", daemon=True)
            self._thread.start()

    def offer(self, planned: PlannedCell) -> None:
        """Hand over a finished cell."""
        self._offered.add(_identity(planned))
        self._queue.put(planned)

    def has_delivered(self) -> bool:
        """Tell whether this suite was ever delivered to this store."""
        return self._last_delivery() is not None

    def lacking(self, planned: Iterable[PlannedCell]) -> list[PlannedCell]:
        """Return the finished cells that the store does not have as they are now.

        Answers without importing MLflow where the store is a local database;
        otherwise every cell is lacking until MLflow has been asked.
        """
        cells = [each for each in planned if each.is_finished]
        known = self._last_delivery()
        if known is None:
            return cells
        stored = delivered_without_mlflow(self._uri, known["experiment_id"])
        if stored is None:
            return cells
        return [each for each in cells if (each.key, self._run(each).digest) not in stored]

    def finish(self, planned: Collection[PlannedCell]) -> Delivered:
        """Write what is still lacking and say what the store has now."""
        finished = [each for each in planned if each.is_finished]
        # what was known before this run was perhaps never offered
        lacking = self.lacking(each for each in finished if _identity(each) not in self._offered)
        if self._thread is None and not lacking and self._queue.empty():
            known = self._last_delivery() or {}
            return Delivered(
                self._store.name, self._suite, known.get("experiment_id", ""), stored=len(finished)
            )
        for each in lacking:
            self.offer(each)
        self.start()
        assert self._thread is not None
        self._queue.put(None)
        self._thread.join()
        if not self._problem:
            self._tidy(planned)
        with contextlib.suppress(StoreError):
            # whoever moves or replaces a local store finds its file whole
            self._store.close()
        return Delivered(
            self._store.name,
            self._suite,
            self._experiment.id if self._experiment else "",
            written=self._written,
            stored=len(finished) if not self._problem else self._written,
            problem=self._problem,
        )

    def _run(self, planned: PlannedCell) -> CellRun:
        return as_run(planned, self._suite, self._machine, self._measure)

    def _last_delivery(self) -> Mapping[str, Any] | None:
        """Return the newest line that says where this suite was delivered."""
        found = None
        for line in self._journal.read("delivered"):
            if line["store"] == self._uri and line["suite"] == self._suite:
                found = line
        return found

    def _work(self) -> None:
        # Writing must not take the CPU from what is being timed.
        with contextlib.suppress(AttributeError, OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
        try:
            self._experiment = self._store.experiment(self._suite)
            self._store.sweep(self._experiment)
        except (StoreError, JournalError) as error:
            self._problem = str(error)
        else:
            # only what people look at: a store that refuses it may take runs all the same
            with contextlib.suppress(StoreError):
                if self._views:
                    self._store.present(self._experiment, self._views, self._measure.name)
        while (planned := self._queue.get()) is not None:
            if not self._problem:
                try:
                    self._write(planned)
                except (StoreError, JournalError) as error:
                    self._problem = str(error)

    def _write(self, planned: PlannedCell) -> None:
        assert self._experiment is not None
        run = self._run(planned)
        run_id = self._store.log(self._experiment, run)
        self._written += 1
        self._journal.append(
            "delivered",
            store=self._uri,
            suite=self._suite,
            experiment_id=self._experiment.id,
            created=self._experiment.created,
            cell_key=run.key,
            digest=run.digest,
            run_id=run_id,
        )

    def _tidy(self, planned: Collection[PlannedCell]) -> None:
        """Mark runs whose key or data have changed; drop those that waited for data."""
        assert self._experiment is not None
        keys = {each.cell.name: {each.key} for each in planned if each.is_finished}
        lines = {line_key(each.cell) for each in planned if not each.problem}
        data: dict[str, set[str]] = {}
        for each in planned:
            if each.dataset is not None:
                data.setdefault(each.cell.dataset.label, set()).add(each.dataset.checksum)
        try:
            self._store.withdraw(self._experiment, self._machine, lines)
            self._store.supersede(self._experiment, self._machine, keys, data)
        except (StoreError, JournalError) as error:
            self._problem = str(error)


def lock_name(suite: str, store: str) -> str:
    """Name what one process at a time may bring up to date: a suite in a store."""
    return f"{suite} in {Store(store).name}"


def views_of(
    registry: Registry, notice: Callable[[str], None] = lambda text: None
) -> dict[str, View]:
    """Read the views that plugins give for MLflow's pages.

    Parameters
    ----------
    registry : Registry
        Its dashboards whose names end in ``.view.json``.
    notice : callable, optional
        Is told of files that are no views; they are left out.

    Returns
    -------
    dict of str to View
        By their keys.
    """
    found = {}
    for name, file in sorted(registry.all("dashboard").items()):
        if name.endswith(".view.json"):
            try:
                view = View.of(name, file.read_text(encoding="utf-8"))
                found[view.key] = view
            except (PluginError, OSError, UnicodeDecodeError) as error:
                notice(f"a view is left out: {error}")
    return found


def _identity(planned: PlannedCell) -> tuple[str, str]:
    """Tell a run of a suite from every other: two cells of one key differ in their labels."""
    return planned.key, planned.cell.name
