"""Time and memory against the number of tasks: planned, journalled, resumed, delivered again.

Every size in a process of its own, on a small registry whose components are
never made; the journal's lines have the usual size (4 kB)::

    python tests/benchmarks/bench_scale.py [--sizes 1000 3000 10000]

- *plan*: cells with their keys, nothing known;
- *journal*: one fsynced line a task;
- *resume*: the plan again with all results read;
- *rows*: the table of the resumed cells;
- *keep*: the plan written to the journal;
- *memory*: growth of the resident memory from before the plan to after the rows.

All but the memory is CPU time. The last column is the slope between the two
largest sizes: 1 is linear.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kbench.records import DatasetFacts, Result, Suite

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

N_SPLITS = 5
MAPS, DATASETS = 20, 10


def suite_text(n_cells: int) -> str:
    """Return a suite of so many cells: 10 datasets, 20 maps, the rest learners."""
    maps = ", ".join(f'{{ name = "rff", n_components = {i + 1} }}' for i in range(MAPS))
    learners = ", ".join(
        f'{{ name = "ridge", alpha = {i + 1}.0 }}' for i in range(n_cells // (MAPS * DATASETS))
    )
    data = ", ".join(f'{{ name = "digits", label = "d{i}" }}' for i in range(DATASETS))
    return f"datasets = [{data}]\nfeature_maps = [{maps}]\nlearners = [{learners}]\n"


def a_result() -> Result:
    """Return a result whose line has the usual size."""
    from kbench.records import Details, Result

    metrics = {f"metric_{i}": 0.123456789012345 + i for i in range(30)}
    metrics |= dict.fromkeys(("accuracy", "fit_time_s", "predict_time_s"), 0.5)
    candidate = {"scaling": "minmax", "feature_map.gamma": 0.25, "learner.alpha": 0.001}
    candidate |= {"accuracies": [0.8823529411764706, 0.5, 1.0], "converged": True}
    details = Details(search=[candidate] * 16, split_hash="2c83e39922e4361e")
    times = {"started_ms": 0, "ended_ms": 1, "seconds": 1.0, "machine_speed_s": 0.01}
    return Result("", "", 0, "ok", metrics, details, jobs=1, version="0", **times)


def known_data(suite: Suite) -> dict[str, DatasetFacts]:
    """Return what a cache would tell of the suite's datasets."""
    from kbench.records import DatasetFacts

    refs = (ref for block in suite.blocks for ref in block.datasets)
    return {ref.label: DatasetFacts(ref.label * 20) for ref in refs}


def measure(n_tasks: int, folder: Path) -> dict[str, float]:
    """Return seconds and megabytes of one size."""
    from kbench.planning.cached_results import Validity, recall
    from kbench.planning.planned import task_key
    from kbench.planning.planner import Planner
    from kbench.planning.plans import Plans
    from kbench.planning.suite_file import read
    from kbench.records import DatasetFacts, Manifest
    from kbench.registry.installed import list_plugins
    from kbench.registry.registry import build
    from kbench.results import row_builders
    from kbench.results.rows import sort_by_dataset
    from kbench.storage.datacache import DataCache
    from kbench.storage.journal import Journal

    registry = build(list_plugins())
    planner = Planner(registry, DataCache(folder / "cache"))
    suite = read(suite_text(n_tasks // N_SPLITS), "scale", registry)
    data = known_data(suite)
    journal = Journal(folder / "journal.jsonl")
    found = {}

    def clock(name: str, start: float) -> None:
        found[f"{name} s"] = time.process_time() - start

    planner.cell_key(_first(suite, registry), DatasetFacts("warm"))  # reads the sources
    before = _resident_mib()
    start = time.process_time()
    cells = planner.plan(suite, data)
    clock("plan", start)
    assert sum(len(each.missing) for each in cells) == n_tasks

    start, result = time.process_time(), a_result()
    manifest = Manifest({"kbench.errors": planner.present.module("kbench.errors")})
    journal.keep_manifest(manifest)
    result = replace(result, manifest=manifest.digest)
    for each in cells:
        for index in range(each.n_splits):
            key = task_key(each.key, index)
            done = replace(result, task_key=key, cell_key=each.key, split=index)
            journal.append("result", **done.to_json())
    clock("journal", start)
    start = time.process_time()
    Plans(journal).keep(suite, "sqlite:///x.db", cells)
    clock("keep", start)
    del cells

    start = time.process_time()
    cells = planner.plan(suite, data)
    recall(cells, Validity(journal, planner.present), suite.limits)
    clock("resume", start)
    assert not any(each.missing for each in cells)
    start = time.process_time()
    rows = sort_by_dataset([row_builders.make_row(each) for each in cells])
    clock("rows", start)
    assert len(rows) == len(cells)
    found["memory MiB"] = _resident_mib() - before
    found["peak MiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return found


def plan_cells(n_cells: int, folder: Path) -> float:
    """Return the time of a plan of so many cells."""
    from kbench.planning.planner import Planner
    from kbench.planning.suite_file import read
    from kbench.registry.installed import list_plugins
    from kbench.registry.registry import build
    from kbench.storage.datacache import DataCache

    start = time.process_time()
    registry = build(list_plugins())
    suite = read(suite_text(n_cells), "scale", registry)
    data = known_data(suite)
    planned = Planner(registry, DataCache(folder / "cache")).plan(suite, data)
    assert len(planned) == n_cells
    return time.process_time() - start


def _first(suite: Any, registry: Any) -> Any:
    from kbench.planning.cells import cells

    return cells(suite, registry)[0]


def _resident_mib() -> float:
    text = Path("/proc/self/statm").read_text()
    return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    """Measure every size in a process of its own and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 3000, 10_000])
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(measure(asked.one, Path(folder))))
        return
    sizes = asked.sizes
    columns = []
    for size in sizes:
        command = [sys.executable, __file__, "--one", str(size)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        columns.append(json.loads(done.stdout))
    print(f"{'tasks':12s}" + "".join(f"{size:>10d}" for size in sizes) + f"{'slope':>8s}")
    for name in columns[0]:
        values = [column[name] for column in columns]
        slope = math.nan
        if len(sizes) > 1 and min(values[-2:]) > 0:
            slope = math.log(values[-1] / values[-2]) / math.log(sizes[-1] / sizes[-2])
        print(f"{name:12s}" + "".join(f"{value:10.2f}" for value in values) + f"{slope:8.2f}")
    with tempfile.TemporaryDirectory() as folder:
        seconds = plan_cells(10_000, Path(folder))
    print(f"\n10,000 cells read from their suite and planned: {seconds:.2f} s   (goal 3.0)")


if __name__ == "__main__":
    main()
