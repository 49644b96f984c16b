"""Predicates of CpuInstructionFusion on single instructions (`xla/service/cpu/cpu_instruction_fusion.cc`)."""

from typing import Any

from hlofuse.ir.graph import Instruction
from hlofuse.ir.opcodes import values, with_trait
from hlofuse.ir.shape import COMPLEX_TYPES, Dims
from hlofuse.releases import AROUND_FUSION, Release
from .elementwise import is_elementwise, is_expensive, is_expensive_division
from .kernels import inside

_LOOP_FUSIBLE = with_trait("cpu-loop-fusible")


def is_loop_fusible(instruction: Instruction) -> bool:
    """Has a generator of its elements that others can be inlined into (`CanBeLoopFused`)."""
    return instruction.opcode in _LOOP_FUSIBLE or is_elementwise(instruction)


def is_expensive_on_cpu(instruction: Instruction, release: Release) -> bool:
    """The shared list, in later releases with CPU's changes (`CpuInstructionFusion::IsExpensive`)."""
    if not release.cpu_own_expensive:
        return is_expensive(instruction)
    opcode = instruction.opcode
    if opcode == "convert":
        # Rounding to bf16 has to look out for NaN.
        return instruction.element_type == "bf16" and instruction.operand.element_type == "f32"
    if opcode in ("divide", "remainder"):
        # The dividend is looked at here, the divisor in the shared list: XLA's code is so.
        return is_expensive_division(instruction, constant_operand=0)
    return opcode == "sinh" or is_expensive(instruction)


def is_vector_dot(instruction: Instruction) -> bool:
    """A real dot without batch dimensions whose result is a vector or a scalar."""
    return (
        instruction.is_dot
        and instruction.rank <= 1
        and instruction.element_type not in COMPLEX_TYPES
        and not instruction.attributes.get("lhs_batch_dims", ())
    )


def is_output_fusible(producer: Instruction, consumer: Instruction) -> bool:
    """The add can be done as the dot's results are written (`CanBeOutputFused`)."""
    if consumer.opcode != "add" or not is_vector_dot(producer) or producer.user_count != 1:
        return False
    return sum(o is producer for o in producer.user.operands) == 1


def is_softmax_shift(instruction: Instruction) -> bool:
    """Feeds both a row maximum and the shift of an exponential (`IsCoupledReductionShiftExpProducer`). The
    maximum and the shifted value must see bit for bit the same number, or exp() overflows."""
    if instruction.is_fusion or not is_elementwise(instruction):
        return False
    reduces = [u for u in instruction.users if u.is_reduce and u.operand is instruction]
    reduce = next((r for r in reduces if r.to_apply.root.opcode == "maximum"), None)
    return reduce is not None and any(_is_shift(u, instruction, reduce) for u in instruction.users)


def _is_shift(user: Instruction, value: Instruction, reduce: Instruction) -> bool:
    if user.opcode != "subtract":
        return False
    sources = [o.operand for o in user.operands if o.is_broadcast]
    shifted = value in user.operands or value in sources
    return shifted and reduce in sources and any(u.opcode == "exponential" for u in user.users)


EIGEN, VECTOR, NAIVE = "Eigen", "matrix-vector loop", "plain loops"
_EIGEN_TYPES = values("f16 f32 f64 c64 c128 s32")
_SIDE_ELEMENTS = 3


