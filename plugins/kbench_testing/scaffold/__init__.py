"""`kbench plugin new`: a package that installs and passes the conformance kit as it is written."""

import keyword
import re
import shutil
import sys
import tempfile
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import NamedTuple

from kbench._version import __version__
from kbench.errors import KbenchError, PluginError
from kbench.features import Registry, features
from kbench_testing._subject import is_module

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


class _Kind(NamedTuple):
    """What differs between the kinds of packages."""

    a_kind: str
    module: str
    try_it: str


# What a package can bring.
KINDS = {
    "feature-map": _Kind(
        "A feature map", "_map.py", "kbench suite uci-small --add-feature-map {name}"
    ),
    "learner": _Kind("A learner", "_learner.py", "kbench suite uci-small --add-learner {name}"),
    "regressor": _Kind(
        "A regressor", "_regressor.py", "kbench suite regression --add-learner {name}"
    ),
    "kernel": _Kind("A kernel", "_kernel.py", "kbench show {name}"),
    "dataset": _Kind("A dataset", "_dataset.py", "kbench suite uci-small --add-dataset {name}"),
    "suite": _Kind("A suite", "{name}.toml", "kbench suite {name}"),
    "feature": _Kind("A feature", "feature.toml", "kbench suite uci-small --{name} results.jsonl"),
}


def new(name: str, kind: str, registry: Registry, folder: Path) -> Path:
    """Write a package with one of the `KINDS` into a folder; return the folder of the package.

    Its name, in lower case letters, digits and single hyphens, is that of the distribution, the
    folder, the entry point and the component. PluginError is raised if it is wrong, or taken
    by a component of the registry; then nothing is written.
    """
    _refuse_bad_name(name, registry)
    target = folder / name
    if target.exists() or target.is_symlink():
        raise PluginError(f"{target} exists; choose another name or remove it")
    try:
        # a folder of its own first, so that a fault leaves nothing half-written
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=folder) as draft:
            written = Path(draft) / name
            for path, content in _contents(name, kind).items():
                (written / path).parent.mkdir(parents=True, exist_ok=True)
                (written / path).write_text(content, encoding="utf-8")
            shutil.move(written, target)
    except OSError as error:
        raise KbenchError(f"cannot write {target}: {error.strerror or error}") from error
    return target


def _refuse_bad_name(name: str, registry: Registry) -> None:
    package = name.replace("-", "_")
    if not _NAME.fullmatch(name):
        likely = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        hint = f"; try {likely!r}" if _NAME.fullmatch(likely) else ""
        raise PluginError(
            f"the name {name!r} is not allowed: names are lower case letters, digits and single "
            f"hyphens, and begin with a letter{hint}"
        )
    taken = [
        *("feature" for feature in features() if feature.name == name),
        *registry.find_kinds(name),
        *("plugin" for plugin in registry.plugins if plugin.name == name),
    ]
    if taken:
        raise PluginError(f"there is a {taken[0]} called {name!r} already; choose another name")
    if keyword.iskeyword(package) or package in sys.stdlib_module_names or is_module(package):
        raise PluginError(
            f"the name {name!r} is not allowed: its module {package!r} would hide another one"
        )


def _contents(name: str, kind: str) -> dict[str, str]:
    """Return the text of each file, by its path in the package's folder."""
    kind_ = KINDS[kind]
    package = name.replace("-", "_")
    module = kind_.module.format(name=name)
    group = "feature" if kind == "feature" else "plugin"
    major, minor, *_ = __version__.split(".")
    values = {
        "name": name,
        "package": package,
        "class_": "".join(part.capitalize() for part in name.split("-")),
        "a_kind": kind_.a_kind,
        "module": module,
        "try_it": kind_.try_it.format(name=name),
        "version": f"{major}.{minor}",
        "group": '"kbench.features"' if kind == "feature" else "kbench",
        "what": group,
    }
    sources = {
        "pyproject.toml": "pyproject.toml",
        "README.md": f"{group}.README.md",
        ".gitignore": "gitignore",
        ".github/workflows/test.yml": "ci.yml",
        "tests/test_conformance.py": "test_conformance.py",
        f"{package}/__init__.py": f"{kind}.init",
        f"{package}/{module}": f"{kind}.module",
    }
    templates = files(__name__) / "templates"
    return {
        path: Template((templates / f"{source}.tmpl").read_text(encoding="utf-8")).substitute(
            values
        )
        for path, source in sources.items()
    }
