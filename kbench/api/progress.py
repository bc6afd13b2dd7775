"""Progress: a live display in a terminal or notebook, a log elsewhere, JSON for programs."""

import io
import json
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Self

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.table import Table

from kbench.messages import format_memory, last_line, plural, printable_lines
from kbench.planning.planned import PlannedCell
from kbench.records import ACCURACY, Cost, Metric, Result
from kbench.report import write_cell
from kbench.results.row_builders import make_row
from kbench.runner import Watcher


class PrintableConsole(Console):
    """A console that replaces control characters, so that no text is a command to the terminal."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render an object as segments of printable text."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            if control is None and not text.isprintable():
                segment = Segment(printable_lines(text), style)
            yield segment


class Display(Watcher):
    """A watcher that is open during a run; a front end may say notices in words of its own."""

    words: Callable[[str], str] = str
    _metric = ACCURACY

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        return None


def choose(as_json: bool, quiet: bool, jobs: int | None) -> Display:
    """Return the display for where the output goes."""
    if as_json:
        return JsonLines()
    if quiet:
        return Quiet()
    console = PrintableConsole(stderr=True)
    if console.is_jupyter:
        return NotebookTable(console, jobs)
    return LiveTable(console, jobs) if console.is_terminal else Log()


class Quiet(Display):
    """Shows notices only."""

    def notice(self, message: str) -> None:
        """Print it to standard error."""
        _log(f"kbench: {self.words(message)}")


class JsonLines(Display):
    """Prints one JSON object per event to standard output."""

    def notice(self, message: str) -> None:
        """Report a notice."""
        print_event("notice", text=self.words(message))

    def on_loading(self, dataset: str) -> None:
        """Report that a dataset is being fetched."""
        print_event("loading", dataset=dataset)

    def on_predicted(self, cell: PlannedCell, cost: Cost | None, n_done: int, n_cells: int) -> None:
        """Report the predicted cost of a cell."""
        seconds = cost and cost.seconds
        print_event(
            "predicted",
            cell=cell.cell.name,
            memory_mib=cost and cost.memory_mib.value,
            time_s=seconds and seconds.value,
            done=n_done,
            cells=n_cells,
        )

    def on_planned(self, cells: list[PlannedCell], n_tasks: int, metric: Metric) -> None:
        """Report the size of the plan."""
        self._metric = metric
        print_event("planned", cells=len(cells), tasks=n_tasks)

    def on_started(self, cell: PlannedCell, split_index: int, slot: int) -> None:
        """Report the start of a task."""
        print_event("started", cell=cell.cell.name, split=split_index, slot=slot)

    def on_finished(self, cell: PlannedCell, result: Result) -> None:
        """Report the end of a task."""
        print_event(
            "finished",
            cell=cell.cell.name,
            split=result.split,
            status=result.status,
            seconds=result.seconds,
            **{self._metric.name: result.metrics.get(self._metric.name)},
        )


def _estimate_work(cell: PlannedCell) -> float:
    """Return the relative time of a task: the slowest come first, those of many rows and classes.

    The power is that of the times of the suite `uci`.
    """
    facts = cell.dataset
    return (facts.n_samples * max(facts.n_classes, 1)) ** 0.75 if facts else 1.0


def _sum_work(cells: Sequence[PlannedCell]) -> float:
    return sum(len(cell.missing) * _estimate_work(cell) for cell in cells)


def _log(message: str) -> None:
    console = PrintableConsole(stderr=True)
    if console.is_jupyter:  # which shows standard error as a fault
        console.print(escape(message), highlight=False)
        return
    print(printable_lines(message), file=sys.stderr, flush=True)


def print_event(event: str, **fields: object) -> None:
    """Print one line of a run's JSON events."""
    # one write per line: slots report from threads of their own
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


