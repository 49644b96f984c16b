"""Passes that find nothing to do in most modules."""

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.ir.fusing import clone_of, computation_of
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.removing import is_safely_removable, replace_instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass, attempt, rewrite_each, visit
from hlofuse.passes.common import make
from hlofuse.passes.common.shapes import array
from hlofuse.passes.dce import HloDCE
from hlofuse.trace import Recorder

_GLOBAL_SHAPE = "xla.sdy.LocalToGlobalShape"


# Arrays without elements are constants (`xla/hlo/transforms/simplifiers/zero_sized_hlo_elimination.cc`).


class ZeroSizedHloElimination(Pass):
    name = "zero_sized_hlo_elimination"

    def run(self, module: Module, recorder: Recorder) -> bool:
        attempted = attempt(_eliminate, recorder)
        changed = False
        for computation in module.non_fusion_computations():
            if not any(0 in x.shape.dimensions for x in computation):
                continue
            for x in computation.post_order():
                changed |= x.shape.is_array and 0 in x.shape.dimensions and attempted(x)
        return changed


def _eliminate(x: Instruction) -> bool:
    if x.opcode == "constant" or x.shape.dynamic_dimensions:
        return False
    if has_side_effect(x) and x.attributes.get("custom_call_target") != _GLOBAL_SHAPE:
        return False
    is_parameter = x.opcode == "parameter"
    if is_parameter:
        if not x.users or x.control_predecessors or x.control_successors:
            return False
    elif not is_safely_removable(x):
        return False
    constant = make.constant(x, x.shape, [])
    if is_parameter:
        x.replace_all_uses_with(constant)
        return True
    return replace_instruction(x, constant, has_side_effect)


# Sizes of static dimensions are numbers (`xla/service/dynamic_padder.cc`); dynamic shapes are left alone.


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


# Slices start at scalars (`xla/hlo/transforms/expanders/dynamic_index_splitter.cc`).


class DynamicIndexSplitter(Pass):
    name = "dynamic-index-splitter"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return rewrite_each(module, ("dynamic-slice", "dynamic-update-slice"), _split, recorder)


def _split(x: Instruction) -> bool:
    first = 2 if x.opcode == "dynamic-update-slice" else 1
    rank = x.operands[0].shape.rank
    if rank == 0:
        return replace_instruction(x, x.operands[first - 1], has_side_effect)
    index = x.operands[first]
    if not index.shape.dimensions:
        return False
    one, of = array(index.shape.element_type, [1]), array(index.shape.element_type)
    starts = [
        make.added(x, "reshape", of, [make.added(x, "slice", one, [index], slice=f"{{[{d}:{d + 1}]}}")])
        for d in range(rank)
    ]
    sizes = x.attributes.raw("dynamic_slice_sizes")
    raw = {} if sizes is None else {"dynamic_slice_sizes": sizes}
    new = make.added(x, x.opcode, x.shape, [*x.operands[:first], *starts], raw_attributes=raw)
    return replace_instruction(x, new, has_side_effect)


# Maps of a single operation are that operation (`xla/service/map_inliner.cc`).


class MapInliner(Pass):
    name = "map-inline"

    def run(self, module: Module, recorder: Recorder) -> bool:
        handle = attempt(_inline, recorder)
        changed = False
        for computation in list(module.computations):
            changed |= visit(computation, handle, frozenset({"map"}))
        return changed


def _inline(x: Instruction) -> bool:
    root = x.called_computations[0].root
    if root.opcode == "fusion" or any(o.opcode != "parameter" for o in root.operands):
        return False
    if root.opcode == "parameter":
        new = x.operands[root.parameter_number]
    elif root.opcode == "constant":
        constant = computation_of(x).add_instruction(clone_of(root, []))
        new = make.added(x, "broadcast", x.shape, [constant], dimensions="{}")
    else:
        clone = clone_of(root, [x.operands[o.parameter_number] for o in root.operands])
        clone.shape = x.shape
        new = computation_of(x).add_instruction(clone)
    return replace_instruction(x, new, has_side_effect)
