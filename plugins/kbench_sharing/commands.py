"""`kbench bundle create`, `add`, `verify`, `publish` and `site`."""

from __future__ import annotations

import os
import re
import secrets
import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kbench import features
from kbench.features import SuiteError, echo, options_from
from kbench.messages import mask, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbench_sharing.bundle_records import Bundle
    from kbench_sharing.verifying import Finding, Unit, Verifying


@options_from("run_suite")
def create(
    suite: str,
    output: Annotated[
        str | None,
        features.output_option(help="A zip file, or a folder if it does not end in .zip."),
    ] = None,
    for_paper: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="A new folder with LaTeX tables, figures, a statement and a citation.",
        ),
    ] = None,
    author: Annotated[
        str, typer.Option(metavar="NAME", help="Your name, shown next to the results.")
    ] = "",
    dataset: list[str] | None = None,
    feature_map: list[str] | None = None,
    learner: list[str] | None = None,
    add_datasets: list[str] | None = None,
    add_feature_maps: list[str] | None = None,
    add_learners: list[str] | None = None,
    n_splits: int | None = None,
    data: str | None = None,
    predictions: Annotated[
        bool, typer.Option("--predictions", help="Include the stored test-set predictions.")
    ] = False,
    with_errors: Annotated[
        bool, typer.Option("--with-errors", help="Include tracebacks and output of failed tasks.")
    ] = False,
    with_sources: Annotated[
        bool, typer.Option("--with-sources", help="Include the modules of third-party plugins.")
    ] = False,
) -> None:
    """Write the results of a suite as a file that others can read and recompute.

    The file contains no data, no host name and no path. Nothing is downloaded or computed.
    """
    from kbench_sharing import zip_file
    from kbench_sharing.writing import build_files, recall_results

    if output is None and for_paper is None:
        raise SuiteError("name the file to write, with -o FILE or --for-paper FOLDER")
    registry = features.load_registry()
    filters, add = (dataset, feature_map, learner), (add_datasets, add_feature_maps, add_learners)
    chosen = features.select_suite(suite, registry, *filters, add=add, n_splits=n_splits, data=data)
    saved = recall_results(chosen, registry, n_splits)
    files = build_files(
        saved,
        features.find(suite, registry)[0],
        registry,
        author=author,
        with_errors=with_errors,
        with_sources=with_sources,
        predictions=features.Journal() if predictions else None,
        data=None if data is None else Path(data),
    )
    n_results = sum(len(cell.results) for cell in {c.key: c for c in saved.cells}.values())
    written = (
        f"{plural(len(saved.cells), 'cell')} of {saved.suite.name}, "
        f"{plural(n_results, 'split')}; id {zip_file.sha256(files['manifest.json'])[:12]}"
    )
    if output is not None:
        zip_file.write(Path(output).expanduser(), files)
        echo(f"{output}: {written}")
    if for_paper is not None:
        from kbench_sharing.paper import paper_files

        place = Path(for_paper).expanduser()
        papers = paper_files(saved, files, registry)
        zip_file.write_folder(place, papers)
        echo(f"{for_paper}: {', '.join(sorted(papers))}")
        echo(f"{place / 'results.zip'}: {written}")
    if saved.n_without:
        echo(f"{plural(saved.n_without, 'cell')} of the suite have no result here", err=True)
    if few := sum(bool(cell.missing) for cell in saved.cells):
        echo(
            f"{plural(few, 'cell')} with fewer splits than planned, which are excluded from "
            "means: compute the missing splits, or give --n-splits as to `kbench suite`",
            err=True,
        )


_SHARES = (0.01, 0.1, 0.5)


