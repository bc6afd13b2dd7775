"""Messages of `kbench.run` name its arguments."""

import inspect

import pandas
import pytest

import kbench
from kbench.errors import DatasetError
from kbench_tables.recommend import frame
from kbench_tables.recommend.frame import in_python


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("--keep price keeps it", "keep='price' keeps it"),
        ("--keep 'a b' keeps it", "keep='a b' keeps it"),
        ("(--measure accuracy compares", "(measure='accuracy' compares"),
        ("say --delimiter $'\\t'", "say delimiter='\\t'"),
        ("say --time-limit 120; more", "say time_limit=120; more"),
        ("are these dates? --date 'd=%Y%m%d'", "are these dates? date='d=%Y%m%d'"),
        (
            "give one of --group and --order-by, not both",
            "give one of group and order_by, not both",
        ),
        ("--decimal , --thousands '.' reads", "--decimal , thousands='.' reads"[2:]),
        ("--jobless --keeper x", "--jobless --keeper x"),
        ("nothing to say - - or -- here", "nothing to say - - or -- here"),
    ],
)
def test_options_become_arguments(told, expected):
    assert in_python(told) == expected


def test_all_arguments_of_run_are_known():
    given = {name.replace("_", "-") for name in inspect.signature(kbench.run).parameters}
    assert given - {"data", "name", "progress", "reading"} <= set(frame._ARGUMENTS)


@pytest.mark.usefixtures("forked_sandboxes")
def test_a_refusal_of_a_frame_has_no_options():
    frame = pandas.DataFrame({"x": [*map(str, range(40)), "unknown"], "y": ["a", "b"] * 20 + ["a"]})
    with pytest.raises(DatasetError, match=r"ignore='x' \(left out\)") as refused:
        kbench.run(frame, "y", progress=False)
    assert "--" not in str(refused.value)
    with pytest.raises(DatasetError, match="give one of group and order_by"):
        kbench.run(frame, "y", group="x", order_by="y", progress=False)
