"""Requests, answers and results: one task measured in a sandbox, here or on a worker."""

import contextlib
import json
import time
from base64 import b64decode, b64encode
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from kbench import machine
from kbench._version import __version__
from kbench.errors import DatasetError, KbenchError, LeftOutError
from kbench.evaluation.device import ADDRESS_MIB
from kbench.evaluation.scores import compute_scores
from kbench.evaluation.split_view import Assignment, assign
from kbench.evaluation.splits import row_groups
from kbench.execution.handover import Handover
from kbench.execution.plugins import importable
from kbench.execution.sandbox import BACKSTOP_MIB, CallOutcome, Sandbox
from kbench.execution.warm_parents import WarmParents
from kbench.machine import contention, snapshot
from kbench.messages import format_memory
from kbench.planning.current_state import Present
from kbench.planning.planned import PlannedCell, task_key
from kbench.planning.suite_plan import Options
from kbench.records import Cell, Details, Limits, Manifest, Result, Task
from kbench.records.canonical import (
    encodable,
    from_json,
    read_protocol,
    to_json,
    to_json_with_label,
)
from kbench.registry.installed import list_plugins
from kbench.storage.datacache import DataCache
from kbench.storage.journal import Journal
from kbench.storage.predictions import blob_of_seed, pack

_LEFT_OUT = f"{LeftOutError.__module__}.{LeftOutError.__name__}: "

LOCK = "computing"
"""Name of the lock that every kbench of a user holds while it computes."""

CPU_CLOCK_S = 0.05
"""Wall clock from which a share of CPU time can be measured."""

KEEP = 64
"""Assignments that are kept for further methods on the same splits."""

KEEP_ROWS = 100_000
"""Rows up to which they are kept."""

_REFS = ("dataset", "feature_map", "learner")
_FIELDS = ("metrics", "details")
_TIMES = ("fit_time_s", "predict_time_s", "fit_time_cpu_s", "predict_time_cpu_s")


@dataclass(frozen=True)
class Host:
    """The machine that computed a task: times mean something only together with it."""

    machine: str
    """Identity of the machine (`kbench.machine.machine_id`)."""
    name: str
    cpu: str
    machine_speed_s: float
    """Seconds of a small fixed computation (`kbench.machine.calibrate`)."""

    @classmethod
    def here(cls) -> "Host":
        """Describe and calibrate this machine."""
        facts = machine.describe()
        return cls(facts.id, facts.host, facts.cpu, machine.calibrate())


