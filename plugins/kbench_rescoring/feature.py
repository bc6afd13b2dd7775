"""The hooks of rescoring."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kbench.features import hookimpl

if TYPE_CHECKING:
    from kbench.features import Added, Run, Strategy


@hookimpl
def kbench_strategy(run: Run) -> Strategy | None:
    """Compute no task if metrics are added to existing results."""
    if "rescore" not in run.options.given:
        return None
    from kbench_rescoring.rescoring import KnownOnly

    return KnownOnly(run)


@hookimpl
def kbench_results_complete(run: Run) -> Sequence[Added]:
    """Add the metric that the suite compares, if it is a plugin's, or those asked for."""
    asked = run.options.given.get("rescore")
    names = asked or run.plan.late
    if not names:
        return ()
    from kbench_rescoring.rescoring import add

    added = add(run, names)
    for each in added:
        if each.missing and not asked:
            run.notice(each.sentence)
    return added