def dot_strategy(dot: Instruction) -> tuple[str, str]:
    """One of EIGEN, VECTOR, NAIVE, and what decided (`GetDotImplementationStrategy`,
    `xla/service/cpu/dot_op_emitter.cc`).

    A batched product is judged by one of its matrices. Eigen runs on several threads unless
    `--xla_cpu_multi_thread_eigen=false`, which gives small products to loops of XLA's own."""
    batch = len(dot.attributes.get("lhs_batch_dims", ()))
    left, right = (o.sizes[batch:] for o in dot.operands[:2])
    result = dot.sizes[batch:]
    is_number = not dot.element_type.startswith("c") and dot.element_type != "pred"
    if is_number and (len(result) <= 1 or (len(result) == 2 and 1 in result)):
        return VECTOR, f"one matmul result is {_sizes(result)}"
    if is_number and _is_small(left) and _is_small(right):
        return NAIVE, f"{_sizes(left)} and {_sizes(right)} each have a side of at most {_SIDE_ELEMENTS}"
    matrices = len(left) == len(right) == len(result) == 2
    has_elements = all(o.element_count for o in dot.operands[:2])
    if matrices and dot.element_type in _EIGEN_TYPES and has_elements:
        return EIGEN, f"{_sizes(left)} times {_sizes(right)}, {dot.element_type}"
    if not matrices:
        return NAIVE, f"{_sizes(left)} times {_sizes(right)} is not a matrix product"
    return NAIVE, f"Eigen has no matmul for {dot.element_type}"


def _is_small(sizes: Dims) -> bool:
    return len(sizes) <= 1 or (len(sizes) == 2 and min(sizes) <= _SIDE_ELEMENTS)


def _sizes(sizes: Dims) -> str:
    return "×".join(map(str, sizes)) or "a scalar"


_PRODUCTS = ("dot_general", "dot")


def product_as_reduce(kernel: Instruction) -> dict[str, Any] | None:
    computed = list(inside(kernel))
    if any(i.is_dot for i in computed):
        return None
    born = [i for i in computed if (i.op_name or "").rpartition("/")[2] in _PRODUCTS]
    created = next((i for i in born if i.is_reduce), None)
    if created is None or not any(i.opcode == "multiply" for i in born):
        return None
    return {"product": created.name}


# What XLA:CPU's tiled emitter refuses (`xla/backends/cpu/codegen/tiled/tiled_fusion_emitter.cc`).


_FREE = values("iota reshape transpose parameter")
_REFUSED = with_trait("cpu-not-tiled")
_COMPLEX = values("add complex imag real subtract multiply divide power abs negate select compare")
_MOST_DIMENSIONS = 8


def is_tiling_type(element_type: str, bit_width: int, release: Release) -> bool:
    """`IsSupportedTilingType`: no 8-bit float, and in some releases no narrow, unsigned or complex type."""
    if element_type.startswith(("u", "c")) and not release.tiles_unsigned_and_complex:
        return False
    return (bit_width >= 8 or release.tiles_narrow_types) and not element_type.startswith("f8")


def why_not_tiled(fusion: Instruction) -> str | None:
    """The reason why the tiled emitter rejects a fusion, or None (`IsSupportedTiledFusion`)."""
    if not fusion.is_array:
        return "it has several outputs"
    if any(not o.is_array for o in fusion.operands):
        return "an input is not an array"
    for inner in fusion.fused_computation:
        shape = inner.shape
        if not is_tiling_type(shape.element_type, shape.bit_width, AROUND_FUSION):
            return f"{inner.name} is {shape.element_type}"
        if not _is_supported(inner):
            return f"it does not support {inner.opcode}"
        if any(s.rank > _MOST_DIMENSIONS for s in (shape, *(o.shape for o in inner.operands))):
            return f"{inner.name} has more than {_MOST_DIMENSIONS} dimensions"
    return None


def _is_supported(instruction: Instruction) -> bool:
    """`IsSupportedInstruction`."""
    opcode = instruction.opcode
    if opcode == "convert":
        return (instruction.operand.element_type, instruction.element_type) != ("pred", "u8")
    if opcode == "bitcast":
        source, result = instruction.operand.shape, instruction.shape
        if source.element_count != result.element_count:
            return False
        return source.element_type == result.element_type or "pred" not in (
            source.element_type,
            result.element_type,
        )
    if opcode in _FREE:
        return True
    if opcode == "constant":
        return instruction.shape.is_effective_scalar
    if opcode in _REFUSED or not is_elementwise(instruction):
        return False
    types = (instruction.element_type, *(o.element_type for o in instruction.operands))
    return opcode in _COMPLEX or not any(t.startswith("c") for t in types)


# What XLA:CPU's fusion emitters can express (`emitters::IsSupportedElementalOp`).

UNSUPPORTED_OPCODES = with_trait("not-elemental")
