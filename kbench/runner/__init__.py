"""A run of a suite: plan, compute, notify the features.

Suite, Options ──▶ Run ──▶ execute or preview ──▶ Report
                    └──▶ Watcher and features, while it runs
"""

from kbench.planning.suite_plan import Options
from kbench.runner.loop import execute, preview
from kbench.runner.run import Report, Run, Watcher

__all__ = ["Options", "Report", "Run", "Watcher", "execute", "preview"]
