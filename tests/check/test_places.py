"""Source files are told alike wherever a module was compiled."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlofuse.format.paths import portable


@pytest.mark.parametrize(
    ("file", "reported"),
    [
        ("/home/ada/project/src/model.py", "src/model.py"),
        ("/builds/1/src/model.py", "src/model.py"),
        ("C:\\work\\src\\model.py", "src/model.py"),
        ("src/model.py", "src/model.py"),
        ("/usr/lib/python3/site-packages/flax/src/model.py", "flax/src/model.py"),
        ("/home/ada/elsewhere/other.py", "other.py"),
        ("lib/other.py", "lib/other.py"),
        ("../src/model.py", "src/model.py"),
        ("<stdin>", "<stdin>"),
        ("", ""),
        ("a\0b", "a\0b"),
    ],
)
def test_the_end_of_the_path_that_the_project_has(file: str, reported: str, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "model.py").touch()
    assert portable(file, tmp_path) == reported
