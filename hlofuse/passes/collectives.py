"""Collectives that XLA rewrites and combines, and their asynchronous form."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any

from hlofuse.analysis.async_ops import replica_groups
from hlofuse.ir import Computation, Instruction, Module, Shape, reach, replace, with_trait
from hlofuse.ir.attributes.metadata import OpMetadata, quote
from hlofuse.ir.removing import move_control_dependencies, replace_instruction, set_attribute
from hlofuse.trace import Recorder
from .base import Pass, RewritePass, any_change, find_each
from .common import make
from .common.calls import make_asynchronous, set_called
from .common.shapes import array, permuted

DEFAULT_BYTES = (30 << 20) + 7
"""`kDefaultAllReduceCombineThreshold` and those of the other kinds (`xla/service/collective_utils.h`)."""
DEFAULT_COUNT = 2048
_COMBINED = "Collectives of the same devices are combined up to the threshold in bytes"
_DIFFERENCES = "another operation,another type,other devices,another dimension,another key".split(",")
_CONTIGUOUS = "The operands of a combined all-reduce are copied into one buffer"


class CollectiveCombiner(Pass, kw_only=True):
    """Independent collectives of one kind over the same devices become one with a tuple of results
    (`CombineInstructionsByKey` in `xla/service/collective_combiner_utils.h`)."""

    name: str = field(compare=False)
    opcode: str = field(compare=False)
    max_bytes: int | None = DEFAULT_BYTES  # Size of the results of one; None for no limit, 0 for nothing
    max_count: int = DEFAULT_COUNT
    by_dimension: bool = False  # Combine only those that gather or scatter the same dimension

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        if self.max_bytes == 0 or self.max_count <= 0 or _is_constrained(module, self.opcode):
            return changed
        for computation in module.non_fusion_computations():
            keys = {
                x: key for x in computation if x.opcode == self.opcode and (key := _key(x, self.by_dimension))
            }
            while len(keys) > 1:
                chosen = self._next(computation, keys)
                if len(chosen) > 1:
                    combined = self._combine(chosen)
                    names = [x.name for x in chosen]
                    recorder.rewrite(computation.name, names, [combined], _COMBINED)
                    changed = True
        return changed

    def difference(self, x: Instruction, other: Instruction) -> str:
        """The property of `other` that keeps it from being combined with `x`; "" if none is known."""
        first, second = (_key(i, self.by_dimension) or () for i in (x, other))
        for name, a, b in zip(_DIFFERENCES[-len(first) :], first, second, strict=False):
            if a != b:
                return name
        size = sum(leaf.byte_size for i in (x, other) for leaf in i.shape.leaf_shapes)
        flag = f"--xla_gpu_{self.opcode.replace('-', '_')}_combine_threshold_bytes={self.max_bytes}"
        return f"together above {flag}" if size > (self.max_bytes or size) else ""

    def _next(
        self, computation: Computation, keys: dict[Instruction, tuple[Hashable, ...]]
    ) -> list[Instruction]:
        """The next ones to combine; they and those that can never be are taken from `keys`."""
        chosen = list[Instruction]()
        reached = set[Instruction]()
        group, total = None, 0
        for x in computation.post_order():
            if reached and not reached.isdisjoint(x.predecessors):
                reached.add(x)
            if x not in keys or (chosen and keys[x] != group):
                continue
            if not chosen:
                group = keys[x]
            size = x.byte_size if x.is_array else 0
            if x.operand_count != 1 or (self.max_bytes is not None and size > self.max_bytes):
                del keys[x]
                continue
            if x in reached or (self.max_bytes is not None and total + size > self.max_bytes):
                break
            del keys[x]
            chosen.append(x)
            reached.add(x)
            total += size
            if len(chosen) >= self.max_count:
                break
        return chosen

    def _combine(self, chosen: Sequence[Instruction]) -> Instruction:
        first = chosen[0]
        dimension = _most_frequent_dimension(chosen)
        orders = [_swap(x, dimension) for x in chosen]
        operands = [
            x.operand
            if order is None
            else make.added(first, "bitcast", permuted(x.operand.shape, order), x.operands)
            for x, order in zip(chosen, orders, strict=True)
        ]
        results = [
            x.shape if order is None else permuted(x.shape, order)
            for x, order in zip(chosen, orders, strict=True)
        ]
        dimensions = {} if dimension is None else {"dimensions": [dimension]}
        combined = _like(first, operands, Shape.tuple_of(results), **dimensions)
        _merge_attributes(combined, chosen)
        for k, (x, order) in enumerate(zip(chosen, orders, strict=True)):
            element = make.bare_element(x, combined, k)
            if order is not None:
                element = make.added(x, "bitcast", x.shape, [element])
            replace_instruction(x, element)
        return combined


def _key(x: Instruction, by_dimension: bool = False) -> tuple[Hashable, ...] | None:
    frontend = x.frontend_attributes
    own = (frontend.get("combiner_key"), frontend.get("collective_group_key") or None)
    if x.opcode == "collective-permute":
        return (x.raw("source_target_pairs"), None, own)
    groups = x.raw("replica_groups") or "{}"
    devices = (
        x.raw("channel_id") is not None,
        x.raw("use_global_device_ids") == "true",
        replica_groups(groups) or groups,
    )
    dimension = x.raw("dimensions") if by_dimension else None
    if x.opcode == "all-gather":
        return (devices, dimension, own)
    function = x.to_apply
    if x.has_control_dependencies:
        return None
    if len(function.parameters) != 2 or len(function.instructions) != 3:
        return None
    if x.opcode == "all-reduce" and "_scheduling_group_id" in frontend:
        return None
    root = function.root
    return (root.opcode, root.element_type, devices, dimension, own)


def _is_constrained(module: Module, opcode: str) -> bool:
    """`ContainsLayoutConstrainedCollective`; collective-permutes have no such option."""
    return any(x.opcode == opcode and x.raw("constrain_layout") == "true" for x in module.instructions())


def _like(x: Instruction, operands: Sequence[Instruction], shape: Shape, **attributes: object) -> Instruction:
    """A collective over the same devices without what is known of `x` alone, and not asynchronous."""
    alone = ("metadata", "sharding", "frontend_attributes", "backend_config", "control-predecessors")
    raw = {**x.attributes.without(*alone).raw_items, **attributes}
    return make.added(
        x, x.opcode.removesuffix("-start"), shape, operands, called=x.called, raw_attributes=raw
    )


def _most_frequent_dimension(chosen: Sequence[Instruction]) -> int | None:
    """`FindMostFrequentGatherDim`: the dimension of most, where every result has it; None without one."""
    dimensions = [d for x in chosen if (d := _dimension(x)) is not None]
    if not dimensions:
        return None
    found = min(dimensions, key=lambda d: (-dimensions.count(d), d))
    return found if found < min(len(x.sizes) for x in chosen) else 0


def _dimension(x: Instruction) -> int | None:
    if x.opcode not in ("all-gather", "reduce-scatter"):
        return None
    return int(x.attributes.get("dimensions")[0])


def _swap(x: Instruction, dimension: int | None) -> list[int] | None:
    """The order of dimensions that puts the one of `x` at `dimension`; None where it is there."""
    own = _dimension(x)
    if own is None or dimension is None or own == dimension:
        return None
    order = list(range(len(x.sizes)))
    order[own], order[dimension] = dimension, own
    return order


def _merge_attributes(combined: Instruction, chosen: Sequence[Instruction]) -> None:
    """`MergeFrontendAttributes` and `MergeMetadata`."""
    values = dict[str, set[str]]()
    for x in chosen:
        for key, value in x.frontend_attributes.items():
            values.setdefault(key, set()).add(value)
    if values:
        text = ",".join(f"{key}={quote(','.join(sorted(values[key])))}" for key in sorted(values))
        set_attribute(combined, "frontend_attributes", "{" + text + "}")
    first: Any = chosen[0].attributes.get("metadata") or OpMetadata()
    names = [x.op_name for x in chosen if x.op_name]
    sources = [
        f"{m.source_file}:{m.source_line or 0}"
        for x in chosen
        if (m := x.attributes.get("metadata")) and m.source_file
    ]
    if sources:
        first = replace(first, source_file=",".join(sources), source_line=None, source_end_line=None)
    if names:
        first = replace(first, op_name=_common_name(names))
    if first != OpMetadata():
        set_attribute(combined, "metadata", first)


def _common_name(names: Sequence[str]) -> str:
    """The common scopes once, then each name's rest."""
    if len(set(names)) == 1:
        return names[0]
    shared = 0
    for letters in zip(*names, strict=False):
        if len(set(letters)) > 1:
            break
        shared += 1
    scopes = names[0][: names[0].rfind("/", 0, shared) + 1]
    return f"{scopes}({':'.join(n[len(scopes) :] for n in names)})"


