"""Keep what the documentation shows of a run.

    python tests/benchmarks/keep_run.py < all.json > docs/measured/uci.json

The input is what `kbench results uci --format json` prints. Cells without data are left out.
"""

import json
import sys

KEPT = (
    "dataset", "feature_map", "learner", "status", "n_splits_done", "n_splits",
    "accuracy", "accuracy_sd", "fit_time_s", "predict_time_s", "search_time_s",
    "search_time_cpu_s", "n_components", "n_candidates", "n_test", "converged",
    "dataset_family", "family", "equivalence", "version", "values_by_split",
    "search_space", "metric", "better", "contention",
)  # fmt: skip


def short(name, value):
    """Return times with the digits that are shown; scores keep all, which decide ties."""
    if name == "contention":
        return "the machine was loaded" if value else ""
    if name == "values_by_split":
        return {"accuracy": value["accuracy"]} if "accuracy" in value else {}
    return float(f"{value:.6g}") if isinstance(value, float) and "_s" in name else value


rows = [row for row in json.load(sys.stdin) if row["status"] != "unavailable"]
kept = ({name: short(name, row[name]) for name in KEPT if name in row} for row in rows)
print("[\n" + ",\n".join(map(json.dumps, kept)) + "\n]")
