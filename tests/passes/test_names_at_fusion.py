"""Names at the fusion input, from before optimizations: those of jaxlib 0.11.1 on an H100."""

from __future__ import annotations

import pytest

from hlofuse.cost.gpu.device import load_device
from hlofuse.inputs.ordered import in_creation_order
from hlofuse.ir import parse_module
from hlofuse.ir.computation_order import order_of_front_end
from hlofuse.ir.graph import Computation, Instruction, Module
from ..running import lowered

CONVOLUTION = """HloModule conv

ENTRY %main.1 {
  %x.1 = f32[4,16,16,8]{3,2,1,0} parameter(0)
  %w.1 = f32[3,3,8,8]{3,2,1,0} parameter(1)
  %c.1 = f32[4,16,16,8]{3,2,1,0} convolution(%x.1, %w.1), window={size=3x3 pad=1_1x1_1}, \
    dim_labels=b01f_01io->b01f
  %b.1 = f32[8]{0} parameter(2)
  %wide.1 = f32[4,16,16,8]{3,2,1,0} broadcast(%b.1), dimensions={3}
  ROOT %sum.1 = f32[4,16,16,8]{3,2,1,0} add(%c.1, %wide.1)
}
"""
SORT = """HloModule sorts

%region_0.1 {
  %p.1 = f32[] parameter(0)
  %q.1 = f32[] parameter(1)
  ROOT %lt.1 = pred[] compare(%p.1, %q.1), direction=LT, type=TOTALORDER
}

ENTRY %main.2 {
  %x.1 = f32[65536]{0} parameter(0)
  %e.1 = f32[65536]{0} exponential(%x.1)
  ROOT %s.1 = f32[65536]{0} sort(%e.1), dimensions={0}, is_stable=true, to_apply=%region_0.1
}
"""
FFT = """HloModule ffts

ENTRY %main.1 {
  %x.1 = f32[1024]{0} parameter(0)
  %e.1 = f32[1024]{0} exponential(%x.1)
  %n.1 = f32[1024]{0} negate(%e.1)
  ROOT %fft.1 = c64[513]{0} fft(%n.1), fft_type=RFFT, fft_length={1024}
}
"""
TOP = """HloModule top

ENTRY %main.1 {
  %x.1 = f32[64,128]{1,0} parameter(0)
  %n.1 = f32[64,128]{1,0} negate(%x.1)
  %t.3 = (f32[64,5]{1,0}, s32[64,5]{1,0}) topk(%n.1), k=5, largest=true, \
    is_stable=true, metadata={op_name="t"}
  ROOT %e.1 = f32[64,5]{1,0} exponential(%t.3#0)
}
"""
LOOP = """HloModule loops

%region_0.1 {
  %arg_tuple.1 = (s32[], s32[], f32[8]{0}) parameter(0)
  %constant.5 = s32[] constant(1)
  %i2.1 = s32[] add(%arg_tuple.1#0, %constant.5)
  %constant.4 = s32[] constant(2)
  %j2.1 = s32[] add(%arg_tuple.1#1, %constant.4)
  %f.1 = f32[] convert(%arg_tuple.1#1)
  %w.1 = f32[8]{0} broadcast(%f.1), dimensions={}
  %sum.1 = f32[8]{0} add(%arg_tuple.1#2, %w.1)
  ROOT %tuple.1 = (s32[], s32[], f32[8]{0}) tuple(%i2.1, %j2.1, %sum.1)
}

%region_1.2 {
  %arg_tuple.3 = (s32[], s32[], f32[8]{0}) parameter(0)
  %constant.7 = s32[] constant(9)
  ROOT %less.1 = pred[] compare(%arg_tuple.3#0, %constant.7), direction=LT
}

ENTRY %main.3 {
  %constant.8 = s32[] constant(0)
  %constant.9 = s32[] constant(5)
  %a.1 = f32[8]{0} parameter(0)
  %while.5 = (s32[], s32[], f32[8]{0}) tuple(%constant.8, %constant.9, %a.1), metadata={op_name="while"}
  %while.6 = (s32[], s32[], f32[8]{0}) while(%while.5), condition=%region_1.2, \
    body=%region_0.1, metadata={op_name="while"}
  ROOT %while.9 = f32[8]{0} get-tuple-element(%while.6), index=2, metadata={op_name="while"}
}
"""
UNREAD = """HloModule m

ENTRY %main.1 {
  %x.1 = f32[8]{0} parameter(0)
  %s.4 = (f32[8]{0}, f32[8]{0}) custom-call(%x.1), custom_call_target="two", metadata={op_name="s"}
  %none.1 = (f32[8]{0}, f32[8]{0}) custom-call(%x.1), custom_call_target="two"
  ROOT %e.1 = f32[8]{0} add(%s.4#1, %none.1#1)
}
"""


@pytest.mark.parametrize(
    ("text", "names"),
    [
        # The call is cloned and named twice before it is laid out otherwise.
        (CONVOLUTION, ["cudnn-conv-bias-activation.3", "transpose.1"]),
        # Another target is another name.
        (SORT, ["custom-call.1", "e.1.0"]),
        (FFT, ["e.1.0", "fft.1.0", "n.1.0"]),
        (TOP, ["e.1.0", "iota.1.0", "n.1.0", "slice.2.0", "sort.1.0"]),
        (LOOP, ["constant.8.0", "while.1"]),
    ],
)
def test_names_at_fusion(text: str, names: list[str]) -> None:
    entry = lowered_text(text).entry
    assert (
        sorted(i.name for i in entry if i.opcode not in ("parameter", "get-tuple-element", "tuple")) == names
    )


def test_constants_that_loops_take_in_are_named_as_clones() -> None:
    names = {i.name for i in lowered_text(LOOP).instructions() if i.opcode == "constant"}
    assert names >= {"constant.9..sunk.1.0", "constant.13.0", "constant.14.0"}


def test_a_comparator_of_xlas_builder_has_numbers() -> None:
    comparator = lowered_text(TOP).entry.root.operands[0].operands[0].operands[0].called_computations[0]
    assert [p.name for p in comparator.parameters] == ["p.0.lhs.1", "p.0.rhs.1", "p.1.lhs.1", "p.1.rhs.1"]


def test_results_have_the_numbers_behind_their_operation() -> None:
    module = parse_module(UNREAD)
    in_creation_order(module, None)
    assert [i.name for i in module.entry if i.opcode == "get-tuple-element"] == [
        "s.5",
        "s.6",
        "none.1_0",
        "none.1_1",
    ]


def lowered_text(text: str) -> Module:
    module = parse_module(text)
    in_creation_order(module, None)
    return lowered(module, "gpu", load_device("h100_sxm")).module


TWO_SUMS = """HloModule two

%region_0.1 {
  %a.1 = f32[] parameter(0)
  %b.1 = f32[] parameter(1)
  ROOT %c.1 = f32[] add(%a.1, %b.1)
}

%region_1.2 {
  %a.2 = f32[] parameter(0)
  %b.2 = f32[] parameter(1)
  ROOT %c.2 = f32[] add(%a.2, %b.2)
}

ENTRY %main.3 {
  %x.1 = f32[8,16]{1,0} parameter(0)
  %exp.1 = f32[8,16]{1,0} exponential(%x.1)
  %constant.1 = f32[] constant(0)
  %sum.15 = f32[8]{0} reduce(%exp.1, %constant.1), dimensions={1}, to_apply=%region_1.2
  %sum.14 = f32[8]{0} reduce(%x.1, %constant.1), dimensions={1}, to_apply=%region_0.1
  ROOT %tuple.1 = (f32[8]{0}, f32[8]{0}) tuple(%sum.15, %sum.14)
}
"""


def test_of_equal_computations_the_first_that_the_front_end_made_stays() -> None:
    """Not the first that the text shows."""
    sums = lowered_text(TWO_SUMS).entry.root.operands
    assert [x.called_computations[0].name for x in sums] == ["region_0.1.clone", "region_0.1"]


def test_a_computation_that_calls_another_comes_last() -> None:
    module = parse_module(TWO_SUMS)
    first, second, entry = module.computations
    order = module.computation_order = order_of_front_end(module)
    assert order.post_order() == [first, second, entry]
    call = Instruction(
        "call", entry.root.operands[0].shape, "call", first.parameters, called=[("to_apply", second)]
    )
    first.add_instruction(call)
    # The entry calls it and goes on.
    assert order.post_order() == [second, first, entry]
    copy = module.add_computation(Computation("copy"))
    assert order.post_order() == [second, first, entry, copy]
    module.remove_computation(copy)
    assert module.computation_post_order() == [second, first, entry]
    assert module.printed_order() == [second, first, entry]
