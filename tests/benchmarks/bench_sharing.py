"""Size and time of large bundles, made of real ones by drawing their numbers anew.

    python tests/benchmarks/bench_sharing.py 100000 uci.zip nbcs.zip
    python tests/benchmarks/bench_sharing.py 10000 uci.zip nbcs.zip --site

Results of the bundles are repeated on made-up datasets: shares of rows are drawn from binomial
distributions, other metrics and times are multiplied with random factors, so that their digits
are random. With --site, the rows are published, 20 files are checked again, and the site is
written.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from kbench.planning.planner import make_key_from_json
from kbench.records import divide_protocol
from kbench.records.canonical import digest
from kbench_sharing import bundle_records, repository, zip_file
from kbench_sharing.checks import round_metric, round_time
from kbench_sharing.columns import pack
from kbench_sharing.reading import bundle_of_rows, parse_bundle, read_bundle
from kbench_sharing.site import write_site
from kbench_sharing.zip_file import Bounds

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
    datasets, cells, results = [], [], []
    now = 1_700_000_000_000
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
            for split in range(N_SPLITS):
                result = bundle.results[cell.key][split].model_dump(exclude_unset=True)
                made = redrawn(result, draw, now)
                made |= {"cell": line["key"], "split": split, "machine": 0}
                made["details"]["split_hash"] = hashlib.sha256(
                    f"{checksum}{digest(divide_protocol(line['protocol'])[0])}{split}".encode()
                ).hexdigest()[:16]
                now = made["ended_ms"]
                results.append(made)
    keys = [line["key"] for line in cells]
    files[bundle_records.DATASETS] = "".join(json.dumps(d) + "\n" for d in datasets).encode()
    files[bundle_records.CELLS] = "".join(
        json.dumps(c, sort_keys=True, separators=(",", ":")) + "\n" for c in cells
    ).encode()
    begun = time.process_time()
    files[bundle_records.RESULTS] = pack(results, keys)
    print(f"columns of {len(results):,} splits: {time.process_time() - begun:.1f} s of CPU")
    manifest = json.loads(files.pop(bundle_records.MANIFEST))
    manifest["author"] = "Ada"
    manifest["files"] = {
        name: {"n_bytes": len(data), "sha256": zip_file.sha256(data)}
        for name, data in files.items()
    }
    return {**files, bundle_records.MANIFEST: json.dumps(manifest).encode()}


def timed(text, action):
    """Print the CPU seconds of an action and return its value."""
    wall, begun = time.perf_counter(), time.process_time()
    value = action()
    print(
        f"{text}: {time.process_time() - begun:.1f} s of CPU, {time.perf_counter() - wall:.1f} s; "
        f"at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GB so far",
        flush=True,
    )
    return value


def main():
    """Make the files, and print sizes and times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n_cells", type=int)
    parser.add_argument("bundles", nargs="+")
    parser.add_argument("--site", action="store_true")
    parser.add_argument("--keep", type=Path, help="write the bundle to this file")
    given = parser.parse_args()
    files = timed("drawn", lambda: large(given.bundles, given.n_cells))
    zipped = timed("packed", lambda: zip_file.pack_zip(files))
    print(f"{given.n_cells:,} cells: {len(zipped) / 1e6:.1f} MB")
    for name, data in sorted(files.items()):
        print(f"  {name}: {len(data) / 1e6:.1f} MB")
    if given.keep:
        given.keep.write_bytes(zipped)
    bundle = timed(
        "read and checked",
        lambda: parse_bundle(zip_file.read_zip(zipped), Bounds(len(zipped))),
    )
    print(f"{bundle.n_results:,} splits")
    if not given.site:
        return
    with tempfile.TemporaryDirectory() as folder:
        repo = Path(folder) / "board"
        timed("published", lambda: repository.publish(bundle, repo))
        names = repository.names(repo)
        print(f"{sum((repo / name).stat().st_size for name in names) / 1e6:.1f} MB of rows files")
        timed(
            "20 files read",
            lambda: [bundle_of_rows((repo / name).read_bytes()) for name in names[:20]],
        )
        site = timed("checked, and the site written", lambda: write_site(repo, Path(folder) / "p"))
        print(f"{site.n_rows:,} rows, {site.n_pages} pages, {len(site.problems)} problems")
        print(*site.problems[:3], sep="\n")


if __name__ == "__main__":
    main()
