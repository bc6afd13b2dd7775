"""Imported bundles of other users: their rows in tables, and reuse of their results.

An imported bundle is named by its content, and never changed. A result is reused for a cell with
the same key, if its code, versions and data are the same here.

The equivalence and the family of the method and the number of splits of an imported cell are not
part of its key, and kbench derives them itself: an author could claim the equivalence of another
method and replace it, or plan only one good split. Only built-in components have an equivalence
here: reading imported results runs no code of plugins.
"""

import re
import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from kbench import features
from kbench._version import __version__
from kbench.errors import BundleError, KbenchError, SuiteError
from kbench.messages import list_some, mask, option, plural, printable
from kbench.records import (
    Cell,
    DatasetFacts,
    Limits,
    Metric,
    Protocol,
    Ref,
    Result,
    Tune,
    get_family,
)
from kbench_sharing import bundle_records, zip_file
from kbench_sharing.bundle_records import Bundle, SharedResult
from kbench_sharing.dependencies import UNKNOWN, count_not_reused, find_changes
from kbench_sharing.fetching import is_url
from kbench_sharing.reading import ROWS, read_bundle
from kbench_sharing.recomputed import Records, list_checks, list_records
from kbench_sharing.untrusted_text import slug

# Number of hexadecimal digits of an id that are shown.
SHORT = 12

_ID = re.compile(r"[0-9a-f]{6,64}")


def folder() -> Path:
    """Return the folder of imported bundles, in the state folder of this machine."""
    return features.state_folder() / "bundles"


def keep(bundle: Bundle) -> tuple[Path, bool]:
    """Store a checked bundle or rows file; return its file, and whether it is new.

    The files of a bundle are packed again: no byte of the original zip file is stored.
    BundleError is raised if it cannot be written.
    """
    is_rows = bundle_records.ROWS_FILE in bundle.files
    path = folder() / slug(bundle.manifest.suite) / f"{bundle.id}{ROWS if is_rows else '.zip'}"
    if path.exists():
        return path, False
    data = bundle.files[bundle_records.ROWS_FILE] if is_rows else zip_file.pack_zip(bundle.files)
    try:
        features.write_file(path, data, mode=0o400)
    except OSError as error:
        raise BundleError(f"{path} cannot be written: {error.strerror or error}") from error
    return path, True


def find(name: str) -> Bundle:
    """Read a bundle, given its path or the beginning of the id of an imported one.

    BundleError is raised if there is none, or if it is invalid.
    """
    if is_url(name):
        raise BundleError(
            f"{printable(mask(name), 200)} is a URL: `kbench bundle add` downloads it and "
            "prints the id to use instead"
        )
    path = Path(name).expanduser()
    if path.exists() or not _ID.fullmatch(name):
        return read_bundle(path)
    files = _files()
    hits = [each for each in files if each.stem.startswith(name)]
    if len(hits) != 1:
        names = list_some([each.stem[:SHORT] for each in files]) or "none"
        raise BundleError(f"{len(hits)} bundles begin with {name!r}; imported bundles: {names}")
    return _read(hits[0])


def bundles_of_suite(name: str, notice: Callable[[str], None]) -> Iterator[Bundle]:
    """Yield the imported bundles of a suite; `notice` is called for each one that is skipped."""
    for path in _files(slug(name)):
        try:
            bundle = _read(path)
            if bundle.manifest.suite == name:
                yield bundle
        except BundleError as error:
            notice(str(error))


def _files(suite: str = "*") -> list[Path]:
    """Return the files of imported bundles by id; each suite has a folder."""
    paths = [*folder().glob(f"{suite}/*.zip"), *folder().glob(f"{suite}/*{ROWS}")]
    return sorted(paths, key=lambda path: path.name)


def _read(path: Path) -> Bundle:
    try:
        bundle = read_bundle(path)
    except BundleError as error:
        raise BundleError(f"{error}; remove it and import it again") from None
    if bundle.id != path.stem:
        raise BundleError(f"{path} was changed after its import: remove it and import it again")
    return bundle


_VERSIONS = ("kbench-core", "python", "numpy", "scipy", "scikit-learn")


