"""Keeps what the passes before fusion tell of their rewrites, and follows what they made to fusion."""

from collections.abc import Sequence
from typing import Any

from hlofuse.analysis.bitcasts import without_bitcasts
from hlofuse.ir.graph import GraphWatcher, Instruction, Module
from hlofuse.trace.events import Event
from hlofuse.trace.recorder import OnlySkipped

_MOVING = ("copy", "transpose")
"""A copy into another layout ends as a transpose, or joins one."""


class BeforeFusion(OnlySkipped):
    """A recorder that is the module's watcher as well; passes that tell nothing cost next to nothing."""

    def __init__(self) -> None:
        super().__init__()
        self._events: list[tuple[Event, tuple[Instruction, ...]]] = []
        self._now: dict[Instruction, Instruction | None] = {}
        """What stands for an instruction that an event speaks of; None for itself."""
        self._copies: dict[Instruction, Instruction] = {}
        """Their last clones, as of a computation that is inlined."""
        self._other: GraphWatcher | None = None

    def watch(self, module: Module) -> None:
        """Follow what is replaced in it, next to its own watcher."""
        self._other, module.watcher = module.watcher, self

    def created_instructions(
        self, removed: str, added: Sequence[Instruction], *, rule: str, reason: str
    ) -> None:
        computation = added[0].computation if added else None
        name = computation.name if computation is not None else ""
        self._keep("rewrite", name, tuple(added), {"removed": (removed,)}, rule, reason)

    def ineligible(
        self, producer: Instruction, consumer: Instruction | None, *, rule: str, reason: str, **_: Any
    ) -> None:
        name = producer.computation.name if producer.computation is not None else ""
        ends = (producer,) if consumer is None else (producer, consumer)
        self._keep("ineligible", name, ends, {}, rule, reason)

    def _keep(
        self,
        event: str,
        computation: str,
        about: tuple[Instruction, ...],
        names: dict[str, tuple[str, ...]],
        rule: str,
        reason: str,
    ) -> None:
        self._step += 1
        recorded = Event(event, self._pass, computation, self._step, rule=rule, reason=reason, **names)  # type: ignore[arg-type]
        self._events.append((recorded, about))
        for i in about:
            self._now.setdefault(i, None)

    def replaced(self, old: Instruction, new: Instruction) -> None:
        """An instruction like it, or a fusion that holds it, stands for what an event speaks of."""
        if self._other is not None:
            self._other.replaced(old, new)
        if old not in self._now or old is new:
            return
        if old.opcode in _MOVING:
            new = without_bitcasts(new)
        if new.opcode in (old.opcode, "fusion") or (old.opcode in _MOVING and new.opcode in _MOVING):
            self._now[old] = new
            self._now.setdefault(new, None)

    def copied(self, old: Instruction, new: Instruction) -> None:
        if self._other is not None:
            self._other.copied(old, new)
        if old in self._now:
            self._copies[old] = new
            self._now.setdefault(new, None)

    def following_names(self, module: Module) -> tuple[Event, ...]:
        """The events that speak of something in `module`, which fusion begins with, under its names there."""
        found = []
        for event, about in self._events:
            stand_for = [self._successor(i, module) for i in about]
            names = [i.name if _is_in(i, module) else None for i in stand_for]
            if event.event == "rewrite":
                works = {i.name for i in stand_for if i.opcode != "constant"}
                added = tuple(dict.fromkeys(n for n in names if n in works))
                if added:
                    found.append(event._replace(added=added))
            elif all(names):
                producer, consumer = (*names, None)[:2]
                found.append(event._replace(producer=producer, consumer=consumer))
        return tuple(found)

    def _successor(self, instruction: Instruction, module: Module) -> Instruction:
        seen = {instruction}
        while True:
            following = self._now.get(instruction)
            if following is None and not _is_in(instruction, module):
                following = self._copies.get(instruction)
            if following is None or following in seen:
                return instruction
            instruction = following
            seen.add(following)


def _is_in(instruction: Instruction, module: Module) -> bool:
    return instruction.computation is not None and instruction.computation.module is module
