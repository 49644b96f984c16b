"""Batch dimensions become indices (`xla/service/batched_gather_scatter_normalizer.cc`), and scatters of which
only the front is read are made smaller (`xla/backends/gpu/transforms/scatter_slice_simplifier.cc`)."""

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.ir import Computation, Instruction, Instructions, Ints, Module, Shape
from hlofuse.ir.attributes.window import SliceRange, SliceRanges
from hlofuse.passes.base import ReleasePass, RewritePass, replaced, substituted, visit_module
from hlofuse.passes.common import make
from hlofuse.passes.common.calls import inline
from hlofuse.passes.common.index_vectors import is_simplified_scatter, reshaped
from hlofuse.passes.common.literals import bounds
from hlofuse.passes.common.shapes import array, is_sorted, numbers_of, with_dimensions
from hlofuse.releases import Release
from hlofuse.trace import Recorder

_COPIED = "offset_dims slice_sizes update_window_dims index_vector_dim unique_indices".split()
_NAMES = {
    "gather": "operand_batching_dims start_indices_batching_dims start_index_map collapsed_slice_dims",
    "scatter": "input_batching_dims scatter_indices_batching_dims scatter_dims_to_operand_dims"
    " inserted_window_dims",
}


class BatchedGatherScatterNormalizer(RewritePass):
    name = "batched_gather_scatter_normalizer"
    opcodes = ("gather", "scatter")

    def handle(self, x: Instruction) -> bool:
        names, operands, at = _NAMES[x.opcode].split(), list(x.operands), x.operand_count // 2
        batch, of_indices, targets, taken = (numbers_of(x, name) for name in names)
        if not batch or (x.opcode == "gather" and set(batch) & set(targets)):
            return False
        targets = (*batch, *targets)
        operands[at] = _with_batch(x, operands[at], of_indices)
        attributes = {
            **x.attributes.given(*_COPIED),
            names[2]: targets,
            names[3]: sorted((*taken, *batch)),
        }
        if x.raw("indices_are_sorted") == "true" and is_sorted(of_indices) and is_sorted(targets):
            attributes["indices_are_sorted"] = "true"  # `GetUpdatedIndicesAreSorted`
        called = x.to_apply if x.opcode == "scatter" else ()
        new = make.add(x, x.opcode, x.shape, operands, called=called, copied_attributes=attributes)
        return substituted(x, new)


def _with_batch(x: Instruction, indices: Instruction, of_indices: Ints) -> Instruction:
    """The indices with a counter for each batch dimension in front (`CreateConcatIndices`)."""
    vector = int(x.attributes["index_vector_dim"])
    element_type = indices.element_type
    for d in of_indices:
        most = bounds(element_type)[1]
        if most is not None and indices.sizes[d] > most:
            element_type = "s32" if indices.sizes[d] < 1 << 31 else "s64"
    indices = make.convert(indices, indices, element_type)
    if vector == indices.rank:
        indices = reshaped(indices, [*indices.sizes, 1])
    sizes = list(indices.sizes)
    sizes[vector] = 1
    shape = with_dimensions(indices.shape, sizes)
    return make.concatenate(x, [*(make.iota(x, shape, d) for d in of_indices), indices], vector)


class SelectAndScatterExpander(RewritePass):
    """Turns a window's selections into scatter indices (`xla/service/select_and_scatter_expander.cc`)."""

    name = "select_and_scatter_expander"
    opcodes = ("select-and-scatter",)

    def handle(self, x: Instruction) -> bool:
        return substituted(x, _expand(x))


def _expand(x: Instruction) -> Instruction:
    operand, source, init = x.operands
    called = dict(x.called)
    places, found = operand.shape.with_element_type("s32"), source.shape.with_element_type("s32")
    rank = operand.rank
    counters = [make.iota(x, places, d) for d in range(rank)]
    shape = Shape.tuple_of([source.shape, *[found] * rank])
    operands = [operand, *counters, init, *[make.scalar(x, "s32", -1)] * rank]
    selected = _first_selected(x, called["select"], rank)
    window = make.reduce_window(x, shape, operands, selected, x.attributes["window"])
    single = array("s32", (*found.dimensions, 1))
    parts = [make.reshape(x, single, make.get_tuple_element(x, window, d + 1)) for d in range(rank)]
    base = make.broadcast(x, x.shape, init)
    every = range(rank)
    return make.add(
        x,
        "scatter",
        x.shape,
        [base, make.concatenate(x, parts, rank), source],
        called=called["scatter"],
        update_window_dims="{}",
        inserted_window_dims=every,
        scatter_dims_to_operand_dims=every,
        index_vector_dim=source.rank,
    )


