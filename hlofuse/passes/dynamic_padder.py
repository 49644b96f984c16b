"""Sizes of static dimensions are numbers (`xla/service/dynamic_padder.cc`); dynamic shapes are left alone."""

from __future__ import annotations

from hlofuse.ir.graph import Module
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.dce import HloDCE
from hlofuse.trace import Recorder


class DynamicPadder(Pass):
    name = "dynamic_padder"

    def run(self, module: Module, recorder: Recorder) -> bool:
        dynamic = [i for i in module.instructions() if i.opcode in _DYNAMIC or _is_dynamic(i.shape)]
        for x in dynamic:
            recorder.skipped(x, "a dynamic shape")
        if dynamic:
            return False
        sizes = [i for c in module.computations for i in c.post_order() if i.opcode == "get-dimension-size"]
        for x in sizes:
            size = x.operands[0].shape.dimensions[x.dimensions[0]]
            constant = make.added(x, "constant", Shape("s32"), [], payload=str(size))
            x.replace_all_uses_with(constant)
        if sizes:
            HloDCE().run(module, recorder)
        return bool(sizes)


_DYNAMIC = ("set-dimension-size", "dynamic-reshape")


def _is_dynamic(shape: Shape) -> bool:
    return bool(shape.dynamic_dimensions) or any(map(_is_dynamic, shape.tuple_shapes))
