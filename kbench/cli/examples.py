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
    "run": (
        ("Find a method for a table in ten minutes:",
         "kbench run table.csv --target price --time-limit 600"),
        ("Keep the rows of a person together:", "kbench run table.csv --target ill --group person"),
    ),
    "export": (
        ("Fit a method on all rows, and save it as a folder:",
         "kbench export table.csv --target price --feature-map rff --learner ridge -o model"),
    ),
    "predict": (
        ("Predict the rows of a file:", "kbench predict model new.csv -o predicted.csv"),
    ),
    "sync": (
        ("Write what an unreachable store has missed:", "kbench sync"),
        ("Copy the results of a suite to a server:",
         "kbench sync uci --store http://mlflow.example.org"),
    ),
    "rescore": (
        ("Add a measure to known results:", "kbench rescore uci --measure f1_macro"),
    ),
    "results": (
        ("Print all cells:", "kbench results uci"),
        ("Find the best methods on sonar that are fitted in 20 ms:",
         "kbench results uci --dataset sonar --within 0.02"),
        ("Compare one method with each other one:", "kbench results uci --focus 'rff + ridge'"),
        ("Write the cells as a file:", "kbench results uci --format csv > uci.csv"),
    ),
    "compare": (
        ("Compare today's results with those of a date:",
         "kbench compare uci@until=2026-01-31 uci"),
        ("Fail in CI if a result became worse:",
         "kbench compare before.json after.json --fail-on measure,missing"),
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
    "ui": (
        ("Open the pages of a suite:", "kbench ui uci --open"),
        ("Use another port:", "kbench ui --port 5005"),
    ),
    "bundle": (
        ("Write the results of a suite for others:", "kbench bundle uci -o uci.zip"),
        ("Only those of one map, with your name:",
         "kbench bundle uci --feature-map rff --author 'Ada Lovelace' -o rff.zip"),
        ("Tables, figures and a citation for a paper:",
         "kbench bundle uci --author 'Ada Lovelace' --for-paper paper"),
    ),
    "verify": (
        ("Check a file of results, and recompute five splits:", "kbench verify uci.zip"),
        ("Recompute more of them:", "kbench verify uci.zip --sample 20 --jobs 2"),
        ("Write down in a repository what was recomputed:",
         "kbench verify uci.zip --author 'Bob' --to board"),
    ),
    "add": (
        ("Keep the results of others:", "kbench add rff.zip"),
    ),
    "publish": (
        ("Add results to a repository of results:", "kbench publish uci.zip --to board"),
        ("Push them to one on a server:", "kbench publish uci.zip --to https://host/me/board.git"),
    ),
    "site": (
        ("Check a repository of results:", "kbench site board"),
        ("Write its pages too:", "kbench site board -o pages"),
    ),
    "list": (
        ("List everything:", "kbench list"),
        ("List the feature maps:", "kbench list feature-maps"),
    ),
    "show": (("Describe a map:", "kbench show rff"),),
    "check": (("Check a plugin:", "kbench check my-plugin"),),
    "new": (
        ("Write a plugin with a feature map:", "kbench new my-map"),
        ("Write a plugin with a learner:", "kbench new my-learner --learner"),
    ),
    "data list": (("List the datasets in the cache:", "kbench data list"),),
    "data fetch": (
        ("Fetch the data of a suite before a journey:", "kbench data fetch uci"),
        ("Fetch one dataset:", "kbench data fetch uci --dataset sonar"),
    ),
    "data verify": (("Compare all files with their checksums:", "kbench data verify"),),
    "data path": (("Print the folder of the cache:", "kbench data path"),),
    "data clear": (("Remove all datasets:", "kbench data clear --yes"),),
}  # fmt: skip
"""By the words after `kbench`; the tests parse each."""
