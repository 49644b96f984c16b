"""Maps of a single operation are that operation (`xla/service/map_inliner.cc`)."""

from __future__ import annotations

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.ir.fusing import clone_of, computation_of
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.removing import replace_instruction
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.common.rewriting import attempt, visit
from hlofuse.trace import Recorder


class MapInliner(Pass):
    name = "map-inline"

    def run(self, module: Module, recorder: Recorder) -> bool:
        handle = attempt(_inlined, recorder)
        changed = False
        for computation in list(module.computations):
            changed |= visit(computation, handle, frozenset({"map"}))
        return changed


def _inlined(x: Instruction) -> bool:
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
