"""Source lines that an edit above them moved.

Operations that are matched by structure and come from the same function come from the same line, whatever its
number.
"""

from bisect import bisect_right
from collections import Counter

from hlofuse.ir.graph import Module
from hlofuse.ir.stack_frames import SourceLocation
from hlofuse.matching.graph import Region
from hlofuse.matching.structure import Matching


class LineShifts:
    """The lines of AFTER that lines of BEFORE became, by the matched operations of two regions."""

    def __init__(self, m: Matching, region: Region) -> None:
        before, after = m.before, m.after
        self._lines: dict[tuple[str, str], list[tuple[int, int]]] = {}
        if same_tables(before.module, after.module):
            return
        votes: dict[tuple[str, str], dict[int, Counter[int]]] = {}
        for b in region.indices:
            a = m.forward[b]
            if a < 0:
                continue
            one = before.module.source_of(before.values[b].instruction)
            other = after.module.source_of(after.values[a].instruction)
            if one is not None and other is not None and same_function(one, other):
                lines = votes.setdefault(_function(one), {})
                lines.setdefault(one.line, Counter())[other.line] += 1
        for function, lines in votes.items():
            self._lines[function] = sorted((n, c.most_common(1)[0][0]) for n, c in lines.items())

    def line_after(self, place: SourceLocation) -> str:
        """`model.py:37`; a line without matched operations keeps its distance from the line before."""
        lines = self._lines.get(_function(place))
        if not lines:
            return line_text(place)
        old, new = lines[max(0, bisect_right(lines, place.line, key=lambda pair: pair[0]) - 1)]
        return line_text(place, new - old)


def line_text(place: SourceLocation, shift: int = 0) -> str:
    """`model.py:37`, wherever the file lies."""
    return f"{_file(place)}:{place.line + shift}"


def same_tables(before: Module, after: Module) -> bool:
    """True for two dumps of one compilation: no line has moved."""
    one, other = before.stack_frames, after.stack_frames
    return bool(one) and (one.files, one.functions, one.locations) == (
        other.files,
        other.functions,
        other.locations,
    )


def same_function(one: SourceLocation, other: SourceLocation) -> bool:
    """Older releases name no function: then the file decides."""
    if one.function and other.function:
        return one.function == other.function
    return _file(one) == _file(other)


def _function(place: SourceLocation) -> tuple[str, str]:
    return _file(place), place.function


def _file(place: SourceLocation) -> str:
    return place.file.replace("\\", "/").rpartition("/")[2]
