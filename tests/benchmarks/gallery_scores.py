"""Scores of all maps for their pages in the documentation, from the stores of two suites.

    kbench suite tests/benchmarks/gallery.toml
    kbench suite tests/benchmarks/gallery_regression.toml
    python tests/benchmarks/gallery_scores.py --classification STORE --regression STORE

Datasets on which a map is missing are left out, except for maps of the other task.
"""

import argparse
import json
import tomllib
from pathlib import Path

import pandas as pd

import kbench

HERE = Path(__file__).parent
FILE = HERE.parents[1] / "docs" / "measured" / "map_scores.json"
METRICS = {
    "gallery": ("accuracy", "higher"),
    "gallery_regression": ("rmse_standardized", "lower"),
}


def scores(suite, stores):
    """Return mean and standard deviation over splits by dataset and map."""
    metric, better = METRICS[suite]
    frames = [kbench.load_results(suite, store=store).to_frame() for store in stores]
    cells = pd.concat(frames)
    cells = cells[(cells["status"] == "ok") & (cells["n_splits_done"] == cells["n_splits"])]
    maps = tomllib.loads(HERE.joinpath(f"{suite}.toml").read_text(encoding="utf-8"))["feature_maps"]
    found = {}
    for dataset, rows in cells.groupby("dataset"):
        if missing := set(maps) - set(rows["feature_map"]):
            print(f"{dataset}: left out, without {', '.join(sorted(missing))}")
            continue
        digits = rows.set_index("feature_map").loc[maps, [metric, f"{metric}_sd"]].round(4)
        found[dataset] = {
            "metric": metric,
            "better": better,
            "n_splits": int(rows["n_splits"].iloc[0]),
            "scores": {name: list(map(float, row)) for name, row in digits.iterrows()},
        }
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classification", action="append", default=[])
    parser.add_argument("--regression", action="append", default=[])
    given = parser.parse_args()
    found = {}
    if given.classification:
        found |= scores("gallery", given.classification)
    if given.regression:
        found |= scores("gallery_regression", given.regression)
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"{FILE}: {', '.join(found)}")


if __name__ == "__main__":
    main()
