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
            "boosting": lambda numbers=numbers: _boosting(numbers),  # type: ignore[misc]
            "rule": lambda numbers=numbers: _rule(numbers),  # type: ignore[misc]
            "scope": lambda numbers=numbers: _scope(numbers),  # type: ignore[misc]
            "large": lambda numbers=numbers: _large_errors(numbers),  # type: ignore[misc]
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
    text = (
        f"{numbers['n_datasets']} datasets of {_families(numbers['n_families'])}, "
        f"{splits} split{'' if splits == '1' else 's'} each; "
        f"{lacking} {'cell is' if lacking == 1 else 'cells are'} missing."
    )
    if numbers["without_data"]:
        names = listing([f"`{name}`" for name in numbers["without_data"]])
        text += f" Without a result on any split: {names}."
    if max(counts) == 1:
        text += (
            " This is a first answer: with one split, nothing is said of one dataset, and nothing "
            "that needs a choice on other splits."
        )
    return {"scope": text}


def _large_errors(numbers: Numbers) -> dict[str, str]:
    lines = sorted(numbers.get("large_errors", []), key=lambda each: -each["n_large"])
    if not lines:
        return {}
    large = [
        f"{each['n_large']:,} of {each['n_fits']:,} fits of `{each['method']}` "
        f"(on {listing([f'`{name}`' for name in each['datasets']])}; the largest is "
        f"{each['largest']:,.{0 if each['largest'] >= 10 else 1}f})"
        for each in lines
        if each["n_large"]
    ]
    none = [f"`{each['method']}`" for each in lines if not each["n_large"]]
    return {
        "large_errors": (
            f"Exploratory: the error is above 3 standard deviations of the target in "
            f"{listing(large) if large else 'no fit'}; in none of "
            f"{listing(none) if none else 'the others'}."
        )
    }


def _curves(numbers: Numbers, hypotheses: Mapping[tuple[str, str], Numbers]) -> dict[str, str]:
    task, found = numbers["task"], {}
    for line in numbers["widths"]:
        shares = {100 * line[kind][line["best"]] for kind in ("maps", "maps_best")}
        likely = " to ".join(f"{share:.0f}" for share in sorted(shares))
        names = listing([f"`{name}`" for name in line.get("tied") or [line["best"]]])
        has, it = ("has", "It is") if " and " not in names else ("have", "They are")
        found[f"width.{line['width']}"] = (
            f"With {line['width']:,} features, {names} {has} the smallest mean loss of "
            f"{len(line['maps'])} maps on {_families(line['n_families'])}: "
            f"{number(line['loss'], task)} {unit(task)[1]}. {it} the smallest in {likely} % of "
            f"the draws of the means."
        )
    by_map: dict[str, list[Numbers]] = {}
    for line in numbers["curves"]:
        if line["width"] is not None and line["learner"] == numbers["learner"]:
            by_map.setdefault(line["map"], []).append(line)
    for name, lines in by_map.items():
        parts = [
            f"{number(over['mean'], task)} ({interval(over, task)}) with {line['width']:,} features"
            for line in sorted(lines, key=lambda each: each["width"])
            if (over := line.get("over_kernel")) and over["mean"] is not None
        ]
        if parts:
            found[f"curve.{name}"] = (
                f"The loss of `{name}` less that of the exact kernel, in {unit(task)[1]}: "
                f"{listing(parts)}."
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


def _fronts(numbers: Numbers) -> dict[str, str]:
    found = {}
    for cost, front in numbers["fronts"].items():
        if not front["places"]:
            continue
        maps: dict[str, Numbers] = {}
        for place in front["places"]:
            known = maps.get(place["map"])
            if place["probability"] is not None and (
                known is None or place["probability"] > known["probability"]
            ):
                maps[place["map"]] = place
        likely = [name for name in maps if maps[name]["probability"] >= LIKELY]
        likely.sort(key=lambda name: (-maps[name]["probability"], name))
        named = [f"`{name}` ({_probability(maps[name])})" for name in likely]
        sure = sorted({p["map"] for p in front["places"] if p["decided"] == "on"})
        off = sorted(set(maps) - {p["map"] for p in front["places"] if p["decided"] != "off"})
        lists = [[f"`{name}`" for name in names] for names in (sure, off)]
        on, out = (listing(names) if names else "none" for names in lists)
        found[f"front.{cost}"] = (
            f"Loss against {WORDS[cost]}, {_families(front['n_families'])}. On the front in at "
            f"least half of the draws of the means, with the largest share of one option: "
            f"{listing(named) if named else 'none'}. Decided to be on it: {on}; decided to be off "
            f"it, with all options: {out}."
        )
        for point, other in zip(front["best_at"], front["best_at_best"], strict=True):
            best = max(sorted(point["maps"]), key=lambda name: point["maps"][name])
            ends = sorted([point["maps"][best], other["maps"].get(best, 0.0)])
            text = _probability({"probability": ends[0], "probability_high": ends[1]})
            found[f"best.{cost}.2^{round(math.log2(point['budget']))}"] = (
                f"With at most {_budget(point['budget'], cost)}, `{best}` has the least mean loss "
                f"in a share of {text} of the draws ({_families(front['n_families'])})."
            )
    return found


def _probability(place: Numbers) -> str:
    """Write a probability, or its ends where missing cells decide."""
    ends = [f"{place[name]:.2f}" for name in ("probability", "probability_high")]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}, by the missing cells"


