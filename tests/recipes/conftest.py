"""A process that runs both sides of recipes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hlofuse.judge.judge import Judge


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    """One process for all modules; each runs for a moment, so LLVM need not optimize it."""
    with Judge(timeout=120, xla_flags=("--xla_backend_optimization_level=0",)) as process:
        yield process
