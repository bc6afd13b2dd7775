"""Files for a paper: tables, figures, a reproducibility statement and a citation."""

import json
import time
from collections.abc import Mapping

from kbench import features
from kbench.errors import BundleError, SuiteError
from kbench.messages import plural
from kbench_sharing.added_bundles import SHORT, same_environment
from kbench_sharing.bundle_records import Bundle
from kbench_sharing.reading import parse_bundle
from kbench_sharing.writing import Saved
from kbench_sharing.zip_file import pack_zip

_TABLES: Mapping[str, str] = {
    "scores": "of each method on each dataset",
    "leaderboard": "of each method, with ranks",
    "pairs": "of pairs of methods, with tests",
}
_FIGURES = ("metric-vs-fit-time", "ranks")
_LIBRARIES = ("python", "numpy", "scipy", "scikit-learn", "blas")


def paper_files(
    saved: Saved, files: Mapping[str, bytes], registry: features.Registry
) -> dict[str, bytes]:
    """Return the files for a paper by name, with the bundle itself as ``results.zip``.

    `files` is the bundle of the `saved` results. BundleError is raised if it has no author.
    """
    bundle = parse_bundle(dict(files))
    if not bundle.manifest.author:
        raise BundleError("a citation needs an author: give --author NAME")
    rows = [
        features.make_full_row(cell, features.machine.machine_id(), saved.suite.compared)
        for cell in saved.cells
    ]
    content = features.ReportData(saved.suite.name, rows, metric=saved.suite.compared)
    made: dict[str, bytes] = {"results.zip": pack_zip(files)}
    for name, words in _TABLES.items():
        table = features.table_named(name, content)
        if table.rows:
            caption = f"{content.metric.words} {words}".capitalize()
            latex = features.wrap_in_float(
                features.write(table, "latex"), f"{caption}.", f"tab:{name}"
            )
            made[f"tables/{name}.tex"] = f"{latex}\n".encode()
    for kind in _FIGURES:
        try:
            made[f"figures/{kind}.pdf"] = features.picture(kind, content, registry, "pdf")
        except SuiteError:
            # one dataset or method has no ranks, and a metric in units no mean
            continue
    made["reproducibility.tex"] = _statement(bundle).encode()
    made["CITATION.cff"] = _citation(saved, bundle).encode()
    return made


def _statement(bundle: Bundle) -> str:
    """Return a paragraph of LaTeX: protocol, versions, machines, data and commands."""
    stated = bundle.manifest.versions
    versions = ", ".join(f"{name} {stated[name]}" for name in _LIBRARIES if name in stated)
    cpus = ", ".join(dict.fromkeys(each.cpu for each in bundle.manifest.machines))
    lines = [
        r"\paragraph{Reproducibility}",
        features.latex_text(
            f"The results are {plural(bundle.n_results, 'split')} of "
            f"{plural(len(bundle.cells), 'cell')} of the suite {bundle.manifest.suite}, computed "
            f"by kbench {stated.get('kbench-core', '')} with {versions} on {cpus}."
        ),
        features.latex_text("They are in the file results.zip; the SHA-256 of its manifest is")
        + f" {_digest(bundle.id)}.",
        "Its file \\texttt{requirements.txt} has the versions of all packages that affect results.",
        "",
        r"\begin{description}",
        *(
            rf"\item[{features.latex_text(label)}] "
            + features.latex_text(
                f"{each.source or 'no source'}, {each.n_samples:,} rows, "
                f"{each.n_features:,} features; SHA-256"
            )
            + f" {_digest(each.checksum)}"
            for label, each in sorted(bundle.datasets.items())
        ),
        r"\end{description}",
        "",
        "These commands make the environment, check the results and recompute five splits of "
        "them, and compute the whole suite from scratch:",
        r"\begin{flushleft}",
        *(
            rf"\texttt{{{features.latex_text(line)}}}\\"
            for line in (
                same_environment(bundle),
                "kbench bundle verify results.zip --sample 5",
                "unzip results.zip suite.toml",
                "kbench suite suite.toml",
            )
        ),
        r"\end{flushleft}",
        "",
    ]
    return "\n".join(lines)


def _digest(digits: str) -> str:
    """Return a hash that LaTeX may break into lines: it is wider than a column."""
    return r"\allowbreak ".join(digits[i : i + 8] for i in range(0, len(digits), 8))


def _citation(saved: Saved, bundle: Bundle) -> str:
    """Return a CITATION.cff; a text of JSON is one of YAML, so that no name is markup."""
    last = max(result.ended_ms for cell in saved.cells for result in cell.in_order)
    lines = {
        "cff-version": "1.2.0",
        "message": "If you use these results, please cite them.",
        "type": "dataset",
        "title": f"Results of the kbench suite {saved.suite.name}",
        "version": bundle.id[:SHORT],
        "date-released": time.strftime("%Y-%m-%d", time.gmtime(last / 1000)),
    }
    head = "".join(f"{name}: {json.dumps(value)}\n" for name, value in lines.items())
    return f"{head}authors:\n  - name: {json.dumps(bundle.manifest.author)}\n"
