"""Delivery of finished cells as MLflow runs: only runs that the store lacks are written.

The journal has all results already; a store that is down, or was deleted, gets them later: with
`kbench sync`, or with the next run. Nothing is computed for that.
"""

import contextlib
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kbench import features
from kbench.errors import JournalError, PluginError, StoreError, SuiteError
from kbench.features import PlannedCell, Registry
from kbench.messages import did_you_mean, plural
from kbench.records import ACCURACY, Delivered
from kbench.records.canonical import Json
from kbench_mlflow import reading
from kbench_mlflow.runs import build_run, method_runs
from kbench_mlflow.tracking.database import read_delivered_runs
from kbench_mlflow.tracking.run import CellRun, Experiment
from kbench_mlflow.tracking.store import Store
from kbench_mlflow.tracking.views import View

_FAILURES = 3
"""Runs in a row that cannot be written before the rest is left for later."""


class Delivery:
    """Writes finished cells of a suite to the MLflow store at a URI.

    The journal keeps a line for each run that was delivered; `machine` is the identity of this one,
    and `views` are saved views for MLflow's page of the suite. `metric`, what the suite compares,
    is set once its datasets are; `options` name the store in commands.
    """

    def __init__(
        self,
        uri: str,
        suite: str,
        journal: features.Journal,
        machine: str,
        views: Mapping[str, View] | None = None,
    ) -> None:
        self._suite, self._journal, self._machine = suite, journal, machine
        self.metric, self.budget, self.views = ACCURACY, "", views or {}
        self.options: Sequence[str] = ()
        self.uri, self._store = uri, Store(uri)
        self._experiment: Experiment | None = None
        self._offered: set[tuple[str, str]] = set()
        self._written = self._failures = 0
        self._is_open = False
        self._problem = ""

    def prepare(self) -> None:
        """Import MLflow and open the store, while tasks are computed."""
        # `finish` and the run meet the same error again, and say it
        with contextlib.suppress(StoreError, JournalError):
            self._store.load()
            if self._last_delivery() is None:
                self._open()  # a new store takes seconds to be made

    def offer(self, planned: PlannedCell) -> None:
        """Write a finished cell, unless the store was given up."""
        self._offered.add(_identity(planned))
        experiment = self._open()
        if experiment is None or self._failures == _FAILURES:
            return
        run = self._run(planned)
        try:
            run_id = self._store.log(experiment, run)
            self._written += 1
            self._record(experiment, cell_key=run.key, digest=run.digest, run_id=run_id)
            self._failures = 0
        except (StoreError, JournalError) as error:
            # of this run, perhaps: the others are written all the same
            self._problem = self._problem or str(error)
            self._failures += 1
        features.still_working()

    def finish(self, planned: Collection[PlannedCell]) -> Delivered:
        """Write the cells that are still lacking and return what the store has now."""
        finished = [cell for cell in planned if _has_run(cell)]
        known = (self._last_delivery() or {}).get("experiment_id", "")
        # MLflow is not imported; a store that is not a local database is asked later
        stored = read_delivered_runs(self._store.uri, known) or set()
        # cells that were finished before this run may never have been offered
        lacking = [
            cell
            for cell in finished
            if _identity(cell) not in self._offered
            and (cell.version, self._run(cell).digest) not in stored
        ]
        if not (self._is_open or lacking or self._new_tags(dict(stored), planned)):
            return self._delivered(known, stored=len(finished))
        for cell in lacking:
            self.offer(cell)
        experiment = self._open()
        if experiment is not None and not self._problem:
            self._tidy(experiment, planned)
        with contextlib.suppress(StoreError):
            # a local store may be moved or replaced: its file must be complete
            self._store.close()
        return self._delivered(
            experiment.id if experiment else "",
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
            "`kbench sync` uploads them, and so does the next run with this store.",
            tuple(self.options),
        )

    def _run(self, planned: PlannedCell) -> CellRun:
        return build_run(planned, self._suite, self._machine, self.metric, self.budget)

    def _record(self, experiment: Experiment, **fields: str) -> None:
        """Journal what the store has now."""
        self._journal.append(
            "delivered",
            store=self._store.name,
            suite=self._suite,
            experiment_id=experiment.id,
            created=experiment.created,
            **fields,
        )

    def _new_tags(
        self, present: Mapping[str, str], planned: Collection[PlannedCell]
    ) -> dict[str, str]:
        """Return the tags of cells without a run that a store lacks; others of before stay."""
        before = reading.rows_without_run(present, self._machine)
        # these cells may be planned under other labels
        names = {
            name
            for each in (planned if before else ())
            for name in (each.cell.name, each.key, features.line_key(each.cell))
        }
        kept = (
            row
            for row in before
            if not names & {row.key, f"{' + '.join(row.method)} on {row.dataset}"}
        )
        cells = (each for each in planned if each.is_finished and not _has_run(each))
        new = (features.make_full_row(each, self._machine, self.metric) for each in cells)
        return reading.tags_without_run(self._machine, [*kept, *new], present)

    def _last_delivery(self) -> Mapping[str, Json] | None:
        """Return the newest line that says where this suite was delivered."""
        place = self._suite, self._store.name
        lines = self._journal.read("delivered")
        found = [line for line in lines if (line["suite"], line["store"]) == place]
        return found[-1] if found else None

    def _open(self) -> Experiment | None:
        """Open the store once; what is wrong with it is the problem of the delivery."""
        if self._is_open:
            return self._experiment
        self._is_open = True
        try:
            experiment = self._store.experiment(self._suite)
            self._store.sweep(experiment)
        except (StoreError, JournalError) as error:
            self._problem = str(error)
            return None
        self._experiment = experiment
        self._present(experiment)
        return experiment

    def _present(self, experiment: Experiment) -> None:
        """Write the views: a store that refuses them may accept runs all the same."""
        with contextlib.suppress(StoreError):
            if self.views:
                plain = features.PLAIN[
                    features.complete_metric(self.metric).task or "classification"
                ].name
                self._store.present(experiment, self.views, self.metric, plain)

    def _tidy(self, experiment: Experiment, planned: Collection[PlannedCell]) -> None:
        """Mark runs whose key or data have changed, and list the cells that have no run.

        Then write the runs of methods, and the views that show what is stored now.
        """
        keys = {cell.cell.name: {cell.version} for cell in planned if cell.is_finished}
        try:
            self._store.supersede(experiment, self._machine, keys, features.checksums(planned))
            tags = self._store.tags(experiment.name)
            if new := self._new_tags(tags, planned):
                self._store.write_tags(experiment, new)
                self._record(experiment)
            # over all cells of the store: this command may have planned a few of them
            rows = [reading.row_of_run(run) for run in self._store.cells(experiment, self._machine)]
            rows += reading.rows_without_run({**tags, **new}, self._machine)
            features.still_working()
            methods = method_runs(rows, features.complete_metric(self.metric))
            self._store.log_methods(experiment, self._machine, methods)
            features.still_working()
            self._present(experiment)
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
                notice(f"a view is skipped: {error}")
    return views