class Log(Quiet):
    """Prints a line per finished cell, for logs and pipes."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._n_tasks = self._done = 0
        self._planned_work = self._done_work = 0.0

    def on_loading(self, dataset: str) -> None:
        """Log which dataset is being fetched."""
        _log(f"loading {dataset}")

    def on_predicted(self, cell: PlannedCell, cost: Cost | None, n_done: int, n_cells: int) -> None:
        """Log the predicted cost of a cell."""
        _log(f"[{n_done}/{n_cells} predicted] {cell.cell.name}: {_format_cost(cost)}")

    def on_planned(self, cells: list[PlannedCell], n_tasks: int, metric: Metric) -> None:
        """Log the size of the plan."""
        self._n_tasks, self._metric, self._planned_work = n_tasks, metric, _sum_work(cells)
        _log(_plan_sentence(cells, n_tasks))

    def on_finished(self, cell: PlannedCell, result: Result) -> None:
        """Log the result of a cell when its last task has ended."""
        self._done += 1
        self._done_work += _estimate_work(cell)
        if not result.is_ok:
            _log(_failure(cell, result))
        if not cell.missing:
            row, name = make_row(cell, self._metric), self._metric.name
            elapsed = time.monotonic() - self._started
            left = elapsed * max(self._planned_work / self._done_work - 1, 0)
            _log(
                # a strategy may add tasks
                f"[{self._done}/{max(self._done, self._n_tasks)} "
                f"{_clock(elapsed)}, {_clock(left)} left] "
                f"{cell.cell.name}: {row.status} {write_cell(name, row.value(name))}"
            )

    def on_delivering(self) -> None:
        """Report that results are written to the store."""
        _log("delivering results")


class LiveTable(Display):
    """A bar, the task of each slot, the latest results, and the failures so far."""

    LATEST = 8
    SLOTS = 16

    def __init__(self, console: Console, jobs: int | None) -> None:
        self._console = console
        self._lock = threading.Lock()
        self._slots = ["waiting"] * (jobs or 0)
        self._latest: deque[PlannedCell] = deque(maxlen=self.LATEST)
        self._failures: deque[str] = deque(maxlen=5)
        self._n_failures = self._n_tasks = self._done = 0
        self._stage = "preparing"
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[done]}/{task.fields[n_tasks]} tasks, time left"),
            TimeRemainingColumn(),
            console=console,
        )
        self._bar = self._progress.add_task("tasks", total=None, visible=False, done=0, n_tasks=0)
        self._live = Live(
            get_renderable=self._draw, console=console, refresh_per_second=4, transient=True
        )

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._live.stop()

    def notice(self, message: str) -> None:
        """Print it above the live part."""
        self._console.print(f"kbench: {escape(self.words(message))}", highlight=False)

    def on_loading(self, dataset: str) -> None:
        """Show which dataset is being fetched."""
        self._stage = f"loading {escape(dataset)}"

    def on_predicted(self, cell: PlannedCell, cost: Cost | None, n_done: int, n_cells: int) -> None:
        """Show how many costs are predicted, and the last of them."""
        last = escape(f"{cell.cell.name}: {_format_cost(cost)}")
        self._stage = f"predicted {n_done} of {n_cells} cells; {last}"

    def on_planned(self, cells: list[PlannedCell], n_tasks: int, metric: Metric) -> None:
        """Show the bar."""
        self._metric = metric
        self.notice(_plan_sentence(cells, n_tasks))
        self._stage = ""
        self._n_tasks = n_tasks
        self._progress.update(
            self._bar, total=_sum_work(cells), n_tasks=n_tasks, visible=bool(n_tasks)
        )

    def on_started(self, cell: PlannedCell, split_index: int, slot: int) -> None:
        """Show the task of a slot; a cluster may get more slots."""
        self._slots += ["waiting"] * (slot + 1 - len(self._slots))
        self._slots[slot] = f"{cell.cell.name}, split {split_index + 1} of {cell.n_splits}"

    def on_finished(self, cell: PlannedCell, result: Result) -> None:
        """Move the bar; show the cell when it is complete."""
        with self._lock:
            self._done += 1
            # a strategy may add tasks
            total = max(self._done, self._n_tasks)
            self._progress.update(
                self._bar, advance=_estimate_work(cell), done=self._done, n_tasks=total
            )
            if not result.is_ok:
                self._n_failures += 1
                self._failures.append(_failure(cell, result))
            if not cell.missing:
                self._latest.append(cell)

    def on_delivering(self) -> None:
        """Report that results are written to the store."""
        self._slots = []
        self._stage = "writing to MLflow"

    def _draw(self) -> RenderableType:
        with self._lock:
            table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False)
            metric = self._metric
            names = ("dataset", "feature_map", "learner", metric.name, metric.sd, "fit_time_s")
            for name in names:
                numeric = name in names[3:]
                table.add_column(name, justify="right" if numeric else "left", no_wrap=True)
            for cell in self._latest:
                row = make_row(cell, metric)
                style = "" if row.status == "ok" else "red"
                values = [escape(write_cell(name, row.value(name))) for name in names]
                if row.status != "ok":
                    values[3] = row.status
                table.add_row(*values, style=style)
            lines = [self._stage] if self._stage else [escape(line) for line in self._slots]
            if (more := len(lines) - self.SLOTS) > 0:
                lines[self.SLOTS :] = [f"and {more} more slots"]
            parts: list[RenderableType] = [table] if self._latest else []
            parts += [f"[dim]{number}: {line}[/dim]" for number, line in enumerate(lines, 1)]
            if self._n_failures:
                parts.append(f"[red]{self._n_failures} tasks failed so far[/red]")
                parts += [f"[red]  {escape(line)}[/red]" for line in self._failures]
            return Group(*parts, self._progress)


class NotebookTable(LiveTable):
    """The same in a notebook: one output, which is replaced twice a second.

    It needs no widgets, so that a saved notebook keeps the last state.
    """

    EVERY_S = 0.5

    def __enter__(self) -> Self:
        shell = import_module("IPython.display")
        self._html, self._stop = shell.HTML, threading.Event()
        self._output = shell.display(shell.HTML(""), display_id=True)
        self._drawing = threading.Thread(target=self._redraw, daemon=True)
        self._drawing.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stop.set()
        self._drawing.join()
        failed = f", {self._n_failures} failed" if self._n_failures else ""
        self._show(f"{plural(int(self._progress.tasks[0].completed), 'task')} computed{failed}")

    def _redraw(self) -> None:
        while not self._stop.wait(self.EVERY_S):
            self._show(self._draw())

    def _show(self, content: RenderableType) -> None:
        screen = PrintableConsole(
            file=io.StringIO(),
            record=True,
            width=100,
            force_jupyter=False,
            color_system="truecolor",
            highlight=False,
        )
        screen.print(content)
        code = '<pre style="font-family: monospace; line-height: 1.3">{code}</pre>'
        self._output.update(self._html(screen.export_html(inline_styles=True, code_format=code)))


def _plan_sentence(cells: list[PlannedCell], n_tasks: int) -> str:
    without_data = sum(cell.status == "unavailable" for cell in cells)
    sentence = f"{plural(len(cells), 'cell')} planned, {plural(n_tasks, 'task')} to compute"
    if n_cached := sum(len(cell.results) for cell in cells):
        sentence += f", {n_cached} cached"
    if without_data:
        sentence += f"; {plural(without_data, 'cell')} without data"
    return sentence


def _format_cost(cost: Cost | None) -> str:
    if cost is None:
        return "no prediction"
    seconds = "" if cost.seconds is None else f", {cost.seconds.as_seconds()}"
    return f"{format_memory(cost.memory_mib.value)}{seconds}"


def _failure(cell: PlannedCell, result: Result) -> str:
    """Return one line on a task that failed."""
    reason = last_line(result.error)[:160]
    return f"{result.status}: {cell.cell.name}, split {result.split + 1}: {reason}"


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
