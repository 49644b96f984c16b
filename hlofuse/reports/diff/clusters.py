"""Instructions that were removed or added together, and which replaced which."""

from collections.abc import Iterator
from dataclasses import dataclass

from hlofuse.diff.model import Added, Changed, ModuleDiff, Removed
from hlofuse.ir import Instruction, Module
from hlofuse.matching.graph import Occurrence, must_run_once


@dataclass(frozen=True, slots=True)
class Cluster:
    """Instructions that were removed together, added together, or replaced by others."""

    removed: tuple[Instruction, ...] = ()
    added: tuple[Instruction, ...] = ()
    copy: bool = False
    """It computes once more what is computed anyway."""
    unused: bool = False

    @property
    def note(self) -> str:
        if self.copy:
            return "a duplicate"
        return "unused" if self.unused and self.removed else ("unused" if self.unused else "")

    @property
    def sides(self) -> list[tuple[Instruction, ...]]:
        """The removed and the added instructions, each if there are some."""
        return [side for side in (self.removed, self.added) if side]

    @property
    def kind(self) -> str:
        if self.removed and self.added:
            return "replaced"
        return "removed" if self.removed else "added"


def clusters(diff: ModuleDiff) -> Iterator[tuple[Cluster, ...]]:
    """Removed and added instructions, each with those that only served it; replacements as one."""
    served: dict[Instruction, list[Instruction]] = {}
    heads: list[Added | Removed] = []
    for edit in diff.edits:
        if isinstance(edit, Added | Removed):
            instruction = _places(edit)[0].instruction
            if edit.because:
                served.setdefault(edit.because[0], []).append(instruction)
            else:
                heads.append(edit)

    def cluster(head: Instruction) -> tuple[Instruction, ...]:
        out = [head]
        covered = set()  # what two fusions of one computation hold serves itself
        for i in out:  # grows while it is walked
            if i not in covered:
                covered.add(i)
                out += served.get(i, ())
        return tuple(out)

    replaced = _replacements(diff, {_places(h)[0].instruction for h in heads})
    taken = set(replaced.values())
    groups: dict[object, list[Cluster]] = {}
    for head in heads:
        first = _places(head)[0].instruction
        if isinstance(head, Removed):
            new = replaced.get(first)
            found = Cluster(cluster(first), cluster(new) if new else (), *_notes(head))
        elif first in taken:
            continue
        else:
            found = Cluster((), cluster(first), *_notes(head))
        sides = (found.removed, found.added)
        key = (found.note, *[tuple(sorted(i.opcode for i in side)) for side in sides])
        groups.setdefault(key, []).append(found)
    order = ("replaced", "removed", "added")
    for clusters in sorted(groups.values(), key=lambda g: order.index(g[0].kind)):
        yield tuple(clusters)


def _notes(head: Added | Removed) -> tuple[bool, bool]:
    instruction = _places(head)[0].instruction
    unused = not instruction.users and not instruction.is_root and instruction.opcode != "parameter"
    return head.copy_of is not None, unused and not must_run_once(instruction)


def _replacements(diff: ModuleDiff, heads: set[Instruction]) -> dict[Instruction, Instruction]:
    """Removed to added, where a user has the one in place of the other."""
    out: dict[Instruction, Instruction] = {}
    for edit in diff.edits:
        if isinstance(edit, Changed) and edit.because:
            reasons = [r for r in edit.because if r in heads]
            removed = [r for r in reasons if not diff.pairs.after_of(r) and _in(diff.before.module, r)]
            added = [r for r in reasons if r not in removed]
            if len(removed) == len(added) == 1 and removed[0] not in out and added[0] not in out.values():
                out[removed[0]] = added[0]
    return out


def _in(module: Module, instruction: Instruction) -> bool:
    return instruction.computation is not None and instruction.computation.module is module


def _places(edit: Added | Removed) -> tuple[Occurrence, ...]:
    return edit.after if isinstance(edit, Added) else edit.before
