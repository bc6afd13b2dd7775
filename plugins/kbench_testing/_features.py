"""Checks of features: metadata, hooks, commands, and a small run with them."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from kbench import features
from kbench.messages import did_you_mean
from kbench_testing._subject import NOT_INSTALLED, Subject

# The run with which a feature is tried: one task, without a tracker.
RUN = ("suite", "uci-small", "--dataset", "iris", "--feature-map", "identity", "--n-splits", "1")

# Seconds that it may take, with the deadline of a feature that hangs.
RUN_S = 120.0


def check_metadata(subject: Subject) -> None:
    """The metadata are right, and no name in them is taken."""
    subject.fail_if(subject.record.reason, f"is left out: {subject.record.reason}")
    names = {
        *features.CORE_COMMANDS,
        *(name for each in features.features() for name in each.metadata.commands),
    }
    names |= subject.record.metadata.commands.keys()
    for name, option in subject.record.metadata.options.items():
        for command in option.commands:
            subject.fail_if(
                command not in names,
                f"options.{name}.commands: there is no command {command!r}"
                f"{did_you_mean(command, names)}",
            )


def check_hooks(subject: Subject) -> None:
    """The feature implements the hooks that its metadata name, and no others."""
    with subject.failing(kind=features.KbenchError):
        features.import_hooks(subject.record)


def check_targets(subject: Subject) -> None:
    """Commands and functions can be imported and have parameters that commands may have."""
    feature: features.Feature = subject.record
    for name, command in feature.metadata.commands.items():
        if not command.target:
            continue
        with subject.failing(f"the command {name!r} cannot be used: {{error}}"):
            features.build_command(name, feature.load(command.target))
    for name, target in {**feature.metadata.functions, **feature.metadata.completions}.items():
        with subject.failing(f"{name!r} cannot be used: {{error}}"):
            if not callable(feature.load(target)):
                raise subject.fail(f"{name!r} is {target}, which is not a function")


def check_package(subject: Subject) -> None:
    """No plugin is in the same top-level package: importing the plugin would run the feature."""
    package = subject.record.module.partition(".")[0]
    for plugin in features.list_plugins():
        subject.fail_if(
            plugin.module.partition(".")[0] == package,
            f"and the plugin {plugin.name!r} are both in the package {package!r}: tasks "
            "import plugins, and would run the feature; move one of them to a package of its "
            "own",
        )


def check_run(subject: Subject) -> None:
    """A run with the feature ends in time, does not leave it out, and loses no result."""
    if subject.record.distribution == NOT_INSTALLED:
        raise subject.skip("is not installed; `pip install -e .` in its folder, and check it again")
    disabled = [
        each.name for each in features.features() if each.name not in (subject.name, "costs")
    ]
    command = [sys.executable, "-m", "kbench.cli", *RUN, "--quiet"]
    with tempfile.TemporaryDirectory(prefix="kbench-check-") as name:
        state = Path(name) / "state"
        environment = {
            **os.environ,
            "KBENCH_STATE_DIR": str(state),
            "KBENCH_CACHE_DIR": str(Path(name) / "cache"),
            features.DISABLED: ",".join(disabled),
        }
        try:
            done = subprocess.run(
                command,
                cwd=name,
                env=environment,
                capture_output=True,
                text=True,
                timeout=RUN_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise subject.fail(
                f"a run of one task did not end within {RUN_S:g} s; notifications may take "
                f"{features.DEADLINE_S:g} s after the last task, and other hooks none"
            ) from error
        n_results = len(
            list(features.Journal(state / features.machine_id() / "journal.jsonl").read("result"))
        )
    if left_out := [line for line in done.stderr.splitlines() if f"{subject.name!r}" in line]:
        raise subject.fail(f"is left out of a run: {left_out[0]}")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["nothing was printed"])[-1]
        raise subject.fail(f"a run of one task ends with code {done.returncode}: {last}")
    subject.fail_if(n_results != 1, "a run of one task must have one result in the journal")
