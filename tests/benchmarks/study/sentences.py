"""Sentences that follow from the numbers of the study, and the check of pages that quote them.

A page quotes a sentence after a comment with its name::

    <!-- study: classification.front.model_bytes -->
    Sentence, up to the next empty line.

`check` renders the sentence again from the stored numbers. A line of a table may quote one too:
``<!-- study: NAME -->sentence<!-- end -->``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Numbers = Mapping[str, Any]

WORDS = {
    "features": "features",
    "model_bytes": "bytes of the model",
    "fit_cpu_s": "seconds of fitting",
    "predict_cpu_s": "seconds of prediction",
}

LIKELY = 0.5
"""Maps with a smaller probability are not named."""

LEVEL = 0.05

_BLOCK = re.compile(r"<!-- study: (\S+) -->\n(.+?)(?=\n\s*\n|\Z)", re.DOTALL)
_INLINE = re.compile(r"<!-- study: (\S+) -->(?!\n)(.+?)<!-- end -->")
_MARK = re.compile(r"<!-- study: (\S+) -->")


def render(results: Numbers) -> dict[str, str]:
    """Return all sentences by name."""
    found: dict[str, str] = {}
    hypotheses = {(h["task"], h["hypothesis"]): h for h in results["hypotheses"]}
    for task, numbers in results["tasks"].items():
        makers: Mapping[str, Callable[[], Mapping[str, str]]] = {
            "curves": lambda numbers=numbers: _curves(numbers, hypotheses),  # type: ignore[misc]
            "fronts": lambda numbers=numbers: _fronts(numbers),  # type: ignore[misc]
            "gram": lambda numbers=numbers: _gram(numbers, hypotheses),  # type: ignore[misc]
            "gain": lambda numbers=numbers: _gain(numbers),  # type: ignore[misc]
            "learned": lambda numbers=numbers: _learned(numbers, hypotheses),  # type: ignore[misc]
            "boosting": lambda numbers=numbers: _boosting(numbers, hypotheses),  # type: ignore[misc]
            "rule": lambda numbers=numbers: _rule(numbers),  # type: ignore[misc]
            "scope": lambda numbers=numbers: _scope(numbers),  # type: ignore[misc]
        }
        for make in makers.values():
            found |= {f"{task}.{name}": text for name, text in make().items()}
    return found


def unit(task: str) -> tuple[float, str]:
    """Return the factor and the unit in which losses are written."""
    return (
        (100.0, "percentage points") if task == "classification" else (1.0, "standard deviations")
    )


def number(value: float, task: str) -> str:
    """Write a loss or a difference of losses."""
    factor, _ = unit(task)
    return f"{factor * value:.2f}" if task == "classification" else f"{value:.3f}"


def interval(line: Numbers, task: str, low: str = "low", high: str = "high") -> str:
    """Write an interval; empty if there is none."""
    if line.get(low) is None or line.get(high) is None:
        return "no interval"
    return f"95 % interval {number(line[low], task)} to {number(line[high], task)}"


def _families(n: int) -> str:
    return "1 family" if n == 1 else f"{n} families"


def listing(names: Sequence[str]) -> str:
    """Join names with commas and "and"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _scope(numbers: Numbers) -> dict[str, str]:
    counts = list(numbers["n_splits"].values())
    lacking = len(numbers["missing"])
    splits = f"{max(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    return {
        "scope": (
            f"{numbers['n_datasets']} datasets of {_families(numbers['n_families'])}, "
            f"{splits} split{'' if splits == '1' else 's'} each; {lacking} cells are missing."
        )
    }


def _curves(numbers: Numbers, hypotheses: Mapping[tuple[str, str], Numbers]) -> dict[str, str]:
    task, found = numbers["task"], {}
    for line in numbers["widths"]:
        ends = sorted({f"{line[kind][line['best']]:.2f}" for kind in ("maps", "maps_best")})
        likely = ends[0] if len(ends) == 1 else f"{ends[0]} to {ends[1]}, by its missing cells"
        found[f"width.{line['width']}"] = (
            f"With {line['width']:,} features, `{line['best']}` has the smallest mean loss of "
            f"{len(line['maps'])} maps on {_families(line['n_families'])}: "
            f"{number(line['loss'], task)} {unit(task)[1]}{_gain_over_linear(line, task)}. That it "
            f"is the smallest has the probability {likely}."
        )
    for line in numbers["wider"]:
        if line["gain"] is None:
            continue
        text = f"{line['map']} has less loss with 512 than with 64 features"
        p = hypotheses[task, text]["p_holm"]
        verdict = "has less loss" if p <= LEVEL else "is not shown to have less loss"
        found[f"wider.{line['map']}"] = (
            f"`{line['map']}` {verdict} with 512 than with 64 features: on {line['wins']} of "
            f"{_families(line['n_families'])}, by {number(line['gain'], task)} {unit(task)[1]} on "
            f"average ({interval(line, task)}; adjusted p {p:.3g})."
        )
    return found


