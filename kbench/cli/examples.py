"""Examples at the end of each command's help page: what a person wants, and the command."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "suite": (
        ("Run a suite of 20 seconds:", "kbench suite uci-small"),
        ("See what would run, and how long it would take:", "kbench suite uci --dry-run"),
        ("Compare a map with all known methods:", "kbench suite uci --feature-map nystroem"),
        ("Run one dataset with two learners:",
         "kbench suite uci --dataset iris --learner ridge --learner linear-svm"),
    ),
    "results": (
        ("Print all cells:", "kbench results uci"),
        ("Find the best methods on sonar that are fitted in 20 ms:",
         "kbench results uci --dataset sonar --within 0.02"),
        ("Compare one method with each other one:", "kbench results uci --focus 'rff + ridge'"),
        ("Write the cells as a file:", "kbench results uci --format csv > uci.csv"),
    ),
}  # fmt: skip
"""By the words after `kbench`; the tests parse each."""
