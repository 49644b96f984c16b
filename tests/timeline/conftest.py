"""A dump directory to do damage to."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def gpt2(gpt2_whole: Path, tmp_path: Path) -> Path:
    """A copy of the dumps of every pass."""
    folder = tmp_path / "gpt2"
    folder.mkdir()
    for file in gpt2_whole.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder
