"""Who made an instruction last: what LayoutAssignment and LayoutNormalization laid otherwise."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.likely_ids.makers_in_turn import laid_in_calls

from .made import MUL, SLICE, maker, op


def test_the_same_operation_under_another_name_was_turned_into_another_layout() -> None:
    anew = f"%multiply.1.0 = f32[8]{{0}} multiply(%mul.5.0, %p), {op('mul')}"
    assert maker("multiply.1.0", MUL, anew, matrices=True) == Maker.LAYOUT_NORMALIZATION


def test_a_slice_beside_what_is_in_another_layout_was_turned_as_well() -> None:
    turned = f"%multiply.1 = f32[4]{{0}} multiply(%slice.5.0, %slice.5.0), {op('mul')}"
    assert maker("slice.5.0", MUL, SLICE, turned, matrices=True) == Maker.LAYOUT_NORMALIZATION


def test_a_reduction_is_made_anew_with_what_it_reads_in_another_layout_and_not_otherwise() -> None:
    turned = f"%multiply.1.0 = f32[8]{{0}} multiply(%mul.5.0, %p), {op('mul')}"
    total = "%reduce_sum.5.0 = f32[8]{0} reduce(%SOURCE.0, %zero), dimensions={1}, to_apply=%region, " + op(
        "reduce_sum"
    )
    for source, expected in (("multiply.1", Maker.REDUCTIONS), ("mul.5", Maker.FRONT_END)):
        lines = (MUL, turned, total.replace("SOURCE", source))
        assert maker("reduce_sum.5.0", *lines, matrices=True) == expected


def test_a_reduction_that_tells_nothing_in_front_of_a_copy_got_its_layout_late() -> None:
    total = "%reduce.5 = f32[8,4]{1,0} reduce(%r, %zero), dimensions={2}, to_apply=%region"
    given = "%r = f32[8,4,2]{2,1,0} broadcast(%q), dimensions={0,1}"
    copy = f"%transpose.5 = f32[4,8]{{1,0}} transpose(%reduce.5), dimensions={{1,0}}, {op('reduce_sum')}"
    turned = copy.replace("%transpose.5", "%transpose.5.0").replace("reduce_sum", "transpose")
    assert maker("reduce.5", MUL, given, total, copy) == Maker.REDUCTIONS
    assert maker("reduce.5", MUL, given, total, turned) == Maker.SIMPLIFIER


def test_what_a_library_call_gives_is_as_young_as_the_call() -> None:
    call = '%custom-call.1 = (f32[8]{0}, s8[0]{0}) custom-call(%p, %q), custom_call_target="__cublas$gemm"'
    element = "%get-tuple-element.1.0 = f32[8]{0} get-tuple-element(%custom-call.1), index=0"
    assert maker("get-tuple-element.1.0", MUL, call, element) == Maker.FUSIONS


@pytest.mark.parametrize(("shift", "expected"), [("shift-left.1", True), ("shift_left.1", False)])
def test_what_a_call_brought_in_lies_as_what_it_reads(shift: str, expected: bool) -> None:
    """So do the numbers that only that reads."""
    path = "jit(_uniform)"
    number = f"broadcast(%constant.4.0), dimensions={{}}, {op(f'{path}/or')}"
    lines = (
        "%u = u32[8]{0} parameter(2)",
        "%constant.4.0 = u32[] constant(2)",
        f"%{shift} = u32[8]{{0}} shift-left(%u, %u), {op(f'{path}/shift_left')}",
        f"%broadcast.1.0 = u32[8]{{0}} {number}",
        f"%or.1.0 = u32[8]{{0}} or(%{shift}, %broadcast.1.0), {op(f'{path}/or')}",
        f"%xor.1.0 = u32[8]{{0}} xor(%or.1.0, %u), {op(f'{path}/xor')}",
    )
    for name in ("or.1.0", "xor.1.0"):
        assert maker(name, *lines, matrices=True) == (
            Maker.LAYOUT_NORMALIZATION if expected else Maker.INLINER
        )
    assert (maker("broadcast.1.0", *lines, matrices=True) == Maker.LAYOUT_NORMALIZATION) == expected


def test_half_of_a_sum_with_what_was_transposed_lies_as_that_does() -> None:
    call = "jit(cholesky)"
    lines = (
        f"%square = f32[8,8]{{1,0}} broadcast(%p), dimensions={{0}}, {op(f'{call}/broadcast_in_dim')}",
        f"%transpose.1.0 = f32[8,8]{{1,0}} transpose(%square), dimensions={{1,0}}, {op(f'{call}/transpose')}",
        f"%add.1.0 = f32[8,8]{{1,0}} add(%square, %transpose.1.0), {op(f'{call}/add')}",
        f"%multiply.1.0 = f32[8,8]{{1,0}} multiply(%add.1.0, %add.1.0), {op(f'{call}/div')}",
    )
    copy = lines[1].replace(f"{call}/transpose", f"{call}/cholesky")
    assert maker("multiply.1.0", lines[0], copy, *lines[2:]) == Maker.LAYOUT_NORMALIZATION
    assert maker("add.1.0", lines[0], copy, *lines[2:]) == Maker.LAYOUT_NORMALIZATION


def test_a_constant_beside_tells_nothing_of_layouts() -> None:
    """It was spread for the one that reads it, whoever made that."""
    assert (
        maker(
            "add.0.0",
            "%c = f32[] constant(2)",
            f"%add.10.0 = f32[8]{{0}} add(%p, %p), {op('add')}",
            f"%add.9.0 = f32[8]{{0}} add(%add.10.0, %p), {op('add')}",
            f"%broadcast.0.0 = f32[8]{{0}} broadcast(%c), dimensions={{}}, {op('add')}",
            f"%add.0.0 = f32[8]{{0}} add(%add.9.0, %broadcast.0.0), {op('add')}",
        )
        == Maker.SIMPLIFIER_AGAIN
    )


def test_rows_of_a_transposed_parameter_are_columns_of_it_in_its_layout() -> None:
    row = f"%slice.1.0 = f32[8,1]{{1,0}} slice(%q), slice={{[0:8], [1:2]}}, {op('unstack')}"
    assert maker("slice.1.0", row) == Maker.LAYOUT_NORMALIZATION
    assert maker("slice.1.0", row.replace("unstack", "pad")) == Maker.SIMPLIFIER


def test_what_was_padded_for_a_call_is_sliced_behind_it() -> None:
    shape = "(f32[8,4]{1,0}, s8[1]{0})"
    call = f'%call.1 = {shape} custom-call(%q), custom_call_target="x", {op("dot_general")}'
    element = "%call.1_0 = f32[8,4]{1,0} get-tuple-element(%call.1), index=0"
    cut = f"%slice.1.0 = f32[7,4]{{1,0}} slice(%call.1_0), slice={{[0:7], [0:4]}}, {op('dot_general')}"
    assert maker("slice.1.0", call, element, cut) == Maker.DOT_MERGER
    assert maker("slice.1.0", call, element, cut.replace("dot_general", "pad")) == Maker.SIMPLIFIER


def test_a_transposition_of_what_was_converted_had_been_a_copy_into_another_layout() -> None:
    narrow = "%convert.1.0 = bf16[8,4]{1,0} convert(%q)"
    turned = "%transpose.1.0 = bf16[4,8]{1,0} transpose(%convert.1.0), dimensions={1,0}"
    assert maker("transpose.1.0", MUL, narrow, turned) == Maker.LAYOUT_NORMALIZATION


def test_what_was_cut_off_a_padded_convolution_lies_as_what_reads_it() -> None:
    call = (
        f'%conv.1 = f32[8,8]{{1,0}} custom-call(%q), custom_call_target="__cudnn$convForward", {op("conv")}'
    )
    cut = f"%slice.3.0 = f32[8,4]{{1,0}} slice(%conv.1), slice={{[0:8], [0:4]}}, {op('conv')}"
    known = f"%mul.6.0 = f32[8,4]{{1,0}} multiply(%q, %q), {op('mul')}"
    anew = f"%multiply.9.0 = f32[8,4]{{1,0}} multiply(%slice.3.0, %q), {op('mul')}"
    assert maker("slice.3.0", MUL, known, call, cut, anew) == Maker.LAYOUT_NORMALIZATION
    kept = anew.replace("multiply.9.0", "mul.7.0")
    assert maker("slice.3.0", MUL, known, call, cut, kept) == Maker.DOT_MERGER


def test_a_convert_of_the_program_named_after_its_opcode_was_made_anew() -> None:
    line = "%convert.1.0 = bf16[8]{0} convert(%mul.5.0), " + op("convert_element_type")
    assert maker("convert.1.0", MUL, line, matrices=True) == Maker.LAYOUT_NORMALIZATION


@pytest.mark.parametrize(
    ("reader", "made"), [("transpose.1", Maker.MOVED_COPIES), ("bitcast.9", Maker.SIMPLIFIER)]
)
def test_a_slice_in_front_of_copies_was_moved_there(reader: str, made: Maker) -> None:
    opcode = "transpose(%slice.3.0), dimensions={1,0}" if reader == "transpose.1" else "bitcast(%slice.3.0)"
    lines = [
        "%bitcast.1 = f32[8,4]{1,0} bitcast(%q)",
        f"%slice.3.0 = f32[4,4]{{1,0}} slice(%bitcast.1), slice={{[0:4], [0:4]}}, {op('dot_general')}",
        f"%{reader} = f32[4,4]{{1,0}} {opcode}",
    ]
    assert maker("slice.3.0", *lines) == made


@pytest.mark.parametrize(
    ("target", "reader", "expected"),
    [
        ("__cudnn$convBackwardInput", "bitcast", Maker.LAYOUT_NORMALIZATION),
        ("__cudnn$convBackwardInput", "negate", Maker.DOT_MERGER),
        ("__cublas$gemm", "bitcast", Maker.DOT_MERGER),
    ],
)
def test_what_is_cut_off_a_convolution_is_made_anew_in_the_layout_of_the_library(
    target: str, reader: str, expected: Maker
) -> None:
    """If an operation reads it as it is, the program has dimensions in the same order."""
    told = op("conv_general_dilated")
    lines = (
        f'%call.1 = (f32[9]{{0}}, u8[0]{{0}}) custom-call(%p), custom_call_target="{target}", {told}',
        "%element.1 = f32[9]{0} get-tuple-element(%call.1), index=0",
        f"%slice.3.0 = f32[8]{{0}} slice(%element.1), slice={{[0:8]}}, {told}",
        f"%{reader}.3.0 = f32[8]{{0}} {reader}(%slice.3.0)",
    )
    assert maker("slice.3.0", *lines) == expected


def test_what_a_branch_shares_with_what_was_laid_anew_was_so_too() -> None:
    """And the numbers that only that reads: nothing in the names tells of it."""
    text = f"""HloModule m

