"""Delivery of finished cells as MLflow runs: only runs that the store lacks are written.

The journal has all results already; a store that is down, or was deleted, gets
them later.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kbench.delivery.as_run import as_run
from kbench.delivery.methods import method_runs
from kbench.delivery.owed import checksums, store_of
from kbench.errors import JournalError, PluginError, StoreError
from kbench.planning.planned import PlannedCell
from kbench.planning.planner import line_key
from kbench.records import ACCURACY
from kbench.registry.registry import Registry
from kbench.results.rows import PLAIN, known_measure
from kbench.results.sources import of_run
from kbench.storage.journal import Journal
from kbench.tracking import CellRun, Experiment, Store, View, delivered_without_mlflow

SWITCH_S = 0.0005
"""Longest time for which a delivering thread keeps the interpreter while others wait."""

_FAILURES = 3
"""Runs in a row that cannot be written before the rest is left for later."""


@dataclass(frozen=True)
class Delivered:
    """Result of a delivery.

    Parameters
    ----------
    uri, experiment : str
        The store, its URI without credentials, and the experiment.
    experiment_id : str
        MLflow's number of the experiment; empty where the store did not answer.
    written : int
        Runs that were written this time.
    stored : int
        Runs of the planned cells that the store has now.
    problem : str
        Why some are missing; empty where none are.
    """

    uri: str
    experiment: str
    experiment_id: str = ""
    written: int = 0
    stored: int = 0
    problem: str = ""


class Delivery:
    """Writes finished cells to a store from a thread of low priority.

    Parameters
    ----------
    uri : str
        The MLflow store.
    suite : str
        Name of the suite, and of the experiment.
    journal : Journal
        Keeps a line for each run that was delivered.
    machine : str
        Identity of this machine.
    views : mapping of str to View, optional
        Saved views for MLflow's page of the suite.

    Attributes
    ----------
    measure : Measure
        What the suite compares: known once its datasets are.
    """

    def __init__(
        self,
        uri: str,
        suite: str,
        journal: Journal,
        machine: str,
        views: Mapping[str, View] | None = None,
    ) -> None:
        self._suite, self._journal, self._machine = suite, journal, machine
        self.measure, self.budget, self._views = ACCURACY, "", views or {}
        self._store = Store(uri)
        self._queue: queue.SimpleQueue[PlannedCell | None] = queue.SimpleQueue()
        self._loading: threading.Thread | None = None
        self._thread: threading.Thread | None = None
        self._experiment: Experiment | None = None
        self._offered: set[tuple[str, str]] = set()
        self._written = 0
        self._problem = ""

    def warm(self) -> None:
        """Begin to import MLflow, while the caller prepares something else."""
        if self._loading is None and self._thread is None:
            self._loading = threading.Thread(target=self._load, name="delivery", daemon=True)
            self._loading.start()

    def start(self) -> None:
        """Open the store and begin to write the cells that are offered."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="delivery", daemon=True)
            self._thread.start()

    def offer(self, planned: PlannedCell) -> None:
        """Queue a finished cell."""
        self._offered.add(_identity(planned))
        self._queue.put(planned)

    def has_delivered(self) -> bool:
        """Return whether this suite was ever delivered to this store."""
        return self._last_delivery() is not None

    def lacking(self, planned: Iterable[PlannedCell]) -> list[PlannedCell]:
        """Return the finished cells that the store does not have as they are now.

        MLflow is not imported. Where the store is not a local database, all
        finished cells count as lacking; the store itself is asked later.
        """
        cells = [cell for cell in planned if cell.is_finished]
        known = self._last_delivery()
        if known is None:
            return cells
        stored = delivered_without_mlflow(self._store.uri, known["experiment_id"])
        if stored is None:
            return cells
        return [cell for cell in cells if (cell.key, self._run(cell).digest) not in stored]

    def finish(self, planned: Collection[PlannedCell]) -> Delivered:
        """Write the cells that are still lacking and return what the store has now."""
        finished = [cell for cell in planned if cell.is_finished]
        # cells that were finished before this run may never have been offered
        lacking = self.lacking(cell for cell in finished if _identity(cell) not in self._offered)
        if self._thread is None and not lacking and self._queue.empty():
            known = self._last_delivery() or {}
            return Delivered(
                self._store.name, self._suite, known.get("experiment_id", ""), stored=len(finished)
            )
        for cell in lacking:
            self.offer(cell)
        self.start()
        assert self._thread is not None
        self._queue.put(None)
        self._thread.join()
        if not self._problem:
            self._tidy(planned)
        with contextlib.suppress(StoreError):
            # a local store may be moved or replaced: its file must be complete
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
        return as_run(planned, self._suite, self._machine, self.measure, self.budget)

    def _last_delivery(self) -> Mapping[str, Any] | None:
        """Return the newest line that says where this suite was delivered."""
        newest = None
        for line in self._journal.read("delivered"):
            if line["suite"] == self._suite and store_of(line) == self._store.name:
                newest = line
        return newest

    def _load(self) -> None:
        # `_work` meets the same error again, and keeps it
        with _in_background(), contextlib.suppress(StoreError):
            self._store.load()

    def _work(self) -> None:
        if self._loading is not None:
            self._loading.join()
        with _in_background():
            self._write_offered()

    def _write_offered(self) -> None:
        """Open the store and write the offered cells, until there are no more."""
        try:
            self._experiment = self._store.experiment(self._suite)
            self._store.sweep(self._experiment)
        except (StoreError, JournalError) as error:
            self._problem = str(error)
        else:
            self._present()
        failures, given_up = 0, bool(self._problem)
        while (planned := self._queue.get()) is not None:
            if given_up:
                continue
            try:
                self._write(planned)
                failures = 0
            except StoreError as error:
                # of this run, perhaps: the others are written all the same
                self._problem = self._problem or str(error)
                failures += 1
                given_up = failures == _FAILURES
            except JournalError as error:
                self._problem, given_up = str(error), True

    def _present(self) -> None:
        """Write the views: a store that refuses them may accept runs all the same."""
        assert self._experiment is not None
        with contextlib.suppress(StoreError):
            if self._views:
                plain = PLAIN[known_measure(self.measure).task or "classification"].name
                self._store.present(self._experiment, self._views, self.measure, plain)

    def _write(self, planned: PlannedCell) -> None:
        assert self._experiment is not None
        run = self._run(planned)
        run_id = self._store.log(self._experiment, run)
        self._written += 1
        self._journal.append(
            "delivered",
            store=self._store.name,
            suite=self._suite,
            experiment_id=self._experiment.id,
            created=self._experiment.created,
            cell_key=run.key,
            digest=run.digest,
            run_id=run_id,
        )

    def _tidy(self, planned: Collection[PlannedCell]) -> None:
        """Mark runs whose key or data have changed; drop those that waited for data.

        Then write the runs of methods, and the views that show what is stored now.
        """
        assert self._experiment is not None
        keys = {cell.cell.name: {cell.key} for cell in planned if cell.is_finished}
        lines = {line_key(cell.cell) for cell in planned if not cell.problem}
        try:
            self._store.withdraw(self._experiment, self._machine, lines)
            self._store.supersede(self._experiment, self._machine, keys, checksums(planned))
            # over all cells of the store: this command may have planned a few of them
            rows = [of_run(run) for run in self._store.cells(self._experiment, self._machine)]
            methods = method_runs(rows, known_measure(self.measure))
            self._store.log_methods(self._experiment, self._machine, methods)
            self._present()
        except (StoreError, JournalError) as error:
            self._problem = str(error)