_NOT_REPEATED = ("convert", "dynamic-slice", "pad")
_REDUCTIONS = {"add", "and", "maximum", "minimum", "multiply", "or"}


class AllReduceReassociate(Pass):
    """Two sums over the devices that are added are one sum of what they add, and so for other reductions
    (`xla/service/all_reduce_reassociate.cc`), but not where they are converted, padded or sliced before."""

    name = "all-reduce-reassociate"

    def run(self, module: Module, recorder: Recorder) -> bool:
        if _is_constrained(module, "all-reduce"):
            return False
        found = find_each(module, lambda x: x.opcode in _REDUCTIONS, Computation.post_order)
        return any_change(self._join(x, recorder) for x in found)

    def _join(self, x: Instruction, recorder: Recorder) -> bool:
        chains = [_chain(o) for o in x.operands]
        sums = [chain[-1] for chain in chains]
        keys = {_key(s) if s.opcode == "all-reduce" else None for s in sums}
        if None in keys or len(keys) > 1 or any(s.user_count > 1 for s in sums):
            return False
        if sums[0].to_apply.root.opcode != x.opcode:
            return False
        if any(o.opcode in _NOT_REPEATED for chain in chains for o in chain):
            recorder.unimplemented(Counter(s.opcode for s in sums))
            return False
        for s in dict.fromkeys(sums):
            s.replace_all_uses_with(s.operand)
        x.replace_all_uses_with(make.copy_of(sums[0], [x], x.shape))
        for s in dict.fromkeys(sums):
            s.parent.remove_instruction(s)
        return True


