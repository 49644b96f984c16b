"""The summary of a fusion from the summaries of its parts, without walking it.

A producer adds to its consumer what it has inside; where the consumer reads it once and in step,
nothing inside the producer changes but that its root is now the consumer's. Other cases are few and
left to the walk (`summary`): the two agree, and the tests hold them against each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import frexp

from hlofuse.cost.gpu.atoms import Atom
from hlofuse.cost.gpu.heroes import Root
from hlofuse.cost.gpu.pair import Pair
from hlofuse.cost.gpu.summary import Summary
from hlofuse.cost.gpu.ticks import EXACT, fp32, single_half_away
from hlofuse.cost.gpu.utilization import elements_read, lowest_bit, reads_whole
from hlofuse.ir.instruction import Instruction

_NONE: frozenset[int] = frozenset()
_MANY_ROOTS = 24
Origin = tuple[int, int]
"""Where a parameter of the new fusion comes from: slots of the consumer and of the producer, or -1."""


def compose(pair: Pair, origins: Sequence[Origin]) -> Summary | None:
    """The producer of the pair fused into its consumer; None where only a walk can tell.

    `origins` are those of the parameters of the new fusion, in order.
    """
    producer, consumer, slot = pair.producer, pair.consumer, pair.slot
    if not (producer.composes and consumer.composes):
        return None
    if len(producer.roots) != 1 or slot in consumer.crossed:
        return None
    if producer.roots[0].updates:
        return None  # as an output its buffer was not read; now it is
    merged = _Uses(producer, consumer, slot)
    if not merged.is_known:
        return None
    fused = Summary()
    fused.atom, fused.is_fusion, fused.is_tuple, fused.first_slots = None, True, consumer.is_tuple, ()
    ours, theirs = consumer.operands, producer.operands
    fused.operands = [ours[outer] if outer >= 0 else theirs[inner] for outer, inner in origins]
    if not (_set_flops(fused, producer, consumer, merged) and _set_uses(fused, consumer, merged, origins)):
        return None
    fused.ir_size = merged.own_ir_size + sum(fused.parameter_ir_size)
    if fused.ir_size >= EXACT:
        return None
    fused.whole = consumer.whole and merged.whole
    fused.splits = consumer.splits + merged.copies * producer.splits
    fused.written = _written(consumer)
    _set_sums(fused, producer, consumer, origins)
    _set_roots(fused, pair, origins)
    fused.total_read, fused.own_ir_size = sum(fused.operand_bytes), merged.own_ir_size
    fused.composes = True
    return fused


def origins_of(fusion: Instruction, pair: Pair, producer: Instruction) -> Sequence[Origin] | None:
    """Where each operand of a fusion just made from such a pair comes from; None if that is not plain.

    Fusing keeps the consumer's operands in their order and appends the producer's new ones.
    """
    slot, shared, b = pair.slot, pair.shared, pair.consumer
    count, brought = len(b.operands), producer.operands
    if not (shared or b.first_slots) and fusion.operands[count - 1 :] == brought:
        return _side_by_side(count, slot, len(brought))
    origins = [(k, -1) for k in range(len(b.operands))]
    if b.first_slots:
        origins = [(k, -1) for k, first in enumerate(b.first_slots) if k == first]
    origins.remove((slot, -1))
    if shared:
        inner: dict[int, int] = {}
        for k, both in enumerate(shared):
            if both is not None:
                inner.setdefault(both, k)
        origins = [(k, inner.get(k, -1)) for k, _ in origins]
    kept = len(origins)
    for operand in fusion.operands[kept:]:
        if operand not in brought:
            return None
        origins.append((-1, brought.index(operand)))
    if len(origins) != len(fusion.operands):
        return None
    new = {o for o, both in zip(brought, shared, strict=True) if both is None} if shared else set(brought)
    return origins if len(new) == len(origins) - kept else None


@lru_cache(maxsize=1024)
def _side_by_side(count: int, slot: int, brought: int) -> tuple[Origin, ...]:
    """A consumer of so many operands reads the producer at `slot`, and none of what that brings."""
    return (*[(k, -1) for k in range(count) if k != slot], *[(-1, k) for k in range(brought)])


class _Uses:
    """Roots of element-wise use of both parts in one numbering, the consumer's first."""

    def __init__(self, producer: Summary, consumer: Summary, slot: int) -> None:
        joint = self.joint = consumer.parameter_uses[slot]
        """What the producer's root belongs to: its number 0 stands for these."""
        evaluated, emitted = consumer.root_utilization, consumer.root_emitted
        if len(joint) == 1:
            (number,) = joint
            often, copies = evaluated[number], emitted[number]
        else:
            often, copies = 0.0, 0
            for number in joint:
                often = fp32(often + evaluated[number])
                copies += emitted[number]
        self.often, self.copies = often, copies
        self.shift = len(evaluated) - 1
        self.producer_uses = producer.parameter_uses
        self.is_known = self.whole = True
        more = producer.root_utilization[1:]
        if often == 1.0:
            self.whole = producer.whole
        elif producer.atom is None:
            # The inside of a fusion would have to be gone through, but where nothing is rounded.
            self.is_known = producer.whole and all(map(self._scales, producer.root_utilization))
            more = [e * often for e in more]
        elif more:
            more = self._reads(producer, producer.atom)
        if more:
            evaluated = [*evaluated, *more]
            emitted = [*emitted, *[n * copies for n in producer.root_emitted[1:]]]
        self.evaluated, self.emitted = evaluated, emitted
        self.own_ir_size = consumer.own_ir_size + copies * producer.own_ir_size

    def of_producer(self, parameter: int) -> frozenset[int]:
        """What one of the producer's parameters belongs to."""
        uses = self.producer_uses[parameter]
        if len(uses) == 1 and 0 in uses:
            return self.joint
        new = {number + self.shift for number in uses if number}
        return self.joint | new if 0 in uses else frozenset(new)

    def _reads(self, instruction: Summary, atom: Atom) -> list[float]:
        """How often an instruction reads each operand, none of them used as it is."""
        evaluated = [0.0] * len(atom.operands)
        for slot, number in enumerate(instruction.first_slots or range(len(atom.operands))):
            share, operand = atom.operand_utilization[slot], atom.operands[slot]
            evaluated[number] = fp32(evaluated[number] + elements_read(self.often, share, operand))
            self.whole = self.whole and reads_whole(self.often, share, operand)
        return evaluated

    def _scales(self, evaluated: float) -> bool:
        """A rate within the producer is exact, and so are its sums, when multiplied."""
        often = self.often
        return (
            frexp(often)[0] == 0.5 and often >= 1.0 and evaluated.is_integer() and evaluated * often < EXACT
        )


