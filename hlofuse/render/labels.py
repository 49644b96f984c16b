"""Texts of a box: the opcode, the detail of the instruction, and its shape."""

import re
from collections import Counter
from collections.abc import Container, Iterable
from contextlib import suppress

from hlofuse.account.traffic import KernelCosts
from hlofuse.analysis.cost import Cost
from hlofuse.analysis.kernels import trip_count_of
from hlofuse.format import bytes_text, plural, printable, shorten, times
from hlofuse.format.paths import source_text
from hlofuse.inputs.suggest import did_you_mean
from hlofuse.ir import Computation, HlofuseError, Instruction, Module, values
from hlofuse.ir.text.printer import print_instruction

NAME_LIMIT = 30
SHAPE_LIMIT = 28
_CONFIG_KIND = re.compile(r'"fusion_config"\s*:\s*\{\s*"kind"\s*:\s*"([^"\\]*)"')


def shape_of(instruction: Instruction) -> str:
    """The result's shape without layouts; for a tuple only the number of elements."""
    shape = instruction.shape
    if shape.is_tuple:
        return f"{plural(len(shape.tuple_shapes), 'result')}, {bytes_text(shape.byte_size)}"
    return shorten(shape.text_without_layout, SHAPE_LIMIT)


def value_title(instruction: Instruction) -> str:
    """The name of a parameter: the framework's if the dump has one."""
    if instruction.is_parameter:
        op_name = instruction.op_name
        if op_name:
            # Quotes are escaped in the text: xs[0][\'w\'].
            return shorten(op_name.replace("\\'", "'").replace('\\"', '"'), NAME_LIMIT)
    return shorten(instruction.name, NAME_LIMIT)


def constant_text(instruction: Instruction) -> str:
    """The value of a constant in a few characters."""
    text = (instruction.payload or "").strip()
    if len(text) > 9:
        # All digits of a float are in the tooltip; cut in the middle it would be another number.
        with suppress(ValueError):
            text = f"{float(text[:40]):.5g}"
    return shorten(text, 12) or "constant"


def reducer(instruction: Instruction) -> str:
    """The operation of a reduce, such as `add`; empty for several."""
    for attribute, computation in instruction.called:
        if attribute in ("to_apply", "scatter"):
            ops = [i.opcode for i in computation if i.opcode not in ("parameter", "tuple")]
            return ops[0] if len(ops) == 1 else ""
    return ""


def detail(instruction: Instruction) -> str:
    """The attribute that distinguishes this operation from others of its opcode, in a few characters."""
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
        trips = trip_count_of(instruction)
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
    return _ROLES.get(attribute, attribute or "callee")


def summary(instructions: Iterable[Instruction], kinds: int = 3) -> str:
    """The most frequent opcodes: `add ×12, dot ×4, reduce ×3 …`."""
    count = Counter(i.opcode for i in instructions if i.opcode not in _BOOKKEEPING)
    common = count.most_common(kinds)
    text = ", ".join(times(*pair) for pair in common)
    return text + " …" if len(count) > len(common) else text


def op_count(instructions: Iterable[Instruction]) -> int:
    """The number of operations without parameters, constants and bookkeeping."""
    return sum(i.opcode not in _BOOKKEEPING for i in instructions)


_BOOKKEEPING = values("parameter constant tuple get-tuple-element")


def traffic(cost: Cost) -> str:
    """The traffic of a kernel: `reads 8 MB, writes 4 MB`."""
    return f"reads {bytes_text(cost.bytes_read)}, writes {bytes_text(cost.bytes_written)}"


def tooltip(module: Module, instruction: Instruction, costs: KernelCosts | None = None) -> list[str]:
    """Its text, line, `op_name` and cost, each cut to a length."""
    lines = [cut(print_instruction(instruction))]
    source = module.source_of(instruction)
    if source is not None:
        where = source_text(source) + (f", in {source.function}" if source.function else "")
        lines.append(cut("source: " + where, 300))
    op_name = instruction.op_name
    if op_name:
        lines.append(cut("op_name: " + op_name, 300))
    if costs is not None:
        cost = costs.instruction(instruction)
        if cost.bytes_accessed:
            lines.append(f"{traffic(cost)}, {cost.flops:,} flops")
    return lines


def lookup(module: Module, name: str) -> Instruction | Computation:
    """The instruction, or else the computation, of that name; raises `HlofuseError` with suggestions."""
    name = name.lstrip("%")
    found = module.find(name) or module.find_computation(name)
    if found is None:
        names = [i.name for i in module.instructions()] + [c.name for c in module.computations]
        raise HlofuseError(
            f"no instruction or computation is named {shorten(name, 80)} in {shorten(module.name, 80)}"
            + did_you_mean(name, names)
        )
    return found


def part_number(name: str) -> int | None:
    """The number of a part of an overview, written `part7`, `part 7` or `7`; None for any other name."""
    digits = name.lower().removeprefix("part").strip(" .-")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else None


# A fusion drawn open has no box of its own: its results come out of boxes inside, its parameters are
# the operands outside. Tuples and get-tuple-elements only thread values through; arrows skip them.

Leaf = tuple[Instruction, tuple[int, ...]]  # An instruction and the index of an element of its result


def sources(
    value: Instruction, open_fusions: Container[Instruction], keep: Container[Instruction]
) -> list[Leaf]:
    """The instructions that compute `value`, with the element each contributes. `keep` are those with a box
    although they only pass values on (elements of a loop's parameter, a tuple that is the result)."""
    found: dict[Leaf, None] = {}
    seen = set()
    stack: list[Leaf] = [(value, ())]
    while stack:
        leaf = stack.pop()
        if leaf in seen:
            continue
        seen.add(leaf)
        i, path = leaf
        if i in keep:
            found[leaf] = None
        elif i.is_get_tuple_element and i.operands:
            stack.append((i.operand, (i.tuple_index, *path)))
        elif i.opcode == "tuple" and path and path[0] < i.operand_count:
            stack.append((i.operands[path[0]], path[1:]))
        elif i.opcode == "tuple" and not path:
            stack.extend((o, ()) for o in reversed(i.operands))
        elif i in open_fusions:
            stack.append((i.fused_root, path))
        elif i.is_parameter and (fusion := i.fusion_around) is not None and fusion in open_fusions:
            if i.parameter_number < fusion.operand_count:
                stack.append((fusion.operands[i.parameter_number], path))
        else:
            found[leaf] = None
    return list(found)


def leaf_bytes(leaf: Leaf) -> int:
    """The bytes of an element of a result."""
    shape = leaf[0].shape
    for n in leaf[1]:
        if n >= len(shape.tuple_shapes):
            break
        shape = shape.tuple_shapes[n]
    return shape.byte_size


LONGEST_TOOLTIP = 2_000


def cut(text: str, limit: int = LONGEST_TOOLTIP) -> str:
    """`text` made safe and cut to `limit` characters at its end."""
    text = printable(text[: 2 * limit])
    return text if len(text) <= limit else text[: limit - 1] + "…"


_ENTITIES = str.maketrans(
    # Graphviz expands \\N, \\G, \\L… in labels, HTML-like ones included; an entity it leaves alone.
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;", "\\": "&#92;"}
)


def entities(text: str) -> str:
    """`text` without markup for an HTML-like label or a quoted DOT string; not empty (Graphviz 2.43)."""
    return printable(text).translate(_ENTITIES) or " "


def multiline(lines: list[str]) -> str:
    """Lines of a tooltip as the content of a quoted DOT string."""
    return "&#10;".join(entities(line) for line in lines)
