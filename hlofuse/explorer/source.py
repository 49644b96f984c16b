"""Files of the user's program that the page shows next to the kernels of their lines."""

from __future__ import annotations

from math import inf
from pathlib import Path

from hlofuse.explorer.model import NOWHERE, Line, SourceFile
from hlofuse.format.escape import printable
from hlofuse.format.paths import portable, shown_file
from hlofuse.format.units import bytes_text
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Instruction, Module

AUTO = "auto"
_MOST, _MOST_OF_ALL = 300_000, 1_500_000  # bytes of text


class SourceFiles:
    """The files that metadata names, by number. Their text is read only on request."""

    def __init__(self, folder: str | None = None) -> None:
        """`folder` is where the files are; `auto` for the working directory; None embeds nothing.

        HlofuseError for a folder that is not there.
        """
        if folder is not None and folder != AUTO and not Path(folder).is_dir():
            raise HlofuseError(f"--source: {printable(folder)} is no folder")
        self._root = None if folder is None else Path.cwd() if folder == AUTO else Path(folder)
        self._numbers: dict[str, int] = {}

    def line(self, instruction: Instruction, module: Module) -> Line:
        """The user's own line of an instruction; that of an installed package where there is no other."""
        place = module.called_from(instruction) or module.source_of(instruction)
        if place is None or not place.file:
            return NOWHERE
        return self._numbers.setdefault(place.file, len(self._numbers)), place.line

    def embedded(self, dump: str | None) -> tuple[SourceFile, ...]:
        """Every file, with its text where it was found. `dump` is the file with the module."""
        found, left = [], _MOST_OF_ALL
        written = Path(dump).stat().st_mtime if dump is not None and Path(dump).is_file() else inf
        for file in self._numbers:
            text, note = self._read(file, written, left) if self._root is not None else ("", "")
            left -= len(text)
            found.append(SourceFile(printable(shown_file(file)), text, note))
        return tuple(found)

    def _read(self, file: str, written: float, left: int) -> tuple[str, str]:
        """The text, or why there is none. A dump may name any file, so only Python files are read."""
        assert self._root is not None
        candidates = (self._root / portable(file, self._root), Path(file))
        try:
            path = next((p for p in candidates if p.suffix == ".py" and p.is_file()), None)
            if path is None:
                return "", "not found"
            if (size := path.stat().st_size) > min(_MOST, left):
                return "", f"not embedded: {bytes_text(size)}"
            changed = "changed after the dump was written" if path.stat().st_mtime > written else ""
            return path.read_text(encoding="utf-8"), changed
        except (OSError, ValueError):  # gone, or no UTF-8
            return "", "not readable"
