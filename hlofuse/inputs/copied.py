"""Texts as they are copied: from terminals, web pages, mails, diffs and prompts."""

import re

_COLOUR = re.compile(r"\x1b\[[\d;?]*[A-Za-z]|\x1b\][^\x07\n]*+\x07|\[\d{1,3}(?:;\d{1,3})*m")
_ESCAPE = re.compile(r"&(?:(lt|gt|amp|quot|apos|nbsp)|#(\d{1,6})|#[xX]([\da-fA-F]{1,5}));")
_TAG = re.compile(r"</?(?:span|code|pre|div|br|p|b|i|em|strong|a|td|tr|li)\b[^<>]*>")
_CHARACTERS = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'", "nbsp": " "}
_LOOK_ALIKES = str.maketrans(
    {
        **dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u202f\u3000", " "),
        **dict.fromkeys("\u200b\u200c\u2060\ufeff", ""),
        **dict.fromkeys("\u201c\u201d\u201e", '"'),
        **dict.fromkeys("\u2018\u2019", "'"),
    }
)
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@.*")
_METADATA = re.compile(
    r", metadata=\{.*?\}?(?=, (?:backend_config|sharding|frontend_attributes)=|[ \t]*$)", re.MULTILINE
)
_READABLE = re.compile(
    r', metadata=\{\s*(?:\w+=(?:"(?:[^"\\\n]|\\.)*+"|\{[^{}\n]*+\}|\[[^\]\n]*+\]|[^\s"{}]++)[ ,]*+)*+\}'
)
_MLIR = re.compile(
    r"^(?P<prefix>[>| \t]*)(?:module(?: @[\w.\"-]+)?(?: attributes \{.*\})? \{|func\.func .*\{)\s*$",
    re.MULTILINE,
)
_ALIAS = re.compile(r"#[\w-]+ ?= ?\S")


def plain(text: str) -> str:
    """The text without colours, HTML's escapes, look-alikes of spaces and quotes, and a diff's old side.

    The number of lines stays.
    """
    if "\x1b" in text or _COLOUR.search(text):
        text = _COLOUR.sub("", text)
    if _ESCAPE.search(text):
        text = _ESCAPE.sub(_character, _TAG.sub("", text))
    text = text.translate(_LOOK_ALIKES)
    return _new_side(text) if _HUNK.search(text) else text


def _character(match: re.Match[str]) -> str:
    name, decimal, hexadecimal = match.groups()
    if name:
        return _CHARACTERS[name]
    code = int(decimal) if decimal else int(hexadecimal, 16)
    return chr(code) if code >= 32 and not 0xD800 <= code < 0xE000 and code < 0x110000 else " "


def _new_side(diff: str) -> str:
    """The lines after the change; between two hunks a line says that some are left out."""
    lines, in_hunk = [], False
    for line in diff.split("\n"):
        hunk = _HUNK.match(line)
        if hunk is not None:
            in_hunk = True
            lines.append("" if hunk[1] == "1" else "...")
        elif in_hunk and line[:1] in ("+", " "):
            lines.append(line[1:])
        else:
            lines.append("" if in_hunk and line[:1] in ("-", "\\") else line)
    return "\n".join(lines)


def without_unreadable_metadata(text: str) -> tuple[str, int]:
    """The text without metadata that no reader understands, and the number of instructions concerned."""
    count = 0

    def replaced(match: re.Match[str]) -> str:
        nonlocal count
        if _READABLE.fullmatch(match[0]):
            return match[0]
        count += 1
        return ""

    return _METADATA.sub(replaced, text), count


def mlir_in(text: str) -> str | None:
    """The MLIR module, or the function without one, in a longer text; None where there is none.

    Lines that name locations or attributes belong to it, before it and after its end.
    """
    start = _MLIR.search(text)
    if start is None:
        return None
    lines = [line.removeprefix(start["prefix"]) for line in text.split("\n")]
    first = end = text.count("\n", 0, start.start())
    depth = 0
    while end < len(lines):
        written = re.sub(r'"(?:[^"\\]|\\.)*"|//.*', "", lines[end])
        depth += written.count("{") - written.count("}")
        end += 1
        if depth <= 0:
            break
    aliases = [line for line in (*lines[:first], *lines[end:]) if _ALIAS.match(line)]
    return "\n".join([*aliases, *lines[first:end]]) + "\n"
