"""Files of installed distributions."""

import pytest

from kbench.registry import dependencies
from kbench.registry.dependencies import is_installed


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/venv/lib/python3.12/site-packages/numpy/__init__.py", True),
        ("/usr/lib/python3/dist-packages/numpy/__init__.py", True),
        ("/home/me/site-packages-of-mine/a.py", False),
        ("/home/me/plugin/a.py", False),
    ],
)
def test_installed_files_are_told_from_those_of_a_working_copy(path, expected, monkeypatch):
    # pathlib imports a module in some versions of Python, and imports ask this
    monkeypatch.setattr(dependencies, "Path", None)
    assert is_installed(path) is expected
