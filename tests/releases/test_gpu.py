"""What differs between releases on GPU: small modules with XLA's answers of the release before and after.

Keys of a case: `differs`, the behaviour it isolates; `xla`, the release whose answer needs it. EXPECT is
labelled with the release that answered; each line says one thing, and all lines of a word are there:
`time PRODUCER US_FUSED US_UNFUSED`, `refused PRODUCER: REASON` (new fusions left out, whose numbers go by
what earlier passes spent), `kernel KIND SHAPE`. One release says x.2 where another says x.2.0.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hlofuse.cost.gpu.device import DeviceDescription, load_device
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.cost.tiling.model import TilingModel
from hlofuse.cost.tiling.triton_support import TritonSupport
from hlofuse.ir.graph import Instruction
from hlofuse.ir.text.reader import parse_module
from hlofuse.passes import make_pass
from hlofuse.pipelines.targets import TARGETS, passes_of
from hlofuse.releases import Release, release_of
from hlofuse.rules.gpu_fusible import is_fusible_bitcast, may_be_fused
from hlofuse.trace import Recorder

from ..fixtures import Case, read_cases

CASES = read_cases(Path(__file__).with_name("gpu.hlo"))
DEVICE = load_device("h100_sxm")
_LAYOUT = re.compile(r"\{[\d,]*\}")


def said(case: Case, release: Release, words: set[str]) -> set[str]:
    """Lines with those words for what a replay of the case does."""
    module, recorder = case.module(), Recorder()
    option = "triton-multi-output"
    for text in passes_of("gpu", release, option if TARGETS["gpu"].has_by_default(option, release) else None):
        recorder.begin_pass(text)
        make_pass(text, "gpu", release, device=DEVICE).run(module, recorder)
    lines = []
    for event in recorder.events:
        if event.event == "priority":
            lines.append(f"time {event.producer} {event.us_fused:g} {event.us_unfused:g}")
        if event.event == "ineligible" and event.pass_name.startswith("priority-fusion"):
            lines.append(f"refused {event.producer}: {event.reason}")
    for fusion in module.instructions():
        if fusion.opcode == "fusion":
            lines.append(f"kernel {fusion.fusion_kind} {_LAYOUT.sub('', str(fusion.shape))}")
    return {
        _plain(line) for line in lines if line.split()[0] in words and " fusion" not in line.split(":")[0]
    }


def _plain(line: str) -> str:
    """Times to five digits, as XLA's are single precision; several results in any order."""
    word, first, *rest = line.split()
    if word == "time":
        return " ".join([word, first.removesuffix(".0"), *(f"{float(x):.5g}" for x in rest)])
    if word == "kernel":
        return " ".join([word, first, *sorted(x.strip("(),") for x in rest)])
    return " ".join([word, first.removesuffix(":").removesuffix(".0"), *rest])


def expected(case: Case, release: str) -> set[str]:
    return {_plain(line) for line in case.section("EXPECT", release).splitlines()}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_each_release_as_xla_answered(case: Case) -> None:
    answered = [label for word, label in case.sections if word == "EXPECT"]
    assert case.options["xla"] in answered
    assert len(answered) == 2
    for release in answered:
        lines = expected(case, release)
        assert said(case, release_of(release), {line.split()[0] for line in lines}) == lines


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_behaviour_is_needed(case: Case) -> None:
    release = case.options["xla"]
    lines = expected(case, release)
    assert said(case, flipped(release, case.options["differs"]), {line.split()[0] for line in lines}) != lines


# ------------------------------------------------------------ what Triton takes

