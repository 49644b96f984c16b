"""The ways of all operations through a film at once: what `follow` tells of one.

A *thread* is an operation for as long as nothing about it is new: the same name, opcode, shape and fusion
from dump to dump. Where something is, links lead from its thread to those that go on.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hlofuse.differ import Added, ModuleDiff
from hlofuse.differ.report.summary import Cluster, summarize
from hlofuse.films.follow import how_changed, spot_of
from hlofuse.films.journey import How, Spot
from hlofuse.films.words import opcodes_text
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module

MOST_THREADS = 60_000
"""More would make a page too large; then there are none."""


@dataclass(frozen=True, slots=True)
class Thread:
    """An operation while nothing about it is new."""

    spot: Spot
    begins: int
    """The first dump that has it, counted from 0."""
    source: str = ""
    instead_of: str = ""
    """Opcodes that were replaced, where it was made."""


@dataclass(frozen=True, slots=True)
class Link:
    """What became of a thread at a dump."""

    thread: int
    step: int
    how: How
    to: int
    """The thread that goes on; -1 where it is gone."""


@dataclass(slots=True)
class Weave:
    """Grows dump by dump."""

    threads: list[Thread] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    full: bool = False
    """There are too many: nothing is kept."""
    _now: dict[Instruction, int] = field(default_factory=dict)

    def begin(self, step: int, module: Module) -> None:
        """The first dump that can be read."""
        for i in module.instructions():
            if _is_operation(i):
                self._thread(step, i, module)

    def advance(self, step: int, found: ModuleDiff) -> None:
        """The next dump, compared with the one ahead."""
        if self.full:
            return
        before, self._now = self._now, {}
        module = found.after.module
        clusters = [c for group in summarize(found).clusters for c in group] if not found.same else []
        gone = {i: c for c in clusters for i in c.removed if c.added}
        made = {i: c for c in clusters for i in c.added if c.removed}
        late: list[tuple[int, Instruction]] = []
        for i, thread in before.items():
            later = list(dict.fromkeys(p.instruction for p in found.after_of(i)))
            old = self.threads[thread].spot
            if len(later) == 1 and later[0] not in self._now and spot_of(later[0]) == old:
                self._now[later[0]] = thread
            elif later:
                spots = tuple(spot_of(j) for j in later)
                how = how_changed((old,), spots)
                for j in later:
                    self._link(thread, step, how, self._at(step, j, module, made))
            else:
                late.append((thread, i))
        for thread, i in late:
            self._lost(step, thread, gone.get(i), found, made)
        for edit in found.edits:
            if isinstance(edit, Added):
                for place in edit.after:
                    if place.instruction not in self._now and _is_operation(place.instruction):
                        self._at(step, place.instruction, module, made)
        if len(self.threads) > MOST_THREADS:
            self.threads, self.links, self._now, self.full = [], [], {}, True

    def _lost(
        self,
        step: int,
        thread: int,
        cluster: Cluster | None,
        found: ModuleDiff,
        made: dict[Instruction, Cluster],
    ) -> None:
        if cluster is None:
            self.links.append(Link(thread, step, How.GONE, -1))
            return
        alike = [j for j in cluster.added if j.opcode == self.threads[thread].spot.opcode]
        how = How.REWRITTEN if alike else How.REPLACED
        for j in alike or cluster.added[:1]:
            self._link(thread, step, how, self._at(step, j, found.after.module, made))

    def _link(self, thread: int, step: int, how: How, to: int) -> None:
        self.links.append(Link(thread, step, how, to))

    def _at(self, step: int, i: Instruction, module: Module, made: dict[Instruction, Cluster]) -> int:
        if i in self._now:
            return self._now[i]
        cluster = made.get(i)
        instead = opcodes_text(tuple(x.opcode for x in cluster.removed)) if cluster is not None else ""
        return self._thread(step, i, module, instead)

    def _thread(self, step: int, i: Instruction, module: Module, instead: str = "") -> int:
        place = module.source_of(i)
        self.threads.append(Thread(spot_of(i), step, str(place) if place else "", instead))
        self._now[i] = len(self.threads) - 1
        return self._now[i]


def _is_operation(i: Instruction) -> bool:
    """Not what passes a value into a fusion or into a small computation that is applied to elements."""
    home = i.computation
    if home is None:
        return False
    if home.fusion is not None:
        return i.opcode != "parameter"
    return home is home.module.entry if home.module is not None and not home.callers else bool(home.callers)

