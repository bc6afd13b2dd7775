"""Bundles of made-up results with real keys, and changes to their files."""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import replace
from functools import cache

from kbench.execution.plugins import load_registry
from kbench.planning.planned import task_key
from kbench.planning.planner import Planner
from kbench.planning.suite_file import find, read
from kbench.records import DatasetFacts, Details, Limits, Manifest, Result
from kbench.storage.datacache import DataCache
from kbench_sharing.columns import unpack
from kbench_sharing.writing import Saved, build_files

SUITE = """
datasets = ["iris", "wine"]
feature_maps = ["identity", "rff"]
learners = ["ridge", "linear-svm"]
"""
START_MS = 1_700_000_000_000


@cache
def known(n_splits: int = 5, text: str = SUITE) -> Saved:
    """Return cells with real keys, of which every split has made-up numbers."""
    registry = load_registry()
    suite = read(text, "shared", registry)
    planner = Planner(registry, DataCache())
    facts = {
        ref.label: DatasetFacts(
            hashlib.sha256(ref.label.encode()).hexdigest(),
            name=ref.name,
            source="bundled with scikit-learn",
            dataset_family=ref.name,
            n_samples=150,
            n_features=4,
            n_classes=3,
            feature_kinds=("numeric",) * 4,
        )
        for ref in suite.datasets
    }
    cells = planner.plan(suite, facts)
    made_from = manifest_here(planner)
    draw = random.Random(0)
    for number, cell in enumerate(cells):
        for split in range(n_splits):
            label = cell.cell.dataset.label
            result = made_up(cell.key, label, split, number, draw)
            cell.results[split] = replace(result, manifest=made_from.digest)
    return Saved(suite, cells, planner, 0, {made_from.digest: made_from})


def manifest_here(planner: Planner) -> Manifest:
    """Return a manifest of modules, versions and a variable as they are here."""
    present = planner.present
    modules = ("kbench.evaluation.evaluate", "kbench_learners", "kbench_learners._ridge", "numpy")
    distributions = ("python", "numpy", "scipy", "scikit-learn")
    return Manifest(
        {name: present.module(name) for name in modules},
        {"kbench_learners:__init__.py": present.file("kbench_learners:__init__.py")},
        {"KBENCH_TEST_NEVER_SET": None},
        {name: present.distribution(name) for name in distributions},
    )


def made_up(key: str, dataset: str, split: int, number: int, draw: random.Random) -> Result:
    """Return a result that an honest run could have."""
    right = draw.randint(20, 30)
    times = {f"{name}_s": draw.uniform(0.001, 0.1) for name in ("fit_time", "predict_time")}
    start = START_MS + 10_000 * number + 1000 * split
    return Result(
        task_key(key, split),
        key,
        split,
        "ok",
        {"accuracy": right / 30, "n_test": 30.0, "n_train": 120.0, "log_loss": 0.4, **times},
        Details(
            {"learner.C": 1.0},
            [{"learner.C": 1.0, "values": [0.9, 0.95]}],
            split_hash=hashlib.sha256(f"{dataset}{split}".encode()).hexdigest()[:16],
            search_seconds=(0.01234567,),
        ),
        error="",
        started_ms=start,
        ended_ms=start + 900,
        seconds=0.9,
        limits=Limits(None, 300.0, 4096.0),
        jobs=2,
        version="0.1.0",
        machine="0123456789ab",
        host="ada-laptop",
        cpu="A CPU",
        machine_speed_s=0.01,
        cpu_s=0.5,
    )


def files(text: str = SUITE, **options) -> dict[str, bytes]:
    """Return the files of a bundle."""
    return dict(build_files(known(text=text), text, load_registry(), **options))


def suite_text(name: str) -> str:
    """Return the text of an installed suite."""
    return find(name, load_registry())[0]


def lines(content: bytes) -> list[dict]:
    """Return the lines of a file of JSON lines."""
    return [json.loads(line) for line in content.splitlines()]


def dumped(values) -> bytes:
    """Write lines of JSON; NaN and infinities pass."""
    return "".join(json.dumps(value) + "\n" for value in values).encode()


def signed(bundle: dict[str, bytes]) -> dict[str, bytes]:
    """Return files whose manifest has their sums, as a careful forger leaves them."""
    manifest = json.loads(bundle["manifest.json"])
    manifest["files"] = {
        name: {"n_bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in bundle.items()
        if name != "manifest.json"
    }
    return {**bundle, "manifest.json": json.dumps(manifest).encode()}


def results_of(bundle: dict[str, bytes]) -> list[dict]:
    """Return the results of a bundle, one after the other."""
    parsed = ((f"line {i}", line) for i, line in enumerate(lines(bundle["results.jsonl"]), 1))
    return [result for _, result in unpack(parsed, _keys(bundle), 1 << 40)]


def with_results(bundle: dict[str, bytes], results) -> dict[str, bytes]:
    """Return the files of a bundle with other results; its manifest stays.

    The columns have the values as they are, which may be anything.
    """
    numbers = {key: number for number, key in enumerate(_keys(bundle))}
    columns: dict[str, list] = {}
    for place, result in enumerate(results):
        flat = {name: value for name, value in result.items() if not isinstance(value, dict)}
        flat["cell"] = numbers.get(result["cell"], len(numbers))
        for outer in ("metrics", "details", "limits"):
            flat |= {f"{outer}/{name}": value for name, value in result[outer].items()}
        for name, value in flat.items():
            columns.setdefault(name, [None] * len(results))[place] = value
    return {**bundle, "results.jsonl": dumped([columns])}


def with_dependencies(bundle: dict[str, bytes], **changes) -> dict[str, bytes]:
    """Return files whose results were made from other things, by their own account.

    `changes` are names with values by part of the manifests; all digests fit.
    """
    made, digests = [], {}
    for line in lines(bundle["dependencies.jsonl"]):
        old = line.pop("digest")
        for part, values in changes.items():
            line[part] = {**line.get(part, {}), **values}
        digests[old] = Manifest.from_json(line).digest
        made.append({"digest": digests[old], **line})
    results = [{**each, "manifest": digests[each["manifest"]]} for each in results_of(bundle)]
    return signed(with_results({**bundle, "dependencies.jsonl": dumped(made)}, results))


def _keys(bundle: dict[str, bytes]) -> list[str]:
    return [cell["key"] for cell in lines(bundle["cells.jsonl"])]
