"""`kbench verify`: recomputes some results of a bundle that somebody else made."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kbench.features import DataOption as Data
from kbench.features import Offline, echo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbench_sharing.agreement import Finding
    from kbench_sharing.form import Bundle
    from kbench_sharing.sampling import Unit
    from kbench_sharing.verifying import Verifying

_SHARES = (0.01, 0.1, 0.5)


def verify(
    file: Annotated[
        str,
        typer.Argument(
            help="A bundle (a zip file or a folder), a rows file, or the id of a kept one."
        ),
    ],
    sample: Annotated[int, typer.Option(min=1, help="Number of splits to recompute.")] = 5,
    nonce: Annotated[
        str | None,
        typer.Option(metavar="HEX", help="Repeat the choice of an earlier command."),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Tasks at a time.")] = 1,
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Wall-clock limit of one task.")
    ] = None,
    author: Annotated[
        str, typer.Option(metavar="NAME", help="Your name, for --to: who has recomputed.")
    ] = "",
    to: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Also write what was recomputed into this results repository."
        ),
    ] = None,
    data: Data = None,
    offline: Offline = False,
) -> None:
    """Check a bundle, and recompute some of its results here.

    The results are chosen by a hash that its author cannot foresee. What was found is kept,
    and shown beside the rows of a bundle that was added. Neither the journal nor MLflow is
    written. The exit code is 1 if a result differs, or none can be recomputed.
    """
    from kbench.errors import SuiteError
    from kbench.features import check_limit, load_registry
    from kbench.messages import counted, masked
    from kbench.records import Limits
    from kbench_sharing import recomputed
    from kbench_sharing.git_remote import check_place, is_address
    from kbench_sharing.kept import find
    from kbench_sharing.repository import publish_records, rows_key_by_cell
    from kbench_sharing.reuse import same_environment
    from kbench_sharing.sampling import new_nonce
    from kbench_sharing.sampling import sample as sampled
    from kbench_sharing.verifying import Verifying
    from kbench_sharing.writing import versions

    if nonce is not None and not re.fullmatch(r"[0-9a-f]{1,64}", nonce):
        raise SuiteError(f"--nonce must be 1 to 64 hexadecimal digits, got {nonce!r}")
    limits = Limits()
    if time_limit is not None:
        check_limit(time_limit, "--time-limit")
        limits = Limits(time_s=time_limit)
    if offline:
        os.environ["KBENCH_OFFLINE"] = "1"
    bundle = find(file)
    describe(bundle)
    repository = None if to is None else Path(to).expanduser()
    if to is not None and repository is not None:
        # what cannot be written is said before anything is computed
        if is_address(to):
            raise SuiteError(f"--to takes a folder: clone {masked(to)}, and name the clone")
        check_place(to)
        check_author(author, bundle)
        rows_key_by_cell(bundle, repository)
    verifying = Verifying(
        bundle,
        load_registry(),
        limits,
        jobs=jobs,
        offline=offline,
        data=None if data is None else Path(data),
        notice=lambda text: echo(f"kbench: {text}", err=True),
    )
    units, reasons = verifying.units()
    for reason, n_splits in reasons.items():
        echo(f"cannot be recomputed here: {counted(n_splits, 'split')}: {reason}")
    if reasons and not units:
        echo(f"the same versions: {same_environment(bundle)}")
    drawn = nonce or new_nonce()
    chosen = sampled(units, bundle.id, drawn, sample)
    again = "" if nonce else "; --nonce repeats this choice"
    echo(
        f"recomputing {len(chosen)} of {counted(len(units), 'split')} that can be, "
        f"chosen by the nonce {drawn}{again}"
    )
    verdicts: Counter[Finding] = Counter()
    records = []
    for each in verifying.verify(chosen) if chosen else ():
        verdict, detail = each.agreement.verdict, each.agreement.detail
        verdicts[verdict] += 1
        words = _said(verdict)
        echo(f"  {words}: {each.name}, split {each.result.split}{detail and f': {detail}'}")
        if verdict != "not recomputed":
            records.append(recomputed.record_of(each.result, verdict, author, versions()))
            recomputed.keep(records[-1])
    of_predictions = _of_predictions(verifying, bundle, units)
    if repository is not None:
        n_new = publish_records(bundle, records, repository)
        echo(f"{repository}: {counted(n_new, 'new file')} of recomputed splits")
    _conclude(verdicts, of_predictions)


def _of_predictions(verifying: Verifying, bundle: Bundle, units: Sequence[Unit]) -> bool:
    """Print how measures from the predictions agree; return whether one differs."""
    having = [unit for unit in units if unit in bundle.predictions]
    if not having:
        return False
    verdicts: Counter[Finding] = Counter()
    for each in verifying.predictions(having):
        verdict, detail = each.agreement.verdict, each.agreement.detail
        verdicts[verdict] += 1
        if verdict != "equal":
            echo(f"  {_said(verdict)}: {each.name}, split {each.result.split}: {detail}")
    counts = ", ".join(f"{n} {_said(verdict)}" for verdict, n in verdicts.items())
    echo(f"measures from the predictions of {len(having)} splits: {counts}")
    return verdicts["different"] > 0


def _said(verdict: Finding) -> str:
    from kbench.features import VERDICTS

    return "cannot be recomputed" if verdict == "not recomputed" else VERDICTS[verdict]


def check_author(author: str, bundle: Bundle) -> None:
    """Refuse a name that a record must not have: none, or the author's of the results."""
    from kbench.errors import SuiteError
    from kbench_sharing import texts

    texts.check_author(author)
    if not author:
        raise SuiteError("--to names who has recomputed: give --author NAME")
    if author == bundle.manifest.author:
        raise SuiteError(
            f"{author} is the author of the results; a record of another person proves something"
        )


def describe(bundle: Bundle) -> None:
    """Print who made a bundle, and what is in it."""
    from kbench.messages import counted

    cpus = ", ".join(dict.fromkeys(each.cpu for each in bundle.manifest.machines))
    echo(
        f"{bundle.author}: {counted(len(bundle.cells), 'cell')} of {bundle.manifest.suite}, "
        f"{counted(bundle.n_results, 'split')}, computed on {cpus}"
    )
    echo("form, keys, references, times and ranges: as they must be")


def _conclude(verdicts: Counter[Finding], is_refuted: bool) -> None:
    """Print what the verdicts say, and end with the exit code."""
    from kbench_sharing.sampling import noticed

    k = verdicts.total() - verdicts["not recomputed"]
    if not k:
        echo("no result was recomputed: the numbers are only their author's word")
        raise typer.Exit(1)
    counts = ", ".join(f"{n} {_said(verdict)}" for verdict, n in verdicts.items())
    echo(f"\n{counts}")
    shares = "; ".join(f"{noticed(f, k):.0%} if {f:.0%} of them are forged" for f in _SHARES)
    echo(f"{k} recomputed would find a forgery with probability 1 - (1 - f)^{k}: {shares}")
    raise typer.Exit(1 if verdicts["different"] or is_refuted else 0)
