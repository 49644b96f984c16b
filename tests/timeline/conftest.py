"""The dumps XLA wrote of a GPT-2 block for an H100, every pass of it."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

ARCHIVE = Path(__file__).parent.parent / "data" / "gpu-dump-directory.tar.xz"


@pytest.fixture(scope="session")
def gpt2_whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory; not to be changed."""
    folder = tmp_path_factory.mktemp("dump")
    with tarfile.open(ARCHIVE) as tar:
        tar.extractall(folder, filter="data")
    return folder / "gpu-dump"


@pytest.fixture
def gpt2(gpt2_whole: Path, tmp_path: Path) -> Path:
    """A copy of it to do damage to."""
    folder = tmp_path / "gpt2"
    folder.mkdir()
    for file in gpt2_whole.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder
