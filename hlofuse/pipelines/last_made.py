"""Which part of the compiler made an instruction last, as far as its name and its neighbours tell."""

from __future__ import annotations

import re

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.names import is_of_program, name_before_renaming, operation

FRONT_END, INLINED, SIMPLIFIED, SIMPLIFIED_AGAIN, NORMALIZED, SPLIT_K, REDUCED, LAST = range(8)
"""In the order of their turns."""

_BODIES = re.compile(r"body|cond|branch_\d+_fun")


def is_of_call(x: Instruction) -> bool:
    """Was it inlined from a computation that its own computation called?"""
    parts = (x.op_name or "").partition(";")[0].split("/")[1:]
    for part in reversed(parts):
        if _BODIES.fullmatch(part):
            return False
        if "jit(" in part or part == "eval_jaxpr":
            return True
    return False


class Makers:
    """Of one computation."""

    def __init__(self, computation: Computation, named: frozenset[Instruction]) -> None:
        self._named = named
        self._all_cloned = not any(x in named and is_of_program(x) for x in computation)
        self._known = {(operation(x), x.opcode) for x in computation if x in named and is_of_program(x)}

    def of(self, x: Instruction) -> int:
        if x.opcode == "reduce":
            return self._of_reduce(x)
        if x.opcode == "broadcast":
            return self._of_broadcast(x)
        if x.opcode == "constant":
            return FRONT_END if x in self._named else INLINED if "jit(" in operation(x) else SIMPLIFIED
        if x.opcode == "bitcast":
            return LAST
        if self._remade_by_simplifier(x):
            return SIMPLIFIED
        return self._by_name(x)

    def _by_name(self, x: Instruction) -> int:
        if is_of_program(x):
            if is_of_call(x):
                return INLINED
            if x in self._named or self._all_cloned:
                return FRONT_END
            return NORMALIZED if name_before_renaming(x).root == x.opcode else SIMPLIFIED_AGAIN
        if (operation(x), x.opcode) in self._known:
            return NORMALIZED
        return SIMPLIFIED

    def _of_broadcast(self, x: Instruction) -> int:
        source = x.operands[0]
        if source.opcode == "constant":
            if is_of_program(x) or not x.op_name:
                if is_of_call(x):
                    return INLINED
                if x in self._named or (is_of_program(x) and self._all_cloned):
                    return FRONT_END
            elif is_of_call(x) and not self._made_with_user(x):
                return INLINED
            if all(self._by_name(u) == NORMALIZED for u in x.users):
                return NORMALIZED
            return SIMPLIFIED
        if not is_of_program(x):
            return SIMPLIFIED
        made = self._by_name(x)
        if source.opcode != "bitcast" and operation(x) != "broadcast_in_dim" and source.shape.dimensions:
            return SIMPLIFIED_AGAIN  # two broadcasts, with a reshape between them, became one
        return made

    def _made_with_user(self, x: Instruction) -> bool:
        return all(operation(u) == operation(x) or self._by_name(u) == SIMPLIFIED for u in x.users)

    def _of_reduce(self, x: Instruction) -> int:
        source = x.operands[0]
        if source.opcode in ("fusion", "custom-call"):
            return SPLIT_K if not is_of_program(x) else self._by_name(x)
        if source.opcode in ("reduce", "bitcast") or any(u.opcode == "reduce" for u in x.users):
            return REDUCED
        return self._by_name(x)

    def _remade_by_simplifier(self, x: Instruction) -> bool:
        if x.opcode == "divide":
            return is_of_program(x) and self._is_new(x.operands[1], "multiply")
        if x.opcode == "multiply" and is_of_program(x):
            return any(self._is_new(o, "broadcast") and bool(o.op_name) for o in x.operands)
        return False

    def _is_new(self, x: Instruction, opcode: str) -> bool:
        return x.opcode == opcode and x not in self._named and not is_of_program(x) and not is_of_call(x)
