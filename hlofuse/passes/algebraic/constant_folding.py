"""Operations on constants become constants (`xla/hlo/transforms/simplifiers/hlo_constant_folding.cc`)."""

from collections.abc import Hashable
from functools import partial

from hlofuse.ir import Instruction, Module, has_side_effect, remove_with_unused_operands, values, with_trait
from hlofuse.ir.literal import ELIDED
from hlofuse.ir.removing import is_dead
from hlofuse.matching.key import Keys
from hlofuse.passes.base import NotRepresentable, Pass, any_change
from hlofuse.passes.common import make
from hlofuse.passes.common.evaluation import CannotEvaluate, evaluate
from hlofuse.trace import Recorder

_NEVER = with_trait("not-folded")
_STAYS = values("parameter constant tuple")
_NOT_EVALUATED = values("conditional dot gather scatter")
_COMBINE = values("map reduce reduce-window scatter")


class HloConstantFolding(Pass):
    """`constant_folding`, as far as `evaluation` goes."""

    name = "constant_folding"

    def run(self, module: Module, recorder: Recorder) -> bool:
        visited = (i for c in reversed(module.non_fusion_computations()) for i in c.post_order())
        unknown = _UnknownElements()
        return any_change(
            i.computation is not None and _is_foldable(i) and not is_dead(i) and _fold(i, unknown, recorder)
            for i in visited
        )


def _is_foldable(i: Instruction) -> bool:
    if i.opcode in _NEVER or i.opcode in _STAYS or i.has_control_dependencies:
        return False
    if not _has_constant(i) or not all(map(_is_constant, i.operands)):
        return False
    if i.opcode in ("conditional", "sort", "call", "fusion"):
        return not any(x.opcode in _NEVER or x.called for c in i.called_computations for x in c)
    if i.called and i.opcode not in _COMBINE:
        return False
    if i.opcode == "pad" and i.operand.is_broadcast:
        return False
    return not has_side_effect(i)


def _has_constant(i: Instruction) -> bool:
    return any(o.is_constant or (o.opcode == "tuple" and _has_constant(o)) for o in i.operands)


def _is_constant(operand: Instruction) -> bool:
    """A constant, a broadcast of one, or a counter; or a tuple of such."""
    if operand.opcode == "tuple":
        return all(map(_is_constant, operand.operands))
    if operand.is_broadcast:
        return operand.operand.is_constant
    return operand.opcode in ("constant", "iota")


MOST_FOLDED = 45_000_000  # XLA folds nothing with more elements than that (`kMaximumConstantSizeElements`)


class _UnknownElements:
    """Constants whose elements the dump leaves out because those of an operand are not known, either. XLA
    merges the equal ones; no text shows which are, so the results of equal operations are one constant."""

    def __init__(self) -> None:
        self._keys = Keys()
        self._results = dict[Hashable, Instruction]()

    def result(self, i: Instruction) -> Instruction | None:
        """The constant in place of `i`; None where `i` stays."""
        source = i.operand
        if i.is_get_tuple_element and source.opcode == "tuple":
            source = source.operands[i.tuple_index]
            return source if _is_elided(source) else None
        if not any(map(_is_elided, i.operands)) or not all(s.rank for s in i.shape.results):
            return None  # no text leaves out the element of a scalar
        given = sum(o.element_count for o in i.operands)
        if max(given, *(s.element_count for s in i.shape.results)) > MOST_FOLDED:
            return None
        key = (i.computation, self._key(i))
        result = self._results.get(key)
        if result is None or result.computation is None:
            constants = [make.add(i, "constant", shape, payload=ELIDED) for shape in i.shape.results]
            result = self._results[key] = make.result_of(i, constants)
        return result

    def _key(self, x: Instruction) -> Hashable:
        if x.is_constant:
            return x if _is_elided(x) else (x.shape.key, x.literal.canonical_text)
        return (self._keys.instruction(x, layouts=True), *map(self._key, x.operands))


def _is_elided(operand: Instruction) -> bool:
    return operand.is_constant and operand.literal.is_elided


def _fold(i: Instruction, unknown: _UnknownElements, recorder: Recorder) -> bool:
    try:
        constant = unknown.result(i)
        if constant is None:
            constants = map(partial(make.constant, i), i.shape.results, evaluate(i))
            constant = make.result_of(i, list(constants))
    except (CannotEvaluate, NotRepresentable):
        if i.opcode in _NOT_EVALUATED:
            recorder.skipped(i, "its value, which XLA computes, is not computed here")
        return False
    i.replace_all_uses_with(constant)
    remove_with_unused_operands(i)
    return True
