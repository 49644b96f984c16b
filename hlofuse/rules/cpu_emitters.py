"""Rules about who runs a kernel on CPU, asked in XLA's order. Codes EC0…. XLA decides this in
`ThunkEmitter::EmitHloInstruction` (`thunk_emitter.cc`) and `EmitFusionKernel` (`fusion_emitter.cc`)."""

from collections.abc import Callable

from hlofuse.analysis.convolution import why_not_eigen
from hlofuse.analysis.cpu_predicates import (
    EIGEN,
    NAIVE,
    VECTOR,
    dot_strategy,
    product_as_reduce,
    why_not_tiled,
)
from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.analysis.launches import COLLECTIVES_OF_CPU
from hlofuse.analysis.slice_copies import has_byte_strides
from hlofuse.cost.gpu.atoms import is_intermediate
from hlofuse.cost.gpu.kernel_graph import can_update_in_place
from hlofuse.ir.graph import Instruction, InstructionSequence
from hlofuse.ir.grouping import reach
from hlofuse.ir.opcodes import values
from hlofuse.releases import Release, Span
from .verdict import Answer, Decision, Verdict, runner


# Library calls: chosen before fusion (library fusions), or by what an operation is.
@runner("EC001", "A library fusion for YNNPACK", runs="YNNPACK")
def ynn(kernel: Instruction) -> Answer:
    return _library_fusion(kernel, "__ynn_fusion")


@runner("EC002", "A library call to oneDNN", runs="oneDNN")
def onednn(kernel: Instruction) -> Answer:
    target = custom_call_target(kernel)
    return {"calls": target} if target.startswith("__onednn$") else _library_fusion(kernel, "__onednn_fusion")


@runner("EC003", "A matmul in Eigen", runs="Eigen")
def eigen_dot(kernel: Instruction) -> Answer:
    return _dot(kernel, EIGEN)


@runner("EC004", "A matrix-vector product in XLA's own loop", runs="matrix-vector loop")
def vector_dot(kernel: Instruction) -> Answer:
    return _dot(kernel, VECTOR)


@runner("EC005", "A dot in plain loops", runs="plain loops")
def naive_dot(kernel: Instruction) -> Answer:
    return _dot(kernel, NAIVE)


@runner("EC006", "A convolution in Eigen", runs="Eigen")
def eigen_convolution(kernel: Instruction) -> Answer:
    if kernel.opcode != "convolution" or why_not_eigen(kernel) is not None:
        return None
    return {"convolves": " × ".join(o.shape.text_without_layout for o in kernel.operands[:2])}


@runner("EC007", "A custom call", runs="custom call")
def custom_call(kernel: Instruction) -> Answer:
    target = custom_call_target(kernel)
    return {"calls": target} if target else None


@runner("EC008", "A Fourier transform in DUCC", runs="DUCC FFT")
def fft(kernel: Instruction) -> Answer:
    if kernel.opcode != "fft":
        return None
    return {"length": (kernel.raw("fft_length") or "").strip("{}")}


def _library_fusion(kernel: Instruction, kind: str) -> Answer:
    if not kernel.is_fusion or f'"{kind}"' not in (kernel.raw("backend_config") or ""):
        return None
    heavy = next((i for i in kernel.fused_computation if i.opcode in ("dot", "convolution", "reduce")), None)
    if heavy is None:
        return {}
    return {"around": f"{heavy.opcode} of {heavy.operand.shape.text_without_layout}"}


def _dot(kernel: Instruction, wanted: str) -> Answer:
    if not kernel.is_dot:
        return None
    strategy, because = dot_strategy(kernel)
    return {"because": because} if strategy == wanted else None


# Fusions for which XLA:CPU writes the code.
@runner("EC020", "A matrix-vector product with an addition", runs="matrix-vector loop")
def output_fusion(kernel: Instruction) -> Answer:
    if kernel.fusion_kind != "kOutput":
        return None
    dot = next((i for i in kernel.fused_computation if i.is_dot), None)
    return {} if dot is None else {"product": dot.name, "because": dot_strategy(dot)[1]}


@runner("EC021", "The tiled emitter", runs="tiled emitter")
def tiled(kernel: Instruction) -> Answer:
    if kernel.fusion_kind != "kLoop" or why_not_tiled(kernel) is not None:
        return None
    return {"result": _result(kernel)}


@runner("EC022", "The scatter emitter", runs="scatter emitter")
def scatter(kernel: Instruction) -> Answer:
    is_scatter = kernel.is_fusion and kernel.fused_root.opcode == "scatter"
    return {"hero": kernel.fused_root.name} if is_scatter else None


@runner("EC023", "The concatenate emitter", runs="concatenate emitter")
def concatenate(kernel: Instruction) -> Answer:
    hero = _concatenate_hero(kernel) if kernel.fusion_kind == "kLoop" else None
    if hero is None:
        return None
    return {"hero": hero.name, "joins": f"{hero.operand_count} along dimension {hero.dimension}"}


