"""A module before optimizations is replayed approximately, and the report says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlofuse import load
from hlofuse.cost.gpu.device import load_device
from hlofuse.inputs.stage import BEFORE, INPUT, stage_of
from hlofuse.ir.text.printer import print_module
from hlofuse.ir.text.reader import parse_module
from ..fixtures import companion_texts, unpacked
from ..running import Run, lowered
from ..tools.module_checks import check_module

TEXTS = companion_texts(__file__)

DATA = Path(__file__).parent.parent / "data" / "gpu-dump-directory.tar.xz"
TEXT = TEXTS["text"]


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The module before optimizations, away from its other dumps."""
    folder = tmp_path_factory.mktemp("dump")
    unpacked(DATA, folder)
    alone = folder / "alone"
    alone.mkdir()
    (whole,) = (folder / "gpu-dump").glob("*.before_optimizations.txt")
    return whole.rename(alone / whole.name)


def test_what_is_repeated_for_any_target() -> None:
    module = parse_module(TEXT)
    out = lowered(module, "gpu", load_device("mi350")).module
    check_module(out)
    assert sorted(i.opcode for i in out.entry) == [
        "add", "bitcast", "broadcast", "constant", "multiply", "multiply", "parameter"
    ]  # fmt: skip
    assert print_module(module) == print_module(parse_module(TEXT))  # the given one is untouched


def test_cpu_simplifies_algebra_too() -> None:
    module = parse_module(TEXT)
    out = lowered(module, "cpu").module
    check_module(out)
    assert out.entry.root.opcode == "bitcast"  # the reshape comes last: additions and products do not need it
    assert [i.opcode for i in out.entry.root.operands] == ["add"]
    assert print_module(module) == print_module(parse_module(TEXT))


@pytest.mark.parametrize(("target", "device"), [("cpu", None), ("gpu", "mi350")])
def test_a_call_that_is_to_be_kept_is_kept(target: str, device: str | None) -> None:
    attributes = 'to_apply=half, frontend_attributes={inlineable="false"}'
    remaining = parse_module(TEXT.replace("to_apply=half", attributes, 1))
    assert [
        i.name
        for i in lowered(remaining, target, load_device(device) if device else None).module.entry
        if i.opcode == "call"
    ] == ["x"]


def test_the_report_says_that_it_is_approximate(tmp_path: Path, hlofuse: Run) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(TEXT)
    text = hlofuse("explain", path, "--details")
    assert text.status == 0
    assert "\nAPPROXIMATE" in text.out
    assert "--xla_dump_hlo_pass_re=.*" in text.out
    assert hlofuse("explain", path, "--format", "markdown").out.count("\n> **APPROXIMATE") == 1
    assert json.loads(hlofuse("explain", path, "--format", "json").out)["approximate"]
    assert "\nAPPROXIMATE" in hlofuse("why", path, "s.1").out


COMMANDS = (
    ("replay", "-o", "out.hlo"),
    ("kernels",),
    ("stats", "--after"),
    ("check", "--max-kernels", "9"),
    ("check", "--max-kernels", "9", "--format", "junit"),
    ("what-if",),
    ("what-if", "--sweep", "code-duplication-limit=1,15"),
    ("explain", "--set", "code-duplication-limit=1"),
    ("explore", "-o", "out.html"),
    ("plot", "-o", "out.svg"),
    ("render", "--view", "after", "-o", "out.dot"),
)


