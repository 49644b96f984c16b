"""Large dumps made from a small one: its program stacked N times, names and numbers adjusted."""

from __future__ import annotations

import re

_NAME = re.compile(r"%[A-Za-z_][\w.\-]*")
_PARAMETER = re.compile(r" parameter\((\d+)\)")
_ENTRY = re.compile(r"^ENTRY (%?\S+) .*?\{\n(.*?)^\}\n?", re.MULTILINE | re.DOTALL)


def count(text: str) -> int:
    """Instructions in a dump."""
    return len(re.findall(r"^ +(?:ROOT )?%?[\w.\-]+ = ", text, re.MULTILINE))


def stacked(text: str, instructions: int) -> str:
    """At least so many instructions: copies of the entry in a row, each with its own computations."""
    entry = _ENTRY.search(text)
    assert entry is not None
    header = text.split("\n", 1)[0].split(",")[0] + "\n"
    before = text[: entry.start()].split("\n", 1)[1]
    tables, _, rest = before.partition("StackFrames")
    frames, _, computations = rest.partition("\n\n")
    if not tables.strip():
        tables, frames, computations = "", "", before
    body = entry[2]
    parameters = len(_PARAMETER.findall(body))
    copies = max(1, -(-instructions // count(text)))
    calls, lines = [], []
    for number in range(copies):
        suffix = f".{number}"
        calls.append(_NAME.sub(lambda m, s=suffix: m[0] + s, computations))
        copy = _NAME.sub(lambda m, s=suffix: m[0] + s, body)
        shift = number * parameters
        copy = _PARAMETER.sub(lambda m, s=shift: f" parameter({int(m[1]) + s})", copy)
        lines.append(copy if number == copies - 1 else copy.replace("  ROOT ", "  ", 1))
    head = header + "\n" + (tables + "StackFrames" + frames + "\n\n" if tables else "")
    return head + "".join(calls) + "\nENTRY %stacked {\n" + "".join(lines) + "}\n"


def with_unique_attributes(text: str) -> str:
    """Every instruction's attribute text made different from all others, by its metadata."""
    number = 0

    def renumbered(match: re.Match[str]) -> str:
        nonlocal number
        number += 1
        line = re.sub(r", metadata=\{[^\n]*?\}(?=, backend_config|\n)", "", match[0])
        own, mark, config = line.partition(", backend_config=")
        metadata = f'{{op_name="jit(f)/layer/op_{number}" stack_frame_id={number % 7 + 1}}}'
        return f"{own.rstrip()}, metadata={metadata}{mark}{config.rstrip()}\n"

    return re.sub(r"^ +(?:ROOT )?%?[\w.\-]+ = [^\n]*\n", renumbered, text, flags=re.MULTILINE)
