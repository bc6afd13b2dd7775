"""Which components a dry run checks in a separate process, and which it need not."""

import pytest

from kbench.api.inputs import select_suite
from kbench.execution import session
from kbench.planning.current_state import Present
from kbench.planning.suite_file import read
from kbench.registry.installed import list_plugins
from kbench.registry.registry import build
from kbench.runner import Run, preview

REGISTRY = build(list_plugins())


@pytest.fixture
def checked(monkeypatch):
    """Return the names of components that are checked, by kind; none is."""
    names = {}

    def check(sandbox, components, memory_mib, task=None):
        for kind, placed in components.items():
            names.setdefault(kind, []).extend((place, ref["name"]) for place, ref in placed)

    monkeypatch.setattr(session, "check_components", check)
    return names


def test_a_suite_of_kbench_is_previewed_without_a_process(checked, monkeypatch):
    def start(self):
        raise AssertionError("a process was started")

    monkeypatch.setattr("kbench.execution.sandbox.Sandbox.warm", start)
    report = preview(Run(select_suite("uci", REGISTRY), REGISTRY))
    assert (len(report.cells), sum(len(cell.missing) for cell in report.cells)) == (308, 1428)
    assert checked == {}


def test_only_an_added_component_is_checked(checked):
    chosen = select_suite("uci", REGISTRY, add=(None, ["kernel-kmeans"], None))
    preview(Run(chosen, REGISTRY))
    found = {kind: {name for _, name in placed} for kind, placed in checked.items()}
    assert found == {"dataset": set(), "feature map": {"kernel-kmeans"}, "learner": set()}


def test_a_file_with_the_name_of_a_suite_of_kbench(checked):
    text = 'name = "uci"\ndatasets = ["iris"]\nfeature_maps = ["identity", "rff"]\n'
    changed = read(text + 'learners = [{ name = "ridge", alpha = 3.0 }]', "uci", REGISTRY)
    preview(Run(changed, REGISTRY))
    assert checked == {
        "dataset": [],
        "feature map": [("feature_maps[1]", "rff")],
        "learner": [("learners[0]", "ridge")],
    }


def test_a_suite_that_does_not_come_with_kbench_is_checked(checked, monkeypatch):
    text = 'datasets = ["iris"]\nfeature_maps = ["identity"]\nlearners = ["dummy-majority"]'
    preview(Run(read(text, "own", REGISTRY), REGISTRY))
    whole = [("datasets[0]", "iris"), ("feature_maps[0]", "identity")]
    assert checked["dataset"] + checked["feature map"] == whole
    checked.clear()
    monkeypatch.setattr(session, "HOST", "another-distribution")
    preview(Run(select_suite("uci-small", REGISTRY), REGISTRY))
    assert all(checked.values())


def test_a_component_whose_package_is_missing_is_checked(checked, monkeypatch):
    suite = select_suite("strong-baselines", REGISTRY, learners=["lightgbm", "mlp"])
    preview(Run(suite, REGISTRY))
    assert checked == {}
    find = Present._module
    monkeypatch.setattr(
        Present, "_module", lambda self, name: None if name == "lightgbm" else find(self, name)
    )
    preview(Run(suite, REGISTRY))
    assert {name for _, name in checked.pop("learner")} == {"lightgbm"}
    assert not any(checked.values())


def test_a_run_checks_all_components_of_a_suite_of_kbench(checked):
    run = Run(select_suite("uci-small", REGISTRY), REGISTRY)
    run.session.check_parameters()
    run.session.close()
    assert all(checked.values())


def test_places_name_the_block_of_several():
    suite = read(
        'datasets = ["iris"]\n[[block]]\nfeature_maps = ["rff"]\nlearners = ["ridge"]\n'
        '[[block]]\nfeature_maps = ["identity"]\nlearners = ["knn", "ridge"]',
        "two",
        REGISTRY,
    )
    places = [place for place, _ in session.list_components(suite)["learner"]]
    assert places == ["block[0].learners[0]", "block[1].learners[0]", "block[1].learners[1]"]
