"""Merges equal constants and equal operations (`xla/service/hlo_cse.cc`)."""

from collections.abc import Hashable

from msgspec import Struct

from hlofuse.analysis.elementwise import is_fusion_body
from hlofuse.ir import Computation, Instruction, Instructions, Module, with_trait
from hlofuse.ir.fusing import set_tuple_index
from hlofuse.ir.removing import has_side_effect, is_dead, is_safely_removable, remove_with_unused_operands
from hlofuse.matching.key import Keys
from hlofuse.rules.catalogue import Rule
from hlofuse.rules.rewrites import EQUAL_CONSTANTS, EQUAL_INSTRUCTIONS, EQUAL_IOTAS, EQUAL_OUTPUTS
from hlofuse.trace import Recorder
from .base import ReleasePass

COMMUTATIVE_OPCODES = with_trait("commutative")


class HloCSE(ReleasePass, kw_only=True):
    """`cse`; after fusion XLA runs it on the bodies of fusions only."""

    name = "cse"
    layout_sensitive: bool = True
    only_fusion_computations: bool = True

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed, keys = False, Keys()
        for computation in list(module.computations):
            if not self.only_fusion_computations or is_fusion_body(computation, self.release):
                changed |= _OneComputation(self, computation, recorder, keys).run()
                keys.forget(computation)
        return changed


class _OneComputation(Struct):
    _options: HloCSE
    _computation: Computation
    _recorder: Recorder
    _keys: Keys
    _key_of: dict[Instruction, Hashable] = {}

    def run(self) -> bool:
        changed = self._combine_constants()
        changed |= self._combine_instructions()
        self._point_to_first_outputs()
        return changed

    def _combine_instructions(self) -> bool:
        changed = False
        firsts, equals = dict[Hashable, Instruction](), dict[Hashable, Instructions]()
        for instruction in self._computation.post_order():
            if instruction.computation is None or not _may_be_considered(instruction):
                continue
            # Equal for any two that are the same, and cheap to compute.
            operands = frozenset([o for o in instruction.operands if o.opcode != "iota"])
            # Large bodies with the same inputs differ near their results, where it costs nothing to look.
            inside = [o.opcode for o in instruction.fused_root.operands] if instruction.is_fusion else ()
            look = (instruction.opcode, instruction.sizes, operands, tuple(inside))
            first = firsts.setdefault(look, instruction)
            if first is not instruction:
                equals.setdefault((look, self._key(first)), [first])
                candidates = equals.setdefault((look, self._key(instruction)), [])
                duplicate = _duplicate_of(instruction, candidates)
                if duplicate is not None:
                    name = instruction.name
                    instruction.replace_all_uses_with(duplicate)
                    remove_with_unused_operands(instruction)
                    self._record(EQUAL_INSTRUCTIONS, name, duplicate)
                    changed = True
                    continue
                candidates.append(instruction)
            if instruction.operand_count > 1:
                changed |= self._combine_iotas(instruction)
        return changed

    def _combine_constants(self) -> bool:
        changed = False
        seen: dict[Hashable, Instruction] = {}
        for constant in [x for x in self._computation if x.is_constant]:
            if constant.literal.is_elided:
                continue
            first = seen.setdefault((self._shape_key(constant), constant.literal.canonical_text), constant)
            if first is constant or not is_safely_removable(constant):
                continue
            name = constant.name
            constant.replace_all_uses_with(first)
            self._computation.remove_instruction(constant)
            self._record(EQUAL_CONSTANTS, name, first)
            changed = True
        return changed

    def _combine_iotas(self, instruction: Instruction) -> bool:
        changed = False
        operands = instruction.operands
        for i, first in enumerate(operands):
            if first.opcode != "iota" or not _is_considered(instruction):
                continue
            for j in range(i + 1, len(operands)):
                other = operands[j]
                if other is first or self._operand_key(other) != self._operand_key(first):
                    continue
                name = other.name
                instruction.replace_operand(j, first)
                if is_dead(other):
                    self._computation.remove_instruction(other)
                self._record(EQUAL_IOTAS, name, first)
                changed = True
        return changed

    def _point_to_first_outputs(self) -> None:
        fusion, root = self._computation.fusion, self._computation.root
        if fusion is None or root.opcode != "tuple":
            return
        first: dict[Instruction, int] = {}
        for index, output in enumerate(root.operands):
            first.setdefault(output, index)
        if len(first) == root.operand_count:
            return
        for user in fusion.users:
            if user.is_get_tuple_element:
                index = first[root.operands[user.tuple_index]]
                if index != user.tuple_index:
                    set_tuple_index(user, index)
                    self._record(EQUAL_OUTPUTS, user.name, user)

    def _key(self, instruction: Instruction) -> Hashable:
        cached_key = self._key_of.get(instruction)
        if cached_key is None:
            cached_key = self._key_of[instruction] = self._rekey(instruction)
        return cached_key

    def _rekey(self, instruction: Instruction) -> Hashable:
        operands = [self._operand_key(o) for o in instruction.operands]
        shardy = None
        if self._options.release.compares_shardy:  # its sharding (`kShardingFrontendAttrName`)
            shardy = instruction.frontend_attributes.get("xla.sdy.sharding")
        what = (self._keys.instruction(instruction, layouts=self._options.layout_sensitive), shardy)
        if instruction.opcode in COMMUTATIVE_OPCODES:
            return (what, frozenset(operands))
        return (what, tuple(operands))

    def _operand_key(self, operand: Instruction) -> Hashable:
        # Iotas of one shape and dimension are as good as one.
        if operand.opcode == "iota":
            return ("iota", self._shape_key(operand), operand.raw("iota_dimension"))
        return operand

    def _shape_key(self, instruction: Instruction) -> Hashable:
        shape = instruction.shape
        return shape.key if self._options.layout_sensitive else shape.key_ignoring_layout

    def _record(self, rule: Rule, removed: str, survivor: Instruction) -> None:
        self._recorder.apply(rule, self._computation.name, [removed], [survivor])


def _duplicate_of(instruction: Instruction, candidates: Instructions) -> Instruction | None:
    """The first of these equal ones that may take the place of the instruction."""
    if not _is_considered(instruction):
        return None
    return next((o for o in candidates if _shardings_agree(o, instruction) and _is_considered(o)), None)


def _may_be_considered(instruction: Instruction) -> bool:
    """Has operands, is a partition's number or says that it may be merged."""
    if instruction.operands or instruction.opcode in ("partition-id", "replica-id"):
        return True
    return "_xla_cse_safe_zero_operand" in (instruction.raw("frontend_attributes") or "")


def _is_considered(instruction: Instruction) -> bool:
    """It may go, too (`ShouldEliminateInstruction`)."""
    return (
        _may_be_considered(instruction)
        and not has_side_effect(instruction)
        and is_safely_removable(instruction)
    )


def _shardings_agree(a: Instruction, b: Instruction) -> bool:
    x, y = a.raw("sharding"), b.raw("sharding")
    return x is None or y is None or x == y