def _first_selected(x: Instruction, select: Computation, rank: int) -> Computation:
    """The selected of two elements together with its indices; -1 stands for outside of the array."""
    computation = Computation(f"{select.name}.reduce_window")
    types = [x.operand.element_type, *["s32"] * rank]
    sides: list[Instructions] = [[], []]
    for k in range(2 * len(types)):
        shape = array(types[k % len(types)])
        sides[k // len(types)].append(computation.append_parameter(f"side.{k}", shape))
    computation.root = sides[0][0]
    x.parent.parent.add_computation(computation)
    lhs, rhs = sides
    out_of_bounds = make.scalar(lhs[0], "s32", -1)
    of_lhs = make.compare(lhs[1], "NE", lhs[1], out_of_bounds)
    not_rhs = make.unary(rhs[1], "not", make.compare(rhs[1], "NE", rhs[1], out_of_bounds))
    call = make.add(lhs[0], "call", array("pred"), [lhs[0], rhs[0]], called=select)
    chosen = make.binary(call, "or", make.binary(call, "and", call, of_lhs), not_rhs)
    selected = [make.select(chosen, chosen, a, b) for a, b in zip(lhs, rhs, strict=True)]
    computation.root = make.tuple_of(chosen, selected)
    inline(call)
    return computation


class ScatterSliceSimplifier(ReleasePass):
    """`scatter-slice-simplifier` on results of `scatter_simplifier`, also through elementwise operations."""

    name = "scatter-slice-simplifier"

    def run(self, module: Module, recorder: Recorder) -> bool:
        smaller = dict[Instruction, Instruction]()

        def handle(scatter: Instruction) -> bool:
            sizes = _sizes_read(scatter, self.release)
            if sizes is None:
                return False
            _replace_users(scatter, _cut(scatter, sizes), smaller)
            return True

        return visit_module(module, ["scatter"], handle, recorder)


def _sizes_read(
    scatter: Instruction,
    release: Release,
) -> Ints | None:
    """The sizes of reads that are slices from the start, or None (`ScatterSliceMatcher::InferShape`)."""
    base, update = scatter.operand.sizes, scatter.operands[-1].sizes
    if not base or not is_simplified_scatter(scatter):
        return None
    read = list(base)
    window = () if release.cuts_scatters_past_windows else numbers_of(scatter, "update_window_dims")
    seen = set()

    def cuts(slice_: Instruction) -> bool:
        for d, taken in enumerate(slice_.attributes["slice"]):
            if taken.start != 0 or taken.stride != 1:
                return False
            if taken.limit != read[d]:
                if read[d] != base[d] or d in window or (not window and update[d + 1] != 1):
                    return False
                read[d] = taken.limit
        return True

    def is_cut(x: Instruction) -> bool:
        """Slices finally, whichever path one takes."""
        for user in x.users:
            if user.is_slice:
                if not cuts(user):
                    return False
            elif user not in seen:
                if not (is_elementwise(user) or user.is_get_tuple_element) or not is_cut(user):
                    return False
                seen.add(user)
        return bool(x.users) or not x.is_root

    return read if is_cut(scatter) else None


def _slice_from_start(x: Instruction, sizes: Ints) -> Instruction:
    """`CreateSliceFrom`."""
    ranges = SliceRanges(SliceRange(0, n, 1) for n in sizes)
    return make.derived(x, "slice", array(x.element_type, sizes), [x], slice=ranges)


def _cut(scatter: Instruction, sizes: Ints) -> Instruction:
    count = scatter.operand_count // 2
    bases = [_slice_from_start(o, sizes) for o in scatter.operands[:count]]
    new = scatter.clone([*bases, *scatter.operands[count:]], name="scatter")
    new.shape = Shape.maybe_tuple_of([b.shape for b in bases])
    return scatter.parent.add_instruction(new)


def _replace_users(old: Instruction, new: Instruction, smaller: dict[Instruction, Instruction]) -> None:
    """`ReplaceAllUsersRecursive`."""
    smaller[old] = new
    for user in list(old.users):
        if user.computation is None:
            continue
        if user.is_slice:
            replaced(user, new)
            continue
        if user.is_get_tuple_element:
            element = make.get_tuple_element(user, new, user.tuple_index)
        else:
            sizes = new.sizes
            operands = [smaller.get(o) or _slice_from_start(o, sizes) for o in user.operands]
            element = make.copy_of(user, operands, array(user.element_type, sizes))
        _replace_users(user, element, smaller)
