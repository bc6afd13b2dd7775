"""Sentences on predictions of memory and time."""

from kbench.registry.registry import Registry
from kbench_costs import errors as costs
from kbench_costs.errors import sentences
from kbench_reporting.page import page
from tests.support.report_rows import changed, content, row


def predicted(name, memory, seconds):
    return changed(
        row("iris", name),
        predicted_memory_mib=memory,
        peak_memory_mib=100.0,
        predicted_time_s=seconds,
        predicted_time_low_s=0.8 * seconds,
        predicted_time_high_s=1.3 * seconds,
        task_time_cpu_s=10.0,
        task_time_s=20.0,
    )


def test_errors_are_summed_up():
    rows = [predicted("a", 110, 12.0), predicted("b", 95, 10.0), predicted("c", 100, 30.0)]
    assert sentences(rows) == [
        "Memory of 3 cells: median error 5%, largest 10%.",
        "Time of 3 cells: median error 20%, largest 200%; 2 of 3 are in their intervals.",
    ]
    assert sentences(rows[:1])[0] == "Memory of 1 cell: median error 10%."


def test_the_memory_of_a_gpu_counts_if_there_is_one():
    on_gpu = changed(predicted("a", 110, 12.0), device_memory_mib=55.0)
    assert costs.memory_errors([on_gpu]) == [1.0]


def test_the_cpu_time_counts():
    assert costs.time_errors([predicted("a", 100, 10.0)]) == ([0.0], 1)


def test_rows_that_failed_or_were_not_predicted_do_not_count():
    failed = changed(predicted("b", 90, 9.0), status="out_of_memory")
    assert sentences([row("iris", "a"), failed]) == []


def test_the_page_has_them():
    rows = [predicted("a", 110, 12.0), predicted("b", 95, 10.0)]
    html = page(content(rows), Registry())
    assert "predicted before the run" in html
    assert "Memory of 2 cells: median error 8%, largest 10%." in html
    assert "predicted before the run" not in page(content([row("iris", "a")]), Registry())
