"""The in-place rule where the producer slices the buffer that a dynamic-update-slice overwrites.

It is safe when exactly the elements are read that are then overwritten.
"""

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.ir.graph import Instruction
from hlofuse.rules.catalogue import essential
from hlofuse.rules.verdict import Verdict

SLICE_SHAPE = essential(
    "IF014",
    "The slice has another shape than the update",
    message="Slice op has a different shape than the update shape of the dus op, bailing.",
)
SLICE_INDEX = essential(
    "IF015", "The slice starts elsewhere than the update", message="DUS and slice index mismatch"
)
SLICE_OTHER_USE = essential(
    "IF016",
    "Something else in the consumer also reads the slice in a non-elementwise way",
    message="Fusing slice into DUS will also fuse another non-elementwise op with shared operand as DUS.",
)
DYNAMIC_SLICE_SHAPE = essential(
    "IF017",
    "The dynamic-slice has another shape than the update",
    message="Dynamic slice op has a different shape than the update shape of the dus op, bailing.",
)
DYNAMIC_SLICE_INDEX = essential(
    "IF018",
    "The dynamic-slice is taken at other indices than the update",
    message="DUS and DS index mismatch",
)
DYNAMIC_SLICE_OTHER_USE = essential(
    "IF019",
    "Something else in the consumer also reads the dynamic-slice in a non-elementwise way",
    message="Fusing DS into DUS will also fuse another non-elementwise op with shared operand as DUS.",
)


def slice_matches_update(
    producer: Instruction, consumer: Instruction, slice_: Instruction, update: Instruction
) -> Verdict | None:
    """`slice_` is the slice in the producer, `update` the dynamic-update-slice in the consumer."""
    figures = {"slice_shape": str(slice_.shape), "update_shape": str(update.operands[1].shape)}
    if slice_.shape.key != update.operands[1].shape.key:
        return Verdict(SLICE_SHAPE, figures)
    for dimension, taken in enumerate(slice_.attributes["slice"]):
        index = _integer(_seen_through(consumer, update.operands[2 + dimension]))
        if index is None or index != taken.start or taken.stride != 1:
            found = {"dimension": dimension, "slice_start": taken.start, "update_start": index}
            return Verdict(SLICE_INDEX, found)
    if consumer.opcode == "fusion" and not _safe(producer, consumer, update):
        return Verdict(SLICE_OTHER_USE)
    return None


def dynamic_slice_matches_update(
    producer: Instruction, consumer: Instruction, slice_: Instruction, update: Instruction
) -> Verdict | None:
    """`slice_` is the dynamic-slice in the producer, `update` the dynamic-update-slice in the consumer."""
    figures = {"slice_shape": str(slice_.shape), "update_shape": str(update.operands[1].shape)}
    if slice_.shape.key != update.operands[1].shape.key:
        return Verdict(DYNAMIC_SLICE_SHAPE, figures)
    for dimension in range(update.shape.rank):
        a = _seen_through(producer, slice_.operands[1 + dimension])
        b = _seen_through(consumer, update.operands[2 + dimension])
        x, y = _integer(a), _integer(b)
        if x != y or (x is None and a is not b):
            return Verdict(
                DYNAMIC_SLICE_INDEX, {"dimension": dimension, "slice_start": a.name, "update_start": b.name}
            )
    if consumer.opcode == "fusion" and not _safe(producer, consumer, update):
        return Verdict(DYNAMIC_SLICE_OTHER_USE)
    return None


def _seen_through(outer: Instruction, operand: Instruction) -> Instruction:
    """The operand of the fusion behind one of its parameters."""
    if outer.opcode == "fusion" and operand.opcode == "parameter":
        return outer.operands[operand.parameter_number]
    return operand


def _integer(instruction: Instruction) -> int | None:
    """The value of an integer constant (`GetFirstInteger`)."""
    if instruction.opcode != "constant":
        return None
    value = instruction.literal.scalar
    return int(value) if isinstance(value, int) else None


def _safe(producer: Instruction, consumer: Instruction, update: Instruction) -> bool:
    """Nothing but elementwise operations and the update follows the producer's value inside the consumer."""
    body = consumer.fused_computation
    pending = [body.parameters[k] for k, o in enumerate(consumer.operands) if o is producer]
    seen: set[Instruction] = set()
    while pending:
        x = pending.pop()
        if x in seen:
            continue
        seen.add(x)
        if x is not update and x.opcode != "parameter" and not is_elementwise(x):
            return False
        pending += x.users
    return True
