"""Photograph the top of a report for the README: `docs/images/report.png`.

    python tests/benchmarks/draw_report.py

Run it where `kbench suite uci` ran: the page is that of the store in this folder, without the
datasets that could not be loaded, drawn by the system's Chromium.
"""

import subprocess
import tempfile
from pathlib import Path

from PIL import Image

import kbench
from kbench.execution.plugins import load_registry
from kbench.report.pages import page

DOCS = Path(__file__).parent.parent.parent / "docs"
WIDTH, HEIGHT, SCALE, COLOURS = 1080, 1120, 1.25, 48

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
