"""The project's own results are bundles that are small, whole, and become a site.

The bundles of the study are apart: it is computed split by split, and a part of it is not put on
the leaderboards beside whole suites.
"""

import sys

import pytest

from kbench_sharing.reading import read_bundle
from tests.support.paths import ROOT

DOCS = ROOT / "docs"
BUNDLES = sorted((DOCS / "results").glob("*.zip"))
MAX_KB = 300
STUDY = [DOCS / "measured" / f"{name}.zip" for name in ("study", "study-regression")]
STUDY_MAX_KB = 8_000


def test_they_are_small():
    assert {path.stem for path in BUNDLES} >= {"uci", "nbcs-medium", "balcan-uci"}
    assert sum(path.stat().st_size for path in BUNDLES) < MAX_KB * 1000


def check_cells(path, most_splits=sys.maxsize):
    """Check that all cells have the same first splits, all of them if they have no more."""
    bundle = read_bundle(path)
    assert bundle.manifest.author == "kbench"
    assert bundle.manifest.suite == path.stem
    for cell in bundle.cells:
        results = bundle.results[cell.key].values()
        computed = range(min(most_splits, cell.n_splits))
        assert sorted(result.split for result in results) == list(computed)
        assert {result.status for result in results} == {"ok"}
        assert not any(result.error or result.printed for result in results)


@pytest.mark.parametrize("path", BUNDLES, ids=lambda path: path.stem)
def test_they_are_whole_and_name_their_author(path):
    check_cells(path)


def test_the_study_is_not_larger_than_its_limit():
    assert sum(path.stat().st_size for path in STUDY) < STUDY_MAX_KB * 1000


@pytest.mark.parametrize("path", STUDY, ids=lambda path: path.stem)
def test_the_study_has_the_same_splits_of_all_cells(path):
    check_cells(path, max(map(len, read_bundle(path).results.values())))


@pytest.mark.slow
def test_their_site_has_all_rows(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(DOCS / "extensions"))
    import leaderboards

    try:
        n_rows, _, problems = leaderboards.write_leaderboards(DOCS / "results", tmp_path / "site")
    finally:
        sys.modules.pop("leaderboards", None)
    assert problems == []
    assert n_rows == sum(len(read_bundle(path).cells) for path in BUNDLES)
    index = (tmp_path / "site" / "index.html").read_text()
    for path in BUNDLES:
        assert f">{path.stem}</a>" in index
