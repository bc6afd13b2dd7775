"""Options of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from kbench import machine
from kbench.errors import SuiteError
from kbench.parameters import check_choice, check_integer
from kbench.records import Suite


@dataclass(frozen=True)
class Options:
    """Options of a run; none of them decides a number.

    They are those of `kbench.run_suite`. If `jobs` is None, it is 1 with exclusive timing,
    else as many tasks as the physical cores have the threads for; with an engine of a feature
    it stays None, for all that the engine has.

    `total_s` is the wall clock of the whole run: no task begins that would not end by
    then, judged by the longest of its cell. The first of a cell may overrun, and the
    first of all begins in any case. `given` are the options of features, by name, and
    their files are in `folder` by default, or in the current one.

    SuiteError is raised where `jobs` is not positive, `timing` is unknown, or exclusive timing is
    asked for with several tasks at a time.
    """

    jobs: int | None = 1
    fresh: bool = False
    retry_failed: bool = False
    offline: bool = False
    timing: Literal["shared", "exclusive"] = "shared"
    total_s: float = math.inf
    given: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None

    def __post_init__(self) -> None:
        if self.jobs is not None:
            check_integer(self.jobs, "jobs", least=1, otherwise="None", error=SuiteError)
        check_choice(self.timing, "timing", ("shared", "exclusive"), error=SuiteError)
        if self.exclusive and self.jobs not in (None, 1):
            raise SuiteError(
                f"--jobs must be 1 with --timing exclusive: one task at a time, got {self.jobs}"
            )

    def of_suite(self, suite: Suite) -> Options:
        """Return the options with the number of tasks at a time on this machine."""
        if self.jobs is not None:
            return self
        threads = max(block.protocol.threads for block in suite.blocks)
        jobs = 1 if self.exclusive else max(1, machine.physical_cores() // threads)
        return replace(self, jobs=jobs)

    @property
    def exclusive(self) -> bool:
        """Whether nothing else may run while times are taken, features included."""
        return self.timing == "exclusive"
