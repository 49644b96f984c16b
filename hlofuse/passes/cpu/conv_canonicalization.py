"""Convolutions made ones with features last (`xla/service/cpu/conv_canonicalization.cc`)."""

from __future__ import annotations

from hlofuse.analysis.convolution import dimension_numbers, why_not_eigen
from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.removing import replace_instruction
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.common.shapes import array
from hlofuse.trace import Recorder


class ConvCanonicalization(Pass):
    """`convolution-canonicalization`, in the entry only."""

    name = "convolution-canonicalization"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for x in module.entry.post_order():
            if x.opcode == "convolution" and why_not_eigen(x) is not None:
                _canonicalize(x)
                changed = True
        return changed


def _canonicalize(x: Instruction) -> None:
    numbers = dimension_numbers(x)
    assert numbers is not None
    source, kernel = x.operands
    orders = [
        [numbers.input_batch_dimension, *numbers.input_spatial_dimensions, numbers.input_feature_dimension],
        [
            *numbers.kernel_spatial_dimensions,
            numbers.kernel_input_feature_dimension,
            numbers.kernel_output_feature_dimension,
        ],
        [
            numbers.output_batch_dimension,
            *numbers.output_spatial_dimensions,
            numbers.output_feature_dimension,
        ],
    ]
    operands = [_transposed(o, order) for o, order in zip((source, kernel), orders, strict=False)]
    spatial = "".join(str(k) for k in range(len(numbers.output_spatial_dimensions)))
    raw = {
        name: value
        for name in ("window", "feature_group_count", "batch_group_count", "operand_precision")
        if (value := x.attributes.raw(name)) is not None
    }
    result = array(x.shape.element_type, [x.shape.dimensions[d] for d in orders[2]])
    new = make.add(
        x,
        "convolution",
        result,
        operands,
        copied_attributes=raw,
        dim_labels=f"b{spatial}f_{spatial}io->b{spatial}f",
    )
    replace_instruction(x, make.transpose(x, new, inverse(tuple(orders[2])), x.shape), has_side_effect)


def _transposed(x: Instruction, order: list[int]) -> Instruction:
    return make.transpose(x, x, order, array(x.shape.element_type, [x.shape.dimensions[d] for d in order]))
