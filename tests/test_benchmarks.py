"""The benchmarks, which nothing else runs, still fit the code that they measure."""

import ast
import importlib

import pytest

from tests.support.paths import ROOT

BENCHMARKS = sorted((ROOT / "tests" / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_what_a_benchmark_imports_is_there(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    gone = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kbench"):
            module = importlib.import_module(node.module)
            for name in (alias.name for alias in node.names):
                if not hasattr(module, name):
                    try:
                        importlib.import_module(f"{node.module}.{name}")
                    except ImportError:
                        gone.append(f"{node.module}.{name}")
    assert gone == []
