"""Rules of HorizontalLoopFusion and HorizontalInputFusion: codes HF…. Both join small kernels that have
nothing to do with each other but feed the same consumer."""

from collections.abc import Collection

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.ir.graph import Instruction, Instructions
from hlofuse.ir.opcodes import values
from hlofuse.ir.shape import INTEGER_TYPES
from .catalogue import Knob, essential, outcome, register
from .gpu_fusible import is_nested_variadic_reduction, outputs_of
from .verdict import Figures

MAX_ELEMENTS = Knob("horizontal-max-elements", 8192 * 8192)
MAX_ELEMENTS_SLICED = Knob("horizontal-max-elements-sliced", 128 * 2048)
MAX_INSTRUCTIONS = Knob("horizontal-max-instructions", 128)
MAX_INSTRUCTIONS_SLICED = Knob("horizontal-max-instructions-sliced", 30)
MAX_OUTPUTS = Knob("horizontal-max-outputs", 32)
MAX_OUTPUTS_UNFUSED = Knob("horizontal-max-outputs-unfused", 64)
MAX_PARAMETER_BYTES = Knob("horizontal-max-parameter-bytes", 4000)
MAX_UNROLL_COST = Knob("horizontal-max-unroll-cost", 100)
JOINED_LOOPS = outcome("HF001", "Small independent kernels are merged", allows=True)
JOINED_REDUCTIONS = outcome("HF002", "Independent reductions are merged", allows=True)
WRAPPED_REDUCTION = outcome("HF003", "A reduction becomes a fusion before it is compared", allows=True)
OTHER_USERS = essential(
    "HF010",
    "The kernel's result has other users",
    message="rejects maybe illegal instr …; including it may create cycles in HLO.",
)
LARGE_KERNEL = register(
    "HF011",
    "The kernel is large",
    message="rejects may-not-be profitable fusion instr …",
    knobs=(MAX_ELEMENTS, MAX_ELEMENTS_SLICED),
)
LONG_KERNEL = register(
    "HF012",
    "The kernel has many instructions",
    message="rejects may-not-be profitable fusion instr …",
    knobs=(MAX_INSTRUCTIONS, MAX_INSTRUCTIONS_SLICED),
)
NOT_ROW_MAJOR = essential(
    "HF013",
    "An array in the kernel is not in row-major order",
    message="rejects non-row-major fusion instr …",
)
SHARED_PARAMETER = register(
    "HF014",
    "The kernel reads a parameter that another candidate reads",
    message="rejects the fusion instr because it shares parameter with other fusion candidates, instr: …",
)
TOO_MANY = register(
    "HF015",
    "The merged kernel is full",
    message="hit max …",
    knobs=(MAX_OUTPUTS, MAX_OUTPUTS_UNFUSED, MAX_PARAMETER_BYTES, MAX_UNROLL_COST),
)
UNLIKE = essential("HF016", "The kernel differs from its neighbours", message="different …")


def instruction_count(instruction: Instruction) -> int:
    """Instructions in a kernel, parameters counted (`GetInstrCountOfFusible`)."""
    return len(instruction.fused_computation) if instruction.is_fusion else 1


def is_horizontal_candidate(instruction: Instruction, model: KernelModel) -> bool:
    """A loop, or an operation that could be one (`IsFusibleCandidate`)."""
    if instruction.has_control_dependencies:
        return False
    if is_nested_variadic_reduction(instruction, model):
        return False
    if is_elementwise(instruction) and instruction.operands:
        return True
    if instruction.fusion_kind != "kLoop":
        return False
    return len({output.element_type for output in outputs_of(instruction)}) == 1


def is_joined(instruction: Instruction) -> bool:
    """True for a kernel whose result is a concatenate (`IsConcatenationInputFusion`)."""
    return instruction.fusion_kind == "kInput" and instruction.fused_root.is_concatenate


def feeds_only(instruction: Instruction, consumer: Instruction, views: Collection[str]) -> bool:
    """True if all users, past `views`, are the consumer and the root (`IsConsumerTheOnlyNonRootUser`)."""
    return all(
        feeds_only(user, consumer, views) if user.opcode in views else user is consumer or user.is_root
        for user in instruction.users
    )


def writes_slice(kernel: Instruction) -> bool:
    """A fusion with a result that is an update of a slice (`IsDynamicUpdateSliceFusion`)."""
    return kernel.is_fusion and any(o.opcode == "dynamic-update-slice" for o in outputs_of(kernel))


def is_row_major(instruction: Instruction) -> bool:
    """Everything lies in memory as its dimensions say (`HasOnlyRowMajorLayout`)."""
    inside = instruction.fused_computation if instruction.is_fusion else (instruction,)
    return all(not x.is_array or x.shape.is_row_major for x in inside)


_FREE = values("parameter constant tuple broadcast bitcast reshape transpose slice")
_EXPENSIVE = values("abs ceil floor round-nearest-afz round-nearest-even rsqrt sqrt")


def unroll_cost(instruction: Instruction) -> int:
    """The code size of unrolling the kernel (`GetUnrollCost`)."""
    if instruction.is_fusion:
        return sum(map(unroll_cost, instruction.fused_computation))
    if instruction.opcode in _FREE:
        return 0
    is_integer = instruction.element_type in INTEGER_TYPES
    return 20 if instruction.opcode in _EXPENSIVE and not is_integer else 1


def figures_of(kernels: Instructions) -> Figures:
    return {"kernels": len(kernels), "outputs": sum(len(outputs_of(k)) for k in kernels)}
