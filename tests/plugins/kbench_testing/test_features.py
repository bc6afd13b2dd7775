"""The conformance kit on features: each check, and a feature that breaks its rule."""

import pytest

from kbench_testing import _features as checks
from kbench_testing import components, run
from tests.support.features_here import Site

HOOK = """
from kbench.features import hookimpl


@hookimpl
def kbench_run_finished(run, report):
    {body}
"""
GOOD = HOOK.format(body="return None")
HOOKS = 'hooks = ["kbench_run_finished"]\n'


@pytest.fixture
def site(tmp_path, monkeypatch):
    made = Site(tmp_path / "site", monkeypatch)
    yield made
    monkeypatch.undo()
    made.refresh()


def results(name, slow=False):
    return {each.check: each for each in run(components(name), slow=slow)}


def test_the_built_in_features_pass():
    for name in ("mlflow", "dask", "sharing", "costs", "tables", "rescoring", "testing"):
        found = components(name)
        assert [each.kind for each in found] == ["feature"]
        assert {each.status for each in run(found, slow=False)} == {"passed"}, name


@pytest.mark.parametrize(
    ("check", "source", "metadata", "words"),
    [
        ("check_metadata", GOOD, HOOKS + "command = {}\n", "command: no such key; did you mean"),
        ("check_metadata", GOOD, HOOKS + '[commands.suite]\ntarget = "a:b"\nhelp = ""', "suite"),
        ("check_hooks", GOOD, "hooks = []\n", "kbench_run_finished is not in the `hooks`"),
        ("check_hooks", "", HOOKS, "kbench_run_finished is in its metadata only"),
        ("check_hooks", "1 / 0", HOOKS, "ZeroDivisionError"),
        (
            "check_targets",
            GOOD,
            HOOKS + '[commands.mine]\ntarget = "bad_feature:gone"\nhelp = "x"\n',
            "'mine' cannot be used",
        ),
        (
            "check_metadata",
            GOOD,
            HOOKS + '[options.mine]\ncommands = ["suites"]\nhelp = "x"\n',
            "there is no command 'suites'; did you mean 'suite'?",
        ),
        ("check_targets", GOOD, HOOKS + '[functions]\nf = "bad_feature:__name__"\n', "function"),
    ],
)
def test_a_broken_rule_is_named(site, check, source, metadata, words):
    site.write("bad-feature", source, metadata)
    found = results("bad-feature")[check]
    assert found.status == "failed"
    assert words in found.message


def test_a_plugin_in_the_same_package_is_refused(site):
    package = site.write("bad-feature", GOOD, HOOKS)
    (package / "plugin.py").write_text("")
    (entries,) = site.folder.glob("bad_feature*/entry_points.txt")
    entries.write_text(entries.read_text() + "[kbench]\nbad = bad_feature.plugin\n")
    site.refresh()
    assert "move one of them to a package" in results("bad-feature")["check_package"].message


@pytest.mark.slow
def test_a_feature_that_fails_in_a_run_is_named(site):
    site.write("bad-feature", HOOK.format(body="raise ValueError('no disk')"), HOOKS)
    found = results("bad-feature", slow=True)["check_run"]
    assert (found.status, "no disk" in found.message) == ("failed", True)


@pytest.mark.slow
def test_a_feature_that_hangs_is_named(site):
    site.write("bad-feature", HOOK.format(body="import time; time.sleep(1000)"), HOOKS)
    found = results("bad-feature", slow=True)["check_run"]
    assert (found.status, "it hangs" in found.message) == ("failed", True)


@pytest.mark.slow
def test_a_run_that_does_not_end_fails(site, monkeypatch):
    source = (
        GOOD + "\n\n@hookimpl\ndef kbench_strategy(run):\n    import time\n\n    time.sleep(99)\n"
    )
    site.write("bad-feature", source, 'hooks = ["kbench_run_finished", "kbench_strategy"]\n')
    monkeypatch.setattr(checks, "RUN_S", 10.0)
    assert "did not end within 10 s" in results("bad-feature", slow=True)["check_run"].message


@pytest.mark.slow
def test_a_good_feature_passes_all(site):
    site.write("good-feature", GOOD, HOOKS)
    assert {each.status for each in results("good-feature", slow=True).values()} == {"passed"}
