"""Requests and answers: one task measured in a sandbox, here or on a worker."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from kbench import machine
from kbench.execution.contention import contention, snapshot
from kbench.execution.sandbox import CallOutcome, Sandbox
from kbench.records import Limits, Task
from kbench.records.canonical import to_json

CPU_CLOCK_S = 0.05
"""Wall clock from which a share of CPU time can be measured."""

_FIELDS = ("measures", "details", "predictions")
_TIMES = ("fit_time_s", "predict_time_s", "fit_time_cpu_s", "predict_time_cpu_s")


@dataclass(frozen=True)
class Host:
    """The machine that computed a task: times mean something only together with it.

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
        """Describe and calibrate this machine."""
        known = machine.describe()
        return cls(known.id, known.host, known.cpu, machine.calibrate())


@dataclass(frozen=True)
class Request:
    """One task with the terms of its run; it may travel to another machine.

    `offline` forbids a host that lacks the data to ask a server for them.
    """

    task: Task
    limits: Limits
    offline: bool = False


@dataclass(frozen=True)
class Answer:
    """The outcome of a request, and where and when it was computed.

    Parameters
    ----------
    outcome : CallOutcome
    host : Host
    started_ms, ended_ms : int
        Milliseconds since 1970, by the host's clock.
    doubts : tuple of str
        Reasons to doubt the times; empty if there are none.
    lacks_data : bool
        The host could not get the data; another may.
    """

    outcome: CallOutcome
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
    """Compute one task in the sandbox of this machine, which is `host`.

    The data cache in the folder `cache` has the data. `slots` is the number of tasks
    that kbench runs concurrently on this machine. Once `wanted` returns False, the task
    is killed.
    """
    task, cell = request.task, request.task.cell
    payload = {
        "checksum": task.checksum,
        "kinds": list(task.kinds),
        "cache": str(cache),
        "feature_map": to_json(cell.feature_map),
        "learner": to_json(cell.learner),
        "protocol": to_json(cell.protocol),
        "split": task.split_index,
    }
    before, started_ms = snapshot(), now_ms()
    outcome = sandbox.run(
        "kbench.execution.entry_points:evaluate_task",
        payload,
        time_s=request.limits.time_s,
        memory_mb=request.limits.memory_mb,
        wanted=wanted,
    )
    outcome = _checked(outcome)
    doubts = contention(before, snapshot(), slots, _waited(outcome)).reasons
    return Answer(outcome, host, started_ms, now_ms(), doubts)


def now_ms() -> int:
    """Return milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def _checked(outcome: CallOutcome) -> CallOutcome:
    """Return an outcome; an error where the value of a task lacks fields."""
    if outcome.status != "ok":
        return outcome
    value = outcome.value if isinstance(outcome.value, Mapping) else {}
    measures = value.get("measures")
    lacking = [name for name in _FIELDS if name not in value]
    if isinstance(measures, Mapping):
        lacking += [f"measures[{name!r}]" for name in _TIMES if name not in measures]
    if not lacking:
        return outcome
    error = f"the answer of the task lacks {', '.join(lacking)}"
    return replace(outcome, status="error", value=None, error=error)


def _waited(outcome: CallOutcome) -> float | None:
    """Return the share of its timed steps that a task spent off the CPU."""
    if outcome.status != "ok":
        return None
    measures = outcome.value["measures"]
    wall = measures["fit_time_s"] + measures["predict_time_s"]
    cpu = measures["fit_time_cpu_s"] + measures["predict_time_cpu_s"]
    # Clocks of CPU time may tick every few milliseconds and cannot measure short steps;
    # those were repeated, and their median tolerates a wait or two.
    return max(0.0, 1.0 - cpu / wall) if wall >= CPU_CLOCK_S else 0.0
