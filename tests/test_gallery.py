"""The documentation shows every map: a page, a picture, what it costs and how it scored."""

import json
import re
import sys
import tomllib

import pytest
from PIL import Image

from kbench.registry.installed import HOST, list_plugins
from kbench.registry.registry import build
from tests.support.paths import ROOT

DOCS, BENCHMARKS = ROOT / "docs", ROOT / "tests" / "benchmarks"
PAGES, PICTURES = DOCS / "reference" / "maps", DOCS / "images" / "maps"
MAPS = build([plugin for plugin in list_plugins() if plugin.distribution == HOST]).all(
    "feature map"
)
UNLEARNED = {name for name, record in MAPS.items() if record.family != "learned"}
MAX_BYTES = 1_500_000


def measured(name):
    return json.loads((DOCS / "measured" / f"{name}.json").read_text(encoding="utf-8"))


def test_every_map_has_a_page_and_a_picture_and_there_are_no_others():
    assert {path.stem for path in PAGES.glob("*")} == MAPS.keys()
    assert {path.name for path in PICTURES.glob("*")} == {f"{name}.png" for name in MAPS}


@pytest.mark.parametrize("name", MAPS)
def test_a_page_says_when_to_use_the_map_and_shows_it(name):
    text = (PAGES / f"{name}.rst").read_text(encoding="utf-8")
    anchor, heading, line, *paragraphs, directive = re.split(r"\n+", text.strip())
    assert anchor == f".. _feature-map-{name}:"
    assert (heading, line) == (name, "=" * len(name))
    assert directive == f".. feature-map:: {name}"
    advice = " ".join(paragraphs)
    assert advice.startswith("Use it ")
    assert len(re.findall(r"[.](?= |$)", advice)) >= 2


@pytest.mark.parametrize("name", MAPS)
def test_a_picture_has_two_panels_or_the_kernel_as_a_third(name):
    with Image.open(PICTURES / f"{name}.png") as picture:
        panels = 3 if MAPS[name].kernel else 2
        assert abs(picture.width - 210 * panels) <= 2
        assert len(picture.getcolors()) > 3  # not empty


def test_pictures_stay_small():
    assert sum(path.stat().st_size for path in (DOCS / "images").rglob("*")) <= MAX_BYTES


def test_every_map_has_a_measured_cost():
    sizes = measured("map_costs")["maps"]
    assert set().union(*sizes.values()) == MAPS.keys()
    assert all(time > 0 for times in sizes.values() for time in times.values())


def test_every_map_that_learns_no_metric_is_scored_on_every_dataset():
    found = measured("map_scores")
    assert len(found) >= 4
    for dataset in found.values():
        without = UNLEARNED - dataset["scores"].keys()
        assert without <= ({"nbcs-adaptive"} if dataset["better"] == "lower" else set())


@pytest.mark.parametrize(
    ("suite", "left_out"), [("gallery", set()), ("gallery_regression", {"nbcs-adaptive"})]
)
def test_the_suites_of_the_gallery_have_all_maps_that_learn_no_metric(suite, left_out):
    text = (BENCHMARKS / f"{suite}.toml").read_text(encoding="utf-8")
    assert set(tomllib.loads(text)["feature_maps"]) == UNLEARNED - left_out


def test_a_picture_is_drawn_again_as_it_is_kept(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import draw_gallery

    try:
        draw_gallery.draw("identity", tmp_path / "identity.png")
    finally:
        for module in ("draw_gallery", "canon"):
            sys.modules.pop(module, None)
    drawn, kept = (Image.open(folder / "identity.png") for folder in (tmp_path, PICTURES))
    assert drawn.size == kept.size
    apart = [
        max(abs(a - b) for a, b in zip(one, other, strict=True))
        for one, other in zip(
            drawn.convert("RGB").resize((40, 12)).get_flattened_data(),
            kept.convert("RGB").resize((40, 12)).get_flattened_data(),
            strict=True,
        )
    ]
    assert sum(difference > 40 for difference in apart) <= 5  # fonts may differ


ADVICE = "choosing-a-feature-map"
NUMBER = re.compile(r"(?<![\w.,⁻])\d[\d,]*(?:\.\d+)?(?![\w⁻])")


def sections(page):
    """Return the text below each heading of a page, by the anchor of the heading."""
    parts = re.split(r"^(#+ .+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = {}
    for heading, text in zip(parts[1::2], parts[2::2], strict=True):
        name = re.sub(r"[^\w -]", "", heading.lstrip("# ")).lower().replace(" ", "-")
        found[name] = text
    return found


def section(page, anchor):
    """Return what a link leads to; that of all scores is generated."""
    if page:
        return sections(DOCS / page)[anchor]
    assert anchor == "map-scores"
    means = [mean for at in measured("map_scores").values() for mean, _ in at["scores"].values()]
    return " ".join(f"{mean:.3f}" for mean in means)


def test_every_number_of_the_advice_is_in_the_section_that_it_links_to():
    rows = re.findall(r"^\| .+ \|$", sections(DOCS / "choosing-a-map.md")[ADVICE], re.MULTILINE)
    assert len(rows) > 15
    for row in rows[2:]:  # below the heading
        links = re.findall(r"\]\(([\w/-]+\.md)?#([\w-]+)\)", row)
        assert links, row
        text = "\n".join(section(*link) for link in links)
        for number in NUMBER.findall(re.sub(r"`[^`]*`|\([^)]*\.md[^)]*\)", "", row)):
            assert number in NUMBER.findall(text), f"{number} is not in {links}: {row}"
