"""One step of a timeline in detail: groups of changes, and the first of each group line by line."""

from collections.abc import Iterable, Iterator, Sequence

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
    before: tuple[str, ...] = ()
    """Lines of the first of them that went, or as they were."""
    after: tuple[str, ...] = ()
    """Lines that came, or as they are."""
    hidden: int = 0
    """Lines of it that are left out."""


class StepDetails(Record):
    """The changes of one step."""

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
    place = phrases.sources(found.after.module, change.members)
    before, fewer = _lines((*change.before, *change.joined))
    after, less = _lines((*change.after, *change.left))
    return Group(
        str(change.kind),
        phrases.what_happened(change),
        len(group),
        tuple(filter(None, (*phrases.inside(change), place))),
        before,
        after,
        fewer + less,
    )


def _cluster(group: tuple[Cluster, ...], found: ModuleDiff) -> Group:
    head, text = group[0], phrases.what_is_in(group[0])
    module = (found.before if head.removed else found.after).module
    place = phrases.sources(module, head.removed or head.added)
    before, fewer = _lines(head.removed)
    after, less = _lines(head.added)
    return Group(
        head.kind, text, len(group), tuple(filter(None, (head.note, place))), before, after, fewer + less
    )


def _changed(group: Sequence[Changed], found: ModuleDiff) -> Group:
    first = group[0]
    members = [c.after[0].instruction for c in group]
    before, fewer = _lines(p.instruction for p in first.before)
    after, less = _lines(p.instruction for p in first.after)
    place = phrases.sources(found.after.module, members)
    notes = [phrases.detail(d) for d in first.details]
    return Group(
        "changed",
        phrases.opcodes(members),
        len(group),
        tuple(filter(None, (*notes, place))),
        before,
        after,
        fewer + less,
    )


def _lines(instructions: Iterable[Instruction]) -> tuple[tuple[str, ...], int]:
    every = list(instructions)
    lines = tuple(shorten(print_instruction(i, _LINE), LONGEST_LINE) for i in every[:MOST_LINES])
    return lines, max(0, len(every) - MOST_LINES)
