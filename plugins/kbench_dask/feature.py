"""The hooks of the Dask engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbench.features import hookimpl

if TYPE_CHECKING:
    from kbench.features import EngineOffer, Options


@hookimpl
def kbench_engine(options: Options) -> EngineOffer | None:
    """Offer the workers of the scheduler that the user names."""
    address = options.given.get("scheduler")
    if not address:
        return None
    from kbench.features import EngineOffer, SuiteError, cluster_id
    from kbench.messages import option

    if options.exclusive:
        exclusive, scheduler = option("timing", "exclusive"), option("scheduler")
        raise SuiteError(f"{exclusive} applies to this machine only; omit {scheduler}")

    def connect(run):  # type: ignore[no-untyped-def]
        from kbench_dask.dispatch import DaskEngine

        return DaskEngine(address, options.jobs, run.notice, run.started)

    return EngineOffer(cluster_id(), connect)
