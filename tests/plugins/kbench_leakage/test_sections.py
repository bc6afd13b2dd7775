"""The section of a report: signs, none, or not checked."""

from kbench.registry.registry import Registry
from kbench_leakage import stored_checks
from kbench_leakage.findings import Finding, Leakage
from kbench_leakage.scoring import Score
from kbench_leakage.sections import sections
from kbench_reporting.page import page
from tests.support.report_rows import changed, content, row


def rows(*checksums):
    return [
        changed(row(f"data{k}", "a"), checksum=checksum) for k, checksum in enumerate(checksums)
    ]


def keep(each, *columns):
    more = [Finding("column", (name,), Score(0.99, 0.99, 0.1), False, 2000) for name in columns]
    other = Finding("copies", (), Score(0.0), False, 2000, share=0.0)
    stored_checks.keep(stored_checks.get_key(each.checksum, each.protocol), Leakage((*more, other)))


def text_of(given):
    (section,) = sections(content(given))
    return " ".join(part for part in section.parts if isinstance(part, str))


def test_a_report_names_what_predicts_and_escapes_it():
    one, two = rows("1", "2")
    keep(one, "<b>")
    keep(two)
    html = page(content([one, two]), Registry())
    assert "Possible leakage" in html and "&lt;b&gt; alone predicts" in html
    assert "<b> alone" not in html and "Not checked" not in html


def test_no_sign_is_said_too():
    given = rows("1", "2")
    for each in given:
        keep(each)
    assert text_of(given) == "No evidence of leakage was found in 2 datasets."


def test_datasets_that_were_not_checked_are_named():
    given = rows("1", "2")
    keep(given[0])
    assert text_of(given) == (
        "No evidence of leakage was found in 1 dataset. Not checked on this machine: 'data1'."
    )


def test_rows_of_unknown_data_have_no_section():
    (section,) = sections(content(rows("", "")))
    assert not section.list_parts()


def test_the_printed_table_has_all_datasets():
    given = rows("1", "2", "3")
    keep(given[0], "x")
    keep(given[1])
    (table,) = sections(content(given))[0].only_printed
    signs = [each["sign"] for each in table.rows]
    assert signs[0].startswith("x alone predicts")
    assert signs[1:] == ["none", "not checked on this machine"]
