"""Delivery of results that the journals have and a store lacks; nothing is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kbench.errors import SuiteError
from kbench.features import Holder, Journal, Plans, cluster_id, lock_name, machine_id, state_folder
from kbench.messages import counted, did_you_mean
from kbench.records import Delivered
from kbench_mlflow.delivery.deliver import Delivery
from kbench_mlflow.tracking import Store, View


@dataclass(frozen=True)
class Synced:
    """Result of the synchronisation of one suite.

    Parameters
    ----------
    suite : str
    machine : str
        Owner of the results: this machine, or the clusters that it used.
    delivered : Delivered
        What the store has now.
    finished : int
        Cells that the journal has results for.
    unfinished : int
        Cells that were planned and have splits still to be computed.
    unread : int, default 0
        Plans that cannot be read: another version of kbench wrote them.
    """

    suite: str
    machine: str
    delivered: Delivered
    finished: int
    unfinished: int
    unread: int = 0

    @property
    def sentence(self) -> str:
        """The result in one line."""
        delivered = self.delivered
        text = f"{self.suite} in {delivered.uri}: "
        if delivered.problem:
            text += (
                f"kept: {counted(self.finished, 'finished cell')}, {delivered.written} written now"
            )
        else:
            text += f"{counted(delivered.stored, 'run')}, {delivered.written} written now"
        if self.unfinished:
            text += (
                f"; not finished: {counted(self.unfinished, 'cell')} (`kbench suite` goes on there)"
            )
        if self.unread:
            plans = "plan is" if self.unread == 1 else "plans are"
            text += (
                f"; {self.unread} {plans} of another version of kbench and passed over "
                "(`kbench suite` plans anew)"
            )
        return text


class _Busy(Exception):
    """Another process delivers this suite to this store now."""


def sync(
    store: str,
    suites: Sequence[str] = (),
    everything: bool = False,
    waiting: Callable[[Holder | None], None] | None = None,
    views: Mapping[str, View] | None = None,
) -> Iterator[Synced]:
    """Deliver results to the store at a URI that lacks them, one suite after the other.

    Ends with the first suite for which the store does not answer.

    Parameters
    ----------
    store : str
        URI of the MLflow store.
    suites : sequence of str, optional
        By default all that were run for this store.
    everything : bool, default False
        Also suites that were run for other stores only.
    waiting : callable, optional
        Called with the process that delivers the same at the moment; None
        where it is not known.
    views : mapping of str to View, optional
        Saved views for MLflow's pages of the suites.

    Raises
    ------
    SuiteError
        No such suite was ever run here, or none for this store.
    """
    name = Store(store).name
    places = (machine_id(), cluster_id())
    journals = {place: Journal(state_folder(place) / "journal.jsonl") for place in places}
    known = {place: Plans(journal).suites() for place, journal in journals.items()}
    ever = {suite for stores_of in known.values() for suite in stores_of}
    here = {
        suite for stores_of in known.values() for suite, names in stores_of.items() if name in names
    }
    missing = [suite for suite in suites if suite not in ever]
    if missing:
        raise SuiteError(
            *(f"no suite {name!r} was ever run here{did_you_mean(name, ever)}" for name in missing)
        )
    wanted = set(suites) or (ever if everything else here)
    if not wanted:
        shown = ", ".join(sorted(ever))
        hint = f"; name the suites to deliver there, or --all of them: {shown}" if ever else ""
        raise SuiteError(f"no suite was ever run for the store {name}{hint}")
    for place, journal in journals.items():
        for suite in known[place]:
            if suite in wanted:
                synced = _deliver(place, journal, suite, store, waiting, views)
                yield synced
                if synced.delivered.problem:
                    return


def settle(journal: Journal, suite: str, store: str) -> None:
    """Record that a store (by its name) has all finished cells of a suite."""
    Plans(journal).settle(suite, store)


def deliver_leftovers(
    journal: Journal, machine: str, store: str, views: Mapping[str, View] | None = None
) -> Iterator[Synced]:
    """Deliver results of earlier commands that were killed, or whose store was away.

    Suites that another process is working on are left to it. `machine` is the
    owner of the journal, `store` the URI of the MLflow store.
    """

    def leave(holder: Holder | None) -> None:
        raise _Busy

    for suite in Plans(journal).unsettled(Store(store).name):
        try:
            synced = _deliver(machine, journal, suite, store, leave, views, leftovers=True)
        except _Busy:
            continue
        yield synced
        if synced.delivered.problem:
            return


def _deliver(
    machine: str,
    journal: Journal,
    suite: str,
    store: str,
    waiting: Callable[[Holder | None], None] | None,
    views: Mapping[str, View] | None,
    leftovers: bool = False,
) -> Synced:
    """Deliver a suite; of leftovers only what was planned for this store."""
    plans, name = Plans(journal), Store(store).name
    with journal.lock(lock_name(suite, name), waiting):
        cells, measure = plans.cells(suite, name if leftovers else None)
        delivery = Delivery(store, suite, journal, machine, views)
        delivery.measure = measure
        delivery.budget = plans.budget(suite, name if leftovers else None)
        delivered = delivery.finish(cells)
        if not delivered.problem:
            plans.settle(suite, name)
    finished = sum(cell.is_finished for cell in cells)
    return Synced(suite, machine, delivered, finished, len(cells) - finished, plans.unread)
