"""A run of a suite: plan, compute, tell the features.

Suite, Options ──▶ Run ──▶ execute or preview ──▶ Report
                    └──▶ Watcher and features, while it runs
"""

from kbench.planning.options import Options
from kbench.runner.loop import execute, preview
from kbench.runner.report import Report
from kbench.runner.run import Run
from kbench.runner.watcher import Watcher

__all__ = ["Options", "Report", "Run", "Watcher", "execute", "preview"]