def read_rows(bundle: Bundle, metric: Metric, records: Records) -> Iterator[features.ImportedRow]:
    """Yield the rows of a bundle's cells that have results.

    Rows have the spread and the values by split of `metric`; `records` are those of recomputed
    splits.
    """
    cpus = [each.cpu for each in bundle.manifest.machines]
    stated = bundle.manifest.versions
    versions = ", ".join(f"{name} {stated[name]}" for name in _VERSIONS if name in stated)
    for cell in bundle.cells:
        shared = bundle.results.get(cell.key)
        if not shared:
            continue
        dataset = bundle.datasets[cell.dataset]
        of_cell = cell.cell(dataset.ref)
        equivalence, family = read_meaning(of_cell)
        planned = features.PlannedCell(
            of_cell,
            cell.key,
            DatasetFacts(**dataset.model_dump(exclude={"ref"})),
            cell.n_splits,
            results={
                split: result.result(cpus[result.machine], cpus[result.machine])
                for split, result in shared.items()
            },
            equivalence=equivalence,
            family=family,
        )
        cpu = ", ".join(dict.fromkeys(cpus[shared[split].machine] for split in sorted(shared)))
        row = features.make_split_row(planned, f"{bundle.author} on {cpu}", metric)
        checks = list_checks(shared, records)
        yield features.ImportedRow(
            row, metric, bundle.author, cpu, bundle.id[:SHORT], versions, checks
        )


def imported_rows(
    suite: str, metric: Metric | None = None, notice: Callable[[str], None] = lambda message: None
) -> list[features.ImportedRow]:
    """Return the rows of a suite in imported bundles, without their times.

    `metric` is by default that of the first bundle. If an author has published a cell several
    times from the same code, the latest results count. `notice` is called with the bundles that are
    skipped.
    """
    records = list_records()
    rows: dict[tuple[str, str, str, str], features.ImportedRow] = {}
    for bundle in bundles_of_suite(suite, notice):
        metric = metric or read_metric(bundle)
        for other in read_rows(bundle, metric, records):
            place = (other.author, other.cpu, other.row.key, other.row.made_from)
            earlier = rows.get(place)
            if earlier is None or earlier.row.end_ms < other.row.end_ms:
                rows[place] = replace(other, row=features.without_times(other.row))
    return list(rows.values())


def read_stored_results(name: str) -> features.StoredResults:
    """Return the latest row of each cell of a bundle, of all machines of its author."""
    bundle = find(name)
    metric = read_metric(bundle)
    return features.make_side(list(read_rows(bundle, metric, {})), bundle.manifest.suite, metric)


def read_metric(bundle: Bundle) -> Metric:
    """Return the metric of a bundle; the plugin of a metric need not be installed."""
    return features.complete_metric(Metric(bundle.manifest.metric, bundle.manifest.better))


def read_meaning(cell: Cell) -> tuple[str, str]:
    """Return equivalence and family of a cell; both are empty for third-party components."""
    registry = _built_in()
    try:
        family = get_family(
            registry.get("feature map", cell.feature_map.name),
            registry.get("learner", cell.learner.name),
        )
        # spans of nested components combine, which may be too many
        if not _is_plain(cell.feature_map):
            return "", family
        return _planner().equivalence(cell), family
    except (KbenchError, TypeError, ValueError, KeyError, AttributeError, ArithmeticError):
        return "", ""


def planned_splits(suite: str, protocol: Protocol) -> int:
    """Return the number of splits of a built-in suite, or else that of the protocol.

    >>> planned_splits("uci", Protocol()), planned_splits("balcan-uci", Protocol(cv="holdout"))
    (5, 30)
    """
    return features.how_many_splits(protocol, Limits(n_splits=_n_splits(suite)))


def _is_plain(ref: Ref) -> bool:
    values = (v.values if isinstance(v, Tune) else (v,) for v in ref.params.values())
    plain = (str, int, float, bool, type(None))
    return all(isinstance(value, plain) for items in values for value in items)


@cache
def _built_in() -> features.Registry:
    return features.build(
        [plugin for plugin in features.list_plugins() if plugin.distribution == features.HOST]
    )


@cache
def _planner() -> features.Planner:
    # it caches the spans of maps; no data are looked up
    return features.Planner(_built_in(), features.DataCache())


