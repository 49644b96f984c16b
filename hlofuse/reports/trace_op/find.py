"""Which instructions a user means by a NAME or a FILE:LINE."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hlofuse.analysis.kernels import NO_KERNEL
from hlofuse.analysis.source_lines import source_line
from hlofuse.format.escape import printable
from hlofuse.inputs.suggest import did_you_mean
from hlofuse.ir.graph import Instruction, Module

_MOVES_ONLY = frozenset(
    "bitcast bitcast-convert broadcast concatenate convert copy pad reshape reverse slice transpose".split()
)
"""These say less of a line than what it computes: they are told last."""


class Subject:
    """What was asked for: the name of an instruction, or a line of the user's program."""

    def __init__(self, asked: str) -> None:
        self.asked = asked
        self.line = source_line(asked)

    def find(self, module: Module) -> Sequence[Instruction]:
        """The instructions meant; of a line those that compute, or all where none does.

        A fusion is no operation of its own: what is in it stands for it.
        """
        line = self.line
        if line is None:
            found = module.find(self.asked)
            return () if found is None else _values(found)
        here = [i for i in module.instructions() if i.opcode != "parameter" and line.made(i, module)]
        operations = [i for i in here if i.opcode != "fusion" or not i.called]
        here = operations or list(dict.fromkeys(v for i in here for v in _values(i)))
        # A reduction's own little computation is told with the reduction.
        computing = [i for i in here if i.opcode not in NO_KERNEL and i.opcode != "broadcast"]
        outside = [i for i in computing if not is_applied(i)]
        return sorted(outside or computing or here, key=lambda i: i.opcode in _MOVES_ONLY)

    def not_found(self, label: str, modules: Iterable[Module]) -> str:
        """What to tell where no dump has it."""
        head = f"no dump of {printable(label)} has {printable(self.asked)}"
        if self.line is None:
            names = dict.fromkeys(i.name for m in modules for i in m.instructions())
            return f"{head}{did_you_mean(self.asked.lstrip('%'), names)}"
        lines: dict[str, set[int]] = {}
        for module in modules:
            for i in module.instructions():
                place = module.source_of(i)
                if place is not None and place.line:
                    lines.setdefault(place.file, set()).add(place.line)
            if lines:
                break
        if not lines:
            return f"{head}: its dumps do not say where in the program an operation came from"
        known = [f"{file}:{line}" for file, found in lines.items() for line in sorted(found)]
        listed = ", ".join(printable(k) for k in known[:12]) + (", …" if len(known) > 12 else "")
        return f"{head}\nIt has operations of {listed}"


def _values(found: Instruction) -> tuple[Instruction, ...]:
    """The values an instruction stands for: a fusion's results, the elements of a tuple."""
    out: list[Instruction] = []
    stack = [found]
    seen = set()
    while stack:
        i = stack.pop()
        if i in seen:
            continue
        seen.add(i)
        if i.opcode == "fusion" and i.called:
            stack.append(i.fused_root)
        elif i.opcode in ("tuple", "get-tuple-element") and i.operands:
            stack += i.operands[::-1]
        else:
            out.append(i)
    return tuple(out)


def is_applied(i: Instruction) -> bool:
    """It is in a computation that a reduce, a sort or the like applies element by element."""
    callers = i.computation.callers if i.computation is not None else {}
    return any(c.opcode not in ("while", "conditional", "call", "fusion", "async-start") for c in callers)