def _set_flops(fused: Summary, producer: Summary, consumer: Summary, merged: _Uses) -> bool:
    """False if the sum could depend on the order of adding in single precision."""
    work, granule = float(producer.flops), producer.granule
    if merged.often != 1.0:
        work = fp32(merged.often * work)
        granule = lowest_bit(work) if producer.atom is not None else granule * merged.often
    total = work + consumer.flops
    fused.granule = granule if granule < consumer.granule else consumer.granule
    fused.flops = int(total)
    return total == 0 or total < fused.granule * EXACT


def _set_uses(fused: Summary, consumer: Summary, merged: _Uses, origins: Sequence[Origin]) -> bool:
    """False if single precision could round a utilization otherwise."""
    evaluated, emitted = merged.evaluated, merged.emitted
    uses, utilization, read, ir_sizes = [], [], [], []
    as_before, is_fusion = consumer.parameter_uses, consumer.is_fusion
    for k, (outer, inner) in enumerate(origins):
        if outer < 0:
            both = merged.of_producer(inner)
        else:
            both = as_before[outer]
            if inner >= 0:
                both |= merged.of_producer(inner)
            elif is_fusion and len(both) == 1:  # nothing new reads it
                uses.append(both)
                utilization.append(consumer.utilization[outer])
                ir_sizes.append(consumer.parameter_ir_size[outer])
                read.append(consumer.operand_bytes[outer])
                continue
        if len(both) == 1:
            (number,) = both
            total, copies = evaluated[number], emitted[number]
        else:
            total, copies = 0.0, 0
            for number in both:
                value = evaluated[number]
                if not (value.is_integer() and value < EXACT):
                    return False
                total += value
                copies += emitted[number]
            if total >= EXACT:
                return False
        uses.append(both)
        utilization.append(total)
        ir_sizes.append(copies)
        size = fused.operands[k].size_fp32
        read.append(int(size) if total == 1.0 else single_half_away(size * total))
    fused.parameter_uses, fused.utilization = uses, utilization
    fused.operand_bytes, fused.parameter_ir_size = read, ir_sizes
    fused.root_utilization, fused.root_emitted = evaluated, emitted
    if len(evaluated) > _MANY_ROOTS:
        _number_anew(fused)
    return True


