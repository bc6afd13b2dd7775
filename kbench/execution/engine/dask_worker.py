"""What runs in a Dask worker: it says who it is, warms up, and measures tasks.

The warm parent of the tasks is kept for one run in each worker process: the code
may have changed until the next. It lives as long as the client holds the future
of `prepare`, so that a client that dies leaves nothing behind.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from kbench.errors import DatasetError
from kbench.execution.components import parameter_mistakes
from kbench.execution.engine.request import Answer, Host, Request, measure, now_ms
from kbench.execution.engine.same_code import parts
from kbench.execution.engine.this_machine import LOCK
from kbench.execution.sandbox import Outcome, Sandbox
from kbench.records.canonical import from_json
from kbench.storage.datacache import DataCache
from kbench.storage.journal import Journal

_LOOK_S = 1.0
_GOING = ("closing", "closed", "failed")


@dataclass(frozen=True)
class Prepared:
    """What a worker says when it is ready.

    Parameters
    ----------
    host : Host
        The machine it runs on.
    problems : tuple of str
        What is wrong with the parameters of components, as its plugins see them.
    """

    host: Host
    problems: tuple[str, ...]


class ReleasedError(LookupError):
    """A worker has let go of a run: its client was away for a while, say."""


@dataclass(frozen=True)
class _Here:
    sandbox: Sandbox
    cache: DataCache
    host: Host
    until_released: ExitStack


_RUNS: dict[tuple[str, str], _Here] = {}
"""By run and address of the worker: a process may hold several workers."""


def describe(own: Sequence[str], modules: Sequence[str]) -> dict[str, str]:
    """Say which versions and code this worker has (`kbench.execution.engine.parts`)."""
    return parts(own, modules)


def prepare(run: str, preload: Sequence[str], components: Mapping[str, Sequence[Any]]) -> Prepared:
    """Start the warm parent of a run's tasks, and check the components in it.

    Raises
    ------
    ReleasedError
        The client went while this waited for the machine.
    """
    worker, key = _me()

    def still_wanted() -> None:
        if not _is_wanted(worker, key):
            raise ReleasedError(run)

    with ExitStack() as opened:
        # waits for a kbench that wants this machine alone, and is seen by the next
        opened.enter_context(Journal().lock(LOCK, shared=True, poll=still_wanted))
        sandbox = Sandbox(preload=preload)
        opened.callback(sandbox.close)
        here = _Here(sandbox, DataCache(), Host.here(), opened.pop_all())
    _RUNS[run, worker.address] = here
    threading.Thread(
        target=_release, args=(run, worker, key, here), name="kbench-release", daemon=True
    ).start()
    return Prepared(here.host, tuple(parameter_mistakes(sandbox, components)))


def answer(run: str, request: Request, slots: int) -> Answer:
    """Measure one task, after getting its data if they are not here.

    Raises
    ------
    ReleasedError
        `prepare` must be called again.
    """
    worker, key = _me()
    here = _RUNS.get((run, worker.address))
    if here is None:
        raise ReleasedError(run)
    wanted = partial(_is_wanted, worker, key)
    started_ms = now_ms()
    problem = _fetch(here, request, wanted)
    if problem:
        outcome = Outcome("error", error=f"{problem} (host {here.host.name})")
        return Answer(outcome, here.host, started_ms, now_ms(), lacks_data=True)
    found = measure(request, here.sandbox, here.cache.root, here.host, slots, wanted)
    if _RUNS.get((run, worker.address)) is not here:
        raise ReleasedError(run)  # whatever it found, its warm parent was ended under it
    return found


def _fetch(here: _Here, request: Request, wanted: Any) -> str:
    """Get the data of a request if need be; returns why they cannot be had."""
    if _is_there(here.cache, request.checksum):
        return ""
    # one process of this host asks the source, the others wait for what it gets
    with Journal().lock(f"data {request.checksum}"):
        if _is_there(here.cache, request.checksum):
            return ""
        outcome = here.sandbox.run(
            "kbench.execution.entry_points:load",
            {
                "dataset": request.dataset,
                "code": request.source_code,
                "cache": str(here.cache.root),
                "offline": request.offline,
            },
            time_s=request.load_time_s,
            wanted=wanted,
        )
    if _is_there(here.cache, request.checksum):
        return ""
    ref = from_json(request.dataset)
    if outcome.status != "ok":
        return f"the data of {ref.label} cannot be loaded: {outcome.error}"
    if "unavailable" in outcome.value:
        return f"the data of {ref.label} cannot be had: {outcome.value['unavailable']}"
    found = here.cache.lookup(ref.name, request.dataset["params"], request.source_code)
    return (
        f"the data of {ref.label} are not those of the plan: "
        f"checksum {found or 'unknown'} instead of {request.checksum}"
    )


def _is_there(cache: DataCache, checksum: str) -> bool:
    try:
        cache.describe(checksum)
    except DatasetError:
        return False
    return True


def _me() -> tuple[Any, Any]:
    """Return the worker on which this runs and the key of the task."""
    from distributed import get_worker

    worker = get_worker()
    return worker, worker.get_current_task()


def _is_wanted(worker: Any, key: Any) -> bool:
    """Tell whether a client still holds the future of a task."""
    task = worker.state.tasks.get(key)
    if task is None or worker.status.name in _GOING:
        return False
    return task.state in ("executing", "long-running", "memory")


def _release(run: str, worker: Any, key: Any, here: _Here) -> None:
    while _is_wanted(worker, key):
        time.sleep(_LOOK_S)
    # a later `prepare` of the same run may have put its own there
    if _RUNS.get((run, worker.address)) is here:
        del _RUNS[run, worker.address]
    here.until_released.close()