@options_from("run_suite")
def verify(
    file: Annotated[
        str,
        typer.Argument(
            help="A bundle (a zip file or a folder), a rows file, or the id of an imported one."
        ),
    ],
    sample: Annotated[int, typer.Option(min=1, help="Number of splits to recompute.")] = 5,
    nonce: Annotated[
        str | None, typer.Option(metavar="HEX", help="Repeat the sample of an earlier command.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Tasks at a time.")] = 1,
    task_timeout: float | None = None,
    author: Annotated[
        str, typer.Option(metavar="NAME", help="Your name, for --repository: who recomputed.")
    ] = "",
    repository: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Also write the recomputed results into this results repository."
        ),
    ] = None,
    data: str | None = None,
    offline: bool = False,
    outdated: Annotated[
        bool,
        typer.Option(
            "--outdated",
            help="Also recompute results whose code or versions have changed; store no outcome.",
        ),
    ] = False,
) -> None:
    """Validate a bundle and recompute a random sample of its results on this machine.

    The sample is chosen with a random nonce, so the author cannot predict it. The outcome is
    stored and shown next to imported results; neither the journal nor MLflow changes. The exit
    code is 1 if a result differs, or none can be recomputed.
    """
    from kbench.records import Limits
    from kbench_sharing import recomputed
    from kbench_sharing.added_bundles import find, same_environment
    from kbench_sharing.repository import check_place, is_address, publish_records, rows_key_by_cell
    from kbench_sharing.verifying import Verifying, draw_sample
    from kbench_sharing.writing import versions

    if nonce is not None and not re.fullmatch(r"[0-9a-f]{1,64}", nonce):
        raise SuiteError(f"--nonce must be 1 to 64 hexadecimal digits, got {nonce!r}")
    if outdated and repository is not None:
        raise SuiteError("--repository stores no outcome of changed code: leave out --outdated")
    limits = Limits()
    if task_timeout is not None:
        limits = Limits(task_timeout_s=features.check_limit(task_timeout, "task_timeout"))
    if offline:
        os.environ["KBENCH_OFFLINE"] = "1"
    bundle = find(file)
    describe(bundle)
    folder = None if repository is None else Path(repository).expanduser()
    if repository is not None and folder is not None:
        # fail before anything is computed
        if is_address(repository):
            raise SuiteError(f"--repository takes a folder: a clone of {mask(repository)}")
        check_place(repository)
        check_author(author, bundle)
        rows_key_by_cell(bundle, folder)
    verifying = Verifying(
        bundle,
        features.load_registry(),
        limits,
        jobs=jobs,
        offline=offline,
        data=None if data is None else Path(data),
        notice=lambda message: echo(f"kbench: {message}", err=True),
    )
    units, reasons = verifying.units(outdated)
    for reason, n_splits in reasons.items():
        echo(f"cannot be recomputed on this machine: {plural(n_splits, 'split')}: {reason}")
    if outdated:
        echo("recomputing with the present code and versions: no outcome is stored")
    if reasons and not units:
        echo(f"the same versions: {same_environment(bundle)}")
    drawn = nonce or secrets.token_hex(8)
    chosen = draw_sample(units, bundle.id, drawn, sample)
    echo(
        f"recomputing {len(chosen)} of {plural(len(units), 'split')} that can be recomputed, "
        f"sampled with the nonce {drawn}{'' if nonce else '; --nonce repeats this sample'}"
    )
    verdicts: Counter[Finding] = Counter()
    records = []
    names = {cell.key: cell.name for cell in bundle.cells}
    for (key, split), check in verifying.verify(chosen) if chosen else ():
        verdicts[check.verdict] += 1
        detail = check.detail and f": {check.detail}"
        echo(f"  {_format_verdict(check.verdict)}: {names[key]}, split {split}{detail}")
        if check.verdict != "not recomputed" and not outdated:
            result = bundle.results[key][split]
            records.append(recomputed.make_record(result, check.verdict, author, versions()))
            recomputed.keep(records[-1])
    of_predictions = _print_prediction_checks(verifying, names, units)
    if folder is not None:
        n_new = publish_records(bundle, records, folder)
        echo(f"{folder}: {plural(n_new, 'new file')} of recomputed splits")
    _conclude(verdicts, of_predictions)


def _print_prediction_checks(
    verifying: Verifying, names: dict[str, str], units: Sequence[Unit]
) -> bool:
    """Compare metrics with those of the predictions; return whether one differs."""
    having = [unit for unit in units if unit in verifying.bundle.predictions]
    if not having:
        return False
    verdicts: Counter[Finding] = Counter()
    for (key, split), check in verifying.predictions(having):
        verdicts[check.verdict] += 1
        if check.verdict != "equal":
            echo(f"  {_format_verdict(check.verdict)}: {names[key]}, split {split}: {check.detail}")
    echo(f"metrics from the predictions of {len(having)} splits: {_counts(verdicts)}")
    return verdicts["different"] > 0


def _format_verdict(verdict: Finding) -> str:
    return "cannot be recomputed" if verdict == "not recomputed" else features.VERDICTS[verdict]


def _counts(verdicts: Counter[Finding]) -> str:
    return ", ".join(f"{n} {_format_verdict(verdict)}" for verdict, n in verdicts.items())


def check_author(author: str, bundle: Bundle) -> None:
    """Raise if a record has no name, or that of the author of the results."""
    from kbench_sharing import untrusted_text

    untrusted_text.check_author(author)
    if not author:
        raise SuiteError("a published verification needs a name: give --author NAME")
    if author == bundle.manifest.author:
        raise SuiteError(f"{author} is the author of the results: only others can verify them")


