"""Functions that run in a Dask worker: compare it, warm it up, and measure tasks.

The warm parent of the tasks is kept for one run in each worker process: the code
may have changed until the next. It lives as long as the client holds the future
of `prepare`, so that a client that dies leaves nothing behind.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import Any

from kbench import features
from kbench.errors import ClusterError, DatasetError
from kbench.messages import last_line
from kbench.records.canonical import digest, to_json

_LOOK_S = 1.0
_ANY = ""
"""Stands for the code that made data: their checksum decides whether they are the right ones."""

_LEAVING = ("closing", "closed", "failed")


class ReleasedError(LookupError):
    """A worker has released a run, for example because its client was unreachable for a while."""


@dataclass(frozen=True)
class _Run:
    """The state of a run in this worker, which `release` closes."""

    parents: features.WarmParents
    assignments: features.Assignments
    host: features.Host
    present: features.Present
    release: ExitStack


_RUNS: dict[tuple[str, str], _Run] = {}
"""By run and address of the worker: a process may hold several workers."""


def prepare(
    run: str,
    preload: features.Preload,
    components: Mapping[str, Sequence[object]],
    wanted: features.Manifest,
) -> tuple[features.Host | None, tuple[str, ...]]:
    """Start the warm parent of a run's tasks, and check the components in it.

    Returns the machine of the worker, and why it is not used: it would not compute the same, or
    its plugins find errors in parameters. A worker that does not compute them from what is
    wanted starts none. ReleasedError is raised if the client leaves while this waits for the
    machine.
    """
    worker, key = _current_task()

    def still_wanted() -> None:
        if not _is_wanted(worker, key):
            raise ReleasedError(run)

    features.importable(
        features.list_plugins()
    )  # the tasks' processes leave out what cannot be imported here
    with ExitStack() as opened:
        # a kbench may hold this machine exclusively; the next one waits for this
        opened.enter_context(features.Journal().lock(features.LOCK, shared=True, poll=still_wanted))
        if different := wanted.differences(read_manifest(preload, components)):
            return None, tuple(different)
        parents = features.WarmParents(preload)
        opened.callback(parents.close)
        host, assignments = features.Host.here(), features.Assignments(features.DataCache())
        run_ = _Run(parents, assignments, host, features.Present(), opened.pop_all())
    _RUNS[run, worker.address] = run_
    threading.Thread(
        target=_release, args=(run, worker, key, run_), name="kbench-release", daemon=True
    ).start()
    with parents.using(parents.every) as sandbox:
        return run_.host, tuple(features.parameter_mistakes(sandbox, components))


def answer(run: str, request: features.Request, slots: int) -> features.Answer:
    """Compute one task, after getting its data if need be.

    ReleasedError is raised if `prepare` must be called again.
    """
    worker, key = _current_task()
    if (run_ := _RUNS.get((run, worker.address))) is None:
        raise ReleasedError(run)
    wanted = partial(_is_wanted, worker, key)
    started_ms = features.now_ms()
    if problem := _fetch(run_, request, wanted):
        outcome = features.CallOutcome("error", error=f"{problem} (host {run_.host.name})")
        return features.Answer(outcome, run_.host, started_ms, features.now_ms(), lacks_data=True)
    with run_.parents.using(request.task.plugins) as sandbox:
        measured = features.compute(
            request, sandbox, run_.assignments, run_.host, slots, run_.present, wanted
        )
    if measured.manifest is not None:
        measured = replace(measured, manifest=measured.manifest.across_hosts())
    if _RUNS.get((run, worker.address)) is not run_:
        raise ReleasedError(run)  # the warm parent was ended under the task
    return measured


def _fetch(run: _Run, request: features.Request, wanted: Any) -> str:
    """Get the data of a request if need be; return the reason if they are unavailable."""
    checksum = request.task.checksum
    if _is_cached(run.assignments.cache, checksum):
        return ""
    ref = request.task.cell.dataset
    plain = to_json(ref)
    # one process of this host asks the source, the others wait for its result
    with features.Journal().lock(f"data {checksum}"):
        if _is_cached(run.assignments.cache, checksum):
            return ""
        payload = {
            "dataset": plain,
            "code": _ANY,
            "cache": str(run.assignments.cache.root),
            "offline": request.offline,
        }
        # its checksum shows whether a plugin has an effect on the data
        with run.parents.using(run.parents.every) as sandbox:
            outcome = sandbox.run(
                "kbench.execution.task_functions:load",
                payload,
                time_s=features.LOAD_TIME_S,
                memory_mib=features.load_memory_mib(),
                wanted=wanted,
            )
    if _is_cached(run.assignments.cache, checksum):
        return ""
    if outcome.status != "ok":
        return f"the data of {ref.label} cannot be loaded: {outcome.error}"
    if "unavailable" in outcome.value:
        return f"the data of {ref.label} are unavailable: {outcome.value['unavailable']}"
    cached = run.assignments.cache.lookup(ref.name, plain["params"], _ANY)
    return (
        f"the data of {ref.label} differ from those of the plan: checksum {cached or 'unknown'} "
        f"instead of {checksum}"
    )


def _is_cached(cache: features.DataCache, checksum: str) -> bool:
    try:
        cache.describe(checksum)
    except DatasetError:
        return False
    return True


def _current_task() -> tuple[Any, Any]:
    """Return the worker on which this runs and the key of the task."""
    from distributed import get_worker

    worker = get_worker()
    return worker, worker.get_current_task()


def _is_wanted(worker: Any, key: object) -> bool:
    """Whether a client still holds the future of a task."""
    task = worker.state.tasks.get(key)
    if task is None or worker.status.name in _LEAVING:
        return False
    return task.state in ("executing", "long-running", "memory")


def _release(run: str, worker: Any, key: object, entry: _Run) -> None:
    while _is_wanted(worker, key):
        time.sleep(_LOOK_S)
    # a later `prepare` of the same run may have replaced it
    if _RUNS.get((run, worker.address)) is entry:
        del _RUNS[run, worker.address]
    entry.release.close()


PROBE_TIME_S = 120.0
"""Wall clock in which a host must have loaded all components."""


def read_manifest(
    preload: features.Preload, components: Mapping[str, Sequence[object]]
) -> features.Manifest:
    """Return what this host computes components from, with all of kbench and the BLAS.

    The components are loaded in a process of their own, and what it loads and reads is
    recorded. ClusterError is raised if that process ends or has no end.
    """
    with closing(features.WarmParents(preload)) as parents, parents.using(parents.every) as sandbox:
        outcome = sandbox.run(
            "kbench.execution.task_functions:probe", {"components": components}, time_s=PROBE_TIME_S
        )
    if outcome.status != "ok":
        raise ClusterError(
            f"the components cannot be loaded ({outcome.status}): {last_line(outcome.error)}"
        )
    present = features.Present()
    # what brings a task to its evaluation must be the same too, such as the form of its answer
    core = features.Manifest(
        {module: present.module(module) for module in features.list_modules("kbench")}
    )
    made = (present.build(outcome.recorded) or features.Manifest()) | core
    present.save()
    # no file of a component names the BLAS, which decides the last digits of a product of matrices
    versions = features.machine.versions()
    named = {name: versions.get(name) for name in ("kbench-core", "blas")}
    return _strip_paths(made.across_hosts()) | features.Manifest(distributions=named)


def _strip_paths(manifest: features.Manifest) -> features.Manifest:
    """Name files outside of packages by their last part: folders may be others on each host."""
    files: dict[str, str | None] = {}
    outside: dict[str, list[str | None]] = {}
    for name, content in manifest.files.items():
        if Path(name).is_absolute():
            outside.setdefault(Path(name).name, []).append(content)
        else:
            files[name] = content
    for name, contents in outside.items():
        # of one name there may be several, which are compared together
        several = digest(sorted(each or "" for each in contents))
        files[name] = contents[0] if len(contents) == 1 else several
    return replace(manifest, files=files)


def sum_rows(
    executor: Executor, sums_of: Callable[[int, int], features.Sums], n_rows: int, n_parts: int = 64
) -> features.Sums:
    """Return the sums over all rows, of which workers compute the parts.

    Parts are added in the order of their rows: the digits do not depend on the number of workers.
    Only sums travel: a part of a map with p components has about 8 p^2 bytes.

    Parameters
    ----------
    executor : concurrent.futures.Executor
        The workers; those of a Dask cluster are ``Client(address).get_executor(pure=False)``.
    sums_of : callable
        Returns the `Sums` over rows `first` to `last`, exclusive; all parts have one shift. It runs
        on a worker, and reads the rows there.
    n_rows : int
        Number of rows.
    n_parts : int, default 64
        Number of parts, of about equal size.

    Examples
    --------
    >>> import numpy as np
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> def sums_of(first, last):
    ...     rows = np.arange(first, last, dtype=float)[:, None]
    ...     sums = features.Sums.zero(np.zeros(1), 1)
    ...     sums.add(rows, 2.0 * rows)
    ...     return sums
    >>> with ThreadPoolExecutor(2) as executor:
    ...     sums = sum_rows(executor, sums_of, 1000, n_parts=4)
    >>> float(sums.n), float(sums.mean[0])
    (1000.0, 499.5)
    """
    ends = [n_rows * part // n_parts for part in range(n_parts + 1)]
    parts = executor.map(sums_of, ends[:-1], ends[1:])
    return reduce(lambda total, part: features.Sums.combine([total, part]), parts)
