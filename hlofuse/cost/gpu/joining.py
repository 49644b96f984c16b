"""The summary of a fusion, computed from the summaries of its two parts.

Where the consumer reads the producer once and in step, only the producer's root changes: it becomes the
consumer's. Other cases are traversed (`summary`); tests compare the two.
"""

from collections.abc import Iterable, Sequence
from copy import copy
from math import frexp
from typing import TypeVar

from hlofuse.cost.gpu.atoms import Atom
from hlofuse.cost.gpu.heroes import fuse_root
from hlofuse.cost.gpu.shapes import bytes_of_leaves
from hlofuse.cost.gpu.summary import FEW_OPERANDS, LITTLE_CODE, Summary, SummaryPair, classify
from hlofuse.cost.gpu.ticks import EXACT, fp32
from hlofuse.cost.gpu.utilization import bytes_of, elements_read, lowest_bit, reads_whole
from hlofuse.ir.graph import Instruction

Origin = tuple[int, int]
"""The source of a new fusion's parameter: slots of the consumer and of the producer, or -1."""
SIDE_BY_SIDE: Sequence[Origin] = ((-1, -1),)
"""The usual origins: the consumer's slots without that of the producer, then all of the
producer's (`expand_origins`)."""


def origins_of(fusion: Instruction, pair: SummaryPair, producer: Instruction) -> Sequence[Origin] | None:
    """The origin of each operand of the pair's new fusion; None for an irregular one."""
    slot, shared, b = pair.slot, pair.shared, pair.consumer
    count, incoming = len(b.operands), producer.operands
    if not (shared or b.first_slots) and fusion.operands[count - 1 :] == incoming:
        return SIDE_BY_SIDE
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
    own_count = len(origins)
    for operand in fusion.operands[own_count:]:
        if operand not in incoming:
            return None
        origins.append((-1, incoming.index(operand)))
    if len(origins) != len(fusion.operands):
        return None
    new = {o for o, both in zip(incoming, shared, strict=True) if both is None} if shared else set(incoming)
    return origins if len(new) == len(origins) - own_count else None


def expand_origins(origins: Sequence[Origin], pair: SummaryPair) -> Sequence[Origin]:
    """The origins, with `SIDE_BY_SIDE` written out."""
    if origins is not SIDE_BY_SIDE:
        return origins
    own_count = [(k, -1) for k in range(len(pair.consumer.operands)) if k != pair.slot]
    return own_count + [(-1, k) for k in range(len(pair.producer.operands))]


_MANY_ROOTS = 24
_T = TypeVar("_T")


def joined_values(own: Sequence[_T], slot: int, other: Iterable[_T]) -> list[_T]:
    """Values by parameter of parts that share none: the consumer's without slot `slot`, then
    the producer's."""
    both = list(own)
    del both[slot]
    both += other
    return both


def join_in_step(fused: Summary, producer: Summary, consumer: Summary, slot: int) -> bool:
    """`join` for parts without shared operands and a producer evaluated once; False where
    figures might change."""
    own, other, joint = consumer.inside, producer.inside, consumer.parameter_uses[slot]
    if own is None or other is None or len(joint) != 1:
        return False
    (number,) = joint
    evaluated, emitted = consumer.root_utilization, consumer.root_emitted
    copies = emitted[number]
    if evaluated[number] != 1.0:
        return False
    flops = producer.flops + consumer.flops
    granule = producer.granule if producer.granule < consumer.granule else consumer.granule
    if flops and flops >= granule * EXACT:
        return False
    fused.flops, fused.granule = flops, granule
    uses, sizes = producer.parameter_uses, other[2]
    if len(producer.root_utilization) == 1:
        uses = [joint] * len(uses)
    else:
        shift = len(evaluated) - 1
        uses = [_renumber_roots(use, joint, shift) for use in uses]
        evaluated = [*evaluated, *producer.root_utilization[1:]]
        emitted = [*emitted, *[n * copies for n in producer.root_emitted[1:]]]
    if copies != 1:
        sizes = [n * copies for n in sizes]
    fused.root_utilization, fused.root_emitted = evaluated, emitted
    fused.operands = joined_values(consumer.operands, slot, producer.operands)
    fused.parameter_uses = joined_values(consumer.parameter_uses, slot, uses)
    fused.utilization = joined_values(own[0], slot, other[0])
    fused.operand_bytes = joined_values(own[1], slot, other[1])
    fused.parameter_ir_size = joined_values(own[2], slot, sizes)
    fused.own_ir_size = consumer.own_ir_size + copies * producer.own_ir_size
    fused.splits = consumer.splits + copies * producer.splits
    fused.whole = consumer.whole and producer.whole
    if len(evaluated) > _MANY_ROOTS:
        _drop_unused_roots(fused)
    if own[1] is consumer.operand_bytes and other[1] is producer.operand_bytes:
        for how, (ticks, each) in consumer.reads.items():
            if (incoming := producer.reads.get(how)) is not None:
                total = ticks - each[slot] + incoming[0]
                fused.reads[how] = total, joined_values(each, slot, incoming[1])
    return True


