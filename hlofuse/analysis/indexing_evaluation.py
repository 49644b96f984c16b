"""Evaluations of an operand's elements inside a fusion (`FusionNodeIndexingEvaluation`). XLA's emitters
compute an element once for each index under which it is requested. An operation that changes the index starts
a new count; one that keeps it passes on the counts of its users."""

from hlofuse.ir.graph import Instruction
from hlofuse.ir.opcodes import values

# The emitter forgets what it has computed when it meets one of these (`OpInvalidatesCache`).
INVALIDATES_CACHE = values("concatenate dot dynamic-update-slice pad reduce reduce-window")


class IndexingEvaluation:
    """The counts of one fusion, kept up to date as producers are fused."""

    def __init__(self, fusion: Instruction) -> None:
        self._fusion = fusion
        self._users: dict[Instruction, set[Instruction]] = {self._operand_of(fusion.fused_root): {fusion}}
        self._count: dict[Instruction, int] = {fusion: 1}
        for inner in reversed(fusion.fused_computation.post_order()):
            if not inner.is_parameter:
                self._enter(inner)

    def emitted(self, operand: Instruction) -> int:
        """Times an element of this operand of the fusion would be computed if it were fused."""
        return sum(self._count[user] for user in self._users.get(operand, ()))

    def take_in(self, operand: Instruction, clone: Instruction) -> None:
        """An operand's clone is now inside (`RemoveFusionOperand`, `UpdateEvaluationCache`)."""
        self._users[clone] = self._users.pop(operand, set())
        self._enter(clone)

    def _enter(self, inner: Instruction) -> None:
        users = self._users.setdefault(inner, set())
        self._count[inner] = sum(self._count[user] for user in users)
        transpose = inner.is_transpose
        key = inner.shape.key_ignoring_element_type
        for operand in inner.operands:
            indexing = self._users.setdefault(self._operand_of(operand), set())
            if transpose or operand.shape.key_ignoring_element_type == key:
                indexing |= users
            else:
                indexing.add(inner)

    def _operand_of(self, inner: Instruction) -> Instruction:
        """The fusion's operand for a parameter, since parameters are replaced while it stays."""
        return self._fusion.operands[inner.parameter_number] if inner.is_parameter else inner


def code_duplication(
    evaluation: IndexingEvaluation, producer: Instruction, limit: float, counted: dict[Instruction, int]
) -> dict[str, int] | None:
    """The figures, if it copies too much code (`CodeDuplicationTooHigh`); `counted` uses, which get more."""
    if producer.is_broadcast:
        return None
    emitted = evaluation.emitted(producer)
    if producer.opcode not in INVALIDATES_CACHE:
        return {"emitted": emitted} if emitted > limit else None
    uses = counted.get(producer)
    if uses is None:
        uses = counted[producer] = sum(
            len(user.parameter_of(producer).users) if user.is_fusion else 1 for user in producer.users
        )
    return {"emitted": emitted, "uses": uses} if emitted > min(limit, 1) or uses > 1 else None
