"""Tasks over slots: each slot takes the next task when it has finished one."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def run(tasks: Iterable[T], work: Callable[[T, int], R], jobs: int = 1) -> Iterator[tuple[T, R]]:
    """Yield each task with its result, in the order in which they end.

    Parameters
    ----------
    tasks : iterable
        Taken one by one, only when a slot is free: what a result says about
        later tasks can still be heeded.
    work : callable
        ``work(task, slot) -> result``, called from `jobs` threads. What it
        raises is raised here, and no further task is started.
    jobs : int, default 1
        Number of slots.

    Examples
    --------
    >>> sorted(run([1, 2, 3], lambda task, slot: task * task, jobs=2))
    [(1, 1), (2, 4), (3, 9)]
    """
    waiting = iter(tasks)
    taking = threading.Lock()
    stop = threading.Event()
    ended: queue.SimpleQueue[tuple[T, R] | BaseException | None] = queue.SimpleQueue()

    def slot(number: int) -> None:
        try:
            while not stop.is_set():
                with taking:
                    task = next(waiting, _NONE)
                if task is _NONE:
                    break
                ended.put((task, work(task, number)))  # type: ignore[arg-type]
        except BaseException as error:
            ended.put(error)
        finally:
            ended.put(None)

    for number in range(jobs):
        threading.Thread(target=slot, args=(number,), name=f"slot-{number}", daemon=True).start()
    running = jobs
    try:
        while running:
            item = ended.get()
            if item is None:
                running -= 1
            elif isinstance(item, BaseException):
                raise item
            else:
                yield item
    finally:
        stop.set()


_NONE = object()
