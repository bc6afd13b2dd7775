"""Features as packages: installed for a test, in this process and in those that it starts."""

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from kbench.registry.features import find_features
from tests.support.paths import SUPPORT

THIRD_PARTIES = {
    "jsonl": "feature_tracker",
    "batch": "feature_engine",
    "fastest": "feature_command",
}
"""Features of third parties, with their packages in this folder."""

BLOCKER = '''
"""Imports of {package} fail in all processes that have this folder on their path."""
import importlib.machinery
import sys


class Broken:
    def create_module(self, spec):
        return None

    def exec_module(self, module):
        raise ImportError("{package} is blocked")


class Blocked:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "{package}":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        spec.loader = Broken()
        return spec


sys.meta_path.insert(0, Blocked)
'''


class Site:
    """A folder that is on the path of this process and of those that it starts."""

    def __init__(self, folder, patch):
        """Make the folder; `patch` is a monkeypatch."""
        self.folder, self._packages = Path(folder), set[str]()
        self.folder.mkdir(exist_ok=True)
        if str(self.folder) not in sys.path:
            patch.syspath_prepend(str(self.folder))
        others = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
        if str(self.folder) not in others:
            patch.setenv("PYTHONPATH", os.pathsep.join([str(self.folder), *others]))

    def install(self, name, package, distribution=None, requires=()):
        """Write what an installer writes beside a package, whose feature is `name`."""
        distribution = distribution or package.replace("_", "-")
        info = self.folder / f"{distribution.replace('-', '_')}-1.0.dist-info"
        info.mkdir(exist_ok=True)
        lines = [f"Requires-Dist: {each}\n" for each in requires]
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n{''.join(lines)}"
        )
        (info / "entry_points.txt").write_text(f"[kbench.features]\n{name} = {package}\n")
        (info / "RECORD").write_text(f"{package}/__init__.py,,\n")
        self._packages.add(package.partition(".")[0])
        self.refresh()

    def write(self, name, source="", metadata="", distribution=None, requires=()):
        """Install a package of a source and metadata; without metadata there is no such file."""
        package = self.folder / name.replace("-", "_")
        package.mkdir(exist_ok=True)
        (package / "__init__.py").write_text(source)
        if metadata is not None:
            (package / "feature.toml").write_text(metadata)
        self.install(name, package.name, distribution, requires)
        return package

    def third_party(self, name):
        """Install a package of this folder."""
        package = THIRD_PARTIES[name]
        shutil.copytree(SUPPORT / package / package, self.folder / package)
        self.install(name, package)

    def block(self, package):
        """Let imports of a package fail in processes that are started from now on."""
        (self.folder / "sitecustomize.py").write_text(BLOCKER.format(package=package))

    def refresh(self):
        """Have this process see what is installed now."""
        for name in [*sys.modules]:
            if name.partition(".")[0] in self._packages:
                del sys.modules[name]
        importlib.invalidate_caches()
        find_features.cache_clear()


def kbench(*arguments, folder, code=0, **environment):
    """Run the command line in a process of its own; return its output and its errors."""
    done = subprocess.run(
        [sys.executable, "-m", "kbench.cli", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == code, f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout, done.stderr
