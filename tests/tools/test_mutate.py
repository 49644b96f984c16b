"""`tools/mutate.py`: edits that count, and a package of which one edit is noticed and one is not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ..conftest import ROOT
from ..running import load_tool

TOOL = load_tool("mutants")
VALUES = load_tool("edited_values")
SOURCE = '''"""Texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from a import b as c

MOST = 8


def cost(a: int, b: float = 2.5) -> float:
    """Costs 1 + 1."""
    if a < MOST and not b:
        raise ValueError(f"{a + 1} " + "is more")
    total = a * 3 + b
    total += 1
    return max(total, a)


class Cost:
    def __repr__(self) -> str:
        return str(1 + 1)
'''
CODE = "def doubled(a):\n    return a * 2 if a < 10 else 0\n\n\ndef unused(a):\n    return a\n"
TEST = """from functools import cache
from small.code import doubled
@cache
def one():
    return doubled(1)
def test_first():
    assert one()
def test_doubled():
    assert one() == 2
    assert doubled(20) == 0
"""


def edits(source: str) -> list[tuple[int, str]]:
    return [(m.line, m.edit) for m in TOOL.mutants(source, "a.py")]


def test_assertions_types_and_the_order_of_a_symmetric_call_are_left() -> None:
    assert edits("x = zip(a, b, strict=True)\n") == [(1, "zip(a, b, strict=True) → zip(b, a, strict=True)")]
    assert edits("x = math.gcd(a, b)\nA = Callable[[A | B], A | None]\ny = dict[A, A | B]()\n") == []
    assert (
        edits("A = Moved | str | Added\nC: TypeAlias = f(1, 2)\nx = a.union(b, c)\ny = cache(maxsize=4)\n")
        == []
    )
    assert [e for _, e in edits("x = isinstance(a, Moved | int)\n")][-1] == "Moved | int → int"
    assert edits("x = f(a, most=3)\n") == [(1, "3 → 2"), (1, "3 → 4"), (1, "3 → 6")]


def test_the_arithmetic_is_edited_and_texts_are_not() -> None:
    found = edits(SOURCE)
    assert {line for line, _ in found} == {10, 13, 15, 17, 18, 19}
    for line, edit in [
        (10, "8 → 7"),
        (13, "2.5 → 1.25"),
        (15, "a < MOST → (a <= MOST)"),
        (15, "a < MOST → (a >= MOST)"),
        (15, "not b → b"),
        (15, "a < MOST and not b → (not b)"),
        (15, "a < MOST and not b → (a < MOST or not b)"),
        (17, "a * 3 + b → (a * 3 - b)"),
        (17, "a * 3 → a"),
        (17, "3 → 4"),
        (18, "total += 1 → pass"),
        (18, "total += 1 → total -= 1"),
        (19, "max(total, a) → total"),
        (19, "max(total, a) → min(total, a)"),
    ]:
        assert (line, edit) in found


def test_an_edit_is_made_where_it_was_found_in_a_text_of_many_bytes() -> None:
    source = 'sign = "Σ" if 1 < 2 else "−"  # Σ\nn = f(1, 2)\n'
    found = {m.edit: m.applied_to(source) for m in TOOL.mutants(source, "a.py")}
    assert found["1 < 2 → (1 <= 2)"] == source.replace("1 < 2", "(1 <= 2)")
    assert found["f(1, 2) → f(2, 1)"] == source.replace("f(1, 2)", "f(2, 1)")
    with pytest.raises(ValueError, match="has changed"):
        TOOL.mutants(source, "a.py")[-1].applied_to(source[1:])


def test_a_sample_is_that_of_its_seed_with_one_edit_at_each_place(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(SOURCE)
    files = [tmp_path / "a.py"]
    found = TOOL.sample(files, tmp_path, 5, 1)
    assert found == TOOL.sample(files, tmp_path, 5, 1)
    assert len(found) == 5
    assert found != TOOL.sample(files, tmp_path, 5, 2)
    places = [(m.start, m.stop) for m in TOOL.sample(files, tmp_path, 100, 1)]
    assert len(places) == len(set(places)) < len(edits(SOURCE))


def test_an_edit_in_a_function_that_asserts_is_not_put_in_its_place(tmp_path: Path) -> None:
    """pytest rewrites the function, so that its code is not that of the text."""
    text = "def f(a):\n    assert a\n    return a + 1\ndef g(a):\n    return a + 1\n"
    (tmp_path / "a.py").write_text(text)
    for edit in TOOL.mutants(text, "a.py"):
        assert bool(load_tool("mutate").replacements(edit, tmp_path)) == (edit.line > 3)


def test_both_values_are_computed_where_that_changes_nothing() -> None:
    source = """MOST = 8
class Limits:
    least = 1 + 1
    def admits(self, a, more=2 + 1, *, rest=()):
        match a:
            case 3:
                return rest.pop()[::-1] + 1
        return [b for b in (a, more) if b and b < MOST * 2] or f"{a + 1}"
"""
    edits = TOOL.mutants(source, "a.py")
    tree, compared = VALUES.comparing(source, edits)
    assert {m.edit for m in compared} == {
        "MOST * 2 → MOST",
        "MOST * 2 → 2",
        "MOST * 2 → (MOST // 2)",
        *("2 → 1", "2 → 3", "1 → 0", "1 → 2"),
        *(m.edit for m in edits if m.old in ("b < MOST * 2", "b and b < MOST * 2")),
    }
    differ: set[str] = set()

    def compare(key: str, value: object, other: Callable[[], object]) -> object:
        differ.update([key] if other() != value else [])
        return value

    names: dict[str, Any] = {VALUES.DIFFERS: compare}
    exec(compile(tree, "a.py", "exec"), names)
    assert names["Limits"]().admits(5, 17) == [5]
    assert {m.edit for m in compared if m.key in differ} == {
        "MOST * 2 → 2",
        "MOST * 2 → (MOST // 2)",
        "2 → 3",
        "b < MOST * 2 → (b >= MOST * 2)",
        *(
            f"b and b < MOST * 2 → {new}"
            for new in ("b", "(b or b < MOST * 2)", "(not (b and b < MOST * 2))")
        ),
    }


@pytest.mark.skipif(sys.version_info < (3, 12), reason="needs sys.monitoring (Python 3.12 or newer)")
def test_edits_that_tests_notice_are_told_from_those_that_live(tmp_path: Path) -> None:
    for name, text in {"small/__init__.py": "", "small/code.py": CODE, "tests/test_code.py": TEST}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "edits").write_text("small/code.py\n- a * 2\n+ a * 3\n- a < 10\n+ a < 11\n- missing\n+ a\n")

    def run(*arguments: str) -> tuple[int, list[str]]:
        command = [sys.executable, str(ROOT / "tools" / "mutate.py"), "--root", str(tmp_path), "--jobs", "1"]
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        command += ["--package", "small", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.splitlines()

    status, lines = run("--edits", "edits", "--least", "60")
    assert status == 1
    assert lines[0] == "small/code.py: not there once: missing"
    assert lines[3:] == [
        "killed small/code.py:2: a * 2 → a * 3",
        "       tests/test_code.py::test_doubled",
        "lived  small/code.py:2: a < 10 → a < 11",
        "       no test runs it and computes another value",
        lines[7],
        "50.0%, at least 60% wanted",
    ]
    _, lines = run("--edits", "edits", "--fresh")
    assert lines[2] == "       tests/test_code.py::test_doubled"
    (tmp_path / "small/code.py").write_text(f"# moved\n{CODE}")
    status, lines = run("small/code.py:3", "small/code.py:7", "--least", "50")
    assert status == 0
    assert not any(line.startswith("recording") for line in lines)
    assert "killed small/code.py:3: a * 2 → a" in lines
    (tmp_path / "small/code").mkdir()
    (tmp_path / "small/code.py").rename(tmp_path / "small/code/__init__.py")
    _, lines = run("small/code/__init__.py:3", "--frozen")
    assert "killed small/code/__init__.py:3: a * 2 → a" in lines
    assert run("small/__init__.py")[0] == 2
