"""The operands that an instruction overwrites (`AliasInfo::GetInPlaceInputOutputPairs`)."""

from enum import IntEnum
from typing import TypeAlias

from msgspec import Struct

from hlofuse.ir.attributes.metadata import OutputAlias
from hlofuse.ir.graph import Instruction
from hlofuse.ir.opcodes import values
from hlofuse.releases import Release
from .elementwise import ELEMENTWISE_OPCODES, is_elementwise


class Use(IntEnum):
    """Kind of a read; the smaller is the stronger statement (`UseKind`)."""

    REUSE = 0
    USE = 1
    NO_USE = 2


_EACH_ONCE = values("bitcast concatenate reshape reverse slice transpose gather")


def operand_use(instruction: Instruction, number: int) -> Use:
    """The kind of read of the operand at `number` (`OperandElementUse`)."""
    opcode = instruction.opcode
    if opcode in _EACH_ONCE:
        return Use.USE
    if opcode == "pad":
        return Use.REUSE if number > 0 else Use.USE
    if opcode == "reduce":
        return Use.REUSE if number >= instruction.operand_count // 2 else Use.USE
    if opcode == "fusion":
        return _use_of_parameter(number, instruction.fused_root, {})
    if opcode == "dot":
        # A matrix-vector product reads the matrix once.
        others = [o.rank <= 1 for o in instruction.operands[:2]]
        return Use.USE if instruction.rank <= 1 and number < 2 and others[1 - number] else Use.REUSE
    if opcode == "dynamic-update-slice":
        return Use.USE if number < 2 else Use.REUSE
    return Use.USE if is_elementwise(instruction) else Use.REUSE


def _use_of_parameter(number: int, root: Instruction, uses: dict[Instruction, Use]) -> Use:
    """The strongest use on any path from `root` to the parameter (`FusionReusesParamElements`)."""
    if root.is_parameter and root.parameter_number == number:
        return Use.USE
    # Iterative: fusions can be deep. A frame is an instruction and its next operand.
    uses[root] = Use.NO_USE
    stack = [(root, 0)]
    while stack:
        instruction, k = stack.pop()
        while k < instruction.operand_count and uses[instruction] != Use.REUSE:
            operand = instruction.operands[k]
            if operand.is_parameter and operand.parameter_number == number:
                value = Use.USE
            elif operand in uses:
                value = uses[operand]
            else:
                uses[operand] = Use.NO_USE
                stack += [(instruction, k), (operand, 0)]
                break
            if value != Use.NO_USE:
                own = operand_use(instruction, k)
                if own != Use.NO_USE:
                    uses[instruction] = min(uses[instruction], own, value)
            k += 1
    return uses[root]


class ReusedOperands(Struct, eq=False):
    """The reused operands of each consumer, worked out once and carried along by fusions. XLA does not
    recompute them after a fusion, and the difference shows in its decisions. Mirrors
    `InstructionFusion::ReusedOperandsOf` and `UpdateReusedOperandsForFusion`."""

    _of: dict[Instruction, set[Instruction]] = {}

    def of(self, consumer: Instruction) -> set[Instruction]:
        """The operands `consumer` reads more than once."""
        reused = self._of.get(consumer)
        if reused is None:
            operands = enumerate(consumer.operands)
            reused = {o for k, o in operands if operand_use(consumer, k) == Use.REUSE}
            self._of[consumer] = reused
        return reused

    def fused(self, producer: Instruction, fusion: Instruction) -> None:
        """`producer` is about to go into `fusion`."""
        reused = self.of(fusion)
        if producer in reused:
            reused.discard(producer)
            reused.update(producer.operands)
        else:
            reused |= self.of(producer)


# Elements of tuples, and their sources (`FollowTupleIndirection`, `FollowNoOpIndirection`).

Index = tuple[int, ...]  # A path into a nested tuple (`ShapeIndex`)


