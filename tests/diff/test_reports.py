"""What a person reads: golden outputs in tests/golden/diff, to be reviewed when they change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlofuse.diff import diff
from hlofuse.ir import parse_module
from hlofuse.reports.diff.model import clusters
from hlofuse.reports.diff.phrases import count_change_of
from ..running import Golden, Run

ROOT = Path(__file__).parents[2]
CASES = {
    "softmax": ("softmax/before.hlo", "softmax/after.hlo"),
    "softmax_same": ("softmax/after.hlo", "softmax/after.hlo"),
    "softmax_backwards": ("softmax/after.hlo", "softmax/before.hlo"),
    "gpt2_block": ("gpt2_block/before.hlo", "gpt2_block/after.hlo"),
    "cartpole_changed_line": (
        "../cartpole/cpu/precomputed_noise/after.hlo",
        "../cartpole/cpu/no_concatenate/after.hlo",
    ),
    "cartpole_loop": ("../cartpole/cpu/no_concatenate/after.hlo", "../cartpole/cpu/scan/after.hlo"),
}


@pytest.fixture(autouse=True)
def _in_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "samples/cpu")


@pytest.mark.parametrize("form", ["text", "markdown", "wide"])
@pytest.mark.parametrize("case", CASES)
def test_golden(hlofuse: Run, golden: Golden, case: str, form: str) -> None:
    columns = 160 if form == "wide" else 80
    text = "markdown" if form == "markdown" else "text"
    result = hlofuse("diff", *CASES[case], "--format", text, columns=columns)
    assert (result.status, result.err) == (0 if case == "softmax_same" else 1, "")
    if form != "markdown":
        assert all(len(line) <= columns for line in result.out.splitlines())
    golden(f"diff/{case}.{'md' if form == 'markdown' else form + '.txt'}", result.out)


def test_of_what_is_not_fused_yet_no_fusions_are_said_to_be_the_same(hlofuse: Run) -> None:
    before = ("../gpu/softmax/before.hlo", "../gpu/softmax/before.hlo")
    plain = hlofuse("diff", *before)
    assert (plain.status, plain.err) == (0, "")
    assert "\njit_softmax: same (both before fusion)\n" in plain.out
    timed = hlofuse("diff", *before, "--device", "h100_sxm", "--device-after", "v100")
    assert (timed.status, timed.err) == (0, "")
    assert "estimated time on h100_sxm → v100" in " ".join(timed.out.split())
    fused = ("../gpu/softmax/after.hlo", "../gpu/softmax/after.hlo", "--device", "h100_sxm")
    assert hlofuse("diff", *fused).err == ""


def test_json_has_its_schema_and_everything(hlofuse: Run) -> None:
    found = json.loads(hlofuse("diff", *CASES["gpt2_block"], "--format", "json").out)
    assert found["schema"] == "hlofuse.diff/3"
    assert not found["same"]
    assert found["same_program"]
    assert found["before"]["totals"]["kernels"] == 64
    assert {f["kind"] for f in found["fusions"]} == {"new"}
    documented = (ROOT / "docs/json-diff.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in documented for name in found)
    assert all(f"`{name}`" in documented for name in [*found["before"], *found["fusions"][0]])


def test_only_and_limit(hlofuse: Run) -> None:
    changed, block = CASES["cartpole_changed_line"], CASES["gpt2_block"]
    assert "instructions" in hlofuse("diff", *changed).out
    only = hlofuse("diff", *changed, "--only", "fusions").out
    assert "\ninstructions" not in only
    assert "\nkernels by source line" not in only
    assert "more (--limit 0 shows all)" in hlofuse("diff", *block, "--limit", "2").out
    assert "--limit 0" not in hlofuse("diff", *block, "--limit", "0").out


def test_colour_only_when_asked_for(hlofuse: Run) -> None:
    assert "\x1b" not in hlofuse("diff", *CASES["softmax"]).out
    assert "\x1b[" in hlofuse("diff", *CASES["softmax"], "--color", "always").out
    assert "\x1b" not in hlofuse("diff", *CASES["softmax"], "--color", "never").out


def test_kernels_are_counted_not_rounded() -> None:
    assert count_change_of(12, 12) == "12"
    assert count_change_of(10_001, 4_000) == "10,001 → 4,000 (−6,001)"
    assert count_change_of(0, 1_000) == "0 → 1,000 (+1,000)"


def test_a_directory_and_a_file(hlofuse: Run) -> None:
    """--module picks where there is something to pick from."""
    result = hlofuse("diff", ".", "softmax/before.hlo", "--module", "softmax")
    assert (result.status, result.err) == (0, "")
    result = hlofuse("diff", *CASES["softmax"], "--module", "gelu")
    assert (result.status, result.out) == (2, "")
    assert "this input is a single module" in result.err


EVIL = (
    "HloModule evil\n\nENTRY e {{\n  p = f32[4]{{0}} parameter(0)\n"
    '  ROOT r = f32[4]{{0}} custom-call(p), custom_call_target="{target}", '
    'metadata={{op_name="x" source_file="{file}" source_line=1}}\n}}\n'
)


def test_text_from_a_dump_is_data(hlofuse: Run, tmp_path: Path) -> None:
    before, after = tmp_path / "b.hlo", tmp_path / "a.hlo"
    before.write_text(EVIL.format(target="a", file="x.py"), encoding="utf-8")
    after.write_text(
        EVIL.format(target="[red]\x1b[31m|<script>`*", file="\x1b]0;x\x07|<b>.py"), encoding="utf-8"
    )
    for form in ("text", "markdown"):
        output = hlofuse("diff", before, after, "--format", form).out
        assert "\x1b" not in output
        assert "\x07" not in output
    assert "[red]" in hlofuse("diff", before, after).out
    assert "<script>" not in hlofuse("diff", before, after, "--format", "markdown").out.replace("\\<", "")


def test_trouble(hlofuse: Run, tmp_path: Path) -> None:
    broken = tmp_path / "broken.hlo"
    broken.write_text("HloModule m\n\nENTRY e {\n  nonsense\n}\n", encoding="utf-8")
    good = "softmax/before.hlo"
    for arguments, text in (
        ((good, tmp_path / "none.hlo"), "does not exist"),
        ((good, broken), "broken.hlo:"),
        (("-", "-"), "only one of BEFORE and AFTER can be"),
        ((good, good, "--limit", "-1"), "not in the range"),
    ):
        result = hlofuse("diff", *arguments)
        assert (result.status, result.out) == (2, "")
        assert text in result.err


def test_one_side_from_standard_input(hlofuse: Run) -> None:
    data = Path("softmax/before.hlo").read_bytes()
    assert hlofuse("diff", "-", "softmax/before.hlo", stdin=data).status == 0


def test_layers_of_the_model_are_named(hlofuse: Run, tmp_path: Path) -> None:
    program = (
        "HloModule m\n\nENTRY e {{\n  p = f32[8] parameter(0)\n"
        '  ROOT n = f32[8] {}(p), metadata={{op_name="jit(f)/Net/Dense_1/neg"}}\n}}\n'
    )
    for name, opcode in (("a.hlo", "negate"), ("b.hlo", "abs")):
        (tmp_path / name).write_text(program.format(opcode), encoding="utf-8")
    assert "Net/Dense_1" in hlofuse("diff", tmp_path / "a.hlo", tmp_path / "b.hlo").out


def test_two_fusions_may_hold_one_computation() -> None:
    """What is in both serves itself."""
    before = parse_module("""HloModule m

c {
  q = f32[8]{0} parameter(0)
  ROOT y = f32[8]{0} cosine(q)
}

ENTRY e {
  p = f32[8]{0} parameter(0)
  f = f32[8]{0} fusion(p), kind=kLoop, calls=c
  g = f32[8]{0} fusion(f), kind=kLoop, calls=c
  ROOT x = f32[8]{0} add(f, g)
}
""")
    after = parse_module("HloModule m\n\nENTRY e {\n  ROOT p = f32[8]{0} parameter(0)\n}\n")
    (removed,) = clusters(diff(before, after))
    assert [i.name for i in removed[0].removed] == ["x", "y", "y"]
