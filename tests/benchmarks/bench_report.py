"""How large a report is, and how soon it can be read.

Run it on a quiet machine::

    python tests/benchmarks/bench_report.py

Goals: 19 datasets by 24 methods, as `uci` has, in at most 800 kB and ready in headless
Chromium within 0.5 s; 400 cells in at most 1.5 MiB, ready within 1 s; 10,000 cells built
within 10 s (the store already read) and ready within 3 s.
Ready is the end of the page's own scripts with its layout known, on its own
clock, the best of three; building is CPU time and wall clock of `page`, statistics included.
Without a browser only sizes and building are measured.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from kbench.registry.registry import Registry
from kbench.report.content import ReportData
from kbench_reporting.page import page
from tests.support.report_rows import grid

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
# what a reader waits for: scripts run, styles and layout known
_ASK = """<script>
addEventListener("load", () => {
  document.documentElement.getBoundingClientRect();
  const holder = document.createElement("pre");
  holder.id = "answer";
  holder.textContent = JSON.stringify([performance.now(), document.querySelectorAll("*").length]);
  document.body.append(holder);
});
</script></body>"""


def ready(text: str, folder: Path) -> tuple[float, int]:
    """Return the seconds until the page was drawn, and its number of elements."""
    file = folder / "page.html"
    file.write_text(text.replace("</body>", _ASK), encoding="utf-8")
    command = [str(CHROMIUM), "--headless", "--disable-gpu", "--no-first-run"]
    command += ["--no-sandbox"] if os.geteuid() == 0 else []
    command += [f"--user-data-dir={folder / 'profile'}", "--dump-dom"]
    done = subprocess.run(
        [*command, file.as_uri()], capture_output=True, text=True, timeout=90, check=True
    )
    (found,) = re.findall(r'<pre id="answer">(.*?)</pre>', done.stdout, re.DOTALL)
    milliseconds, elements = json.loads(html.unescape(found))
    return milliseconds / 1000, elements


def main() -> None:
    """Print a line per size."""
    goals = {
        (19, 24): (0.8, None, 0.5),
        (40, 10): (1.5, None, 1.0),
        (250, 40): (None, 10.0, 3.0),
        (100, 100): (None, 10.0, 3),
    }
    print("  cells  methods     MiB  build s  CPU s  ready s elements")
    for (n_datasets, n_methods), (size, built, drawn) in goals.items():
        rows = grid(n_datasets, n_methods)
        wall, cpu = time.perf_counter(), time.process_time()
        text = page(ReportData("bench", rows), Registry())
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        megabytes = len(text.encode()) / 1e6
        line = f"{len(rows):>7,} {n_methods:>8} {megabytes:>6.2f} {wall:>8.2f} {cpu:>6.2f} "
        met = (size is None or megabytes <= size) and (built is None or cpu <= built)
        if CHROMIUM is None:
            print(line + "no browser")
            continue
        with tempfile.TemporaryDirectory() as folder:
            seconds, elements = min(ready(text, Path(folder)) for _ in range(3))
        met = met and seconds <= drawn
        print(f"{line} {seconds:>7.2f} {elements:>8,} {'' if met else '  GOAL MISSED'}")


if __name__ == "__main__":
    main()
