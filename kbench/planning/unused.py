"""Keys of `[protocol]` that other keys leave without a meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kbench.planning.schema import BlockTable, LimitsTable, ProtocolTable

_FOLDS = ("splits", ("stratified", "group_duplicates"))
_HOLDOUT = ("splits", ("holdout", "ordered"))

NEEDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "n_candidates": ("search", ("random",)),
    "n_folds": _FOLDS,
    "train_size": _HOLDOUT,
    "test_size": _HOLDOUT,
}
"""Keys that need one of some values of another key."""


def unused_keys(
    shared: ProtocolTable,
    blocks: Sequence[BlockTable],
    protocols: Sequence[ProtocolTable],
    limits: LimitsTable,
) -> list[str]:
    """Return one message for each key that is given and has no effect on any block.

    `shared` is the protocol at the top of the file, and `protocols` has that of each block
    with all that it takes from there.
    """
    problems = _unused("protocol", shared, blocks, protocols)
    for number, (block, protocol) in enumerate(zip(blocks, protocols, strict=True)):
        if block.protocol is not None:
            place = f"block[{number}].protocol"
            problems += _unused(place, block.protocol, [BlockTable()], [protocol])
    n_splits = limits.n_splits or 1
    if n_splits > 1 and all(protocol.splits == "ordered" for protocol in protocols):
        problems.append(f'limits.n_splits must be 1 with splits = "ordered", got {n_splits}')
    return problems


def _unused(
    place: str,
    given: ProtocolTable,
    blocks: Sequence[BlockTable],
    protocols: Sequence[ProtocolTable],
) -> list[str]:
    """Return the keys of one table that no block uses which takes them from there."""
    problems = []
    for key, (other, allowed) in NEEDS.items():
        if key not in given.model_fields_set:
            continue
        takers = [
            protocol
            for block, protocol in zip(blocks, protocols, strict=True)
            if block.protocol is None or key not in block.protocol.model_fields_set
        ]
        found = sorted({getattr(protocol, other) for protocol in takers})
        if takers and not set(found) & set(allowed):
            needed = " or ".join(f'{other} = "{value}"' for value in allowed)
            has = " and ".join(f'"{value}"' for value in found)
            problems.append(f"{place}.{key} has an effect only with {needed}; {other} is {has}")
    return problems
