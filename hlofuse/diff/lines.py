"""Source lines whose number an edit changed."""

from collections import Counter
from collections.abc import Iterable

from hlofuse.diff.model import ModuleDiff
from hlofuse.format.paths import source_text
from hlofuse.ir.graph import Module
from hlofuse.ir.stack_frames import SourceLocation
from hlofuse.matching.graph import Occurrence
from hlofuse.matching.lines import same_function, same_tables


def moved_lines(diff: ModuleDiff) -> dict[str, str]:
    """Lines of BEFORE with another number in AFTER: `model.py:35` to `model.py:37`.

    A line goes with the line of the other side with which it has most operations in common.
    """
    before, after = diff.before.module, diff.after.module
    if same_tables(before, after):
        return {}
    votes: Counter[tuple[SourceLocation, SourceLocation]] = Counter()
    for match in diff.matches:
        old, new = _places(match.before, before), _places(match.after, after)
        if len(old) == len(new):
            votes.update(pair for pair in zip(old, new, strict=True) if same_function(*pair))
    texts: Counter[tuple[str, str]] = Counter()
    for (one, other), count in votes.items():
        texts[source_text(one), source_text(other)] += count
    found: dict[str, str] = {}
    taken: set[str] = set()
    for (old_text, new_text), _ in sorted(texts.items(), key=lambda item: (-item[1], item[0])):
        if old_text not in found and new_text not in taken:
            found[old_text] = new_text
            taken.add(new_text)
    return {old: new for old, new in found.items() if old != new}


def _places(occurrences: Iterable[Occurrence], module: Module) -> list[SourceLocation]:
    found = {s: None for o in occurrences if (s := module.source_of(o.instruction)) is not None and s.line}
    return sorted(found, key=lambda s: (s.file, s.line, s.column))
