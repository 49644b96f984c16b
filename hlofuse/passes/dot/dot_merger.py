"""Products that share an operand become one (`xla/hlo/transforms/simplifiers/dot_merger.cc`).

`dot(a, b)` and `dot(a, c)` are slices of `dot(a, concatenate(b, c))`, where neither needs the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.removing import remove_with_unused_operands
from hlofuse.passes.base import Pass, any_change
from hlofuse.passes.common.shapes import array
from hlofuse.passes.dot.dot_operand import BATCH, CONTRACTING, FREE, DotOperand
from hlofuse.passes.dot.merged_dots import Usage, merge
from hlofuse.passes.dot.shape_tracker import ShapeTracker
from hlofuse.trace import Recorder

_FLOPS_PER_BYTE = 290.0
"""Done in the time that a byte takes from memory."""
_MAX_RATIO = 20
"""Of the free sizes of merged products."""
_MIN_SAVINGS = 1e-5
_SHAPES = ("transpose", "reshape")

Key = tuple[int, tuple[int, ...], str, str, str, str, str]


@dataclass(frozen=True)
class DotMerger(Pass):
    """`dot-merger`: products whose other operand and result have up to `max_size` bytes."""

    name = "dot-merger"
    max_size: int

    def run(self, module: Module, recorder: Recorder) -> bool:
        return any_change(map(self._merge, module.non_fusion_computations()))

    def _merge(self, computation: Computation) -> bool:
        classes = {key: usages for key, usages in _classes(computation).items() if len(usages) > 1}
        if not classes:
            return False
        order = _Order(computation)
        replacements: dict[Instruction, Instruction] = {}
        products = []
        for key in sorted(classes):
            usages = sorted(classes[key], key=lambda usage: (usage.size, usage.dot.id))
            while group := self._group([u for u in usages if u.dot not in replacements], order):
                product, results = merge(group)
                replacements.update((u.dot, result) for u, result in zip(group, results, strict=True))
                order.add(product, [usage.dot for usage in group])
                products.append(product)
        replaced = sorted(replacements.items(), key=lambda item: item[0].id)
        for old, new in replaced:
            old.replace_all_uses_with(new)
        for old, _ in replaced:
            if old.computation is not None:
                remove_with_unused_operands(old, has_side_effect)
        for product in products:
            for part in list(product.users):
                for user in list(part.users) if part.opcode == "slice" else ():
                    _shorten(user)
        return bool(replacements)

    def _group(self, usages: Sequence[Usage], order: _Order) -> list[Usage]:
        """The first two or more that go together (`FindDotsToMerge`)."""
        if len(usages) < 2:
            return []
        dims, first = usages[0].shared_dimensions, usages[0]
        batch, free, contracting = (dims.total(category) for category in (BATCH, FREE, CONTRACTING))
        shared_bytes = first.shared.shape.byte_size
        bytes_each = batch * (contracting * _size_of(first.other) + free * _size_of(first.dot))
        cost_each = 2.0 * batch * free * contracting / _FLOPS_PER_BYTE + bytes_each
        for k, seed in enumerate(usages):
            group, total = [seed], seed.size
            for usage in usages[k + 1 :]:
                if bytes_each * total > self.max_size or usage.size > seed.size * _MAX_RATIO:
                    break
                if any(order.connected(member.dot, usage.dot) for member in group):
                    continue
                runtime = cost_each * (total + usage.size) + (len(group) + 1) * shared_bytes
                if shared_bytes * len(group) / runtime > _MIN_SAVINGS:
                    group.append(usage)
                    total += usage.size
            if len(group) > 1:
                # What is aligned best stands first.
                return sorted(group, key=lambda u: (-(u.size & -u.size), -u.size, u.dot.id))
        return []


def _size_of(instruction: Instruction) -> int:
    return array(instruction.shape.element_type).byte_size


def _classes(computation: Computation) -> dict[Key, list[Usage]]:
    """Products by an operand that they could share; each is in two classes (`BuildEquivalenceClasses`)."""
    classes: dict[Key, list[Usage]] = defaultdict(list)
    for dot in computation:
        if dot.opcode != "dot" or dot.control_predecessors or dot.control_successors:
            continue
        empty = any(0 in i.shape.dimensions for i in (dot, *dot.operands))
        # Ahead of DotDecomposer an operand may be a scalar; XLA asks for its last dimension.
        if (
            empty
            or not all(o.shape.dimensions for o in dot.operands)
            or any(_of_narrow_type(operand) for operand in dot.operands)
        ):
            continue
        sources = [_source(dot, side) for side in (0, 1)]
        for side in (0, 1):
            (source, dims), (other, other_dims) = sources[side], sources[1 - side]
            key = (
                source.id,
                dims.without_ones().categories(),
                dot.operands[side].shape.element_type,
                dot.operands[1 - side].shape.element_type,
                dot.shape.element_type,
                dot.attributes.raw("operand_precision") or "",
                dot.attributes.raw("algorithm") or "",
            )
            classes[key].append(Usage(dot, side, source, other, other_dims.total(FREE)))
    return classes


def _source(dot: Instruction, side: int) -> tuple[Instruction, DotOperand]:
    """What the operand is made of, as far as no dimension gets two categories
    (`GetOperandSourceWithCategories`)."""
    current, dims = dot.operands[side], DotOperand.of(dot, side)
    while current.opcode in _SHAPES:
        operand_dims = dims.of_operand(current)
        if operand_dims is None:
            break
        current, dims = current.operands[0], operand_dims
    return current, dims


def _of_narrow_type(instruction: Instruction) -> bool:
    """Made of numbers smaller than a byte (`HasSubByteUpcast`)."""
    while instruction.opcode in (*_SHAPES, "convert"):
        operand = instruction.operands[0]
        narrow = operand.shape.bit_width < 8 and operand.shape.element_type != "pred"
        if instruction.opcode == "convert" and narrow:
            return True
        instruction = operand
    return False


class _Order:
    """What comes behind what, the merged products among them (`BuildDependencyGraph`)."""

    def __init__(self, computation: Computation) -> None:
        self._after = {i: [*i.users, *i.control_successors] for i in computation}
        self._reached: dict[Instruction, set[Instruction]] = {}

    def connected(self, a: Instruction, b: Instruction) -> bool:
        """A product of an array and itself is so with itself."""
        return a is b or b in self._from(a) or a in self._from(b)

    def add(self, product: Instruction, parts: Sequence[Instruction]) -> None:
        """`product` stands between its parts and what is behind them (`UpdateGraphForMergedDot`)."""
        self._after[product] = [user for part in parts for user in self._after[part]]
        for part in parts:
            self._after[part].append(product)
        self._reached.clear()

    def _from(self, start: Instruction) -> set[Instruction]:
        found = self._reached.get(start)
        if found is None:
            found = set()
            stack = [start]
            while stack:
                for user in self._after[stack.pop()]:
                    if user not in found:
                        found.add(user)
                        stack.append(user)
            self._reached[start] = found
        return found


def _shorten(start: Instruction) -> None:
    """Make the reshapes and transposes from `start` on as few as may be (`SimplifyConsumerChain`)."""
    if len(start.operands) != 1:
        return
    producer = start.operands[0]
    tracker = ShapeTracker(producer.shape.dimensions)
    chain: list[Instruction] = []
    current = start
    while current.opcode in _SHAPES and not (current.control_predecessors or current.control_successors):
        tracker.append(current)
        chain.append(current)
        if len(current.users) != 1:
            break
        current = current.users[0]
    if not chain:
        return
    chain[-1].replace_all_uses_with(tracker.chain(producer))
    for instruction in reversed(chain):
        assert instruction.computation is not None
        instruction.computation.remove_instruction(instruction)
