"""`kbench plugin check` and `kbench plugin new`: for authors of plugins."""

import json
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer

from kbench import features
from kbench.errors import PluginError
from kbench.features import echo
from kbench_testing import CheckResult, components, run

_SIGNS = {"passed": "ok", "failed": "FAILED", "warned": "warning", "skipped": "skipped"}


def check(
    plugin: Annotated[str, typer.Argument(help="An entry point, a module or a distribution.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="Skip scikit-learn's estimator checks, which are slow.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check a plugin, and print how to correct each defect.

    The exit code is 1 if a check failed, and 2 if there is no such plugin or it cannot be loaded.
    """
    checked = components(plugin)
    plugins = [subject for subject in checked if subject.kind == "plugin"]
    if plugins and all(subject.record for subject in plugins):
        reasons = (f"plugin {subject.name!r} is left out: {subject.record}" for subject in plugins)
        raise PluginError("\n".join(reasons))
    results = []
    for component, group in groupby(run(checked, slow=not quick), lambda r: str(r.component)):
        done = list(group)
        results += done
        if not as_json:
            _show(component, done)
    counts = {status: sum(r.status == status for r in results) for status in _SIGNS}
    if as_json:
        rows = [
            {"component": str(r.component), "check": r.check, "status": r.status}
            | ({"message": r.message} if r.message else {})
            for r in results
        ]
        echo(json.dumps({"counts": counts, "checks": rows}, indent=1))
    else:
        summary = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
        echo(f"{len(results)} checks: {summary}")
    raise typer.Exit(1 if counts["failed"] else 0)


def _show(component: str, results: list[CheckResult]) -> None:
    """Print the line of one component, and the messages of its checks below it."""
    counts = Counter(result.status for result in results)
    worst = next((status for status in ("failed", "warned") if counts[status]), "passed")
    colour = {"failed": "red", "warned": "yellow", "passed": "green"}[worst]
    echo(f"{_SIGNS[worst]:8}", nl=False, fg=colour)
    echo(f" {component:40} {counts['passed']} of {len(results)} checks passed")
    checks_by_message = features.group_values(
        ((each.status, each.message), each.check) for each in results if each.message
    )
    for (status, message), checks in checks_by_message.items():
        # one reason often holds for many checks: what cannot be built cannot be fitted
        names = checks[0] if len(checks) == 1 else f"{len(checks)} checks"
        echo("\n      ".join(f"    {_SIGNS[status]} {names}: {message}".splitlines()))


def new(
    name: Annotated[
        str, typer.Argument(help="Name of the package: lower-case letters, digits and hyphens.")
    ],
    feature_map: Annotated[
        bool, typer.Option("--feature-map", help="Write a feature map (the default).")
    ] = False,
    learner: Annotated[
        bool, typer.Option("--learner", help="Write a learner for classification.")
    ] = False,
    regressor: Annotated[
        bool, typer.Option("--regressor", help="Write a learner for regression.")
    ] = False,
    kernel: Annotated[bool, typer.Option("--kernel", help="Write a kernel.")] = False,
    dataset: Annotated[bool, typer.Option("--dataset", help="Write a dataset.")] = False,
    suite: Annotated[bool, typer.Option("--suite", help="Write a suite.")] = False,
    feature: Annotated[
        bool, typer.Option("--feature", help="Write a feature: here a tracker of results.")
    ] = False,
) -> None:
    """Create a plugin package in the new folder NAME, ready to be installed and checked."""
    from kbench_testing import scaffold

    flags = {
        "feature-map": feature_map,
        "learner": learner,
        "regressor": regressor,
        "kernel": kernel,
        "dataset": dataset,
        "suite": suite,
        "feature": feature,
    }
    asked = [kind for kind, wanted in flags.items() if wanted]
    if len(asked) > 1:
        raise PluginError(f"only one kind of component can be given, got --{' and --'.join(asked)}")
    kind = asked[0] if asked else "feature-map"
    scaffold.new(name, kind, features.load_registry(), Path.cwd())
    written = scaffold.KINDS[kind]
    file = "__init__.py" if kind == "feature" else written.module.format(name=name)
    module = f"{name.replace('-', '_')}/{file}"
    echo(f"wrote {name}/; {written.a_kind.lower()} to change is in {name}/{module}")
    echo(f"next: pip install -e {name} && kbench plugin check {name}")
    echo(f"then: {written.try_it.format(name=name)}")