def _chain(x: Instruction) -> list[Instruction]:
    """`x` and what it reads, as long as that changes the form alone and has one reader."""
    found = [x]
    while len(found[-1].users) == 1 and found[-1].opcode in {*_NOT_REPEATED, "reshape", "slice"}:
        found.append(found[-1].operand)
    return found


class AllReducePromotion(RewritePass, kw_only=True):
    """Narrow types are summed over devices in wider ones (`xla/service/all_reduce_promotion.cc`)."""

    name = "all-reduce-promotion"
    opcodes = ("all-reduce", "reduce-scatter")
    widened: Mapping[str, str]

    def handle(self, x: Instruction) -> bool:
        types = {o.element_type for o in x.operands}
        element_type = types.pop()
        wide = self.widened.get(element_type)
        if wide is None or types or not x.is_array:
            return False
        function = x.to_apply
        name, opcode = f"{function.name}_promoted", function.root.opcode
        promoted = make.reducer(x, name, opcode, wide, ("x", "y"))
        operands = [make.convert(o, o, wide) for o in x.operands]
        new = make.copy_of(x, operands, x.shape.with_element_type(wide))
        set_called(new, [("to_apply", promoted)])
        return replace_instruction(x, make.convert(new, new, x.element_type))


class AllToAllDecomposer(RewritePass):
    """An exchange of one array becomes one of its parts (`xla/service/all_to_all_decomposer.cc`)."""

    name = "all_to_all_decomposer"
    opcodes = ("all-to-all",)

    def handle(self, x: Instruction) -> bool:
        groups = replica_groups(x.raw("replica_groups") or "{}")
        if not x.is_array or not groups or x.raw("constrain_layout") == "true":
            return False
        dimension, count = x.dimension, len(groups[0])
        size = x.sizes[dimension] // count
        given = x.operand
        parts = [make.part(x, given, k * size, (k + 1) * size, dimension) for k in range(count)]
        shape = Shape.tuple_of([part.shape for part in parts])
        devices = x.attributes.given("channel_id", "replica_groups")
        exchange = make.add(x, x.opcode, shape, parts, copied_attributes=devices)
        whole = make.concatenate(x, make.elements(exchange, range(count)), dimension)
        return replace_instruction(x, whole)


class AllReduceContiguous(Pass):
    """An all-reduce of several operands becomes one of their concatenation (`all_reduce_contiguous.cc`)."""

    name = "all-reduce-contiguous"

    def run(self, module: Module, recorder: Recorder) -> bool:
        if _is_constrained(module, "all-reduce"):
            return False
        found = find_each(module, lambda x: x.opcode == "all-reduce" and x.operand_count > 1)
        for x in found:
            computation, whole = x.parent, _make_contiguous(x)
            recorder.rewrite(computation.name, [x.name], [whole], _CONTIGUOUS)
        return bool(found)


def _make_contiguous(x: Instruction) -> Instruction:
    element_type = x.operand.element_type
    shapes = [array(element_type, [o.element_count]) for o in x.operands]
    added = partial(make.added, x)
    pairs = list(zip(x.operands, shapes, strict=True))
    flat = [added("bitcast", s, [o]) for o, s in pairs]
    total = array(element_type, [sum(o.element_count for o in x.operands)])
    joined = added("concatenate", total, flat, dimensions="{0}")
    whole = _like(x, [joined], total)
    for name, text in x.attributes.given("metadata", "frontend_attributes").items():
        set_attribute(whole, name, text)
    outputs, start = [], 0
    for operand, shape in pairs:
        end = start + shape.dimensions[0]
        part = added("slice", shape, [whole], slice=f"{{[{start}:{end}]}}")
        outputs.append(added("bitcast", operand.shape, [part]))
        start = end
    results = added("tuple", Shape.tuple_of([o.shape for o in outputs]), outputs)
    replace_instruction(x, results)
    return whole


