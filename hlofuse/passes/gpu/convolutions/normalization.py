"""Calls of cuDNN's convolutions over row-major arrays (`xla/service/gpu/conv_layout_normalization.cc`)."""

from __future__ import annotations

from hlofuse.ir.fusing import clone_of, computation_of
from hlofuse.ir.graph import Instruction
from hlofuse.ir.removing import set_attribute
from hlofuse.ir.shape import Shape
from hlofuse.passes.common.layout_shapes import physical
from hlofuse.passes.common.make import added, bitcast
from hlofuse.passes.gpu.convolutions.layouts import convolution_shapes, is_convolution_call


def normalized_call(call: Instruction) -> Instruction | None:
    """A tuple of bitcasts of the new call's results; None where nothing changes.

    The operands' bitcasts are made in either case, as by XLA.
    """
    if not is_convolution_call(call):
        return None
    operands = [bitcast(o, physical(o.shape)) for o in call.operands]
    shape = Shape.tuple_of([physical(s) if s.is_array else s for s in call.shape.tuple_shapes])
    labels = call.attributes["dim_labels"]
    source, weights, result = convolution_shapes(call)
    text = f"{_moved(labels.lhs, source)}_{_moved(labels.rhs, weights)}->{_moved(labels.output, result)}"
    if shape.key == call.shape.key and text == call.attributes.raw("dim_labels"):
        return None
    new = clone_of(call, operands)
    new.shape = shape
    new.attributes = new.attributes.without("sharding", "frontend_attributes", "operand_layout_constraints")
    set_attribute(new, "dim_labels", text)
    computation_of(call).add_instruction(new)
    parts = []
    for k, (part, was) in enumerate(zip(shape.tuple_shapes, call.shape.tuple_shapes, strict=True)):
        parts.append(bitcast(added(new, "get-tuple-element", part, [new], index=str(k)), was))
    return added(call, "tuple", call.shape, parts)


def _moved(labels: str, shape: Shape) -> str:
    return "".join(labels[d] for d in reversed(shape.minor_to_major))
