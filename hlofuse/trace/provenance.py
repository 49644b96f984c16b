"""The fate of each instruction while passes run, by watching the graph; rewrites before fusion, followed."""

from collections.abc import Iterable

from hlofuse.analysis.elementwise import without_bitcasts
from hlofuse.ir import Instruction, InstructionMap, Instructions, InstructionSequence, Module, Record, Strings
from hlofuse.ir.names import names_in, own_name
from hlofuse.rules.catalogue import Rule
from hlofuse.rules.verdict import Verdict
from .recorder import Event, OnlySkipped


class Change(Record):
    """An instruction gave way to another one, or to none."""

    name: str
    what: str  # `replaced`, `copied`, `removed`, or `renamed` if it stayed, by no pass in particular
    pass_name: str
    by: str | None = None  # The replacement from then on; None for a removed instruction


class Fate(Record):
    """The way of one instruction through the passes."""

    changes: tuple[Change, ...]
    survivor: str | None  # The final name of what stands for it; None where it was removed


class Provenance:
    """Watches one module, which no pass has changed yet, until the end (`GraphListener`)."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._pass = ""
        self._named = {i.name: i for i in module.instructions()}
        self._names = {i: name for name, i in self._named.items()}
        """Names as they were at first; final ones of what passes add."""
        self._next = dict[Instruction, dict[Instruction, tuple[str, str]]]()
        self._removed_by = dict[Instruction, str]()
        module.listeners.append(self)

    def begin_pass(self, name: str) -> None:
        """Attribute later changes to the pass of this name."""
        self._pass = name

    def end(self) -> None:
        self._module.listeners.remove(self)

    def replaced(self, old: Instruction, new: Instruction) -> None:
        self._follow(old, new, "replaced")

    def copied(self, old: Instruction, new: Instruction) -> None:
        self._follow(old, new, "copied")

    def removed(self, old: Instruction) -> None:
        self._removed_by[old] = self._pass

    def fate(self, name: str) -> Fate | None:
        """The way of the instruction that had this name at first; None if there was none."""
        start = self._named.get(name)
        if start is None:
            return None
        before = {}
        queue, end = [start], None
        for x in queue:  # grows while it is walked; the nearest survivor counts
            if is_in(x, self._module):
                end = x
                break
            for y in self._successors(x):
                if y is not start and y not in before:
                    before[y] = x
                    queue.append(y)
        changes = []
        last = end or self._last(start, before)
        if end is None:
            changes.append(Change(self._name(last), "removed", self._removed_by.get(last, "")))
        while last is not start:
            y, last = last, before[last]
            what, pass_name = self._next[last][y]
            if self._name(last) != self._name(y):
                changes.append(Change(self._name(last), what, pass_name, self._name(y)))
        if end is not None and self._name(end) != end.name:
            changes.insert(0, Change(self._name(end), "renamed", "", end.name))
        return Fate(tuple(reversed(changes)), end.name if end is not None else None)

    def _last(self, start: Instruction, before: InstructionMap) -> Instruction:
        x = start
        while True:
            following = next((y for y in self._successors(x) if before.get(y) is x), None)
            if following is None or following not in self._removed_by:
                return x
            x = following

    def _follow(self, old: Instruction, new: Instruction, what: str) -> None:
        following = self._next.setdefault(old, {})
        if what == "replaced" or new not in following:
            following[new] = (what, self._pass)

    def _successors(self, x: Instruction) -> Instructions:
        """The replacements, the last one first; copies only without one."""
        following = self._next.get(x, {})
        ordered = list(reversed(following))
        return sorted(ordered, key=lambda y: following[y][0] != "replaced")

    def _name(self, x: Instruction) -> str:
        return self._names.get(x, x.name)


_MOVING = ("copy", "transpose")  # a copy into another layout ends as a transpose, or joins one


class BeforeFusion(OnlySkipped):
    """A recorder that listens to the module as well; passes that tell nothing cost next to nothing."""

    def __init__(self) -> None:
        super().__init__()
        self._events = list[tuple[Event, tuple[Instruction, ...]]]()
        self._now = dict[Instruction, Instruction | None]()
        """The replacement of an instruction named in an event; None for itself."""
        self._copies = InstructionMap()  # Their last clones, as of an inlined computation

    def created_instructions(
        self, removed: str, added: InstructionSequence, rule: Rule, reason: str = ""
    ) -> None:
        name, why = added[0].computation_name if added else "", reason or rule.title
        self._keep("rewrite", name, tuple(added), {"removed": (removed,)}, rule.code, why)

    def ineligible(self, producer: Instruction, consumer: Instruction | None, verdict: Verdict) -> None:
        ends = (producer,) if consumer is None else (producer, consumer)
        self._keep("ineligible", producer.computation_name, ends, {}, verdict.rule.code, verdict.reason)

    def _keep(
        self,
        event: str,
        computation: str,
        about: tuple[Instruction, ...],
        names: dict[str, Strings],
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
        if old not in self._now or old is new:
            return
        if old.opcode in _MOVING:
            new = without_bitcasts(new)
        if new.opcode in (old.opcode, "fusion") or (old.opcode in _MOVING and new.opcode in _MOVING):
            self._now[old] = new
            self._now.setdefault(new, None)

    def copied(self, old: Instruction, new: Instruction) -> None:
        if old in self._now:
            self._copies[old] = new
            self._now.setdefault(new, None)

    def removed(self, old: Instruction) -> None: ...

    def following_names(self, module: Module) -> tuple[Event, ...]:
        """The events that speak of something in `module`, which fusion begins with, under its names there."""
        found = []
        for event, about in self._events:
            stand_for = [self._successor(i, module) for i in about]
            names = [i.name if is_in(i, module) else None for i in stand_for]
            if event.event == "rewrite":
                works = {i.name for i in stand_for if not i.is_constant}
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
            if following is None and not is_in(instruction, module):
                following = self._copies.get(instruction)
            if following is None or following in seen:
                return instruction
            instruction = following
            seen.add(following)


def is_in(instruction: Instruction, module: Module) -> bool:
    """True if an instruction stands in the module; False for one that was removed."""
    return instruction.computation is not None and instruction.computation.module is module


def final_instructions(result: Iterable[Instruction]) -> dict[str, Instruction]:
    """By the names of a run's input, the instruction of its result that stands for each, if there is one.
    That is the instruction itself, else a clone or new one in its place, else one that took over its uses."""
    found = {}
    ranks = dict[str, int]()
    for x in result:
        own = own_name(x.origin)
        for name in names_in(x.origin):
            rank = 0 if x.name == name else 1 if own == name else 2
            if rank < ranks.get(name, 3):
                found[name], ranks[name] = x, rank
    return found
