"""A text of a newer XLA is answered with a note; misspelt names, and all of it with --strict, are errors."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hlofuse.inputs.many import load_text
from hlofuse.ir.errors import HloParseError
from hlofuse.ir.text.newer import misspelt
from hlofuse.ir.text.printer import print_module
from hlofuse.ir.text.reader import parse_module
from hlofuse.passes.dce import HloDCE
from hlofuse.trace import OnlySkipped
from ..parse.cases import cases
from ..running import Golden, Run
from .newer_texts import KINDS, invent, problem_of

MODULE = """HloModule m, is_scheduled=true, entry_computation_layout={(f32[8]{0})->f32[8]{0}}

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

ENTRY %main (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0), sharding={mesh[], [{}]}
  %n = f32[8]{0} negate(%p), metadata={op_name="n" source_file="a"}, backend_config={"step":"0"}
  %e = f32[8]{0} exponential(%n), metadata={op_name="e"}
  ROOT %r = f32[8]{0} add(%e, %n)
}

"""
MESH = "replica_groups=mesh['x'=2], device_ids=(1,0) {'x'}"
SAMPLES = Path(__file__).parents[2] / "samples"
NEWER = {
    "header field": ("is_scheduled=true", "mesh_axes={a=[2],b={}}, is_scheduled=true", "1:14", "mesh_axes"),
    "attribute": ("negate(%p)", f"all-reduce(%p), {MESH}, to_apply=%sum, zone=[2,4]<=[8]", "11:101", "zone"),
    "metadata field": ('op_name="n"', 'op_name="n" hash={1,"}"}', "11:53", "hash"),
    "backend_config field": ('{"step', '{"tail":{},"step', "11:86", "tail"),
    "element type": ("%e = f32", "%e = f12e3m8", "12:8", "f12e3m8"),
    "opcode": ("exponential(", "frobnicate(", "12:18", "frobnicate"),
    "layout property": ("%e = f32[8]{0}", "%e = f32[8]{0:Q(2)S(1)}", "12:17", "Q"),
}


@pytest.mark.parametrize("kind", NEWER)
def test_what_is_not_known_is_noted_and_kept(kind: str) -> None:
    old, new, _, name = NEWER[kind]
    text = MODULE.replace(old, new, 1)
    module = load_text(text)
    assert module.unknown is not None
    assert module.unknown.note == f"1 {kind} not known: perhaps of a newer XLA ({name})"
    assert print_module(module) == text
    assert [x.name for x in module.entry] == ["p", "n", "e", "r"]


@pytest.mark.parametrize("kind", NEWER)
def test_strict_refuses_it_at_its_place(kind: str) -> None:
    old, new, place, _ = NEWER[kind]
    with pytest.raises(HloParseError) as error:
        load_text(MODULE.replace(old, new, 1), strict=True)
    line, column = map(int, place.split(":"))
    assert error.value.line == line
    if kind != "layout property":  # the grammar stops at the parenthesis
        assert abs(error.value.column - column) <= len(new)


@pytest.mark.parametrize(
    ("old", "new", "meant"),
    [
        ("is_scheduled", "is_schedulde", "is_scheduled"),
        ("sharding=", "shardng=", "sharding"),
        ("source_file", "source_fiel", "source_file"),
        ("exponential(", "exponentail(", "exponential"),
        ("add(%e", "ad(%e", "add"),
        ("%e = f32", "%e = float32", "f32"),
        ("%e = f32", "%e = f23", "f32"),
    ],
)
def test_misspelt_names_are_errors(old: str, new: str, meant: str) -> None:
    with pytest.raises(HloParseError, match=f"did you mean {meant}\\?") as error:
        parse_module(MODULE.replace(old, new, 1), strict=False)
    assert error.value.source_line in MODULE.replace(old, new, 1).split("\n")


def test_names_that_differ_at_the_end_are_a_family() -> None:
    vocabulary = ("erf", "sine", "acos", "add", "transpose", "dimensions", "slice_sizes")
    assert not any(
        misspelt(name, vocabulary) for name in ("erfc", "sinh", "acosh", "transpose2", "frobnicate")
    )
    assert misspelt("dimensoins", vocabulary) == "dimensions"
    assert misspelt("transpoze", vocabulary) == "transpose"
    assert misspelt("ad", vocabulary) == "add"


def test_an_error_elsewhere_is_at_its_place() -> None:
    text = MODULE.replace("negate(%p)", "negate(%q), zone=3", 1)
    with pytest.raises(HloParseError, match="q is not defined") as error:
        load_text(text)
    assert (error.value.line, error.value.column) == (11, 25)


@pytest.mark.parametrize("text", [c.text for c in cases() if c.hlofuse == "accept"][::7])
def test_nothing_is_unknown_where_the_grammar_reads_all(text: str) -> None:
    assert parse_module(text, strict=False).unknown is None


def test_an_unknown_opcode_is_a_kernel_of_its_own(tmp_path: Path, hlofuse: Run) -> None:
    text = MODULE.replace("is_scheduled=true, ", "").replace("exponential(%n)", "frobnicate(%n), by=%sum", 1)
    path = tmp_path / "newer.hlo"
    path.write_text(text)
    found = json.loads(hlofuse("kernels", path, "--stage", "fusion-input", "--format", "json").out)
    kernel = next(k for k in found["kernels"] if k["name"] == "e")
    assert (kernel["bytes_accessed"], kernel["us"]) == (64, None)
    assert "1 opcode not known: perhaps of a newer XLA (frobnicate)" in found["notes"]
    out = tmp_path / "out.hlo"
    hlofuse("replay", path, "--stage", "fusion-input", "-o", out)
    assert "frobnicate(" in out.read_text()
    assert "by=%sum" in out.read_text()


def test_an_unknown_opcode_is_not_removed() -> None:
    text = MODULE.replace("exponential(", "frobnicate(", 1).replace("add(%e, %n)", "negate(%n)")
    module = load_text(text)
    HloDCE().run(module, OnlySkipped())
    assert module.find("e") is not None


def test_bytes_of_an_unknown_element_type_are_not_known(tmp_path: Path, hlofuse: Run) -> None:
    path = tmp_path / "newer.hlo"
    path.write_text(MODULE.replace("%e = f32", "%e = f12e3m8", 1))
    found = json.loads(hlofuse("kernels", path, "--stage", "after-fusion", "--format", "json").out)
    assert {k["name"]: k["bytes_accessed"] for k in found["kernels"]} == {"n": 64, "e": None, "r": None}


def test_note_of_a_report(
    tmp_path: Path, hlofuse: Run, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = MODULE
    for kind in ("attribute", "metadata field", "element type", "opcode"):
        text = text.replace(*NEWER[kind][:2], 1)
    (tmp_path / "newer.hlo").write_text(text)
    monkeypatch.chdir(tmp_path)
    golden("kernels/newer.txt", hlofuse("kernels", "newer.hlo", "--target", "cpu").out)


def test_strict_of_the_command(tmp_path: Path, hlofuse: Run) -> None:
    path = tmp_path / "newer.hlo"
    path.write_text(MODULE.replace("negate(%p)", "negate(%p), zone=3", 1))
    result = hlofuse("explain", path, "--strict")
    assert result.status == 2
    assert "newer.hlo:11:30: unknown attribute zone" in result.err


@given(seed=st.integers(0, 10_000), kind=st.sampled_from(KINDS))
@settings(max_examples=12, deadline=None)
def test_invented_names_in_samples(seed: int, kind: str) -> None:
    random = Random(seed)
    path = random.choice(sorted(SAMPLES.glob("cpu/*/before.hlo")))
    text = path.read_text()
    invented = invent(text, kind, random)
    if invented is not None:
        assert problem_of(text, invented, target="cpu", stage="fusion-input") is None