@cache
def _n_splits(suite: str) -> int | None:
    files = _built_in().all("suite")
    if suite not in files:
        return None
    limits = tomllib.loads(files[suite].read_text(encoding="utf-8")).get("limits", {})
    n_splits = limits.get("n_splits")
    return n_splits if isinstance(n_splits, int) else None


# Suffixes of metrics that are meaningful only on the machine that computed them.
OF_A_MACHINE = ("_s", "_mib")

_SHOWN = 5
_PINNED = ("kbench-core", "numpy", "scipy", "scikit-learn")


def read_named_bundles(names: Sequence[str] | None, recompute: bool = False) -> list[Bundle]:
    """Read the bundles of `--reuse-bundle`, by file or id.

    SuiteError is raised if everything is to be recomputed, BundleError if there is no such bundle.
    """
    if names and recompute:
        raise SuiteError(
            f"{option('recompute', True)} recomputes all; leave out {option('reuse_bundles')}"
        )
    return [find(name) for name in names or ()]


def notices(bundle: Bundle, present: features.Present) -> list[str]:
    """Return the reasons why results of a bundle are not reused; empty if all are valid here."""
    reasons = count_not_reused(bundle, present)
    texts = [f"{plural(n, 'split')}: {reason}" for reason, n in reasons.most_common(_SHOWN)]
    if more := len(reasons) - len(texts):
        texts.append(f"and {plural(more, 'other reason')}")
    sentences = [f"bundle {bundle.id[:SHORT]}, not reused: {'; '.join(texts)}"] if texts else []
    if texts and other_versions(bundle):
        sentences.append(f"the same versions: {same_environment(bundle)}")
    return sentences


def reusable(
    bundles: Iterable[Bundle], present: features.Present
) -> dict[str, Mapping[int, Result]]:
    """Return results by key of the cell and number of the split; the first bundle takes precedence.

    Only results with status "ok" are reused whose dependencies are the same at `present`. Their
    `machine` names the author and the machine.
    """
    by_cell: dict[str, Mapping[int, Result]] = {}
    for bundle in bundles:
        changes = find_changes(bundle, present, is_reused=True)
        for key, results in bundle.results.items():
            ok = {
                split: _list_known(bundle, each)
                for split, each in results.items()
                if each.status == "ok" and not changes.get(each.manifest, UNKNOWN)
            }
            if ok:
                by_cell.setdefault(key, ok)
    return by_cell


def _list_known(bundle: Bundle, shared: SharedResult) -> Result:
    cpu = bundle.manifest.machines[shared.machine].cpu
    number = f", machine {shared.machine + 1}" if len(bundle.manifest.machines) > 1 else ""
    result = shared.result(f"{bundle.author} on {cpu}{number}", cpu)
    metrics = {
        name: value for name, value in result.metrics.items() if not name.endswith(OF_A_MACHINE)
    }
    details = replace(result.details, search_seconds=(), work_s=0.0, contention=())
    return replace(
        result, metrics=metrics, details=details, seconds=0.0, cpu_s=0.0, machine_speed_s=0.0
    )


def same_environment(bundle: Bundle) -> str:
    """Return the command that makes an environment with the versions of a bundle."""
    stated = bundle.manifest.versions
    python = ".".join(stated.get("python", "3").split(".")[:2])
    folder = f"kbench-{bundle.id[:SHORT]}"
    pinned = [f"{name}=={stated[name]}" for name in _PINNED if name in stated]
    install = shlex.join([f"{folder}/bin/pip", "install", *pinned])
    return f"{shlex.join([f'python{python}', '-m', 'venv', folder])} && {install}"


def other_versions(bundle: Bundle) -> str:
    """Return the versions of a bundle that differ here; empty if there are none."""
    mine, theirs = (
        {**features.machine.versions(), "kbench-core": __version__},
        bundle.manifest.versions,
    )
    pairs = {name: (theirs.get(name, "none"), mine.get(name, "none")) for name in _PINNED}
    there, here = (".".join(v.get("python", "").split(".")[:2]) for v in (theirs, mine))
    pairs["Python"] = there, here
    differing = [f"{name} {a} (here {b})" for name, (a, b) in pairs.items() if a != b]
    return f"it was computed with other versions: {', '.join(differing)}" if differing else ""
