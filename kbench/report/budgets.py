"""Sentences on the budgets of methods: which notion of an equal budget holds."""

from __future__ import annotations

from collections.abc import Sequence

from kbench.report.axes import duration, number
from kbench.results.budgets import Budget, seconds_by_family, unequal


def span(least: float, most: float) -> str:
    """Write a range of numbers.

    >>> span(4.0, 16.0), span(8.0, 8.0)
    ('4 to 16', '8')
    """
    low, high = number(least), number(most)
    return low if low == high else f"{low} to {high}"


def sentences(budgets: Sequence[Budget], claimed: str) -> list[str]:
    """Say at what budgets methods were compared, and where a claim of the suite does not hold.

    `claimed` is `Suite.budget`: "candidates", "seconds", or empty.
    """
    counted = [budget for budget in budgets if budget.candidates and not budget.is_baseline]
    if not counted:
        return []
    counts = [count for budget in counted for count in budget.candidates.values()]
    said = [f"Methods were compared at {_candidates(min(counts), max(counts))}."]
    if not claimed:
        return said
    said.append(_within_families(counted))
    if claimed == "seconds":
        said += _across_families(counted)
    return said


def _candidates(least: float, most: float) -> str:
    return f"{span(least, most)} candidate{'' if most == 1 else 's'}"


def _within_families(budgets: Sequence[Budget]) -> str:
    claim = "Within each family, methods have equal numbers of candidates"
    exceptions = [
        f"{' + '.join(budget.method)} ({span(budget.least or 0, budget.most or 0)} "
        f"beside {span(usual[0], usual[-1])} of the family {budget.family!r})"
        for budget, usual in unequal(budgets)
    ]
    return f"{claim}, except: {'; '.join(exceptions)}." if exceptions else f"{claim}."


def _across_families(budgets: Sequence[Budget]) -> list[str]:
    said = [
        "Numbers of candidates were chosen on development sets so that families search for "
        "equal CPU seconds."
    ]
    seconds = seconds_by_family(budgets)
    if len(seconds) > 1:
        shortest, *_, longest = sorted(seconds, key=seconds.__getitem__)
        said.append(
            f"The family that searches longest ({_named(longest)}, "
            f"{duration(seconds[longest])} per split) takes "
            f"{number(seconds[longest] / seconds[shortest])} times as long as the one that "
            f"searches shortest ({_named(shortest)}, {duration(seconds[shortest])})."
        )
    without = [" + ".join(budget.method) for budget in budgets if not budget.is_searched]
    if without:
        said.append(f"Without a search: {', '.join(without)}.")
    return said


def _named(group: str | tuple[str, str]) -> str:
    return group if isinstance(group, str) else " + ".join(group)
