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
    "report": (
        ("Write a page and look at it:", "kbench report uci --open"),
        ("Print a table of three methods for a paper:",
         "kbench report uci --table main --format latex --methods nystroem,rff,identity"),
        ("Print the names of all tables:", "kbench report uci --table list"),
    ),
    "plot": (
        ("Draw accuracy against time:", "kbench plot measure-time uci -o uci.pdf"),
        ("Draw the ranks of some methods:",
         "kbench plot ranks uci --methods 'rff + ridge,nystroem' -o ranks.svg"),
    ),
}  # fmt: skip
"""By the words after `kbench`; the tests parse each."""
