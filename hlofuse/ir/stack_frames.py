"""The tables at the top of a dump with the source locations of operations. Mirrors `StackFrameIndexProto`
(`xla/service/hlo.proto`): names of files and functions, locations and frames, by number from 1."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from .record import Record

_PACKAGES = re.compile(r".*[/\\](?:site|dist)-packages[/\\]")


class SourceLocation(Record):
    file: str
    line: int
    function: str = ""
    column: int = 0

    @property
    def installed(self) -> bool:
        """True if it is in an installed package, not in the user's program."""
        return _PACKAGES.match(self.file) is not None

    def __str__(self) -> str:
        """`file:line`; the file of an installed package by its path within the package."""
        file = _PACKAGES.sub("", self.file)
        return f"{file}:{self.line}" if self.line else file


@dataclass(slots=True)
class StackFrames:
    """The four tables, as numbered in the text."""

    files: dict[int, str] = field(default_factory=dict)
    functions: dict[int, str] = field(default_factory=dict)
    locations: dict[int, dict[str, int]] = field(default_factory=dict)
    frames: dict[int, dict[str, int]] = field(default_factory=dict)
    _numbers: dict[tuple[int, int], int] = field(default_factory=dict, repr=False, compare=False)

    def copy(self) -> "StackFrames":
        return StackFrames(self.files, self.functions, self.locations, self.frames.copy())

    def __bool__(self) -> bool:
        return bool(self.frames or self.files or self.functions or self.locations)

    def location(self, frame_id: int) -> SourceLocation | None:
        """The innermost place of a frame; None for a number the tables lack."""
        frame = self.frames.get(frame_id)
        place = frame and self.locations.get(frame.get("file_location_id", 0))
        if not place:
            return None
        file = self.files.get(place.get("file_name_id", 0))
        if file is None:
            return None
        function = self.functions.get(place.get("function_name_id", 0), "")
        return SourceLocation(file, place.get("line", 0), function, place.get("column", 0))

    def trace(self, frame_id: int) -> Iterator[SourceLocation]:
        for frame in self.with_callers(frame_id):
            if (place := self.location(frame)) is not None:
                yield place

    def with_callers(self, frame_id: int) -> Iterator[int]:
        """The frame and its callers, outwards; stops at a loop in damaged tables."""
        seen = set()
        while frame_id > 0 and frame_id not in seen:
            seen.add(frame_id)
            yield frame_id
            frame_id = _caller(self.frames.get(frame_id, {}))

    def join(self, outer: int, inner: int) -> int:
        """The frame `inner` with its callers, all called from `outer`; added if missing. Mirrors
        `StackFrames::Concatenate` (`xla/hlo/ir/stack_frames.cc`). `inner` itself where called from there."""
        callers = [*self.with_callers(inner)]
        if outer not in self.frames or outer in callers:
            return inner
        if not self._numbers:
            for number, frame in self.frames.items():
                self._numbers.setdefault((frame.get("file_location_id", 0), _caller(frame)), number)
        for number in reversed(callers):
            outer = self._called_out_of(outer, self.frames.get(number, {}).get("file_location_id", 0))
        return outer

    def _called_out_of(self, caller: int, location: int) -> int:
        number = self._numbers.get((location, caller))
        if number is None:
            number = next(n for n in count(len(self.frames) + 1) if n not in self.frames)
            self._numbers[location, caller] = number
            self.frames[number] = {"file_location_id": location, "parent_frame_id": caller + 1}
        return number


def _caller(frame: dict[str, int]) -> int:
    # XLA writes the number of the parent as one more (`HloModule::PrintStackFrameIndex`), 1 for none.
    return frame.get("parent_frame_id", 1) - 1
