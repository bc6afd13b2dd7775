"""The hooks of the Dask engine."""

from kbench import features
from kbench.features import hookimpl


@hookimpl
def kbench_engine(options: features.Options) -> features.EngineOffer | None:
    """Offer the workers of the scheduler that the user names."""
    if not (address := options.given.get("scheduler")):
        return None
    from kbench.messages import option

    if options.exclusive:
        exclusive, scheduler = option("timing", "exclusive"), option("scheduler")
        raise features.SuiteError(f"{exclusive} applies to this machine only; omit {scheduler}")

    def connect(run):  # type: ignore[no-untyped-def]
        from kbench_dask.dispatch import DaskEngine

        return DaskEngine(address, options.jobs, run.notice, run.started)

    return features.EngineOffer(features.cluster_id(), connect)
