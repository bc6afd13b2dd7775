"""The check of datasets in the data cache, on the first split of a protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kbench.errors import KbenchError
from kbench.features import DataCache
from kbench.records import DatasetFacts, Protocol
from kbench.records.canonical import dumps, to_json
from kbench_leakage.findings import Leakage
from kbench_leakage.kept import keep, keep_sketch, key_of, recall


def text_of(protocol: Protocol) -> Mapping[str, str]:
    """Return the fields of a protocol as the rows of results have them."""
    return {
        name: value if isinstance(value, str) else dumps(value)
        for name, value in to_json(protocol).items()
    }


def leakage_of(facts: DatasetFacts, protocol: Protocol) -> Leakage:
    """Return what was measured on a dataset in the cache, now or before."""
    # reports know the checksum only, and show the names that were seen last
    last = key_of(facts.checksum, text_of(protocol))
    key = key_of(facts.checksum, text_of(protocol), ["", *facts.feature_names])
    found = recall(key)
    if found is None:
        try:
            found = _measured(facts, protocol)
        except KbenchError as error:  # the cells say why they cannot be computed
            return Leakage(notes=(f"not checked: {error}",))
        keep(key, found)
    if recall(last) != found:
        keep(last, found)
    return found


def _measured(facts: DatasetFacts, protocol: Protocol) -> Leakage:
    if facts.pairwise:
        return Leakage(notes=("not checked: a Gram matrix has no columns",))
    import numpy as np

    from kbench.features import assign, derive_seed
    from kbench_leakage.check import measured
    from kbench_leakage.related import sketch

    data = DataCache().load_for(facts)
    keep_sketch(facts.checksum, sketch(data.X, np.asarray(data.y), tuple(facts.feature_names)))
    # all training rows, with missing values as they are; nobody asks here which rows are equal
    whole = replace(protocol, train_rows=None, unlabelled_size=0, missing="impute")
    visible = assign(data, whole, 0, np.zeros(len(data.y), dtype=np.intp)).visible
    return measured(
        data.X,
        np.asarray(data.y),
        visible.train,
        visible.test,
        data.task == "regression",
        facts.feature_names,
        facts.feature_kinds,
        derive_seed(protocol.seed, "leakage", facts.checksum),
    )
