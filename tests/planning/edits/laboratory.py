"""An environment of Python with one plugin for each kind of edit, in which kbench runs."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import py_compile
import site
import subprocess
import sys
import venv
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.planning.edits.sources import Content, Kind, Link, distribution
from tests.support.paths import SUPPORT

ROWS = [(0.01 * (37 * i % 100), 0.01 * (61 * i % 97)) for i in range(60)]
SUITE = """
feature_maps = {maps}
learners = [{{ name = "ridge", alpha = 1.0 }}]

[[datasets]]
name = "csv"
path = "data.csv"
target = "y"

[protocol]
cv = "holdout"

[limits]
n_splits = 1
"""
WITHOUT = "mlflow,sharing,costs,dask,leakage"
"""Features that would only take time: a tracker, predicted costs."""


FORKING = """
import contextlib, sys
sys.path.insert(0, sys.argv.pop(1))
from forked_sandboxes import Template, forking
del sys.path[0]
from kbench.cli import main
from kbench.execution.sandbox import warm_process
with contextlib.closing(Template()) as template:
    warm_process.subprocess = forking(template)
    main()
"""
"""The command, whose warm sandboxes are forked from a process that has imported scikit-learn."""


class Laboratory:
    """A virtual environment with plugins, a suite of their maps, and folders of its own.

    Its site-packages are its own, and the packages of the running Python can be imported too.

    Parameters
    ----------
    folder : Path
        An empty folder.
    kinds : iterable of Kind
    forked : bool, default False
        Whether warm sandboxes are forked from one process, which saves a second for each plugin.
    """

    def __init__(self, folder: Path, kinds: Iterable[Kind], forked: bool = False) -> None:
        self._folder = folder
        self._forked = forked
        self.kinds = list(kinds)
        self._variables: dict[str, str] = {}
        venv.create(folder / "env", symlinks=True)
        self._site = next((folder / "env").glob("lib/python*/site-packages"))
        ours = [*site.getsitepackages(), site.getusersitepackages()]
        lines = [f"site.addsitedir({path!r})" for path in ours if Path(path).is_dir()]
        (self._site / "of_the_tests.pth").write_text(f"import site; {'; '.join(lines)}\n")
        for kind in self.kinds:
            self._plant(kind)
        table = [f"{a},{b},{a - b * b + 0.1 * (i % 3)}" for i, (a, b) in enumerate(ROWS)]
        (folder / "data.csv").write_text("\n".join(["a,b,y", *table, ""]))
        named = [self._named(kind, name) for kind in self.kinds for name in ("KIND", *kind.others)]
        (folder / "suite.toml").write_text(SUITE.format(maps=json.dumps(named)))

    def planned(self) -> dict[str, bool]:
        """Return whether the result of each kind would be computed again."""
        (plan,) = (event for event in self._kbench("--dry-run") if "cells" in event)
        return {cell["feature_map"]: bool(cell["tasks"]) for cell in plan["cells"]}

    def computed(self, *options: str) -> dict[str, float | None]:
        """Run the suite; return the error of each map, None where it has failed."""
        (rows,) = (event["rows"] for event in self._kbench(*options) if "rows" in event)
        return {row["feature_map"]: row["rmse"] for row in rows}

    def edit(self) -> None:
        """Apply the edits of all kinds."""
        for kind in self.kinds:
            self._write(kind, kind.then, quietly=kind.quietly)
            self._variables.pop(kind.variable, None)
            self._set(kind, kind.variables_then)

    def _plant(self, kind: Kind) -> None:
        points = f"[kbench]\n{kind.map} = {kind.package}\n"
        sources = kind.sources
        own = {path: content for path, content in sources.items() if path.startswith("PKG/")}
        others = {path: content for path, content in sources.items() if path not in own}
        where = "." if kind.installed == "editable" else ""
        files = distribution("PKG", own, entry_points=points, editable=where)
        if kind.installed == "path":
            files = {path.removeprefix("SITE/"): content for path, content in files.items()}
        self._write(kind, files | others)
        self._set(kind, kind.variables)
        if kind.quietly and "PKG/_inner.py" in own:
            py_compile.compile(str(self._path(kind, "PKG/_inner.py")))

    def _set(self, kind: Kind, variables: Mapping[str, str]) -> None:
        self._variables |= {self._named(kind, name): text for name, text in variables.items()}

    def _write(
        self, kind: Kind, files: Mapping[str, Content | None], quietly: bool = False
    ) -> None:
        # RECORD last: it has the digests of the others
        for name in sorted(files, key=lambda name: name.endswith("RECORD")):
            path, content = self._path(kind, name), files[name]
            times = path.stat() if quietly else None
            if path.is_symlink() or content is None:
                path.unlink()
            if content is None:
                if not any(path.parent.iterdir()):
                    path.parent.rmdir()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, Link):
                path.symlink_to(content.target)
            elif isinstance(content, bytes):
                path.write_bytes(content)
            else:
                text = self._named(kind, content)
                is_record = path.name == "RECORD"
                path.write_text(_with_digests(text, path.parents[1]) if is_record else text)
            if times is not None:
                os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def _path(self, kind: Kind, name: str) -> Path:
        first, _, rest = self._named(kind, name).partition("/")
        if first == "SITE":
            return self._site / rest
        if first == "HERE":
            return self._folder / rest
        # an installed plugin has no project
        in_site = kind.installed == "wheel" and first == kind.package
        return (self._site if in_site else self._project(kind)) / first / rest

    def _project(self, kind: Kind) -> Path:
        return self._folder / "projects" / kind.name

    def _named(self, kind: Kind, text: str) -> str:
        for name, value in (
            ("PKG", kind.package),
            ("KIND", kind.map),
            ("LEVEL", kind.variable),
            ("PROJECT", str(self._project(kind))),
            ("TAG", sys.implementation.cache_tag),
        ):
            text = text.replace(name, value)
        return text

    def _kbench(self, *options: str) -> list[dict]:
        """Run `kbench suite` and return the events that it prints."""
        call = ["-c", FORKING, str(SUPPORT)] if self._forked else ["-m", "kbench.cli"]
        words = [*call, "suite", "suite.toml", "--json", "--offline", *options]
        kept = {name: text for name, text in os.environ.items() if not _is_ours(name)}
        on_path = [str(self._project(kind)) for kind in self.kinds if kind.installed == "path"]
        done = subprocess.run(
            [self._folder / "env/bin/python", *words],
            env=kept
            | {
                "HOME": str(self._folder / "home"),
                "KBENCH_STATE_DIR": str(self._folder / "state"),
                "KBENCH_CACHE_DIR": str(self._folder / "cache"),
                "KBENCH_DISABLE_PLUGINS": WITHOUT,
                "PYTHONPATH": os.pathsep.join(on_path),
            }
            | self._variables,
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=1200,
        )
        assert done.returncode in (0, 1), done.stderr  # 1: a cell has failed
        return [json.loads(line) for line in done.stdout.splitlines()]


def _is_ours(name: str) -> bool:
    return name.startswith(("KBENCH", "PYTHON", "PYTEST", "MLFLOW"))


def _with_digests(record: str, folder: Path) -> str:
    """Fill in what RECORD says of each file."""
    lines = []
    for path in record.replace(",", "").split():
        if not path.endswith("/RECORD"):
            data = (folder / path).read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append(f"{path},sha256={digest},{len(data)}\n")
        else:
            lines.append(f"{path},,\n")
    return "".join(lines)
