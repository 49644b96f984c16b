"""Passes that give names."""

from dataclasses import dataclass, field

from hlofuse.analysis.elementwise import is_fusible
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.merging import kernel_model
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.ir.graph import Instruction, Module
from hlofuse.passes.base import Pass
from hlofuse.releases import Release
from hlofuse.trace import Recorder

_KINDS = {"kLoop": "loop", "kInput": "input", "kOutput": "output"}
_REASON = "XLA names a fusion by its kind and heroes"


@dataclass(frozen=True)
class RenameFusions(Pass):
    """`rename_fusions`: `loop_add_fusion` calls `fused_add`. Custom fusions keep their names.

    Mirrors `xla/backends/gpu/transforms/rename_fusions.cc`.
    """

    name = "rename_fusions"
    device: DeviceDescription = field(compare=False, repr=False)
    release: Release = field(compare=False, repr=False)

    def run(self, module: Module, recorder: Recorder) -> bool:
        model = kernel_model(self.device, self.release)
        changed = False
        for computation in module.non_fusion_computations():
            for fusion in computation:
                kind = _KINDS.get(fusion.fusion_kind or "")
                if kind is None:
                    continue
                name, heroes = fusion.name, _heroes(fusion, model)
                fusion.name = module.instruction_names.unique(f"{kind}_{heroes}_fusion")
                fusion.fused_computation.name = module.computation_names.unique(f"fused_{heroes}")
                recorder.rewrite(computation.name, [name], [fusion], rule="", reason=_REASON)
                changed = True
        return changed


def _heroes(fusion: Instruction, model: KernelModel) -> str:
    """The opcodes of the heroes of all roots, each once (`MakeFusionHeroNames`)."""
    heroes = [root.hero[0] for root in model.summary(fusion).roots]
    opcodes = {hero.opcode if hero is not None else "parameter" for hero in heroes}
    return "_".join(sorted(opcodes)).replace("-", "_")


_LEFT = frozenset({"parameter", "custom-call", "fusion"})


class RenameInstructions(Pass):
    """`rename-instructions`: `add.2` becomes `add.2.0` if a fusion may hold it
    (`xla/backends/gpu/transforms/add_tracking_suffix_to_instruction_names.cc`). XLA has it since 0.6.0."""

    name = "rename-instructions"

    def run(self, module: Module, recorder: Recorder) -> bool:
        unique, changed = module.instruction_names.unique, False
        for computation in module.non_fusion_computations():
            for instruction in computation:
                if instruction.opcode not in _LEFT and is_fusible(instruction):
                    instruction.name = unique(f"{instruction.name}.0")
                    changed = True
        return changed


_UNDERSCORES = str.maketrans(".-;", "___")


class SanitizeConstantNames(Pass):
    """`sanitize-constant-names`: no dots, dashes or semicolons, and made unique with an underscore
    (`xla/backends/gpu/transforms/sanitize_constant_names.cc`)."""

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
