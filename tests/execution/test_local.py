import threading
import time

import pytest

from kbench.execution import engine


def test_every_task_has_its_result():
    found = dict(engine.run(range(20), lambda task, slot: task * 2, jobs=3))
    assert found == {task: task * 2 for task in range(20)}


def test_results_come_in_the_order_in_which_tasks_end():
    waits = [0.2, 0.0]
    ends = [task for task, _ in engine.run([0, 1], lambda t, slot: time.sleep(waits[t]), jobs=2)]
    assert ends == [1, 0]


def test_no_more_than_jobs_tasks_run_at_once():
    running, most, lock = 0, 0, threading.Lock()

    def work(task, slot):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with lock:
            running -= 1
        return slot

    assert {slot for _, slot in engine.run(range(12), work, jobs=3)} <= {0, 1, 2}
    assert most == 3


def test_tasks_are_taken_only_when_a_slot_is_free_so_that_results_can_stop_them():
    stopped = []

    def tasks():
        for task in range(10):
            if stopped:
                return
            yield task

    done = []
    for task, _ in engine.run(tasks(), lambda task, slot: time.sleep(0.02), jobs=1):
        done.append(task)
        if task == 2:
            stopped.append(True)
    # one task may have been taken before the result was seen
    assert done in ([0, 1, 2], [0, 1, 2, 3])


def test_what_a_task_raises_ends_the_run():
    def work(task, slot):
        raise RuntimeError("in a slot")

    with pytest.raises(RuntimeError, match="in a slot"):
        list(engine.run([1, 2], work, jobs=2))


def test_an_iterator_that_is_left_starts_nothing_more():
    started = []

    def work(task, slot):
        started.append(task)
        time.sleep(0.01)

    running = engine.run(range(100), work, jobs=1)
    next(running)
    running.close()
    time.sleep(0.1)
    assert len(started) <= 3
