"""Sentences on components, read from sources that are not imported."""

import functools
import sys

import pytest

from kbench.registry.callables import makers
from kbench.registry.installed import list_plugins
from kbench.registry.registry import build
from kbench.registry.summaries import Summaries, first_sentence


class Described:
    """What it is. What else."""


class Silent(Described):
    pass


@pytest.fixture
def package(tmp_path, monkeypatch):
    root = tmp_path / "said_plugin"
    root.mkdir()
    files = {
        "__init__.py": '"""Maps that\nare said. Of a plugin."""\nfrom ._map import Map as Shown\n',
        "_map.py": "raise RuntimeError('imported')\n"
        "from functools import partial\n"
        "class Map:\n    '''It maps\n    rows. Then rests.'''\n"
        "def silent(): ...\n"
        "preset = partial(Map, gamma=1)\n"
        "again = Map\n",
        "_circle.py": "from said_plugin._circle import Map\n",
        "_broken.py": "class Map(:\n",
        "_long.py": "class Bare(\n    list,\n):\n    def method(self):\n"
        '        """Of the method."""\n'
        'class Escaped:\n    """With \\""" in it. More."""\n'
        "class Single:\n    'In single quotes. More.'\n"
        'class Commented:\n    # """ alone\n    """After a comment. More."""\n'
        'def last(\n    x=(1, 2),\n):\n    r"""Of the\n    last. More."""\n',
        "_coded.py": "class Map:\n    '''Red \\x1b[31mletters\\x07.'''\n",
    }
    for name, text in files.items():
        (root / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield root
    assert "said_plugin" not in sys.modules


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        ("said_plugin._map:Map", "It maps rows."),
        ("said_plugin:Shown", "It maps rows."),
        ("said_plugin._map:preset", "It maps rows (gamma=1)."),
        ("said_plugin._map:again", ""),
        ("said_plugin._map:silent", ""),
        ("said_plugin._map:gone", ""),
        ("said_plugin._circle:Map", ""),
        ("said_plugin._broken:Map", ""),
        ("said_plugin._gone:Map", ""),
        ("said_plugin._long:Bare", ""),
        ("said_plugin._long:Escaped", 'With """ in it.'),
        ("said_plugin._long:Single", "In single quotes."),
        ("said_plugin._long:Commented", "After a comment."),
        ("said_plugin._long:last", "Of the last."),
        ("said_plugin._coded:Map", "Red [31mletters."),
        ("no_such_package:Map", ""),
        ("math:sqrt", ""),
        (Described, "What it is."),
        (functools.partial(Described), "What it is."),
        (functools.partial(Described, kind="k", f=len), "What it is (kind='k')."),
        (Silent, ""),
    ],
)
def test_what_a_component_is(package, make, sentence):
    assert Summaries().summarise(make) == sentence


def test_what_a_plugin_is(package):
    assert Summaries().summarise_module("said_plugin") == "Maps that are said."


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("One. Two.", "One."),
        ("By A. Rahimi, e.g. Fourier features. Two.", "By A. Rahimi, e.g. Fourier features."),
        ("With ``C``, no end", "With C, no end"),
        ("Does it\n    pay? Yes.", "Does it pay?"),
        ("First\n\nSecond.", "First"),
        ("", ""),
    ],
)
def test_the_first_sentence(text, sentence):
    assert first_sentence(text) == sentence


def test_each_component_of_kbench_has_a_summary():
    registry = build(list_plugins())
    makes = [
        make
        for kind in ("dataset", "kernel", "feature map", "learner")
        for each in registry.all(kind).values()
        for make in makers(each)
    ]
    known = Summaries()
    assert all(map(known.summarise, makes))
