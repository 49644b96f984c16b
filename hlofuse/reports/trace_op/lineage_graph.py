"""The paths of all operations through a sequence of dumps: what `follow` finds for one.

A *thread* is an operation for as long as nothing about it is new: the same name, opcode, shape and fusion
from dump to dump. Where something is, links lead from its thread to those that go on.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product

from hlofuse.diff import Added, ModuleDiff
from hlofuse.format.paths import source_text
from hlofuse.ir.fusing import computation_of, module_of
from hlofuse.ir.graph import Instruction, Module
from hlofuse.reports.diff.model import Cluster, summarize
from hlofuse.reports.timeline.phrases import opcodes_text
from hlofuse.reports.trace_op.follow import how_changed, is_applied, location_of, parts_of
from hlofuse.reports.trace_op.model import How, Location

MOST_THREADS = 60_000
"""More would make a page too large; then there are none."""


@dataclass(frozen=True, slots=True)
class Thread:
    """An operation while nothing about it is new."""

    location: Location
    begins: int
    """The first dump that has it, counted from 0."""
    source: str = ""
    instead_of: str = ""
    """Opcodes that were replaced, where it was created."""


@dataclass(frozen=True, slots=True)
class Link:
    """The link of a thread to a dump; the thread ends there unless it is `COPIED`."""

    thread: int
    step: int
    how: How
    to: int
    """The continuing thread; -1 where it is removed."""


@dataclass(slots=True)
class LineageGraph:
    """Grows dump by dump."""

    threads: list[Thread] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    full: bool = False
    """There are too many: nothing is kept."""
    _now: dict[Instruction, int] = field(default_factory=dict)
    _step: int = 0
    _created: dict[Instruction, Cluster] = field(default_factory=dict)

    def begin(self, step: int, module: Module) -> None:
        """The first dump that can be read."""
        self._step = step
        for i in filter(_is_operation, module.instructions()):
            self._at(i)

    def advance(self, step: int, found: ModuleDiff) -> None:
        """The next dump, compared with the one ahead."""
        if self.full:
            return
        late, self._now, self._step = self._now, {}, step
        clusters = [c for group in summarize(found).clusters for c in group] if not found.same else []
        removed_in = {i: c for c in clusters for i in c.removed if c.added}
        self._created = {i: c for c in clusters for i in c.added if c.removed}
        for match in found.matches:
            before = {p.instruction: late.pop(p.instruction) for p in match.before if p.instruction in late}
            if before:
                self._match(before, list(dict.fromkeys(p.instruction for p in match.after)))
        for i, thread in late.items():
            self._lost(thread, removed_in.get(i))
        for edit in found.edits:
            if isinstance(edit, Added):
                for i in filter(_is_operation, (p.instruction for p in edit.after)):
                    self._at(i)
        if len(self.threads) > MOST_THREADS:
            self.threads, self.links, self._now, self.full = [], [], {}, True

    def _match(self, before: dict[Instruction, int], after: list[Instruction]) -> None:
        """One value, computed in some places before and in some after; what stands as it stood goes on."""
        locations = {location_of(j): j for j in after if j not in self._now}
        leaves = []
        for thread in before.values():
            if (stays := locations.pop(self.threads[thread].location, None)) is not None:
                self._now[stays] = thread
            else:
                leaves.append(thread)
        others = [j for j in locations.values() if _is_operation(j)]
        if not leaves:
            for j in others:
                self._link(next(iter(before.values())), How.COPIED, j)
            return
        how = how_changed(tuple(self.threads[t].location for t in leaves), tuple(map(location_of, after)))
        pairs: Iterable[tuple[int, Instruction]] = zip(leaves, others, strict=False)
        if len(leaves) != len(others):  # else in the order of the text, as near as can be said
            pairs = product(leaves, others or [j for j in after if _is_operation(j)][:1])
        for thread, j in pairs:
            self._link(thread, how, j)

    def _lost(self, thread: int, cluster: Cluster | None) -> None:
        if cluster is None:
            self.links.append(Link(thread, self._step, How.REMOVED, -1))
            return
        same_opcode = [j for j in cluster.added if j.opcode == self.threads[thread].location.opcode]
        how = How.REWRITTEN if same_opcode else How.REPLACED
        for j in sorted(parts_of(cluster), key=cluster.added.index) or same_opcode or cluster.added[:1]:
            self._link(thread, how, j)

    def _link(self, thread: int, how: How, to: Instruction) -> None:
        self.links.append(Link(thread, self._step, how, self._at(to)))

    def _at(self, i: Instruction) -> int:
        """The thread of an operation, which begins with this dump if there is none yet."""
        if i not in self._now:
            place = module_of(computation_of(i)).source_of(i)
            cluster = self._created.get(i)
            instead = opcodes_text(tuple(x.opcode for x in cluster.removed)) if cluster is not None else ""
            source = source_text(place) if place else ""
            self._now[i] = len(self.threads)
            self.threads.append(Thread(location_of(i), self._step, source, instead))
        return self._now[i]


def _is_operation(i: Instruction) -> bool:
    """Not a fusion (contents is), nor what passes a value into one, nor what a reduction does with two
    elements.
    """
    computation = i.computation
    if computation is None or is_applied(i) or (i.opcode == "fusion" and i.called):
        return False
    if computation.fusion is not None:
        return i.opcode != "parameter"
    return bool(computation.callers) or (
        computation.module is not None and computation is computation.module.entry
    )