_ELEMENTWISE = "Unsupported elementwise operation."
_REGION = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b)\n}\n"
TRITON = [
    # behaviour, operation, shapes of its operands, release before and after, XLA's reasons
    (
        "triton_takes_copies",
        "f32[8] copy(p0)",
        ("f32[8]",),
        ("0.4.38", "Unsupported opcode."),
        ("0.5.3", None),
    ),
    (
        "triton_takes_pads",
        "f32[9] pad(p0, p1), padding=0_1",
        ("f32[8]", "f32[]"),
        ("0.5.3", "Unsupported opcode."),
        ("0.6.2", None),
    ),
    (
        "triton_takes_pads",
        "f8e5m2[8] convert(p0)",
        ("f8e4m3fn[8]",),
        ("0.5.3", "Unsupported conversion in Triton: f8e4m3fn to f8e5m2"),
        ("0.6.2", None),
    ),
    (
        "triton_bitcasts_keep_elements",
        "s16[8,2] bitcast(p0)",
        ("f32[8]",),
        ("0.6.2", None),
        ("0.7.2", "only bitcasts with the same number of elements are supported"),
    ),
    (
        "triton_takes_remainders",
        "s32[8] remainder(p0, p1)",
        ("s32[8]", "s32[8]"),
        ("0.7.2", _ELEMENTWISE),
        ("0.8.3", None),
    ),
    (
        "triton_names_types",
        "c64[8] add(p0, p1)",
        ("c64[8]", "c64[8]"),
        ("0.8.3", "Unsupported output data type."),
        ("0.9.2", "Unsupported output data type: Unsupported data type: c64"),
    ),
    (
        "triton_keeps_predicates",
        "s8[8] bitcast(p0)",
        ("pred[8]",),
        ("0.8.3", None),
        ("0.9.2", "bitcasts with different element types are not supported if PRED is involved"),
    ),
    (
        "triton_takes_dots",
        "f32[64,64] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        ("f32[64,64]", "f32[64,64]"),
        ("0.9.2", "Dot operation is only supported in nested GEMM fusions."),
        ("0.10.2", None),
    ),
    (
        "triton_takes_dots",
        "f32[128,8] concatenate(p0, p1), dimensions={0}",
        ("f32[64,8]", "f32[64,8]"),
        ("0.9.2", "Only concatenates in nested GEMM fusions are supported."),
        ("0.10.2", None),
    ),
    (
        "triton_takes_dots",
        "pred[8] compare(p0, p1), direction=GT",
        ("u8[8]", "u8[8]"),
        ("0.9.2", "Unsupported input data type: Not fusing"),
        ("0.10.2", "Unsupported input data type: Not allowed"),
    ),
    (
        "triton_divides_halves",
        "bf16[8] divide(p0, p1)",
        ("bf16[8]", "bf16[8]"),
        ("0.9.2", _ELEMENTWISE),
        ("0.10.2", None),
    ),
    (
        "triton_divides_halves",
        "f32[8] round-nearest-even(p0)",
        ("f32[8]",),
        ("0.9.2", _ELEMENTWISE),
        ("0.10.2", None),
    ),
    (
        "triton_takes_unsigned",
        "u32[8] add(p0, p1)",
        ("u32[8]", "u32[8]"),
        ("0.10.2", "Unsupported output data type: Unsupported data type: u32"),
        ("0.11.1", None),
    ),
    (
        "triton_aligns_concatenates",
        "f32[72,8] concatenate(p0, p1), dimensions={0}",
        ("f32[8,8]", "f32[64,8]"),
        ("0.10.2", None),
        ("0.11.1", "Concatenate operand is not aligned for tiling."),
    ),
]


def reason(line: str, operands: tuple[str, ...], release: Release) -> str | None:
    """What `TritonSupport` says of an operation on parameters of those shapes."""
    return TritonSupport(DEVICE, release).instruction(operation(line, operands))


@pytest.mark.parametrize(("behaviour", "line", "operands", "before", "after"), TRITON)
def test_what_triton_takes(
    behaviour: str,
    line: str,
    operands: tuple[str, ...],
    before: tuple[str, str | None],
    after: tuple[str, str | None],
) -> None:
    for release, answer in (before, after):
        assert reason(line, operands, release_of(release)) == answer
    assert reason(line, operands, flipped(after[0], behaviour)) != after[1]


# ------------------------------------------------------------ launches, tables, bitcasts
#
# By XLA's source: what these change shows in no figure that XLA prints for a module of a few lines.

B200 = load_device("b200")
WINDOW = "f32[523,524] reduce-window(p0, p1), window={size=2x4}, to_apply=add"
NARROW = "u8[4096,4096] add(p0, p0)"
LONG = "u8[4096,4096] concatenate(p0, p0), dimensions={0}"
LAUNCHES = [
    # behaviour, device, operation, shapes of its operands, blocks in the release before and after
    ("unrolls_small_windows", DEVICE, WINDOW, ("f32[524,527]", "f32[]"), ("0.7.2", 2142), ("0.8.3", 536)),
    ("unrolls_further_on_blackwell", B200, NARROW, ("u8[4096,4096]",), ("0.7.2", 32768), ("0.8.3", 16384)),
    ("unrolls_by_width_on_blackwell", B200, NARROW, ("u8[4096,4096]",), ("0.8.3", 16384), ("0.9.2", 8192)),
    ("unrolls_concatenates_on_blackwell", B200, LONG, ("u8[2048,4096]",), ("0.9.2", 16384), ("0.10.2", 4096)),
]


