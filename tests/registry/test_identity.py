"""What a record names has one text, which differs where it would compute something else."""

import copy
import functools
import io
import math
import re
import sys
import threading
import types
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from kbench import FeatureMap, Learner
from kbench.errors import PluginError
from kbench.kernels import Gaussian
from kbench.registry.callables import get_module, identify
from kbench.registry.registry import build

HERE = __name__


class Map:
    """A class with all kinds of callables."""

    def __init__(self, **params):
        """Keep the parameters."""
        self.params = params

    @classmethod
    def preset(cls, **params):
        """Make one."""
        return cls(**params)

    def again(self, **params):
        """Make another."""
        return Map(**self.params, **params)


class Sub(Map):
    """A class that inherits `preset`."""


@dataclass
class Factory:
    """A callable object with a state."""

    kind: str
    sizes: tuple = (1, 2)

    def __call__(self, **params):
        """Make one."""
        return Map(kind=self.kind, **params)


class Slots:
    """A callable object without a dict."""

    __slots__ = ("kind",)

    def __init__(self, kind):
        """Keep it."""
        self.kind = kind

    def __call__(self):
        """Make one."""


def made(kind):
    def make(**params):
        return Map(kind=kind, **params)

    return make


def class_made(kind):
    class Made(Map):
        own = kind

    return Made


def decorated(function):
    @functools.wraps(function)
    def wrapper(**params):
        return function(**params)

    return wrapper


def plain(**params):
    """Make one."""


cached = functools.lru_cache(plain)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        ("my_plugin._map:Map", "my_plugin._map:Map"),
        (Map, f"{HERE}:Map"),
        (plain, f"{HERE}:plain"),
        (math.sqrt, "math:sqrt"),
        (np.exp, "numpy:exp"),
        (Map.preset, f'{{"method":"preset","of":"{HERE}:Map"}}'),
        (Sub.preset, f'{{"method":"preset","of":"{HERE}:Sub"}}'),
    ],
)
def test_what_has_a_name_is_known_by_it(make, text):
    identity = identify(make)
    assert (identity.text, identity.is_importable) == (text, True)


DIFFERENT = [
    lambda: partial(Map),
    lambda: partial(Map, 1),
    lambda: partial(Map, 1.0),
    lambda: partial(Map, True),
    lambda: partial(Map, "1"),
    lambda: partial(Map, b"1"),
    lambda: partial(Map, [1]),
    lambda: partial(Map, (1,)),
    lambda: partial(Map, {1}),
    lambda: partial(Map, {"a": 1}),
    lambda: partial(Map, {"a": {"b": 1}}),
    lambda: partial(Map, None),
    lambda: partial(Map, a=1),
    lambda: partial(Map, a=2),
    lambda: partial(Map, f"{HERE}:Map"),
    lambda: partial(Map, Map),
    lambda: partial(Map, Sub),
    lambda: partial(Sub, a=1),
    lambda: partial(Map, np.arange(3)),
    lambda: partial(Map, np.arange(4)),
    lambda: partial(Map, np.arange(3.0)),
    lambda: partial(Map, np.float64(1)),
    lambda: partial(Map, Gaussian(1.0)),
    lambda: partial(Map, Gaussian(2.0)),
    lambda: partial(Map, re.compile("a")),
    lambda: partial(Map, re.compile("b")),
    lambda: partial(Map, math),
    lambda: partial(Map, np.exp),
    lambda: partial(Map, np.random.RandomState(0)),
    lambda: partial(Map, np.random.RandomState(1)),
    lambda: partial(Map, partial(Map, 1)),
    lambda: partial(Map, partial(Map, 2)),
    lambda: Map(kind=1).again,
    lambda: Map(kind=2).again,
    lambda: Sub(kind=1).again,
    lambda: Factory("one"),
    lambda: Factory("two"),
    lambda: Factory("one", (1, 3)),
    lambda: partial(Factory("one"), a=1),
    lambda: Slots("one"),
    lambda: Slots("two"),
]


def test_different_callables_differ_and_equal_ones_do_not():
    texts = [identify(make()).text for make in DIFFERENT]
    assert len(set(texts)) == len(texts)
    assert [identify(make()).text for make in DIFFERENT] == texts
    assert all(identify(make()).is_importable for make in DIFFERENT)


