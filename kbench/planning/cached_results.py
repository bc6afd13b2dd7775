"""Results that the journal has for planned cells already."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from kbench.planning.current_state import Present
from kbench.planning.planned import PlannedCell, task_key
from kbench.records import Limits, Manifest, Result
from kbench.storage.journal import Journal

LOOK_AHEAD = 16
"""Minimum number of splits of a cell to look up: more splits than planned may be cached."""

UNKNOWN = "dependencies unknown"
"""Why a result that was stored without its dependencies is not reused."""

SHOWN = 3  # changes that are named of a result


@dataclass
class Validity:
    """Decides which results of a journal are valid: code, data and dependencies are unchanged."""

    journal: Journal
    present: Present
    also_outdated: bool = False
    """If no result is valid, take the newest one, and say in its cell why it is out of date."""

    @cached_property
    def _manifests(self) -> Mapping[str, Manifest]:
        return self.journal.manifests()

    def explain(self, digest: str) -> str:
        """Return what has changed since a manifest was recorded; empty if nothing has."""
        if (manifest := self._manifests.get(digest)) is None:
            return UNKNOWN
        return "; ".join(self.present.why_changed(manifest)[:SHOWN])

    def choose(self, lines: Sequence[Mapping[str, object]]) -> tuple[Result | None, str]:
        """Return the newest valid result of a task's lines, and why others are not."""
        reason, outdated = "", None
        for line in lines:
            why = self.explain(str(line.get("manifest", "")))
            if (not why or self.also_outdated) and (result := _parse(line)) is not None:
                if not why:
                    return result, ""
                outdated = outdated or result
            reason = reason or why
        return outdated, reason


def recall(
    planned: Iterable[PlannedCell],
    validity: Validity,
    limits: Limits | None = None,
    retry_failed: bool = False,
) -> int:
    """Add the journal's valid results to cells.

    Returned is the number of missing splits that the journal has in lines that cannot be read.
    Where all splits that are asked for are ok, those that follow and are ok too belong to the cell
    as well: asking for fewer loses nothing. They do not if only they are out of date. Tasks that
    hit a limit which is higher in `limits` are left out, so that they are computed again;
    `retry_failed` leaves out all that failed.
    """
    planned, journal = list(planned), validity.journal
    unreadable: set[str] = set()
    spans = [(cell, range(max(cell.n_splits, LOOK_AHEAD))) for cell in planned if not cell.problem]
    while spans:
        wanted = {task_key(cell.key, i) for cell, span in spans for i in span}
        chosen = {key: validity.choose(lines) for key, lines in journal.results(wanted).items()}
        unreadable |= journal.unreadable
        unreadable |= {key for key, (result, why) in chosen.items() if result is None and not why}
        further = []
        for cell, span in spans:
            asked, all_ok = cell.n_splits, True
            for index in span:
                result, why = chosen.get(task_key(cell.key, index), (None, ""))
                is_ok = result is not None and result.is_ok
                all_ok = all_ok and is_ok and (index < asked or not why or bool(cell.outdated))
                if index >= asked and not all_ok:
                    break
                if result and (is_ok or not (retry_failed or _is_raised(result, limits))):
                    cell.results[index] = result
                if why and result:
                    cell.outdated = cell.outdated or why
                elif why:
                    cell.changed = cell.changed or why
                cell.n_splits = max(asked, index + 1)
            if all_ok:
                further.append((cell, range(span.stop, 2 * span.stop)))
        spans = further
    return len(unreadable & {task_key(cell.key, i) for cell in planned for i in cell.missing})


def recall_added(
    planned: Iterable[PlannedCell], validity: Validity, codes: Mapping[str, str]
) -> None:
    """Add the metrics that the journal stores in addition to the results of cells.

    `codes` has the identities of the metrics (`Planner.metric_code`). A value of another
    metric of the same name, one that is not valid, and one of an earlier result of its task
    are left out. What a task measured itself stays.
    """
    planned = list(planned)
    tasks = {result.task_key for cell in planned for result in cell.done}
    lines = validity.journal.read_added(tasks) if tasks and codes else {}
    if not lines:
        return
    for cell in planned:
        for index, result in cell.results.items():
            added = {
                line["name"]: line["value"]
                for line in lines.get(result.task_key, ())
                if line["ended_ms"] == result.ended_ms
                and codes.get(line["name"]) == line["code"]
                and (not line["code"] or not validity.explain(str(line.get("manifest", ""))))
            }
            if added and result.is_ok:
                cell.results[index] = replace(result, metrics={**added, **result.metrics})


def _parse(line: Mapping[str, object]) -> Result | None:
    try:
        return Result.from_json(line)
    except ValueError:
        return None


def _is_raised(result: Result, limits: Limits | None) -> bool:
    hit = {"timed_out": "task_timeout_s", "out_of_memory": "task_memory_mib"}.get(result.status)
    return bool(hit and limits and getattr(limits, hit) > getattr(result.limits, hit))
