"""Provisional reader (to be replaced by the fast path over the grammar)."""

from __future__ import annotations

import re

from hlofuse.ir.attributes import Attributes
from hlofuse.ir.computation import Computation
from hlofuse.ir.errors import HloParseError
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.ir.opcodes import CALLED_COMPUTATION_ATTRIBUTES, PAYLOAD_OPCODES
from hlofuse.ir.parse.pieces import BRACES, nested, parse_shape, split_top_level
from hlofuse.ir.shape import Shape

_PAREN = nested(r"\(", r"\)", r'(?:[^()"\n]++)', 6)
_SHAPE = rf"(?:[a-z][a-z0-9]*+\[[\d,<=?]*+\](?:\{{[\d:][^{{}}\n]*+\}}|\{{\}})?|{_PAREN}|b{_PAREN})"
_INSTRUCTION = re.compile(
    rf"""\s*(ROOT )?%?([\w.\-]++) = ({_SHAPE}) ([a-z][a-z0-9\-]*+)\(((?:[^(){{}}"\n]++|{BRACES}|{_PAREN}|"[^"]*")*+)\)(|, [^\n]*+)\n"""
)
_HEAD = re.compile(r"(ENTRY )?%?([\w.\-]++) (?:.*?)\{\s*\n")
_CALLED_NAME = re.compile(r"%?([\w.\-]+)")
_OPERAND = re.compile(rf"(?:{_SHAPE} )?%?([\w.\-]+)((?:#\d+)*)")


def parse_module(text: str, filename: str | None = None) -> Module:
    lines = text + "\n"
    m = re.match(r"\s*HloModule ([\w.\-]+)(.*)\n", lines)
    if not m:
        raise HloParseError("expected HloModule", filename=filename, line=1, column=1, source_line=text.split("\n")[0])
    module = Module(m[1], Attributes(m[2]))
    module.filename = filename
    pos = _tables(lines, m.end(), module)
    shapes: dict[str, Shape] = {}
    tails: dict[str, Attributes] = {}
    computations: dict[str, Computation] = {}
    while pos < len(lines):
        if lines[pos].isspace():
            pos += 1
            continue
        h = _HEAD.match(lines, pos)
        if not h:
            raise _error(lines, pos, "expected a computation", filename)
        computation = Computation(h[2])
        pos = h.end()
        names: dict[str, Instruction] = {}
        control: list[tuple[Instruction, str]] = []
        elements: dict[str, Instruction] = {}
        while not lines.startswith("}", pos):
            i = _INSTRUCTION.match(lines, pos)
            if not i:
                raise _error(lines, pos, "expected an instruction", filename)
            root, name, shape_text, opcode, inner, tail = i.groups()
            shape = shapes.get(shape_text)
            if shape is None:
                shape = shapes[shape_text] = parse_shape(shape_text)
            attributes = tails.get(tail)
            if attributes is None:
                attributes = tails[tail] = Attributes(tail)
            operands = []
            if opcode not in PAYLOAD_OPCODES:
                for o in split_top_level(inner):
                    om = _OPERAND.fullmatch(o)
                    if om is None or om[1] not in names:
                        raise _error(lines, pos, f"operand {o} is not defined", filename)
                    operand = names[om[1]]
                    path = om[1]
                    for index in om[2].split("#")[1:]:
                        path += "#" + index
                        if path not in elements:
                            gte = Instruction(
                                path.replace("#", "_"),
                                operand.shape.tuple_shapes[int(index)],
                                "get-tuple-element",
                                [operand],
                                Attributes(f", index={index}"),
                            )
                            computation.append_parsed(gte)
                            elements[path] = gte
                        operand = elements[path]
                    operands.append(operand)
            called = []
            if "=%" in tail or "computation" in tail or "calls=" in tail or "to_apply=" in tail:
                for key in CALLED_COMPUTATION_ATTRIBUTES:
                    value = attributes.raw(key)
                    if value is not None:
                        called += [(key, computations[n]) for n in _CALLED_NAME.findall(value) if n in computations]
            instruction = Instruction(
                name, shape, opcode, operands, attributes, called=called or (),
                payload=inner if opcode in PAYLOAD_OPCODES else None,
            )
            names[name] = instruction
            computation.append_parsed(instruction)
            if root:
                computation.root = instruction
            if "control-predecessors" in tail:
                control.append((instruction, attributes.raw("control-predecessors") or ""))
            pos = i.end()
        for instruction, value in control:
            for n in _CALLED_NAME.findall(value):
                names[n].add_control_dependency_to(instruction)
        if computation.root is None:
            computation.root = computation.instructions[-1]
        end = lines.index("\n", pos)
        computation.attributes_text = lines[pos + 1 : end].split("//")[0].rstrip()
        pos = end
        module.computation_names.unique(computation.name)
        for instruction in computation:
            module.instruction_names.unique(instruction.name)
        computation.module = module
        module.computations.append(computation)
        computations[computation.name] = computation
        if h[1]:
            module.entry = computation
    if module.entry is None:
        module.entry = module.computations[-1]
    return module


def _tables(text: str, pos: int, module: Module) -> int:
    m = re.compile(r"\s*FileNames\n(.*?)\n\s*FunctionNames\n(.*?)\n\s*FileLocations\n(.*?)\n\s*StackFrames\n(.*?)\n\n", re.S).match(text, pos)
    if not m:
        return pos
    f = module.stack_frames
    for target, block in ((f.files, m[1]), (f.functions, m[2])):
        for number, value in re.findall(r'(\d+) "((?:[^"\\]|\\.)*)"', block):
            target[int(number)] = value
    for table, block in ((f.locations, m[3]), (f.frames, m[4])):
        for number, body in re.findall(r"(\d+) \{(.*?)\}", block):
            table[int(number)] = {k: int(v) for k, v in re.findall(r"(\w+)=(-?\d+)", body)}
    return m.end()


def _error(text: str, pos: int, message: str, filename: str | None) -> HloParseError:
    line = text.count("\n", 0, pos) + 1
    start = text.rfind("\n", 0, pos) + 1
    end = text.find("\n", pos)
    return HloParseError(message, filename=filename, line=line, column=pos - start + 1, source_line=text[start:end])
