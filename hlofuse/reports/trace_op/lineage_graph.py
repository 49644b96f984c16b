"""The paths of all operations through a sequence of dumps: what `follow` finds for one.

A *thread* is an operation for as long as nothing about it is new: the same name, opcode, shape and fusion
from dump to dump. Where something is, links lead from its thread to those that go on.
"""

from dataclasses import dataclass, field

from hlofuse.diff import Added, ModuleDiff
from hlofuse.format.paths import source_text
from hlofuse.ir.graph import Instruction, Module
from hlofuse.reports.diff.clusters import Cluster
from hlofuse.reports.diff.model import summarize
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
    """What became of a thread at a dump; it ends there unless it is `COPIED`."""

    thread: int
    step: int
    how: How
    to: int
    """The thread that goes on; -1 where it is gone."""


@dataclass(slots=True)
class LineageGraph:
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
        removed_in = {i: c for c in clusters for i in c.removed if c.added}
        created = {i: c for c in clusters for i in c.added if c.removed}
        late = dict(before)
        for match in found.matches:
            old_fusions = {
                p.instruction: late.pop(p.instruction) for p in match.before if p.instruction in late
            }
            if old_fusions:
                self._match(
                    step,
                    old_fusions,
                    list(dict.fromkeys(p.instruction for p in match.after)),
                    module,
                    created,
                )
        for i, thread in late.items():
            self._lost(step, thread, removed_in.get(i), found, created)
        for edit in found.edits:
            if isinstance(edit, Added):
                for place in edit.after:
                    if place.instruction not in self._now and _is_operation(place.instruction):
                        self._at(step, place.instruction, module, created)
        if len(self.threads) > MOST_THREADS:
            self.threads, self.links, self._now, self.full = [], [], {}, True

    def _match(
        self,
        step: int,
        old_fusions: dict[Instruction, int],
        new_fusions: list[Instruction],
        module: Module,
        created: dict[Instruction, Cluster],
    ) -> None:
        """One value, computed in some places before and in some after; what stands as it stood goes on."""
        locations = {location_of(j): j for j in new_fusions if j not in self._now}
        stays = {
            i: j
            for i, thread in old_fusions.items()
            if (j := locations.pop(self.threads[thread].location, None))
        }
        for i, j in stays.items():
            self._now[j] = old_fusions[i]
        others = [j for j in locations.values() if _is_operation(j)]
        leaves = {i: thread for i, thread in old_fusions.items() if i not in stays}
        if not leaves:
            first = next(iter(old_fusions.values()))
            for j in others:
                self.links.append(Link(first, step, How.COPIED, self._at(step, j, module, created)))
            return
        how = how_changed(
            tuple(self.threads[t].location for t in leaves.values()), tuple(map(location_of, new_fusions))
        )
        if len(leaves) == len(others):  # in the order of the text, as near as can be said
            for thread, j in zip(leaves.values(), others, strict=True):
                self.links.append(Link(thread, step, how, self._at(step, j, module, created)))
            return
        for thread in leaves.values():
            for j in others or [j for j in new_fusions if _is_operation(j)][:1]:
                self.links.append(Link(thread, step, how, self._at(step, j, module, created)))

    def _lost(
        self,
        step: int,
        thread: int,
        cluster: Cluster | None,
        found: ModuleDiff,
        created: dict[Instruction, Cluster],
    ) -> None:
        if cluster is None:
            self.links.append(Link(thread, step, How.REMOVED, -1))
            return
        same_opcode = [j for j in cluster.added if j.opcode == self.threads[thread].location.opcode]
        how = How.REWRITTEN if same_opcode else How.REPLACED
        for j in sorted(parts_of(cluster), key=cluster.added.index) or same_opcode or cluster.added[:1]:
            self.links.append(Link(thread, step, how, self._at(step, j, found.after.module, created)))

    def _at(self, step: int, i: Instruction, module: Module, created: dict[Instruction, Cluster]) -> int:
        if i in self._now:
            return self._now[i]
        cluster = created.get(i)
        instead = opcodes_text(tuple(x.opcode for x in cluster.removed)) if cluster is not None else ""
        return self._thread(step, i, module, instead)

    def _thread(self, step: int, i: Instruction, module: Module, instead: str = "") -> int:
        place = module.source_of(i)
        self.threads.append(Thread(location_of(i), step, source_text(place) if place else "", instead))
        self._now[i] = len(self.threads) - 1
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
