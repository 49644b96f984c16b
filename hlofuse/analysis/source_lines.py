"""A line of the user's program, as a user names it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hlofuse.ir.graph import Instruction, Module

_PLACE = re.compile(r"(?P<file>.+):(?P<line>\d{1,9})")


@dataclass(frozen=True, slots=True)
class SourceLine:
    """`model.py:42`; the file with as much of its path as the user gives."""

    file: str
    line: int

    def made(self, instruction: Instruction, module: Module) -> bool:
        """The dump says that the operation comes from this line."""
        place = module.source_of(instruction)
        if place is None or place.line != self.line:
            return False
        return (
            place.file == self.file
            or place.file.endswith("/" + self.file)
            or self.file.endswith("/" + place.file)
        )


def source_line(text: str) -> SourceLine | None:
    """The line that `FILE:LINE` names; None for what is not of that form."""
    place = _PLACE.fullmatch(text)
    return SourceLine(place["file"], int(place["line"])) if place is not None else None
