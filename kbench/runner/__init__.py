"""A run of a suite: plan, execute, store, deliver.

Suite, Options ──▶ Runner ──▶ Report
└──▶ Watcher, while it runs
"""

from kbench.runner.options import Options
from kbench.runner.report import Report
from kbench.runner.runner import Runner
from kbench.runner.watcher import Watcher

__all__ = ["Options", "Report", "Runner", "Watcher"]