def test_a_partial_of_a_partial_is_one_partial():
    nested = partial(partial(Map, a=1, b=2), b=3)
    assert identify(nested) == identify(partial(Map, a=1, b=3))
    assert identify(partial(Map, b=3, a=1)) == identify(nested)  # keywords have no order


def test_sets_have_no_order():
    one, other = {"a", "b", "c", "d"}, {"d", "c", "b", "a"}
    assert identify(partial(Map, one)) == identify(partial(Map, other))


def test_the_modules_of_a_callable_are_those_of_its_parts():
    identity = identify(partial(Map, Gaussian(1.0), np.arange(3)))
    assert {HERE, "kbench.kernels.distances", "numpy"} <= identity.modules
    assert identify(Sub.preset).modules == {HERE}


@pytest.mark.parametrize(
    "make",
    [
        lambda **params: Map(**params),
        made("one"),
        class_made("one"),
        type("Dynamic", (Map,), {}),
        decorated(plain),
        partial(made("one"), a=1),
        partial(Map, kernel=lambda x: x),
        class_made("one")(),
        class_made("one").preset,
    ],
)
def test_what_has_no_name_depends_on_the_module_that_made_it(make):
    assert not identify(make).is_importable


def test_a_cached_function_is_known_by_its_name():
    assert not identify(functools.lru_cache(plain)).is_importable  # `plain` is another
    module = types.ModuleType("cached_here")
    exec("import functools\n@functools.lru_cache\ndef f(): pass", vars(module))
    sys.modules["cached_here"] = module
    try:
        identity = identify(module.f)
    finally:
        del sys.modules["cached_here"]
    assert (identity.text, identity.is_importable) == ("cached_here:f", True)


def test_a_class_with_another_modules_name_counts_with_its_own_module():
    class Renamed:
        def fit(self):
            """Learn nothing."""

    Renamed.__module__ = "a_package"
    assert identify(Renamed).modules == {"a_package", HERE}


def endless():
    values = []
    values.append(values)
    return values


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (threading.Lock(), "_thread.lock"),
        ((i for i in ()), "generator"),
        (io.TextIOWrapper(io.BytesIO()), "TextIOWrapper"),
        (endless(), "contains itself"),
    ],
    ids=["lock", "generator", "file", "endless"],
)
@pytest.mark.parametrize("nest", [lambda v: v, lambda v: [v], lambda v: {"a": v}, Slots])
def test_a_value_that_cannot_be_compared_is_refused_by_name(plugin_of, value, named, nest):
    make = partial(Map, kernel=nest(value))
    with pytest.raises(PluginError, match=re.escape(named)):
        identify(make)
    records = [FeatureMap("good", make=Map), FeatureMap("bad", make=make)]
    registry = build([plugin_of(kbench_feature_maps=records)])
    (plugin,) = registry.plugins
    assert plugin.reason.startswith("kbench_feature_maps: make of 'bad' holds a ")
    assert '"module:name"' in plugin.reason
    assert not registry.all("feature map")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"depends": "my_module"}, "depends of 'mine' must be a list, got str: 'my_module'"),
        ({"depends": ["no module"]}, "got 'no module'"),
        ({"depends": ["weights.npz/there"]}, "got 'weights.npz/there'"),
        ({"depends": ["my_module:"]}, "got 'my_module:'"),
        ({"depends": [3]}, "got 3"),
        ({"env_vars": "HOME"}, "env_vars of 'mine' must be a list, got str: 'HOME'"),
        ({"env_vars": ["A=1"]}, "got 'A=1'"),
        ({"env_vars": [3]}, "got 3"),
    ],
)
def test_a_wrong_declaration_leaves_the_plugin_out(plugin_of, changes, reason):
    registry = build([plugin_of(kbench_learners=[Learner("mine", classifier=Map, **changes)])])
    assert registry.plugins[0].reason.startswith("kbench_learners: ")
    assert reason in registry.plugins[0].reason


def test_the_module_of_a_partial_is_that_of_what_it_calls():
    assert get_module(partial(partial(Map, 1), 2)) == HERE
    assert get_module(copy.copy) == "copy"
