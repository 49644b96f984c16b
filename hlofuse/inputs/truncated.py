"""A dump that was cut short, closed where it ends, so that what is there can be read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hlofuse.ir.text.patterns import NAME, PARAMETERS_OF_HEAD, nested
from hlofuse.ir.text.shapes import split_tuple

_BRACES = nested(r"\{", r"\}", r'[^{}"\n]++', 3)
_ABOUT_RESULT = re.compile(rf", (?:entry_computation_layout|input_output_alias)={_BRACES}")
_ENTRY_LAYOUT = re.compile(rf", entry_computation_layout=({_BRACES})")
_PROGRAM_SHAPE = re.compile(r" (\(.*) \{\s*(?://.*)?$")
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"')
_INSTRUCTION = re.compile(rf"\s*(ROOT )?%?({NAME}) = .*\)", re.ASCII)
_PARAMETER = re.compile(r" parameter\((\d{1,9})\)", re.ASCII)
_SIGNATURE = re.compile(rf"(\s*(?:ENTRY )?(%?){NAME} )\(.*\{{\s*", re.ASCII)


def completed(lines: list[str], head: int) -> Iterator[tuple[list[str], int]]:
    """The lines of a module whose last computation begins in line `head` and has no end, with one.

    Each comes with the number of lines that are left of it: first all complete lines, then one fewer.
    The last complete instruction is the root. Parameters that are not reached are known from the signature.
    """
    end = len(lines)
    while end > head + 1 and not _is_complete(lines[end - 1]):
        end -= 1
    for last in (end, end - 1):
        while last > head + 1 and not _INSTRUCTION.match(lines[last - 1]):
            last -= 1
        if last <= head + 1:
            yield without_result(lines[:head]), head
            return
        yield _closed(lines, head, last), last


def without_result(lines: list[str]) -> list[str]:
    """The module without the attributes of its header that are about the result, which is not there."""
    return [_ABOUT_RESULT.sub("", lines[0]), *lines[1:]]


def lacks_entry(header: str, last: str) -> bool:
    """True if the last computation, by the line that it begins with, is not the one of the entry's layout."""
    layout, signature = _ENTRY_LAYOUT.search(header), _PROGRAM_SHAPE.search(last)
    if layout is None or signature is None:
        return False
    names_off = re.sub(rf"{NAME}: ", "", signature[1])
    entry, found = (re.sub(r"\{[^{}]*\}|/\*.*?\*/|\s", "", s) for s in (layout[1][1:-1], names_off))
    return entry != found


def _is_complete(line: str) -> bool:
    """True for an instruction that goes on to the end of its line."""
    plain = _STRING.sub("", line)
    return (
        _INSTRUCTION.match(line) is not None
        and '"' not in plain
        and all(plain.count(a) == plain.count(b) for a, b in ("()", "{}", "[]"))
        and re.search(r"[=,]\s*$|, ?[a-z_\-]*$", plain) is None
    )


def _closed(lines: list[str], head: int, last: int) -> list[str]:
    body = lines[head + 1 : last]
    matches = [m for m in map(_INSTRUCTION.match, body) if m is not None]
    if any(m[1] for m in matches):
        return [*lines[:last], "}"]
    names = {m[2] for m in matches}
    there = {int(n) for line in body for n in _PARAMETER.findall(line)}
    signature = _SIGNATURE.fullmatch(lines[head])
    expected = PARAMETERS_OF_HEAD.findall(lines[head]) if signature is not None else []
    layout = _ENTRY_LAYOUT.search(lines[0]) if lines[head].lstrip().startswith("ENTRY") else None
    shapes = split_tuple(layout[1][1:-1].rpartition("->")[0]) if layout is not None else None
    if shapes is not None and len(shapes) in (len(expected), len(shapes) if not expected else -1):
        expected = [
            (expected[n][0] if expected else f"missing_parameter.{n}", s) for n, s in enumerate(shapes)
        ]
    missing = [n for n in range(max(len(expected), max(there, default=-1) + 1)) if n not in there]
    if missing and missing[-1] >= len(expected):  # nothing says what they are: the others are renumbered
        place = {n: k for k, n in enumerate(sorted(there))}
        body = [_PARAMETER.sub(lambda m: f" parameter({place[int(m[1])]})", line) for line in body]
        missing = []
    percent = signature[2] if signature is not None else ""
    added = []
    for n in missing:
        name, shape = expected[n]
        added.append(f"  {percent}{f'{name}.{n}' if name in names else name} = {shape} parameter({n})")
    root = re.sub(r"^\s*", "  ROOT ", body[-1])
    opened = signature[1] + "{" if signature is not None else lines[head]
    return [*without_result(lines[:head]), opened, *body[:-1], root, *added, "}"]
