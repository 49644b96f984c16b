"""Modules ahead of fusion as XLA has them: what `tests/tools/pack_passes.py` packed."""

from __future__ import annotations

import tarfile
from functools import cache
from pathlib import Path

DATA = Path(__file__).parent.parent / "data"


@cache
def archive(name: str) -> dict[str, dict[str, str]]:
    """The texts of each case."""
    cases: dict[str, dict[str, str]] = {}
    with tarfile.open(DATA / f"{name}-unoptimized.tar.xz") as tar:
        for member in tar.getmembers():
            case, _, file = member.name.rpartition("/")
            data = tar.extractfile(member)
            assert data is not None
            cases.setdefault(case, {})[file.removesuffix(".hlo")] = data.read().decode()
    return cases
