"""Metadata of an instruction, the buffers that it shares, and the tables at the top of a dump with the source
locations of operations (`StackFrameIndexProto`, `xla/service/hlo.proto`): names of files and functions,
locations and frames, by number from 1."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from hlofuse.ir.record import Record


def quote(text: str) -> str:
    """A string as XLA prints it inside quotes (`absl::CEscape`)."""
    out = []
    for byte in text.encode(errors="surrogateescape"):
        char = chr(byte)
        if char in "\"'\\":
            out.append("\\" + char)
        elif char in "\n\r\t":
            out.append({"\n": "\\n", "\r": "\\r", "\t": "\\t"}[char])
        else:
            out.append(char if 32 <= byte < 127 else f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


_PRINTED = """
    op_type op_name source_file source_line source_end_line source_column source_end_column profile_type
    deduplicated_name preserve_layout stack_frame_id scheduling_name metadata_payload
""".split()


class OpMetadata(Record):
    """Source of an operation in the program (`OpMetadata` in `xla/xla_data.proto`)."""

    op_type: str | None = None
    op_name: str | None = None
    source_file: str | None = None
    source_line: int | None = None
    stack_frame_id: int = 0
    source_end_line: int | None = None
    source_column: int | None = None
    source_end_column: int | None = None
    profile_type: tuple[int, ...] = ()
    deduplicated_name: str | None = None
    scheduling_name: str | None = None
    metadata_payload: str | None = None
    preserve_layout: bool = False

    def __str__(self) -> str:
        parts = []
        for key in _PRINTED:
            value = getattr(self, key)
            if isinstance(value, str):
                parts.append(f"{key}={quote(value)}")
            elif isinstance(value, tuple):
                parts += [f"{key}={{{','.join(map(str, value))}}}"] if value else []
            elif value:
                parts.append(f"{key}={'true' if value is True else value}")
        return "{" + " ".join(parts) + "}"


ShapeIndex = tuple[int, ...]


class InputAlias(Record):
    """A result that shares a parameter's buffer (`HloInputOutputAliasConfig`)."""

    output_index: ShapeIndex
    parameter_number: int
    parameter_index: ShapeIndex
    kind: str = "may-alias"


class DonorEntry(Record):
    """A parameter whose buffer any result may use (`HloBufferDonorConfig`)."""

    parameter_number: int
    parameter_index: ShapeIndex


class OutputAlias(Record):
    """A result that shares an operand's buffer (`OutputOperandAliasing`)."""

    output_index: ShapeIndex
    operand_number: int
    operand_index: ShapeIndex


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
        """The innermost place of a frame; None for a number the tables lack, and inside Python itself."""
        frame = self.frames.get(frame_id)
        place = frame and self.locations.get(frame.get("file_location_id", 0))
        if not place:
            return None
        file = self.files.get(place.get("file_name_id", 0))
        if file is None or file.startswith("<frozen "):
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