ENTRY %main {{
  %q = f32[8,4]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %broadcast.9.0 = f32[8,4]{{1,0}} broadcast(%zero), dimensions={{}}, {op("cond")}
  %divide.9.0 = f32[8,4]{{1,0}} divide(%q, %q), {op("jit(g)/cond/branch_1_fun/div")}
  ROOT %add.9.0 = f32[8,4]{{1,0}} add(%divide.9.0, %broadcast.9.0), {op("jit(g)/cond/branch_1_fun/add")}
}}
"""
    made = {"divide.9.0": Maker.LAYOUT_NORMALIZATION}
    entry = parse_module(text).entry
    makers = {x: made.get(x.name, Maker.CONDITIONALS) for x in entry if x.opcode != "parameter"}
    assert {x.name for x in laid_in_calls(makers)} == {"add.9.0", "broadcast.9.0"}


@pytest.mark.parametrize("opcode", ["dynamic-slice", "dynamic-update-slice"])
def test_a_dynamic_slice_named_after_its_opcode_lies_otherwise(opcode: str) -> None:
    operands = "%q, %i, %i" if opcode == "dynamic-slice" else "%q, %q, %i, %i"
    sizes = ", dynamic_slice_sizes={8,4}" if opcode == "dynamic-slice" else ""
    lines = [
        "%i = s32[] parameter(2)",
        f"%{opcode}.3.0 = f32[8,4]{{1,0}} {opcode}({operands}){sizes}, {op(opcode.replace('-', '_'))}",
    ]
    assert maker(f"{opcode}.3.0", *lines) == Maker.LAYOUT_NORMALIZATION
