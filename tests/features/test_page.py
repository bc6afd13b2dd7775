"""The page "Write a feature" shows the tracker that is tested, and has every hook."""

import re

from kbench import features as public
from kbench import hookspecs
from kbench.registry.features import Command, Option
from kbench.registry.verbs import DEADLINE_S, HOOKS, MOST
from tests.support.paths import ROOT, SUPPORT

PAGE = (ROOT / "docs" / "write_a_feature.md").read_text()
TRACKER = SUPPORT / "feature_tracker"
MAX_WORDS = 1500


def blocks():
    return re.findall(r"^```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_it_shows_the_files_of_the_tracker():
    for path in ("pyproject.toml", "feature_tracker/feature.toml", "feature_tracker/__init__.py"):
        assert (TRACKER / path).read_text() in blocks()


def test_it_is_short():
    assert len(PAGE.split()) <= MAX_WORDS


def test_every_hook_of_features_has_a_line():
    hooks = {name for name, each in vars(hookspecs).items() if name.startswith("kbench_")}
    verbs = {name for name in hooks if getattr(hookspecs, name).__code__.co_argcount}
    assert set(re.findall(r"^\| `(kbench_\w+)` \|", PAGE, re.MULTILINE)) == verbs
    for name in HOOKS:
        assert f"`{name}`" in PAGE.partition("are **notifications**")[0].rpartition("\n\n")[2]


def test_what_it_says_of_metadata_and_limits_holds():
    for key in ("after", "examples", "while_loading", "kind", "default", "metavar", "functions"):
        assert f"`{key}`" in PAGE
        assert key in {**Command.__dataclass_fields__, **Option.__dataclass_fields__}
    assert f"{DEADLINE_S:g} seconds" in PAGE
    assert f"{MOST:,}" in PAGE


def test_its_public_names_are_there():
    for name in ("EngineOffer", "Request", "Answer", "compute_here", "get_given", "still_working"):
        assert name in PAGE
        assert getattr(public, name)


def test_features_may_import_all_that_hooks_are_given():
    source = (ROOT / "kbench" / "hookspecs.py").read_text()
    found = set(re.findall(r"\bfeatures\.([A-Z]\w+)", source))
    assert len(found) > 15
    assert all(getattr(public, name) for name in [*found, "Problem", "Table", "Column", "Section"])
