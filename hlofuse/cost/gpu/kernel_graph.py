"""A kernel's instructions as one graph, whether they are fused already or about to be.

Mirrors `HloFusionAdaptor` (`xla/hlo/utils/hlo_traversal.cc`): parameters and the tuple of outputs are
looked through, so that an instruction's operand may lie in the producer. Only the few questions that
need the graph itself come here.
"""

from collections.abc import Sequence

from hlofuse.ir.graph import Instruction


class KernelGraph:
    """The instructions of one kernel seen as one graph (`HloFusionAdaptor`)."""

    def __init__(self, parts: Sequence[Instruction]) -> None:
        """`parts`: an instruction, or a producer and its consumer; fusions stand for their bodies."""
        self._parts = parts
        self._computations = {p.fused_computation: p for p in parts if p.opcode == "fusion"}

    def holds(self, instruction: Instruction) -> bool:
        if instruction.computation in self._computations:
            return True
        return instruction.opcode != "fusion" and instruction in self._parts

    def resolve(self, instruction: Instruction) -> Instruction:
        """What stands behind a parameter, or behind a fusion that belongs to the kernel."""
        while True:
            if instruction.opcode == "parameter" and instruction.computation in self._computations:
                fusion = self._computations[instruction.computation]
                instruction = fusion.operands[instruction.parameter_number]
            elif instruction.opcode == "fusion" and instruction in self._parts:
                instruction = instruction.fused_root
            else:
                return instruction

    def operand(self, instruction: Instruction, number: int) -> Instruction:
        return self.resolve(instruction.operands[number])

    def users(self, instruction: Instruction) -> list[Instruction]:
        """Users inside the kernel, a root tuple not being one."""
        users: list[Instruction] = []
        pending = [(instruction, u) for u in instruction.users]
        fusion = (
            self._computations.get(instruction.computation) if instruction.computation is not None else None
        )
        if fusion is not None and instruction.is_root:
            pending += [(fusion, u) for u in fusion.users]
        for source, user in pending:
            if user.opcode == "tuple" and user.is_root:
                continue
            if user.opcode == "fusion" and user in self._parts:
                users += user.fused_computation.parameters[user.operands.index(source)].users
            elif self.holds(user):
                users.append(user)
        return [u for u in users if not (u.opcode == "tuple" and u.is_root)]

    def roots(self) -> list[Instruction]:
        last = self._parts[-1]
        outputs = [last] if last.opcode != "fusion" else [last.fused_root]
        if outputs[0].opcode == "tuple":
            outputs = list(outputs[0].operands)
        return [self.resolve(o) if o.opcode == "parameter" else o for o in outputs]