def _budget(value: float, cost: str) -> str:
    """Write a budget, which is a power of two."""
    if cost == "features":
        return f"{value:,.0f} features"
    if cost == "model_bytes":
        kib = value / 1024
        return f"{kib:,.0f} KiB of the model" if kib >= 1 else f"{value:,.0f} bytes of the model"
    words = WORDS[cost].replace("seconds", "second") if value == 1 else WORDS[cost]
    return f"{value:.3g} {words}"


def _gram(numbers: Numbers, hypotheses: Mapping[tuple[str, str], Numbers]) -> dict[str, str]:
    found = {}
    for name, result in numbers["gram"].items():
        if "correlation" not in result:
            continue
        low, high = result["low"], result["high"]
        ends = "no interval" if low is None else f"95 % interval {low:.2f} to {high:.2f}"
        verdict = "is not tested, because it is that of tuned maps"
        if "p" in result:
            p = hypotheses[numbers["task"], f"{name} predicts the loss"]["p_holm"]
            ends += f"; adjusted p {p:.3g}"
            verdict = (
                "is correlated with the loss on these datasets, among these maps"
                if p <= LEVEL
                else "is not shown to be correlated with the loss"
            )
        found[f"gram.{name}"] = (
            f"`{name}` {verdict}: its mean rank correlation with the loss, among maps of equal "
            f"width, is {result['correlation']:.2f} over {_families(result['n_families'])} ({ends})"
            f", with {_span(result['widths'])} features."
        )
    return found


def _span(widths: Sequence[int]) -> str:
    return f"{widths[0]:,}" if len(widths) == 1 else f"{widths[0]:,} to {widths[-1]:,}"


def _gain(numbers: Numbers) -> dict[str, str]:
    gain = numbers["kernel_gain"]
    found = {}
    for name in dict.fromkeys(x["map"] for x in gain["shares"]):
        lines = [x for x in gain["shares"] if x["map"] == name and x["width"] is not None]
        if not lines:
            continue
        last = lines[-1]
        sure = [x["width"] for x in lines if x["low"] is not None and x["low"] > SHARE]
        reach = "is not shown to give 90 %"
        if sure:
            reach = f"gives more than 90 % with {sure[0]:,} features"
        ends = "no interval"
        if last["low"] is not None and last["high"] is not None:
            ends = f"95 % interval {100 * last['low']:.0f} to {100 * last['high']:.0f} %"
        share = "no" if last["share"] is None else f"{100 * last['share']:.0f} %"
        found[f"gain.{name}"] = (
            f"`{name}` {reach} of what the exact kernel gains over the linear model, in the median "
            f"of {_families(last['n_families'])} with a gain beyond noise on other folds; with "
            f"{last['width']:,} features the median share is {share} ({ends})."
        )
    return found


SHARE = 0.9
"""Share of the kernel's gain that the lower end of the interval must exceed."""