def operation(line: str, operands: tuple[str, ...]) -> Instruction:
    """The root of a module with parameters p0, p1 … of those shapes."""
    parameters = "\n".join(f"  p{i} = {t} parameter({i})" for i, t in enumerate(operands))
    module = parse_module(f"HloModule m\n\n{_REGION}\nENTRY e {{\n{parameters}\n  ROOT r = {line}\n}}\n")
    assert module.entry.root is not None
    return module.entry.root


@pytest.mark.parametrize(("behaviour", "device", "line", "operands", "before", "after"), LAUNCHES)
def test_how_far_loops_are_unrolled(
    behaviour: str,
    device: DeviceDescription,
    line: str,
    operands: tuple[str, ...],
    before: tuple[str, int],
    after: tuple[str, int],
) -> None:
    instruction = operation(line, operands)

    def blocks(release: Release) -> int:
        return KernelModel(device, release).launch(instruction).blocks

    assert [blocks(release_of(r)) for r, _ in (before, after)] == [before[1], after[1]]
    assert blocks(flipped(after[0], behaviour)) != after[1]


def test_tables_of_clock_cycles() -> None:
    add = operation("f32[4096] sine(p0)", ("f32[4096]",))
    b300 = replace(B200, compute_capability=(10, 3))

    def flops(device: DeviceDescription, release: Release) -> int:
        return KernelModel(device, release).run_time(add).flops

    oldest, b200, both = release_of("0.5.3"), release_of("0.6.2"), release_of("0.10.2")
    assert flops(B200, oldest) == flops(b300, oldest) == flops(b300, b200)
    assert flops(B200, b200) == flops(B200, both) != flops(B200, oldest)
    assert flops(b300, both) != flops(b300, b200)


def test_bitcasts_of_another_width() -> None:
    widens = operation("s16[256,2] bitcast(p0)", ("f32[256]",))
    fused = {r: may_be_fused(widens, release_of(r)) for r in ("0.6.2", "0.7.2", "0.8.3")}
    assert fused == {"0.6.2": True, "0.7.2": False, "0.8.3": False}
    first = {r: is_fusible_bitcast(widens, release_of(r)) for r in ("0.6.2", "0.7.2", "0.8.3")}
    assert first == {"0.6.2": True, "0.7.2": True, "0.8.3": False}
    same = operation("s32[256] bitcast(p0)", ("f32[256]",))
    assert all(may_be_fused(same, release_of(r)) for r in ("0.6.2", "0.7.2"))


def test_maps_of_indices_in_words() -> None:
    for release, operator in (("0.9.2", " floordiv "), ("0.10.2", " / ")):
        module = parse_module(GROUPS)
        fusion, user = module.find("f"), module.find("r")
        assert fusion is not None
        assert user is not None
        refusal = TilingModel(DEVICE, release_of(release)).best_tiling(fusion, user)
        assert operator in str(refusal)


def flipped(release: str, behaviour: str) -> Release:
    """The release with one behaviour the other way round."""
    changed: dict[str, Any] = {behaviour: not getattr(release_of(release), behaviour)}
    return replace(release_of(release), **changed)


GROUPS = """HloModule groups

add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }

body {
  p = f32[512,1024] parameter(0)
  q = f32[512,8,128] bitcast(p)
  z = f32[] constant(0)
  s = f32[512,8] reduce(q, z), dimensions={2}, to_apply=add
  t = f32[512,8,128] broadcast(s), dimensions={0,1}
  d = f32[512,8,128] subtract(q, t)
  ROOT b = f32[512,1024] bitcast(d)
}

ENTRY e {
  x = f32[512,1024] parameter(0)
  f = f32[512,1024] fusion(x), kind=kCustom, calls=body, backend_config={
    "fusion_backend_config":{"kind":"__triton"}}
  ROOT r = f32[512,1024] negate(f)
}
"""