def _has_run(planned: PlannedCell) -> bool:
    """Return whether a cell was computed or failed: others are listed in a tag."""
    return planned.is_finished and bool(planned.results or planned.status not in reading.LEFT_OUT)


def _identity(planned: PlannedCell) -> tuple[str, str]:
    """Return what identifies a run of a suite: two cells of one key differ in their labels."""
    return planned.version, planned.cell.name


@dataclass(frozen=True)
class Synced:
    """Result of the synchronisation of one suite."""

    suite: str
    machine: str
    """Owner of the results: this machine, or the clusters that it used."""
    delivered: Delivered
    """What the store has now."""
    finished: int
    """Cells that the journal has results for."""
    unfinished: int
    """Cells that were planned and have splits still to be computed."""
    unread: int = 0
    """Plans that cannot be read: another version of kbench wrote them."""

    @property
    def sentence(self) -> str:
        """The result in one line."""
        delivered = self.delivered
        kept = f"kept: {plural(self.finished, 'finished cell')}"
        known = kept if delivered.problem else plural(delivered.stored, "run")
        text = f"{self.suite} in {delivered.uri}: {known}, {delivered.written} written now"
        if self.unfinished:
            text += (
                f"; unfinished: {plural(self.unfinished, 'cell')} (`kbench suite` goes on there)"
            )
        if self.unread:
            plans = plural(self.unread, "plan")
            text += f"; skipped {plans} of another version of kbench: `kbench suite` plans again"
        return text


class _Busy(Exception):
    """Another process delivers this suite to this store now."""


