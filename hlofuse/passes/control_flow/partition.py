"""One device's part of a program, where devices exchange nothing but what is written and sums."""

import re
from collections.abc import Sequence
from itertools import product
from math import prod

from hlofuse.analysis.convolution import dimension_numbers, window_dimensions
from hlofuse.analysis.custom_calls import CROSSINGS, custom_call_target, hands_on, is_divided
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir import Computation, Instruction, Module, Record, Shape, Strings, set_attribute, with_trait
from hlofuse.ir.attributes.attributes import written
from hlofuse.ir.attributes.window import SliceRange, SliceRanges
from hlofuse.ir.removing import has_side_effect
from hlofuse.passes.common import make
from hlofuse.passes.common.calls import clone_computation, inline
from hlofuse.passes.common.dots import DotDimensions
from hlofuse.passes.common.literals import scalar_of
from hlofuse.passes.common.shapes import numbers_of, others, unmodified_dimensions, with_layout
from hlofuse.trace import Recorder
from .call_graph import CallInliner, FlattenCallGraph

_Sharding = tuple[Strings, ...]  # Axes of the mesh that divide each dimension; a part of one is `axis:size`
_SHARDING = re.compile(r"<(?:@[^,<>]+|mesh<[^<>]*>), \[([^\]]*)\]")
_AXIS = re.compile(r'"([^"]+)"(?::\(\d+\)(\d+))?')
_SIZE = re.compile(r'"([^"]+)"=(\d+)')
_KEEPS_PLACES = set(
    "concatenate dynamic-slice dynamic-update-slice fft reduce-window reverse select-and-scatter"
    " slice sort".split()
)
"""Each dimension of a result is that of the operands, wherever it is as long and no attribute names it."""
WHOLE = -1
_ADDED_UP = {"convolution", "dot", "reduce", "scatter"}
_PER_DEVICE = with_trait("collective") | {"call", "conditional", "partition-id", "replica-id", "while"}


def inline_calls(module: Module) -> None:
    """Have calls give way to what they call, as ahead of XLA's partitioner."""
    for before in (FlattenCallGraph(), CallInliner()):
        before.run(module, Recorder())


