"""Bundles hold what is needed to recompute results, and nothing that tells who or where."""

import hashlib
import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from kbench.errors import BundleError
from kbench.execution.plugins import load_registry
from kbench.planning.current_state import Present
from kbench.planning.methods import method_code
from kbench.records import Cell, Details, Protocol, Ref, Result, Tune
from kbench.records.canonical import dumps, to_json, to_json_with_label
from kbench_sharing import bundle_records, zip_file
from kbench_sharing.dependencies import count_not_reused
from kbench_sharing.reading import parse_bundle, read_bundle
from kbench_sharing.verifying import agreement
from kbench_sharing.writing import Saved, build_files, plugin_lines, plugin_sources
from tests.support.bundles import SUITE, files, known, lines


def with_first(**changes):
    """Return the known cells, of which the first one has a changed first result."""
    whole = known()
    cells = [replace(cell, results=dict(cell.results)) for cell in whole.cells]
    cells[0].results[0] = replace(cells[0].results[0], **changes)
    return Saved(whole.suite, cells, whole.planner, 0, whole.manifests)


def test_the_same_results_become_the_same_bytes(tmp_path):
    zip_file.write(tmp_path / "a.zip", files())
    reordered = Saved(known().suite, known().cells[::-1], known().planner, 0, known().manifests)
    zip_file.write(tmp_path / "b.zip", build_files(reordered, SUITE, load_registry()))
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_searched_parameters_have_the_order_of_the_suite():
    # of two candidates with equal scores the first is chosen, and lines are sorted by key
    two, registry = Tune((2, 1)), load_registry()
    kernel = Ref("polynomial", {"offset": two, "degree": two})
    learner = Ref("kernel-ridge", {"kernel": kernel, "alpha": two})
    trees = Ref("random-trees-embedding", {"n_estimators": two, "max_depth": two})
    either = Ref("kernel-ridge", {"kernel": Tune((Ref("gaussian"), kernel)), "alpha": two})
    ridge = Ref("ridge", {"alpha": two})
    for feature_map, last in (
        *((Ref("identity"), learner), (trees, ridge), (Ref("identity"), either)),
        (Ref("nystroem", {"n_components": two, "kernel": kernel}), ridge),
    ):
        cell = Cell(Ref("iris"), feature_map, last, Protocol())
        code = to_json(method_code(cell, registry, "classification"))
        line = {
            "key": "0" * 64,
            "dataset": "iris",
            "kinds": [],
            "n_splits": 1,
            "protocol": to_json(cell.protocol),
            "code": code,
            "family": "",
            "equivalence": "",
            "feature_map": to_json_with_label(feature_map),
            "learner": to_json_with_label(last),
        }
        shared = bundle_records.SharedCell.model_validate_json(dumps(line))
        read = shared.cell(bundle_records.SharedRef(name="iris", params={}, label=""))
        assert to_json(method_code(read, registry, "classification")) == code


def test_a_folder_has_the_files_of_the_zip(tmp_path):
    zip_file.write(tmp_path / "a.zip", files())
    zip_file.write(tmp_path / "a", files())
    assert read_bundle(tmp_path / "a").id == read_bundle(tmp_path / "a.zip").id
    with pytest.raises(BundleError, match="exists: choose a new folder"):
        zip_file.write(tmp_path / "a", files())


def test_no_host_no_path_and_no_machine_is_in_it():
    failed = with_first(
        status="error",
        metrics={},
        details=Details(),
        error='File "/home/ada/x.py", line 1',
        printed="secret",
    )
    content = b"".join(build_files(failed, SUITE, load_registry()).values())
    for text in (b"ada-laptop", b"0123456789ab", b"/home/ada", b"secret", str(Path.cwd()).encode()):
        assert text not in content
    asked = build_files(failed, SUITE, load_registry(), with_errors=True)["results.jsonl"]
    assert b"/home/ada" in asked
    assert b"secret" in asked
    assert b"ada-laptop" not in asked


def test_no_value_of_a_variable_and_no_path_of_a_file_is_in_it():
    value = hashlib.sha256(b"hunter2").hexdigest()
    here = next(iter(known().manifests.values()))
    made_from = replace(
        here,
        files={**here.files, "/home/ada/weights.npy": "a" * 64, "/opt/secret": None},
        variables={"TOKEN": value, "UNSET": None},
    )
    some = with_first(manifest=made_from.digest)
    some = replace(some, manifests={**some.manifests, made_from.digest: made_from})
    files = build_files(some, SUITE, load_registry())
    content = b"".join(files.values())
    digest = str(here.distributions["numpy"]).split()[-1]
    for text in ("hunter2", value, "a" * 64, "/home", "weights.npy", "/opt", "secret", digest):
        assert text.encode() not in content
    shared = parse_bundle(files)
    manifests = [
        shared.dependencies[r.manifest] for r in shared.results[some.cells[0].key].values()
    ]
    (one,) = [manifest for manifest in manifests if "TOKEN" in manifest.variables]
    assert one.variables == {"TOKEN": "set", "UNSET": None}
    assert {name: v for name, v in one.files.items() if name not in here.files} == {
        "/0": "",
        "/1": "",
    }


def test_a_result_of_unknown_dependencies_is_not_shared():
    with pytest.raises(BundleError, match="the dependencies of a result are unknown"):
        build_files(with_first(manifest=""), SUITE, load_registry())


