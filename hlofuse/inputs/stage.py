"""The stage of a module in its compilation, and whether fusion can be replayed from it."""

import re
from collections import Counter
from pathlib import Path

from hlofuse.analysis.custom_calls import annotates_sharding, is_inlined
from hlofuse.compilation import Compilation, ReplayConfig, replay_config
from hlofuse.format import printable
from hlofuse.ir import HlofuseError, Instruction, Module, copy_module, replace, values
from hlofuse.pipelines.identity import FRONT_ENDS, NOTHING_GIVEN, Given, ShownStage, Source
from hlofuse.pipelines.targets import TARGETS, Stage, before_fusion
from .backend import backend_of
from .companions import companions_of, compiled_with
from .dump_directory import FUSION_STAGES, DumpedModule, DumpFile, corpus_file, read_name
from .ordered import in_creation_order
from .release import is_of_earlier_dialect
from .wire_format import unique_ids_for

_LATER_IN_CORPUS = re.compile(r"(after|\d+-.+)\.hlo(\.gz)?")
BEFORE, INPUT, FUSED, SCHEDULED = Stage


class StageError(HlofuseError):
    """The module is not the input of the fusion passes; the message says how to get that."""

    def __init__(self, problem: str, stage: ShownStage) -> None:
        closed = not any(target.startswith(stage.backend or "") for target in TARGETS)
        hint = "" if stage.name == INPUT or closed else "\nTo replay it anyway, add --assume-input."
        super().__init__(problem + hint)
        self.stage = stage


def stage_of(module: Module, target: str = "cpu", given: Given = NOTHING_GIVEN) -> ShownStage:
    """The stage, from the module itself, from the dump's file name and from sibling dumps."""
    found = backend_of(module) if given.target is None else None
    backend = found.value if found is not None else None
    siblings = companions_of(module).dump
    right = _right_file(siblings, target) if siblings is not None else _in_its_corpus_folder(module)
    if given.stage is not None:
        return ShownStage(given.stage, backend, "given by --stage", right, "asked")
    if module.lowered_from is not None:
        return ShownStage(BEFORE, backend, f"{module.lowered_from}, not compiled yet", right)
    for whole in siblings.whole if siblings is not None and given.target is None else ():
        if "gpu" in whole or "tpu" in whole:
            backend = "gpu" if "gpu" in whole else "tpu"
    found_in = _by_header(module) or _by_files(module, right)
    name, evidence, source = found_in or (*_by_contents(module, target, backend, given), "text")
    return ShownStage(name, backend, evidence, right, source)


def _by_header(module: Module) -> tuple[Stage, str, Source] | None:
    if module.is_scheduled:
        return SCHEDULED, "header has is_scheduled=true", "text"
    # Library and Triton fusions (kCustom) come from earlier passes.
    for fusion in module.instructions():
        if fusion.fusion_kind in ("kLoop", "kInput", "kOutput"):
            return FUSED, f"has {fusion.fusion_kind} fusions such as {printable(fusion.name)}", "text"
    return None


def _by_files(module: Module, right: Path | None) -> tuple[Stage, str, Source] | None:
    """The stage by the name of the file and by those next to it; `right` is the fusion input, if any."""
    dump_file, stamp = companions_of(module).file, companions_of(module).stamp
    if dump_file is None and right is not None:
        return FUSED, f"{right.name}, the fusion input, is in the same directory", "directory"
    if dump_file is not None:
        if dump_file.whole is not None:
            name = BEFORE if dump_file.whole == "before_optimizations" else SCHEDULED
            return name, f"from the file name: {dump_file.whole}", "directory"
        if right is not None and right.name == dump_file.path.name:
            return INPUT, "from its name in the dump directory", "directory"
        if right is not None:
            return *_by_order(dump_file, right), "directory"
        if any(stage.is_fused_by(dump_file) for stage in FUSION_STAGES.values()):
            return FUSED, f"from the file name: after {printable(dump_file.after)}", "directory"
    file = Path(module.filename or "")
    if file.name.startswith("before.hlo") and corpus_file(file.parent, "after") is not None:
        return INPUT, "before.hlo, next to after.hlo", "directory" if stamp is None else "stamp"
    if file.name.startswith("before_optimizations.hlo") and stamp is not None:
        return BEFORE, "before_optimizations.hlo of a capture", "stamp"
    return None


