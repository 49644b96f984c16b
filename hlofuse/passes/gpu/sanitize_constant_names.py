"""Names of constants that LLVM takes (`xla/backends/gpu/transforms/sanitize_constant_names.cc`)."""

from __future__ import annotations

from hlofuse.ir.graph import Module
from hlofuse.passes.base import Pass
from hlofuse.trace import Recorder

_UNDERSCORES = str.maketrans(".-;", "___")


class SanitizeConstantNames(Pass):
    """`sanitize-constant-names`: no dots, dashes or semicolons, and made unique with an underscore."""

    name = "sanitize-constant-names"

    def run(self, module: Module, recorder: Recorder) -> bool:
        names = _Names()
        for i in module.instructions():
            if i.opcode != "constant":
                names.unique(i.name)
        changed = False
        for i in module.instructions():
            if i.opcode == "constant":
                i.name = names.unique(i.name.translate(_UNDERSCORES))
                module.instruction_names.unique(i.name)
                changed = True
        return changed


class _Names:
    """`NameUniquer` with another separator: `add_3` is the root `add` and the number 3."""

    def __init__(self) -> None:
        self._used: dict[str, set[int]] = {}
        self._next: dict[str, int] = {}

    def unique(self, name: str) -> str:
        root, number, numbered = _split(name)
        used = self._used.setdefault(root, set())
        if number in used:
            number = self._next.get(root, 0)
            while number in used:
                number += 1
            self._next[root] = number + 1
        used.add(number)
        return f"{root}_{number}" if number or numbered else root


def _split(name: str) -> tuple[str, int, bool]:
    root, _, digits = name.rpartition("_")
    if root and digits.isdecimal() and digits.isascii() and len(digits) < 19:
        return root, int(digits), True
    return name, 0, False
