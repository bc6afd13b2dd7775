"""The page on suite files has every key of a protocol and of limits, with its default."""

import re
import tomllib
from dataclasses import fields

import pytest

from kbench.records import Limits, Protocol
from tests.support.paths import ROOT


def documented(heading):
    """Return the keys of the table below a heading, and what stands for their defaults."""
    text = (ROOT / "docs" / "suites.md").read_text(encoding="utf-8").split(f"\n## {heading}\n")[1]
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| .+ \|$", text.split("\n## ")[0], re.MULTILINE)
    assert rows
    return dict(rows)


@pytest.mark.parametrize(("heading", "record"), [("Protocol", Protocol), ("Limits", Limits)])
def test_keys_and_defaults_are_those_of_the_record(heading, record):
    found = documented(heading)
    assert found.keys() == {field.name for field in fields(record)}
    for field in fields(record):
        shown = re.fullmatch(r"`(.+)`", found[field.name])
        if shown is None:  # words, for what depends on the data
            assert field.default is None, field.name
            continue
        value = tomllib.loads(f"value = {shown[1]}")["value"]
        default = field.default[0] if isinstance(field.default, tuple) else field.default
        assert value == default, field.name
