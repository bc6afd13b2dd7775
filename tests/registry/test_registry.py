import pytest

from kbench import DatasetSource, FeatureMap, Learner, PluginError, SuiteError, hookimpl
from kbench.messages import did_you_mean
from kbench.registry.callables import get_module, resolve
from kbench.registry.installed import Plugin, list_plugins
from kbench.registry.registry import build


def maps(*names):
    return [FeatureMap(name, make="collections:Counter") for name in names]


def reason(plugin, *before):
    return build([*before, plugin]).plugins[-1].reason


def test_what_a_plugin_gives_is_found_by_kind_and_name(plugin_of):
    registry = build([plugin_of(kbench_feature_maps=maps("a", "b"))])
    assert list(registry.all("feature map")) == ["a", "b"]
    assert registry.owner("feature map", "a").distribution == "my-dist"


def test_a_plugin_that_raises_at_import_is_named_and_the_others_work(plugin_of):
    def load():
        raise ImportError("no module named 'gone'")

    broken = Plugin("broken", "broken-dist", "2.0", load)
    registry = build([broken, plugin_of(kbench_feature_maps=maps("a"))])
    assert registry.plugins[0].reason == "ImportError: no module named 'gone'"
    assert list(registry.all("feature map")) == ["a"]


def test_a_plugin_that_exits_at_import_does_not_end_the_command():
    def load():
        raise SystemExit("bye")

    assert "bye" in reason(Plugin("p", "d", "1", load))


@pytest.mark.parametrize(
    ("hooks", "words"),
    [
        ({"kbench_feature_maps": None}, "NoneType, not a list of FeatureMap"),
        ({"kbench_feature_maps": ["rff"]}, "returned a str where FeatureMap goes"),
        (
            {"kbench_feature_maps": [FeatureMap("x", make="a:B", grid=["gamma"])]},
            "grid of 'x' must be a mapping of parameters' names, got list",
        ),
        (
            {"kbench_learners": [Learner("x", classifier="a:B", simpler="C")]},
            "simpler of 'x' must be a mapping of parameters' names, got str",
        ),
        (
            {"kbench_datasets": [DatasetSource("x", load=dict, extensions=[".psv"])]},
            "extensions of 'x' must be a mapping of extensions of file names, got list",
        ),
        (
            {"kbench_datasets": [DatasetSource("x", load=dict, extensions={"PSV": {}})]},
            "'x' has the extension 'PSV': extensions are a dot and lower case letters",
        ),
        (
            {"kbench_datasets": [DatasetSource("x", load=dict, extensions={".psv": "|"})]},
            "the extension '.psv' of 'x' must have a mapping",
        ),
        (
            {"kbench_feature_maps": [DatasetSource("x", load=dict)]},
            "returned a DatasetSource where FeatureMap goes",
        ),
        ({"kbench_feature_maps": maps("My Map")}, "'My Map': names are lower case"),
        ({"kbench_feature_maps": maps("a", "a")}, "a feature map called 'a' twice"),
        ({"kbench_feature_map": []}, "did you mean 'kbench_feature_maps'?"),
        ({}, "none of its functions is marked with kbench.hookimpl"),
    ],
)
def test_a_wrong_plugin_is_left_out_with_the_reason(plugin_of, hooks, words):
    assert words in reason(plugin_of(**hooks))


def test_a_plugin_is_taken_whole_or_not_at_all(plugin_of):
    registry = build([plugin_of(kbench_feature_maps=[*maps("good"), "bad"])])
    assert not registry.all("feature map")


def test_a_name_that_is_taken_names_both_owners(plugin_of):
    first = plugin_of("first", "first-dist", kbench_feature_maps=maps("a"))
    second = plugin_of("second", "second-dist", kbench_feature_maps=maps("a", "b"))
    registry = build([first, second])
    assert "'first' of first-dist" in registry.plugins[1].reason
    assert list(registry.all("feature map")) == ["a"]


def test_an_ending_that_is_taken_names_both_sources(plugin_of):
    def plugin(name, **endings):
        source = DatasetSource(name, load=dict, extensions={f".{each}": {} for each in endings})
        return plugin_of(name, kbench_datasets=[source])

    registry = build([plugin("first", psv=1), plugin("second", tab=1, psv=1)])
    assert "reads files that end in .psv, as does 'first'" in registry.plugins[1].reason
    assert list(registry.all("dataset")) == ["first"]


