"""Errors in the input, phrased for the user."""

from collections.abc import Sequence


class HlofuseError(Exception):
    """Anything wrong with the input or the call: printed as is, exit status 2, no traceback."""

    @property
    def first_line(self) -> str:
        return str(self).split("\n")[0]


class HloParseError(HlofuseError):
    """Text that is not HLO: place (`line` and `column` from 1), line, caret, and the expected form."""

    def __init__(
        self,
        message: str,
        *,
        filename: str | None,
        line: int,
        column: int,
        source_line: str,
    ) -> None:
        self.message = message
        self.filename = filename
        self.line = line
        self.column = column
        self.source_line = source_line
        super().__init__(self._render())

    def _render(self) -> str:
        where = f"{self.filename or '<text>'}:{self.line}:{self.column}"
        # A dump's lines run to thousands of columns: show the part around the place.
        start = max(0, self.column - 61)
        window = self.source_line[start : start + 100]
        before = "…" if start else ""
        after = "…" if start + 100 < len(self.source_line) else ""
        shown = "".join(c if c.isprintable() else " " for c in before + window + after)
        caret = " " * (self.column - 1 - start + len(before)) + "^"
        return f"{where}: {self.message}\n  {shown}\n  {caret}"


def any_of(names: Sequence[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last
