"""Files for a paper: tables, figures, a statement and a citation, beside their bundle."""

import dataclasses
import json
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from kbench.errors import BundleError
from kbench.execution.plugins import load_registry
from kbench.records import Ref
from kbench_sharing import zip_file
from kbench_sharing.paper import paper_files
from kbench_sharing.reading import parse_bundle, read_bundle
from kbench_sharing.writing import Saved, build_files
from tests.support.bundles import SUITE, files, known

AUTHOR = 'Ada: "L" \\ & {x} %'


@pytest.fixture(scope="module")
def made():
    return paper_files(known(), files(author=AUTHOR), load_registry())


def test_a_paper_has_tables_figures_a_statement_and_the_bundle(made, tmp_path):
    assert set(made) == {
        "CITATION.cff",
        "reproducibility.tex",
        "results.zip",
        "tables/scores.tex",
        "tables/leaderboard.tex",
        "tables/pairs.tex",
        "figures/metric-vs-fit-time.pdf",
        "figures/ranks.pdf",
    }
    assert made["figures/ranks.pdf"].startswith(b"%PDF")
    (tmp_path / "results.zip").write_bytes(made["results.zip"])
    assert read_bundle(tmp_path / "results.zip").n_results == 40


def test_the_same_results_become_the_same_files(made):
    assert paper_files(known(), files(author=AUTHOR), load_registry()) == made


def test_the_citation_names_author_and_bundle(made):
    citation = yaml.safe_load(made["CITATION.cff"])
    bundle = parse_bundle(files(author=AUTHOR))
    assert citation["authors"] == [{"name": AUTHOR}]
    assert citation["version"] == bundle.id[:12]
    assert str(citation["date-released"]) == "2023-11-14"
    assert citation["cff-version"] == "1.2.0"


def test_the_statement_has_versions_data_and_commands(made):
    text = made["reproducibility.tex"].decode().replace(r"\allowbreak ", "")
    bundle = parse_bundle(files(author=AUTHOR))
    manifest = json.loads(files(author=AUTHOR)["manifest.json"])
    assert f"numpy {manifest['versions']['numpy']}" in text
    assert f"numpy=={manifest['versions']['numpy']}" in text
    assert bundle.id in text
    for label, each in bundle.datasets.items():
        assert rf"\item[{label}]" in text
        assert each.checksum in text
    assert "kbench bundle verify results.zip" in text
    tomllib.loads(bundle.files["suite.toml"].decode())


def test_latex_may_break_hashes(made):
    text = made["reproducibility.tex"].decode()
    assert max(map(len, text.replace("\\", " ").split())) < 40


def test_a_citation_needs_an_author():
    with pytest.raises(BundleError, match="give --author NAME"):
        paper_files(known(), files(), load_registry())


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not on the PATH")
@pytest.mark.slow
def test_latex_accepts_hostile_names(tmp_path):
    label = "a&b_c%$#{}~^\\ $x^2$"
    cells = [dataclasses.replace(cell) for cell in known().cells]
    for cell in cells:
        name = cell.cell.dataset.name
        ref = Ref(name, {}, f"{label} {name}")
        cell.cell = dataclasses.replace(cell.cell, dataset=ref)
    hostile = Saved(known().suite, cells, known().planner, 0, known().manifests)
    bundle = dict(build_files(hostile, SUITE, load_registry(), author=AUTHOR))
    zip_file.write_folder(tmp_path / "p", paper_files(hostile, bundle, load_registry()))
    inputs = "".join(
        rf"\input{{{path.relative_to(tmp_path / 'p').as_posix()}}}"
        for path in sorted(Path(tmp_path / "p").rglob("*.tex"))
    )
    (tmp_path / "p" / "all.tex").write_text(
        r"\documentclass{article}\usepackage{booktabs}\begin{document}" + inputs + r"\end{document}"
    )
    done = subprocess.run(
        ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "-no-shell-escape", "all.tex"],
        cwd=tmp_path / "p",
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-800:]