def test_a_hook_that_raises_costs_its_own_plugin_only(plugin_of):
    def kbench_learners():
        raise RuntimeError("inside the hook")

    plugin = plugin_of(kbench_feature_maps=maps("a"))
    plugin.load().kbench_learners = hookimpl(kbench_learners)
    assert reason(plugin) == "RuntimeError: inside the hook"


def test_a_module_that_narrows_dir_is_read_all_the_same(plugin_of):
    plugin = plugin_of(kbench_feature_maps=maps("a"))
    plugin.load().__dir__ = list
    assert not reason(plugin)


def test_what_a_plugin_prints_at_import_stays_off_standard_output(plugin_of, capsys):
    inner = plugin_of(kbench_feature_maps=maps("a"))

    def load():
        print("hello from the plugin")
        return inner.load()

    build([Plugin("p", "d", "1", load)])
    assert capsys.readouterr().out == ""


def test_kbench_own_plugins_come_first_so_that_no_other_can_take_their_names():
    found = list_plugins()
    own = [plugin.distribution == "kbench-core" for plugin in found]
    assert any(own)
    assert own == sorted(own, reverse=True)
    assert not [plugin for plugin in build(found).plugins if plugin.reason]


def test_an_unknown_name_says_what_is_near(registry):
    with pytest.raises(SuiteError, match="did you mean 'nystroem'"):
        registry.get("feature map", "nystrom")
    assert did_you_mean("qqq", ["a", "b"]) == "; available: a, b"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        ("no_such_module:X", "no module 'no_such_module'"),
        ("collections:Nope", "has no 'Nope'"),
        ("sys:path", "not callable"),
    ],
)
def test_a_make_that_leads_nowhere_is_said_so(make, words):
    with pytest.raises(PluginError, match=words):
        resolve(make)


def test_a_missing_dependency_of_a_component_is_named(install_plugin):
    install_plugin("needs_more", "import surely_not_installed\nclass X: pass\n")
    with pytest.raises(PluginError, match="'surely_not_installed', which is not installed"):
        resolve("needs_more:X")


def test_the_module_of_a_make_is_known_without_importing_it():
    assert get_module("no_such_module._x:Y") == "no_such_module._x"
    assert get_module(dict) == "builtins"


NEEDY = """
from kbench import FeatureMap, hookimpl
{at_import}

@hookimpl
def kbench_feature_maps():
    return [FeatureMap("needy", make="needy_plugin_map:Map")]
"""


@pytest.mark.parametrize("wanted", [">=99", "==0.0.1", "<0.1,>=0.0.1"])
def test_a_plugin_for_another_version_of_kbench_is_left_out(install_plugin, wanted):
    path = install_plugin("other_plugin", NEEDY.format(at_import=""))
    with (path.parent / "other_plugin-1.0.dist-info" / "METADATA").open("a") as metadata:
        metadata.write(f"Requires-Dist: Kbench_Core{wanted}\n")
    (found,) = [p for p in build(list_plugins()).plugins if p.distribution == "other-plugin"]
    assert "is made for kbench-core" in found.reason
    assert "and this is 0." in found.reason


def test_a_plugin_for_this_version_is_taken(install_plugin):
    path = install_plugin("other_plugin", NEEDY.format(at_import=""))
    with (path.parent / "other_plugin-1.0.dist-info" / "METADATA").open("a") as metadata:
        metadata.write("Requires-Dist: kbench-core>=0.1\nRequires-Dist: kbench-core-not>=99\n")
    assert "needy" in build(list_plugins()).all("feature map")


def test_a_missing_optional_package_is_named_with_the_extra_that_brings_it(install_plugin):
    path = install_plugin("needy_plugin", NEEDY.format(at_import="import not_there_at_all"))
    with (path.parent / "needy_plugin-1.0.dist-info" / "METADATA").open("a") as metadata:
        metadata.write(
            "Provides-Extra: quick\nRequires-Dist: not-there-at-all>=1; extra == 'quick'\n"
        )
    (left_out,) = [p.reason for p in build(list_plugins()).plugins if p.name == "needy-plugin"]
    with pytest.raises(PluginError) as error:
        resolve("needy_plugin:Map")
    for said in (left_out, str(error.value)):
        assert "needs the package 'not_there_at_all', which is not installed" in said
        assert "pip install 'needy-plugin[quick]'" in said
