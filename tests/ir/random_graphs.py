"""Random modules and random edits of them, as hypothesis strategies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from hlofuse.ir import Computation, Instruction, Module, Shape

F32 = Shape("f32", (4,))


@st.composite
def modules(draw: st.DrawFn, instructions: int = 14) -> Module:
    """An entry of binary and unary operations over two parameters, some values used often, some never."""
    module = Module("m")
    entry = Computation("entry")
    for number in range(2):
        entry.append_parsed(Instruction(f"p{number}", F32, "parameter", payload=str(number)))
    for number in range(draw(st.integers(1, instructions))):
        cached = entry.instructions
        count = draw(st.integers(1, 3))
        operands = [cached[draw(st.integers(0, len(cached) - 1))] for _ in range(count)]
        opcode = {1: "negate", 2: "add", 3: "select"}[count]
        entry.append_parsed(Instruction(f"{opcode}.{number}", F32, opcode, operands))
    entry.root = entry.instructions[-1]
    module.entry = module.add_computation(entry)
    return module


def edit(module: Module, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
    """One change of the kinds passes make, at a random place."""
    computation = module.entry
    cached = computation.instructions
    x = cached[draw(st.integers(0, len(cached) - 1))]
    kind = draw(st.sampled_from(["add", "replace uses", "replace operand", "remove", "control"]))
    earlier = cached[: cached.index(x)]
    if kind == "add":
        computation.add_instruction(Instruction(x.opcode, F32, "negate", [x]))
    elif kind == "replace uses" and earlier and x.opcode != "parameter":
        x.replace_all_uses_with(earlier[draw(st.integers(0, len(earlier) - 1))])
    elif kind == "replace operand" and x.operands and earlier:
        number = draw(st.integers(0, len(x.operands) - 1))
        x.replace_operand(number, earlier[draw(st.integers(0, len(earlier) - 1))])
    elif kind == "remove" and not x.users and not x.is_root and x.opcode != "parameter":
        x.drop_all_control_dependencies()
        computation.remove_instruction(x)
    elif kind == "control" and earlier and x.opcode != "parameter":
        earlier[draw(st.integers(0, len(earlier) - 1))].add_control_dependency_to(x)
