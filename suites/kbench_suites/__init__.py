"""The suites that ship with kbench, as ``.toml`` files in this package."""

from importlib.resources import files

from kbench import hookimpl


@hookimpl
def kbench_suites():
    """List the suite files."""
    return sorted(
        (each for each in files(__name__).iterdir() if each.name.endswith(".toml")),
        key=lambda each: each.name,
    )
