"""Lines of the program on both sides: an edit above a line moves it.

Operations that are matched by structure and come from the same function come from the same line, whatever its
number.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable

from hlofuse.diff.graph import Region
from hlofuse.diff.matching import Matching
from hlofuse.diff.model import ModuleDiff, Occurrence
from hlofuse.format.paths import source_text
from hlofuse.ir.graph import Module
from hlofuse.ir.stack_frames import SourceLocation


def moved_lines(diff: ModuleDiff) -> dict[str, str]:
    """Of lines of BEFORE that have another number in AFTER: `model.py:35` to `model.py:37`.

    Each line is at most one line of the other side: that with which it has most operations in common.
    """
    before, after = diff.before.module, diff.after.module
    if _same_tables(before, after):
        return {}
    votes: Counter[tuple[SourceLocation, SourceLocation]] = Counter()
    for match in diff.matches:
        old, new = _places(match.before, before), _places(match.after, after)
        if len(old) == len(new):
            votes.update(pair for pair in zip(old, new, strict=True) if _same_function(*pair))
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


class LineShifts:
    """Which line of AFTER a line of BEFORE is by now, as far as matched operations of a region tell."""

    def __init__(self, m: Matching, region: Region) -> None:
        before, after = m.before, m.after
        self._lines: dict[tuple[str, str], list[tuple[int, int]]] = {}
        if _same_tables(before.module, after.module):
            return
        votes: dict[tuple[str, str], dict[int, Counter[int]]] = {}
        for b in region.indices:
            a = m.forward[b]
            if a < 0:
                continue
            one = before.module.source_of(before.values[b].instruction)
            other = after.module.source_of(after.values[a].instruction)
            if one is not None and other is not None and _same_function(one, other):
                lines = votes.setdefault(_function(one), {})
                lines.setdefault(one.line, Counter())[other.line] += 1
        for function, lines in votes.items():
            self._lines[function] = sorted((n, c.most_common(1)[0][0]) for n, c in lines.items())

    def line_after(self, place: SourceLocation) -> str:
        """`model.py:37`; of a line that no matched operation has, as far from its neighbour as before."""
        lines = self._lines.get(_function(place))
        if not lines:
            return line_text(place)
        old, new = lines[max(0, bisect_right(lines, place.line, key=lambda pair: pair[0]) - 1)]
        return line_text(place, new - old)


def line_text(place: SourceLocation, shift: int = 0) -> str:
    """`model.py:37`, wherever the file lies."""
    return f"{_file(place)}:{place.line + shift}"


def _same_tables(before: Module, after: Module) -> bool:
    """True for two dumps of one compilation: no line has moved."""
    one, other = before.stack_frames, after.stack_frames
    return bool(one) and (one.files, one.functions, one.locations) == (
        other.files,
        other.functions,
        other.locations,
    )


def _places(occurrences: Iterable[Occurrence], module: Module) -> list[SourceLocation]:
    found = {s: None for o in occurrences if (s := module.source_of(o.instruction)) is not None and s.line}
    return sorted(found, key=lambda s: (s.file, s.line, s.column))


def _same_function(one: SourceLocation, other: SourceLocation) -> bool:
    """Older releases name no function: then the file decides."""
    if one.function and other.function:
        return one.function == other.function
    return _file(one) == _file(other)


def _function(place: SourceLocation) -> tuple[str, str]:
    return _file(place), place.function


def _file(place: SourceLocation) -> str:
    return place.file.replace("\\", "/").rpartition("/")[2]
