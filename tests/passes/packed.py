"""Modules ahead of fusion as XLA has them: what `tests/tools/pack_passes.py` packed."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ..fixtures import texts_of

DATA = Path(__file__).parent.parent / "data"


@cache
def archive(name: str) -> dict[str, dict[str, str]]:
    """The texts of each case."""
    texts = texts_of(DATA / f"{name}-unoptimized.tar.xz").items()
    return {case: {file.removesuffix(".hlo"): text for file, text in own.items()} for case, own in texts}
