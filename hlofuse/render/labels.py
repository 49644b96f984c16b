"""What is written in a box: the opcode, what singles this instruction out, and its shape."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress

from hlofuse.analysis.cost import Cost, CostAnalysis
from hlofuse.analysis.known_trips import known_trips
from hlofuse.format.escape import shorten
from hlofuse.format.units import bytes_text, plural
from hlofuse.ir import Instruction, Module
from hlofuse.ir.text.printer import print_instruction
from hlofuse.render.text import cut

NAME_LIMIT = 30
SHAPE_LIMIT = 28
_CONFIG_KIND = re.compile(r'"fusion_config"\s*:\s*\{\s*"kind"\s*:\s*"([^"\\]*)"')


def name_of(instruction: Instruction, limit: int = NAME_LIMIT) -> str:
    """The instruction's name, short enough for a box."""
    return shorten(instruction.name, limit)


def shape_of(instruction: Instruction) -> str:
    """The result's shape without layouts; a tuple's is only counted."""
    shape = instruction.shape
    if shape.is_tuple:
        return f"{plural(len(shape.tuple_shapes), 'result')}, {bytes_text(shape.byte_size)}"
    return shorten(shape.text_without_layout, SHAPE_LIMIT)


def value_title(instruction: Instruction) -> str:
    """What a person calls a parameter: the framework's name for it where the dump has one."""
    if instruction.opcode == "parameter":
        op_name = instruction.op_name
        if op_name:
            # The text keeps quotes escaped; nobody writes xs[0][\'w\'].
            return shorten(op_name.replace("\\'", "'").replace('\\"', '"'), NAME_LIMIT)
    return name_of(instruction)


def constant_text(instruction: Instruction) -> str:
    """A constant's value, if it is short."""
    text = (instruction.payload or "").strip()
    if len(text) > 9:
        # All digits of a float are in the tooltip; cut in the middle it would be another number.
        with suppress(ValueError):
            text = f"{float(text[:40]):.5g}"
    return shorten(text, 12) or "constant"


def reducer(instruction: Instruction) -> str:
    """What a reduce applies, where that is one operation: `add`; else nothing."""
    for attribute, computation in instruction.called:
        if attribute in ("to_apply", "scatter"):
            ops = [i.opcode for i in computation if i.opcode not in ("parameter", "tuple")]
            return ops[0] if len(ops) == 1 else ""
    return ""


def detail(instruction: Instruction) -> str:
    """What tells this operation from others of its opcode, in a word or two."""
    opcode, raw = instruction.opcode, instruction.attributes.raw
    if opcode in ("reduce", "reduce-window", "all-reduce", "reduce-scatter", "scatter", "map"):
        return reducer(instruction)
    if opcode == "compare":
        return raw("direction") or ""
    if opcode == "custom-call":
        return shorten((raw("custom_call_target") or "").strip('"'), 24)
    if opcode == "transpose":
        return shorten(raw("dimensions") or "", 14)
    if opcode == "while":
        trips = known_trips(instruction)
        return f"×{trips:,}" if trips is not None else ""
    if opcode == "fusion":
        config = _CONFIG_KIND.search(raw("backend_config") or "")
        kind = instruction.fusion_kind or "fusion"
        return f"{kind} {shorten(config[1], 24)}" if config else kind
    return ""


_ROLES = {
    "branch_computations": "branch",
    "true_computation": "branch if true",
    "false_computation": "branch if false",
    "to_apply": "callee",
    "called_computations": "callee",
    "calls": "callee",
}


def role(attribute: str) -> str:
    """What a called computation is to its caller."""
    return _ROLES.get(attribute, attribute or "callee")


def summary(instructions: Iterable[Instruction], kinds: int = 3) -> str:
    """The commonest opcodes: `add ×12, dot ×4, reduce ×3 …`."""
    count = Counter(i.opcode for i in instructions if i.opcode not in _BOOKKEEPING)
    common = count.most_common(kinds)
    text = ", ".join(f"{op} ×{n}" if n > 1 else op for op, n in common)
    return text + " …" if len(count) > len(common) else text


def op_count(instructions: Iterable[Instruction]) -> int:
    """Operations, not counting parameters, constants and bookkeeping."""
    return sum(i.opcode not in _BOOKKEEPING for i in instructions)


_BOOKKEEPING = frozenset({"parameter", "constant", "tuple", "get-tuple-element"})


def traffic(cost: Cost) -> str:
    """What a kernel moves: `reads 8 MB, writes 4 MB`."""
    return f"reads {bytes_text(cost.bytes_read)}, writes {bytes_text(cost.bytes_written)}"


def tooltip(module: Module, instruction: Instruction, costs: CostAnalysis | None = None) -> list[str]:
    """The full instruction, where it came from, and what it costs."""
    lines = [cut(print_instruction(instruction))]
    source = module.source_of(instruction)
    if source is not None:
        where = f"{source}, in {source.function}" if source.function else str(source)
        lines.append(cut("source: " + where, 300))
    op_name = instruction.op_name
    if op_name:
        lines.append(cut("op_name: " + op_name, 300))
    if costs is not None:
        cost = costs.instruction(instruction)
        if cost.bytes_accessed:
            lines.append(f"{traffic(cost)}, {cost.flops:,} flops")
    return lines
