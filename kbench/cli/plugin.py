"""`kbench check` and `kbench new`: for those who write plugins."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kbench.errors import PluginError

if TYPE_CHECKING:
    from kbench.testing import CheckResult

_SIGNS = {"passed": "ok", "failed": "FAILED", "warned": "warning", "skipped": "skipped"}


def check(
    plugin: Annotated[str, typer.Argument(help="An entry point, a module or a distribution.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out scikit-learn's own checks, which are slow.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check a plugin: one line per component, then what is wrong and how to mend it.

    Exit code 1 if a check failed, 2 if there is no such plugin or it cannot be
    used at all, so that nothing was checked.
    """
    from kbench.testing import components, run

    checked = components(plugin)
    left_out = [each for each in checked if each.kind == "plugin" and each.record]
    if left_out and len(left_out) == sum(each.kind == "plugin" for each in checked):
        raise PluginError(
            "\n".join(f"plugin {each.name!r} is left out: {each.record}" for each in left_out)
        )
    outcomes = []
    for component, group in itertools.groupby(
        run(checked, slow=not quick), key=lambda each: str(each.component)
    ):
        done = list(group)
        outcomes += done
        if not as_json:
            _show(component, done)
    counts = {each: sum(o.status == each for o in outcomes) for each in _SIGNS}
    if as_json:
        rows = [
            {"component": str(o.component), "check": o.check, "status": o.status}
            | ({"message": o.message} if o.message else {})
            for o in outcomes
        ]
        typer.echo(json.dumps({"counts": counts, "checks": rows}, indent=1))
    else:
        typer.echo(
            f"{len(outcomes)} checks: "
            + ", ".join(f"{count} {status}" for status, count in counts.items() if count)
        )
    raise typer.Exit(1 if counts["failed"] else 0)


def _show(component: str, outcomes: list[CheckResult]) -> None:
    """Print the line of one component, and the messages of its checks below it."""
    passed = sum(each.status == "passed" for each in outcomes)
    worst = next(
        (s for s in ("failed", "warned") if any(o.status == s for o in outcomes)), "passed"
    )
    colour = {"failed": "red", "warned": "yellow", "passed": "green"}[worst]
    word = typer.style(f"{_SIGNS[worst]:8}", fg=colour)
    typer.echo(f"{word} {component:40} {passed} of {len(outcomes)} checks passed")
    said: dict[tuple[str, str], list[str]] = {}
    for each in outcomes:
        if each.message:
            said.setdefault((each.status, each.message), []).append(each.check)
    for (status, message), checks in said.items():
        # one reason often holds for many checks: what cannot be built cannot be fitted
        which = checks[0] if len(checks) == 1 else f"{len(checks)} checks"
        first, *rest = message.splitlines()
        typer.echo(f"    {_SIGNS[status]} {which}: {first}")
        for line in rest:
            typer.echo(f"      {line}")


def new(
    name: Annotated[str, typer.Argument(help="Lower case letters, digits and hyphens.")],
    feature_map: Annotated[
        bool, typer.Option("--feature-map", help="It brings a feature map (the default).")
    ] = False,
    learner: Annotated[bool, typer.Option("--learner", help="It brings a learner.")] = False,
    kernel: Annotated[bool, typer.Option("--kernel", help="It brings a kernel.")] = False,
    dataset: Annotated[bool, typer.Option("--dataset", help="It brings a data set.")] = False,
    suite: Annotated[bool, typer.Option("--suite", help="It brings a suite.")] = False,
) -> None:
    """Write a package for a plugin into a new folder NAME; it installs and passes as it is."""
    from kbench.cli import scaffold
    from kbench.registry.registry import build, installed

    flags = {
        "feature-map": feature_map,
        "learner": learner,
        "kernel": kernel,
        "dataset": dataset,
        "suite": suite,
    }
    asked = [kind for kind, wanted in flags.items() if wanted]
    if len(asked) > 1:
        raise PluginError(f"one package brings one thing first: --{' or --'.join(asked)}?")
    kind = asked[0] if asked else "feature-map"
    scaffold.new(name, kind, build(installed()), Path.cwd())
    written = scaffold.KINDS[kind]
    module = f"{name.replace('-', '_')}/{written.module.format(name=name)}"
    typer.echo(f"wrote {name}/; {written.a_kind.lower()} to change is in {name}/{module}")
    typer.echo(f"next: pip install -e {name} && kbench check {name}")
    typer.echo(f"then: {written.try_it.format(name=name)}")