def _by_contents(module: Module, target: str, backend: str | None, given: Given) -> tuple[Stage, str]:
    """The stage by the module's contents alone: before the fusion passes, or their input. If repeating the
    passes before fusion changes a module, it was not their result. The reverse holds only nearly, as XLA's
    passes are not idempotent: instructions that only passes create are tested first."""
    if backend == "tpu":  # its passes leave reshapes, next to what only passes create
        early = None if _lowered_evidence(module) else _unoptimized_evidence(module)
        return (BEFORE, early) if early else (INPUT, "it has no fusions")
    if backend in FRONT_ENDS:
        return BEFORE, f"from {FRONT_ENDS[backend]}, before XLA's passes"
    evidence = (
        (BEFORE, _unoptimized_evidence),
        (INPUT, _lowered_evidence),
        (BEFORE, _numbered_evidence),
    )
    for stage, find in evidence:
        if (found := find(module)) is not None:
            return stage, found
    if _has_metadata(module) and "entry_computation_layout" not in module.attributes:
        return BEFORE, "no entry_computation_layout in the header, which XLA sets first"
    if is_of_earlier_dialect(module, given.release):  # its own passes did less than those that are repeated
        return INPUT, "its names come from passes, not from a front end"
    if target == "gpu" and _has_metadata(module):
        return BEFORE, "no operation has the name that XLA:GPU assigns just before fusion"
    counts = _passes_before_fusion_change(module, target, given)
    if counts is not None:
        before, after = counts
        return BEFORE, f"XLA's passes before fusion change it ({before} → {after} operations)"
    work = _work_not_repeated(module, target)
    if work:
        return BEFORE, work
    return INPUT, "XLA's passes before fusion do not change it"


_STAGE_TEXT = {
    BEFORE: "is a module before the fusion passes",
    FUSED: "is a fused module",
    SCHEDULED: "is a module after all optimizations, fused and scheduled",
}


def doubt(module: Module, target: str) -> str | None:
    """Why `module`, BEFORE of a call, is likely no input of the fusion passes; None if it may well be one."""
    stage = stage_of(module, target)
    if stage.name == INPUT:
        return None
    return f"BEFORE {_STAGE_TEXT[stage.name]} ({stage.evidence})."


def require_input_stage(module: Module, target: str = "cpu", stage: ShownStage | None = None) -> ShownStage:
    """The stage of a module that fusion can be replayed from; StageError for any other. `stage`: if known."""
    stage = stage or stage_of(module, target)
    foreign = stage.foreign_to(target)
    if stage.name == INPUT and not foreign:
        return stage
    name = printable(module.filename) if module.filename and module.filename != "<stdin>" else "this input"
    lines = []
    if foreign:
        shown = backend_of(module)
        evidence = f" ({shown.evidence})" if shown is not None else ""
        lines.append(f"{name} is a module for {str(stage.backend).upper()}{evidence}.")
    if stage.name != INPUT:
        lines.append(f"{'It' if lines else name} {_STAGE_TEXT[stage.name]} ({stage.evidence}).")
    if foreign:
        lines.append(_for_another_backend(str(stage.backend), stage.is_fused))
        raise StageError("\n".join(lines), stage)
    lines.append(f"A replay needs the module at the fusion input of target {target}.")
    if stage.right_file is not None:
        lines.append(f"That dump is next to it: {printable(stage.right_file)}")
    elif target in FUSION_STAGES:
        flags = FUSION_STAGES[target].flags
        lines.append(f'To get it, run the program with XLA_FLAGS="{flags}"')
        lines.append("and give hlofuse DIR, which finds the right file.")
        if stage.name == BEFORE and name != "this input":
            lines.append(f"Or compile it ahead of time: hlofuse capture {name} --explain")
    if stage.is_fused:
        lines.append("(explain, kernels, check, stats, diff, render and explore accept it as it is.)")
    raise StageError("\n".join(lines), stage)


