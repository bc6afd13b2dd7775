"""The hooks of rescoring."""

from collections.abc import Sequence

from kbench import features
from kbench.features import hookimpl


@hookimpl
def kbench_strategy(run: features.Run) -> features.Strategy | None:
    """Compute no task if metrics are added to existing results."""
    if "rescore" not in run.options.given:
        return None
    from kbench_rescoring.rescoring import KnownOnly

    return KnownOnly(run)


@hookimpl
def kbench_results_complete(run: features.Run) -> Sequence[features.Added]:
    """Add the metric that the suite compares, if it is a plugin's, or those asked for."""
    asked = run.options.given.get("rescore")
    if not (names := asked or run.plan.late):
        return ()
    from kbench_rescoring.rescoring import add

    added = add(run, names)
    for each in added:
        if each.missing and not asked:
            run.notice(each.sentence)
    return added
