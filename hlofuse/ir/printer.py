"""From a module back to HLO text (`HloModule::Print`, `HloInstruction::Print`)."""

from __future__ import annotations

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.ir.opcodes import CALLED_COMPUTATION_ATTRIBUTES


def print_module(module: Module) -> str:
    """The module as XLA would print it by default."""
    out = [f"HloModule {module.name}{module.attributes.text}\n"]
    f = module.stack_frames
    if f:
        q = lambda d: "".join(f'{k} "{v}"\n' for k, v in d.items())  # noqa: E731
        r = lambda d: "".join(f"{k} {{{' '.join(f'{a}={b}' for a, b in v.items())}}}\n" for k, v in d.items())  # noqa: E731
        out.append(
            f"\nFileNames\n{q(f.files)}\nFunctionNames\n{q(f.functions)}\nFileLocations\n{r(f.locations)}"
            f"\nStackFrames\n{r(f.frames)}\n"
        )
    for c in module.computation_post_order():
        out.append("\n" + print_computation(c))
    return "".join(out) + "\n"


def print_computation(c: Computation) -> str:
    params = ", ".join(f"{p.name}: {p.shape.text_without_layout}" for p in c.parameters)
    head = f"{'ENTRY ' if c.is_entry else ''}%{c.name} ({params}) -> {c.root.shape.text_without_layout} {{\n"
    body = "".join(f"  {'ROOT ' if i is c.root else ''}{print_instruction(i)}\n" for i in c.post_order())
    return f"{head}{body}}}{c.attributes_text}\n"


def print_instruction(i: Instruction) -> str:
    inner = i.payload if i.payload is not None else ", ".join(f"%{o.name}" for o in i.operands)
    text = f"%{i.name} = {i.shape} {i.opcode}({inner})"
    names: dict[str, list[str]] = {}
    for key, c in i.called:
        names.setdefault(key, []).append("%" + c.name)
    for k, v in i.attributes.raw_items.items():
        if k in CALLED_COMPUTATION_ATTRIBUTES and k in names:
            v = f"{{{', '.join(names[k])}}}" if v.startswith("{") else names[k][0]
        text += f", {k}={v}"
    return text