@runner("EC024", "In-place update", runs="in-place update")
def in_place_update(kernel: Instruction) -> Answer:
    if kernel.fusion_kind != "kLoop":
        return None
    outputs = kernel.fused_root.outputs
    updates = [o.operand if o.is_bitcast else o for o in outputs]
    if any(u.opcode != "dynamic-update-slice" for u in updates) or not can_update_in_place([kernel]):
        return None
    update = updates[0]
    sizes = update.second.shape.text_without_layout
    return {"update": sizes, "of": update.shape.text_without_layout}


@runner("EC025", "The loop emitter", runs="loop emitter")
def loop(kernel: Instruction) -> Answer:
    if not kernel.is_fusion:
        return None
    found = {"result": _result(kernel)}
    because = why_not_tiled(kernel) if kernel.fusion_kind == "kLoop" else None
    return found | {"not tiled because": because} if because else found


@runner("EC060", "A matrix-vector product becomes multiply and reduce", runs="multiply and reduce")
def strength_reduced(kernel: Instruction) -> Answer:
    return product_as_reduce(kernel)


def _result(kernel: Instruction) -> str:
    root = kernel.fused_root
    more = f" and {root.operand_count - 1} more" if root.opcode == "tuple" else ""
    first = root.outputs[0]
    return f"{first.name} {first.shape.text_without_layout}{more}"


def _concatenate_hero(kernel: Instruction) -> Instruction | None:
    """`FindNonTrivialHero` of XLA:CPU: up the chain of one-operand operations, then a bit further."""
    start = kernel.fused_root
    if start.opcode == "tuple":
        return None
    while _is_intermediate(start, 1) and not start.operand.is_parameter:
        start = start.operand

    def above(x: Instruction) -> InstructionSequence:
        return x.operands if not x.is_concatenate and _is_intermediate(x, 3) else ()

    found = [x for x in reach([start], above) if x.is_concatenate]
    if len(found) != 1:
        return None
    users = reach(found[0].users, lambda user: user.users)
    return found[0] if all(u.opcode == "tuple" or _is_intermediate(u, 3) for u in users) else None


def _is_intermediate(instruction: Instruction, most_operands: int) -> bool:
    count = instruction.operand_count
    return 0 < count <= most_operands and is_intermediate(instruction, is_elementwise(instruction))


# Instructions that stay outside fusions on CPU.

_RANDOM = values("rng rng-bit-generator rng-get-and-update-state")


@runner("EC030", "A sort in the C++ standard library", runs="sort")
def sort(kernel: Instruction) -> Answer:
    return {"operands": kernel.operand_count} if kernel.opcode == "sort" else None


@runner("EC031", "A copy is a memcpy", runs="memcpy")
def copy(kernel: Instruction) -> Answer:
    is_copy = kernel.opcode == "copy" and has_byte_strides(kernel.shape)
    return {"bytes": kernel.byte_size} if is_copy else None


@runner("EC032", "A concatenate as one memcpy per part", runs="memcpy kernel")
def concatenate_alone(kernel: Instruction) -> Answer:
    if not kernel.is_concatenate:
        return None
    return {"joins": f"{kernel.operand_count} along dimension {kernel.dimension}"}


@runner("EC033", "Processes talk to each other", runs="collective")
def collective(kernel: Instruction) -> Answer:
    return {"opcode": kernel.opcode} if kernel.opcode in COLLECTIVES_OF_CPU else None


@runner("EC034", "Random numbers", runs="random state kernel")
def random(kernel: Instruction) -> Answer:
    return {"opcode": kernel.opcode} if kernel.opcode in _RANDOM else None


@runner("EC035", "A kernel for one operation", runs="elemental emitter")
def elemental(kernel: Instruction) -> Answer:
    return {"opcode": kernel.opcode}


RULES = (
    ynn,
    onednn,
    eigen_dot,
    vector_dot,
    naive_dot,
    eigen_convolution,
    custom_call,
    fft,
    output_fusion,
    tiled,
    scatter,
    concatenate,
    in_place_update,
    loop,
    sort,
    copy,
    concatenate_alone,
    collective,
    random,
    elemental,
)  # Asked of an instruction; the last speaks about everything
NOTES = (strength_reduced,)


def _loop_alone(kernel: Instruction) -> Decision:
    return Verdict(loop.rule, {"result": _result(kernel)}) if kernel.is_fusion else None  # type: ignore[attr-defined]


def rules_of(release: Release) -> tuple[Callable[[Instruction], Decision], ...]:
    """The rules of a release: the tiled emitter came with 0.9."""
    if Span("0.9").includes(release.name):
        return RULES
    return tuple(_loop_alone if rule is loop else rule for rule in RULES if rule is not tiled)
