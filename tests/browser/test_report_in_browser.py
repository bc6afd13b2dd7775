"""The page in a real browser: it sorts, filters and compares, and logs no error."""

import html
import json
import os
import re
import shutil
import subprocess

import pytest

from kbench.registry.registry import Registry
from kbench.report.tables import table_named
from kbench_reporting.page import page
from tests.support.report_rows import NASTY, content, grid, nasty_rows

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no browser: neither chromium nor google-chrome is on the PATH"
)

# what the page cannot see of itself is asked by a script that is put at its end
_ASK = """
<script>
addEventListener("load", () => {
  let answer;
  try { answer = (() => { %s })(); } catch (error) { answer = {error: String(error)}; }
  const holder = document.createElement("pre");
  holder.id = "answer"; holder.textContent = JSON.stringify(answer);
  document.body.append(holder);
});
</script>"""


def ask(folder, text, script, width=1280):
    """Open a page, run a script in it, and return what it answers and what the console says."""
    file = folder / "page.html"
    file.write_text(text.replace("</body>", _ASK % script + "</body>"), encoding="utf-8")
    command = [CHROMIUM, "--headless", "--disable-gpu", "--enable-logging=stderr", "--v=0"]
    command += ["--no-sandbox"] if os.geteuid() == 0 else []
    command += [f"--user-data-dir={folder / 'profile'}", f"--window-size={width},900"]
    command += ["--no-first-run", "--disable-background-networking", "--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    (found,) = re.findall(r'<pre id="answer">(.*?)</pre>', done.stdout, re.DOTALL)
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(html.unescape(found)), console


def test_sorting_filtering_and_comparing(tmp_path):
    rows = grid(5, 3)
    script = """
    const column = (table, i) =>
      [...table.tBodies[0].rows].map(row => Number(row.cells[i].dataset.v));
    const main = document.querySelector("table.main");
    const button = main.tHead.rows[0].cells[1].querySelector("button");
    button.click(); const up = column(main, 1); button.click(); const down = column(main, 1);
    const cells = document.getElementById("all-cells");
    cells.open = true; cells.dispatchEvent(new Event("toggle"));
    const input = document.getElementById("all-filter");
    input.value = "data-1 MAP-2"; input.dispatchEvent(new Event("input"));
    const shown = [...document.getElementById("all").tBodies[0].rows].filter(row => !row.hidden);
    const two = [...document.getElementById("two-body").rows]
      .map(row => [...row.cells].map(cell => cell.textContent));
    return {up, down, shown: shown.map(row => row.cells[1].textContent),
            count: document.getElementById("all-count").textContent, two,
            first: document.getElementById("two-a").selectedOptions[0].textContent,
            requests: performance.getEntriesByType("resource").length};
    """
    made = content(rows)
    answer, console = ask(tmp_path, page(made, Registry()), script)
    assert console == []
    best = made.methods[0]
    stored = [each.metrics["accuracy"] for each in rows if each.method == best]
    assert answer["up"] == sorted(stored)
    assert answer["down"] == sorted(stored, reverse=True)
    assert answer["shown"] == ["map-2"]
    assert answer["count"] == "1 of 15 cells"
    assert answer["requests"] == 0
    assert answer["first"] == made.standings[0].name
    pair = table_named("pairs", made).rows[0]
    shown = [line[3].replace("−", "-") for line in answer["two"]]
    assert float(pair["difference"]) == pytest.approx(sum(map(float, shown)) / 5, abs=1e-4)


def test_names_stay_text_in_the_browser(tmp_path):
    script = """
    return {title: document.title, images: document.images.length,
            names: [...document.querySelectorAll("table.main tbody th")].map(e => e.textContent),
            options: document.getElementById("two-a").options.length};
    """
    made = content(nasty_rows(), suite=NASTY[0])
    answer, console = ask(tmp_path, page(made, Registry()), script)
    assert console == []
    assert answer["title"] == f"{NASTY[0]}: kbench report"
    assert answer["images"] == 0
    assert answer["names"] == made.datasets
    assert answer["options"] == len(made.methods)


@pytest.mark.parametrize("make", [lambda: grid(4, 9), nasty_rows], ids=["plain", "nasty"])
def test_the_page_is_never_wider_than_its_frame(tmp_path, make):
    """In frames, as MLflow shows artifacts: a window is at least 500 wide, a frame is not."""
    inner = html.escape(page(content(make()), Registry()))
    widths = (375, 768, 1280)
    frames = (
        f'<iframe style="border:0;width:{width}px;height:700px" srcdoc="{inner}"></iframe>'
        for width in widths
    )
    script = """
    return [...document.querySelectorAll("iframe")].map(frame => {
      const inner = frame.contentDocument;
      return [inner.documentElement.scrollWidth, frame.contentWindow.innerWidth,
              inner.images.length, inner.getElementById("two-body").rows.length];
    });
    """
    answer, console = ask(tmp_path, f"<body>{''.join(frames)}</body>", script, width=1400)
    assert console == []
    for width, (page_width, window, images, compared) in zip(widths, answer, strict=True):
        assert page_width <= window == width
        assert images == 0
        assert compared > 0
