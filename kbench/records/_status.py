"""Statuses of tasks and cells."""

from __future__ import annotations

from typing import Literal

Status = Literal[
    "ok",
    "error",
    "timeout",
    "memory",
    "crash",
    "unavailable",
    "skipped",
    "unfinished",
    "not run",
]