@pytest.mark.parametrize("text", COMMANDS, ids=" ".join)
def test_every_command_takes_it_and_says_so(
    text: tuple[str, ...], tmp_path: Path, hlofuse: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.hlo").write_text(TEXT)
    done = hlofuse(text[0], "m.hlo", *text[1:])
    assert done.status == 0
    attributes = done.out + done.err + "".join(f.read_text() for f in Path().glob("out.*"))
    assert "APPROXIMATE" in attributes


def test_what_is_replayed_is_the_same_everywhere(tmp_path: Path, hlofuse: Run) -> None:
    path, out = tmp_path / "m.hlo", tmp_path / "out.hlo"
    path.write_text(TEXT)
    hlofuse("replay", path, "-o", out)
    assert out.read_text().startswith("// APPROXIMATE")  # the file says so too, and reads as HLO text
    after = json.loads(hlofuse("explain", path, "--format", "json").out)["after"]["kernels"]
    for text in (("stats", path, "--after"), ("stats", out)):
        (found,) = json.loads(hlofuse(*text, "--format", "json").out)["modules"]
        assert found["totals"]["kernels"] == after
    assert json.loads(hlofuse("kernels", path, "--format", "json").out)["approximate"]


def test_records_of_a_later_moment_are_refused(tmp_path: Path, hlofuse: Run) -> None:
    path, ids = tmp_path / "m.hlo", tmp_path / "m.hlo.pb"
    path.write_text(TEXT)
    ids.write_bytes(b"\n\0")
    assert hlofuse("explain", path, "--ids", ids).status == 2


def test_a_lowered_program_is_before_optimizations_whatever_is_in_it() -> None:
    module = parse_module("HloModule m\n\nENTRY e {\n  ROOT p = f32[2]{0} parameter(0)\n}\n")
    assert stage_of(module).name == INPUT
    module.lowered_from = "StableHLO text"
    assert stage_of(module).name == BEFORE


def test_a_gpu_asks_for_a_device(tmp_path: Path, hlofuse: Run) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(TEXT)
    for text in (("kernels",), ("check", "--max-kernels", "9"), ("render", "--view", "after", "-o", "-")):
        done = hlofuse(text[0], path, *text[1:], "--target", "gpu")
        assert (done.status, "needs --device" in done.err) == (2, True)


def test_a_gpu_module_from_its_beginning(gpt2: Path, hlofuse: Run) -> None:
    check_module(lowered(load(gpt2), "gpu", load_device("h100_sxm")).module)
    out = hlofuse("explain", gpt2, "--details", "--target", "gpu", "--device", "h100_sxm").out
    assert out.startswith("jit_gpt2_block: before optimizations · gpu h100_sxm · XLA 0.11.1\n")
    assert "order replayed" in out
    assert "\nAPPROXIMATE" in out


def test_the_dump_ahead_of_fusion_is_better(gpt2_whole: Path, hlofuse: Run) -> None:
    (whole,) = gpt2_whole.glob("*.before_optimizations.txt")
    result = hlofuse("explain", whole, "--details", "--device", "h100_sxm", columns=300)
    assert result.status == 0
    assert "XLA's own dump at the fusion input:" in result.out


def test_calls_that_multiply_beyond_reason_are_refused(tmp_path: Path, hlofuse: Run) -> None:
    lines = ["HloModule m", "", "g0 {", "  a0 = f32[] parameter(0)", "  ROOT n0 = f32[] negate(a0)", "}"]
    for k in range(1, 40):
        lines += [f"g{k} {{", f"  a{k} = f32[] parameter(0)", f"  x{k} = f32[] call(a{k}), to_apply=g{k - 1}"]
        lines += [f"  ROOT y{k} = f32[] call(x{k}), to_apply=g{k - 1}", "}"]
    lines += ["ENTRY e {", "  p = f32[] parameter(0)", "  ROOT r = f32[] call(p), to_apply=g39", "}"]
    path = tmp_path / "m.hlo"
    path.write_text("\n".join(lines) + "\n")
    result = hlofuse("explain", path)
    assert (result.status, result.out) == (2, "")
    assert "called so often" in result.err


def test_a_stated_release_settles_that_a_text_of_an_earlier_one_is_before_optimizations(
    hlofuse: Run, tmp_path: Path
) -> None:
    """Metadata comes from the front end, whatever XLA compiles the module: 0.11.1 has 2 kernels for it."""
    path = tmp_path / "m.hlo"
    path.write_text(TEXTS["stated_release_settles"])
    found = hlofuse("explain", path, "--device", "h100_sxm", "--xla", "0.11.1", "--format", "json")
    document = json.loads(found.out)
    assert (document["stage"], document["totals"]["kernels"]) == ("before-optimizations", 2)
