"""Where the checkout is, and what may stand beside it."""

from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
SUPPORT = TESTS / "support"

SHARED = ROOT.parent / "shared"
"""Datasets that are not part of the project: tests skip without them."""

MIRROR = SHARED / "openml-mirror"
