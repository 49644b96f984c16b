"""What comes from a dump is data: made safe before it is shown, or before it is typed."""

from __future__ import annotations

import shlex


def printable(text: str) -> str:
    """`text` on one line with control sequences, line ends and invisible characters spelled out.

    An escape character becomes the four characters `\\x1b`, so a terminal cannot be steered by a name.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def shorten(text: str, width: int) -> str:
    """`text` made safe and cut to `width` columns, the middle left out."""
    text = printable(text)
    if len(text) <= width:
        return text
    if width < 5:
        return text[:width]
    head = (width - 1) * 2 // 3
    return text[:head] + "…" + text[len(text) - (width - 1 - head) :]


def command_line(*text: str | None) -> str:
    """`hlofuse …` with the words that are not None; what cannot be typed is spelled out."""
    return " ".join(["hlofuse", *(shlex.quote(printable(w)) for w in text if w is not None)])
