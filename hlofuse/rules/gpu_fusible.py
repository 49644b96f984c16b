"""Operations allowed in a GPU fusion at all, independent of its partner. Mirrors predicates of
`xla/backends/gpu/transforms/priority_fusion.cc` and `xla/service/gpu/gpu_fusible.cc`."""

from hlofuse.analysis.elementwise import (
    ELEMENTWISE_OPCODES,
    is_elementwise,
    is_fusible,
    is_fusion_body,
    transpose_is_bitcast,
)
from hlofuse.cost.gpu.backend_config import is_generic_triton_fusion
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.ir.graph import Computation, Computations, Instruction, Instructions, Module
from hlofuse.ir.opcodes import values, with_trait
from hlofuse.releases import Release

_LOOPS = with_trait("gpu-loop")
_ELEMENTAL = _LOOPS | {"copy", "iota", "constant", "reduce", "scatter"}
_CONTROL_FLOW = values("while conditional fusion")
_CONSTANT_ELEMENTS = 1


def keeps_bit_width(instruction: Instruction) -> bool:
    """Elements before and after have the same number of bits (`KeepsBitwidth`)."""
    after, before = instruction.shape, instruction.operand.shape
    return after.element_type == before.element_type or after.bit_width == before.bit_width


def is_fusible_bitcast(instruction: Instruction, release: Release) -> bool:
    """A bitcast that goes ahead of everything else, and is passed over until then (`IsFusibleBitcast`)."""
    return instruction.is_bitcast and (
        not release.only_fusible_bitcasts_first or keeps_bit_width(instruction)
    )


def may_be_fused(instruction: Instruction, release: Release) -> bool:
    """PriorityFusion's own `IsFusible`."""
    opcode = instruction.opcode
    if opcode in ELEMENTWISE_OPCODES and opcode != "bitcast-convert":
        return True
    if opcode == "fusion":
        if instruction.raw("kind") != "kCustom":
            return True
        return is_generic_triton_fusion(instruction) or is_elementwise(instruction)
    if not is_fusible(instruction):
        return False
    if opcode == "bitcast":
        return not release.bitcasts_keep_width or keeps_bit_width(instruction)
    return opcode in _ELEMENTAL or is_elementwise(instruction)


def is_small_constant(instruction: Instruction) -> bool:
    """A constant that becomes part of the kernel's code (`IsSmallConstant`)."""
    shape = instruction.shape
    return instruction.is_constant and shape.is_array and shape.element_count <= _CONSTANT_ELEMENTS


def is_scatter_fusion(instruction: Instruction) -> bool:
    """A scatter, alone or as the result of its kernel (`IsInputFusibleScatter`)."""
    if instruction.is_fusion:
        return instruction.fused_root.opcode == "scatter" and instruction.fusion_kind == "kInput"
    return instruction.opcode == "scatter"


def updated_operand(consumer: Instruction) -> Instruction | None:
    """The array that a scatter, or a kernel that ends in one, updates in place; None for anything else."""
    if not is_scatter_fusion(consumer):
        return None
    if not consumer.is_fusion:
        return consumer.operand
    inner = consumer.fused_root.operand
    return consumer.operands[inner.parameter_number] if inner.is_parameter else None


def has_tiled_transpose(instruction: Instruction, model: KernelModel) -> bool:
    """It is a tiled transpose, or a kernel about one (`IsInputFusibleTranspose`)."""
    if instruction.is_bitcast or instruction.fusion_kind == "kCustom":
        return False
    summary = model.summary(instruction)
    if summary.atom is not None:
        return summary.atom.transpose is not None
    return any(hero is not None and hero.transpose is not None for hero, _ in (r.hero for r in summary.roots))


def is_input_fusible(instruction: Instruction, model: KernelModel) -> bool:
    """A kernel that goes by its input: reduction, tiled transpose or scatter (`IsInputFusible`)."""
    return is_fusible(instruction) and (
        model.summary(instruction).is_reduction
        or is_scatter_fusion(instruction)
        or has_tiled_transpose(instruction, model)
    )


