"""The summary of a fusion from the summaries of its parts, without walking it.

A producer adds to its consumer what it has inside; where the consumer reads it once and in step,
nothing inside the producer changes but that its root is now the consumer's. Other cases are few and
left to the walk (`summary`): the two agree, and the tests hold them against each other.
"""

from collections.abc import Sequence
from copy import copy

from hlofuse.cost.gpu.heroes import fuse_root
from hlofuse.cost.gpu.joining import SIDE_BY_SIDE, Origin, join, join_in_step, side_by_side, spelled_out
from hlofuse.cost.gpu.shapes import bytes_of_leaves
from hlofuse.cost.gpu.summary import FEW_OPERANDS, LITTLE_CODE, Summary, SummaryPair, classify
from hlofuse.cost.gpu.ticks import EXACT

_NONE: frozenset[int] = frozenset()


def compose(pair: SummaryPair, origins: Sequence[Origin]) -> Summary | None:
    """The producer of the pair fused into its consumer; None where only a walk can tell.

    `origins` are those of the parameters of the new fusion, in order.
    """
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
        origins = spelled_out(origins, pair)
        if not join(fused, producer, consumer, slot, origins):
            return None
    fused.inside = fused.utilization, fused.operand_bytes, fused.parameter_ir_size
    fused.ir_size = fused.own_ir_size + sum(fused.parameter_ir_size)
    if fused.ir_size >= EXACT:
        return None
    fused.total_read = sum(fused.operand_bytes)
    fused.written = _written(consumer)
    _set_sums(fused, producer, consumer)
    fused.crossed = _NONE
    if consumer.crossed or producer.crossed:
        across = enumerate(spelled_out(origins, pair))
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


def _written(consumer: Summary) -> int:
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
        fused.clean = side_by_side(consumer.clean, slot, other)
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
            root.reached = side_by_side(own, slot, joins)
        else:
            root.reached = [(o >= 0 and own[o]) or (i >= 0 and joins[i]) for o, i in origins]
        roots.append(root)
    # Every reduction of the kind that can be a hero is counted.
    fused.is_reduction = fused.unnested_reductions > 0 and True in [root.is_reduction for root in roots]
