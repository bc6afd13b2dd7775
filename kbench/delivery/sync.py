"""What the journals have and a store lacks is brought there; nothing is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kbench.delivery.deliver import Delivered, Delivery, lock_name
from kbench.delivery.owed import Plans
from kbench.errors import SuiteError
from kbench.machine import cluster_id, machine_id
from kbench.messages import counted, did_you_mean
from kbench.storage.journal import Journal, state_folder
from kbench.storage.locks import Holder
from kbench.tracking import Store, View


@dataclass(frozen=True)
class Synced:
    """What became of one suite.

    Parameters
    ----------
    suite : str
        Its name.
    machine : str
        Whose results: this machine's, or those of clusters that it used.
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
        """What became of it, in one line."""
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
    """Another process brings this suite to this store now."""


def sync(
    store: str,
    suites: Sequence[str] = (),
    everything: bool = False,
    waiting: Callable[[Holder | None], None] | None = None,
    views: Mapping[str, View] | None = None,
) -> Iterator[Synced]:
    """Deliver what was computed to a store that lacks it, one suite after the other.

    Ends with the first suite for which the store does not answer.

    Parameters
    ----------
    store : str
        URI of the MLflow store.
    suites : sequence of str, optional
        Which; all that were run for this store by default.
    everything : bool, default False
        Also suites that were run for other stores only.
    waiting : callable, optional
        Is told who delivers the same at the moment; None where it is not known.
    views : mapping of str to View, optional
        What MLflow's page of a suite can open as.

    Raises
    ------
    SuiteError
        No such suite was ever run here, or none for this store.
    """
    uri = Store(store).uri
    places = (machine_id(), cluster_id())
    journals = {place: Journal(state_folder(place) / "journal.jsonl") for place in places}
    known = {place: Plans(journal).suites() for place, journal in journals.items()}
    ever = {suite for found in known.values() for suite in found}
    here = {suite for found in known.values() for suite in found if uri in found[suite]}
    missing = [suite for suite in suites if suite not in ever]
    if missing:
        shown = f"; there are: {', '.join(sorted(ever))}" if ever else ""
        raise SuiteError(
            *(f"no suite {each!r} was ever run here{did_you_mean(each, ever)}" for each in missing),
            *([f"`kbench suite` writes down what it plans{shown}"]),
        )
    wanted = set(suites) or (ever if everything else here)
    if not wanted:
        name = Store(uri).name
        raise SuiteError(
            f"no suite was ever run for the store {name}"
            + (
                f"; name the suites to bring there, or --all of them: {', '.join(sorted(ever))}"
                if ever
                else ""
            )
        )
    for place, journal in journals.items():
        for suite in known[place]:
            if suite in wanted:
                found = _deliver(place, journal, suite, uri, waiting, views)
                yield found
                if found.delivered.problem:
                    return


def deliver_leftovers(
    journal: Journal, machine: str, store: str, views: Mapping[str, View] | None = None
) -> Iterator[Synced]:
    """Deliver what earlier commands could not bring to a store: killed, or it was away.

    Suites that another process is working on are left to it.

    Parameters
    ----------
    journal : Journal
    machine : str
        Whose journal it is.
    store : str
        URI of the MLflow store.
    views : mapping of str to View, optional
        What MLflow's page of a suite can open as.
    """

    def leave(holder: Holder | None) -> None:
        raise _Busy

    uri = Store(store).uri
    for suite in Plans(journal).unsettled(uri):
        try:
            found = _deliver(machine, journal, suite, uri, leave, views, planned_for=uri)
        except _Busy:
            continue
        yield found
        if found.delivered.problem:
            return


def _deliver(
    machine: str,
    journal: Journal,
    suite: str,
    uri: str,
    waiting: Callable[[Holder | None], None] | None,
    views: Mapping[str, View] | None,
    planned_for: str | None = None,
) -> Synced:
    plans = Plans(journal)
    with journal.lock(lock_name(suite, uri), waiting):
        cells, measure = plans.cells(suite, planned_for)
        delivered = Delivery(uri, suite, journal, machine, measure, views).finish(cells)
        if not delivered.problem:
            plans.settle(suite, uri)
    finished = sum(each.is_finished for each in cells)
    return Synced(suite, machine, delivered, finished, len(cells) - finished, plans.unread)
