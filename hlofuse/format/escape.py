"""Makes text from a dump safe to display or type."""

import re
import shlex
from collections.abc import Iterable, Sequence


def printable(value: object) -> str:
    r"""Its text on one line with control sequences, line ends and invisible characters spelled out. An escape
    character becomes the four characters `\x1b`, so a name cannot control the terminal."""
    text = str(value)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


COUNTS = re.compile(r"(?: ×[\d,]+)?(?:, [\d,]+ times)?$")


def shorten(text: str, width: int) -> str:
    """`text` made safe and cut to `width` columns in the middle; counts at its end are whole."""
    text = printable(text)
    if len(text) <= width:
        return text
    found = COUNTS.search(text)
    counts = found[0] if found and width - len(found[0]) >= 8 else ""
    text, width = text[: len(text) - len(counts)], width - len(counts)
    if width < 5:
        return text[:width]
    head = (width - 1) * 2 // 3
    return text[:head] + "…" + text[len(text) - (width - 1 - head) :] + counts


def command_line(*text: str | None) -> str:
    """`hlofuse …` with the words that are not None; unprintable characters are spelled out."""
    return " ".join(["hlofuse", *(shlex.quote(printable(w)) for w in text if w is not None)])


_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>()#+!|~$&])")
_LINKED = re.compile(r"@(?=\S)|(?<=#)(?=\d)|(?<=:)(?=//)|(?<=\bwww)(?=\.)|(?<=\bGH)(?=-\d)", re.IGNORECASE)
"""Text that GitHub turns into links: mentions, mail and web addresses, issues."""
_NOTHING = "<!-- -->"


def markdown(text: str) -> str:
    """`text` as plain words in GitHub's Markdown, also inside a table, without links or mentions."""
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
    """A GitHub table of Markdown cells. Columns numbered in `right` are aligned right."""
    lines = [
        "| " + " | ".join(header) + " |",
        "|" + "|".join("---:" if i in right else "---" for i in range(len(header))) + "|",
    ]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"
