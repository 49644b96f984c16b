"""Which moment of a compilation a module shows, and whether fusion can be replayed from it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from hlofuse.analysis.custom_calls import is_inlined
from hlofuse.format.escape import printable
from hlofuse.inputs.dump_directory import DumpDirectory, DumpedModule, corpus_file
from hlofuse.inputs.dump_names import FUSION_STAGES, DumpFile, read_name
from hlofuse.inputs.platform import platform_of
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Instruction, Module
from hlofuse.pipelines.targets import TARGETS

_LATER_IN_CORPUS = re.compile(r"(after|\d+-.+)\.hlo(\.gz)?")

INPUT = "input"
BEFORE = "before optimizations"
FUSED = "fused"
SCHEDULED = "scheduled"


@dataclass(frozen=True, slots=True)
class Stage:
    """The stage of a module and what shows it."""

    name: str
    """INPUT, BEFORE (somewhere ahead of the fusion passes), FUSED or SCHEDULED."""
    platform: str | None = None
    """`cpu`, `gpu` or `tpu` where something in the module tells."""
    evidence: str = ""
    """What gave it away, in words; empty for a module with nothing against it."""
    right_file: Path | None = None
    """The dump of the pass's input, if it lies beside this one."""

    @property
    def is_fused(self) -> bool:
        """The fusion passes have been over the module."""
        return self.name in (FUSED, SCHEDULED)

    def foreign_to(self, target: str) -> bool:
        """Something in the module tells of another platform than that of `target`."""
        return self.platform is not None and not target.startswith(self.platform)


class StageError(HlofuseError):
    """The module is not the input of the fusion passes; the message says how to get that."""

    def __init__(self, problem: str, stage: Stage) -> None:
        super().__init__(f"{problem}\nTo have it replayed all the same, add --assume-input.")
        self.problem = problem
        """The message without the way out."""
        self.stage = stage


def stage_of(module: Module, target: str = "cpu") -> Stage:
    """Tell the stage from the dump's file name, the dumps beside it and the module itself."""
    platform, platform_evidence = platform_of(module)
    dump_file = read_name(Path(module.filename)) if module.filename and module.filename != "<stdin>" else None
    siblings = _sibling(dump_file) if dump_file is not None else None
    right = _right_file(siblings, target) if siblings is not None else _in_its_corpus_folder(module)
    if module.lowered_from is not None:
        return Stage(
            BEFORE, platform, f"it is {module.lowered_from}, a program that nothing has compiled", right
        )
    for whole in siblings.whole if siblings is not None else ():
        if "gpu" in whole or "tpu" in whole:
            platform, platform_evidence = ("gpu" if "gpu" in whole else "tpu"), f"beside it lies its {whole}"
    if module.is_scheduled:
        return Stage(SCHEDULED, platform, "its header says is_scheduled=true", right)
    fusion = _compiler_fusion(module)
    if fusion is not None:
        evidence = f"it has {fusion.fusion_kind} fusions such as {fusion.name}, which these passes make"
        return Stage(FUSED, platform, evidence, right)
    if dump_file is None and right is not None:
        return Stage(FUSED, platform, f"it lies beside {right.name}, which the passes were given", right)
    if dump_file is not None:
        if dump_file.whole is not None:
            name = BEFORE if dump_file.whole == "before_optimizations" else SCHEDULED
            return Stage(name, platform, f"its file name says {dump_file.whole}", right)
        if right is not None and right.name == dump_file.path.name:
            return Stage(INPUT, platform, platform_evidence, right)
        if right is not None:
            name, evidence = _by_order(dump_file, right)
            return Stage(name, platform, evidence, right)
    if _in_corpus(module):
        return Stage(INPUT, platform, platform_evidence, right)
    sign_of_stage = _unoptimized_evidence(module)
    if sign_of_stage is not None and platform in (None, target):
        return Stage(BEFORE, platform, sign_of_stage, right)
    return Stage(INPUT, platform, platform_evidence, right)


_STAGE_TEXT = {
    BEFORE: "shows a module that the fusion passes have not reached yet",
    FUSED: "shows a module that is already fused",
    SCHEDULED: "shows a module after all optimizations, fused and scheduled",
}


def doubt(module: Module, name: str, target: str = "cpu") -> str | None:
    """Why `module` is not likely the input of the fusion passes, in a sentence; None if it may well be."""
    stage = stage_of(module, target)
    if stage.name == INPUT:
        return None
    return f"{name} {_STAGE_TEXT[stage.name]} ({stage.evidence})."


def require_input_stage(module: Module, target: str = "cpu") -> Stage:
    """The stage of a module that fusion can be replayed from; StageError for any other."""
    stage = stage_of(module, target)
    foreign = stage.foreign_to(target)
    if stage.name == INPUT and not foreign:
        return stage
    name = printable(module.filename) if module.filename and module.filename != "<stdin>" else "this input"
    lines = []
    if foreign:
        lines.append(f"{name} is a module for {str(stage.platform).upper()}, not for target {target}")
        if stage.name == INPUT:
            lines[0] += f" ({stage.evidence})"
        lines[0] += "."
    if stage.name != INPUT:
        lines.append(f"{'It' if lines else name} {_STAGE_TEXT[stage.name]} ({stage.evidence}).")
    lines.append(f"What is replayed is the module as it enters the fusion passes of target {target}.")
    if foreign:
        lines.append(_for_another_platform(str(stage.platform), target))
    elif stage.right_file is not None:
        lines.append(f"That dump lies beside it: {printable(str(stage.right_file))}")
    elif target in FUSION_STAGES:
        flags = FUSION_STAGES[target].flags
        lines.append(f'To get it, run the program with XLA_FLAGS="{flags}"')
        lines.append("and give hlofuse DIR: the right file is found by itself.")
        if stage.name == BEFORE and name != "this input":
            lines.append(f"Or have it compiled ahead of time: hlofuse capture {name} --explain")
    if stage.is_fused:
        lines.append("(explain, kernels, check, stats, diff and render take it as it is.)")
    raise StageError("\n".join(lines), stage)


