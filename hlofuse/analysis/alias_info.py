"""Operands that may share the buffer of a result (`xla/hlo/analysis/alias_info.cc`)."""

import re
from typing import TYPE_CHECKING

from hlofuse.ir import Instruction, reach, with_trait
from hlofuse.releases import Release
from .elementwise import is_elementwise_on_operand
from .hlo_value import Index, subshape_at
from .in_place import InPlacePair, in_place_pairs

if TYPE_CHECKING:
    from .hlo_dataflow import HloDataflow

_GROUP, _NUMBER = re.compile(r'"indices":\[([^\]]*)'), re.compile(r"\d{1,9}")
_MAY_BE_IN_PLACE = with_trait("may-be-in-place")


class AliasInfo:
    """The rules of every backend; XLA:CPU adds none."""

    def __init__(self, release: Release) -> None:
        self._release = release
        self._of_fusions = dict[Instruction, list[InPlacePair]]()

    def may_be_in_place(self, x: Instruction) -> bool:
        """True if `in_place_pairs` may find something."""
        return x.opcode in _MAY_BE_IN_PLACE

    def in_place_pairs(self, x: Instruction) -> list[InPlacePair]:
        """Operands that are overwritten with a result (`GetInPlaceInputOutputPairs`)."""
        if not x.is_fusion:
            return in_place_pairs(x, self._release) if x.opcode in _MAY_BE_IN_PLACE else []
        pairs = self._of_fusions.get(x)
        if pairs is None:
            pairs = self._of_fusions[x] = in_place_pairs(x, self._release)
        return pairs

    def may_alias(
        self, operand: Instruction, operand_index: Index, user: Instruction, user_index: Index
    ) -> bool | None:
        """The backend's own answer; None where the common rules decide (`MayAlias`). XLA:TPU writes it into a
        kernel: groups of leaves that share a place, counted over the operands and then the result."""
        _, has_own, text = (user.raw("backend_config") or "").partition('"aliasing_operands"')
        if not has_own:
            return None
        values = (*user.operands, user)
        leaves = dict(enumerate((x, index) for x in values for index, _ in x.shape.leaves()))
        pair = {(operand, operand_index), (user, user_index)}
        groups = map(_NUMBER.findall, _GROUP.findall(text))
        return any(pair <= {leaves.get(int(n)) for n in group} for group in groups)

    def can_share(
        self,
        dataflow: "HloDataflow",
        operand: Instruction,
        operand_index: Index,
        user: Instruction,
        user_index: Index,
    ) -> bool:
        """True if the result may be written into the operand's buffer (`CanShareOperandBufferWithUser`)."""
        if operand.is_constant or operand not in user.operands:
            return False
        equal = subshape_at(operand.shape, operand_index).key == subshape_at(user.shape, user_index).key
        if equal and self._is_updated(dataflow, operand, operand_index, user, user_index):
            return True
        own = self.may_alias(operand, operand_index, user, user_index)
        if own is not None or not equal:
            return bool(own)
        if user.fusion_kind in ("kLoop", "kInput"):
            return _only_elementwise(user.parameter_of(operand))
        if user.fusion_kind == "kOutput" and user.fused_root.opcode == "add":
            return _is_added_last(user, user.operands.index(operand))
        return _may_overwrite(dataflow, operand, operand_index, user, user_index)

    def _is_updated(
        self,
        dataflow: "HloDataflow",
        operand: Instruction,
        operand_index: Index,
        user: Instruction,
        user_index: Index,
    ) -> bool:
        pairs = [p for p in self.in_place_pairs(user) if p.output_index == user_index]
        value = dataflow.value_at(operand, operand_index) if pairs else None
        if value is None:
            return False
        used = {(u.operand_number, u.operand_index) for u in value.uses if u.instruction is user}
        return any((p.operand_number, p.operand_index) in used for p in pairs)


def _only_elementwise(start: Instruction) -> bool:
    """True if only elementwise operations and tuples follow (`AreTransitiveUsesElementwiseOrTuple`)."""
    return all(
        user.opcode == "tuple"
        or all(is_elementwise_on_operand(user, k) for k, o in enumerate(user.operands) if o is x)
        for x in reach([start], lambda x: x.users)
        for user in x.users
    )


def _is_added_last(fusion: Instruction, number: int) -> bool:
    """True if the parameter is only the other summand of a dot or a convolution."""
    add, parameter = fusion.fused_root, fusion.fused_computation.parameters[number]
    product = next((o for o in add.operands if o.opcode in ("convolution", "dot")), None)
    if product is None:
        return False
    other = 1 if product is add.operand else 0
    return parameter.users == [add] and [o is parameter for o in add.operands] == [other == 0, other == 1]


def _may_overwrite(
    dataflow: "HloDataflow", operand: Instruction, operand_index: Index, user: Instruction, user_index: Index
) -> bool:
    """The rule of the opcode, for equal shapes."""
    opcode = user.opcode
    if opcode in ("while", "conditional"):
        return True
    numbers = [k for k, o in enumerate(user.operands) if o is operand]
    if opcode in ("dynamic-update-slice", "scatter", "triangular-solve", "set-dimension-size"):
        return numbers == [1 if opcode == "triangular-solve" else 0]
    if opcode == "sort":
        if operand.user_count != 1:
            return False
        return user.operand_count == 1 or (bool(user_index) and numbers == [user_index[0]])
    if opcode == "call":
        value = dataflow.value_at(operand, operand_index)
        root = user.to_apply.root
        uses = value.uses if value is not None else ()
        return (
            len(uses) == 2
            and any(u.instruction is user for u in uses)
            and any(u.instruction is root and is_elementwise_on_operand(root, u.operand_number) for u in uses)
        )
    return is_elementwise_on_operand(user, numbers[0])
