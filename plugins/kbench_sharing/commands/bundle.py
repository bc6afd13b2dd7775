"""`kbench bundle`: writes the known results of a suite as a file for others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kbench.features import DataOption as Data
from kbench.features import Datasets, FeatureMaps, Learners, completion, echo


def bundle(
    suite: Annotated[
        str,
        typer.Argument(
            help="Name of an installed suite, or path of a suite file.",
            autocompletion=completion.suites,
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="A zip file; a folder if it has no .zip."
        ),
    ] = None,
    for_paper: Annotated[
        str | None,
        typer.Option(
            metavar="NEW",
            help="A new folder with LaTeX tables, figures, a statement and a citation.",
        ),
    ] = None,
    author: Annotated[
        str, typer.Option(metavar="NAME", help="Your name, shown beside the results.")
    ] = "",
    dataset: Datasets = None,
    feature_map: FeatureMaps = None,
    learner: Learners = None,
    splits: Annotated[
        int | None,
        typer.Option(min=1, help="Number of splits, if `kbench suite` had it."),
    ] = None,
    data: Data = None,
    predictions: Annotated[
        bool,
        typer.Option(
            "--predictions",
            help="Also what was predicted for each test row, as far as it was kept.",
        ),
    ] = False,
    with_errors: Annotated[
        bool,
        typer.Option("--with-errors", help="Also tracebacks and printed texts of failed tasks."),
    ] = False,
    with_sources: Annotated[
        bool, typer.Option("--with-sources", help="Also the modules of third-party plugins.")
    ] = False,
) -> None:
    """Write the known results of a suite as a file that others can read and recompute.

    It holds no data, no host name and no path. Nothing is fetched or computed.
    """
    from kbench.errors import SuiteError
    from kbench.features import Journal, chosen_suite, find, load_registry
    from kbench.messages import counted
    from kbench_sharing import container
    from kbench_sharing.known import known_results
    from kbench_sharing.writing import files_of

    if output is None and for_paper is None:
        raise SuiteError("name the file to write, with -o FILE or --for-paper NEW")
    registry = load_registry()
    chosen = chosen_suite(
        suite, registry, dataset or [], feature_map or [], learner or [], splits=splits, data=data
    )
    journal = Journal()
    known = known_results(chosen, registry, journal)
    folder = None if data is None else Path(data)
    files = files_of(
        known,
        find(suite, registry)[0],
        registry,
        author=author,
        with_errors=with_errors,
        with_sources=with_sources,
        predictions=journal if predictions else None,
        data=folder,
    )
    n_results = sum(len(cell.results) for cell in {c.key: c for c in known.cells}.values())
    written = (
        f"{counted(len(known.cells), 'cell')} of {known.suite.name}, "
        f"{counted(n_results, 'split')}; id {container.sha256(files['manifest.json'])[:12]}"
    )
    if output is not None:
        container.write(Path(output).expanduser(), files)
        echo(f"{output}: {written}")
    if for_paper is not None:
        from kbench_sharing.paper import paper_files

        place = Path(for_paper).expanduser()
        papers = paper_files(known, files, registry)
        container.write_folder(place, papers)
        echo(f"{for_paper}: {', '.join(sorted(papers))}")
        echo(f"{place / 'results.zip'}: {written}")
    if known.n_without:
        echo(f"{counted(known.n_without, 'cell')} of the suite have no result here", err=True)
    if few := sum(bool(cell.missing) for cell in known.cells):
        echo(
            f"{counted(few, 'cell')} with fewer splits than planned, which count in no mean: "
            "compute the others, or give the --splits of `kbench suite`",
            err=True,
        )
