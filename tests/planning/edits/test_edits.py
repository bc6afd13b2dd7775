"""An edit of a third-party plugin computes again what it may have changed, and nothing else."""

import sys

import pytest

from tests.planning.edits.kinds import KINDS
from tests.planning.edits.laboratory import Laboratory
from tests.planning.edits.sources import AGAIN, EITHER, KEPT

FORKED = sys.platform == "linux"


def wrong_outcomes(kinds, after):
    """Yield a line for each kind that is not planned as it should be."""
    for kind in kinds:
        outcome = AGAIN if after[kind.map] else KEPT
        if kind.expected not in (outcome, EITHER):
            yield f"{kind.name}: {outcome}, expected {kind.expected}"


def wrong_numbers(kinds, old, new):
    """Yield a line for each kind whose kept result is not what would be computed now."""
    for kind in kinds:
        if old[kind.map] != new[kind.map]:
            yield f"{kind.name}: {KEPT}, and its map computes something else"


def report(wrong, kinds):
    return f"{len(wrong)} wrong, of {len(kinds)} kinds:\n" + "\n".join(wrong)


@pytest.mark.slow
def test_an_edit_of_a_few_kinds_computes_again_what_it_may_have_changed(tmp_path):
    kinds = [kind for kind in KINDS if kind.quick]
    laboratory = Laboratory(tmp_path, kinds, forked=FORKED)
    assert None not in laboratory.computed().values()
    laboratory.edit()
    wrong = [*wrong_outcomes(kinds, laboratory.planned())]
    assert wrong == [], report(wrong, kinds)


@pytest.mark.slow
def test_an_edit_of_any_kind_computes_again_what_it_may_have_changed(tmp_path):
    laboratory = Laboratory(tmp_path, KINDS, forked=FORKED)
    old = laboratory.computed()
    wrong = [f"{name}: failed" for name, error in old.items() if error is None]
    before = laboratory.planned()
    wrong += [f"{name}: {AGAIN} without an edit" for name, again in before.items() if again]
    laboratory.edit()
    after = laboratory.planned()
    wrong += wrong_outcomes(KINDS, after)
    kept = [kind for kind in KINDS if not after[kind.map]]
    chosen = [word for kind in kept for word in ("--feature-map", kind.map)]
    wrong += wrong_numbers(kept, old, laboratory.computed("--recompute", *chosen))
    assert wrong == [], report(wrong, KINDS)