def join(fused: Summary, producer: Summary, consumer: Summary, slot: int, origins: Sequence[Origin]) -> bool:
    """Set the figures of `fused` for each parameter, and its sums; False if single precision
    might round them differently."""
    merged = _Uses(producer, consumer, slot)
    if not merged.is_cached:
        return False
    own, other = consumer.operands, producer.operands
    fused.operands = [own[outer] if outer >= 0 else other[inner] for outer, inner in origins]
    if not (_set_flops(fused, producer, consumer, merged) and _set_uses(fused, consumer, merged, origins)):
        return False
    fused.own_ir_size = merged.own_ir_size
    fused.splits = consumer.splits + merged.copies * producer.splits
    fused.whole = consumer.whole and merged.whole
    return True


def _renumber_roots(use: frozenset[int], joint: frozenset[int], shift: int) -> frozenset[int]:
    """The producer's roots of use in the consumer's numbering, where its number 0 becomes `joint`."""
    if len(use) == 1:
        (number,) = use
        return frozenset((number + shift,)) if number else joint
    new = {number + shift for number in use if number}
    return joint | new if 0 in use else frozenset(new)


class _Uses:
    """Roots of element-wise use of both parts in one numbering, the consumer's first."""

    def __init__(self, producer: Summary, consumer: Summary, slot: int) -> None:
        joint = self.joint = consumer.parameter_uses[slot]
        """The consumer's roots of use that replace the producer's root, number 0."""
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
        self.is_cached = self.whole = True
        more = producer.root_utilization[1:]
        if often == 1.0:
            self.whole = producer.whole
        elif producer.atom is None:
            # Unless nothing is rounded, the inside of a fusion would have to be traversed.
            self.is_cached = producer.whole and all(map(self._scales, producer.root_utilization))
            more = [e * often for e in more]
        elif more:
            more = self._reads(producer, producer.atom)
        if more:
            evaluated = [*evaluated, *more]
            emitted = [*emitted, *[n * copies for n in producer.root_emitted[1:]]]
        self.evaluated, self.emitted = evaluated, emitted
        self.own_ir_size = consumer.own_ir_size + copies * producer.own_ir_size

    def producer_roots(self, parameter: int) -> frozenset[int]:
        """The roots of use of one of the producer's parameters."""
        return _renumber_roots(self.producer_uses[parameter], self.joint, self.shift)

    def _reads(self, instruction: Summary, atom: Atom) -> list[float]:
        """The evaluations of each operand by an instruction that uses none element-wise."""
        evaluated = [0.0] * len(atom.operands)
        for slot, number in enumerate(instruction.first_slots or range(len(atom.operands))):
            share, operand = atom.operand_utilization[slot], atom.operands[slot]
            evaluated[number] = fp32(evaluated[number] + elements_read(self.often, share, operand))
            self.whole = self.whole and reads_whole(self.often, share, operand)
        return evaluated

    def _scales(self, evaluated: float) -> bool:
        """True if a rate within the producer, and its sums, stay exact when multiplied."""
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
            both = merged.producer_roots(inner)
        else:
            both = as_before[outer]
            if inner >= 0:
                both |= merged.producer_roots(inner)
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
        read.append(bytes_of(fused.operands[k], total))
    fused.parameter_uses, fused.utilization = uses, utilization
    fused.operand_bytes, fused.parameter_ir_size = read, ir_sizes
    fused.root_utilization, fused.root_emitted = evaluated, emitted
    if len(evaluated) > _MANY_ROOTS:
        _drop_unused_roots(fused)
    return True


def _drop_unused_roots(fused: Summary) -> None:
    numbers = {0: 0}
    fused.parameter_uses = [
        frozenset([numbers.setdefault(n, len(numbers)) for n in uses]) for uses in fused.parameter_uses
    ]
    fused.root_utilization = [fused.root_utilization[n] for n in numbers]
    fused.root_emitted = [fused.root_emitted[n] for n in numbers]


_NONE: frozenset[int] = frozenset()


