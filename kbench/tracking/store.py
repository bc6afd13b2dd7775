"""`Store`: one run per cell, whatever was written before and whatever fails."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Any

from kbench.errors import StoreError
from kbench.tracking.connection import Connection
from kbench.tracking.owner import owner_is_gone
from kbench.tracking.run import Experiment, Run
from kbench.tracking.stored import Stored, live_runs
from kbench.tracking.upsert import upsert

# Seconds within which a failed write is tried once more.
_RETRY_S = 2.0


class Store:
    """An MLflow store that holds one run per cell.

    Creating the object costs nothing and imports nothing; every method opens
    the store when it needs it. One object serves one thread.

    Parameters
    ----------
    uri : str
        MLflow's tracking URI.

    Notes
    -----
    A run counts as delivered when its tag ``kbench.digest`` is there and its
    status is FINISHED or FAILED: the tag goes with the last piece of content
    and the status after it, so that a write cut short is found and redone.
    The number of attempts is the caller's business: a method fails within
    seconds, with `StoreError`, and may be called again at any time.

    Examples
    --------
    >>> store = Store("sqlite:////home/me/mlflow.db")  # nothing is opened yet
    >>> store.name
    'sqlite:////home/me/mlflow.db'
    """

    def __init__(self, uri: str) -> None:
        self._connection = Connection(uri)
        self._indexes: dict[str, dict[tuple[str, str], Stored]] = {}

    @property
    def uri(self) -> str:
        """MLflow's tracking URI, with the absolute path of a local store."""
        return self._connection.uri

    @property
    def name(self) -> str:
        """The URI without its password, as messages show it."""
        return self._connection.name

    def open(self) -> None:
        """Import MLflow and open the store; create it where it is a local one.

        Raises
        ------
        StoreError
            One line: the server does not answer, the database is locked,
            damaged, half-migrated or of another MLflow version.
        """
        self._connection.open()

    @property
    def _client(self) -> Any:
        return self._connection.client

    def experiment(self, name: str) -> Experiment:
        """Return the experiment of that name; create or restore it.

        Parameters
        ----------
        name : str
            Its name, at most 500 characters.

        Raises
        ------
        StoreError
            The store cannot be opened, read or written.
        """
        self.open()
        with self._connection.calls(f"cannot get experiment {name!r}"):
            found = self._client.get_experiment_by_name(name)
            if found is None:
                self._connection.check_lock()
                try:
                    self._client.create_experiment(name, self._connection.artifact_location(name))
                except Exception:  # another process was faster, or the reply was lost
                    if self._client.get_experiment_by_name(name) is None:
                        raise
                found = self._client.get_experiment_by_name(name)
            elif found.lifecycle_stage == "deleted":
                self._client.restore_experiment(found.experiment_id)
                self._indexes.pop(found.experiment_id, None)
            return Experiment(found.experiment_id, found.name, found.creation_time or 0)

    def log(self, experiment: Experiment, run: Run) -> str:
        """Make the store hold `run`, once.

        Nothing is written where the store has it already. A run that needs
        additions only (more splits, a retry that succeeded) is completed; one
        that would have to change a param or a point of a metric is deleted
        and written anew.

        Parameters
        ----------
        experiment : Experiment
            Where it belongs.
        run : Run
            What it should look like.

        Returns
        -------
        str
            MLflow's id of the run.

        Raises
        ------
        StoreError
            It may be written in part; calling again repairs that.
        """
        self.open()
        started = time.monotonic()
        for last in (False, True):
            try:
                with self._connection.calls(f"cannot write run {run.content.name!r}"):
                    return self._log(experiment, run)
            except StoreError:
                # What was stored before the failure is unknown: look again before writing.
                self._indexes.pop(experiment.id, None)
                if last or time.monotonic() - started > _RETRY_S:
                    raise
                time.sleep(0.2)
        raise AssertionError("unreachable")

    def _log(self, experiment: Experiment, run: Run) -> str:
        identity = run.key, run.machine
        index = self._index(experiment)
        stored = index.get(identity)
        if stored is None or not stored.is_written_as(run.content):
            self._connection.check_lock()
            # Until the write is complete the index says nothing: a failure leaves no lie behind.
            index.pop(identity, None)
            stored = upsert(self._connection, experiment.id, run, stored)
            index[identity] = stored
        return stored.run_id

    def supersede(
        self, experiment: Experiment, machine: str, planned: Mapping[str, Collection[str]]
    ) -> int:
        """Tag runs whose cell is planned under another key now.

        Parameters
        ----------
        experiment : Experiment
            Where they are.
        machine : str
            Whose runs.
        planned : mapping of str to collection of str
            Name of a run (`Run.name`, the labels of its cell) to all keys
            planned under it. Runs of other names are left alone.

        Returns
        -------
        int
            Number of runs tagged ``kbench.superseded = <new key>``.

        Raises
        ------
        StoreError
            The store cannot be read or written.
        """
        self.open()
        count = 0
        with self._connection.calls("cannot mark superseded runs"):
            for (key, owner), stored in self._index(experiment).items():
                keys = planned.get(stored.tags.get("mlflow.runName", ""), ())
                if owner != machine or not keys or key in keys:
                    continue
                new = next(iter(keys))
                if stored.tags.get("kbench.superseded") != new:
                    self._client.set_tag(stored.run_id, "kbench.superseded", new)
                    stored.tags["kbench.superseded"] = new
                    count += 1
        return count

    def withdraw(self, experiment: Experiment, machine: str, keys: Collection[str]) -> int:
        """Delete runs without data of suite lines that have a real result now.

        Parameters
        ----------
        experiment : Experiment
            Where they are.
        machine : str
            Whose runs.
        keys : collection of str
            Keys of the suite lines; only runs of status "unavailable" go.

        Returns
        -------
        int
            Number of runs deleted.

        Raises
        ------
        StoreError
            The store cannot be read or written.
        """
        self.open()
        with self._connection.calls("cannot delete runs without data"):
            index = self._index(experiment)
            gone = [
                identity
                for key in keys
                if (identity := (key, machine)) in index
                and index[identity].tags.get("kbench.status") == "unavailable"
            ]
            for identity in gone:
                self._client.delete_run(index[identity].run_id)
                del index[identity]
        return len(gone)

    def sweep(self, experiment: Experiment) -> int:
        """Give up runs that are RUNNING although their writer is gone.

        Runs of other hosts are left alone: whether their writer lives cannot
        be told from here.

        Parameters
        ----------
        experiment : Experiment
            Where they are.

        Returns
        -------
        int
            Number of runs whose status is KILLED now.

        Raises
        ------
        StoreError
            The store cannot be read or written.
        """
        self.open()
        count = 0
        with self._connection.calls("cannot look for abandoned runs"):
            for run in live_runs(self._client, experiment.id, "attributes.status = 'RUNNING'"):
                if owner_is_gone(run.tags):
                    self._client.set_terminated(run.run_id, "KILLED")
                    count += 1
        if count:
            self._indexes.pop(experiment.id, None)
        return count

    def read(self, experiment_name: str) -> list[dict[str, Any]]:
        """Return the complete, live runs of kbench, the newest per key and machine.

        Parameters
        ----------
        experiment_name : str
            Name of the experiment.

        Returns
        -------
        list of dict
            ``key, machine, name, status, n_splits_done, params, tags, metrics,
            run_id, experiment_id, start_ms, end_ms``, in the order of the start.
            Superseded runs and runs being written are left out; `metrics` are
            the means; tags have their full names. Empty where there is no such
            experiment.

        Raises
        ------
        StoreError
            The store cannot be read.
        """
        self.open()
        newest: dict[tuple[str, str], Stored] = {}
        with self._connection.calls(f"cannot read experiment {experiment_name!r}"):
            experiment = self._client.get_experiment_by_name(experiment_name)
            if experiment is None:
                return []
            for run in live_runs(self._client, experiment.experiment_id):
                if run.complete and not run.superseded:
                    other = newest.setdefault(run.identity, run)
                    newest[run.identity] = max(run, other, key=lambda each: each.preference)
        return [
            {
                "key": run.identity[0],
                "machine": run.identity[1],
                "name": run.tags.get("mlflow.runName", ""),
                "status": run.tags.get("kbench.status", ""),
                "n_splits_done": run.n_splits_done,
                "params": run.params,
                "tags": run.tags,
                "metrics": {
                    name: value
                    for name, value in run.metrics.items()
                    if not name.endswith("_by_split")
                },
                "run_id": run.run_id,
                "experiment_id": experiment.experiment_id,
                "start_ms": run.start_ms,
                "end_ms": run.end_ms,
            }
            for run in sorted(newest.values(), key=lambda each: (each.start_ms, each.run_id))
        ]

    def _index(self, experiment: Experiment) -> dict[tuple[str, str], Stored]:
        """All runs of ours in an experiment: searched once, then kept up to date.

        A reply that was lost may have left two runs of one identity: all but
        the best are deleted.
        """
        if experiment.id not in self._indexes:
            index: dict[tuple[str, str], Stored] = {}
            for run in live_runs(self._client, experiment.id):
                other = index.setdefault(run.identity, run)
                if other is not run:
                    worse, better = sorted([run, other], key=lambda each: each.preference)
                    self._client.delete_run(worse.run_id)
                    index[run.identity] = better
            self._indexes[experiment.id] = index
        return self._indexes[experiment.id]
