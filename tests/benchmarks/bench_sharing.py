"""Size and time of large bundles, made of real ones by drawing their numbers anew.

    python tests/benchmarks/bench_sharing.py 100000 uci.zip nbcs.zip
    python tests/benchmarks/bench_sharing.py 10000 uci.zip nbcs.zip --site

Results of the bundles are repeated on made-up datasets: shares of rows are drawn from binomial
distributions, other metrics and times are multiplied with random factors, so that their digits
are random. With --site, `kbench bundle` publishes the rows, checks the bundle and draws a split
of it, checks the results repository, and writes its site, each in a separate process.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from kbench.planning.planner import make_key_from_json
from kbench.records import divide_protocol
from kbench.records.canonical import digest
from kbench_sharing import bundle_records, repository, zip_file
from kbench_sharing.checks import round_metric, round_time
from kbench_sharing.columns import pack
from kbench_sharing.reading import parse_bundle, read_bundle

N_SPLITS = 5


def redrawn(result, draw, start_ms):
    """Return a result with other numbers, as another run of another dataset would have."""
    made = json.loads(json.dumps(result))
    metrics = made["metrics"]
    n_test = metrics.get("n_test", 0.0)
    new = {}
    for name, value in metrics.items():
        if name.endswith("_s"):
            new[name] = round_time(value * draw.lognormal(0, 0.1))
        elif name.endswith("_mib"):
            new[name] = round(value * draw.lognormal(0, 0.1), 3)
        elif name.endswith(("n_test", "n_train", "n_features", "n_components")):
            new[name] = value
        elif 0 < value < 1 and n_test and round(value * n_test) / n_test == value:
            new[name] = float(draw.binomial(int(n_test), value) / n_test)
        elif value % 1 and value not in (0.0, 1.0):
            new[name] = round_metric(value * (1 - 0.01 * draw.random()))
        else:
            new[name] = value
    for one, other in (("accuracy_non_duplicates", "accuracy"), ("expected_error", "accuracy")):
        for prefix in ("", "default_"):
            if f"{prefix}{one}" in metrics:
                of = new[f"{prefix}{other}"]
                new[f"{prefix}{one}"] = 1.0 - of if one == "expected_error" else of
    made["metrics"] = new
    details = made["details"]
    sizes = [41, 42, 42, 42, 42]
    for candidate in details["search"]:
        candidate["values"] = [
            float(draw.binomial(n, v) / n) if 0 <= v <= 1 else v
            for v, n in zip(candidate["values"], itertools.cycle(sizes), strict=False)
        ]
    if details["search"] and details["chosen"]:
        best = max(details["search"], key=lambda c: sum(c["values"]))
        details["chosen"] = {k: v for k, v in best.items() if k not in ("values", "converged")}
    factors = {v: draw.lognormal(0, 0.1) for v in dict.fromkeys(details["search_seconds"])}
    details["search_seconds"] = [round_time(v * factors[v]) for v in details["search_seconds"]]
    details["work_s"] = round_time(details["work_s"] * draw.lognormal(0, 0.1))
    for name in ("seconds", "cpu_s"):
        made[name] = round_time(made[name] * draw.lognormal(0, 0.1))
    for name in ("fit_time_s", "predict_time_s", "search_time_s"):
        new[name] = min(new.get(name, 0.0), made["seconds"])
    made["started_ms"] = start_ms
    made["ended_ms"] = start_ms + round(1000 * made["seconds"]) + int(draw.integers(0, 30))
    return made


def large(paths, n_cells):
    """Return the files of a bundle with `n_cells` cells of five splits."""
    draw = np.random.default_rng(0)
    bundles = [read_bundle(Path(path)) for path in paths]
    methods = list(
        {
            json.dumps([cell.feature_map.model_dump(), cell.learner.model_dump(), cell.protocol]): (
                bundle,
                cell,
            )
            for bundle in bundles
            for cell in bundle.cells
            if len(bundle.results.get(cell.key, ())) >= N_SPLITS
        }.values()
    )
    files = dict(bundles[0].files)
    datasets, cells, drawn_from = [], [], []
    per_dataset = min(len(methods), 100)
    for number in range(-(-n_cells // per_dataset)):
        checksum = hashlib.sha256(str(number).encode()).hexdigest()
        some = [methods[i] for i in sorted(draw.permutation(len(methods))[:per_dataset])]
        label = f"data-{number}"
        for place, (bundle, cell) in enumerate(some[: n_cells - len(cells)]):
            facts = bundle.datasets[cell.dataset].model_dump()
            line = cell.model_dump() | {"dataset": label, "n_splits": N_SPLITS}
            # one label for one method: those of two suites may have equal ones
            line["learner"] = {**line["learner"], "label": f"{cell.learner.label} {place}"}
            line["protocol"] = {**line["protocol"], "seed": number}
            if place == 0:
                datasets.append(
                    facts
                    | {"ref": {"name": "iris", "params": {}, "label": label}}
                    | {"checksum": checksum, "n_samples": 0, "task": "classification"}
                )
            sides = [
                {k: line[side][k] for k in ("name", "params")}
                for side in ("feature_map", "learner")
            ]
            line["key"] = make_key_from_json(
                [*sides, line["protocol"]], checksum, "classification", line["kinds"], line["code"]
            )
            cells.append(line)
            drawn_from.append((bundle, cell.key))

    def results():
        now = 1_700_000_000_000
        kept = {}
        for (bundle, key), line in zip(drawn_from, cells, strict=True):
            if (bundle.id, key) not in kept:
                kept[bundle.id, key] = [
                    bundle.results[key][split].model_dump(exclude_unset=True)
                    for split in range(N_SPLITS)
                ]
            task = digest(divide_protocol(line["protocol"])[0])
            for split, result in enumerate(kept[bundle.id, key]):
                made = redrawn(result, draw, now)
                made |= {"cell": line["key"], "split": split, "machine": 0}
                made["details"]["split_hash"] = hashlib.sha256(
                    f"{line['dataset']}{task}{split}".encode()
                ).hexdigest()[:16]
                now = made["ended_ms"]
                yield made

    keys = [line["key"] for line in cells]
    files[bundle_records.DATASETS] = "".join(json.dumps(d) + "\n" for d in datasets).encode()
    files[bundle_records.CELLS] = "".join(
        json.dumps(c, sort_keys=True, separators=(",", ":")) + "\n" for c in cells
    ).encode()
    files[bundle_records.RESULTS] = pack(results(), keys)
    dependencies = (bundle.files[bundle_records.DEPENDENCIES] for bundle in bundles)
    lines = (line for each in dependencies for line in each.splitlines(keepends=True))
    files[bundle_records.DEPENDENCIES] = b"".join(dict.fromkeys(lines))
    manifest = json.loads(files.pop(bundle_records.MANIFEST))
    manifest["author"] = "Ada"
    manifest["files"] = {
        name: {"n_bytes": len(data), "sha256": zip_file.sha256(data)}
        for name, data in files.items()
    }
    return {**files, bundle_records.MANIFEST: json.dumps(manifest).encode()}


def timed(text, action):
    """Print the CPU seconds of an action, also of its processes, and return its value."""
    begun = os.times()
    value = action()
    ended = os.times()
    print(f"{text}: {sum(ended[:4]) - sum(begun[:4]):.1f} s of CPU", flush=True)
    return value


def run(*words):
    """Run `kbench bundle` and print its CPU seconds, its peak memory and its last line."""
    command = [Path(sys.executable).with_name("kbench"), "bundle", *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        said = process.stdout.read().decode().splitlines()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    print(
        f"kbench bundle {words[0]}: {used.ru_utime + used.ru_stime:.1f} s of CPU, "
        f"{used.ru_maxrss / 2**20:.2f} GB; exit code {process.returncode}: {said[-1]}",
        flush=True,
    )


def write(given, file):
    """Draw a bundle, write it and read it, and print sizes and times."""
    files = timed("drawn", lambda: large(given.bundles, given.n_cells))
    zipped = timed("packed", lambda: zip_file.pack_zip(files))
    print(f"{given.n_cells:,} cells: {len(zipped) / 1e6:.1f} MB")
    for name, data in sorted(files.items()):
        print(f"  {name}: {len(data) / 1e6:.1f} MB")
    file.write_bytes(zipped)
    timed(
        "read and checked",
        lambda: parse_bundle(zip_file.read_zip(zipped), len(zipped)),
    )


def main():
    """Make the files, and print sizes and times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n_cells", type=int)
    parser.add_argument("bundles", nargs="+")
    parser.add_argument("--site", action="store_true")
    parser.add_argument("--keep", type=Path, help="write the bundle to this file")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file, repo = given.keep or Path(folder) / "b.zip", Path(folder) / "board"
        # a command begins with the memory of its parent, which must be small
        draw = multiprocessing.get_context("spawn").Process(target=write, args=(given, file))
        draw.start()
        draw.join()
        if draw.exitcode or not given.site:
            return
        run("publish", file, "--repository", repo)
        sizes = [(repo / name).stat().st_size for name in repository.names(repo)]
        print(f"{len(sizes):,} rows files: {sum(sizes) / 1e6:.1f} MB")
        # the data are made up, so that no split can be recomputed
        run("verify", file, "--sample", 1, "--offline")
        run("site", repo)
        run("site", repo, "-o", Path(folder) / "pages")


if __name__ == "__main__":
    main()
