"""A fusion, or a producer and a consumer as if they were fused, as one flat graph (`HloFusionAdaptor` in
`xla/hlo/utils/hlo_traversal.h`). Operations are numbered from the root in the order of a traversal over
operands. Views with equal keys have the same tilings, costs and refusals, whatever the names."""

from hlofuse.cost.gpu.kernel_graph import KernelGraph, leaves
from hlofuse.ir.graph import Instruction, Instructions
from .constraints import NotTiled
from .op_kinds import OpKind, OpKinds


class FusionView:
    """Operations (`kinds`, `operands`, `inside`) by number; the root with no users is number 0."""

    __slots__ = ("inside", "instructions", "key", "kinds", "operands", "roots")

    instructions: Instructions
    kinds: list[OpKind]
    operands: list[tuple[int, ...]]
    inside: list[bool]  # False for arrays that the fusion reads from memory
    roots: tuple[int, ...]  # The number of each output, -1 for one that the real root does not depend on
    key: tuple[object, ...]


class _Traversal(KernelGraph):
    def resolve(self, instruction: Instruction) -> Instruction:
        """The operand read through parameters and outputs of the parts."""
        while True:
            if instruction.is_get_tuple_element and instruction.operand.is_fusion:
                root = instruction.operand.fused_root
                if root.opcode == "tuple" and self.holds(root):
                    return root.operands[instruction.tuple_index]
            if not self.holds(instruction):
                inside = instruction.is_fusion and instruction.fused_computation in self.bodies
                return instruction.fused_root if inside else instruction
            if not instruction.is_parameter or instruction.computation not in self.bodies:
                return instruction
            instruction = self.bodies[instruction.computation].operands[instruction.parameter_number]

    def roots(self) -> Instructions:
        roots = _roots_of(self.parts[-1])
        if len(self.parts) == 1:
            return roots
        producer, consumer = self.parts
        for i, root in enumerate(roots):
            if root.is_parameter and consumer.is_fusion:
                operand, index = consumer.operands[root.parameter_number], 0
                if operand.is_get_tuple_element:
                    operand, index = operand.operand, operand.tuple_index
                if operand is producer:
                    roots[i] = _roots_of(producer)[index]
        return roots

    def outputs_used_elsewhere(self) -> Instructions:
        """Results of the producer with users other than the consumer."""
        producer, consumer = self.parts
        used = set()
        for user in producer.users:
            if user.is_get_tuple_element:
                if any(u is not consumer for u in user.users):
                    used.add(user.tuple_index)
            elif user is not consumer:
                used.add(0)
        return [r for i, r in enumerate(_roots_of(producer)) if i in used]

    def has_users(self, root: Instruction) -> bool:
        """True if an instruction inside reads it (`HloInstructionAdaptor::GetUsers`)."""
        for user in root.users:
            if self.holds(user) and not (user.opcode == "tuple" and user.is_root):
                return True
        if len(self.parts) == 1:
            return False
        producer, consumer = self.parts
        whole = not producer.is_fusion or not producer.is_multi_output_fusion
        inside = root is producer or self.bodies.get(root.computation) is producer  # type: ignore[arg-type]
        if not whole or not inside or producer not in consumer.operands:
            return False
        number = consumer.operands.index(producer)
        return not consumer.is_fusion or bool(consumer.fused_computation.parameters[number].users)


def _roots_of(part: Instruction) -> Instructions:
    return leaves(part.fused_root) if part.is_fusion else [part]


def view_of(kinds: OpKinds, *parts: Instruction, extra_outputs: bool = False) -> FusionView:
    """The view of a fusion, or of producer and consumer; `extra_outputs`: the producer's other results.
    Raises `NotTiled` for more than one output without users inside the fusion, or none."""
    traversal = _Traversal(parts)
    roots = traversal.roots()
    if extra_outputs:
        roots += [r for r in traversal.outputs_used_elsewhere() if not r.is_parameter]
    root = roots[0]
    if len(roots) > 1:
        final = [r for r in roots if not traversal.has_users(r)]
        if len(final) != 1:
            raise NotTiled(
                "Only simple multi-output fusions with one real root are supported but multiple roots were "
                "found."
                if final
                else "Each fusion should have at least one root without users but no root was found."
            )
        root = final[0]
    view = FusionView()
    view.instructions = instructions = [root]
    view.kinds, view.operands, view.inside = [], [], []
    numbers = {root: 0}
    key = []
    resolve = traversal.resolve
    position = 0
    while position < len(instructions):
        instruction = instructions[position]
        position += 1
        inside = traversal.holds(instruction)
        view.inside.append(inside)
        if not inside:
            kind = kinds.operand_kind(instruction)
            view.operands.append(())
            key.append(kind.number)
        else:
            kind = kinds.inside(instruction)
            own = []
            for operand in instruction.operands:
                target = resolve(operand)
                number = numbers.get(target)
                if number is None:
                    number = numbers[target] = len(instructions)
                    instructions.append(target)
                own.append(number)
            view.operands.append(tuple(own))
            key.append(kind.number)
            key += own
        view.kinds.append(kind)
    view.roots = tuple(numbers.get(r, -1) for r in roots)
    view.key = (view.roots, *key)
    return view