def follow_tuples(instruction: Instruction, index: Index) -> tuple[Instruction, Index]:
    """The source of the element at `index`: through tuples first, then get-tuple-elements."""
    while instruction.opcode == "tuple" and index:
        instruction, index = instruction.operands[index[0]], index[1:]
    while instruction.is_get_tuple_element:
        instruction, index = instruction.operand, (instruction.tuple_index, *index)
    return instruction, index


def follow_tuples_and_bitcasts(instruction: Instruction, index: Index) -> tuple[Instruction, Index]:
    """The same, then through any number of bitcasts of a whole array."""
    instruction, index = follow_tuples(instruction, index)
    while not index and instruction.is_bitcast:
        instruction = instruction.operand
    return instruction, index


_NEVER = ELEMENTWISE_OPCODES | {"broadcast", "concatenate", "constant", "reduce", "slice", "transpose"}
InPlacePair: TypeAlias = OutputAlias  # An operand (or an element of it) and the output that shares its buffer


def in_place_pairs(instruction: Instruction, release: Release) -> list[InPlacePair]:
    opcode = instruction.opcode
    if opcode in _NEVER:
        return []
    if opcode == "fusion":
        return [*_fusion_pairs(instruction, release), *_declared_pairs(instruction)]
    if opcode in ("dynamic-update-slice", "set-dimension-size"):
        return [InPlacePair((), 0, ())]
    if opcode in ("scatter", "all-reduce-start"):
        count = (instruction.operand_count - 1) // 2 if opcode == "scatter" else instruction.operand_count
        return [InPlacePair((k,) if count > 1 else (), k, ()) for k in range(count)]
    if opcode in ("custom-call", "async-start"):
        return [*_declared_pairs(instruction)]
    if opcode == "ragged-all-to-all":
        return [InPlacePair((), 1, ())]
    if opcode.startswith("collective-permute") and instruction.raw("slice_sizes"):
        output: Index = (1,) if opcode.endswith("start") else ()
        elements = range(instruction.second.tuple_size)
        return [InPlacePair(output, 1, ()), *(InPlacePair((*output, k), 1, (k,)) for k in elements)]
    return []


def never_in_place(instruction: Instruction) -> bool:
    """It has no such pairs, nor will it whatever is fused into it: what it ends in overwrites nothing."""
    fusion = instruction.is_fusion
    last = instruction.fused_root if fusion else instruction
    return (
        last.opcode in _NEVER
        and instruction.is_array
        and not (fusion and instruction.raw("output_to_operand_aliasing"))
    )


def _declared_pairs(instruction: Instruction) -> tuple[InPlacePair, ...]:
    found: tuple[InPlacePair, ...] = instruction.attributes.get("output_to_operand_aliasing", ())
    return found


def _fusion_pairs(fusion: Instruction, release: Release) -> list[InPlacePair]:
    """Pairs found inside: an output whose source works in place on a parameter."""
    if fusion.fused_root.opcode in _NEVER and fusion.is_array:
        return []
    follow = follow_tuples_and_bitcasts if release.in_place_through_bitcasts else follow_tuples
    pairs = []
    for output_index, _ in fusion.shape.leaves():
        source, source_index = follow(fusion.fused_root, output_index)
        # Declared pairs of a nested fusion do not count as the source's own.
        own = _fusion_pairs(source, release) if source.is_fusion else in_place_pairs(source, release)
        found: tuple[Instruction, Index] | None = None
        for pair in own:
            if pair.output_index != source_index:
                continue
            found = follow(source.operands[pair.operand_number], pair.operand_index)
            if found[0].is_fusion:
                for nested in in_place_pairs(found[0], release):
                    if nested.output_index == found[1]:
                        found = follow(found[0].operands[nested.operand_number], nested.operand_index)
                        break
        if found is not None and not release.in_place_through_bitcasts and found[0].is_bitcast:
            found = (found[0].operand, found[1])
        if found is not None and found[0].is_parameter:
            pairs.append(InPlacePair(output_index, found[0].parameter_number, found[1]))
    return pairs
