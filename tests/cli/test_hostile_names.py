"""What a dump says about itself is data: it cannot steer a terminal or end a code span."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from hlofuse.compilation import compile
from hlofuse.format.escape import markdown, markdown_code, printable, shorten
from hlofuse.format.terminal import Page, as_markdown
from hlofuse.ir import Module
from hlofuse.reports.explain.explain import explain
from hlofuse.reports.explain.text import print_explanation
from hlofuse.reports.stats import print_statistics, statistics
from hlofuse.reports.why.story import answers
from hlofuse.reports.why.text import print_answers
from ..hostile import hostile_module
from ..running import Run

EVIL = "\x1b[31m]0;title\x07‮`|<script>[x](y)\n# heading"


def evil_module() -> Module:
    quoted = EVIL.replace("\\", "\\\\").replace("\n", " ")
    return hostile_module(EVIL, op_name=quoted, source_file=quoted)


def assert_safe(text: str) -> None:
    for line in text.split("\n"):
        assert line.isprintable(), line


@pytest.mark.parametrize("width", [60, 80, 160])
def test_terminal(width: int) -> None:
    run = compile(evil_module())
    out = io.StringIO()
    console = Page(file=out, width=width, markup=False, highlight=False, emoji=False)
    print_explanation(explain(run), console, input_arguments=(EVIL,))
    print_answers(answers(run, f"e{EVIL}"), [EVIL], console, total=2)
    print_answers(answers(run, f"e{EVIL}", f"b{EVIL}"), [EVIL], console, total=2, input_arguments=(EVIL,))
    print_statistics([statistics(run.before), statistics(run.after)], console)
    assert_safe(out.getvalue())
    assert "\\x1b" in out.getvalue()


def test_markdown() -> None:
    run = compile(evil_module())
    for text in (
        as_markdown(lambda c: print_explanation(explain(run), c, input_arguments=(EVIL,))),
        as_markdown(lambda c: print_answers(answers(run, f"e{EVIL}"), [EVIL], c, total=2)),
        as_markdown(lambda c: print_answers(answers(run, f"e{EVIL}", f"b{EVIL}"), [EVIL], c, total=2)),
        as_markdown(lambda c: print_statistics([statistics(run.before), statistics(run.after)], c)),
    ):
        assert_safe(text)
        for line in text.split("\n"):
            # Outside code spans no tag, link or table bar is left.
            outer = "".join(part for n, part in enumerate(line.split("``")) if n % 2 == 0)
            assert "<script>" not in outer.replace("\\<", "")


def test_errors_are_safe(hlofuse: Run, tmp_path: Path) -> None:
    path = tmp_path / "m.hlo"
    text = "HloModule m\n\nENTRY %main () -> f32[] {\n  ROOT %c = \x1b[31mf32[] constant(1)\n}\n"
    path.write_text(text)  # a colour, which is no part of the text
    result = hlofuse("explain", path)
    assert result.status == 0
    assert "\x1b" not in result.out
    path.write_text(text.replace("[31m", "("))
    result = hlofuse("explain", path)
    assert result.status == 2
    assert "\x1b" not in result.err
    result = hlofuse("why", path, "\x1b[31mx")
    assert "\x1b" not in result.err
    result = hlofuse("stats", f"{tmp_path}/\x1b[31m")
    assert "\x1b" not in result.err


def test_metadata_from_a_file(hlofuse: Run, tmp_path: Path) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(
        "HloModule m\n\nENTRY %main (p: f32[8]) -> f32[8] {\n  %p = f32[8]{0} parameter(0)\n"
        '  %n = f32[8]{0} negate(%p), metadata={op_name="\x1b]0;x\x07" source_file="\x1b[2J.py"}'
        '\n  ROOT %e = f32[8]{0} exponential(%n), metadata={op_name="a|b" source_file="\x1b[2J.py"}\n}\n'
    )
    for args in (["explain"], ["why", "n", "e"], ["why", "n"], ["stats"]):
        for form in ("text", "markdown", "json"):
            result = hlofuse(args[0], path, *args[1:], "--format", form)
            assert result.status == 0
            assert "\x1b" not in result.out
            assert "\x07" not in result.out


def test_escaping() -> None:
    assert printable("a\x1b[0m\nb\u202ec") == "a\\x1b[0m\\nb\\u202ec"
    assert printable("naïve → ok") == "naïve → ok"
    assert markdown("a|b*c_<d>") == "a\\|b\\*c\\_\\<d\\>"
    assert markdown_code("a`b") == "``a`b``"
    assert markdown_code("`") == "`` ` ``"
    assert shorten("abcdefghij", 6) == "abc…ij"
    assert len(shorten("x" * 100, 17)) == 17
