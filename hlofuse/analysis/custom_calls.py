"""Targets and attributes of custom calls."""

from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.opcodes import values, with_trait


def custom_call_target(instruction: Instruction) -> str:
    """The target of a custom call; empty for anything else."""
    if instruction.opcode != "custom-call":
        return ""
    return str(instruction.attributes.get("custom_call_target") or "")


def calls_python(x: Instruction) -> bool:
    """True for a callback of JAX to Python on the host, and for its results."""
    target = custom_call_target(x.through("get-tuple-element", "bitcast"))
    return "python" in target and "callback" in target


def is_library_convolution(instruction: Instruction) -> bool:
    """True for a convolution of cuDNN (`IsCustomCallToDnnConvolution` of `cublas_cudnn.cc`)."""
    return custom_call_target(instruction).startswith("__cudnn$conv")


def is_radix_sort(instruction: Instruction) -> bool:
    """A sort by CUB; the last element of its tuple is memory to work in."""
    return custom_call_target(instruction).startswith("xla.gpu.ext.cub_sort_")


# Calls that tell the compiler something and hand their operand on. XLA removes them: `sharding-remover`, the
# partitioner and Shardy's import those of shardings, `strip-memory-placement-annotations` (CPU) and
# `host-offloader` those of memory, the algebraic simplifier LayoutConstraint last, XLA:TPU halves of 64 bits.

PLACEMENTS = values("MoveToHost MoveToDevice annotate_device_placement")
"""Targets that name the memory of a value."""
_SHARDINGS = values("Sharding SPMDFullToShardShape SPMDShardToFullShape ShardBarrierFrom ShardBarrierTo")
_ANNOTATIONS = PLACEMENTS | set(
    "LayoutConstraint AssumeGatherIndicesInBound X64Combine X64SplitLow X64SplitHigh".split()
)
SHARDY = "xla.sdy."
CROSSINGS = (f"{SHARDY}GlobalToLocalShape", f"{SHARDY}LocalToGlobalShape")


def is_annotation(instruction: Instruction) -> bool:
    """True for a custom call that nothing is launched for."""
    return custom_call_target(instruction) in _ANNOTATIONS or annotates_sharding(instruction)


def annotates_sharding(instruction: Instruction) -> bool:
    """True for a custom call that describes how a value is divided over devices."""
    target = custom_call_target(instruction)
    return target in _SHARDINGS or target.startswith(SHARDY)


def hands_on(instruction: Instruction) -> bool:
    """True for an annotation that may be replaced by its operand: a partitioned value has another shape."""
    if not is_annotation(instruction) or instruction.operand_count != 1:
        return False
    return instruction.shape.text_without_layout == instruction.operand.shape.text_without_layout


# Calls that are inlined before fusion (`CallInliner::ShouldInline` in `xla/service/call_inliner.cc`).

_LATER = values("false xla_late")


def is_inlined(instruction: Instruction) -> bool:
    """A call that the program does not ask to keep, and that is no task of the CPU's threads."""
    if instruction.opcode != "call" or "backend_config" in instruction.attributes:
        return False
    return instruction.frontend_attributes.get("inlineable") not in _LATER


def is_flagged(x: Instruction, names: tuple[str, ...]) -> bool:
    """True if one of these frontend attributes is set to true (`IsTrueVal`)."""
    return any(str(x.frontend_attributes.get(name)).lower() in ("true", "1", "yes") for name in names)


def retains_elements(x: Instruction) -> bool:
    """True if no part of a loop is to be removed (`HasDisableWhileLoopDceAttr`)."""
    return is_flagged(x, _NO_DCE)


_NO_DCE = tuple(
    f"xla{sep}{name}" for sep in "_." for name in ("disable_while_loop_dce", "preserve_tuple_indices")
)


def partitions_of(module: Module) -> int:
    """`num_partitions` of the header, else 1."""
    text = module.attributes.raw("num_partitions") or "1"
    return int(text) if text.isascii() and text.isdigit() else 1


# Computations that run inside one operation (`GetInstructionCallContext`, `IsEmbeddedComputation`).

_EMBEDDING = with_trait("embeds-computations")


def is_embedded(computation: Computation) -> bool:
    """True if the first caller applies the computation element by element; the others are not asked."""
    first = computation.first_caller
    return first is not None and first.opcode in _EMBEDDING


def is_divided(module: Module) -> bool:
    """True for a module that XLA's partitioner has yet to divide over several devices."""
    if partitions_of(module) == 1 or "_spmd" in module.entry.name:  # the partitioner's suffix
        return False
    shardings = (x.raw("sharding") or custom_call_target(x) for x in module.instructions())
    return any("devices=" in found or found in CROSSINGS for found in shardings)