def _for_another_backend(backend: str, is_fused: bool) -> str:
    fitting = [name for name in TARGETS if name.startswith(backend)]
    if fitting:
        return f"Give --target {' or '.join(fitting)} to replay it for that backend."
    closed = f"The fusion passes of {backend.upper()} are not public and cannot be replayed."
    if not is_fused:
        return f"{closed} Give the module after them, or compile it: hlofuse capture FILE --target {backend}"
    return (
        f"{closed} explain shows what was fused, and with --prove what its compiler makes of changes;"
        " kernels, check, stats, diff, render, explore, timeline and trace-op accept it as it is."
    )


def _right_file(module: DumpedModule, target: str) -> Path | None:
    try:
        return module.pass_input(target)
    except HlofuseError:
        return None


def _in_its_corpus_folder(module: Module) -> Path | None:
    """`before.hlo` next to a later dump of a corpus folder."""
    if not module.filename:
        return None
    path = Path(module.filename)
    return corpus_file(path.parent, "before") if _LATER_IN_CORPUS.fullmatch(path.name) else None


def _by_order(dump_file: DumpFile, right: Path) -> tuple[Stage, str]:
    reference = read_name(right)
    first = reference.number if reference is not None else None
    if dump_file.number is not None and first is not None and dump_file.number < first:
        return BEFORE, "later dumps of it exist before the fusion passes"
    return FUSED, "its dump number is greater than that of the fusion input"


_EXPANDED = values("batch-norm-training batch-norm-inference batch-norm-grad topk logistic")
_RENAMED = re.compile(r".*\.\d+\.0")


def _unoptimized_evidence(module: Module) -> str | None:
    """Evidence that XLA never leaves in a module at the fusion input. Operations that may be recreated, as
    constants are when a loop body is copied, prove nothing next to a bitcast, which only passes create."""
    weak_evidence, has_bitcast = None, False
    for computation in module.computations:
        if computation.fusion is not None:
            continue
        scalars = dict[object, str]()
        for i in computation:
            opcode = i.opcode
            if opcode == "reshape":
                return (
                    f"has reshapes such as {printable(i.name)}, which earlier passes turn into bitcasts or"
                    " copies"
                )
            if opcode == "call" and is_inlined(i):
                return f"has calls such as {printable(i.name)}, which earlier passes inline"
            if opcode in _EXPANDED:
                return f"has {opcode} {printable(i.name)}, which earlier passes expand"
            if annotates_sharding(i):
                return f"has sharding annotations such as {printable(i.name)}, which earlier passes remove"
            if opcode == "bitcast":
                has_bitcast = True
            elif weak_evidence is None:
                weak_evidence = _typical_evidence(i, scalars)
    return None if has_bitcast else weak_evidence


def _typical_evidence(i: Instruction, scalars: dict[object, str]) -> str | None:
    """`scalars` are the names of the constants before it in its computation, by value."""
    if i.is_broadcast and any(d == 1 for o in i.operands for d in o.sizes):
        return f"broadcasts a dimension of size 1 ({printable(i.name)}), which earlier passes simplify"
    if i.is_constant and i.shape.is_effective_scalar:
        other = scalars.setdefault((i.shape.key, i.payload), i.name)
        if other != i.name:
            names = f"{printable(other)} and {printable(i.name)}"
            return f"has {names}, duplicate constants, which earlier passes merge"
    return None


def _lowered_evidence(module: Module) -> str | None:
    """Something that only XLA's passes create."""
    for i in module.instructions():
        if i.is_bitcast and i.element_type == i.operand.element_type:
            return f"has bitcasts such as {printable(i.name)}, which only passes create"
        if i.is_fusion:
            return f"has fusion {printable(i.name)}, created by passes before fusion"
        if i.opcode == "copy" and i.shape != i.operand.shape:
            return f"{printable(i.name)} copies to another layout, which only passes choose"
        if not i.is_parameter and _RENAMED.fullmatch(i.name):
            return f"XLA:GPU renamed {printable(i.name)}, which it does just before fusion"
    return None


