"""Plugins that are installed, as their distributions' metadata describe them."""

import functools
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, entry_points, metadata, requires
from typing import Any

from kbench._version import __version__
from kbench.errors import PluginError

GROUP = "kbench"
# Distribution of kbench itself; its plugins are registered before all others.
HOST = "kbench-core"

# Environment variable with the names of plugins to leave out, separated by commas.
DISABLED = "KBENCH_DISABLE_PLUGINS"


@dataclass(frozen=True)
class Plugin:
    """A plugin before or after it was registered.

    `name` is that of its entry point, and `load` returns its module. `reason` says why
    the plugin was left out; it is empty when it works. `entry` is the object of its entry
    point, ``"module"`` or ``"module:name"``; empty for a plugin that is not installed.
    """

    name: str
    distribution: str
    version: str
    load: Callable[[], Any]
    reason: str = ""
    module: str = ""
    entry: str = ""


def list_plugins() -> list[Plugin]:
    """List the installed plugins, kbench's first, without loading them.

    Those that `DISABLED` names have this as their reason.
    """
    described = functools.cache(name_and_version)
    left_out = list_disabled()
    plugins = [
        Plugin(
            entry.name,
            *described(entry.dist),
            load=entry.load,
            reason=f"disabled by {DISABLED}" if entry.name in left_out else "",
            module=entry.module,
            entry=entry.value,
        )
        for entry in entry_points(group=GROUP)
    ]
    # an editable install can be listed twice: by its metadata and by its source folder
    unique = {(plugin.distribution, plugin.name): plugin for plugin in plugins}
    return sorted(unique.values(), key=lambda p: (p.distribution != HOST, p.distribution, p.name))


def packages(distribution: str = "") -> list[str]:
    """Return the top-level packages of kbench and of installed plugins, or of those of one."""
    chosen = [each for each in list_plugins() if distribution in ("", each.distribution)]
    return sorted({"kbench", *(plugin.module.partition(".")[0] for plugin in chosen)} - {""})


def list_disabled() -> list[str]:
    """Return the names of plugins in `DISABLED`."""
    names = (name.strip() for name in os.environ.get(DISABLED, "").split(","))
    return [name for name in names if name]


def name_and_version(distribution: Distribution | None) -> tuple[str, str]:
    """Return the name and version of a distribution; each access parses its metadata again."""
    if distribution is None:
        return "unknown", ""
    about = distribution.metadata
    return about["Name"], about["Version"]


def refuse_other_version(distribution: str) -> None:
    """Raise if a distribution asks for another version of kbench than this."""
    if distribution == HOST:  # asks for no version of itself
        return
    try:
        lines = requires(distribution) or []
    except PackageNotFoundError:  # a plugin that was never installed, in tests
        return
    for line in lines:
        if not re.match(r"kbench[-_.]core\b", line, re.IGNORECASE):
            continue
        from packaging.requirements import Requirement
        from packaging.utils import canonicalize_name

        wanted = Requirement(line)
        if canonicalize_name(wanted.name) != HOST:
            continue
        if wanted.marker and not wanted.marker.evaluate({"extra": ""}):
            continue
        if not wanted.specifier.contains(__version__, prereleases=True):
            raise PluginError(
                f"is made for {HOST}{wanted.specifier}, and this is {__version__}: "
                f"install a version of {distribution} that goes with it, or that {HOST}"
            )


def how_to_get(package: str, plugin: str = HOST) -> str:
    """Return the command that installs an extra with a package; empty if no extra has it.

    `package` is its name in import statements or in the index, `plugin` the distribution
    of the plugin.

    Examples
    --------
    >>> how_to_get("numba")
    ": pip install 'kbench-core[numba]'"
    >>> how_to_get("no-such-package")
    ''
    """
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    try:
        lines = requires(plugin) or []
        extras = metadata(plugin).get_all("Provides-Extra") or []
    except PackageNotFoundError:
        return ""
    markers = [
        requirement.marker
        for requirement in map(Requirement, lines)
        if requirement.marker and canonicalize_name(requirement.name) == canonicalize_name(package)
    ]
    matches = [e for e in extras if any(marker.evaluate({"extra": e}) for marker in markers)]
    # an extra for this package says more than one that gathers others
    specific = [extra for extra in matches if extra not in ("all", "dev", "test")]
    return f": pip install '{plugin}[{(specific or matches)[0]}]'" if matches else ""
