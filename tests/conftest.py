"""What every test may use: golden files, the command line in this process, a browser."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from .fixtures import unpacked
from .running import Golden, Result, Run

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parent.parent
GOLDEN = Path(__file__).parent / "golden"

# A test run says the same each time; HYPOTHESIS_PROFILE=explore looks for new cases.
settings.register_profile("repeat", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None, max_examples=2000)
os.environ["HLOFUSE_CACHE"] = "off"  # tests of the cache have one of their own
os.environ["HLOFUSE_CPU"] = "xeon_2_threads"  # on every machine
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeat"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="Write the golden files anew.")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One for all tests of a process."""
    from .explorer.browser import running_browser

    with running_browser() as found:
        yield found


@pytest.fixture
def samples() -> Path:
    """The folder of sample dumps."""
    return ROOT / "samples"


@pytest.fixture(scope="session")
def gpt2_whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dumps that XLA wrote of a GPT-2 block for an H100, every pass of it; not to be changed."""
    archive = ROOT / "tests" / "data" / "gpu-dump-directory.tar.xz"
    return unpacked(archive, tmp_path_factory.mktemp("dump")) / "gpu-dump"


@pytest.fixture
def deviceless(samples: Path, tmp_path: Path) -> Path:
    """A GPU's module beside which nothing tells the device."""
    return Path(shutil.copy(samples / "gpu" / "softmax" / "before.hlo", tmp_path / "softmax.hlo"))


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """`golden("explain/softmax.txt", text)`: equal to the file kept in tests/golden, or written there."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        assert path.exists(), f"no {path.name} yet: run pytest with --update-golden and look at it"
        assert text == path.read_text(encoding="utf-8")

    return check


@pytest.fixture
def hlofuse(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """`hlofuse("explain", path, columns=80)` runs the command line in this process."""
    from hlofuse.cli.main import main

    def run(*args: object, columns: int = 80, stdin: bytes | None = None, **env: str) -> Result:
        monkeypatch.setattr(sys, "argv", ["hlofuse", *map(str, args)])
        for name in ("NO_COLOR", "TERM", "FORCE_COLOR"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("COLUMNS", str(columns))
        # On a loaded machine lines of progress would come between those that tests look at.
        monkeypatch.setattr("hlofuse.cli.common.messages._EVERY", 3600)
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capsys.readouterr()
        return Result(int(stop.value.code or 0), out, err)

    return run
