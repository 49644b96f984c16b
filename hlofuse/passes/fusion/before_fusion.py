"""XLA:GPU's passes right before fusion: it splits concatenates of very many arrays
(`xla/backends/gpu/transforms/variadic_op_splitter.cc`) and move iotas into sorts."""

from dataclasses import replace
from typing import ClassVar

from hlofuse.analysis.call_sites import with_changed_after
from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.ir.fusing import append_producer, create_fusion
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.removing import replace_instruction
from hlofuse.passes.base import Pass
from hlofuse.rules.rewrites import IOTA_INTO_SORT, MANY_OPERANDS, MAX_CONCATENATE_OPERANDS
from hlofuse.trace import Recorder


class VariadicOpSplitter(Pass):
    """`variadic-op-splitter`."""

    name: ClassVar[str] = "variadic-op-splitter"

    def run(self, module: Module, recorder: Recorder) -> bool:
        batch = int(self.settings.value(MAX_CONCATENATE_OPERANDS))
        if MANY_OPERANDS.code in self.settings.disabled or batch < 2:
            return False
        changed = False
        for computation in module.non_fusion_computations():
            for concatenate in computation.instructions:
                if concatenate.opcode == "concatenate" and len(concatenate.operands) > batch:
                    _split(computation, concatenate, batch, recorder)
                    changed = True
        return changed


def _split(computation: Computation, concatenate: Instruction, batch: int, recorder: Recorder) -> None:
    parts = list(concatenate.operands)
    name, concatenates = concatenate.name, list[Instruction]()
    while len(parts) > 1:
        joined: list[Instruction] = []
        for start in range(0, len(parts), batch):
            if start and start + batch > len(parts):
                joined += parts[start:]
                break
            part = _concatenate(concatenate, parts[start : start + batch])
            joined.append(computation.add_instruction(part))
            concatenates.append(part)
        parts = joined
    replace_instruction(concatenate, parts[0], has_side_effect)
    recorder.apply(MANY_OPERANDS, computation.name, [name], concatenates)


def _concatenate(whole: Instruction, parts: list[Instruction]) -> Instruction:
    dimension = whole.dimensions[0]
    sizes = list(whole.shape.dimensions)
    sizes[dimension] = sum(p.shape.dimensions[dimension] for p in parts)
    return whole.clone(parts, shape=replace(whole.shape, dimensions=tuple(sizes)))


class SortIotaFusion(Pass):
    """`sort-iota-fusion`: makes iotas inside the sorts that read them
    (`xla/backends/gpu/transforms/sort_iota_fusion.cc`)."""

    name: ClassVar[str] = "sort-iota-fusion"

    def run(self, module: Module, recorder: Recorder) -> bool:
        if IOTA_INTO_SORT.code in self.settings.disabled:
            return False
        changed = set()
        for computation in module.non_fusion_computations():
            for sort in computation.post_order():
                if sort.opcode != "sort":
                    continue
                iotas = list(dict.fromkeys(o for o in sort.operands if o.opcode == "iota"))
                if not iotas:
                    continue
                name = sort.name
                fusion = create_fusion(sort, "kCustom")
                for iota in iotas:
                    append_producer(fusion, iota)
                names = [name, *[i.name for i in iotas]]
                replace_instruction(sort, fusion, has_side_effect)
                recorder.apply(IOTA_INTO_SORT, computation.name, names, [fusion])
                changed.add(computation)
        if module.processing_order:
            module.processing_order = with_changed_after(module.processing_order, changed)
        return bool(changed)
