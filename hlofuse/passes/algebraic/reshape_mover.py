"""Reshapes and transposes move after elementwise operations (`reshape_mover.cc`)."""

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir import Instruction, Instructions, Module, replace_instruction, values
from hlofuse.matching.key import Keys
from hlofuse.passes.base import Pass, ReleasePass, VisitPass, replaced
from hlofuse.passes.common import make
from hlofuse.passes.common.shapes import (
    is_identity,
    is_sorted,
    others,
    unmodified_by_reshape,
    without,
    without_ones,
)
from hlofuse.releases import Release
from hlofuse.trace import Recorder


class ReshapeMover(ReleasePass):
    name = "reshape-mover"
    reshape_of_1d_broadcast_is_cheap: bool = False

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in module.non_fusion_computations():
            candidates = {i: None for i in computation if self._is_candidate(i)}
            _keep_closed(candidates)
            while candidates:
                changed = True
                moved = [self._sink(i) for i in candidates]
                users = [u for m in moved for u in m.users if self.release.moves_reshapes_on]
                candidates = {u: None for u in users if self._is_candidate(u)}
                _keep_closed(candidates)
        return changed

    def _is_candidate(self, i: Instruction) -> bool:
        if not is_elementwise(i):
            return False
        first = self._first_to_move(i)
        if first is None:
            return False
        return all(
            _are_equivalent(o, first) if _is_rearrangement(o) else self._is_trivial(o, first)
            for o in i.operands
        )

    def _first_to_move(self, i: Instruction) -> Instruction | None:
        """`FirstNontrivialRearrange`."""
        for o in i.operands:
            if _is_rearrangement(o) and not self._is_trivial(o.operand, o):
                return o
        return None

    def _is_trivial(self, x: Instruction, rearrangement: Instruction) -> bool:
        """True if `x` can have the shape that `rearrangement` starts from (`CanTriviallyRearrange`)."""
        source = rearrangement.operand.shape
        reshapes = rearrangement.is_reshape
        if reshapes and rearrangement.shape.key == source.key:
            return True
        if not reshapes and is_identity(rearrangement.dimensions):
            return True
        if x.is_constant or (x.opcode == "rng" and x.user_count == 1):
            return True
        if not x.is_broadcast or not is_sorted(x.dimensions):
            return False
        if not reshapes:
            return is_sorted([rearrangement.dimensions[d] for d in x.dimensions])
        inner = x.operand.shape
        if not inner.dimensions:
            return True
        return self.reshape_of_1d_broadcast_is_cheap and (
            inner.true_rank <= 1
            or unmodified_by_reshape(rearrangement.shape, source, x.dimensions) is not None
        )

    def _sink(self, i: Instruction) -> Instruction:
        first = self._first_to_move(i)
        assert first is not None
        operands = [_undone(first, o, self.release) for o in i.operands]
        small = first.operand.shape.with_element_type(i.element_type)
        new = make.copy_of(i, operands, small, sharding=None)
        if first.is_reshape:
            moved = make.reshape(i, i.shape, new)
        else:
            moved = make.add(i, "transpose", i.shape, [new], dimensions=first.dimensions)
        replace_instruction(i, moved)
        return moved


def _is_rearrangement(x: Instruction) -> bool:
    return x.opcode in ("reshape", "transpose")


def _are_equivalent(a: Instruction, b: Instruction) -> bool:
    """`AreEquivalentRearranges`."""
    if a.opcode != b.opcode or a.sizes != b.sizes:
        return False
    if a.is_transpose:
        return a.dimensions == b.dimensions
    return a.operand.sizes == b.operand.sizes


def _keep_closed(candidates: dict[Instruction, None]) -> None:
    """A rearrangement moves only if all who read it are candidates (`TryReshapeMoveOnCandidates`)."""
    removed = True
    while candidates and removed:
        removed = False
        moved = {o: None for i in candidates for o in i.operands if _is_rearrangement(o)}
        for o in sorted(moved, key=lambda x: x.id):
            if any(u not in candidates for u in o.users):
                for u in o.users:
                    if u in candidates:
                        del candidates[u]
                        removed = True


