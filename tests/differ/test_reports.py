"""What a person reads: golden outputs in tests/golden/diff, to be reviewed when they change.

`HLOFUSE_UPDATE_GOLDEN=1 pytest tests/differ` writes them anew.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hlofuse.cli.diff import command

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests/golden/diff"
CASES = {
    "softmax": ("softmax/before.hlo", "softmax/after.hlo"),
    "softmax_same": ("softmax/after.hlo", "softmax/after.hlo"),
    "softmax_backwards": ("softmax/after.hlo", "softmax/before.hlo"),
    "gpt2_block": ("gpt2_block/before.hlo", "gpt2_block/after.hlo"),
    "cartpole_changed_line": ("cartpole_baseline/after.hlo", "cartpole_no_concatenate/after.hlo"),
    "cartpole_loop": ("cartpole_precomputed_noise/after.hlo", "cartpole_scan/after.hlo"),
}


def run(*arguments: str, columns: int = 80, **options: str) -> Result:
    environment = {"COLUMNS": str(columns), "NO_COLOR": "", "TERM": "xterm"}
    return CliRunner().invoke(command, list(arguments), env=environment, standalone_mode=False, **options)


@pytest.fixture(autouse=True)
def _in_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "samples/cpu")


@pytest.mark.parametrize("form", ["text", "markdown", "wide"])
@pytest.mark.parametrize("case", CASES)
def test_golden(case: str, form: str) -> None:
    columns = 160 if form == "wide" else 80
    result = run(*CASES[case], "--format", "markdown" if form == "markdown" else "text", columns=columns)
    assert result.exception is None, result.exception
    assert result.return_value == (0 if case == "softmax_same" else 1)
    if form != "markdown":
        assert all(len(line) <= columns for line in result.output.splitlines())
    file = GOLDEN / f"{case}.{'md' if form == 'markdown' else form + '.txt'}"
    if os.environ.get("HLOFUSE_UPDATE_GOLDEN"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(result.output, encoding="utf-8")
    assert result.output == file.read_text(encoding="utf-8")


def test_json_has_its_schema_and_everything() -> None:
    found = json.loads(run(*CASES["gpt2_block"], "--format", "json").output)
    assert found["schema"] == "hlofuse.diff/1"
    assert not found["same"]
    assert found["same_program"]
    assert found["before"]["kernels"] == 64
    assert {f["kind"] for f in found["fusions"]} == {"new"}
    documented = (ROOT / "docs/json-diff.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in documented for name in found)
    assert all(f"`{name}`" in documented for name in [*found["before"], *found["fusions"][0]])


def test_only_and_quiet_and_limit() -> None:
    whole = run(*CASES["cartpole_changed_line"]).output
    assert "instructions" in whole
    only = run(*CASES["cartpole_changed_line"], "--only", "fusions").output
    assert "\ninstructions" not in only
    assert "\nkernels by source line" not in only
    assert run(*CASES["cartpole_changed_line"], "--quiet").output == ""
    assert "more (--limit 0 shows all)" in run(*CASES["gpt2_block"], "--limit", "2").output
    assert "--limit 0" not in run(*CASES["gpt2_block"], "--limit", "0").output


def test_colour_only_when_asked_for() -> None:
    assert "\x1b" not in run(*CASES["softmax"]).output
    assert "\x1b[" in run(*CASES["softmax"], "--color", "always").output
    assert "\x1b" not in run(*CASES["softmax"], "--color", "never").output


EVIL = (
    "HloModule evil\n\nENTRY e {{\n  p = f32[4]{{0}} parameter(0)\n"
    '  ROOT r = f32[4]{{0}} custom-call(p), custom_call_target="{target}", '
    'metadata={{op_name="x" source_file="{file}" source_line=1}}\n}}\n'
)


def test_text_from_a_dump_is_data(tmp_path: Path) -> None:
    before, after = tmp_path / "b.hlo", tmp_path / "a.hlo"
    before.write_text(EVIL.format(target="a", file="x.py"), encoding="utf-8")
    after.write_text(
        EVIL.format(target="[red]\x1b[31m|<script>`*", file="\x1b]0;x\x07|<b>.py"), encoding="utf-8"
    )
    for form in ("text", "markdown"):
        output = run(str(before), str(after), "--format", form).output
        assert "\x1b" not in output
        assert "\x07" not in output
    assert "[red]" in run(str(before), str(after)).output
    assert "<script>" not in run(str(before), str(after), "--format", "markdown").output.replace("\\<", "")


def test_trouble(tmp_path: Path) -> None:
    from hlofuse.ir import HlofuseError

    broken = tmp_path / "broken.hlo"
    broken.write_text("HloModule m\n\nENTRY e {\n  nonsense\n}\n", encoding="utf-8")
    good = "softmax/before.hlo"
    assert isinstance(run(good, str(tmp_path / "none.hlo")).exception, HlofuseError)
    assert isinstance(run(good, str(broken)).exception, HlofuseError)
    assert isinstance(run("-", "-").exception, HlofuseError)
    assert "cannot be negative" in str(run(good, good, "--limit", "-1").exception)


def test_one_side_from_standard_input() -> None:
    text = (ROOT / "samples/cpu/softmax/before.hlo").read_text(encoding="utf-8")
    assert run("-", "softmax/before.hlo", input=text).return_value == 0