@dataclass(frozen=True)
class Request:
    """One task with the terms of its run; it may travel to another machine.

    `offline` forbids a host that lacks the data to ask a server for them. `preload` is what
    `compute_here` imports before the task (see `Terms`).
    """

    task: Task
    limits: Limits
    offline: bool = False
    preload: tuple[str, ...] = ()
    slot: int = 0
    """Number of the GPU that the task has, if its protocol has one."""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values, for a file or a message."""
        cell = self.task.cell
        refs = {name: to_json_with_label(getattr(cell, name)) for name in _REFS}
        task = vars(self.task) | {"cell": {**refs, "protocol": to_json(cell.protocol)}}
        return vars(self) | {"task": task | {"predicted": None}, "limits": asdict(self.limits)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Request":
        """Read what `to_json` returned."""
        cell = values["task"]["cell"]
        refs = {name: from_json(cell[name]) for name in _REFS}
        task = {name: from_json(value) for name, value in values["task"].items() if name != "cell"}
        return cls(
            Task(**task, cell=Cell(**refs, protocol=read_protocol(cell["protocol"]))),
            Limits(**values["limits"]),
            values["offline"],
            tuple(values["preload"]),
            values["slot"],
        )


@dataclass(frozen=True)
class Answer:
    """The outcome of a request, and where and when it was computed."""

    outcome: CallOutcome
    host: Host
    started_ms: int
    ended_ms: int
    """Milliseconds since 1970, by the host's clock."""
    contention: tuple[str, ...] = ()
    """Reasons why the times are unreliable; empty if there are none."""
    lacks_data: bool = False
    """The host could not get the data; another may."""
    is_cut_off: bool = False
    """The run was over before the task: it is not a result."""
    manifest: Manifest | None = None
    """The sources of the result; None if they are unknown."""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values, for a file or a message."""
        outcome = vars(self.outcome)
        if self.outcome.status == "ok":
            packed = [b64encode(each).decode() for each in self.outcome.value["predictions"]]
            outcome = outcome | {"value": self.outcome.value | {"predictions": packed}}
        manifest = None if self.manifest is None else self.manifest.to_json()
        return vars(self) | {"outcome": outcome, "host": vars(self.host), "manifest": manifest}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Answer":
        """Read what `to_json` returned."""
        outcome = CallOutcome(**values["outcome"])
        if outcome.status == "ok":
            packed = [b64decode(each) for each in outcome.value["predictions"]]
            outcome = replace(outcome, value=outcome.value | {"predictions": packed})
        host, reasons = Host(**values["host"]), tuple(values["contention"])
        extra: dict[str, Any] = {"host": host, "contention": reasons}
        if values.get("manifest") is not None:
            extra["manifest"] = Manifest.from_json(values["manifest"])
        return cls(**{**values, "outcome": outcome, **extra})

    @classmethod
    def lost(cls, error: str) -> "Answer":
        """Return the answer of a task whose job has ended without one: a crash."""
        return cls(CallOutcome("crashed", error=error), Host.here(), now_ms(), now_ms())


class Assignments:
    """Rows and labels of splits, read from a data cache and kept while they are small."""

    def __init__(self, cache: DataCache) -> None:
        self.cache = cache
        self._kept: OrderedDict[str, Assignment] = OrderedDict()
        self._groups: tuple[str, np.ndarray] = ("", np.empty(0))

    def get(self, task: Task) -> Assignment:
        """Return the assignment of a task; raises DatasetError if the data cannot be split."""
        protocol = task.cell.protocol
        key = json.dumps([task.checksum, task.split_index, to_json(protocol)], sort_keys=True)
        with contextlib.suppress(KeyError):
            return self._kept[key]
        dataset = self.cache.load(task.checksum)
        checksum, groups = self._groups
        if checksum != task.checksum and not dataset.pairwise:
            has_copies = self.cache.describe(task.checksum).duplicate_fraction > 0
            groups = row_groups(dataset.X) if has_copies else np.arange(dataset.X.shape[0])
            self._groups = task.checksum, groups
        assignment = assign(dataset, protocol, task.split_index, groups)
        if len(dataset.y) <= KEEP_ROWS:
            self._kept[key] = assignment
            while len(self._kept) > KEEP:
                self._kept.popitem(last=False)
        return assignment


def compute(
    request: Request,
    sandbox: Sandbox,
    assignments: Assignments,
    host: Host,
    slots: int,
    present: Present,
    wanted: Callable[[], bool] | None = None,
) -> Answer:
    """Compute one task in the sandbox of this machine, which is `host`.

    The data cache of `assignments` has the data; `present` lists what is installed
    here. `slots` is the number of tasks that kbench runs concurrently on this machine. Once
    `wanted` returns False, the task is killed.
    """
    task, cell = request.task, request.task.cell
    payload = {
        "checksum": task.checksum,
        "kinds": list(task.kinds),
        "cache": str(assignments.cache.root),
        "feature_map": to_json(cell.feature_map),
        "learner": to_json(cell.learner),
        "protocol": to_json(cell.protocol),
        "split": task.split_index,
        "slot": request.slot,
        "memory_mib": request.limits.task_memory_mib,
    }
    started_ms, begun = now_ms(), time.monotonic()

    def ended_ms() -> int:
        """Return the end by a monotonic clock."""
        return started_ms + round(1000 * (time.monotonic() - begun))

    try:
        assignment = assignments.get(task)
    except DatasetError as error:
        return Answer(CallOutcome("error", error=str(error)), host, started_ms, ended_ms())
    handover = Handover(assignment, cell.protocol.map_seeds)
    before = snapshot()
    outcome = sandbox.run(
        "kbench.execution.task_functions:evaluate_task",
        payload,
        time_s=request.limits.task_timeout_s,
        memory_mib=request.limits.task_memory_mib,
        address_mib=BACKSTOP_MIB if cell.protocol.device == "cpu" else ADDRESS_MIB,
        wanted=wanted,
        converse=handover,
    )
    after = snapshot()
    manifest = present.build(outcome.recorded)
    value = outcome.value if isinstance(outcome.value, Mapping) else {}
    if outcome.status == "ok" and value.get("records", task.records) != task.records:
        # what computed it is not what was planned: whatever it is, it is not reused
        why = "the plugin gives other records than when the run was planned, such as another grid"
        outcome, manifest = _fail(outcome, f"{why}: run the same command again"), None
    outcome = replace(outcome, recorded=())
    if outcome.status == "ok":
        outcome = _score(outcome, assignment, handover, task)
    elif _LEFT_OUT in outcome.error:
        reason = outcome.error.rpartition(_LEFT_OUT)[2].strip()
        outcome = replace(outcome, status="skipped", error=reason)
    reasons = contention(before, after, slots, _waiting_share(outcome)).reasons
    return Answer(outcome, host, started_ms, ended_ms(), reasons, manifest=manifest)


def compute_here(request: Request) -> Answer:
    """Compute one task in a sandbox of its own: what a job of a batch system does.

    The data cache of this machine, or one shared between machines, has the data. Waits
    while another kbench of this user has the machine alone.
    """
    plugins = request.task.plugins
    importable(list_plugins())  # the process of the task leaves out what cannot be imported here
    with (
        Journal().lock(LOCK, shared=True),
        closing(WarmParents({plugins: request.preload})) as parents,
        parents.using(plugins) as sandbox,
    ):
        return compute(request, sandbox, Assignments(DataCache()), Host.here(), 1, Present())


def now_ms() -> int:
    """Return milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def _score(
    outcome: CallOutcome, assignment: Assignment, handover: Handover, task: Task
) -> CallOutcome:
    """Return the outcome of a task that is ok, with the scores of its predictions; or its error."""
    value = outcome.value if isinstance(outcome.value, Mapping) else {}
    lacking = [name for name in _FIELDS if not isinstance(value.get(name), Mapping)]
    if "metrics" not in lacking:
        lacking += [f"metrics[{name!r}]" for name in _TIMES if name not in value["metrics"]]
    if lacking:
        return _fail(outcome, f"the answer of the task lacks {', '.join(lacking)}")
    if handover.committed is None:
        return _fail(outcome, "the task has handed over no predictions")
    try:
        # texts of a task may hold what no file and no server can
        value = encodable(value)
        evaluation = compute_scores(
            assignment,
            handover.committed,
            {str(name): float(number) for name, number in value["metrics"].items()},
            Details.from_json(value["details"]),
            f"learner {task.cell.learner.name!r}",
        )
    except (KbenchError, TypeError, ValueError, OverflowError) as error:
        return _fail(outcome, str(error))
    key = task_key(task.cell_key, task.split_index)
    scored_value = {
        "metrics": evaluation.metrics,
        "details": asdict(evaluation.details),
        "predictions": [pack(predictions, key) for predictions in evaluation.of_seeds],
    }
    return replace(outcome, value=scored_value)