def _learned(numbers: Numbers, hypotheses: Mapping[tuple[str, str], Numbers]) -> dict[str, str]:
    task, found = numbers["task"], {}
    for result in numbers["learned"]:
        if result["mean"] is None:
            continue
        name, base, width = result["map"], result["base"], result["width"]
        verdict, more = "is not tested on so few families", ""
        if "p" in result:
            p = hypotheses[task, f"{name} differs from {base} at {width}"]["p_holm"]
            verdict = f"is {'below' if result['mean'] < 0 else 'above'} 0"
            verdict = verdict if p <= LEVEL else "is not shown to differ from 0"
            more = f"; adjusted p {p:.3g}"
        found[f"learned.{name}.{width}"] = (
            f"With {width:,} features, the loss of `{name}` less that of `{base}` {verdict}: "
            f"{number(result['mean'], task)} {unit(task)[1]} on "
            f"{_families(result['n_families'])} on which no rule was fitted "
            f"({interval(result, task)}{more})."
        )
    return found


def _boosting(numbers: Numbers) -> dict[str, str]:
    task, found = numbers["task"], {}
    result = numbers["boosting"]
    if "datasets" in result and result["mean"] is not None:
        found["boosting"] = (
            f"By the corrected t-test, boosting is better than the exact kernel on "
            f"{len(result['better_boosting'])} and worse on "
            f"{len(result['better_kernel'])} of {len(result['datasets'])} datasets (adjusted p "
            f"at most {LEVEL:g}). Its loss less that of the kernel is "
            f"{number(result['mean'], task)} {unit(task)[1]} over "
            f"{_families(result['n_families'])} ({interval(result, task)})."
        )
    versus = numbers["boosting_map"]
    if "datasets" in versus:
        found["boosting_map"] = (
            f"Exploratory: the loss of boosting less that of the best map, which is chosen on "
            f"other folds, is {number(versus['difference'], task)} {unit(task)[1]} over "
            f"{_families(versus['n_families'])} ({interval(versus, task)})."
        )
    lines = sorted(numbers.get("when_boosting", []), key=lambda each: -abs(each["correlation"]))
    if lines:
        shown = [f"{each['correlation']:.2f} with `{each['predictor']}`" for each in lines]
        found["when_boosting"] = (
            f"Exploratory: the rank correlation of the lead of boosting over the exact kernel is "
            f"{listing(shown)} ({_families(lines[0]['n_families'])})."
        )
    return found


def _rule(numbers: Numbers) -> dict[str, str]:
    rule = numbers.get("rule", {})
    found = {}
    if "maps_to_1024" in rule:
        maps = listing([f"`{name}`" for name in rule["maps_to_1024"]])
        found["rule.maps"] = f"The order of the maps with 256 to 1,024 features is {maps}."
    if "cross_validated" in rule:
        single = rule["cross_validated"]["methods"]["best single, first"]
        found["rule.first"] = (
            f"The first option to try is {rule['typical_order'][0].replace(' + ', ' with ')}. The "
            f"best single option of the other families has a regret of {_regret(single, rule)}."
        )
    kinds = {"cross_validated": "Cross-validated over", "tested": "On the held-out"}
    for kind, words in kinds.items():
        if kind not in rule or rule[kind]["methods"]["rule, tried"]["share"] is None:
            continue  # without times, no budget can be spent
        result = rule[kind]
        best, other, random = (
            result["methods"][f"{name}, tried"] for name in ("rule", "best single", "random")
        )
        fixed = result["methods"].get("rff-512, first")
        alone = (
            f", `rff` with 512 features alone {fixed['regret']:.2f} ({fixed['median']:.2f})"
            if fixed
            else ""
        )
        mark = f" {result['unit']}" if result["unit"] == "%" else " percentage points"
        measure = "of the error" if result["unit"] == "%" else "of accuracy"
        aim = 2.0 if result["unit"] == "%" else 0.5
        low, high = best["low"], best["high"]
        ends = "no interval" if low is None else f"95 % interval {low:.2f} to {high:.2f}"
        found[f"rule.{kind}"] = (
            f"{words} {_families(best['n_families'])}, the rule has a regret of "
            f"{best['regret']:.2f}{mark} {measure} ({ends}; median {best['median']:.2f}) with "
            f"{100 * best['share']:.0f} % of the compute of trying all; without predictors it is "
            f"{other['regret']:.2f} (median {other['median']:.2f}). Random orders reach "
            f"{random['regret']:.2f} ({random['median']:.2f}){alone}. The planned bound is "
            f"{aim:g} at 10 %: {_verdict(best, aim)}."
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
    return (
        f"{line['regret']:.2f} {text} ({ends}; median {line['median']:.2f}; "
        f"{_families(line['n_families'])})"
    )


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
