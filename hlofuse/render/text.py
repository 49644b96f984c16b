"""Text from a dump is data: what makes it harmless wherever a picture shows it."""

from __future__ import annotations

from hlofuse.format.escape import printable

LONGEST_TOOLTIP = 2_000


def cut(text: str, limit: int = LONGEST_TOOLTIP) -> str:
    """`text` made safe, at most `limit` characters: the end goes."""
    text = printable(text[: 2 * limit])
    return text if len(text) <= limit else text[: limit - 1] + "…"


_ENTITIES = str.maketrans(
    # Graphviz expands \\N, \\G, \\L… in labels, HTML-like ones included; an entity it leaves alone.
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;", "\\": "&#92;"}
)


def entities(text: str) -> str:
    """`text` for an HTML-like label, or any quoted DOT string that is shown: nothing in it is markup.

    Never empty: Graphviz 2.43 (Debian 12) refuses an element with nothing in it.
    """
    return printable(text).translate(_ENTITIES) or " "


def multiline(lines: list[str]) -> str:
    """Lines of a tooltip as the content of a quoted DOT string."""
    return "&#10;".join(entities(line) for line in lines)
