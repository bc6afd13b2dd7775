"""The card of an exported model: what it is, how to load it, how accurate it is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from kbench.export.fit import Fitted
from kbench.messages import counted


def card(facts: Mapping[str, Any], fitted: Fitted, warning: str, mlflow: bool) -> str:
    """Write the card of a model in Markdown, from the facts of its ``model.json``.

    `warning` is what to know before the file is loaded; `mlflow` says whether
    the model was saved as an MLflow model too. No text of the facts becomes
    markup.
    """
    measured = facts["measured"]
    accuracy = "not measured: `kbench suite` or `kbench run` has not computed this cell here"
    if measured and measured["accuracy"] is not None:
        spread = measured["accuracy_sd"]
        accuracy = f"{measured['accuracy']:.4f}"
        accuracy += "" if spread is None else f" ± {spread:.4f}"
        accuracy += (
            f", mean{'' if spread is None else ' and standard deviation'} over "
            f"{counted(measured['n_splits_done'], 'split')}"
            f"{', on a cluster' if measured['machine'].startswith('cluster-') else ''}; "
            "this model was then fitted on all rows"
        )
    if facts["file"].endswith("skops"):
        load = (
            "import skops.io\n\n"
            "# the types in the file beside scikit-learn's: look through them first\n"
            f"trusted = {json.dumps(facts['trusted'], indent=4)}\n"
            f'model = skops.io.load("{facts["file"]}", trusted=trusted)'
        )
    else:
        load = f'import joblib\n\nmodel = joblib.load("{facts["file"]}")'
    chosen = "\n".join(f"- {_text(k)}: {_text(v)}" for k, v in facts["chosen"].items())
    served = "\n`mlflow/` is the same as an MLflow model.\n" if mlflow else ""
    return f"""# {_text(facts["cell"])}

Exported by kbench {facts["kbench"]} on {facts["written"]}.

**{warning}**

```python
{load}
model.predict(table)  # names of classes
```
{served}
## Input

{_input(fitted)}

## What it is

- accuracy: {accuracy}
- data: {_text(facts["dataset_source"] or facts["dataset"])}, {facts["n_rows"]} rows,
  checksum `{facts["dataset_checksum"]}`
- classes: {_text(", ".join(map(str, facts["classes"][:20])))}
- cell key: `{facts["cell_key"]}`
- `{facts["file"]}`: SHA-256 `{facts["sha256"]}`

Chosen by inner cross-validation on all rows:

{chosen}

## Needs

{", ".join(facts["requirements"])}, and the plugins of its feature map and learner.
"""


def _input(fitted: Fitted) -> str:
    encoder = fitted.pipeline.named_steps.get("encode")
    if encoder is None:
        return (
            f"A sparse matrix with {fitted.dataset.X.shape[1]} columns, in the order of the file."
        )
    lines = [
        "A pandas data frame with these columns, in any order. Values may be missing only where",
        "the protocol says what to do with them; a category that is not listed is none of them.",
        "",
    ]
    for name, categories in encoder.columns[:100]:
        what = "number" if categories is None else "one of " + ", ".join(categories[:20])
        lines.append(f"- {_code(name)}: {_text(what)}")
    if len(encoder.columns) > 100:
        lines.append(f"- and {len(encoder.columns) - 100} more, in `model.json` of the encoder")
    return "\n".join(lines)


def _code(value: Any) -> str:
    """Write untrusted text as Markdown code, between more backticks than it contains."""
    text = " ".join(str(value).split())
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence, space = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{space}{text}{space}{fence}" if text else "(no name)"


def _text(value: Any) -> str:
    """Write untrusted text as Markdown that shows it."""
    text = " ".join(str(value).split())
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>#|!" else sign for sign in text)