def test_what_results_were_made_from_holds_where_all_of_it_is_the_same():
    shared, present = parse_bundle(files()), Present()
    (manifest,) = shared.dependencies.values()
    assert count_not_reused(shared, present) == {}
    other = {**manifest.modules, "kbench_learners._ridge": "0" * 64}
    changed = replace(shared, dependencies={manifest.digest: replace(manifest, modules=other)})
    assert count_not_reused(changed, present) == {
        "kbench_learners/_ridge.py changed": shared.n_results
    }


def test_shares_are_exact_and_times_have_three_digits():
    bundle = parse_bundle(files())
    for cell in known().cells:
        for split, result in cell.results.items():
            shared = bundle.results[cell.key][split]
            assert shared.metrics["accuracy"] == result.metrics["accuracy"]
            assert shared.metrics["fit_time_s"] == pytest.approx(
                result.metrics["fit_time_s"], rel=5e-3
            )
            again = shared.result("theirs", "A CPU")
            assert again.details.chosen == result.details.chosen
            assert (again.machine, again.host) == ("theirs", "")
    assert bundle.results[cell.key][0].details.search_seconds == [0.0123]


def test_what_is_rounded_agrees_with_what_was_computed():
    """Rounding is far below noise: the very numbers of a result are equal to what is shared."""
    metrics = {
        **known().cells[0].results[0].metrics,
        "roc_auc": 0.98765432109876,
        "expected_error": 1.0 - 29 / 30,
        "accuracy": 29 / 30,
        "mcc": 1e-20 / 3,
    }
    details = replace(
        known().cells[0].results[0].details,
        search=[{"learner.C": 1.0, "converged": True, "values": [1 / 3, 0.123456789012345]}],
    )
    made = with_first(metrics=metrics, details=details)
    bundle = parse_bundle(build_files(made, SUITE, load_registry()))
    shared = bundle.results[known().cells[0].key][0]
    assert shared.metrics["roc_auc"] == 0.9876543
    assert shared.metrics["accuracy"] == 29 / 30
    assert shared.metrics["expected_error"] == 1.0 - 29 / 30
    assert shared.metrics["mcc"] == pytest.approx(1e-20 / 3, rel=1e-6)
    assert shared.details.search[0]["values"] == [1 / 3, 0.1234568]
    found = agreement(shared, metrics, details.to_json(), other_cpu=False)
    assert found.verdict == "equal"
    other = {**metrics, "roc_auc": 0.9876546}
    assert agreement(shared, other, details.to_json(), other_cpu=False).verdict == "noise"


def test_every_field_of_a_result_is_shared_or_left_out_on_purpose():
    """A new field needs a decision, and a new version of the form."""
    left_out = {"task_key", "cell_key", "host", "cpu", "predicted"}
    shared = set(bundle_records.SharedResult.model_fields) - {"cell"}
    assert {field.name for field in fields(Result)} == shared | left_out
    assert {field.name for field in fields(Details)} == set(
        bundle_records.SharedDetails.model_fields
    )


def test_metrics_without_a_value_are_left_out():
    metrics = {**known().cells[0].results[0].metrics, "roc_auc": float("nan")}
    bundle = parse_bundle(build_files(with_first(metrics=metrics), SUITE, load_registry()))
    assert "roc_auc" not in bundle.results[known().cells[0].key][0].metrics


def test_the_lock_has_the_versions_that_results_were_made_with():
    lock = files()["requirements.txt"].decode().splitlines()
    assert lock[0].startswith("# Python 3.")
    assert {line.partition("==")[0] for line in lock[1:]} >= {"numpy", "scipy", "scikit-learn"}


def test_files_of_the_user_are_named_relative_to_their_folder(tmp_path):
    cells = [replace(cell) for cell in known().cells]
    path = tmp_path / "mine.csv"
    ref = Ref("csv", {"path": str(path), "target": "y"})
    for cell in cells:
        cell.cell = replace(cell.cell, dataset=ref)
    cells = [cell for cell in cells if cell.dataset == cells[0].dataset]
    mine = Saved(known().suite, cells, known().planner, 0, known().manifests)
    with pytest.raises(BundleError, match="is a file outside of"):
        build_files(mine, SUITE, load_registry())
    made = build_files(mine, SUITE, load_registry(), data=tmp_path)
    assert str(tmp_path).encode() not in b"".join(made.values())
    (dataset,) = lines(made["datasets.jsonl"])
    assert dataset["ref"]["params"] == {"path": "mine.csv", "target": "y"}
    assert dataset["source"] == ""


def test_an_author_who_cannot_be_shown_is_refused_at_once():
    with pytest.raises(BundleError, match="the author"):
        files(author="\u202eAda")


def test_versions_and_metric_are_in_the_manifest():
    manifest = json.loads(files()["manifest.json"])
    assert manifest["metric"] == "accuracy"
    assert {"python", "kbench-core", "numpy", "scipy", "scikit-learn"} <= manifest[
        "versions"
    ].keys()


def test_the_sources_of_a_plugin_have_modules_that_load_on_first_use():
    some = known()
    plugin = next(p for p in load_registry().plugins if p.module == "kbench_learners")
    sources = plugin_sources([plugin], some)
    folder = f"sources/{plugin.distribution}/kbench_learners"
    assert {f"{folder}/__init__.py", f"{folder}/_ridge.py"} <= set(sources)
    assert all(name.startswith(f"{folder}/") for name in sources)
    (line,) = plugin_lines([plugin], some)
    assert len(line["fingerprint"]) == 64
