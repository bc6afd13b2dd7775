"""Sphinx configuration: `sphinx-build -W --keep-going docs docs/_build/html`."""

import sys
from pathlib import Path

import kbench

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "kbench"
author = "the kbench authors"
version = release = kbench.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "components", "mathml"]
extensions += ["commands", "installed_suites", "leaderboards", "notebook", "stored"]
extensions += ["study_sentences"]
exclude_patterns = ["_build"]
# single backticks in docstrings are names, linked where the name exists
default_role = "py:obj"

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3

numpydoc_show_class_members = False  # autodoc lists them
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # types, with shapes and units, are in the docstrings

html_theme = "furo"
html_math_renderer = "mathml"
html_title = f"kbench {version}"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
