"""The parts of a report, by the names `--only` knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

ALL = ("fusions", "sources", "instructions", "header")


def limited(rows: Sequence[T], limit: int) -> tuple[Sequence[T], int]:
    """The first `limit` and how many are left; 0 is no limit."""
    if not limit or len(rows) <= limit:
        return rows, 0
    return rows[:limit], len(rows) - limit
