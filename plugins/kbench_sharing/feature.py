"""Hooks for shared results."""

from collections.abc import Callable, Mapping, Sequence

from kbench import features
from kbench.features import hookimpl


@hookimpl
def kbench_run_notices(options: features.Options) -> Sequence[str]:
    """Return why results of bundles are not reused; raise for unknown names."""
    names = options.given.get("reuse_bundles")
    if not names:
        return ()
    from kbench_sharing.added_bundles import notices, read_named_bundles

    bundles, present = read_named_bundles(names, options.recompute), features.Present()
    texts = [notice for bundle in bundles for notice in notices(bundle, present)]
    present.save()
    return texts


@hookimpl
def kbench_known_results(
    run: features.Run, cells: Sequence[features.PlannedCell]
) -> Mapping[str, Mapping[int, features.Result]] | None:
    """Return the results of the bundles to reuse."""
    names = run.options.given.get("reuse_bundles")
    if not names:
        return None
    from kbench_sharing.added_bundles import read_named_bundles, reusable

    results = reusable(read_named_bundles(names, run.options.recompute), run.plan.planner.present)
    if not any(cell.missing and cell.key in results for cell in cells):
        run.notice("no missing result of this run is available in a bundle")
    return results


@hookimpl
def kbench_stored_results(query: features.Query) -> features.StoredResults | None:
    """Read a bundle, which need not be imported."""
    if not query.file:
        return None
    from kbench_sharing.added_bundles import read_stored_results

    return read_stored_results(query.file)


@hookimpl
def kbench_imported_rows(
    suite: str, metric: features.Metric | None, notice: Callable[[str], None]
) -> Sequence[features.ImportedRow]:
    """Return the rows of imported bundles."""
    from kbench_sharing.added_bundles import imported_rows

    return imported_rows(suite, metric, notice)
