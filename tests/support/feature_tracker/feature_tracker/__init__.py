"""Results as lines of JSON: ``kbench suite SUITE --jsonl FILE``."""

import json
from pathlib import Path

from kbench.features import hookimpl


@hookimpl
def kbench_result(run, cell, result):
    """Append a result, which is in the journal of kbench already."""
    if path := run.options.given.get("jsonl"):
        line = {"task_key": result.task_key, "cell": cell.cell.name, "split": result.split}
        line |= {"status": result.status, "metrics": dict(result.metrics)}
        with Path(path).open("a") as file:
            file.write(json.dumps(line) + "\n")


@hookimpl
def kbench_run_finished(run, report):
    """Add results that were known before the run, or that kbench has dropped."""
    if path := run.options.given.get("jsonl"):
        text = Path(path).read_text() if Path(path).exists() else ""
        stored = {json.loads(line)["task_key"] for line in text.splitlines()}
        for cell in report.cells:
            for result in cell.in_order:
                if result.task_key not in stored:
                    kbench_result(run, cell, result)
