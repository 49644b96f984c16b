"""What differs between releases on GPU: small modules with XLA's answers of the release before and after.

`tests/tools/record_gpu.py` asked. The passes before fusion leave a text as it is where
`--xla_disable_hlo_passes` names layout-assignment (which wants no bitcasts), rename-instructions or both.

Keys of a case: `differs`, the behaviour it isolates; `xla`, the release whose answer needs it; `device`,
unless it is h100_sxm; `part`, if EXPECT has not all there is to say (ties go by ids, which a text has not);
`exact`, if names and the order of results are compared as they are, with use-lists restored first.
EXPECT is labelled with the release that answered; each line says one thing, and all lines of a kind are
there: `time PRODUCER US_FUSED US_UNFUSED`, `refused PRODUCER: REASON` (without the instruction that a reason
prints), and of fusions `kernel KIND SHAPE`, `body OPCODES` and `config` with the backend config. New fusions
are left out, whose numbers go by what earlier passes spent. One release says x.2 where another says x.2.0.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hlofuse.cost.gpu.device import load_device
from hlofuse.cost.tiling.triton_support import TritonSupport
from hlofuse.ir.record import replace
from hlofuse.order.restore import restore
from hlofuse.passes import make_pass
from hlofuse.pipelines.targets import TARGETS, passes_of
from hlofuse.releases import Release, behaviours, release_of
from hlofuse.trace import Recorder
from ..fixtures import Case, read_cases
from .releases_on_gpu import DEVICE, flipped, many_parameters, operation

CASES = [*read_cases(Path(__file__).with_name("gpu.hlo")), many_parameters(49)]
_CPU_CASES = read_cases(Path(__file__).with_name("cpu.hlo"))
_LAYOUT = re.compile(r"\{[\d,]*\}")


def lines_of(case: Case, release: Release) -> set[str]:
    """Lines for what a replay of the case does, of the kinds that its answers have."""
    kinds = {line.split()[0] for answer in case.sections.values() for line in answer.splitlines() if line}
    module, recorder, exact = case.module(), Recorder(), "exact" in case.options
    if exact:
        restore(module, TARGETS["gpu"], release)
    option = "triton-multi-output"
    for text in passes_of("gpu", release, option if TARGETS["gpu"].has_by_default(option, release) else None):
        recorder.begin_pass(text)
        device = load_device(case.options.get("device", "h100_sxm"))
        make_pass(text, "gpu", release, device=device).run(module, recorder)
    lines = []
    for event in recorder.events:
        if event.event == "priority":
            lines.append(f"time {event.producer} {event.us_fused:g} {event.us_unfused:g}")
        if event.event == "ineligible" and event.pass_name.startswith("priority-fusion"):
            lines.append(f"refused {event.producer}: {event.reason}")
    for fusion in module.instructions():
        if fusion.opcode == "fusion":
            lines.append(f"kernel {fusion.fusion_kind} {_LAYOUT.sub('', str(fusion.shape))}")
            lines.append(f"body {' '.join(sorted(x.opcode for x in fusion.fused_computation))}")
            lines.append(f"config {fusion.attributes.raw('backend_config')}")
    return {
        _plain(line, exact)
        for line in lines
        if line.split()[0] in kinds and " fusion" not in line.split(":")[0]
    }


def _plain(line: str, exact: bool) -> str:
    """Times to five digits, as XLA's are single precision; several results in any order unless `exact`."""
    word, first, *rest = line.split()
    if word == "time":
        name = first if exact else first.removesuffix(".0")
        return " ".join([word, name, *(f"{float(x):.5g}" for x in rest)])
    if word == "kernel" and not exact:
        return " ".join([word, first, *sorted(x.strip("(),") for x in rest)])
    if word != "refused":
        return line
    reason = " ".join(rest).partition(" for HLO ")[0].partition(" on %")[0]
    return f"{word} {first.removesuffix(':').removesuffix('.0')} {reason}"


def expected(case: Case, release: str) -> set[str]:
    return {_plain(line, "exact" in case.options) for line in case.section("EXPECT", release).splitlines()}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_each_release_as_xla_answered(case: Case) -> None:
    answered = [label for word, label in case.sections if word == "EXPECT"]
    assert case.options["xla"] in answered
    assert len(answered) == 2
    for release in answered:
        lines = expected(case, release)
        found = lines_of(case, release_of(release))
        assert lines <= found
        assert found == lines or "part" in case.options


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_behaviour_is_needed(case: Case) -> None:
    release = case.options["xla"]
    lines = expected(case, release)
    found = lines_of(case, flipped(release, case.options["differs"]))
    assert not lines <= found if "part" in case.options else found != lines


def test_every_behaviour_has_a_case() -> None:
    """On GPU, of CPU or of what Triton takes: each is flipped and something changes."""
    flipped_by = {case.options["differs"] for case in (*CASES, *_CPU_CASES)} | {row[0] for row in TRITON}
    assert behaviours().keys() <= flipped_by


# ------------------------------------------------------------ what Triton takes

_ELEMENTWISE = "Unsupported elementwise operation."
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


def test_eight_bits_are_converted_on_ada() -> None:
    """No device that XLA describes is one; asked with the compute capability of an A100 changed to 8.9."""
    ada = replace(DEVICE, compute_capability=(8, 9))
    for release, answer in (("0.9.2", "F8E4M3FN is not supported before Hopper."), ("0.10.2", None)):
        found = TritonSupport(ada, release_of(release)).conversion("f8e4m3fn", "f32")
        assert (found and found.splitlines()[-1]) == answer