class Partition:
    """The shardings of results, as Shardy propagates them from the arguments on (`xla/service/spmd/shardy`);
    `is_complete` is False where XLA's partitioner has to move data, or propagates against the flow."""

    def __init__(self, module: Module) -> None:
        self._module = module
        meshes = (module.attributes.raw("frontend_attributes") or "").partition("xla.sdy.meshes=")[2]
        self._sizes = {name: int(size) for name, size in _SIZE.findall(meshes)}
        self._shardings = dict[Instruction, list[_Sharding] | None]()
        """The shardings of results outside of manual computations; None inside."""
        self._repeated = set[Instruction]()
        """Values that are the same along the dimensions in which their readers are divided."""
        self._sums = dict[Instruction, list[Strings]]()
        """The axes over which each device has a part of a sum, by dimension."""
        crossings = [x for x in module.instructions() if custom_call_target(x) in CROSSINGS]
        self.open = [x.opcode for x in crossings if x.computation is not module.entry][:1]
        """The opcode of an operation of which only the partitioner knows what becomes; empty for none."""
        # The second visit has what a later reader divides.
        self.is_complete = (
            not self.open
            and (bool(crossings) or is_divided(module))
            and all(self._visit_all(module.entry) for _ in range(2))
        )

    def _visit_all(self, computation: Computation) -> bool:
        for x in computation.post_order():
            if x not in self._repeated and not self._visit(x):
                self.open = self.open or [x.opcode]
                return False
        return True

    def _visit(self, x: Instruction) -> bool:
        """Note the shardings of `x`; False where only the partitioner knows what becomes of it."""
        given = [self._shardings[o] for o in x.operands]
        inside = bool(given) and all(s is None for s in given)
        outer = [s for shardings in given for s in shardings or ()]
        target = custom_call_target(x)
        found: list[_Sharding] | None = outer
        if x.is_parameter:
            is_input = x.computation is self._module.entry
            settled = x.is_array or not is_input
            found = (shardings_of(x, "sharding") or [((),) * x.rank]) if is_input else self._shardings[x]
        elif x.is_get_tuple_element:
            settled = True
            found = None if inside else [outer[x.tuple_index]]
        elif target in CROSSINGS:
            enters = target == CROSSINGS[0]
            wanted = enumerate(shardings_of(x, "in_shardings"))
            settled = all(self._divide(x, k, [s]) for k, s in wanted) if enters else inside
            settled &= set(re.findall(r'"([^"]+)"', _attribute(x, "manual_axes"))) == self._sizes.keys()
            found = None if enters else shardings_of(x, "out_shardings")
        elif x.opcode == "call" and inside:
            settled = True
            found = None
        elif None in given:
            settled = False
        elif x.is_while:
            found = self._around(x, outer)
            settled = found is not None
        elif x.opcode == "tuple":
            settled = x is not self._module.entry.root or self._repeated.isdisjoint(x.operands)
        elif hands_on(x):
            found = shardings_of(x, "sharding") or outer
            settled = found == outer or self._divide(x, 0, found)
        elif any(map(any, outer)):
            followed = self._followed(x)
            settled = followed is not None
            found = [followed or ()] * max(x.tuple_size, 1)
        else:  # every device computes the whole
            settled = x.opcode not in _PER_DEVICE and not has_side_effect(x)
            found = [((),) * s.rank for s in x.shape.results]
        self._shardings[x] = found
        return settled and (found is None or self._part(x.shape, found) is not None)

    def _around(self, loop: Instruction, given: list[_Sharding]) -> list[_Sharding] | None:
        """The shardings of a loop's state, which those of its first values may follow."""
        first = loop.operand
        body = loop.called_computations[0]
        for _ in range(2):
            for c in loop.called_computations:
                self._shardings[c.parameter] = [*given]
            if not all(map(self._visit_all, loop.called_computations)):
                return None
            found = self._shardings[body.root] or []
            if all(self._shardings[c.parameter] == found for c in loop.called_computations):
                return found
            if first.opcode != "tuple":
                return None
            if not all(self._divide(first, k, [s]) for k, s in enumerate(found)):
                return None
            self._shardings[first] = given = found
        return None

    def _followed(self, x: Instruction) -> _Sharding | None:
        """The sharding of a result by its operands'; None where devices would exchange more than summands."""
        rule = sharding_rule(x)
        factors = dict[int, Strings]()
        given = [self._shardings[o] or [] for o in x.operands]
        if rule is None or any(len(shardings) != 1 for shardings in given):
            return None
        for places, (sharding,) in zip(rule.operands, given, strict=True):
            factors |= {f: axes for f, axes in zip(places, sharding, strict=True) if axes}
        summed = [axes for f, axes in factors.items() if f not in rule.result]
        axes = [axis for f in factors for axis in factors[f]]
        if len(set(axes)) < len(axes) or (summed and x.is_tuple):
            return None
        if any(":" in "".join(part) for part in summed) or (summed and x.opcode not in _ADDED_UP):
            return None
        if not self._divide_operands(x, rule, factors):
            return None
        if summed:
            self._sums[x] = summed
        return tuple(factors.get(f, ()) for f in rule.result)

    def _divide_operands(
        self,
        x: Instruction,
        rule: "ShardingRule",
        factors: dict[int, Strings],
    ) -> bool:
        wanted = [[tuple(factors.get(f, ()) for f in places)] for places in rule.operands]
        return WHOLE not in factors and all(self._divide(x, k, w) for k, w in enumerate(wanted))

    def _divide(
        self,
        reader: Instruction,
        number: int,
        found: list[_Sharding],
    ) -> bool:
        """True if each device can have its part of an operand, whichever device it is. One that is the same
        everywhere is then this reader's own (`ConstantOrScalarSplitter` of Shardy)."""
        x = reader.operands[number]
        given = self._shardings[x]
        if given == found:
            return True
        dimensions = (d for s in zip(given or (), found, strict=False) for d in zip(*s, strict=True))
        if x in self._repeated or given is None or any(old and old != new for old, new in dimensions):
            return False  # divided in another way
        if x.is_get_tuple_element and (source := x.operand).opcode in ("parameter", "tuple"):
            state = self._shardings[source]
            if state is None or not (source.is_parameter or self._divide(source, x.tuple_index, found)):
                return False
            state[x.tuple_index] = found[0]  # of a loop
        elif x not in self._module.entry.parameters or shardings_of(x, "sharding"):
            if (rule := sharding_rule(x)) is None:
                return False
            factors = {f: axes for f, axes in zip(rule.result, found[0], strict=True) if axes}
            if not self._divide_operands(x, rule, factors):
                return False
        if x.opcode in ("broadcast", "iota") and max(x.user_count, reader.operands.count(x)) > 1:
            x = make.copy_of(x, x.operands)
            reader.replace_operand(number, x)
        self._repeated.add(x)
        self._shardings[x] = found
        return True

    def _part(self, shape: Shape, shardings: list[_Sharding]) -> Shape | None:
        """The shape on one device; None where an array is not divided evenly."""
        if shape.is_tuple:
            parts = [self._part(s, [g]) for s, g in zip(shape.tuple_shapes, shardings, strict=False)]
            complete = [p for p in parts if p is not None]
            return Shape.tuple_of(complete) if len(complete) == len(shape.tuple_shapes) else None
        if len(shardings) != 1 or len(shardings[0]) != shape.rank:
            return None
        counts = [prod(map(self._count, axes)) for axes in shardings[0]]
        if any(n == 0 or d % n for d, n in zip(shape.dimensions, counts, strict=True)):
            return None
        sizes = [d // n for d, n in zip(shape.dimensions, counts, strict=True)]
        return with_layout(shape.element_type, sizes, shape.minor_to_major)

    def _count(self, axis: str) -> int:
        name, _, part = axis.partition(":")
        return int(part) if part else self._sizes.get(name, 0)

    def apply(self, *, folds_sums: bool) -> None:
        """Have the module compute one device's part; with `folds_sums` a sum over all dimensions at once."""
        entry, self._module.devices = self._module.entry, 1
        for x, shardings in self._shardings.items():
            if shardings is not None and (part := self._part(x.shape, shardings)) is not None:
                x.shape = part
                resize(x, shardings[0] if shardings else ())
        self._add_up(folds_sums)
        for x in entry.post_order():
            if x.opcode == "call":
                inline(x)
        for x in entry.post_order():
            if custom_call_target(x) in CROSSINGS:
                elements = [u for u in x.users if u.is_get_tuple_element] if x.is_tuple else []
                for element in elements:
                    element.replace_all_uses_with(x.operands[element.tuple_index])
                    entry.remove_instruction(element)
                if x.users or x is entry.root:
                    x.replace_all_uses_with(make.result_of(x, x.operands))
                entry.remove_instruction(x)
        written = self._module.attributes.get("entry_computation_layout")
        result = _laid_out(entry.root.shape, written[1]) if written else entry.root.shape
        parameters = ", ".join(str(p.shape) for p in entry.parameters)
        layout = f"{{({parameters})->{result}}}"
        self._module.attributes = self._module.attributes.updated(entry_computation_layout=layout)

    def _add_up(self, folds_sums: bool) -> None:
        """All-reduces after each part of a sum (`SpmdPartitioner::AllReduceAlongShardingDims`)."""
        channel = max(int(x.raw("channel_id") or 0) for x in self._module.instructions())
        for part, dimensions in self._sums.items():
            for axes in [sum(dimensions, ())] if folds_sums else reversed(dimensions):
                if part.called_computations:
                    function = clone_computation(part.to_apply)
                else:
                    function = make.reducer(part, "add", "add", part.element_type)
                channel += 1
                found = make.add(
                    part,
                    "all-reduce",
                    part.shape,
                    [part],
                    called=function,
                    channel_id=channel,
                    replica_groups=self._groups(axes),
                    use_global_device_ids="true",
                )
                part.replace_all_uses_with(found)
                part = found

    def _groups(self, axes: Strings) -> str:
        groups = dict[tuple[int, ...], list[int]]()
        for device, place in enumerate(product(*map(range, self._sizes.values()))):
            others = (k for k, axis in zip(place, self._sizes, strict=True) if axis not in axes)
            groups.setdefault(tuple(others), []).append(device)
        return f"{{{','.join(map(written, groups.values()))}}}"


def resize(x: Instruction, divided: Sequence[object]) -> None:
    """Have the attributes of a slice follow its shape along the dimensions that are divided."""
    if x.opcode == "dynamic-slice":
        set_attribute(x, "dynamic_slice_sizes", x.sizes)
    elif x.is_slice:
        parts = zip(x.attributes["slice"], x.sizes, divided, strict=True)
        ranges = SliceRanges(SliceRange(0, size, 1) if axes else r for r, size, axes in parts)
        set_attribute(x, "slice", ranges)


def _laid_out(shape: Shape, like: Shape) -> Shape:
    """`shape` in the layout of a larger one."""
    if shape.is_tuple:
        return Shape.tuple_of(list(map(_laid_out, shape.tuple_shapes, like.tuple_shapes)))
    return with_layout(shape.element_type, shape.dimensions, like.minor_to_major)


class ShardingRule(Record):
    """The factors of each dimension (Shardy's `OpShardingRule`); `WHOLE` where each device needs all."""

    operands: list[list[int]]
    result: list[int]


def sharding_rule(x: Instruction) -> ShardingRule | None:
    """None for operations of which only the partitioner knows what devices exchange."""
    shape = x.shape.results[0]
    places = list(range(shape.rank))
    ranks = [o.rank for o in x.operands]
    dimensions = list(x.dimensions)
    if x.opcode in ELEMENTWISE_OPCODES | _KEEPS_PLACES and max(ranks, default=0) <= shape.rank:
        lengths = x.attributes.get("fft_length") or ()
        moved = {*dimensions, *range(shape.rank - len(lengths), shape.rank)}
        moved |= {d for d, w in enumerate(window_dimensions(x)) if w.size != 1}
        for o in x.operands:
            sizes = enumerate(o.sizes)
            moved |= {d for d, size in sizes if size != shape.dimensions[d]}
        factors = [WHOLE if d in moved else d for d in places]
        return ShardingRule([factors[:rank] for rank in ranks], factors)
    if x.opcode == "iota":
        return ShardingRule([], [WHOLE if str(d) == x.raw("iota_dimension") else d for d in places])
    if x.is_broadcast:
        return ShardingRule([dimensions], places)
    if x.is_transpose:
        return ShardingRule([places], dimensions)
    if x.is_reshape:
        pairs = dict(unmodified_dimensions(x.operand.shape, x.shape))
        factors = [d if d in pairs.values() else WHOLE for d in places]
        return ShardingRule([[pairs.get(d, WHOLE) for d in range(ranks[0])]], factors)
    if x.is_reduce and all(o.is_constant for o in x.operands if not o.rank):
        every = [list(range(rank)) for rank in ranks]
        return ShardingRule(every, others(ranks[0], dimensions))
    if x.is_dot:
        return _rule_of_product(x, ranks)
    if x.opcode == "convolution":
        numbers = dimension_numbers(x)
        groups = [x.raw(f"{kind}_group_count") for kind in ("feature", "batch")]
        if numbers is None or any(count not in (None, "1") for count in groups):
            return None
        # The input features are `f` of the source and `i` of the kernel, the output's `o` and `f`.
        sides = (numbers.lhs.replace("f", "i"), numbers.rhs, numbers.output.replace("f", "o"))
        *given, out = ([("bio".find(label)) for label in side] for side in sides)
        return ShardingRule(given, out)
    return _rule_of_indices(x, ranks) if x.opcode in ("gather", "scatter") else None


def _rule_of_product(x: Instruction, ranks: list[int]) -> ShardingRule:
    d = DotDimensions.of(x)
    factors = [dict[int, int](), dict[int, int]()]
    for places in (
        *zip(d.lhs_batch, d.rhs_batch, strict=True),
        *zip(d.lhs_contracting, d.rhs_contracting, strict=True),
    ):
        for side, place in zip(factors, places, strict=True):
            side[place] = places[0]
    result = list(d.lhs_batch)
    for k, side in enumerate(factors):
        side |= {place: place + k * ranks[0] for place in d.free(k, ranks[k])}
        result += [side[place] for place in d.free(k, ranks[k])]
    return ShardingRule(
        [[side[place] for place in range(rank)] for side, rank in zip(factors, ranks, strict=True)],
        result,
    )


def _rule_of_indices(x: Instruction, ranks: list[int]) -> ShardingRule:
    """Each index is for the device that has it: batches of the operand go with their indices."""
    gathers = x.opcode == "gather"
    batches = numbers_of(x, "operand_batching_dims" if gathers else "input_batching_dims")
    indexed = numbers_of(x, f"{'start' if gathers else 'scatter'}_indices_batching_dims")
    windows = numbers_of(x, "offset_dims" if gathers else "update_window_dims")
    vector = int(x.raw("index_vector_dim") or 0)
    of_batch = dict(zip(batches, indexed, strict=True))
    array = [of_batch.get(d, WHOLE) for d in range(ranks[0])]
    free = gathers or _adds_to_zeros(x)
    indices = [d if d != vector and (free or d in indexed) else WHOLE for d in range(ranks[1])]
    left = iter([f for d, f in enumerate(indices) if d != vector])
    rank = x.rank if gathers else ranks[2]
    moved = [WHOLE if d in windows else next(left) for d in range(rank)]
    return ShardingRule([array, indices], moved) if gathers else ShardingRule([array, indices, moved], array)


def _adds_to_zeros(scatter: Instruction) -> bool:
    zero = scatter.operand.operands[:1] if scatter.operand.is_broadcast else []
    is_sum = scatter.to_apply.root.opcode == "add" and scatter.is_array
    return is_sum and any(o.is_constant and scalar_of(o) == 0 for o in zero)


def _attribute(x: Instruction, name: str) -> str:
    return x.frontend_attributes.get(f"xla.sdy.{name}", "")


def shardings_of(x: Instruction, name: str) -> list[_Sharding]:
    """The axes of the mesh in each dimension, by Shardy's attribute of this name; empty without one."""
    return [
        tuple(
            tuple(f"{axis}:{part}" if part else axis for axis, part in _AXIS.findall(dimension))
            for dimension in re.findall(r"\{([^}]*)\}", dimensions)
        )
        for dimensions in _SHARDING.findall(_attribute(x, name))
    ]
