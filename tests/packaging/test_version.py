"""The version comes from the installed package, and only when it is asked for."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest

import hlofuse as package
from ..conftest import ROOT
from ..running import Run


def test_the_command_prints_the_version(hlofuse: Run) -> None:
    attributes = hlofuse("--version").out.split()
    assert attributes[:2] == ["hlofuse", package.__version__]
    assert package.__version__[0].isdigit()


def test_a_checkout_that_is_not_installed_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import metadata

    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert package.__version__ == "0+unknown"


def test_importing_the_package_does_not_read_the_version() -> None:
    program = "import sys, hlofuse, hlofuse.cli.main; sys.exit('importlib.metadata' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0


def test_the_version_stands_in_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["source"] == "vcs"
