"""Names of the suites that have runs in a store, for completion and for messages."""

from kbench.features import KbenchError, Plans, journals
from kbench_mlflow.tracking.address import Address, default_uri
from kbench_mlflow.tracking.database import suites_without_mlflow


def list_stored_suites(store: str | None = None) -> list[str]:
    """Return the suites that have runs in a local store, or were run here for another one.

    Takes milliseconds and asks no server. Empty if no suite is recorded.
    """
    uri = store or default_uri()
    if (names := suites_without_mlflow(uri)) is not None:
        return names
    try:
        name = Address.parse(uri).name
        known = [Plans(journal).suites() for journal in journals().values()]
    except (KbenchError, OSError):
        return []
    return sorted({suite for of in known for suite, stores in of.items() if name in stores})
