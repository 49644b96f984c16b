"""Flops and bytes are those of XLA's HloCostAnalysis, as it counted each of these modules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlofuse.analysis.convolution import window_dimensions
from hlofuse.analysis.cost import CostAnalysis
from hlofuse.analysis.flops import valid_positions
from hlofuse.analysis.kernels import kernels
from hlofuse.ir import Instruction, Shape, parse_module
from hlofuse.ir.attributes.attributes import Attributes
from hlofuse.ir.attributes.window import WindowDimension
from .cost_modules import ASYNC, MODULES

XLA = json.loads((Path(__file__).parent / "xla_costs.json").read_text())


@pytest.mark.parametrize("name", MODULES)
def test_counts_as_xla(name: str) -> None:
    actual, xla = CostAnalysis().computation(parse_module(MODULES[name]).entry), XLA[name]
    # XLA adds -1 for a custom call, of which it knows nothing.
    assert actual.flops - actual.unknown == xla["flops"]
    assert actual.transcendentals == xla["transcendentals"]
    assert actual.bytes_accessed - actual.unknown == xla["bytes accessed"]


@pytest.mark.parametrize("name", ASYNC)
def test_an_asynchronous_operation_is_one_kernel_that_has_all_the_bytes(name: str) -> None:
    module = parse_module(ASYNC[name])
    (kernel,) = kernels(module)
    assert CostAnalysis().instruction(kernel).bytes_accessed == XLA[name]["bytes accessed"]


def brute_force(inputs: int, kernel: int, outputs: int, w: WindowDimension) -> int:
    count = 0
    for k in range(kernel):
        for o in range(outputs):
            at = o * w.stride - w.padding_low + k * w.window_dilation
            count += at % w.base_dilation == 0 and 0 <= at // w.base_dilation < inputs
    return count


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("base", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("pad", [0, 2, 5, -1])
def test_window_positions_without_loops(stride: int, base: int, dilation: int, pad: int) -> None:
    for inputs, kernel, outputs in ((7, 3, 5), (4, 9, 6), (1, 4, 4), (5, 1, 9), (6, 6, 2)):
        w = WindowDimension(kernel, stride, pad, pad, dilation, base)
        assert valid_positions(inputs, kernel, outputs, w) == brute_force(inputs, kernel, outputs, w)


def test_a_huge_window_is_estimated_at_once() -> None:
    assert valid_positions(10**12, 10**12, 10**12, WindowDimension(10**12)) == 10**24


def test_windows_are_read_from_text() -> None:
    text = "{size=3x4 stride=2x1 pad=1_2x0_-1 lhs_dilate=1x2 rhs_dilate=3x1 rhs_reversal=1x0}"
    assert windows(text) == (
        WindowDimension(3, 2, 1, 2, window_dilation=3, window_reversal=True),
        WindowDimension(4, 1, 0, -1, base_dilation=2),
    )
    assert windows("{size=3x pad=}") == windows("{size=2}", "dimensions") == ()


def windows(text: str, name: str = "window") -> tuple[WindowDimension, ...]:
    attributes = Attributes(raw={name: text})
    return window_dimensions(Instruction("w", Shape("f32"), "reduce-window", attributes=attributes))


def test_kernels_are_what_is_launched() -> None:
    names = {name: [k.opcode for k in kernels(parse_module(MODULES[name]))] for name in MODULES}
    assert names["fusion"] == ["fusion"]
    assert names["bitcast"] == names["tuple"] == names["transpose_bitcast"] == []
    assert names["transpose"] == ["transpose"]
    # One turn of the loop: its condition and its body; the function of a reduce is no kernel.
    assert sorted(names["while"]) == ["add", "compare", "tanh"]
    assert sorted(names["conditional"]) == ["multiply", "negate", "power"]
    assert names["reduce"] == ["reduce"]


def test_instructions_add_up_to_their_computation() -> None:
    module = parse_module(MODULES["while"])
    costs = CostAnalysis()
    for computation in module.computations:
        total = costs.computation(computation)
        assert total.bytes_accessed == sum(costs.instruction(i).bytes_accessed for i in computation)


def test_deeply_nested_calls() -> None:
    depth = 5000
    text = (
        "HloModule m\n%c0 (p: f32[2]) -> f32[2] {\n"
        "  %p = f32[2]{0} parameter(0)\n  ROOT %n = f32[2]{0} negate(%p)\n}\n"
    )
    for i in range(1, depth):
        text += (
            f"%c{i} (p{i}: f32[2]) -> f32[2] {{\n  %p{i} = f32[2]{{0}} parameter(0)\n"
            f"  ROOT %n{i} = f32[2]{{0}} call(%p{i}), to_apply=%c{i - 1}\n}}\n"
        )
    module = parse_module(text.replace(f"%c{depth - 1} ", f"ENTRY %c{depth - 1} "))
    assert CostAnalysis().computation(module.entry).flops == 2
