"""Which operations of the module before became which kernel after, read off the events of a replay."""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.trace import Event


def members(events: Sequence[Event]) -> dict[str, dict[str, None]]:
    """For each instruction that fusing or rewriting made: the original instructions in it, in order.

    An instruction that is not listed is still itself.
    """
    inside: dict[str, dict[str, None]] = {}

    def of(name: str | None) -> dict[str, None]:
        return inside.get(name or "", {name or "": None})

    for e in events:
        if e.event == "fuse" and e.fusion:
            inside[e.fusion] = {**of(e.producer), **of(e.consumer), **inside.get(e.fusion, {})}
        elif e.event == "rewrite":
            gone: dict[str, None] = {}
            for name in e.removed:
                gone |= of(name)
            for name in e.added:
                inside[name] = {**of(name), **gone}
    return inside
