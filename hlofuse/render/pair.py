"""Two modules of which one became the other: by a replay, or as somebody found by comparing them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hlofuse.ir import Instruction, Module
from hlofuse.render.scene import members
from hlofuse.replay import Replay


@dataclass(frozen=True, slots=True)
class ModulePair:
    """What a picture of both sides is made from."""

    before: Module
    after: Module
    kernels: Mapping[Instruction, tuple[Instruction, ...]]
    """For instructions of `before`: the instructions of `after` that compute them."""
    title: str = ""
    """What lies between the two: `gpu fusion on h100_sxm`, `2 merged`."""
    notes: Mapping[Instruction, str] = field(default_factory=dict)
    """A word on instructions of either side, to be seen at a glance: `split`, `new`…"""
    same_names: bool = False
    """A name means the same on both sides."""


def pair_of(replay: Replay, title: str) -> ModulePair:
    """The two ends of a replay."""
    inside = members(replay.events)
    found: dict[str, list[Instruction]] = {}
    for i in replay.after.instructions():
        for name in inside.get(i.name, {i.name: None}):
            found.setdefault(name, []).append(i)
    kernels = {i: tuple(found[i.name]) for i in replay.before.instructions() if i.name in found}
    return ModulePair(replay.before, replay.after, kernels, title, same_names=True)