def _gain_over_linear(line: Numbers, task: str) -> str:
    """Compare a loss with that of the linear model, where it has all families."""
    if line.get("gain") is None:
        return ""
    ends = interval(line, task, "gain_low", "gain_high")
    return f", {number(line['gain'], task)} less than the linear model ({ends})"


def _fronts(numbers: Numbers) -> dict[str, str]:
    found = {}
    for cost, front in numbers["fronts"].items():
        if not front["places"]:
            continue
        maps: dict[str, float] = {}
        for place in front["places"]:
            if place["probability"] is not None:
                maps[place["map"]] = max(maps.get(place["map"], 0.0), place["probability"])
        likely = sorted((m for m in maps if maps[m] >= LIKELY), key=lambda m: (-maps[m], m))
        named = [f"`{name}` ({maps[name]:.2f})" for name in likely]
        sure = sorted({p["map"] for p in front["places"] if p["status"] == "frontier"})
        sure = [f"`{name}`" for name in sure]
        found[f"front.{cost}"] = (
            f"Loss against {WORDS[cost]}, {_families(front['n_families'])}: some option of "
            f"{listing(named) if named else 'no map'} is on the front with a probability of at "
            f"least {LIKELY:g}; shown at the 5 % level: {listing(sure) if sure else 'none'}."
        )
        for point in front["best_at"]:
            best = max(sorted(point["maps"]), key=lambda name: point["maps"][name])
            found[f"best.{cost}.2^{round(math.log2(point['budget']))}"] = (
                f"With at most {_budget(point['budget'], cost)}, `{best}` has the least mean loss "
                f"with a probability of {point['maps'][best]:.2f} "
                f"({_families(front['n_families'])})."
            )
    return found


def _budget(value: float, cost: str) -> str:
    """Write a budget, which is a power of two."""
    if cost == "features":
        return f"{value:,.0f} features"
    if cost == "model_bytes":
        kib = value / 1024
        return f"{kib:,.0f} KiB of the model" if kib >= 1 else f"{value:,.0f} bytes of the model"
    return f"{value:.3g} {WORDS[cost]}"


def _gram(numbers: Numbers, hypotheses: Mapping[tuple[str, str], Numbers]) -> dict[str, str]:
    found = {}
    for name, result in numbers["gram"].items():
        if "p" not in result:
            continue
        p = hypotheses[numbers["task"], f"{name} predicts the loss"]["p_holm"]
        low, high = result["low"], result["high"]
        ends = "no interval" if low is None else f"95 % interval {low:.2f} to {high:.2f}"
        verdict = "predicts the loss" if p <= LEVEL else "is not shown to predict the loss"
        found[f"gram.{name}"] = (
            f"`{name}` {verdict} among maps of equal width: mean rank correlation "
            f"{result['correlation']:.2f} over {_families(result['n_families'])} ({ends}; adjusted "
            f"p {p:.3g})."
        )
    return found


def _gain(numbers: Numbers) -> dict[str, str]:
    gain = numbers["kernel_gain"]
    found = {}
    for name in dict.fromkeys(x["map"] for x in gain["shares"]):
        lines = [x for x in gain["shares"] if x["map"] == name and x["width"] is not None]
        if not lines:
            continue
        last = lines[-1]
        below = max((k for k, x in enumerate(lines) if x["share"] < 0.9), default=-1)
        reach = "does not keep 90 %"
        if below + 1 < len(lines):
            reach = f"has at least 90 % from {lines[below + 1]['width']:,} features on"
        found[f"gain.{name}"] = (
            f"`{name}` {reach} of what the exact kernel gains over the linear model (median of "
            f"{_families(last['n_families'])} with a gain beyond noise); with {last['width']:,} "
            f"features it has {100 * last['share']:.0f} %."
        )
    return found


def _learned(numbers: Numbers, hypotheses: Mapping[tuple[str, str], Numbers]) -> dict[str, str]:
    task, found = numbers["task"], {}
    for result in numbers["learned"]:
        if result["gain"] is None:
            continue
        p = hypotheses[task, f"{result['map']} differs from {result['base']}"]["p_holm"]
        sign = "less" if result["gain"] > 0 else "more"
        verdict = f"{sign} loss than" if p <= LEVEL else "no shown difference from"
        found[f"learned.{result['map']}"] = (
            f"`{result['map']}` has {verdict} `{result['base']}` on {result['n_families']} "
            f"families on which nothing was chosen: {number(result['gain'], task)} "
            f"{unit(task)[1]} ({interval(result, task)}; adjusted p {p:.3g})."
        )
    return found


