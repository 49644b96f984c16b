"""How often a fusion reads its parameters."""

from __future__ import annotations

import pytest

from hlofuse.cost.gpu.device import load_device
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.cost.gpu.summary import Summary
from hlofuse.ir.text.reader import parse_module
from hlofuse.releases import AROUND_FUSION as RELEASE

SUM = """%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %r = f32[] add(%a, %b)
}
"""


def _summary(parameters: str, body: str, root: str, kind: str = "kLoop") -> Summary:
    names = [p.split(":")[0] for p in parameters.split("; ")]
    shapes = [p.split(": ")[1] for p in parameters.split("; ")]
    lines = [f"  %{n} = {s} parameter({k})" for k, (n, s) in enumerate(zip(names, shapes, strict=True))]
    signature = ", ".join(f"{n}: {s}" for n, s in zip(names, shapes, strict=True))
    text = "\n".join(
        [
            "HloModule m",
            "",
            SUM,
            f"%body ({signature}) -> {root} {{",
            *lines,
            body,
            "}",
            "",
            f"ENTRY %main ({signature}) -> {root} {{",
            *lines,
            f"  ROOT %f = {root} fusion({', '.join('%' + n for n in names)}), kind={kind}, calls=%body",
            "}",
            "",
        ]
    )
    module = parse_module(text)
    return KernelModel(load_device("v100"), RELEASE).summary(module.entry.root)


def test_an_elementwise_parameter_is_read_once_however_often_it_is_named() -> None:
    summary = _summary(
        "x: f32[1000]{0}",
        "  %e = f32[1000]{0} exponential(%x)\n  ROOT %r = f32[1000]{0} multiply(%e, %x)",
        "f32[1000]{0}",
    )
    assert summary.operand_bytes == [4000]
    assert summary.utilization == [1.0]
    assert summary.elementwise


def test_a_broadcast_reads_its_operand_again_and_again() -> None:
    summary = _summary(
        "x: f32[1000]{0}",
        "  %e = f32[1000]{0} negate(%x)\n  ROOT %r = f32[64,1000]{1,0} broadcast(%e), dimensions={1}",
        "f32[64,1000]{1,0}",
    )
    assert summary.utilization == [64.0]
    assert summary.flops == 3 * 64 * 1000


def test_two_slices_are_emitted_twice_and_read_apart() -> None:
    summary = _summary(
        "x: f32[100]{0}",
        "  %e = f32[100]{0} negate(%x)\n"
        "  %s = f32[10]{0} slice(%e), slice={[0:10]}\n"
        "  %t = f32[10]{0} slice(%e), slice={[5:15]}\n"
        "  ROOT %r = f32[10]{0} add(%s, %t)",
        "f32[10]{0}",
    )
    assert list(summary.utilization) == pytest.approx([0.2])
    assert summary.operand_bytes == [80]
    # add and the slices once each, negate and the parameter for each of the two slices
    assert (summary.ir_size, list(summary.parameter_ir_size)) == (7.0, [2])


def test_the_updated_buffer_is_not_read() -> None:
    summary = _summary(
        "x: f32[100]{0}; u: f32[10]{0}; i: s32[]",
        "  %n = f32[10]{0} negate(%u)\n  ROOT %r = f32[100]{0} dynamic-update-slice(%x, %n, %i)",
        "f32[100]{0}",
    )
    assert summary.operand_bytes == [0, 40, 4]
    assert summary.written == 40


def test_one_does_not_stay_one_beyond_single_precision() -> None:
    # A bitcast of more elements than single precision can count: XLA's rounding leaves a bit less than all.
    summary = _summary(
        "x: f32[4473856,4473856]{1,0}; z: f32[]",
        "  %b = f32[2056,2176,4473856]{2,1,0} bitcast(%x)\n"
        "  ROOT %r = f32[2056,4473856]{1,0} reduce(%b, %z), dimensions={1}, to_apply=%sum",
        "f32[2056,4473856]{1,0}",
        "kInput",
    )
    assert summary.utilization[0] == pytest.approx(1.0, abs=2e-7)
    assert summary.utilization[0] < 1.0


def test_parameters_read_in_step_share_a_root() -> None:
    summary = _summary(
        "x: f32[8,8]{1,0}; y: f32[8,8]{1,0}; z: f32[8,8]{1,0}",
        "  %t = f32[8,8]{1,0} transpose(%z), dimensions={1,0}\n"
        "  %a = f32[8,8]{1,0} add(%x, %y)\n"
        "  ROOT %r = f32[8,8]{1,0} add(%a, %t)",
        "f32[8,8]{1,0}",
    )
    assert summary.common_utilization(0, 1) == 1.0
    assert summary.common_utilization(0, 2) == 0.0
    assert [summary.common_with_root(k) for k in range(3)] == [1.0, 1.0, 0.0]
