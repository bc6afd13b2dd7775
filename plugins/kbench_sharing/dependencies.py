"""Dependencies of results in bundles: names and hashes, without paths and values."""

import re
from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import replace
from pathlib import Path, PurePosixPath

from kbench.errors import BundleError
from kbench.features import Manifest, Present
from kbench.messages import plural, printable
from kbench.records import INSTALLED, NAMESPACE
from kbench_sharing.bundle_records import Bundle, SharedDependencies
from kbench_sharing.untrusted_text import check_label

# The reason why a result without dependencies is not reused.
UNKNOWN = "its dependencies were not recorded"

# Maximum number of different names in a bundle: reuse looks up each of them.
MAX_NAMES = 20_000

_SHOWN = 3
_MODULE = re.compile(r"[^\W\d][\w-]*(\.[\w-]+)*")
_FILE = re.compile(r"([^\W\d]\w*):([^\\\0]+)")
_OUTSIDE = re.compile(r"/[0-9]{1,9}")
_DISTRIBUTION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+!_-]{0,60}")
_HASH = re.compile(r"[0-9a-f]{32,64}")
_SET = "set"


def portable(manifest: Manifest) -> Manifest:
    """Return a manifest without paths and values of variables, for publication.

    Files outside of packages have a number instead of a name.
    """
    outside = sum(Path(name).is_absolute() for name in manifest.files)
    files = {name: v for name, v in manifest.files.items() if not Path(name).is_absolute()}
    return replace(
        manifest.across_hosts(),
        files=files | {f"/{number}": "" for number in range(outside)},
        variables={n: None if v is None else _SET for n, v in manifest.variables.items()},
    )


def dump_dependencies(manifests: Iterable[Manifest]) -> list[dict[str, object]]:
    """Return manifests as lines of a bundle, without entries specific to the author's machine."""
    by_digest = {each.digest: each for each in map(portable, manifests)}
    return [{"digest": key, **by_digest[key].to_json()} for key in sorted(by_digest)]


def read_dependencies(lines: Iterable[SharedDependencies], named: Set[str]) -> dict[str, Manifest]:
    """Return manifests by digest; raise BundleError for an invalid one.

    Each has the digest of its content, and `named` are those that results name.
    """
    manifests: dict[str, Manifest] = {}
    for line in lines:
        manifest = line.manifest()
        if manifest.digest != line.digest:
            raise BundleError("it has dependencies whose digest does not match their content")
        if line.digest in manifests:
            raise BundleError("it has the same dependencies twice")
        _check(manifest)
        manifests[line.digest] = manifest
    parts = (part for each in manifests.values() for part in each.to_json().items())
    if len({(part, name) for part, values in parts for name in values}) > MAX_NAMES:
        raise BundleError(f"its dependencies have more than {MAX_NAMES:,} names")
    if named - manifests.keys():
        raise BundleError("it lacks the dependencies of a result")
    if manifests.keys() - named:
        raise BundleError("it has dependencies without a result")
    return manifests


def _check(manifest: Manifest) -> None:
    """Raise for an invalid name, hash or version: none of them may refer to a file elsewhere."""
    for name, value in manifest.modules.items():
        _check_name(name, "module", _MODULE)
        if value not in (None, INSTALLED, NAMESPACE):
            _check_hash(value, name)
    files = {n: v for n, v in manifest.files.items() if v != "" or not _OUTSIDE.fullmatch(n)}
    for name, value in files.items():
        _check_name(name, "file", _FILE)
        relative = PurePosixPath(name.partition(":")[2])
        if relative.is_absolute() or ".." in relative.parts or "~" in name:
            raise BundleError(f"the file {_quote(name)} is not part of a package")
        if value is not None:
            _check_hash(value, name)
    for name, value in manifest.variables.items():
        check_label(name, "environment variable")
        if value not in (None, _SET):
            raise BundleError(f"it has a value of the environment variable {_quote(name)}")
    for name, value in manifest.distributions.items():
        _check_name(name, "distribution", _DISTRIBUTION)
        if value is not None and not _VERSION.fullmatch(value):
            raise BundleError(f"{_quote(value)} is not a version of {_quote(name)}")
    if not (manifest.modules and manifest.distributions.get("python")):
        raise BundleError("it has dependencies without modules or Python")


def _check_name(name: str, kind: str, form: re.Pattern[str]) -> None:
    if not form.fullmatch(check_label(name, kind)):
        raise BundleError(f"the {kind} {_quote(name)} has an invalid name")


def _check_hash(value: str | None, name: str) -> None:
    if value is None or not _HASH.fullmatch(value):
        raise BundleError(f"the hash of {_quote(name)} is invalid")


def _quote(value: str) -> str:
    return repr(printable(value, 60))


# -- differences to this machine


def find_changes(bundle: Bundle, present: Present, is_reused: bool = False) -> dict[str, str]:
    """Return the differences to this machine by digest of dependencies; empty if there are none.

    Only dependencies named in the bundle are looked up. Those that its author did not share cannot
    be compared, so results that are reused (`is_reused`) must have none of them.
    """
    return {
        name: _format_changes(each, present) or (_list_not_shared(each) if is_reused else "")
        for name, each in bundle.dependencies.items()
    }


def count_not_reused(bundle: Bundle, present: Present) -> Counter[str]:
    """Count the splits of a bundle that are not valid here, by reason."""
    changes = find_changes(bundle, present, is_reused=True)
    results = (result for of_cell in bundle.results.values() for result in of_cell.values())
    names = (result.manifest for result in results if result.status == "ok")
    return Counter(filter(None, (changes.get(name, UNKNOWN) for name in names)))


def _format_changes(manifest: Manifest, present: Present) -> str:
    files = {name: v for name, v in manifest.files.items() if not _OUTSIDE.fullmatch(name)}
    variables = {name: v for name, v in manifest.variables.items() if v is None}
    changed = present.why_changed(replace(manifest, files=files, variables=variables))
    more = f"; and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
    return "; ".join(changed[:_SHOWN]) + more


def _list_not_shared(manifest: Manifest) -> str:
    """Return the dependencies that can be compared on the author's machine only."""
    n_files = sum(_OUTSIDE.fullmatch(name) is not None for name in manifest.files)
    names = sorted(name for name, value in manifest.variables.items() if value is not None)
    parts = [plural(n_files, "file") + " of its author's machine"] if n_files else []
    parts += [f"the environment variable {name}" for name in names]
    return f"it depends on {', '.join(parts)}, which cannot be compared here" if parts else ""
