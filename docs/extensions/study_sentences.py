"""The build fails if a page quotes a sentence that does not follow from the study's numbers.

See `tests/benchmarks/study/sentences.py`: marks in pages name the sentences, and
`docs/measured/study.json` has the numbers.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

from sphinx.errors import ExtensionError

SENTENCES = Path(__file__).parents[2] / "tests" / "benchmarks" / "study" / "sentences.py"


def find_problems(docs: Path) -> list[str]:
    """Return the sentences of all pages that do not follow from the stored numbers."""
    stored = docs / "measured" / "study.json"
    pages = [p for p in sorted(docs.rglob("*.md")) if "_build" not in p.relative_to(docs).parts]
    pages = [page for page in pages if "<!-- study: " in page.read_text(encoding="utf-8")]
    if not pages:
        return []
    if not stored.exists():
        return [f"{page.name}: quotes the study, but {stored.name} is missing" for page in pages]
    spec = importlib.util.spec_from_file_location("study_sentences_of_tests", SENTENCES)
    sentences = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sentences)
    return sentences.check(json.loads(stored.read_text(encoding="utf-8")), pages)


def _check(app) -> None:
    if problems := find_problems(Path(app.srcdir)):
        raise ExtensionError("\n".join(problems))


def setup(app):
    """Check the pages before anything is built."""
    app.connect("builder-inited", _check)
    return {"version": "1", "parallel_read_safe": True}
