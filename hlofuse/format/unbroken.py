"""A console that breaks no line between a number and its unit or noun."""

import io
import re
from collections.abc import Callable, Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

NO_BREAK = "\ue000"
"""A space without a line break; no text of a dump has this character."""

_NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
_TOGETHER = re.compile(
    rf"(?:\best\. )?(?:[≥>] )?[−+]?<?{_NUMBER} (?:[kMGTPE]?B|[kMGTPE]|µs|ms|s|%)(?!\w)"  # 12.5 MB
    r"(?: FLOP| transcendentals| moved)?"
    rf"|[\w.-]+ ×{_NUMBER}"  # reduce ×2
    rf"|{_NUMBER} × {_NUMBER}"  # 2 × 128
    rf"|(?<![\w.-])[a-z][\w-]* {_NUMBER}(?=,|$)"  # while 1, of a list of counts
    rf"|(?<![\w:.–-])[−+]?{_NUMBER} (?!and\b|of\b|or\b)[a-z][\w-]*"  # 3 grown; but not model.py:12 loss
)


class UnbrokenConsole(Console):
    """A console whose lines have `NO_BREAK` for some of the spaces."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of `renderable`, with numbers and units on one line if they fit there."""
        if isinstance(renderable, str):
            renderable = self.render_str(renderable)
        if isinstance(renderable, Text):
            plain = _unbroken(renderable.plain, (options or self.options).max_width)
            if plain != renderable.plain:
                renderable = renderable.copy()
                renderable.plain = plain
        return super().render(renderable, options)


def _unbroken(text: str, width: int) -> str:
    return _TOGETHER.sub(lambda m: m[0].replace(" ", NO_BREAK) if len(m[0]) <= width else m[0], text)


def printed(draw: Callable[[Console], None], width: int, *, colored: bool = False) -> str:
    """The output of `draw` on a console of that many columns."""
    file = io.StringIO()
    console = UnbrokenConsole(
        file=file,
        force_terminal=colored,
        force_jupyter=False,
        color_system="standard" if colored else None,
        no_color=not colored,
        width=width,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        soft_wrap=False,
        _environ={},
    )
    draw(console)
    # Padding of table cells is of no use at the end of a line.
    return "\n".join(line.rstrip() for line in file.getvalue().replace(NO_BREAK, " ").split("\n"))
