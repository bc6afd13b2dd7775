"""kbench's own feature maps by name, unfitted, with about as many features as asked for."""

from functools import cache

from kbench.records import Ref
from kbench.registry.callables import makers, read_parameters, resolve
from kbench.registry.installed import HOST, list_plugins
from kbench.registry.registry import build

PER_UNIT = {
    # a grid or tree has about so many cells with training rows
    "n_grids": 10,
    "n_trees": 10,
    "n_landmarks": 1,
    "n_components": 1,
}
"""Parameters of the size of maps, with the columns that one adds; the first one counts."""

HASHED = {"simplicial-mesh", "simplicial-mesh-learned"}
"""Maps whose `n_components` is no size, but the number of columns where cells are hashed."""


@cache
def records():
    """Return the records of all maps of kbench itself, in the order of the plugins."""
    registry = build([plugin for plugin in list_plugins() if plugin.distribution == HOST])
    return registry.all("feature map")


def unfitted(name, n_columns=None, random_state=0):
    """Return a map with its defaults and a seed; with `n_columns`, of about this size."""
    record = records()[name]
    make = makers(record)[0]
    known = read_parameters(make) or {}
    given = {
        each: _made(record.grid[each][0]) for each, value in known.items() if value.is_required
    }
    sizes = [each for each in PER_UNIT if each in known and name not in HASHED]
    if n_columns and sizes:
        given[sizes[0]] = max(1, n_columns // PER_UNIT[sizes[0]])
    if "random_state" in known:
        given["random_state"] = random_state
    return resolve(make)(**given)


def _made(value):
    if not isinstance(value, Ref):
        return value
    return resolve(makers(records()[value.name])[0])(**value.params)