_LEAST_NUMBERED = 8


def _numbered_evidence(module: Module) -> str | None:
    """Evidence that all names have distinct numbers: front ends count all instructions, XLA by stem."""
    numbers = []
    for name in (n for c in module.computations for n in (c.name, *(i.name for i in c))):
        stem, dot, number = name.rpartition(".")
        if not dot or not stem or not number.isascii() or not number.isdigit():
            return None
        numbers.append(int(number[:18]))
    if len(numbers) < _LEAST_NUMBERED or len(set(numbers)) != len(numbers):
        return None
    return "every name has its own number, as front ends number them"


def _has_metadata(module: Module) -> bool:
    return any("metadata" in i.attributes for i in module.entry)


def _passes_before_fusion_change(module: Module, target: str, given: Given) -> tuple[int, int] | None:
    """The numbers of operations before and after the passes before fusion; None if those change nothing. A
    module that lost only unused operations, or whose order changed, counts as unchanged. The passes of the
    CPU are tried where those of the target are not known without a device, or change nothing. The run is kept
    with the module, for a replay that begins with these passes (`lowering_of`)."""
    found: dict[str, tuple[int, int] | None] = module.findings.setdefault("changes", {})
    if target not in found:
        listed = bool(before_fusion(target, given.device))
        tried = dict.fromkeys((target, "cpu") if listed else ("cpu",))
        lowerings = dict[str, Compilation]()
        counts = (_counts_if_changed(module, name, given, lowerings) for name in tried)
        found[target] = next((c for c in counts if c is not None), None)
        module.findings["lowerings"] = lowerings
    return found[target]


def _work_not_repeated(module: Module, target: str) -> str:
    """Operations that XLA rewrites before fusion in a pass that is not repeated; empty without such."""
    lowering: Compilation | None = module.findings.get("lowerings", {}).get(target)
    found = lowering.span(Stage.INPUT).not_repeated if lowering is not None else {}
    for name, opcodes in found.items():
        return f"XLA's {name}, which is not repeated, rewrites {', '.join(sorted(opcodes))} before fusion"
    return ""


_KEEP_SORTS = "--xla_disable_hlo_passes=permutation_sort_simplifier"


def _counts_if_changed(
    module: Module, target: str, given: Given, lowerings: dict[str, Compilation]
) -> tuple[int, int] | None:
    """The two numbers, where they differ; the run is added to `lowerings`."""
    before = _operations(module)
    device = given.device if TARGETS[target].needs_device else None
    flags = compiled_with(module, given.flags)
    config = replay_config(target, device, xla_flags=flags)
    lowering = lowerings[target] = lowering_in_creation_order(module, config)
    try:
        after = _operations(lowering.before)
    except HlofuseError:  # calls that multiply beyond reason: they are there no more at fusion
        return before.total(), before.total()
    if before["sort"] > after["sort"] and _KEEP_SORTS not in flags:
        # On a CPU this pass runs before the calls are inlined that hide one sort from another.
        return _counts_if_changed(module, target, replace(given, flags=(*flags, _KEEP_SORTS)), {})
    return (before.total(), after.total()) if before != after else None


def lowering_in_creation_order(module: Module, config: ReplayConfig) -> Compilation:
    """The compilation of a copy of a module before optimizations, in the order that its front end created."""
    ordered = copy_module(module)
    ordered.filename = module.filename
    in_creation_order(ordered, unique_ids_for(ordered))
    return Compilation.of(ordered, Stage.BEFORE, config)


def lowering_of(module: Module, config: ReplayConfig) -> Compilation:
    """The passes before fusion on a module before optimizations, run now or when its stage was determined."""
    own = config.xla or config
    found: Compilation | None = module.findings.get("lowerings", {}).get(own.target)
    if found is not None and found.config.build == own.build:
        return found
    return lowering_in_creation_order(module, own)


_MOVING = values("parameter constant tuple get-tuple-element copy bitcast")


def _operations(module: Module) -> Counter[str]:
    return Counter(
        i.opcode for c in module.computations if c.fusion is None for i in c if i.opcode not in _MOVING
    )
