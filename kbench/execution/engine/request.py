"""One task is measured, here or on a worker: in a sandbox, between two looks at the machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kbench import machine
from kbench.execution.contention import contention, snapshot
from kbench.execution.fetching import LOAD_TIME_S
from kbench.execution.sandbox import Outcome, Sandbox
from kbench.records import Limits, Task
from kbench.records.canonical import to_json

CPU_CLOCK_S = 0.05
"""Wall clock from which a share of CPU time can be told."""


@dataclass(frozen=True)
class Host:
    """Who computed a task: times mean something only together with it.

    Parameters
    ----------
    machine : str
        Identity of the machine (`kbench.machine.machine_id`).
    name : str
        Its host name.
    cpu : str
        Model of its CPU.
    calibration_s : float
        Seconds of a small fixed computation (`kbench.machine.calibrate`).
    """

    machine: str
    name: str
    cpu: str
    calibration_s: float

    @classmethod
    def here(cls) -> Host:
        """Describe and calibrate the machine on which this runs."""
        known = machine.describe()
        return cls(known.id, known.host, known.cpu, machine.calibrate())


@dataclass(frozen=True)
class Request:
    """One task as plain JSON values; it may travel to another machine.

    Parameters
    ----------
    checksum : str
        Of the dataset that the plan is about.
    arguments : mapping
        What `kbench.execution.entry_points:evaluate` takes beside the data.
    time_s, memory_mb : float
        Limits of the task.
    dataset : mapping
        The dataset's line of the suite, as JSON: how a host that lacks the
        data can get them.
    source_code : str
        Fingerprint of the code that makes the dataset.
    offline : bool
        Ask no server for data.
    load_time_s : float
        Limit of wall clock for getting the data.
    """

    checksum: str
    arguments: Mapping[str, Any]
    time_s: float
    memory_mb: float
    dataset: Mapping[str, Any] = field(default_factory=dict)
    source_code: str = ""
    offline: bool = False
    load_time_s: float = LOAD_TIME_S


def request_of(task: Task, limits: Limits, offline: bool) -> Request:
    """Return a task as plain values.

    Parameters
    ----------
    task : Task
    limits : Limits
        Those of the run.
    offline : bool
        Ask no server for data.
    """
    cell = task.cell
    return Request(
        checksum=task.checksum,
        arguments={
            "feature_map": to_json(cell.feature_map),
            "learner": to_json(cell.learner),
            "protocol": to_json(cell.protocol),
            "split": task.split_index,
            "kinds": list(task.kinds),
        },
        time_s=limits.time_s,
        memory_mb=limits.memory_mb,
        dataset=to_json(cell.dataset),
        source_code=task.source_code,
        offline=offline,
        load_time_s=LOAD_TIME_S,
    )


@dataclass(frozen=True)
class Answer:
    """What became of a request.

    Parameters
    ----------
    outcome : Outcome
        What the task returned, or why it did not.
    host : Host
        Who computed it.
    started_ms, ended_ms : int
        When, in milliseconds since 1970 (by the host's clock).
    doubts : tuple of str
        Why its times are not to be believed; empty if they are.
    lacks_data : bool
        The host could not get the data; another may.
    """

    outcome: Outcome
    host: Host
    started_ms: int
    ended_ms: int
    doubts: tuple[str, ...] = ()
    lacks_data: bool = False


def measure(
    request: Request,
    sandbox: Sandbox,
    cache: Path,
    host: Host,
    slots: int,
    wanted: Callable[[], bool] | None = None,
) -> Answer:
    """Compute one task in the sandbox of this machine.

    Parameters
    ----------
    request : Request
    sandbox : Sandbox
    cache : Path
        Folder of the data cache, which has the data.
    host : Host
        This machine.
    slots : int
        Tasks that kbench runs beside each other on this machine.
    wanted : callable, optional
        Once it returns False, the task is killed.
    """
    before, started_ms = snapshot(), now_ms()
    outcome = sandbox.run(
        "kbench.execution.entry_points:evaluate",
        {**request.arguments, "checksum": request.checksum, "cache": str(cache)},
        time_s=request.time_s,
        memory_mb=request.memory_mb,
        wanted=wanted,
    )
    doubts = contention(before, snapshot(), slots, _waited(outcome)).reasons
    return Answer(outcome, host, started_ms, now_ms(), doubts)


def now_ms() -> int:
    """Return milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def _waited(outcome: Outcome) -> float | None:
    """Return the share of its timed steps that a task spent off the CPU."""
    if outcome.status != "ok":
        return None
    measures = outcome.value["measures"]
    wall = measures["fit_time_s"] + measures["predict_time_s"]
    cpu = measures["fit_time_cpu_s"] + measures["predict_time_cpu_s"]
    # Clocks of CPU time may tick every few milliseconds, so that they say nothing of
    # short steps; those were repeated, and their median stands a wait or two.
    return max(0.0, 1.0 - cpu / wall) if wall >= CPU_CLOCK_S else 0.0
