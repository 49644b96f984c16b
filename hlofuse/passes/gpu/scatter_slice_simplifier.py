"""Scatters of which only the front is read, made smaller
(`xla/backends/gpu/transforms/scatter_slice_simplifier.cc`)."""

from collections.abc import Sequence

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.ir.attributes.window import SliceRange, SliceRanges
from hlofuse.ir.fusing import clone_of, computation_of
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass, replaced, visit_module
from hlofuse.passes.common import make
from hlofuse.passes.common.index_vectors import is_simplified_scatter
from hlofuse.passes.common.shapes import array
from hlofuse.trace import Recorder


class ScatterSliceSimplifier(Pass):
    """`scatter-slice-simplifier`, for results of `scatter_simplifier`, also read through
    elementwise operations."""

    name = "scatter-slice-simplifier"

    def run(self, module: Module, recorder: Recorder) -> bool:
        smaller: dict[Instruction, Instruction] = {}

        def handle(scatter: Instruction) -> bool:
            sizes = _sizes_read(scatter)
            if sizes is None:
                return False
            _replace_users(scatter, _cut(scatter, sizes), smaller)
            return True

        return visit_module(module, ["scatter"], handle, recorder)


def _sizes_read(scatter: Instruction) -> Sequence[int] | None:
    """The size read of each dimension; None unless all reads are slices from the start
    (`ScatterSliceMatcher::InferShape`)."""
    base, update = scatter.operands[0].shape.dimensions, scatter.operands[-1].shape.dimensions
    if not base or not is_simplified_scatter(scatter):
        return None
    read = list(base)
    seen: set[Instruction] = set()

    def cuts(slice_: Instruction) -> bool:
        for d, taken in enumerate(slice_.attributes["slice"]):
            if taken.start != 0 or taken.stride != 1:
                return False
            if taken.limit != read[d]:
                if read[d] != base[d] or update[d + 1] != 1:
                    return False
                read[d] = taken.limit
        return True

    def is_cut(x: Instruction) -> bool:
        """Slices finally, whichever path one takes."""
        for user in x.users:
            if user.opcode == "slice":
                if not cuts(user):
                    return False
            elif user not in seen:
                if not (is_elementwise(user) or user.opcode == "get-tuple-element") or not is_cut(user):
                    return False
                seen.add(user)
        return bool(x.users) or not x.is_root

    return read if is_cut(scatter) else None


def _slice_from_start(x: Instruction, sizes: Sequence[int]) -> Instruction:
    """`CreateSliceFrom`."""
    ranges = SliceRanges(SliceRange(0, n, 1) for n in sizes)
    shape = array(x.shape.element_type, sizes)
    return make.derived(x, "slice", shape, [x], slice=str(ranges))


def _cut(scatter: Instruction, sizes: Sequence[int]) -> Instruction:
    count = len(scatter.operands) // 2
    bases = [_slice_from_start(o, sizes) for o in scatter.operands[:count]]
    new = clone_of(scatter, [*bases, *scatter.operands[count:]], "scatter")
    shapes = [b.shape for b in bases]
    new.shape = Shape.tuple_of(shapes) if scatter.shape.is_tuple else shapes[0]
    return computation_of(scatter).add_instruction(new)


def _replace_users(old: Instruction, new: Instruction, smaller: dict[Instruction, Instruction]) -> None:
    """`ReplaceAllUsersRecursive`."""
    smaller[old] = new
    for user in list(old.users):
        if user.computation is None:
            continue
        if user.opcode == "slice":
            replaced(user, new)
            continue
        if user.opcode == "get-tuple-element":
            element = make.get_tuple_element(user, new, user.tuple_index)
        else:
            sizes = new.shape.dimensions
            operands = [smaller.get(o) or _slice_from_start(o, sizes) for o in user.operands]
            element = make.copy_of(user, operands, array(user.shape.element_type, sizes))
        _replace_users(user, element, smaller)
