"""Where the operands of a fusion come from that was made of a producer and a consumer."""

from collections.abc import Sequence

from hlofuse.cost.gpu.pair import SummaryPair
from hlofuse.ir.graph import Instruction

Origin = tuple[int, int]
"""Where a parameter of the new fusion comes from: slots of the consumer and of the producer, or -1."""
SIDE_BY_SIDE: Sequence[Origin] = ((-1, -1),)
"""Stands for what nearly all have: the consumer's slots but for where it read the producer, then all of the
producer's (`spelled_out`)."""


def origins_of(fusion: Instruction, pair: SummaryPair, producer: Instruction) -> Sequence[Origin] | None:
    """Where each operand of a fusion just made from such a pair comes from; None if that is not plain.

    Fusing keeps the consumer's operands in their order and appends the producer's new ones.
    """
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


def spelled_out(origins: Sequence[Origin], pair: SummaryPair) -> Sequence[Origin]:
    """The origins one by one."""
    if origins is not SIDE_BY_SIDE:
        return origins
    own_count = [(k, -1) for k in range(len(pair.consumer.operands)) if k != pair.slot]
    return own_count + [(-1, k) for k in range(len(pair.producer.operands))]
