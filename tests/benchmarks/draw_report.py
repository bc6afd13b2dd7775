"""Put the answer of the stored run into the README, and photograph the top of a report for it.

    python tests/benchmarks/draw_report.py

The answer is that of `docs/measured/uci.json` (`keep_run.py`). Run it where `kbench suite uci`
ran: the page is that of the store in this folder, without the datasets that could not be loaded,
drawn by the system's Chromium as `docs/images/report.png`.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

import kbench
from kbench.execution.plugins import load_registry
from kbench.report.pages import page
from kbench.report.tables import answer_sentences

DOCS = Path(__file__).parent.parent.parent / "docs"
WIDTH, HEIGHT, SCALE, COLOURS = 1080, 1120, 1.25, 48

sys.path.insert(0, str(DOCS / "extensions"))
from stored import stored  # noqa: E402

readme = DOCS.parent / "README.md"
answer = "\n".join(answer_sentences(stored(DOCS / "measured/uci.json").leaderboard))
text = readme.read_text(encoding="utf-8")
# the table of the README names its columns first
block = re.compile(r"(?<=```text\n)(?!feature_map).*?(?=\n```)", re.DOTALL)
readme.write_text(block.sub(lambda _: answer, text), encoding="utf-8")

content = kbench.load_results("uci", outdated=True).content()
content.rows[:] = [row for row in content.rows if row.status != "unavailable"]
with tempfile.TemporaryDirectory() as folder:
    html, photograph = Path(folder) / "uci.html", Path(folder) / "uci.png"
    html.write_text(page(content, load_registry()), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    options += [f"--force-device-scale-factor={SCALE}", f"--window-size={WIDTH},{HEIGHT}"]
    command = ["chromium", *options, f"--screenshot={photograph}", html.as_uri()]
    subprocess.run(command, check=True, capture_output=True)
    image = Image.open(photograph).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    image.save(DOCS / "images" / "report.png", optimize=True)