def choose_kind(producer: Instruction, consumer: Instruction, model: KernelModel) -> str:
    """The kind of the fusion of the two (`ChooseFusionKind`)."""
    by_input = is_input_fusible(consumer, model) or is_input_fusible(producer, model)
    return "kInput" if by_input else "kLoop"


def is_universally_loop_fusible(instruction: Instruction, release: Release) -> bool:
    """It has code for a single element, as a producer and as a consumer (`IsUniversallyLoopFusible`)."""
    opcode = instruction.opcode
    if is_elementwise(instruction) and instruction.operands:
        return True
    if opcode == "fusion":
        return instruction.fusion_kind == "kLoop"
    if opcode == "bitcast":
        return not release.bitcasts_keep_width or keeps_bit_width(instruction)
    return opcode in _LOOPS


def is_loop_fusible_producer(instruction: Instruction, release: Release) -> bool:
    """It has code for a single element (`IsLoopFusibleAsProducer`)."""
    opcode = instruction.opcode
    if not is_fusible(instruction):
        return False
    if opcode in ("iota", "constant"):
        return True
    if opcode == "reduce":
        return not instruction.is_tuple
    return is_universally_loop_fusible(instruction, release)


def is_loop_fusible_consumer(instruction: Instruction, model: KernelModel) -> bool:
    """It can compute its operands' elements in its own loop (`IsLoopFusibleAsConsumer`)."""
    if not is_fusible(instruction) or instruction.is_bitcast:
        return False
    if instruction.is_reduce:
        return True
    if instruction.fusion_kind == "kInput" and not is_input_fusible(instruction, model):
        return True  # what made it an input fusion has been fused in too deep
    return is_universally_loop_fusible(instruction, model.release)


def is_nested_variadic_reduction(instruction: Instruction, model: KernelModel) -> bool:
    """A reduction with several results that is a plain loop (`IsNestableVariadicReduction`)."""
    if not instruction.is_tuple:
        return False
    if instruction.is_reduce:
        return not model.summary(instruction).is_reduction
    return instruction.fusion_kind == "kLoop" and instruction.fused_root.is_reduce


def is_physically_transposing(instruction: Instruction) -> bool:
    """It, or something inside, moves elements about in memory (`IsPhysicallyTransposing`)."""
    if instruction.is_fusion:
        return any(is_physically_transposing(inner) for inner in instruction.fused_computation)
    if instruction.is_transpose:
        return not transpose_is_bitcast(instruction)
    return instruction.opcode == "copy"


def outputs_of(instruction: Instruction) -> Instructions:
    """The results of a kernel, those inside a fusion (`GetOutputsOfFusible`)."""
    return instruction.fused_root.outputs if instruction.is_fusion else [instruction]


def fusible_computations(module: Module, release: Release) -> Computations:
    """The computations whose instructions become kernels, in text order (`GetFusibleComputations`)."""
    applied = set[Computation]()
    order = module.computations if module.computation_order is None else module.computation_post_order()
    for computation in order:
        for instruction in computation:
            if (
                instruction.called
                and instruction.opcode not in _CONTROL_FLOW
                and not _is_stream_call(instruction)
            ):
                applied.update(instruction.called_computations)
    found = [c for c in order if c not in applied and not is_fusion_body(c, release)]
    if module.processing_order and module.computation_order is None:
        place = {c: k for k, c in enumerate(module.processing_order)}
        found.sort(key=lambda c: place.get(c, -1))
    return found


def product_computations(module: Module, release: Release) -> Computations:
    if release.leaves_products_of_calls:
        return fusible_computations(module, release)
    return module.non_fusion_computations()


def _is_stream_call(instruction: Instruction) -> bool:
    """A call that only says on which stream to run (`IsStreamAnnotatedComputation`)."""
    attributes = instruction.raw("frontend_attributes") or ""
    return instruction.opcode == "call" and "_xla_stream_annotation" in attributes
