"""XLA:GPU's passes right before fusion: it splits concatenates of very many arrays
(`xla/backends/gpu/transforms/variadic_op_splitter.cc`) and moves iotas into sorts. Last, a single operation
becomes a fusion of its own (`xla/codegen/emitters/fusion_wrapper_base.cc`)."""

from collections.abc import Iterator

from hlofuse.analysis.call_sites import with_changed_after
from hlofuse.ir import Computation, Instruction, Instructions, Module, replace, values, with_trait
from hlofuse.ir.fusing import append_producer, create_fusion
from hlofuse.ir.removing import move_control_dependencies, replace_instruction
from hlofuse.passes.base import DevicePass, Pass, ReleasePass, find_each
from hlofuse.rules.fusion_wrapper import RULES, WRAPPED_OPCODES, WrapCandidate
from hlofuse.rules.gpu_fusible import choose_kind
from hlofuse.rules.rewrites import IOTA_INTO_SORT, MANY_OPERANDS, MAX_CONCATENATE_OPERANDS
from hlofuse.rules.settings import first_verdict, in_force
from hlofuse.trace import Recorder


class VariadicOpSplitter(Pass):
    name = "variadic-op-splitter"

    def run(self, module: Module, recorder: Recorder) -> bool:
        batch = int(self.settings.value(MAX_CONCATENATE_OPERANDS))
        if not self.settings.enables(MANY_OPERANDS) or batch < 2:
            return False
        found = find_each(module, lambda x: x.is_concatenate and x.operand_count > batch)
        for concatenate in found:
            _split(concatenate, batch, recorder)
        return bool(found)


def _split(concatenate: Instruction, batch: int, recorder: Recorder) -> None:
    parts, computation = list(concatenate.operands), concatenate.parent
    name, concatenates = concatenate.name, Instructions()
    while len(parts) > 1:
        joined = []
        for start in range(0, len(parts), batch):
            if start and start + batch > len(parts):
                joined += parts[start:]
                break
            part = _concatenate(concatenate, parts[start : start + batch])
            joined.append(computation.add_instruction(part))
            concatenates.append(part)
        parts = joined
    replace_instruction(concatenate, parts[0])
    recorder.apply(MANY_OPERANDS, computation.name, [name], concatenates)


def _concatenate(whole: Instruction, parts: Instructions) -> Instruction:
    dimension = whole.dimension
    sizes = list(whole.sizes)
    sizes[dimension] = sum(p.sizes[dimension] for p in parts)
    return whole.clone(parts, shape=replace(whole.shape, dimensions=tuple(sizes)))


class SortIotaFusion(Pass):
    """`sort-iota-fusion`: makes iotas inside the sorts that read them (`sort_iota_fusion.cc`)."""

    name = "sort-iota-fusion"

    def run(self, module: Module, recorder: Recorder) -> bool:
        if not self.settings.enables(IOTA_INTO_SORT):
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
                replace_instruction(sort, fusion)
                recorder.apply(IOTA_INTO_SORT, computation.name, names, [fusion])
                changed.add(computation)
        if module.processing_order:
            module.processing_order = with_changed_after(module.processing_order, changed)
        return bool(changed)


_ENTERED = with_trait("control-flow")


def reached(entry: Computation) -> Iterator[Instruction]:
    """Instructions in post-order, those of called control flow in place of its first caller."""
    entered = set()
    stack: list[Iterator[Computation | Instruction]] = [iter((entry,))]
    while stack:
        for x in stack[-1]:
            if isinstance(x, Computation):
                if x not in entered:
                    entered.add(x)
                    stack.append(iter(x.post_order()))
                    break
            elif x.opcode in _ENTERED:
                stack.append(iter(x.called_computations))
                break
            else:
                yield x
        else:
            stack.pop()


def wrap(module: Module, instruction: Instruction, kind: str) -> Instruction:
    """The fusion `wrapped_OPCODE` of that kind, in the place of `instruction`, which is removed."""
    computation = instruction.parent
    fusion = create_fusion(instruction, kind)
    fusion.name = module.instruction_names.unique(f"wrapped_{instruction.opcode}")
    body = fusion.fused_computation
    body.name = module.computation_names.unique(f"wrapped_{instruction.opcode}_computation")
    move_control_dependencies(instruction, fusion)
    instruction.replace_all_uses_with(fusion)
    computation.remove_instruction(instruction)
    return fusion


class CpuFusionWrapper(ReleasePass):
    """Goes through the entry and the control flow that it calls (`xla/service/cpu/fusion_wrapper.cc`)."""

    name = "fusion-wrapper"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        rules = in_force(RULES, self.release)
        for instruction in reached(module.entry):
            verdict = first_verdict(rules, WrapCandidate(instruction, self.release), self.settings)
            if verdict is None:
                continue
            if not verdict.allows:
                recorder.ineligible(instruction, None, verdict)
                continue
            name = instruction.name
            parent = instruction.parent
            fusion = wrap(module, instruction, "kLoop")
            recorder.rewrite(parent.name, [name], [fusion], verdict.reason, verdict.rule)
            changed = True
        return changed


_WRAPPED = WRAPPED_OPCODES | values("concatenate convolution dot scatter stochastic-convert")
_REASON = "XLA:GPU has code for the operation inside a fusion only"


class GpuFusionWrapper(DevicePass):
    """`fusion-wrapper`: every operation that XLA:GPU has code for in fusions only (`fusion_wrapper.cc`)."""

    name = "fusion-wrapper"

    def run(self, module: Module, recorder: Recorder) -> bool:
        found = [i for i in reached(module.entry) if i.opcode in _WRAPPED]
        if not found:
            return False
        model = self.kernels()
        for instruction in found:
            parent, name = instruction.parent, instruction.name
            fusion = wrap(module, instruction, choose_kind(instruction, instruction, model))
            recorder.rewrite(parent.name, [name], [fusion], _REASON)
        return True
