"""Photograph the top of a report for the README: `docs/images/report.png`.

    python tests/benchmarks/draw_report.py

The page is that of the stored run `docs/measured/uci.json`, drawn by the system's Chromium.
"""

import dataclasses
import json
import lzma
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from PIL import Image

from kbench.execution.plugins import load_registry
from kbench.report.pages import page

DOCS = Path(__file__).parent.parent.parent / "docs"
sys.path.insert(0, str(DOCS / "extensions"))
import stored  # noqa: E402 - an extension of Sphinx

WIDTH, HEIGHT, SCALE, COLOURS = 1080, 1120, 1.25, 48

with zipfile.ZipFile(DOCS / "results" / "uci.zip") as bundle:
    lines = lzma.decompress(bundle.read("results.jsonl.xz")).splitlines()
(moments,) = [json.loads(line) for line in lines]
when = {"start_ms": min(moments["started_ms"]), "end_ms": max(moments["ended_ms"])}
content = stored.stored(DOCS / "measured" / "uci.json")
content.rows[:] = [dataclasses.replace(row, **when) for row in content.rows]
with tempfile.TemporaryDirectory() as folder:
    html, photograph = Path(folder) / "uci.html", Path(folder) / "uci.png"
    html.write_text(page(content, load_registry()), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    options += [f"--force-device-scale-factor={SCALE}", f"--window-size={WIDTH},{HEIGHT}"]
    command = ["chromium", *options, f"--screenshot={photograph}", html.as_uri()]
    subprocess.run(command, check=True, capture_output=True)
    image = Image.open(photograph).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    image.save(DOCS / "images" / "report.png", optimize=True)