def _boosting(numbers: Numbers, hypotheses: Mapping[tuple[str, str], Numbers]) -> dict[str, str]:
    result, task = numbers["boosting"], numbers["task"]
    if "p" not in result:
        return {}
    p = hypotheses[task, "boosting differs from the best map"]["p_holm"]
    better = "the best map" if result["difference"] > 0 else "boosting"
    verdict = f"{better} is better" if p <= LEVEL else "neither is shown to be better"
    found = {
        "boosting": (
            f"Between gradient boosting and the best map, chosen on other splits, {verdict} on "
            f"average over {_families(result['n_families'])}: the loss of boosting less that of "
            f"the map is {number(result['difference'], task)} {unit(task)[1]} "
            f"({interval(result, task)}; adjusted p {p:.3g}). Boosting is significantly better on "
            f"{len(result['better_boosting'])} datasets, the map on {len(result['better_map'])}, "
            f"of {len(result['datasets'])}."
        )
    }
    versus = numbers["boosting_kernel"]
    if "p" in versus:
        found["boosting_kernel"] = (
            f"The loss of boosting less that of the exact kernel is "
            f"{number(versus['difference'], task)} {unit(task)[1]} over {versus['n_families']} "
            f"families ({interval(versus, task)}). Boosting is significantly better on "
            f"{len(versus['better_boosting'])} datasets, the kernel on "
            f"{len(versus['better_map'])}, of {len(versus['datasets'])}."
        )
    shown = []
    for each in numbers.get("when_boosting", []):
        line = hypotheses[task, f"{each['predictor']} says when boosting is better"]
        if line["p_holm"] <= LEVEL:
            shown.append(f"`{each['predictor']}` ({each['correlation']:.2f})")
    if numbers.get("when_boosting"):
        found["when_boosting"] = (
            f"The lead of boosting has a rank correlation with {listing(shown)}."
            if shown
            else "No predictor is shown to say when boosting is better."
        )
    return found


def _rule(numbers: Numbers) -> dict[str, str]:
    rule = numbers.get("rule", {})
    found = {}
    if "cross_validated" in rule:
        single = rule["cross_validated"]["methods"]["best single, first"]
        found["rule.first"] = (
            f"The first option to try is {rule['typical_order'][0].replace(' + ', ' with ')}. The "
            f"best single option of the other families has a regret of {_regret(single, rule)}."
        )
    for kind, words in (("cross_validated", "Cross-validated over"), ("tested", "Tested once on")):
        if kind not in rule:
            continue
        result = rule[kind]
        best, other = (result["methods"][f"{name}, tried"] for name in ("rule", "best single"))
        mark = f" {result['unit']}" if result["unit"] == "%" else " percentage points"
        measure = "of the error" if result["unit"] == "%" else "of accuracy"
        aim = 2.0 if result["unit"] == "%" else 0.5
        low, high = best["low"], best["high"]
        ends = "no interval" if low is None else f"95 % interval {low:.2f} to {high:.2f}"
        found[f"rule.{kind}"] = (
            f"{words} {_families(best['n_families'])}, the rule has a regret of "
            f"{best['regret']:.2f}{mark} {measure} ({ends}) with {100 * best['share']:.0f} % of "
            f"the compute of trying all; without predictors it is {other['regret']:.2f}. The aim "
            f"was {aim:g} at 10 %: {_verdict(best, aim)}."
        )
    return found


def _verdict(line: Numbers, aim: float) -> str:
    """Say whether the aim is reached, and whether the interval says so too."""
    if line["regret"] > aim or line["share"] > 0.1 + 1e-9:
        return "missed"
    certain = line["high"] is not None and line["high"] <= aim
    return "reached" if certain else "reached by the mean, not by all of the interval"


def _regret(line: Numbers, rule: Numbers) -> str:
    """Write a regret with its unit and interval."""
    is_percent = rule["cross_validated"]["unit"] == "%"
    ends = "no interval"
    if line["low"] is not None:
        ends = f"95 % interval {line['low']:.2f} to {line['high']:.2f}"
    text = "% of the error" if is_percent else "percentage points of accuracy"
    return f"{line['regret']:.2f} {text} ({ends}; {_families(line['n_families'])})"


def check_text(text: str, sentences: Mapping[str, str], place: str) -> list[str]:
    """Return the problems of a page; empty if each quoted sentence follows from the numbers."""
    problems = []
    quoted = [*_BLOCK.findall(text), *_INLINE.findall(text)]
    if len(quoted) != len(_MARK.findall(text)):
        problems.append(f"{place}: a mark has no sentence")
    for name, written in quoted:
        if name not in sentences:
            problems.append(f"{place}: the numbers give no sentence {name}")
        elif " ".join(written.split()) != sentences[name]:
            problems.append(
                f"{place}: {name} does not follow from the numbers.\n"
                f"  page:    {' '.join(written.split())}\n  numbers: {sentences[name]}"
            )
    return problems


def check(results: Numbers, pages: Sequence[Path]) -> list[str]:
    """Check the sentences of all pages against stored numbers."""
    sentences = render(results)
    return [
        problem
        for page in pages
        for problem in check_text(page.read_text(encoding="utf-8"), sentences, page.name)
    ]


def fill(text: str, sentences: Mapping[str, str]) -> str:
    """Write the present sentence after each mark of a page."""

    def block(found: re.Match[str]) -> str:
        return f"<!-- study: {found[1]} -->\n{sentences.get(found[1], found[2])}"

    def inline(found: re.Match[str]) -> str:
        return f"<!-- study: {found[1]} -->{sentences.get(found[1], found[2])}<!-- end -->"

    return _INLINE.sub(inline, _BLOCK.sub(block, text))