def _number_anew(fused: Summary) -> None:
    """Leave out the roots of use that no parameter belongs to any more."""
    numbers = {0: 0}
    fused.parameter_uses = [
        frozenset([numbers.setdefault(n, len(numbers)) for n in uses]) for uses in fused.parameter_uses
    ]
    fused.root_utilization = [fused.root_utilization[n] for n in numbers]
    fused.root_emitted = [fused.root_emitted[n] for n in numbers]


def _written(consumer: Summary) -> int:
    atom = consumer.atom
    if atom is None:
        return consumer.written
    if atom.shape.is_tuple:
        return int(atom.out_bytes)
    # What a bitcast writes on its own is not what a fusion writes that ends in one.
    result = atom.operands[1] if atom.opcode == "dynamic-update-slice" else atom.result
    return int(result.size_fp32)


def _set_sums(fused: Summary, producer: Summary, consumer: Summary, origins: Sequence[Origin]) -> None:
    fused.elementwise = producer.elementwise and consumer.elementwise
    fused.features = producer.features | consumer.features
    fused.minor_of_transpose = min(producer.minor_of_transpose, consumer.minor_of_transpose)
    fused.shared_memory = producer.shared_memory + consumer.shared_memory
    fused.unnested_reductions = producer.unnested_reductions + consumer.unnested_reductions
    fused.significant_reduce = producer.significant_reduce or consumer.significant_reduce
    fused.bad_transpose = producer.bad_transpose or consumer.bad_transpose
    fused.crossed = _NONE
    if consumer.crossed or producer.crossed:
        across = enumerate(origins)
        fused.crossed = frozenset(
            [k for k, (o, i) in across if o in consumer.crossed or i in producer.crossed]
        )


def _set_roots(fused: Summary, pair: Pair, origins: Sequence[Origin]) -> None:
    producer, consumer, slot = pair.producer, pair.consumer, pair.slot
    if False in consumer.clean or False in producer.clean:
        through = consumer.clean[slot]
        fused.clean = [
            (outer < 0 or consumer.clean[outer]) and (inner < 0 or (producer.clean[inner] and through))
            for outer, inner in origins
        ]
    else:
        fused.clean = [True] * len(origins)
    inside = producer.roots[0]
    fused.roots = roots = []
    for old, new in zip(consumer.roots, pair.roots, strict=True):
        reached, read = old.reached, old.updated_parameter
        if not reached and read < 0:
            roots.append(new)  # it is the old one
            continue
        root = old.copy() if new is old else new  # a new one was made for this pair
        if reached:
            joins = inside.reached if slot in reached else _NONE
            root.reached = frozenset([k for k, (o, i) in enumerate(origins) if o in reached or i in joins])
        root.updated_parameter = -1 if read < 0 else _moved(old, slot, origins)
        roots.append(root)
    # Every reduction of the kind that can be a hero is counted.
    fused.is_reduction = fused.unnested_reductions > 0 and True in [root.is_reduction for root in roots]
    fused.skipped = _NONE


def _moved(root: Root, slot: int, origins: Sequence[Origin]) -> int:
    """The number of the parameter that a root bitcast reads, after fusing at `slot`."""
    read = root.updated_parameter
    if read == slot:
        return -1
    return next((k for k, (outer, _) in enumerate(origins) if outer == read), -1)
