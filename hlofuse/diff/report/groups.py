"""Edits and changes of fusions that are alike but for names, told once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hlofuse.diff.model import Changed, Detail, FusionChange, Kind, ModuleDiff, Moved
from hlofuse.ir import Instruction


@dataclass(frozen=True, slots=True)
class FusionGroup:
    """Changes of fusions that are alike in everything but names."""

    changes: tuple[FusionChange, ...]

    @property
    def first(self) -> FusionChange:
        return self.changes[0]


@dataclass(frozen=True, slots=True)
class ChangeGroup:
    """Instructions that changed in the same way."""

    details: tuple[Detail, ...]
    changes: tuple[Changed, ...]


@dataclass(frozen=True, slots=True)
class MovedGroup:
    """Instructions that went from one computation to another."""

    source: str
    destination: str
    members: tuple[Instruction, ...]
    """By BEFORE's names."""


def fusion_groups(diff: ModuleDiff) -> Iterator[FusionGroup]:
    """Changes of fusions that are told once, in the order of the first of each."""
    groups: dict[object, list[FusionChange]] = {}
    for change in diff.fusions:
        groups.setdefault(_pattern(change), []).append(change)
    for changes in groups.values():
        yield FusionGroup(tuple(changes))


def _pattern(change: FusionChange) -> object:
    """What two changes have in common that are told once."""

    def ops(instructions: Iterable[Instruction]) -> tuple[str, ...]:
        return tuple(sorted(i.opcode for i in instructions if i.opcode != "parameter"))

    def kernels(fusions: Iterable[Instruction]) -> tuple[object, ...]:
        return tuple((f.fusion_kind, ops(f.fused_computation)) for f in fusions)

    return (
        change.kind,
        kernels(change.before),
        kernels(change.after),
        ops(change.joined),
        ops(change.left),
        tuple((d.kind, d.name if d.kind is not Kind.ROOT else "") for d in change.details),
        tuple((d.before, d.after) for d in change.details if d.name == "backend_config"),
    )


def change_groups(changes: Iterable[Changed]) -> Iterator[ChangeGroup]:
    """Instructions that changed in the same way; which operands took part does not count."""
    groups: dict[object, list[Changed]] = {}
    for change in changes:
        key = tuple(
            (
                d.kind,
                d.name,
                "" if d.kind in (Kind.OPERAND, Kind.ORDER) else d.before,
                "" if d.kind in (Kind.OPERAND, Kind.ORDER) else d.after,
            )
            for d in change.details
        )
        groups.setdefault(key, []).append(change)
    kinds = list(Kind)
    # Operations first, notes for later passes last.
    last = {Kind.ANNOTATION: 1, Kind.METADATA: 2}
    for found in sorted(
        groups.values(),
        key=lambda g: (min(last.get(d.kind, 0) for d in g[0].details), kinds.index(g[0].details[0].kind)),
    ):
        yield ChangeGroup(found[0].details, tuple(found))


def moved_groups(edits: Iterable[Moved]) -> Iterator[MovedGroup]:
    """Instructions that went from one computation to the same other one."""
    groups: dict[tuple[str, str], list[Instruction]] = {}
    for edit in edits:
        ours, theirs = edit.before[0], edit.after[0]
        # The computation a fusion is in says where, not the fusion's own.
        places = [(p.fusion or p.instruction).computation for p in (ours, theirs)]
        names = [c.name if c is not None else "?" for c in places]
        groups.setdefault((names[0], names[1]), []).append(ours.instruction)
    for (source, destination), members in groups.items():
        yield MovedGroup(source, destination, tuple(members))
