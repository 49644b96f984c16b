"""A process that runs both sides of recipes, and the size from which they compute in parts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hlofuse.judge.judge import Judge
from hlofuse.reports.advice import chunks


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    """One process for all modules; each runs for a moment, so LLVM need not optimize it."""
    with Judge(timeout=120, xla_flags=("--xla_backend_optimization_level=0",)) as process:
        yield process


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of 1 MiB are computed in parts, not of 64: both sides run in a moment."""
    monkeypatch.setattr(chunks, "_LEAST", 1 << 19)
