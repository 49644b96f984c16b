"""Text from a dump made safe for markdown, and tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from hlofuse.format.escape import printable

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>()#+!|~$&])")
_LINKED = re.compile(r"@(?=\S)|(?<=#)(?=\d)|(?<=:)(?=//)|(?<=\bwww)(?=\.)|(?<=\bGH)(?=-\d)", re.IGNORECASE)
"""What GitHub makes links of wherever it stands: mentions, mail and web addresses, issues."""

_NOTHING = "<!-- -->"


def markdown(text: str) -> str:
    """`text` as plain words in markdown (GitHub's), also inside a table: no link, no mention of anybody."""
    # A backslash does not keep GitHub from linking, nor does an entity; a comment within the word does.
    parts = _LINKED.sub(lambda found: found[0] + "\0", printable(text)).split("\0")
    return _NOTHING.join(_MARKDOWN.sub(r"\\\1", part) for part in parts)


def markdown_code(text: str) -> str:
    """`text` in a code span that it cannot end, also inside a table."""
    text = printable(text).replace("|", "\\|")
    fence = "`"
    while fence in text:
        fence += "`"
    pad = " " if text.startswith("`") or text.endswith("`") or not text else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    """A GitHub table; cells are markdown already. Columns numbered in `right` are set flush right."""
    lines = [
        "| " + " | ".join(header) + " |",
        "|" + "|".join("---:" if i in right else "---" for i in range(len(header))) + "|",
    ]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"
