"""`Store`: one run per cell, whatever was written before, after any failure."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from kbench.errors import StoreError
from kbench.features import no_collection
from kbench.messages import option
from kbench.records import ACCURACY, Metric
from kbench_mlflow.tracking.connection import RETRY_AFTER_S, Connection, Interrupted
from kbench_mlflow.tracking.run import (
    DIGEST_CHARS,
    FORMAT,
    NAME_CHARS,
    CellRun,
    Client,
    Experiment,
    Identity,
    StoredRun,
    cut,
    find_runs,
    identity,
)
from kbench_mlflow.tracking.summaries import MethodRun, log_methods, log_report
from kbench_mlflow.tracking.upsert import owner_is_gone, upsert
from kbench_mlflow.tracking.views import Facts, View, experiment_tags

_WAITS_S = (0.2, 0.5, 1.0)
"""Waits before further attempts; a server may ask for longer ones."""

_SLOW_S = 3.0
"""A call that fails only after this time is not tried again."""

_ALL_WAITS_S = 60.0
"""Longest time that all calls together wait."""

_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")


def _persistent(
    method: Callable[Concatenate[Store, _Given], _Answer],
) -> Callable[Concatenate[Store, _Given], _Answer]:
    """Call what may be repeated again: once, or a few times if it was interrupted."""

    @wraps(method)
    def call(store: Store, /, *args: _Given.args, **kwargs: _Given.kwargs) -> _Answer:
        store.open()
        for attempt, least_s in enumerate(_WAITS_S):
            started = time.monotonic()
            try:
                return method(store, *args, **kwargs)
            except StoreError as error:
                asked_s = error.wait_s if isinstance(error, Interrupted) else None
                wait_s = max(least_s, asked_s or 0.0)
                hopeless = attempt > 0 and asked_s is None
                slow = time.monotonic() - started > _SLOW_S
                if hopeless or slow or wait_s > min(RETRY_AFTER_S, _ALL_WAITS_S - store.waited_s):
                    raise
                store.waited_s += wait_s
                time.sleep(wait_s)
        return method(store, *args, **kwargs)

    return call


class Store(Connection):
    """An MLflow store that holds one run per cell.

    `uri` is MLflow's tracking URI. Creating the object imports nothing; every
    method opens the store when it needs it. One object serves one thread.

    A run counts as delivered when its tag ``kbench.digest`` is set and its
    status is FINISHED or FAILED: the tag goes with the last piece of content
    and the status after it, so that an interrupted write is found and repeated.
    Every method fails within seconds where the store cannot be read or written,
    with a `StoreError` of one line, and may be called again at any time.

    Examples
    --------
    >>> store = Store("sqlite:////home/me/mlflow.db")  # nothing is opened yet
    >>> store.name
    'sqlite:////home/me/mlflow.db'
    """

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self._indexes: dict[str, dict[Identity, StoredRun]] = {}
        self.waited_s = 0.0

    @property
    def uri(self) -> str:
        """MLflow's tracking URI, with the absolute path of a local store; never to be shown."""
        return self.address.uri

    @property
    def name(self) -> str:
        """The URI without credentials, for messages, journals and pages."""
        return self.address.name

    @contextlib.contextmanager
    def _calls(self, problem: str) -> Iterator[Client]:
        """Open the store for calls of its client, whose errors begin with the problem."""
        self.open()
        with self.calls(problem):
            yield self.client

    @_persistent
    def experiment(self, name: str) -> Experiment:
        """Return the experiment of that name, at most 500 characters; create or restore it."""
        with self._calls(f"cannot get experiment {name!r}") as client:
            entity = client.get_experiment_by_name(name)
            if entity is None:
                self.check_lock()
                try:
                    client.create_experiment(name, self.artifact_location(name))
                except Exception:  # another process has created it, or the reply was lost
                    if client.get_experiment_by_name(name) is None:
                        raise
                entity = client.get_experiment_by_name(name)
            elif entity.lifecycle_stage == "deleted":
                client.restore_experiment(entity.experiment_id)
                self._indexes.pop(entity.experiment_id, None)
            return Experiment(entity.experiment_id, entity.name, entity.creation_time or 0)

    def present(
        self,
        experiment: Experiment,
        views: Mapping[str, View],
        metric: Metric = ACCURACY,
        plain: str = "accuracy",
    ) -> None:
        """Write the views and the note that an experiment lacks.

        Its suite compares `metric`; `plain` is the default metric of its task. Views show
        the datasets and searched parameters of the runs that are stored.
        """
        with self._calls("cannot write views") as client:
            present = client.get_experiment(experiment.id).tags
            facts = Facts.of(self._index(experiment).values(), metric, plain)
            wanted = experiment_tags(experiment.name, views, facts, experiment.created, present)
        self.write_tags(experiment, wanted)

    def write_tags(self, experiment: Experiment, tags: Mapping[str, str]) -> None:
        """Write tags of an experiment."""
        with self._calls("cannot write tags") as client:
            # the longest last: servers with a lower limit reject it, and keep the others
            for name, value in sorted(tags.items(), key=lambda tag: len(tag[1])):
                client.set_experiment_tag(experiment.id, name, value)

    def tags(self, experiment_name: str) -> Mapping[str, str]:
        """Return the tags of an experiment; none if it does not exist."""
        with self._calls(f"cannot read experiment {experiment_name!r}") as client:
            experiment = client.get_experiment_by_name(experiment_name)
            return experiment.tags if experiment and experiment.lifecycle_stage == "active" else {}

    def log_report(self, experiment: Experiment, machine: str, files: Mapping[str, str]) -> str:
        """Write the report of a machine's results in a separate run, which `read` leaves out.

        `files` are contents by relative path. The machine's earlier report is
        deleted only once the new one is written. Returns MLflow's id of the run.
        """
        with self._calls("cannot write the report") as client:
            self.check_lock()
            return log_report(client, experiment, machine, files)

    def cells(self, experiment: Experiment, machine: str) -> list[StoredRun]:
        """Return a machine's complete runs of cells that are not superseded."""
        with self._calls(f"cannot read experiment {experiment.name!r}"):
            return [
                run
                for (_, owner, _), run in self._index(experiment).items()
                if owner == machine and run.complete and not run.superseded
            ]

    def log_methods(self, experiment: Experiment, machine: str, runs: Sequence[MethodRun]) -> int:
        """Make the store hold a machine's runs of methods, and no others of them.

        `read` leaves them out. Returns the number of those that were written.
        """
        with self._calls("cannot write the runs of methods"):
            self.check_lock()
            return log_methods(self, experiment, machine, runs)

    @_persistent
    def log(self, experiment: Experiment, run: CellRun) -> str:
        """Make the store hold `run`, once; return MLflow's id of it.

        Nothing is written where the store has it already. A run that needs
        additions only (more splits, a retry that succeeded) is completed; one
        that would have to change a param or a point of a metric is deleted
        and written again. After a `StoreError` it may be written in part;
        calling again repairs that.
        """
        place = identity(run)
        try:
            with self._calls(f"cannot write run {run.content.name!r}"):
                index = self._index(experiment)
                stored = index.get(place)
                if stored is None or not stored.is_written_as(run):
                    self.check_lock()
                    # no entry until the write is complete: after a failure it would be wrong
                    index.pop(place, None)
                    stored = upsert(self, experiment.id, run, stored)
                    index[place] = stored
                return stored.run_id
        except StoreError:
            # it is unknown what was stored before the failure: search again before writing
            self._indexes.pop(experiment.id, None)
            raise

    def supersede(
        self,
        experiment: Experiment,
        machine: str,
        planned: Mapping[str, Collection[str]],
        data: Mapping[str, Collection[str]] | None = None,
    ) -> int:
        """Tag a machine's runs whose cell is planned under another key, labels or other data now.

        `planned` has all keys that are planned under the name of a run (`CellRun.name`, the
        labels of its cell), and `data` the checksums under the label of a dataset: runs on it
        with another checksum are not comparable, planned or not. Other runs are left alone.
        Returns the number of runs tagged ``kbench.superseded = <new key>``, or ``<new
        checksum>`` if no cell takes their place.
        """
        count = 0
        known = {key for keys in planned.values() for key in keys}
        digests = {
            cut(label, NAME_CHARS): sorted(checksum[:DIGEST_CHARS] for checksum in checksums)
            for label, checksums in (data or {}).items()
        }
        with self._calls("cannot mark superseded runs") as client:
            for (key, owner, name), stored in self._index(experiment).items():
                keys = planned.get(name, ())
                if owner != machine or key in keys:
                    continue
                label, digest = stored.dataset or ("", "")
                current = digests.get(label, ())
                if keys or key in known:
                    # the same key under other labels
                    new = next(iter(keys), key)
                elif current and digest not in current:
                    new = next(iter(current))
                else:
                    continue
                if stored.tags.get("kbench.superseded") != new:
                    tags = {"kbench.superseded": new, "kbench.kind": "superseded"}
                    for tag, value in tags.items():
                        client.set_tag(stored.run_id, tag, value)
                    stored.tags |= tags
                    count += 1
        return count

    @_persistent
    def sweep(self, experiment: Experiment) -> int:
        """Set the status of RUNNING runs whose writer is gone to KILLED; return their number.

        Runs of other hosts are left alone: their writers cannot be seen from here.
        """
        with self._calls("cannot look for abandoned runs") as client:
            running = find_runs(client, experiment.id, "attributes.status = 'RUNNING'")
            run_ids = [run.info.run_id for run in running if owner_is_gone(run.data.tags)]
            for run_id in run_ids:
                client.set_terminated(run_id, "KILLED")
        if run_ids:
            self._indexes.pop(experiment.id, None)
        return len(run_ids)

    def read(self, experiment_name: str, superseded: bool = False) -> list[StoredRun]:
        """Return the complete, live runs of cells, the newest per key, machine and name.

        They are in the order of their start; runs being written are left out,
        and with `superseded` false those of earlier code, data or labels too.
        Empty if the experiment does not exist.
        """
        with self._calls(f"cannot read experiment {experiment_name!r}") as client:
            if (experiment := client.get_experiment_by_name(experiment_name)) is None:
                return []
            runs = self._live(client, experiment.experiment_id)
            newest, _ = _best(r for r in runs if r.complete and (superseded or not r.superseded))
        return sorted(newest.values(), key=lambda stored: (stored.start_ms, stored.run_id))

    def _live(self, client: Client, experiment_id: str) -> Iterator[StoredRun]:
        """Yield the runs of cells in an experiment; StoreError for those of another version."""
        for run in map(StoredRun.of, find_runs(client, experiment_id)):
            if "kbench.cell_key" not in run.tags:
                continue
            if run.tags.get("kbench.format") != FORMAT:
                suite = run.tags.get("kbench.suite")
                raise StoreError(
                    f"the MLflow store {self.name}: experiment {suite!r} has "
                    "runs of another version of kbench, which this one does not read; delete the "
                    f"experiment, or name another store: {option('store', 'URI')}"
                )
            yield run

    def _index(self, experiment: Experiment) -> dict[Identity, StoredRun]:
        """Return all runs of kbench in an experiment: searched once, then kept up to date.

        A lost reply may have left two runs of one identity: all but the best
        are deleted.
        """
        if experiment.id not in self._indexes:
            best, others = _best(self._live(self.client, experiment.id))
            for run in others:
                self.client.delete_run(run.run_id)
            self._indexes[experiment.id] = best
        return self._indexes[experiment.id]


# collections take ever longer while the objects of many runs are made
@no_collection()
def _best(runs: Iterable[StoredRun]) -> tuple[dict[Identity, StoredRun], list[StoredRun]]:
    """Return the run to keep of each identity, and the others."""
    best: dict[Identity, StoredRun] = {}
    others = []
    for run in runs:
        # a run is on two pages where others were written between the two requests
        if (kept := best.setdefault(run.identity, run)).run_id != run.run_id:
            worse, best[run.identity] = sorted([run, kept], key=lambda stored: stored.preference)
            others.append(worse)
    return best, others