def _for_another_platform(platform: str, target: str) -> str:
    fitting = [name for name in TARGETS if name.startswith(platform)]
    if fitting:
        return f"Give --target {' or '.join(fitting)} to have it replayed as what it is."
    flags = FUSION_STAGES[target].flags if target in FUSION_STAGES else ""
    return (
        f"There is no target for {platform.upper()} yet: explain reads off what was fused, from a dump"
        " directory or a folder with before.hlo and after.hlo; stats, diff and render take any module.\n"
        f"To see what XLA does on {target}, compile the program for it:\n"
        f'JAX_PLATFORMS={target} XLA_FLAGS="{flags}", and give hlofuse DIR.'
    )


def _sibling(dump_file: DumpFile) -> DumpedModule | None:
    """All dumps of the same module in the folder of this one."""
    try:
        modules = DumpDirectory(dump_file.path.parent).modules
    except HlofuseError:
        return None
    key = (dump_file.prefix, dump_file.module_id, dump_file.module)
    return next((m for m in modules if (m.prefix, m.module_id, m.name) == key), None)


def _right_file(module: DumpedModule, target: str) -> Path | None:
    try:
        return module.pass_input(target)
    except HlofuseError:
        return None


def _in_its_corpus_folder(module: Module) -> Path | None:
    """`before.hlo` beside a later dump of a corpus folder."""
    if not module.filename:
        return None
    path = Path(module.filename)
    return corpus_file(path.parent, "before") if _LATER_IN_CORPUS.fullmatch(path.name) else None


def _by_order(dump_file: DumpFile, right: Path) -> tuple[str, str]:
    reference = read_name(right)
    first = reference.number if reference is not None else None
    if dump_file.number is not None and first is not None and dump_file.number < first:
        return BEFORE, "there are later dumps of it ahead of the fusion passes"
    return FUSED, "its number in the dump directory is greater than that of the passes' input"


def _compiler_fusion(module: Module) -> Instruction | None:
    """A fusion made by a fusion pass. Library and Triton fusions (kCustom) are made before."""
    for i in module.instructions():
        if i.opcode == "fusion" and i.fusion_kind in ("kLoop", "kInput", "kOutput"):
            return i
    return None


def _in_corpus(module: Module) -> bool:
    """`before.hlo` beside `after.hlo`: what a corpus calls the input of the passes."""
    path = Path(module.filename) if module.filename else Path()
    return path.name.startswith("before.hlo") and corpus_file(path.parent, "after") is not None


_EXPANDED = frozenset({"batch-norm-training", "batch-norm-inference", "batch-norm-grad", "topk", "logistic"})
_PARTITIONER_CALLS = frozenset({"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape"})


def _unoptimized_evidence(module: Module) -> str | None:
    """Something that XLA never leaves in a module that is about to be fused.

    What may come back, as a pass that copies the body of a loop copies its constants, tells nothing beside a
    bitcast, which passes make and no front end does.
    """
    weak_evidence, has_bitcast = None, False
    for computation in module.computations:
        if computation.fusion is not None:
            continue
        scalars: dict[object, str] = {}
        for i in computation:
            opcode = i.opcode
            if opcode == "reshape":
                return f"it has reshapes such as {printable(i.name)}, which become bitcasts or copies earlier"
            if opcode == "call" and is_inlined(i):
                return f"it has calls such as {printable(i.name)}, which are inlined earlier"
            if opcode in _EXPANDED:
                return f"it has a {opcode}, {printable(i.name)}, which is expanded earlier"
            if opcode == "custom-call" and i.attributes.get("custom_call_target") in _PARTITIONER_CALLS:
                return f"it has sharding annotations such as {printable(i.name)}, which are removed earlier"
            if opcode == "bitcast":
                has_bitcast = True
            elif weak_evidence is None:
                weak_evidence = _typical_evidence(i, scalars)
    return None if has_bitcast else weak_evidence


def _typical_evidence(i: Instruction, scalars: dict[object, str]) -> str | None:
    """`scalars` are the names of the constants before it in its computation, by value."""
    if i.opcode == "broadcast" and any(d == 1 for o in i.operands for d in o.shape.dimensions):
        return f"it broadcasts a dimension of size 1 ({printable(i.name)}), which is simplified earlier"
    if i.opcode == "constant" and i.shape.is_effective_scalar:
        other = scalars.setdefault((i.shape.key, i.payload), i.name)
        if other != i.name:
            names = f"{printable(other)} and {printable(i.name)}"
            return f"it has {names}, equal constants, which are merged earlier"
    return None