def sync_suites(
    store: str,
    suites: Sequence[str] = (),
    everything: bool = False,
    waiting: Callable[[features.Holder | None], None] | None = None,
    views: Mapping[str, View] | None = None,
) -> Iterator[Synced]:
    """Deliver results to the store at a URI that lacks them, one suite after the other.

    Ends with the first suite for which the store does not answer. By default all suites that were
    run for this store are delivered; with `everything`, also those of other stores only.
    `waiting` is called with the process that delivers the same at the moment, or None if that is
    unknown. SuiteError is raised if no such suite was ever run here, or none for this store.
    """
    name = Store(store).name
    by_place = features.journals()
    known = {place: features.Plans(journal).suites() for place, journal in by_place.items()}
    ever = {suite for stores_of in known.values() for suite in stores_of}
    here = {
        suite for stores_of in known.values() for suite, names in stores_of.items() if name in names
    }
    if missing := [suite for suite in suites if suite not in ever]:
        raise SuiteError(
            *(f"no suite {name!r} was run here{did_you_mean(name, ever)}" for name in missing)
        )
    if not (wanted := set(suites) or (ever if everything else here)):
        hint = f"; name the suites to upload, or give --all: {', '.join(sorted(ever))}" * bool(ever)
        raise SuiteError(f"no suite has been run for the store {name}{hint}")
    for place, journal in by_place.items():
        chosen = [suite for suite in known[place] if suite in wanted]
        for synced in _deliver(place, journal, chosen, store, waiting, views):
            yield synced
            if synced.delivered.problem:
                return


def _leave(holder: features.Holder | None) -> None:
    raise _Busy


def read_all_results(query: features.Query) -> features.StoredResults:
    """Read what a query names, after delivery of what a killed command left in the journal.

    What cannot be delivered, as with a folder that is only readable, is a notice.
    """
    uri, suite = reading.uri_of(query.given.get("store")), features.get_experiment(query.suite)
    for place, journal in features.journals().items():
        said: object = ""
        try:
            left = {suite} & {*features.Plans(journal).list_open(name := Store(uri).name)}
            for synced in _deliver(place, journal, left, uri, _leave, None, name):
                done = synced.delivered
                said = done.problem or (done.written and synced.sentence)
        except JournalError as error:
            said = error
        if said:
            query.notice(f"pending from an earlier command: {said}")
    return reading.read_stored_results(query)


def deliver_leftovers(
    journal: features.Journal, machine: str, store: str, views: Mapping[str, View] | None = None
) -> Iterator[Synced]:
    """Deliver results of earlier commands that were killed, or whose store was unreachable.

    Suites that another process is working on are left to it. `machine` is the
    owner of the journal, `store` the URI of the MLflow store.
    """
    name = Store(store).name
    return _deliver(
        machine, journal, features.Plans(journal).list_open(name), store, _leave, views, name
    )


def _deliver(
    machine: str,
    journal: features.Journal,
    suites: Iterable[str],
    store: str,
    waiting: Callable[[features.Holder | None], None] | None,
    views: Mapping[str, View] | None,
    planned_for: str | None = None,
) -> Iterator[Synced]:
    """Deliver suites until the store does not answer; of leftovers what was planned for it."""
    plans, name = features.Plans(journal), Store(store).name
    for suite in suites:
        try:
            with journal.lock(features.lock_name(suite, name), waiting):
                delivery = Delivery(store, suite, journal, machine, views)
                cells, delivery.metric = plans.cells(suite, planned_for)
                delivery.budget = plans.budget(suite, planned_for)
                if not (delivered := delivery.finish(cells)).problem:
                    plans.settle(suite, name)
        except _Busy:
            continue
        finished = sum(cell.is_finished for cell in cells)
        yield Synced(suite, machine, delivered, finished, len(cells) - finished, plans.unread)
        if delivered.problem:
            return


def keep_report(data: features.ReportData, page: str, store: str | None) -> str:
    """Write the page and its tables to a run; return a line that says so, or why not."""
    files = {"report.html": page}
    for table in features.make_tables(data).values():
        if table.rows:
            files[f"tables/{table.name}.csv"] = features.write(table, "csv") + "\n"
            files[f"tables/{table.name}.tex"] = features.write(table, "latex") + "\n"
    handle = Store(reading.uri_of(store))
    try:
        handle.log_report(handle.experiment(data.suite), data.rows[0].machine, files)
    except StoreError as error:
        # not an error: the file was written
        return f"not stored in MLflow: {error}"
    return f"also in MLflow: experiment {data.suite}, run report, {len(files)} files"
