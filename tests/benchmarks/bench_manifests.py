"""What it costs to record what results are made from, and to tell whether they are valid.

    python tests/benchmarks/bench_manifests.py [--repeat 7]

- *recording*: CPU time of work in a process that records, over that in one that does not:
  imports of what a task needs, a search of scikit-learn, copies of nested lists;
- *begin*: milliseconds until a task has reported what its components need;
- *validity*: CPU seconds of the plan of `uci` for the manifests of so many methods, with digests
  that an earlier command has kept, and without.

Medians over repetitions, each in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

N_METHODS = 60
MODULES = ("kbench_baselines._fourier", "kbench_learners._ridge", "kbench_nbcs._map")


def best(work: object, n: int) -> float:
    """Return the least CPU time of one of 15 series of calls."""
    found = []
    for _ in range(15):
        start = time.process_time()
        for _ in range(n):
            work()  # type: ignore[operator]
        found.append((time.process_time() - start) / n)
    return min(found)


def work(is_recorded: bool) -> dict[str, float]:
    """Return seconds of work in this process."""
    from kbench.execution import recording
    from kbench.registry.installed import packages

    if is_recorded:
        recording.install(packages())
    start = time.process_time()
    import importlib

    importlib.import_module("kbench.execution.task_functions").warm()
    for module in MODULES:
        importlib.import_module(module)
    found = {"imports": time.process_time() - start}
    import copy

    import numpy as np
    from sklearn.linear_model import RidgeClassifier
    from sklearn.model_selection import GridSearchCV

    from kbench.planning.methods import EVALUATION
    from kbench.registry.dependencies import Dependencies

    if is_recorded:
        recording.report_to(lambda recorded: found.setdefault("n", len(json.dumps(recorded))))
        start = time.perf_counter()
        recording.begin(Dependencies(frozenset({EVALUATION, *MODULES})))
        found["begin ms"] = 1e3 * (time.perf_counter() - start)
    X = np.random.default_rng(0).normal(size=(200, 10))
    search = GridSearchCV(RidgeClassifier(), {"alpha": [0.1, 1.0, 10.0]}, cv=3)
    found["search"] = best(lambda: search.fit(X, np.arange(200) % 3), 3)
    nested = {"a": [list(range(10)) for _ in range(20)]}
    found["copies"] = best(lambda: copy.deepcopy(nested), 200)
    return found


def validity() -> dict[str, float]:
    """Return seconds to tell whether the results of so many methods are valid."""
    from kbench.planning.current_state import Present
    from kbench.records import Manifest
    from kbench.registry.dependencies import list_modules

    names = [*list_modules("kbench.evaluation"), *list_modules("kbench_baselines")]
    names += [*list_modules("kbench_learners"), *list_modules("kbench_nbcs")]
    distributions = ("numpy", "scipy", "scikit-learn", "numba", "python")

    def made() -> list[Manifest]:
        now = Present()
        every = {name: now.module(name) for name in names}
        versions = {name: now.distribution(name) for name in distributions}
        now.save()
        # each method has modules that no other has, and most in common
        return [
            Manifest(
                {n: d for i, (n, d) in enumerate(every.items()) if i % 60 != k}, {}, {}, versions
            )
            for k in range(N_METHODS)
        ]

    found = {}
    start = time.process_time()
    manifests = made()
    found["first validity"] = time.process_time() - start
    start, now = time.process_time(), Present()
    assert not any(now.why_changed(manifest) for manifest in manifests)
    found["validity"] = time.process_time() - start
    return found


def main() -> None:
    """Measure everything in processes of its own, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        done = validity() if asked.one == "validity" else work(asked.one == "recorded")
        print(json.dumps(done))
        return
    runs: dict[str, list[dict[str, float]]] = {}
    for _ in range(asked.repeat):
        for name in ("plain", "recorded", "validity"):
            with tempfile.TemporaryDirectory() as folder:
                printed = subprocess.run(
                    [sys.executable, __file__, "--one", name],
                    env={**os.environ, "KBENCH_STATE_DIR": folder},
                    check=True,
                    stdout=subprocess.PIPE,
                    text=True,
                ).stdout
            runs.setdefault(name, []).append(json.loads(printed))

    def median(name: str, what: str) -> float:
        return statistics.median(run[what] for run in runs[name])

    for what in ("imports", "search", "copies"):
        ratio = median("recorded", what) / median("plain", what)
        print(f"recording, {what:8s} {ratio:6.3f}   (goal 1.03)")
    print(f"begin, ms           {median('recorded', 'begin ms'):6.2f}   (goal 1)")
    for what in ("validity", "first validity"):
        print(f"{what + ', CPU s':19s} {median('validity', what):6.2f}   (goal 0.3)")


if __name__ == "__main__":
    main()
