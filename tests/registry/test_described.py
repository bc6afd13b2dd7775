import json
from functools import partial
from importlib.resources.abc import Traversable
from pathlib import Path

import numpy as np
import pytest

from kbench import DatasetSource, FeatureMap, Figure, KernelSpec, Learner, PluginError, Ref, Tune
from kbench.registry.callables import Reference, identify
from kbench.registry.collecting import collect
from kbench.registry.described import describe_records, read_records
from kbench.registry.installed import Plugin

PLUGIN = Plugin("p", "p-dist", "1", dict)


class Thing:
    """A thing. It has more sentences."""


def read_back(plugin):
    """Return the records of a plugin as another process reads them."""
    described = json.loads(json.dumps(describe_records(collect(plugin))))
    return {name: record for _, name, record in read_records(described, PLUGIN, print)}


def test_values_come_back_as_they_were_and_callables_as_references(plugin_of):
    grid = {
        "C": np.logspace(-1, 1, 3),
        "n": [np.int64(3), 4],
        "kernel": (Ref("g", {"a": (1, 2)}, label="short"), None),
        "nested": (Ref("g", {"a": Tune((np.float64(0.5), Ref("h")))}),),
        "range": range(2),
        "text": ("a", True),
    }
    found = read_back(
        plugin_of(
            kbench_feature_maps=[
                FeatureMap(
                    "a",
                    make=Thing,
                    grid=grid,
                    span="m:span",
                    depends=["numpy.linalg", Path("weights.npz").absolute()],
                    env_vars=["SEED"],
                )
            ],
            kbench_kernels=[KernelSpec("k", make=partial(Thing, 1), psd=False)],
            kbench_datasets=[DatasetSource("d", load=Thing, extensions={".x": {"sep": "|"}})],
            kbench_figures=[Figure("f", "Title", draw="m:draw", suites=["uci"])],
        )
    )
    record = found["a"]
    assert dict(record.grid) == {
        "C": (0.1, 1.0, 10.0),
        "n": (3, 4),
        "kernel": (Ref("g", {"a": (1, 2)}, label="short"), None),
        "nested": (Ref("g", {"a": Tune((0.5, Ref("h")))}),),
        "range": (0, 1),
        "text": ("a", True),
    }
    assert record.grid["kernel"][0].label == "short"
    assert type(record.grid["n"][0]) is int
    own = __name__
    identity = identify(Thing)
    assert record.make == Reference(
        "p", "p-dist", "feature map", "a", "make", f"{own}:Thing", "A thing.", identity, print
    )
    assert identify(record.make) == identity
    assert (record.span.target, record.span.summary) == ("m:span", None)
    assert record.kernel is None
    assert found["k"].make.target == f"{own}:Thing"
    assert identify(found["k"].make) == identify(partial(Thing, 1))
    assert found["a"].depends == ("numpy.linalg", str(Path("weights.npz").absolute()))
    assert found["a"].env_vars == ("SEED",)
    assert found["d"].extensions == {".x": {"sep": "|"}}
    assert found["f"].suites == ("uci",)


@pytest.mark.parametrize(
    ("hooks", "words"),
    [
        ({"kbench_feature_maps": [FeatureMap("x", make=42)]}, "make of feature map 'x' must be a"),
        (
            {"kbench_feature_maps": [FeatureMap("x", make=dict, grid={"a": [object()]})]},
            "grid of feature map 'x' has a object: values are numbers",
        ),
        (
            {"kbench_feature_maps": [FeatureMap("x", make=dict, supervised="yes")]},
            "supervised of feature map 'x' must be a bool, got str",
        ),
        (
            {"kbench_learners": [Learner("x", classifier=dict, path=3)]},
            "path of learner 'x' must be a str or NoneType, got int",
        ),
        (
            {"kbench_suites": [Path("/no/such/file.toml")]},
            "gives the file '/no/such/file.toml', which is not there",
        ),
    ],
)
def test_a_wrong_value_is_named(plugin_of, hooks, words):
    with pytest.raises(PluginError) as error:
        read_back(plugin_of(**hooks))
    assert words in str(error.value)


def test_texts_that_would_colour_the_screen_do_not(plugin_of):
    found = read_back(
        plugin_of(
            kbench_figures=[Figure("f", "\x1b[1mTitle", draw=Thing)],
            kbench_learners=[Learner("l", classifier=Thing, multiclass="\x1b[1m")],
        )
    )
    assert found["f"].title == "\ufffd[1mTitle"
    assert found["l"].multiclass == "\ufffd[1m"


class Archived(Traversable):
    """A file that exists in no folder."""

    name = "kept.toml"

    def iterdir(self):
        return iter(())

    def is_dir(self):
        return False

    def is_file(self):
        return True

    def open(self, mode="r", *args, **kwargs):
        raise AssertionError

    def joinpath(self, *parts):
        raise AssertionError

    def read_text(self, encoding=None):
        raise AssertionError

    def read_bytes(self):
        return "ü = 1".encode()


def test_files_come_back_as_paths_or_with_their_content(plugin_of, tmp_path):
    (tmp_path / "own.toml").write_text("a = 1")
    found = read_back(plugin_of(kbench_suites=[tmp_path / "own.toml", Archived()]))
    assert found["own"] == tmp_path / "own.toml"
    assert isinstance(found["kept"], Traversable)
    assert found["kept"].read_text(encoding="utf-8") == "ü = 1"
    assert found["kept"].open("rb").read() == "ü = 1".encode()
    assert found["kept"].name == "kept.toml"
