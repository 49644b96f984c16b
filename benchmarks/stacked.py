"""Large dumps made from a small one: its program stacked N times, names and numbers adjusted."""

from __future__ import annotations

import itertools
import re

from hlofuse.ir import PrintOptions, parse_module, print_module

_NAME = re.compile(r"%[A-Za-z_][\w.\-]*")
_PARAMETER = re.compile(r" parameter\((\d+)\)")
_SCOPE = re.compile(r'op_name="([^"/]+)/')
_ENTRY = re.compile(r"^ENTRY (%?\S+) .*?\{\n(.*?)^\}\n?", re.MULTILINE | re.DOTALL)


def count(text: str) -> int:
    """Instructions in a dump."""
    return len(re.findall(r"^ +(?:ROOT )?%?[\w.\-]+ = ", text, re.MULTILINE))


def stacked(text: str, instructions: int, *, layers: bool = False) -> str:
    """At least so many instructions: copies of the entry in a row, each with its own computations.

    With `layers` each copy reads the result of the copy before it, in place of the first parameter of that
    shape, and its operations are in a scope `layer_N`.
    """
    entry = _ENTRY.search(text)
    assert entry is not None
    header = text.split("\n", 1)[0].split(",")[0] + "\n"
    before = text[: entry.start()].split("\n", 1)[1]
    tables, _, rest = before.partition("StackFrames")
    frames, _, computations = rest.partition("\n\n")
    if not tables.strip():
        tables, frames, computations = "", "", before
    body = entry[2]
    parameters = itertools.count()
    root = re.search(r"^  ROOT (%\S+) = (\S+) ", body, re.MULTILINE)
    assert root is not None
    read = re.search(rf"^  (%\S+) = {re.escape(root[2])} parameter\(\d+\).*\n", body, re.MULTILINE)
    assert read is not None or not layers
    copies = max(1, -(-instructions // count(text)))
    calls, lines = [], []
    for number in range(copies):
        suffix = f".{number}"
        calls.append(_NAME.sub(lambda m, s=suffix: m[0] + s, computations))
        copy = _NAME.sub(lambda m, s=suffix: m[0] + s, body)
        if layers and read is not None:
            if number:
                copy = copy.replace(read[0].replace(read[1], read[1] + suffix, 1), "", 1)
                copy = re.sub(rf"{re.escape(read[1] + suffix)}(?![\w.\-])", f"{root[1]}.{number - 1}", copy)
            copy = _SCOPE.sub(rf'op_name="\1/layer_{number}/', copy)
            calls[-1] = _SCOPE.sub(rf'op_name="\1/layer_{number}/', calls[-1])
        copy = _PARAMETER.sub(lambda _: f" parameter({next(parameters)})", copy)
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


def with_operand_shapes(text: str) -> str:
    """The module as XLA wrote it until 2024: the shape of each operand before its name."""
    return print_module(parse_module(text), PrintOptions(operand_shapes=True))


def with_large_tuples(size: int) -> str:
    """A loop over a tuple of that many arrays, which stands in full before each operand that is the tuple."""
    shapes = [f"f32[{8 + n % 7},{4 + n % 5}]{{1,0}}" for n in range(size)]
    all_shapes = f"({', '.join(shapes)})"
    elements = "".join(
        f"  %e.{n} = {s} get-tuple-element({all_shapes} %p), index={n}\n  %n.{n} = {s} negate({s} %e.{n})\n"
        for n, s in enumerate(shapes)
    )
    operands = ", ".join(f"{s} %n.{n}" for n, s in enumerate(shapes))
    return (
        f"HloModule tuples\n\n%body (p: {all_shapes}) -> {all_shapes} {{\n  %p = {all_shapes} parameter(0)\n"
        f"{elements}  ROOT %t = {all_shapes} tuple({operands})\n}}\n\n"
        f"%condition (q: {all_shapes}) -> pred[] {{\n  %q = {all_shapes} parameter(0)\n"
        f"  ROOT %c = pred[] constant(false)\n}}\n\nENTRY %main (a: {all_shapes}) -> {all_shapes} {{\n"
        f"  %a = {all_shapes} parameter(0)\n  ROOT %w = {all_shapes} while({all_shapes} %a),"
        " condition=%condition, body=%body\n}\n"
    )