_ASYNCHRONOUS = with_trait("gpu-asynchronous")
_STARTED = "Other work may run between its start and its done"
_JOINED = "Nothing can run between the start and the done"


class AsyncCollectiveCreator(Pass):
    """Collectives become a start and a done, with the options of `RunAsyncCollectivesConversionPasses`
    (`xla/hlo/transforms/collectives/async_collective_creator.cc`)."""

    name = "async-collective-creator"

    def run(self, module: Module, recorder: Recorder) -> bool:
        found = find_each(module, lambda x: x.opcode in _ASYNCHRONOUS and not x.called_by("async-start"))
        for x in found:
            name = x.name
            start, done = make_asynchronous(x, x.opcode, (), **_aliasing(x))
            recorder.rewrite(start.computation_name, [name], [start, done], _STARTED)
        return bool(found)


def _aliasing(x: Instruction) -> dict[str, str]:
    """The operands whose memory holds the results."""
    if x.opcode == "collective-permute" and x.raw("slice_sizes"):  # written into an operand
        first = 1
    elif x.opcode == "all-reduce":
        first = 0
    else:
        return {}
    count = x.tuple_size if x.is_tuple else 0
    pairs = [f"{{1, {k}}}: ({k}, {{}})" for k in range(count)] or [f"{{1}}: ({first}, {{}})"]
    return {"output_to_operand_aliasing": "{" + ", ".join(pairs) + "}"}


class ConvertAsyncCollectivesToSync(Pass):
    """A start and its done become one again where no other work could run before the done
    (`xla/hlo/transforms/collectives/convert_async_collectives_to_sync.cc`). Its order may be another."""

    name: str = field(default="gpu-convert-async-collectives-to-sync", compare=False)
    joins_all: bool = False  # Also where other work could run (`async_collective_replacer.cc`)

    def run(self, module: Module, recorder: Recorder) -> bool:
        computations = [] if self.joins_all else module.non_fusion_computations()
        separate = {x for c in computations for x in overlapping(c)}
        starts = find_each(module, lambda x: _is_collective_start(x) and x not in separate)
        for start in starts:
            done, computation = start.user, start.parent
            names = [start.name, done.name]
            if start.opcode == "async-start":
                x = start.called_computations[0].root.clone(start.operands)
                computation.add_instruction(x)
            else:
                x = _like(start, start.operands, done.shape)
            for name, text in done.attributes.given("frontend_attributes", "metadata").items():
                set_attribute(x, name, text)
            move_control_dependencies(done, x)
            move_control_dependencies(start, x)
            done.replace_all_uses_with(x)
            computation.remove_instruction(done)
            computation.remove_instruction(start)
            recorder.rewrite(computation.name, names, [x], _JOINED)
        return bool(starts)


def _is_collective_start(x: Instruction) -> bool:
    if not x.opcode.endswith("-start") or x.user_count != 1 or not x.user.opcode.endswith("-done"):
        return False
    opcode = x.to_apply.root.opcode if x.opcode == "async-start" else x.opcode.removesuffix("-start")
    return opcode in _ASYNCHRONOUS


def overlapping(computation: Computation) -> list[Instruction]:
    """The starts of collectives with work, other than collectives, that could run before their done."""
    starts = [x for x in computation if _is_collective_start(x)]
    if not starts:
        return []
    order = computation.post_order()
    before, after = ({x: 1 << n for n, x in enumerate(starts)} for _ in range(2))  # A bit for each start
    for x in order:
        for earlier in x.predecessors:
            before[x] = before.get(x, 0) | before.get(earlier, 0)
    for x in reversed(order):
        for later in x.successors:
            after[x] = after.get(x, 0) | after.get(later, 0)
    of_all = (1 << len(starts)) - 1
    for x in filter(_is_work, order):
        of_all &= before.get(x, 0) | after.get(x, 0)
    return [x for n, x in enumerate(starts) if not of_all >> n & 1]


def related(x: Instruction) -> set[Instruction]:
    """The instructions that `x` waits for and those that wait for it, itself among them."""
    before = reach([x], lambda i: i.predecessors)
    return {*before, *reach([x], lambda i: i.successors)}


def _is_work(x: Instruction) -> bool:
    if x.opcode in ("bitcast", "constant", "get-tuple-element", "parameter", "tuple"):
        return False
    return not _is_collective_start(x.past("async-done"))
