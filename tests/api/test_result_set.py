"""What `run_suite` and `load_results` return, in Python and in a notebook."""

import re
import types
from xml.etree import ElementTree

import pytest

from kbench.api.result_set import Results
from kbench.errors import FeatureError, SuiteError
from kbench.records import ACCURACY
from kbench.report.tables import table_names
from kbench.results.rows import COLUMNS
from kbench_sharing.added_bundles import keep
from kbench_sharing.reading import parse_bundle
from tests.support.bundles import files
from tests.support.report_rows import changed, grid

HOSTILE = "<script>alert('x')</script>"


def results(rows=None, **more):
    return Results("trial", grid(4, 3) if rows is None else rows, ACCURACY, **more)


def test_a_frame_has_the_columns_of_the_command_and_says_where_it_is_from():
    frame = results(store="sqlite:///here.db", experiment="mine").to_frame()
    assert list(frame.columns) == list(COLUMNS)
    assert len(frame) == len(results()) == 12
    assert frame.attrs == {
        "suite": "trial", "store": "sqlite:///here.db", "experiment": "mine", "problem": "",
    }  # fmt: skip
    assert list(results([]).to_frame().columns) == list(COLUMNS)


def test_a_notebook_shows_the_leaderboard_with_the_best_marked():
    rows = grid(4, 3)
    best = rows[0].method
    rows = [changed(row, accuracy=0.99 if row.method == best else 0.5) for row in rows]
    page = ElementTree.fromstring(results(rows)._repr_html_())
    lines = [[cell.text or "" for cell in line] for line in page.iter("tr")]
    assert lines[0][:4] == ["rank", "feature map", "learner", "accuracy"]
    assert lines[1][:4] == ["1", *best, "0.9900"]
    assert len(lines) == 1 + 3
    bold = [line for line in page.iter("tr") if "bold" in line.get("style", "")]
    assert [line[1].text for line in bold] == [best[0]]
    assert repr(results(rows)).splitlines()[1].split()[:2] == ["1", best[0]]


@pytest.mark.parametrize("n", [1, 4])
def test_names_of_others_are_text(n):
    rows = [
        changed(row, feature_map=HOSTILE, dataset=f"{HOSTILE}{row.dataset}") for row in grid(n, 1)
    ]
    shown = results(rows, experiment=HOSTILE)._repr_html_()
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown


def test_nothing_that_is_finished_is_shown_as_cells():
    rows = [changed(row, status="timed_out", n_splits_done=0) for row in grid(2, 2)]
    shown = results(rows)._repr_html_()
    assert shown.count("timed_out") == 4


@pytest.mark.slow
def test_tables_are_frames_or_texts():
    found = results()
    frame = found.table("scores")
    assert frame["dataset"].nunique() == 4
    methods = [" + ".join(row.method) for row in grid(1, 3)]
    one = found.table("scores", methods=methods[0], transpose=True, format="latex")
    assert "\\begin{tabular}" in one
    assert one.count(r"$\pm$") == 4
    with pytest.raises(SuiteError, match="no table 'scors'; did you mean 'scores'"):
        found.table("scors")
    with pytest.raises(SuiteError, match="format must be"):
        found.table("scores", format="pdf")
    with pytest.raises(SuiteError, match="nothing"):
        found.table("scores", methods="nothing")
    for name in table_names():
        assert found.table(name) is not None


def test_pictures_are_shown_and_saved(tmp_path):
    picture = results().plot("ranks")
    assert picture._repr_svg_().lstrip().startswith("<?xml")
    assert ElementTree.fromstring(picture.svg).tag.endswith("svg")
    assert picture.save(tmp_path / "ranks.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(SuiteError, match="pdf"):
        picture.save(tmp_path / "ranks.gif")
    with pytest.raises(SuiteError, match="did you mean 'ranks'"):
        results().plot("rank")


def test_comparisons_name_what_became_worse():
    rows = grid(2, 2)
    worse = [changed(rows[0], status="timed_out"), *rows[1:]]
    first = rows[0]
    frame = results(rows).compare(results(worse))
    assert len(frame) == len(rows)
    assert frame.attrs["regressions"] == [
        f"{first.feature_map} + {first.learner} on {first.dataset}"
    ]
    assert results(rows).compare(results(rows)).attrs["regressions"] == []
    with pytest.raises(SuiteError, match="must be Results, got int"):
        results().compare(3)


def test_a_comparison_without_the_feature_says_so(monkeypatch):
    monkeypatch.setenv("KBENCH_DISABLE_PLUGINS", "compare")
    with pytest.raises(FeatureError, match="no feature compares results"):
        results().compare(results())


def test_progress_in_a_notebook_is_one_output_and_not_standard_error(monkeypatch, capsys):
    from kbench.api import progress
    from kbench.records import ACCURACY

    outputs = []

    def display(content, display_id):
        outputs.append([content])
        return types.SimpleNamespace(update=outputs[-1].append)

    module = types.SimpleNamespace(HTML=str, display=display)
    monkeypatch.setitem(__import__("sys").modules, "IPython", types.SimpleNamespace())
    monkeypatch.setitem(__import__("sys").modules, "IPython.display", module)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr(progress.NotebookTable, "EVERY_S", 0.001)
    chosen = progress.choose(as_json=False, quiet=False, jobs=2)
    monkeypatch.setattr(chosen, "notice", lambda text: None)
    with chosen:
        chosen.on_planned([], 3, ACCURACY)
        chosen.on_loading("<b>iris</b>")
        while not any("iris" in shown for shown in outputs[0]):
            pass
    assert len(outputs) == 1
    assert "0 tasks computed" in outputs[0][-1]
    assert not any(re.search("<b>iris", shown) for shown in outputs[0])
    assert capsys.readouterr() == ("", "")


def test_rows_of_others_are_a_frame_beside_own_ones(tmp_path, monkeypatch):
    monkeypatch.setenv("KBENCH_STATE_DIR", str(tmp_path))
    results = Results("shared", [], ACCURACY)
    assert list(results.imported) == list(results.imported[:0])
    assert len(results.imported) == 0
    shared = parse_bundle(dict(files(author="Ada")))
    path, _ = keep(shared)
    others = results.imported
    assert set(others["author"]) == {"Ada"}
    assert set(others["verification"]) == {"imported"}
    assert set(others["comparable"]) == {"not computed locally"}
    assert len(others) == len(shared.cells)
    assert others["accuracy"].between(0, 1).all()
    assert not any(name.endswith("_s") for name in others)
    path.chmod(0o600)
    path.write_bytes(b"damaged")
    with pytest.warns(UserWarning, match="is invalid: .*import it again"):
        assert len(results.imported) == 0
