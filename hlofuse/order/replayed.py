"""The order in which XLA's memory has a module, from repeating the passes that made it.

PriorityFusion breaks ties by ids and visits users in the order of XLA's use-lists. No text carries either.
Both follow from the passes before fusion, repeated on the module before optimizations.
"""

from collections.abc import Hashable, Iterable

from hlofuse.analysis.custom_calls import is_radix_sort
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.copy import copy_module
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.passes.sort.sort_rewriter import SortRewriter
from hlofuse.pipelines.manager import lower_to_fusion_input


def with_replayed_order(
    module: Module,
    unoptimized: Module,
    target: str,
    device: DeviceDescription | None,
    flags: tuple[str, ...] = (),
) -> Module | None:
    """A copy of `module` with the ids and use-lists that the passes before fusion give `unoptimized`.

    None where these passes give another module. Raises `HlofuseError` for excessive growth by inlining.
    """
    replayed = lower_to_fusion_input(unoptimized, target, device, without=_left_out(module), flags=flags)
    copy = copy_module(module)
    copies = counterparts(replayed.module, copy)
    if copies is None:
        return None
    _take_ids(copies, copy)
    for original, own in copies.items():
        ordered = dict.fromkeys(copies[u] for u in original.users if u in copies)
        own.users[:] = [*ordered, *(u for u in own.users if u not in ordered)]
    copy.order_source = "replayed"
    return copy


def _left_out(module: Module) -> tuple[str, ...]:
    """Passes that did not run: without a GPU, XLA has no table of CUB's speeds and keeps its sorts."""
    instructions = [x for c in module.computations for x in c]
    if any(is_radix_sort(x) for x in instructions) or not any(x.opcode == "sort" for x in instructions):
        return ()
    return (SortRewriter.name,)


def _take_ids(copies: dict[Instruction, Instruction], module: Module) -> None:
    id_of = {own: original.id for original, own in copies.items()}
    for computation in module.computations:
        # An unread element is as old as what it is taken from.
        ordered = {i: id_of.get(i, id_of.get(i.operands[0], 0) if i.operands else 0) for i in computation}
        computation.reorder(sorted(ordered, key=ordered.__getitem__))


# Said about an instruction, or written down differently by who wrote it.
_NOT_COMPARED = frozenset(
    """
    metadata frontend_attributes sharding control-predecessors origin original_value statistics
    backend_config calls to_apply body condition true_computation false_computation branch_computations
    select scatter called_computations
    """.split()
)


def counterparts(one: Module, other: Module) -> dict[Instruction, Instruction] | None:
    """The instruction of `other` for each of `one`; None where the modules differ.

    Parameters and roots correspond, and so do their operands. Dead instructions are matched by their
    operands. Unread get-tuple-elements have none: XLA's texts omit them.
    """
    pairs = _Pairs()
    pairs.computation(one.entry, other.entry)
    while pairs.waiting:
        if not _pair(*pairs.waiting.pop(), pairs):
            return None
    reached = {c.computation for c in pairs.of}
    called = [c for c in one.computations if c.callers or c is one.entry]
    return pairs.of if all(c in reached for c in called) else None


class _Pairs:
    def __init__(self) -> None:
        self.of: dict[Instruction, Instruction] = {}
        self.taken: set[Instruction] = set()
        self.computations: dict[Computation, Computation] = {}
        self.waiting: list[tuple[Computation, Computation]] = []

    def computation(self, one: Computation, other: Computation) -> bool:
        paired = self.computations.get(one)
        if paired is None:
            self.computations[one] = other
            self.waiting.append((one, other))
        return paired in (None, other)

    def add(self, one: Instruction, other: Instruction) -> bool:
        """Add the pair; False where they differ, or call computations paired otherwise."""
        if other in self.taken or len(one.operands) != len(other.operands) or not _agree(one, other):
            return False
        self.of[one] = other
        self.taken.add(other)
        called = zip(one.called, other.called, strict=True)
        return all(self.computation(a, b) for (_, a), (_, b) in called)


def _pair(one: Computation, other: Computation, pairs: _Pairs) -> bool:
    if len(one.parameters) != len(other.parameters):
        return False
    start = [*zip(one.parameters, other.parameters, strict=True), (one.root, other.root)]
    return _down_from(start, pairs) and _by_operands(_left(one, pairs.of), _left(other, pairs.taken), pairs)


def _down_from(stack: list[tuple[Instruction, Instruction]], pairs: _Pairs) -> bool:
    while stack:
        a, b = stack.pop()
        paired = pairs.of.get(a)
        if paired is None:
            if not pairs.add(a, b):
                return False
            stack.extend(zip(a.operands, b.operands, strict=True))
        elif paired is not b:
            return False
    return True


def _left(computation: Computation, done: Iterable[Instruction]) -> list[Instruction]:
    paired = done if isinstance(done, (dict, set)) else set(done)
    return [
        i
        for i in computation.post_order()
        if i not in paired and (i.users or i.opcode != "get-tuple-element")
    ]


def _by_operands(some: list[Instruction], others: list[Instruction], pairs: _Pairs) -> bool:
    """Match dead instructions: operands before users, so that the operands have counterparts."""
    if len(some) != len(others):
        return False
    open_: dict[tuple[Instruction, ...], list[Instruction]] = {}
    for b in others:
        open_.setdefault(tuple(b.operands), []).append(b)
    for a in some:
        if any(o not in pairs.of for o in a.operands):
            return False
        candidates = open_.get(tuple(pairs.of[o] for o in a.operands), [])
        found = next((b for b in candidates if b not in pairs.taken and _content(a) == _content(b)), None)
        if found is None or not pairs.add(a, found):
            return False
    return True


def _agree(one: Instruction, other: Instruction) -> bool:
    """True if the contents are equal; an array elided in one text equals any."""
    hidden = one.opcode == "constant" == other.opcode and (one.literal.is_elided or other.literal.is_elided)
    return _content(one, hidden) == _content(other, hidden)


def _shape_of(i: Instruction) -> Hashable:
    """The shape; for a radix sort without the size of CUB's workspace, which depends on the device."""
    return tuple(s.key for s in i.shape.tuple_shapes[:-1]) if is_radix_sort(i) else i.shape.key


def _content(i: Instruction, hidden: bool = False) -> Hashable:
    """The content of an instruction without operands and called computations (with `hidden`,
    without elements)."""
    raw = i.attributes.raw_items
    attributes = tuple(sorted((k, "".join(v.split())) for k, v in raw.items() if k not in _NOT_COMPARED))
    payload = "" if hidden else (i.payload or "").strip()
    if i.opcode == "constant" and not hidden:
        payload = i.literal.canonical_text
    return (i.opcode, _shape_of(i), attributes, payload, len(i.called))
