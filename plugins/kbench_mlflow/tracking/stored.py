"""Runs as the store has them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kbench_mlflow.tracking.run import CellRun, RunContent, StoredRun

BOOKKEEPING = {f"kbench.{name}" for name in ("host", "pid", "pid_start", "writing", "digest")}
"""Tags that are not content: the writing process, and its progress."""

CHOSEN = "chosen."
"""Metrics of what searches chose begin with it: for MLflow's pages, not for results."""

Identity = tuple[str, str, str]
"""Key, machine and name of a cell: one run each within an experiment."""

_RUNS_A_PAGE = 500


def identity(run: CellRun) -> Identity:
    """Return the identity of a run that is to be written."""
    return run.key, run.machine, run.content.tags["kbench.cell"]


@dataclass
class Stored:
    """A run as the store has it."""

    run_id: str
    status: str
    start_ms: int
    end_ms: int
    params: dict[str, str]
    tags: dict[str, str]
    metrics: dict[str, float]
    dataset: tuple[str, str] | None

    @classmethod
    def of(cls, run: Any) -> Stored:
        """Convert MLflow's entity."""
        datasets = [given.dataset for given in run.inputs.dataset_inputs] if run.inputs else []
        return cls(
            run_id=run.info.run_id,
            status=run.info.status,
            start_ms=run.info.start_time or 0,
            end_ms=run.info.end_time or 0,
            params=dict(run.data.params),
            tags=dict(run.data.tags),
            metrics=dict(run.data.metrics),
            dataset=(datasets[0].name, datasets[0].digest) if datasets else None,
        )

    @property
    def is_ours(self) -> bool:
        """Whether any process of kbench has written it."""
        return "kbench.cell_key" in self.tags

    @property
    def identity(self) -> Identity:
        """Key, machine and name as written, though somebody may have renamed the run."""
        name = self.tags.get("kbench.cell") or self.tags.get("mlflow.runName", "")
        return self.tags["kbench.cell_key"], self.tags.get("kbench.machine", ""), name

    @property
    def digest(self) -> str:
        """The digest of the content; empty from the first write until the last."""
        return self.tags.get("kbench.digest", "")

    @property
    def complete(self) -> bool:
        """Whether all its content is stored."""
        return bool(self.digest) and self.status in ("FINISHED", "FAILED")

    @property
    def superseded(self) -> bool:
        """Whether its cell is planned under another key now."""
        return "kbench.superseded" in self.tags

    @property
    def n_splits_done(self) -> int:
        """Number of splits behind the means; 0 where somebody has edited the tag."""
        text = self.tags.get("kbench.n_splits_done", "")
        return int(text) if text.isdecimal() else 0

    @property
    def split_hashes(self) -> dict[str, str]:
        """`RunContent.split_hashes`, read back from their tag."""
        pairs = (pair.partition(":") for pair in self.tags.get("kbench.splits", "").split())
        return {index: sha for index, _, sha in pairs}

    def read_back(self, experiment_id: str) -> StoredRun:
        """Return the run without the values of each split."""
        key, machine, _ = self.identity
        return StoredRun(
            key=key,
            machine=machine,
            name=self.tags.get("mlflow.runName", ""),
            status=self.tags.get("kbench.status", ""),
            n_splits_done=self.n_splits_done,
            params=self.params,
            tags=self.tags,
            metrics={
                name: value for name, value in self.means.items() if not name.startswith(CHOSEN)
            },
            run_id=self.run_id,
            experiment_id=experiment_id,
            start_ms=self.start_ms,
            end_ms=self.end_ms,
        )

    @property
    def means(self) -> dict[str, float]:
        """The metrics that are means over splits."""
        return {
            name: value for name, value in self.metrics.items() if not name.endswith("_by_split")
        }

    @property
    def preference(self) -> tuple[Any, ...]:
        """Sort key: of several runs of one identity the greatest is kept."""
        return self.complete, not self.superseded, self.end_ms, self.start_ms, self.run_id

    def is_written_as(self, content: RunContent) -> bool:
        """Return whether nothing has to be written."""
        return (
            self.digest == content.digest and self.status == content.status and not self.superseded
        )

    def can_become(self, content: RunContent) -> bool:
        """Return whether additions make it `content`: MLflow changes no param and no point."""
        if not self.digest:
            # begun and not finished: all steps for the same content can be repeated
            return self.tags.get("kbench.writing") == content.digest
        before, after = self.n_splits_done, content.n_splits_done
        means = {
            name: value for name, value in self.metrics.items() if name not in content.by_split
        }
        data = content.dataset
        return (
            self.params.items() <= content.params.items()
            and self.split_hashes.items() <= content.split_hashes.items()
            and self.metrics.keys() <= content.metrics.keys() | content.by_split.keys()
            and (before < after or means.items() <= content.metrics.items())
            and (before <= after or not means)
            and self.dataset in (None, data and (data.name, data.digest))
        )


def live_runs(client: Any, experiment_id: str, where: str = "") -> Iterator[Stored]:
    """Yield the runs of kbench in an experiment that are not deleted, each once."""
    seen: set[str] = set()
    token = None
    while True:
        page = client.search_runs(
            [experiment_id], filter_string=where, max_results=_RUNS_A_PAGE, page_token=token
        )
        for run in map(Stored.of, page):
            if run.is_ours and run.run_id not in seen:
                seen.add(run.run_id)
                yield run
        if not (token := page.token):
            return
