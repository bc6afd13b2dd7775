"""Delivery of finished cells as MLflow runs: only runs that the store lacks are written.

The journal has all results already; a store that is down, or was deleted, gets
them later.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from kbench.errors import JournalError, PluginError, StoreError
from kbench.features import (
    PLAIN,
    Journal,
    PlannedCell,
    Registry,
    checksums,
    known_measure,
    line_key,
    still_working,
    store_of,
)
from kbench.records import ACCURACY, Delivered
from kbench_mlflow.delivery.as_run import as_run
from kbench_mlflow.delivery.methods import method_runs
from kbench_mlflow.reading import of_run
from kbench_mlflow.tracking import CellRun, Experiment, Store, View, delivered_without_mlflow

_FAILURES = 3
"""Runs in a row that cannot be written before the rest is left for later."""


class Delivery:
    """Writes finished cells to a store.

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
    options : sequence of str
        Options that name the store in commands.
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
        self.measure, self.budget, self.views = ACCURACY, "", views or {}
        self.options: Sequence[str] = ()
        self.uri, self._store = uri, Store(uri)
        self._experiment: Experiment | None = None
        self._offered: set[tuple[str, str]] = set()
        self._written = self._failures = 0
        self._is_open = self._given_up = False
        self._problem = ""

    def prepare(self) -> None:
        """Import MLflow and open the store, while tasks are computed."""
        # `finish` meets the same error again, and says it
        with contextlib.suppress(StoreError):
            self._store.load()
        if not self._has_delivered():
            self._open()  # a new store takes seconds to be made

    def offer(self, planned: PlannedCell) -> None:
        """Write a finished cell, unless the store was given up."""
        self._offered.add(_identity(planned))
        self._open()
        if self._given_up:
            return
        try:
            self._write(planned)
            self._failures = 0
        except StoreError as error:
            # of this run, perhaps: the others are written all the same
            self._problem = self._problem or str(error)
            self._failures += 1
            self._given_up = self._failures == _FAILURES
        except JournalError as error:
            self._problem, self._given_up = str(error), True
        still_working()

    def _has_delivered(self) -> bool:
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
        return [cell for cell in cells if (cell.version, self._run(cell).digest) not in stored]

    def finish(self, planned: Collection[PlannedCell]) -> Delivered:
        """Write the cells that are still lacking and return what the store has now."""
        finished = [cell for cell in planned if cell.is_finished]
        # cells that were finished before this run may never have been offered
        lacking = self.lacking(cell for cell in finished if _identity(cell) not in self._offered)
        if not (self._is_open or lacking or self._offered):
            known = self._last_delivery() or {}
            return self._delivered(known.get("experiment_id", ""), stored=len(finished))
        for cell in lacking:
            self.offer(cell)
        self._open()
        if not self._problem:
            self._tidy(planned)
        with contextlib.suppress(StoreError):
            # a local store may be moved or replaced: its file must be complete
            self._store.close()
        return self._delivered(
            self._experiment.id if self._experiment else "",
            stored=len(finished) if not self._problem else self._written,
        )

    def _delivered(self, experiment_id: str, stored: int) -> Delivered:
        suite = shlex.join([self._suite, *self.options])
        return Delivered(
            self._store.name,
            self._suite,
            experiment_id,
            self._written,
            stored,
            self._problem,
            "MLflow store",
            ((f"kbench ui {suite}", "MLflow's pages of these runs"),) if stored else (),
            "`kbench sync` delivers them, and so does the next run with this store.",
            tuple(self.options),
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

    def _open(self) -> None:
        """Open the store once; what is wrong with it is the problem of the delivery."""
        if self._is_open:
            return
        self._is_open = True
        try:
            self._experiment = self._store.experiment(self._suite)
            self._store.sweep(self._experiment)
        except (StoreError, JournalError) as error:
            self._problem, self._given_up = str(error), True
        else:
            self._present()

    def _present(self) -> None:
        """Write the views: a store that refuses them may accept runs all the same."""
        assert self._experiment is not None
        with contextlib.suppress(StoreError):
            if self.views:
                plain = PLAIN[known_measure(self.measure).task or "classification"].name
                self._store.present(self._experiment, self.views, self.measure, plain)

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
        keys = {cell.cell.name: {cell.version} for cell in planned if cell.is_finished}
        lines = {line_key(cell.cell) for cell in planned if not cell.problem}
        try:
            self._store.withdraw(self._experiment, self._machine, lines)
            still_working()
            self._store.supersede(self._experiment, self._machine, keys, checksums(planned))
            # over all cells of the store: this command may have planned a few of them
            rows = [of_run(run) for run in self._store.cells(self._experiment, self._machine)]
            still_working()
            methods = method_runs(rows, known_measure(self.measure))
            self._store.log_methods(self._experiment, self._machine, methods)
            still_working()
            self._present()
        except (StoreError, JournalError) as error:
            self._problem = str(error)


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
    return planned.version, planned.cell.name