def _undone(rearrangement: Instruction, operand: Instruction, release: Release) -> Instruction:
    """`operand` as it was ahead of `rearrangement` (`ApplyInverseRearrange`)."""
    if rearrangement.is_transpose:
        if is_identity(rearrangement.dimensions):
            return operand
        return make.transpose(operand, operand, inverse(rearrangement.dimensions))
    shape = rearrangement.operand.shape.with_element_type(operand.element_type)
    if operand.shape.key == shape.key:
        return operand
    undoes = release.undoes_moved_reshapes and operand.is_reshape
    if undoes and operand.operand.shape.key == shape.key:
        return operand.operand
    return make.reshape(operand, shape, operand)


class SliceSinker(Pass):
    """`slice-sinker`: where the pieces together have no fewer elements than the whole (`slice_sinker.cc`)."""

    name = "slice-sinker"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in list(module.computations):
            for i in computation.post_order():
                # A replaced instruction has no users.
                if i.operands and i.users and is_elementwise(i) and _of_like_slices(i):
                    # The same operation on pieces of the same arrays (`FindElementwiseOperationGroup`).
                    keys = Keys()
                    wanted = keys.operation(i)
                    group = [
                        user
                        for slice_ in _source(i, 0).users
                        if slice_.is_slice
                        for user in slice_.users
                        if user.users and keys.operation(user) == wanted and _is_similar(i, user)
                    ]
                    if sum(x.element_count for x in group) >= _source(i, 0).element_count:
                        _sink(group, [o.operand for o in i.operands])
                        changed = True
        return changed


def _source(i: Instruction, number: int) -> Instruction:
    """The array that the operand, a slice, is taken from."""
    return i.operands[number].operand


def _of_like_slices(i: Instruction) -> bool:
    """`IsElementwiseOperationOnSimilarSlices`."""
    if any(not o.is_slice for o in i.operands):
        return False
    first = i.operand
    return all(
        o.attributes["slice"] == first.attributes["slice"] and o.operand.sizes == first.operand.sizes
        for o in i.operands
    )


def _is_similar(i: Instruction, candidate: Instruction) -> bool:
    """`IsSimilarOperationOnSlices`, the operation apart."""
    if candidate.element_type != i.element_type:
        return False
    first = candidate.operand
    return all(
        o.is_slice and o.operand is _source(i, k) and o.attributes["slice"] == first.attributes["slice"]
        for k, o in enumerate(candidate.operands)
    )


def _sink(group: Instructions, sources: Instructions) -> None:
    shape = sources[0].shape.with_element_type(group[0].element_type)
    whole = make.copy_of(group[0], sources, shape)
    for user in group:
        user.replace_all_uses_with(make.copy_of(user.operand, [whole], user.shape))


_NARROWED = values("reshape broadcast gather get-tuple-element reduce reduce-window concatenate iota")


class DegenerateDimensionRewriter(VisitPass):
    """Elementwise operations run without dimensions of size 1 (asked)."""

    name = "degenerate-dimension-rewriter"
    opcodes = None

    def handle(self, x: Instruction) -> bool:
        shape = without_ones(x.shape)
        if not 0 < shape.rank < x.rank or not is_elementwise(x):
            return False
        if any(o.opcode not in _NARROWED for o in x.operands):
            return False
        narrow = {o: _narrowed(o) for o in dict.fromkeys(x.operands)}
        new = make.copy_of(x, [narrow[o] for o in x.operands], shape)
        return replaced(x, make.added(x, "reshape", x.shape, [new]))


def _narrowed(x: Instruction) -> Instruction:
    """The same elements without dimensions of size 1."""
    shape = without_ones(x.shape)
    remaining = [d for d, size in enumerate(x.sizes) if size != 1]
    if x.is_broadcast:
        places = [remaining.index(d) for d in x.dimensions if d in remaining]
        source, small = x.operand, without_ones(x.operand.shape)
        source = source if source.rank == small.rank else make.added(x, "reshape", small, [source])
        is_whole = is_identity(places) and len(places) == shape.rank
        return source if is_whole else make.broadcast(x, shape, source, places)
    if x.is_concatenate:
        ones = others(x.rank, remaining)
        parts = [make.added(x, "reshape", without(o.shape, ones), [o]) for o in x.operands]
        return make.concatenate(x, parts, remaining.index(x.dimension))
    x = x.past("reshape")
    return x if x.shape == shape else make.added(x, "reshape", shape, [x])
