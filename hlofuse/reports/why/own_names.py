"""Names that XLA's own run gave on the way, asked of a run with other settings: what they stood for."""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.replay import Replay
from hlofuse.reports.explain.lineage import Lineage
from hlofuse.reports.explain.views import view_read


def in_the_input(names: Sequence[str], xla: Replay) -> list[str]:
    """Each name, or the operation of the input for it: the result of a producer, what reads it of a consumer.

    Fusions are numbered as they come, so that the same number is another fusion in another run.
    """
    before = {i.name: i for i in xla.before.instructions()}
    lineage = Lineage(xla.events)
    plain = [name.strip().lstrip("%") for name in names]
    held = [
        [n] if n in before else [m for m in lineage.members(lineage.final(n)) if m in before] for n in plain
    ]
    if not all(held):
        return plain
    first, *others = held
    for second in others:
        for producer in first:
            for consumer in second:
                if view_read(before[producer], before[consumer]) is not None:
                    return [producer, consumer]
    return [h[0] for h in held]
