"""One step of a timeline in detail: groups of changes, and the first of each group line by line."""

from collections.abc import Iterable, Iterator, Sequence, Sized

from hlofuse.diff import Changed, FusionChange, ModuleDiff
from hlofuse.format.escape import shorten
from hlofuse.ir import Instruction, PrintOptions, Record
from hlofuse.ir.text.printer import print_instruction
from hlofuse.reports.diff import phrases
from hlofuse.reports.diff.model import Cluster, summarize

MOST_GROUPS = 60
MOST_LINES = 16
LONGEST_LINE = 240
_LINE = PrintOptions(
    percent=False,
    signatures=False,
    metadata=False,
    backend_config=False,
    large_constants=False,
    operand_numbers=0,
)


class Group(Record):
    """Changes that are alike in everything but names."""

    kind: str
    """`replaced`, `removed`, `added`, `changed`, `moved`, or what became of fusions: `new`, `merged`…"""
    text: str
    count: int
    notes: tuple[str, ...] = ()
    before: tuple[str, ...] = ()  # Lines of the first of them that went, or as they were
    after: tuple[str, ...] = ()  # Lines that came, or as they are
    hidden: int = 0  # Lines of it that are left out


class StepDetails(Record):
    groups: tuple[Group, ...] = ()
    hidden: int = 0


def step_details(found: ModuleDiff) -> StepDetails:
    """The groups of a difference: fusions first, then what was rewritten, then what changed in place."""
    groups = list(_groups(found))
    return StepDetails(tuple(groups[:MOST_GROUPS]), max(0, len(groups) - MOST_GROUPS))


def _groups(found: ModuleDiff) -> Iterator[Group]:
    summary = summarize(found)
    for detail in found.header:
        yield Group("header", phrases.detail(detail), 1)
    yield from (_fusion(group, found) for group in summary.fusions)
    yield from (_cluster(group, found) for group in summary.clusters)
    yield from (_changed(group, found) for group in summary.changes)
    for (source, destination), members in summary.moved.items():
        text = f"from {source} to {destination}: {phrases.opcodes(members)}"
        before, hidden = _lines(members)
        yield Group("moved", text, len(members), before=before, hidden=hidden)


def _fusion(group: Sequence[FusionChange], found: ModuleDiff) -> Group:
    change = group[0]
    notes = *phrases.inside(change), phrases.sources(found.after.module, change.members)
    sides = (*change.before, *change.joined), (*change.after, *change.left)
    return _group(str(change.kind), phrases.what_happened(change), group, notes, *sides)


def _cluster(group: tuple[Cluster, ...], found: ModuleDiff) -> Group:
    head, text = group[0], phrases.what_is_in(group[0])
    module = (found.before if head.removed else found.after).module
    notes = head.note, phrases.sources(module, head.removed or head.added)
    return _group(head.kind, text, group, notes, head.removed, head.added)


def _changed(group: Sequence[Changed], found: ModuleDiff) -> Group:
    first = group[0]
    members = [c.after[0].instruction for c in group]
    notes = *map(phrases.detail, first.details), phrases.sources(found.after.module, members)
    sides = ([p.instruction for p in side] for side in (first.before, first.after))
    return _group("changed", phrases.opcodes(members), group, notes, *sides)


def _group(
    kind: str,
    text: str,
    group: Sized,
    notes: Iterable[str | None],
    before: Iterable[Instruction],
    after: Iterable[Instruction],
) -> Group:
    old, fewer = _lines(before)
    new, less = _lines(after)
    return Group(kind, text, len(group), tuple(filter(None, notes)), old, new, fewer + less)


def _lines(instructions: Iterable[Instruction]) -> tuple[tuple[str, ...], int]:
    every = list(instructions)
    lines = tuple(shorten(print_instruction(i, _LINE), LONGEST_LINE) for i in every[:MOST_LINES])
    return lines, max(0, len(every) - MOST_LINES)