@contextlib.contextmanager
def _in_background() -> Iterator[None]:
    """Let this thread take neither the CPU nor the interpreter from what computes."""
    with contextlib.suppress(AttributeError, OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
    # Threads that serve tasks wait for the interpreter as often as they wake up, each
    # time for as long as this one may keep it.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(min(interval, SWITCH_S))
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


def lock_name(suite: str, store: str) -> str:
    """Return the name of a lock: one process at a time updates a suite in a store."""
    return f"{suite} in {Store(store).name}"


def views_of(
    registry: Registry, notice: Callable[[str], None] = lambda text: None
) -> dict[str, View]:
    """Read the ``*.view.json`` dashboards of plugins, views of MLflow's pages, by their keys.

    `notice` is called with a message about each file that is not a view; it is
    left out.
    """
    views = {}
    for name, file in sorted(registry.all("dashboard").items()):
        if name.endswith(".view.json"):
            try:
                view = View.of(name, file.read_text(encoding="utf-8"))
                views[view.key] = view
            except (PluginError, OSError, UnicodeDecodeError) as error:
                notice(f"a view is left out: {error}")
    return views


def _identity(planned: PlannedCell) -> tuple[str, str]:
    """Return what identifies a run of a suite: two cells of one key differ in their labels."""
    return planned.key, planned.cell.name
