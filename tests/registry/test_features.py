"""Metadata of features: read without importing them, and what is wrong with them is named."""

import importlib
import inspect
import os
import subprocess
import sys

import pytest

import kbench
from kbench.cli.app import CORE
from kbench.errors import FeatureError
from kbench.registry import features as provided
from kbench.registry.features import (
    CORE_COMMANDS,
    Feature,
    Metadata,
    features,
    find_features,
    get_options,
    read,
    working,
)
from tests.support.command_here import command
from tests.support.commands_in_turn import completed, in_turn
from tests.support.features_here import Site

BUILT_IN = [
    "claims",
    "compare",
    "costs",
    "dask",
    "leakage",
    "listing",
    "mlflow",
    "reporting",
    "rescoring",
    "sharing",
    "tables",
    "testing",
]
OPTION = '[options.{name}]\ncommands = ["suite"]\nhelp = "An option."\n'
COMMAND = '[commands.{name}]\ntarget = "one:go"\nhelp = "Go."\n'
TRACE = "import os, pathlib\npathlib.Path(os.environ['TRACE']).write_text('imported')\n"


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Return a folder to install features into."""
    yield Site(tmp_path / "site", monkeypatch)
    find_features.cache_clear()


def reason_of(name):
    """Return why a feature is left out."""
    (found,) = [each.reason for each in features() if each.name == name]
    return found


# -- what stands in feature.toml


MISTAKES = [
    ('hoks = ["kbench_result"]', ["hoks: no such key; did you mean 'hooks'?"]),
    ("hooks = 3", ["hooks must be an array, got 3"]),
    ('hooks = "kbench_result"', ["hooks must be an array, got 'kbench_result'"]),
    ("hooks = [1]", ["hooks[0] must be a string, got 1"]),
    ("commands = 1", ["commands must be a table, got 1"]),
    ("commands.go = 1", ["commands.go must be a table, got 1"]),
    ('[commands.go]\nhelp = "Go."', ["commands.go.target: missing"]),
    ('[commands.go]\ntarget = "one:go"', ["commands.go.help: missing"]),
    (
        '[commands.go]\ntarget = "one"\nhelp = "Go."',
        ["commands.go.target must be \"module:name\", got 'one'"],
    ),
    (
        COMMAND.format(name="go") + 'examples = ["kbench go"]',
        ["commands.go.examples[0] must be an array of 2, got 'kbench go'"],
    ),
    (
        COMMAND.format(name="go") + 'exampels = [["Go:", "kbench go"]]',
        ["commands.go.exampels: no such key; did you mean 'examples'?"],
    ),
    ('[options.x]\nhelp = "X."', ["options.x.commands: missing"]),
    (OPTION.format(name="x") + 'kind = "number"', ["options.x.kind must be", "got 'number'"]),
    (OPTION.format(name="x") + 'default = "no"', ["options.x.default must be a boolean"]),
    (
        OPTION.format(name="x") + "functions = [1]",
        ["options.x.functions[0] must be a string, got 1"],
    ),
    (OPTION.format(name="my-x"), ["options.my-x: must be a name of Python, with underscores"]),
    ("[tables.best]", ["tables.best.help: missing"]),
    ("functions.run = 3", ['functions.run must be "module:name", got 3']),
    ('completions.stored = "one"', ["completions.stored must be \"module:name\", got 'one'"]),
    ("modules.one = 3", ["modules.one must be a string, got 3"]),
    ("hoks = 1\nmodule = 2", ["hoks: no such key", "module: no such key"]),
    (
        '[tables.rain]\nhelp = "r"\ntarget = "rain"',
        ["tables.rain.target must be \"module:name\", got 'rain'"],
    ),
    ("hooks = [", ["is not TOML"]),
]


@pytest.mark.parametrize(("text", "said"), MISTAKES)
def test_a_mistake_names_the_file_the_key_and_what_was_meant(text, said, tmp_path):
    path = tmp_path / "feature.toml"
    path.write_text(text)
    with pytest.raises(FeatureError) as raised:
        read(path)
    lines = str(raised.value).splitlines()
    assert all(line.startswith(str(path)) for line in lines)
    assert all(each in str(raised.value) for each in said)


def test_a_file_that_is_missing_or_no_text_is_named(tmp_path):
    path = tmp_path / "feature.toml"
    with pytest.raises(FeatureError, match=r"cannot read .*feature\.toml: No such file"):
        read(path)
    path.write_bytes(b"\xff")
    with pytest.raises(FeatureError, match=r"feature\.toml is not TOML"):
        read(path)


def test_a_pipe_and_a_huge_file_are_no_metadata(tmp_path):
    pipe, huge = tmp_path / "pipe.toml", tmp_path / "huge.toml"
    os.mkfifo(pipe)
    huge.write_text("# " + "x" * 2**18)
    for path in (pipe, huge):
        with pytest.raises(FeatureError, match=r"is not a file of at most 262,144 bytes"):
            read(path)


def test_metadata_of_every_kind():
    made = Metadata.parse(
        {
            "hooks": ["kbench_result"],
            "commands": {"go": {"target": "a.b:go", "help": "Go.", "examples": [["Go:", "go"]]}},
            "options": {"x": {"commands": ["suite"], "help": "X.", "kind": "list"}},
            "functions": {"go": "a.b:go"},
            "modules": {"going": "a"},
        }
    )
    assert made.hooks == ("kbench_result",)
    assert made.commands["go"].examples == (("Go:", "go"),)
    assert made.options["x"].commands == ("suite",)
    assert not made.options["x"].functions


# -- which features there are


def test_the_features_of_kbench_come_first_and_work(site):
    site.write("aaa", distribution="a-first-name")
    names = [each.name for each in features()]
    assert names == [*BUILT_IN, "aaa"]
    assert [each.name for each in working()] == names


def test_core_commands_are_those_of_the_command_line():
    assert tuple(CORE) == CORE_COMMANDS


def test_a_broken_feature_is_left_out_and_named_by_commands(site, tmp_path, capfd):
    site.write("one", metadata="hoks = []\n")
    site.write("two", metadata=None)
    site.install("three", "no_such_package")
    assert "feature.toml: hoks: no such key; did you mean 'hooks'?" in reason_of("one")
    assert "cannot read" in reason_of("two")
    assert reason_of("three") == "there is no package 'no_such_package'"
    code, _, err = command("go", capfd=capfd)
    assert code == 2
    assert "there is no command 'go'; these features are left out: 'one' (" in err
    assert "'three' (there is no package 'no_such_package')" in err


def test_a_feature_for_another_version_of_kbench_is_left_out(site):
    site.write("old", requires=["kbench-core<0.0.1"])
    assert "is made for kbench-core<0.0.1" in reason_of("old")


GROUP = '[commands.go]\nhelp = "Go places."\n'
VERB = '[commands."{name}"]\ntarget = "one:go"\nhelp = "Go."\n'


def test_a_feature_adds_a_verb_to_a_group_or_has_its_own(site, capfd):
    source = 'def go():\n    """Go."""\n    print("gone")\n'
    metadata = GROUP + VERB.format(name="go home") + VERB.format(name="bundle burn")
    site.write("one", source, metadata)
    assert reason_of("one") == ""
    for words in (("go", "home"), ("bundle", "burn")):
        assert command(*words, capfd=capfd)[:2] == (0, "gone\n")
        assert f"{words[1]}  " in command(words[0], "--help", capfd=capfd)[1]
    assert "Go places." in command("--help", capfd=capfd)[1]
    code, _, err = command("go", "hme", capfd=capfd)
    assert code == 2
    assert "Did you mean 'home'" in " ".join(err.split())


def test_a_verb_needs_its_group(site):
    site.write("one", metadata=VERB.format(name="bundel burn"))
    assert reason_of("one") == "the command 'bundel burn': there is no group 'bundel'"
    site.write("two", metadata=VERB.format(name="suite burn"))
    assert reason_of("two") == "the command 'suite burn': there is no group 'suite'"


@pytest.mark.parametrize("word", ["run", "new", "check", "add", "verify", "publish", "site"])
def test_a_verb_of_a_group_is_no_command(word, capfd):
    code, _, err = command(word, capfd=capfd)
    assert code == 2
    assert f"No such command '{word}'" in err


CLASHES = [
    (COMMAND.format(name="go"), "the command 'go' is also one of the feature 'one' of one"),
    (OPTION.format(name="x"), "the option 'x' of `kbench suite` is also one of the feature 'one'"),
    ('[tables.best]\nhelp = "Best."\n', "the table 'best' is also one of the feature 'one'"),
    ('functions.go = "one:go"\n', "the function 'go' is also one of the feature 'one'"),
    ('modules.going = "one"\n', "the module 'going' is also one of the feature 'one'"),
]


@pytest.mark.parametrize(("metadata", "said"), CLASHES)
def test_the_later_of_two_features_with_one_name_is_left_out(site, metadata, said):
    site.write("two", metadata=metadata)
    site.write("one", metadata=metadata)
    assert reason_of("one") == ""
    assert reason_of("two").startswith(said)


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        (COMMAND.format(name="suite"), "the command 'suite' is also one of kbench itself"),
        (COMMAND.format(name="sync"), "the command 'sync' is also one of the feature 'mlflow'"),
        ('functions.run_suite = "one:go"\n', "the function 'run_suite' is also one of kbench"),
        ('modules.records = "one"\n', "the module 'records' is also one of kbench itself"),
        (OPTION.format(name="store"), "the option 'store' of `kbench suite` is also one of the fe"),
    ],
)
def test_a_feature_cannot_replace_what_kbench_has(site, metadata, said):
    site.write("one", metadata=metadata)
    assert reason_of("one").startswith(said)


def test_a_feature_cannot_take_the_name_of_another(site):
    site.write("mlflow", 'raise SystemExit("not me")\n', distribution="not-mlflow")
    mine, other = (each for each in features() if each.name == "mlflow")
    assert mine.module == "kbench_mlflow.feature"
    assert not mine.reason
    assert other.reason == "the name 'mlflow' is also one of the feature 'mlflow' of kbench-core"


def test_an_option_that_a_command_has_itself_is_left_out_by_name(site, capfd):
    # `--jobs` and `--all`, whose parameter is called `every`
    options = (OPTION.format(name=name) for name in ("jobs", "all", "help"))
    site.write("one", metadata="".join(options))
    code, out, err = command("suite", "--help", capfd=capfd)
    assert code == 0
    for flag in ("-j, --jobs", "--all"):
        assert sum(line.startswith(f"  {flag} ") for line in out.splitlines()) == 1
    for flag in ("--jobs", "--all", "--help"):
        assert f"the option {flag} of the feature 'one' is left out" in err


@pytest.mark.parametrize(("word", "near"), [("sutie", "suite"), ("expor", "export")])
def test_a_wrong_command_has_a_suggestion(capfd, word, near):
    code, _, err = command(word, capfd=capfd)
    assert code == 2
    assert f"Did you mean '{near}'" in " ".join(err.split())


def test_python_lists_what_features_provide():
    import kbench

    assert {"recommend", "run_suite"} <= set(dir(kbench))
    shown = inspect.signature(kbench.run_suite).parameters
    assert {"scheduler", "store"} <= shown.keys()
    assert "features" not in shown


def test_disabled_features_are_left_out_by_name(monkeypatch, capfd, site):
    monkeypatch.setenv("KBENCH_DISABLE_PLUGINS", "mlflow,dask")
    find_features.cache_clear()
    assert reason_of("mlflow") == reason_of("dask") == "disabled by KBENCH_DISABLE_PLUGINS"
    assert "store" not in get_options("suite")
    code, _, err = command("suite", "uci-small", "--scheduler", "tcp://here:1", capfd=capfd)
    assert code == 2
    assert "No such option: --scheduler" in err
    assert "'dask' (disabled by KBENCH_DISABLE_PLUGINS)" in err
    code, out, _ = command("--help", capfd=capfd)
    assert code == 0
    assert " sync " not in out
    code, _, err = command("sync", capfd=capfd)
    assert code == 2
    assert "there is no command 'sync'" in err
    assert "'mlflow' (disabled by KBENCH_DISABLE_PLUGINS)" in err


def test_an_installation_without_the_group_says_how_to_repeat_it(monkeypatch, capfd):
    monkeypatch.setattr("kbench.registry.features.entry_points", lambda group: ())
    find_features.cache_clear()
    try:
        with pytest.raises(FeatureError, match=r"repeat `pip install -e \.`"):
            features()
        code, _, err = command("--help", capfd=capfd)
        assert code == 2
        assert "pip install -e ." in err
        assert command("--version", capfd=capfd)[0] == 0
    finally:
        find_features.cache_clear()


# -- what is imported, and when


def test_looking_round_imports_no_other_feature(site, tmp_path, monkeypatch):
    metadata = 'functions.go = "one:go"\n' + COMMAND.format(name="go") + OPTION.format(name="x")
    site.write("one", TRACE, metadata)
    monkeypatch.setenv("TRACE", str(tmp_path / "trace"))
    commands = (
        ["--version"],
        ["--help"],
        ["suite", "--help"],
        ["bundle", "--help"],
        ["list"],
        ["list", "plugins"],
    )
    found = in_turn(*((arguments, {}) for arguments in commands))
    for arguments, (out, loaded) in zip(commands, found, strict=True):
        assert of_features(loaded) <= ({"kbench_listing"} if "list" in arguments else set())
        if "--help" in arguments and "bundle" not in arguments:
            assert ("Go." if len(arguments) == 1 else "--x") in out
    assert not (tmp_path / "trace").exists()


def of_features(modules):
    """Return those that are packages of features."""
    return {each.module.partition(".")[0] for each in features()} & modules


def test_completion_imports_no_feature(site, tmp_path, monkeypatch):
    site.write("one", TRACE, COMMAND.format(name="go"))
    monkeypatch.setenv("TRACE", str(tmp_path / "trace"))
    words = {
        "kbench sy": "sync",
        "kbench g": "go",
        "kbench bundle v": "verify",
        "kbench suite --st": "--store",
    }
    for word, (printed, loaded) in zip(words.values(), completed(*words), strict=True):
        assert word in printed
        assert not of_features(loaded)
    assert not (tmp_path / "trace").exists()


def test_a_command_imports_its_feature_and_a_broken_one_is_named(site, capfd):
    package = site.write("one", "def go():\n    print('gone')\n", COMMAND.format(name="go"))
    assert command("go", capfd=capfd)[:2] == (0, "gone\n")
    for source, said in [
        ("import no_such_module\n", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("raise SystemExit('bye')\n", "SystemExit: bye"),
        ("", "AttributeError: module 'one' has no attribute 'go'"),
        ("def go(x: 'NoType'): ...\n", "NameError: name 'NoType' is not defined"),
    ]:
        (package / "__init__.py").write_text(source)
        site.refresh()
        code, _, err = command("go", capfd=capfd)
        assert code == 2
        assert "the feature 'one'" in err
        assert f"cannot be used: {said}" in err


def test_load_returns_the_module_or_an_object_of_it():
    feature = Feature("json", "json.decoder", "python")
    assert feature.load().__name__ == "json.decoder"
    assert feature.load("json:loads")("1") == 1
    with pytest.raises(FeatureError, match="the feature 'json' cannot be used: AttributeError"):
        feature.load("json:loadz")


# -- names of kbench that features provide


def test_functions_and_modules_are_found_in_kbench(site, monkeypatch):
    # aliases stay in sys.modules, and as attributes of kbench
    monkeypatch.setattr(kbench, "going", None, raising=False)
    site.write(
        "one", "def go():\n    return 1\n", 'functions.go = "one:go"\nmodules.going = "one"\n'
    )
    assert kbench.go() == 1
    assert provided.function("no_such_function") is None
    assert provided.module_spec("kbench.going") is not None
    assert provided.module_spec("kbench.gone") is None


def test_a_module_of_a_broken_feature_names_it(site):
    site.write("one", "raise ValueError('broken')\n", 'modules.going = "one"\n')
    with pytest.raises(ModuleNotFoundError, match=r"feature 'one'.*ValueError: broken"):
        importlib.import_module("kbench.going")


def test_both_names_of_a_module_are_one_module():
    code = "import kbench.testing as a, kbench_testing as b\nassert a is b, (a, b)\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