def describe(bundle: Bundle) -> None:
    """Print the author and the content of a bundle."""
    cpus = ", ".join(dict.fromkeys(each.cpu for each in bundle.manifest.machines))
    echo(
        f"{bundle.author}: {plural(len(bundle.cells), 'cell')} of {bundle.manifest.suite}, "
        f"{plural(bundle.n_results, 'split')}, computed on {cpus}"
    )
    echo("schema, keys, references, timestamps and value ranges are valid")


def _conclude(verdicts: Counter[Finding], is_refuted: bool) -> None:
    """Print the verdicts, and end with the exit code."""
    from kbench_sharing.verifying import p_detect

    k = verdicts.total() - verdicts["not recomputed"]
    if not k:
        echo("no result was recomputed: the numbers are unverified")
        raise typer.Exit(1)
    echo(f"\n{_counts(verdicts)}")
    shares = "; ".join(f"{p_detect(f, k):.0%} if {f:.0%} of them are forged" for f in _SHARES)
    echo(f"{k} recomputed results detect a forgery with probability 1 - (1 - f)^{k}: {shares}")
    raise typer.Exit(1 if verdicts["different"] or is_refuted else 0)


def add(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|URL",
            help="A bundle (a zip file or a folder) or a rows file, or the https URL of one.",
        ),
    ],
) -> None:
    """Import another user's bundle, to show its results next to yours.

    `kbench results`, `kbench report` and `kbench compare SUITE SUITE@author=AUTHOR` show them.
    """
    from kbench_sharing.added_bundles import SHORT, keep
    from kbench_sharing.fetching import is_url
    from kbench_sharing.reading import read_bundle, read_url

    bundle = read_url(file) if is_url(file) else read_bundle(Path(file).expanduser())
    describe(bundle)
    _, is_new = keep(bundle)
    short, suite = bundle.id[:SHORT], shlex.quote(bundle.manifest.suite)
    echo(f"{'imported' if is_new else 'already imported'} as {short}")
    echo(f"kbench results {suite}\nkbench suite {suite} --reuse-bundle {short}")


def publish(
    file: Annotated[
        str, typer.Argument(help="A bundle (a zip file or a folder), or the id of an imported one.")
    ],
    repository: Annotated[
        str,
        typer.Option(
            metavar="DIR|URL",
            help="A results repository: a folder, such as a clone, or a URL to which git pushes: "
            "https, ssh, file or host:path.",
        ),
    ],
) -> None:
    """Add the rows of a bundle to a results repository, one immutable file per cell.

    Files are named by their content and never overwritten. In a folder, commit and push the new
    files yourself. To a URL, kbench pushes them as one commit of the default branch, with the
    name and the credentials of your git.
    """
    from kbench_sharing.added_bundles import find
    from kbench_sharing.repository import check_place, is_address, publish_to_remote
    from kbench_sharing.repository import publish as published

    check_place(repository)
    is_remote = is_address(repository)
    bundle = find(file)
    folder = Path(repository).expanduser()
    done = publish_to_remote(bundle, repository) if is_remote else published(bundle, folder)
    present = f", {done.n_kept} already present" if done.n_kept else ""
    where = mask(repository) if is_remote else folder
    echo(f"{where}: {plural(done.n_new, 'new rows file')}{present}")
    if done.n_new and not is_remote:
        echo(f"check them: kbench bundle site {folder}")


def site(
    repository: Annotated[str, typer.Argument(metavar="DIR", help="A results repository.")],
    output: Annotated[
        str | None,
        features.output_option(metavar="FOLDER", help="Also write the site into this new folder."),
    ] = None,
) -> None:
    """Check all files of a results repository; with -o, write its site.

    The exit code is 1 if a file is damaged, forged or misplaced; each is named on one line, and
    no site is written.
    """
    folder = Path(repository).expanduser()
    if output is None:
        from kbench_sharing.repository import problems

        n_rows, rejected = problems(folder)
    else:
        from kbench_sharing.site import write_site

        n_rows, n_pages, rejected = write_site(folder, Path(output).expanduser())
    for problem in rejected:
        echo(problem, err=True)
    if rejected:
        echo(f"{plural(len(rejected), 'file')} rejected, {n_rows} valid", err=True)
        raise typer.Exit(1)
    echo(f"{plural(n_rows, 'rows file')}: schema, keys, timestamps and value ranges are valid")
    if output is not None:
        echo(f"{Path(output) / 'index.html'}: {plural(n_pages, 'page')}")