def compose(pair: SummaryPair, origins: Sequence[Origin]) -> Summary | None:
    """The summary of the pair's fusion; None where only a traversal can give it."""
    producer, consumer, slot = pair.producer, pair.consumer, pair.slot
    if not (producer.composes and consumer.composes):
        return None
    if len(producer.roots) != 1 or slot in consumer.crossed:
        return None
    if producer.roots[0].updates or any(root.updated_parameter >= 0 for root in consumer.roots):
        return None  # as an output its buffer was not read; now it is
    fused = Summary()
    fused.reads = {}
    fused.atom, fused.is_fusion, fused.is_tuple, fused.first_slots = None, True, consumer.is_tuple, ()
    if origins is not SIDE_BY_SIDE or not join_in_step(fused, producer, consumer, slot):
        origins = expand_origins(origins, pair)
        if not join(fused, producer, consumer, slot, origins):
            return None
    fused.inside = fused.utilization, fused.operand_bytes, fused.parameter_ir_size
    fused.ir_size = fused.own_ir_size + sum(fused.parameter_ir_size)
    if fused.ir_size >= EXACT:
        return None
    fused.total_read = sum(fused.operand_bytes)
    fused.written = _written_bytes(consumer)
    _set_sums(fused, producer, consumer)
    fused.crossed = _NONE
    if consumer.crossed or producer.crossed:
        across = enumerate(expand_origins(origins, pair))
        fused.crossed = frozenset(
            [k for k, (o, i) in across if o in consumer.crossed or i in producer.crossed]
        )
    _set_roots(fused, pair, origins)
    fused.composes = True
    if (
        producer.is_small
        and consumer.is_small
        and producer.leaves_loops
        and consumer.leaves_loops
        and consumer.keeps_loop
    ):  # `classify` would say so
        fused.is_plain = fused.leaves_loops = fused.keeps_loop = True
        fused.is_small = len(fused.operands) <= FEW_OPERANDS and fused.ir_size <= LITTLE_CODE
    else:
        classify(fused)
    return fused


def _written_bytes(consumer: Summary) -> int:
    atom = consumer.atom
    if atom is None:
        return consumer.written
    if atom.shape.is_tuple:
        return int(bytes_of_leaves(atom.shape))
    # What a bitcast writes on its own is not what a fusion writes that ends in one.
    result = atom.operands[1] if atom.opcode == "dynamic-update-slice" else atom.result
    return int(result.size_fp32)


def _set_sums(fused: Summary, producer: Summary, consumer: Summary) -> None:
    fused.elementwise = producer.elementwise and consumer.elementwise
    fused.features = producer.features | consumer.features
    a, b = producer.minor_of_transpose, consumer.minor_of_transpose
    fused.minor_of_transpose = a if a < b else b
    fused.shared_memory = fused.unnested_reductions = 0
    fused.significant_reduce = False
    if not (producer.is_plain and consumer.is_plain):
        fused.shared_memory = producer.shared_memory + consumer.shared_memory
        fused.unnested_reductions = producer.unnested_reductions + consumer.unnested_reductions
        fused.significant_reduce = producer.significant_reduce or consumer.significant_reduce
    fused.bad_transpose = producer.bad_transpose or consumer.bad_transpose
    fused.skipped = _NONE


def _set_roots(fused: Summary, pair: SummaryPair, origins: Sequence[Origin]) -> None:
    producer, consumer, slot = pair.producer, pair.consumer, pair.slot
    inside, count = producer.roots[0], len(producer.operands)
    through = consumer.clean[slot]
    if origins is SIDE_BY_SIDE:
        other = producer.clean if through else [False] * count
        fused.clean = joined_values(consumer.clean, slot, other)
    else:
        fused.clean = [
            (outer < 0 or consumer.clean[outer]) and (inner < 0 or (producer.clean[inner] and through))
            for outer, inner in origins
        ]
    fused.roots = roots = []
    for old in consumer.roots:
        root = fuse_root(old, through, slot, inside)
        own = old.reached
        if not own:
            roots.append(root)  # it is the old one
            continue
        if root is old:
            root = copy(old)
        joins: Sequence[bool] = (own[slot] and inside.reached) or [False] * count
        if origins is SIDE_BY_SIDE:
            root.reached = joined_values(own, slot, joins)
        else:
            root.reached = [(o >= 0 and own[o]) or (i >= 0 and joins[i]) for o, i in origins]
        roots.append(root)
    # Every reduction of the kind that can be a hero is counted.
    fused.is_reduction = fused.unnested_reductions > 0 and True in [root.is_reduction for root in roots]