def _fail(outcome: CallOutcome, error: str) -> CallOutcome:
    return replace(outcome, status="error", value=None, error=error)


def _waiting_share(outcome: CallOutcome) -> float | None:
    """Return the share of its timed steps that a task spent off the CPU."""
    if outcome.status != "ok":
        return None
    metrics = outcome.value["metrics"]
    wall = metrics["fit_time_s"] + metrics["predict_time_s"]
    cpu = metrics["fit_time_cpu_s"] + metrics["predict_time_cpu_s"]
    # Clocks of CPU time may tick every few milliseconds and cannot measure short steps;
    # those were repeated, and their median tolerates a wait or two.
    return max(0.0, 1.0 - cpu / wall) if wall >= CPU_CLOCK_S else 0.0


def write_result(
    journal: Journal, task: Task, answer: Answer, limits: Limits, options: Options
) -> Result:
    """Write the result of a task to the journal and return it.

    Its manifest and its predictions are stored before the line that refers to them.
    """
    outcome, host, manifest = answer.outcome, answer.host, answer.manifest
    key = task_key(task.cell_key, task.split_index)
    metrics, details, error = {}, Details(), outcome.error
    if outcome.status == "out_of_memory" and task.predicted is not None:
        error += f"; {format_memory(task.predicted.memory_mib.value)} were predicted"
    if outcome.status == "ok":
        value = outcome.value
        metrics = {**value["metrics"], "peak_memory_mib": outcome.peak_memory_mib}
        details = replace(Details.from_json(value["details"]), contention=answer.contention)
    result = Result(
        task_key=key,
        cell_key=task.cell_key,
        split=task.split_index,
        status=outcome.status,
        metrics=metrics,
        details=details,
        error=error,
        printed=outcome.printed,
        started_ms=answer.started_ms,
        ended_ms=answer.ended_ms,
        seconds=outcome.seconds,
        limits=replace(limits, n_splits=None),
        jobs=options.jobs,
        timing=options.timing,
        version=__version__,
        machine=host.machine,
        host=host.name,
        cpu=host.cpu,
        machine_speed_s=host.machine_speed_s,
        cpu_s=outcome.cpu_s,
        predicted=task.predicted,
        manifest="" if manifest is None else manifest.digest,
    )
    if manifest is not None:
        journal.keep_manifest(manifest)
    for number, content in enumerate(outcome.value["predictions"] if result.is_ok else ()):
        journal.save_blob(result.address, blob_of_seed(number), content)
    journal.append("result", **result.to_json())
    return result


def note_problems(journal: Journal, cells: Iterable[PlannedCell]) -> None:
    """Journal cells that cannot be computed; their runs have the time of the first line."""
    seen = {(line["cell_key"], line["reason"]): line["at_ms"] for line in journal.read("problem")}
    for cell in cells:
        if (problem := cell.problem) is None:
            continue
        key = (cell.key, problem.reason)
        if key not in seen:
            seen[key] = now_ms()
            journal.append(
                "problem",
                cell_key=cell.key,
                status=problem.status,
                reason=problem.reason,
                at_ms=seen[key],
            )
        cell.problem = replace(problem, since_ms=seen[key])
