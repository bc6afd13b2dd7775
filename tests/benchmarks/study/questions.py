"""The questions of the study, each as numbers: `answer` returns them for one task.

Datasets of a family are averaged first; families are what intervals and tests are over. Splits
are never resampled. `adjust` collects the tests that docs/studies/study.md plans, and adjusts the
p values of each question and task together, by Holm's method; all other numbers are estimates.
A missing cell has the best, and the worst, loss of its dataset in its place: an interval has the
outer ends of both, and a test the larger p.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kbench.results.stats import holm

from .boosting import boosting, boosting_map
from .curves import NARROW, WIDE, curves, dataset_curves, large_errors, wider, widths
from .families import Numbers
from .fronts import pareto
from .gains import kernel_gain, learned_directions
from .gram import gram_errors
from .table import COSTS, Study


def answer(study: Study, held_out: Collection[str] = ()) -> Numbers:
    """Answer all questions of one task; the learned map is tested on `held_out` datasets."""
    return {
        "task": study.task,
        "n_datasets": sum(map(bool, study.splits.values())),
        "n_families": len({study.family_of[n] for n, splits in study.splits.items() if splits}),
        "n_splits": {name: len(splits) for name, splits in study.splits.items() if splits},
        "without_data": [name for name, splits in study.splits.items() if not splits],
        "learner": study.main_learner,
        "missing": study.missing(),
        "notes": study.notes,
        "coarse_costs": sum(cell.coarse for cell in study.cells),
        "curves": curves(study),
        "widths": widths(study),
        "wider": wider(study),
        "dataset_curves": dataset_curves(study),
        "fronts": {cost: pareto(study, cost) for cost in COSTS},
        "gram": gram_errors(study),
        "kernel_gain": kernel_gain(study),
        "learned": learned_directions(study, held_out),
        "boosting": boosting(study),
        "boosting_map": boosting_map(study),
        "large_errors": large_errors(study) if study.task == "regression" else [],
    }


def adjust(answers: Sequence[Numbers]) -> list[Numbers]:
    """Collect the hypotheses, and adjust the p values of each question and task together."""
    found: list[Numbers] = []

    def add(task: str, question: str, hypothesis: str, p: float) -> None:
        found.append({"task": task, "question": question, "hypothesis": hypothesis, "p": p})

    for each in answers:
        task = each["task"]
        for result in each["wider"]:
            text = f"{result['map']} has less loss with {WIDE} than with {NARROW} features"
            add(task, "width", text, result["p"])
        for name, result in each["gram"].items():
            if "p" in result:
                add(task, "gram", f"{name} predicts the loss", result["p"])
        for result in each["learned"]:
            if "p" in result:
                text = f"{result['map']} differs from {result['base']} at {result['width']}"
                add(task, "learned", text, result["p"])
        lines = each["boosting"].get("datasets", [])
        p_values = [(line["dataset"], line["p"]) for line in lines]
        for name, p in p_values + [(name, 1.0) for name in each["boosting"].get("unknown", [])]:
            add(task, "boosting", f"boosting differs from the exact kernel on {name}", p)
    for group in {(line["task"], line["question"]) for line in found}:
        lines = [line for line in found if (line["task"], line["question"]) == group]
        for line, p in zip(lines, holm([line["p"] for line in lines]), strict=True):
            line["p_holm"] = float(p)
    return found
