"""Operations on pieces become one on the whole (`xla/hlo/transforms/simplifiers/slice_sinker.cc`)."""

from __future__ import annotations

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.analysis.structural_key import StructuralKeys
from hlofuse.ir.graph import Instruction, Module
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.trace import Recorder


class SliceSinker(Pass):
    """`slice-sinker`: where the pieces together have no fewer elements than the whole."""

    name = "slice-sinker"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in list(module.computations):
            for i in computation.post_order():
                # What has been replaced is used by nobody.
                if i.operands and i.users and is_elementwise(i) and _of_like_slices(i):
                    group = _group(i)
                    if sum(x.shape.element_count for x in group) >= _source(i, 0).shape.element_count:
                        _sink(group, [o.operands[0] for o in i.operands])
                        changed = True
        return changed


def _source(i: Instruction, number: int) -> Instruction:
    """What the operand, a slice, is taken from."""
    return i.operands[number].operands[0]


def _of_like_slices(i: Instruction) -> bool:
    """`IsElementwiseOperationOnSimilarSlices`."""
    if any(o.opcode != "slice" for o in i.operands):
        return False
    first = i.operands[0]
    return all(
        o.attributes["slice"] == first.attributes["slice"]
        and o.operands[0].shape.dimensions == first.operands[0].shape.dimensions
        for o in i.operands
    )


def _group(i: Instruction) -> list[Instruction]:
    """The same operation on pieces of the same arrays (`FindElementwiseOperationGroup`)."""
    keys = StructuralKeys()
    wanted = keys.of_operation(i)
    return [
        user
        for slice_ in _source(i, 0).users
        if slice_.opcode == "slice"
        for user in slice_.users
        if user.users and keys.of_operation(user) == wanted and _is_similar(i, user)
    ]


def _is_similar(i: Instruction, candidate: Instruction) -> bool:
    """`IsSimilarOperationOnSlices`, the operation apart."""
    if candidate.shape.element_type != i.shape.element_type:
        return False
    first = candidate.operands[0]
    return all(
        o.opcode == "slice"
        and o.operands[0] is _source(i, k)
        and o.attributes["slice"] == first.attributes["slice"]
        for k, o in enumerate(candidate.operands)
    )


def _sink(group: list[Instruction], sources: list[Instruction]) -> None:
    shape = sources[0].shape.with_element_type(group[0].shape.element_type)
    whole = make.copy_of(group[0], sources, shape)
    for user in group:
        user.replace_all_uses_with(make.copy_of(user.operands[0], [whole], user.shape))
