"""An edit of a third-party plugin computes again what it may have changed, and nothing else."""

import pytest

from tests.conftest import LINUX
from tests.planning.edits.kinds import KINDS
from tests.planning.edits.laboratory import Laboratory
from tests.planning.edits.sources import AGAIN, EITHER, KEPT


def wrong_outcomes(kinds, before, after):
    """Yield a line for each kind that is not planned as it should be."""
    for kind in kinds:
        outcome = AGAIN if after[kind.map] else KEPT
        if before[kind.map]:
            yield f"{kind.name}: {AGAIN} without an edit"
        elif kind.expected not in (outcome, EITHER):
            yield f"{kind.name}: {outcome}, expected {kind.expected}"


def wrong_numbers(kinds, old, after, new):
    """Yield a line for each kind whose edit does not do what its kind says, or is not noticed."""
    for kind in kinds:
        is_same = old[kind.map] == new[kind.map]
        if not after[kind.map] and not is_same:
            yield f"{kind.name}: {KEPT}, and the map computes something else"
        if not kind.depends_on_python and is_same == (kind.expected == AGAIN):
            yield f"{kind.name}: its numbers {'are the same' if is_same else 'differ'}"


def test_an_edit_of_a_few_kinds_computes_again_what_it_may_have_changed(tmp_path):
    kinds = [kind for kind in KINDS if kind.quick]
    laboratory = Laboratory(tmp_path, kinds, forked=LINUX)
    assert None not in laboratory.computed().values()
    before = laboratory.planned()
    laboratory.edit()
    assert [*wrong_outcomes(kinds, before, laboratory.planned())] == []


@pytest.mark.slow
def test_an_edit_of_any_kind_computes_again_what_it_may_have_changed(tmp_path):
    laboratory = Laboratory(tmp_path, KINDS)
    old = laboratory.computed()
    assert [name for name, error in old.items() if error is None] == []
    before = laboratory.planned()
    laboratory.edit()
    after = laboratory.planned()
    wrong = [*wrong_outcomes(KINDS, before, after)]
    wrong += wrong_numbers(KINDS, old, after, laboratory.computed("--fresh"))
    assert wrong == [], f"{len(wrong)} of {len(KINDS)}:\n" + "\n".join(wrong)
