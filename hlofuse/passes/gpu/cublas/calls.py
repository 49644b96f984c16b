"""Passes that make products calls of cuBLAS (`GemmRewriterVisitor`): their configuration
(`GemmBackendConfig`), and what they do with a product: a factor, a sum, an activation."""

import math
from collections.abc import Iterator, Sequence
from functools import partial

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.cost.gpu.backend_config import gpu_config, gpu_config_text, printed_number
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir import Computation, Instruction, Json, Module, replace, set_attribute
from hlofuse.ir.attributes.window import PaddingConfig, PaddingDimension
from hlofuse.ir.opcodes import values
from hlofuse.ir.shape import FLOATING_TYPES, Shape
from hlofuse.passes.algebraic.context import broadcast_constant, scalar_constant
from hlofuse.passes.base import (
    NotRepresentable,
    Pass,
    ReleasePass,
    VisitPass,
    any_change,
    attempt,
    find_each,
    replaced,
    visit,
)
from hlofuse.passes.common import make
from hlofuse.passes.common.dots import DotDimensions, new_dot
from hlofuse.passes.common.evaluation import CannotEvaluate, evaluate
from hlofuse.passes.common.literals import scalar_of, text_of, values_of
from hlofuse.passes.common.make import added, bitcast, copy_of, derived, reshaped, transposed, zero
from hlofuse.passes.common.shapes import array, permute, permuted, with_dimensions, without
from hlofuse.passes.dot.dot_operands import BATCH, CONTRACTING, DotOperand
from hlofuse.passes.gpu.gemm.propagation import can_handle_gemm
from hlofuse.passes.gpu.layout_assignment import is_for_cublas, is_tiny
from hlofuse.rules.gpu_fusible import product_computations
from hlofuse.trace import Recorder

CUBLAS, CUBLAS_LT = "__cublas$gemm", "__cublas$lt$matmul"
_UNSET = "ALG_UNSET"


def is_call(x: Instruction) -> bool:
    return custom_call_target(x) in (CUBLAS, CUBLAS_LT)


def is_lt(x: Instruction) -> bool:
    """A call of cuBLASLt, which adds a vector, applies an activation, and need not overwrite a summand."""
    return custom_call_target(x) == CUBLAS_LT


config_of = partial(gpu_config, field="gemm_backend_config")
"""A copy of the call's configuration for the product."""


def called_instead(dot: Instruction, target: str) -> Instruction:
    """A call that replaces `dot`, in its computation."""
    call = derived(dot, "custom-call", dot.shape, dot.operands, custom_call_target=f'"{target}"')
    configure(call, _config(dot))
    return call


def call_like(call: Instruction, operands: Sequence[Instruction], config: Json, shape: Shape) -> Instruction:
    """`call` with other operands and another configuration, in its computation."""
    attributes = call.attributes.without("control-predecessors")
    has_batch = bool(config["dot_dimension_numbers"]["lhs_batch_dimensions"])
    name = "cublas-lt-matmul" if is_lt(call) else "cublas-batch-gemm" if has_batch else "cublas-gemm"
    new = Instruction(name, shape, "custom-call", operands, attributes, called=call.called)
    configure(new, config)
    return call.parent.add_instruction(new)


def configure(call: Instruction, config: Json) -> None:
    set_attribute(call, "backend_config", gpu_config_text("gemm_backend_config", config))


def _config(dot: Instruction) -> Json:
    dims = DotDimensions.of(dot)
    if dot.raw("algorithm") is not None:
        raise NotRepresentable("a product by a given algorithm")
    frontend = dot.frontend_attributes
    precision = dot.raw("operand_precision")
    precisions = precision.strip("{}").upper().split(",") if precision else ["DEFAULT", "DEFAULT"]
    names = "lhs_contracting", "rhs_contracting", "lhs_batch", "rhs_batch"
    strides = [math.prod(o.sizes[len(dims.lhs_batch) : len(dims.lhs_batch) + 2]) for o in dot.operands]
    return {
        "alpha_real": 1,
        "beta": 0,
        "dot_dimension_numbers": {f"{n}_dimensions": [str(d) for d in getattr(dims, n)] for n in names},
        "alpha_imag": 0,
        "precision_config": {"operand_precision": precisions, "algorithm": _UNSET},
        "epilogue": "DEFAULT",
        "lhs_stride": str(strides[0]),
        "rhs_stride": str(strides[1]),
        "grad_x": frontend.get("grad_x") == "true",
        "grad_y": frontend.get("grad_y") == "true",
        "damax_output": False,
        "autotune_workspace_size": "0",
        "scale_mode": 0,
    }


_EPSILON = {
    "f16": 2.0**-10,
    "bf16": 2.0**-7,
    "f32": 2.0**-23,
    "f64": 2.0**-52,
}
_PAIRS = frozenset(
    {
        ("f16", "f16"),
        ("f16", "f32"),
        ("bf16", "bf16"),
        ("bf16", "f32"),
        ("f32", "f32"),
    }
)
"""Types of operands and of the sum that cuBLAS takes, where the sum is of another type than the product."""
_MOST_BYTES = 8 << 20  # the limit of a constant broadcast for a sum (`kMaxMaterializeBiasBytes`)


def with_factor(multiply: Instruction) -> bool:
    for call, other in _either(multiply):
        factor = broadcast_constant(other)
        if not (is_call(call) and _one(call) and factor is not None and _one(other)):
            continue
        config = config_of(call)
        value = values_of(factor)
        if not value or call.element_type == "s32" or config["beta"] or config["epilogue"] != "DEFAULT":
            return False
        alpha = complex(value[0]) * complex(config["alpha_real"], config["alpha_imag"])
        config["alpha_real"], config["alpha_imag"] = map(printed_number, (alpha.real, alpha.imag))
        configure(call, config)
        return replaced(multiply, call)
    return False


def with_activation(x: Instruction) -> bool:
    """`FuseReluActivation`, `FuseGeluActivation`."""
    for source, other in _either(x):
        call = source.past("bitcast", "slice")
        if not is_lt(call):
            continue
        if x.opcode == "maximum":
            least = broadcast_constant(other)
            alone = _one(call) and _one(source)
            found = alone and least is not None and scalar_of(least) == 0
            kind = "RELU"
        else:
            found = _one(other) and _is_gelu_factor(other, source)
            kind = "GELU"
            is_read = source.user_count > 4 or (source is not call and not _one(call))
            if found and is_read:
                kind = "GELU_AUX"
        if not found:
            continue
        config = config_of(call)
        if config["epilogue"] not in ("DEFAULT", "BIAS") or call.element_type not in FLOATING_TYPES:
            return False
        config["epilogue"] = kind if config["epilogue"] == "DEFAULT" else f"BIAS_{kind}"
        if kind == "GELU_AUX":
            if source.is_slice:
                raise NotRepresentable("a padded product that is read before and after its activation")
            return _with_input(x, source, call, config)
        new = call_like(call, call.operands, config, call.shape)
        return replaced(x, _clone(source, call, new))
    return False


def _with_input(multiply: Instruction, source: Instruction, call: Instruction, config: Json) -> bool:
    """A GELU that leaves its input, too: what else reads that reads the second result."""
    both = call_like(call, call.operands, config, Shape.tuple_of([call.shape, call.shape]))
    gelu, dot = (derived(call, "get-tuple-element", call.shape, [both], index=k) for k in (0, 1))
    if source is not call:
        gelu = _clone(source, call, gelu)
        if source.user_count > 4:
            replaced(source, _clone(source, call, dot))
    if call.computation is not None and (call.users or call.is_root):
        replaced(call, dot)
    return replaced(multiply, gelu)


def with_sum(add: Instruction) -> bool:
    """`HandleAdd`."""
    for source, other in _either(add):
        call = _operand_if_only_used_here(_operand_if_only_used_here(source, "bitcast"), "slice")
        if not (is_lt(call) and _one(call) and _one(source)):
            continue
        if other.is_broadcast:
            if _with_vector(add, source, call, other):
                return True
            break
    for source, other in _either(add):
        if not (source.is_bitcast and is_call(source.operand)):
            continue
        call = source.operand
        if not (_one(call) and _one(source)) or (other.is_broadcast and not _one(other)):
            continue
        summand = bitcast(other, call.shape)
        inner = derived(call, "add", call.shape, [call, summand])
        if not other.is_broadcast and (metadata := other.raw("metadata")) is not None:
            set_attribute(inner, "metadata", metadata)
        replaced(add, bitcast(inner, add.shape))
        _with_matrix(inner)
        return True
    return _with_matrix(add) or _with_padded_matrix(add)


def _with_vector(
    add: Instruction,
    source: Instruction,
    call: Instruction,
    broadcast: Instruction,
) -> bool:
    """`FuseVectorBiasAdd`: a summand for each column."""
    config = config_of(call)
    numbers = config["dot_dimension_numbers"]
    columns = call.second.rank - len(numbers["rhs_batch_dimensions"]) - 1
    bias = broadcast.operand
    fits = columns <= 1 and bias.rank == columns and call.element_type in FLOATING_TYPES
    if config["epilogue"] != "DEFAULT" or not fits:
        return False
    if columns:
        minor = source.minor_to_major[0]
        if tuple(broadcast.dimensions) != (minor,) or bias.sizes != (source.sizes[minor],):
            return False
    config["epilogue"] = "BIAS"
    new = call_like(call, [*call.operands, bias], config, call.shape)
    return replaced(add, _clone(source, call, new))


def _with_matrix(add: Instruction) -> bool:
    """`FuseMatrixBiasAdd`: a summand for each element."""
    for source, bias in _either(add):
        call = source.past("convert")
        if not (is_call(call) and _one(call) and _one(source)) or bias.is_broadcast:
            continue
        if source is not call and not _converts(call, add):
            return False
        if not _may_add_matrix(call, bias):
            return False
        return replaced(add, _with_summand(call, bias, _materialize(bias)))
    return False


def _with_padded_matrix(add: Instruction) -> bool:
    """The same of a product that is padded, of which the sum reads a part from the beginning."""
    for source, bias in _either(add):
        part = source.past("bitcast")
        if not _one(source) or not part.is_slice or bias.is_broadcast:
            continue
        call = part.operand
        if not (is_call(call) and _one(call)):
            continue
        if any(r.start or r.stride != 1 for r in part.attributes["slice"]) or not _may_add_matrix(call, bias):
            return False
        summand = _materialize(bias)
        if source is not part:
            summand = derived(add, "bitcast", part.shape, [summand])
        new = _with_summand(call, bias, _pad(summand, call.shape))
        return replaced(add, _clone(source, call, new))
    return False


def _may_add_matrix(call: Instruction, bias: Instruction) -> bool:
    config = config_of(call)
    free = not config["beta"] and config["epilogue"] in ("DEFAULT", "BIAS")
    return free and call.element_type != "s32" and (is_lt(call) or _may_overwrite(bias))


def _with_summand(call: Instruction, bias: Instruction, summand: Instruction) -> Instruction:
    """`call` with the `summand`, which is made of `bias`, in the type of that."""
    config = {**config_of(call), "beta": 1}
    shape = call.shape
    if bias.element_type != shape.element_type:
        shape = Shape(bias.element_type, shape.dimensions, shape.layout)
    overwrites = _may_overwrite(bias)
    new = call_like(call, [*call.operands[:2], summand, *call.operands[2:]], config, shape)
    if overwrites:
        set_attribute(new, "output_to_operand_aliasing", "{{}: (2, {})}")
    return new


def _pad(x: Instruction, shape: Shape) -> Instruction:
    """`x` padded with zeros at the end of each dimension (`PadOperandToTargetShape`)."""
    if x.shape == shape or x.element_type != shape.element_type:
        return x
    missing = [wanted - size for wanted, size in zip(shape.dimensions, x.sizes, strict=True)]
    edges = "x".join(f"0_{n}" for n in missing)
    return derived(x, "pad", shape, [x, zero(x, x.element_type)], padding=edges)


def _converts(call: Instruction, add: Instruction) -> bool:
    if (call.operand.element_type, add.element_type) not in _PAIRS:
        return False
    users = list(add.users)
    return not users or (len(users) == 1 and users[0].opcode == "tuple" and not users[0].users)


def _materialize(bias: Instruction) -> Instruction:
    """`MaybeConstantFoldBias`: what spreads a constant becomes one, as large as the product."""
    inner = bias.past("reshape", "transpose", "bitcast")
    constant = inner.operand if inner.is_broadcast else None
    if constant is None or not constant.is_constant or constant.shape.is_effective_scalar:
        return bias
    if bias.byte_size > _MOST_BYTES:
        return bias
    try:
        text = text_of(bias.shape, evaluate(bias)[0])
    except CannotEvaluate:
        text = None  # XLA knows the elements, as no dump shows them
    return added(bias, "constant", bias.shape, [], payload=text or "{...}")


def _may_overwrite(bias: Instruction) -> bool:
    if bias.user_count > 1:
        return False
    if not bias.is_parameter:
        return True
    module = bias.parent.parent
    aliased = module.attributes.raw("input_output_alias") or ""
    return bias.parent is module.entry and f"({bias.parameter_number}, {{}}," in aliased


def _is_gelu_factor(x: Instruction, source: Instruction) -> bool:
    """0.5 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))."""
    sum_ = _times(x, 0.5, exact=True)
    for one, tanh in _either(sum_, "add"):
        if not _is_number(one, 1.0, exact=True) or tanh.opcode != "tanh" or not (_one(sum_) and _one(tanh)):
            continue
        cubic = _times(tanh.operand, math.sqrt(2 / math.pi))
        if not _one(tanh.operand) or cubic is None or not _one(cubic):
            continue
        for plain, rest in _either(cubic, "add"):
            cube = _times(rest, 0.044715) if plain is source and _one(rest) else None
            for inner, square in _either(cube, "multiply"):
                if inner is source and _one(cube) and _one(square) and square.opcode == "multiply":
                    return all(o is source for o in square.operands)
    return False


def _times(x: Instruction, number: float, *, exact: bool = False) -> Instruction | None:
    """The other factor of a product with that number; None for other operations."""
    for constant, other in _either(x, "multiply"):
        if _is_number(constant, number, exact=exact):
            return other
    return None


def _is_number(x: Instruction, number: float, *, exact: bool) -> bool:
    constant = broadcast_constant(x)
    value = scalar_of(constant) if constant is not None and scalar_constant(constant) else None
    if value is None or isinstance(value, complex):
        return False
    if exact:
        return value == number
    epsilon = 128 * _EPSILON.get(x.element_type, 0)
    return abs(value - number) < abs(value + number) * epsilon


def _either(x: Instruction | None, opcode: str | None = None) -> Iterator[tuple[Instruction, Instruction]]:
    if x is not None and (opcode is None or x.opcode == opcode):
        a, b = x.operands
        yield a, b
        yield b, a


def _one(x: Instruction | None) -> bool:
    return x is not None and x.user_count == 1


def _operand_if_only_used_here(x: Instruction, opcode: str) -> Instruction:
    """The only operand of an operation with a single use; else `x` itself."""
    return x.operand if x.opcode == opcode and _one(x) else x


def _clone(source: Instruction, call: Instruction, new: Instruction) -> Instruction:
    if source is call:
        return new
    return copy_of(source, [_clone(source.operand, call, new)])


def with_one_batch(dot: Instruction) -> Instruction:
    """The value of `dot` as a reshaped product with one batch dimension (`NormalizeBatchDimensions`)."""
    operands, sides = [], []
    for number, operand in enumerate(dot.operands):
        side, laid = DotOperand.of(dot, number), operand.shape
        first, second = side.groups[BATCH]
        if second != first + 1:
            order = [d for d in range(len(side.sizes)) if d != second]
            order.insert(first if second < first else first + 1, second)
            shape = with_dimensions(operand.shape, permute(operand.sizes, order))
            operand, laid = transposed(operand, order, shape), permuted(laid, order)
            side = side.permuted(order)
        # The transpose is row-major; the reshape lies as the operand did.
        laid = without(laid, [side.groups[BATCH][1]])
        side = side.collapsed(BATCH)
        operands.append(reshaped(operand, replace(laid, dimensions=side.sizes)))
        sides.append(side)
    batch, contracting = ([side.groups[kind] for side in sides] for kind in (BATCH, CONTRACTING))
    return reshaped(new_dot(dot, operands, batch, contracting), dot.shape)


_TYPES = values("f16 bf16 f32 f64 c64 c128")
_SMALL_IN_KERNELS = values("f16 bf16 f32")
_WORKSPACE, _WORKSPACE_HOPPER = 4 * 1024 * 1024, 32 * 1024 * 1024
_HANDLED = values("dot multiply add maximum")


class CublasGemmRewriter(ReleasePass):
    """`cublas-gemm-rewriter`, of products of one element type, and of bytes to integers
    (`xla/backends/gpu/transforms/gemm_rewriter.cc`). It leaves other products for cuBLAS alone."""

    name = "cublas-gemm-rewriter"
    device: DeviceDescription

    def run(self, module: Module, recorder: Recorder) -> bool:
        target = CUBLAS_LT if self.release.products_in_cublaslt else CUBLAS
        handle = attempt(partial(_handle, target=target), recorder)
        computations = product_computations(module, self.release)
        return any_change(visit(c, handle, _HANDLED) | self._add_workspaces(c) for c in computations)

    def _add_workspaces(self, computation: Computation) -> bool:
        """`GemmWorkspaceRewriteVisitor`."""
        size = _WORKSPACE_HOPPER if self.device.compute_capability[0] >= 9 else _WORKSPACE

        def handle(call: Instruction) -> bool:
            return is_call(call) and _lacks_workspace(call) and _with_workspace(call, size)

        return visit(computation, handle, values("custom-call"))


class CublasGemmRewriterF8(VisitPass):
    """`cublas-gemm-rewriter` for floats of 8 bits, first: in all others it joins two batch dimensions."""

    name = "cublas-gemm-rewriter"
    opcodes = ("dot",)

    def handle(self, dot: Instruction) -> bool:
        has_two_batches = len(DotDimensions.of(dot).lhs_batch) == 2
        return has_two_batches and is_for_cublas(dot) and replaced(dot, with_one_batch(dot))


def _handle(x: Instruction, target: str) -> bool:
    if x.is_dot:
        return _handle_dot(x, target)
    if x.opcode == "add":
        return with_sum(x)
    return with_activation(x) if x.opcode == "maximum" else with_factor(x) or with_activation(x)


def _handle_dot(dot: Instruction, target: str) -> bool:
    """`HandleDot`."""
    if not is_for_cublas(dot):
        return False
    of = dot.element_type
    types = {x.element_type for x in (dot, *dot.operands)}
    if of != "s32" and not (types <= _TYPES and len(types) == 1):
        raise NotRepresentable("a product of other element types")
    return not (is_tiny(dot) and of in _SMALL_IN_KERNELS) and replaced(dot, called_instead(dot, target))


def _lacks_workspace(call: Instruction) -> bool:
    results = 2 if config_of(call)["epilogue"].endswith("_AUX") else 1
    return call.is_array or call.tuple_size == results


def _with_workspace(call: Instruction, size: int) -> bool:
    results = [call.shape] if call.is_array else call.shape.tuple_shapes
    if not is_lt(call):  # as if it copied what it reads
        size = min(size, sum(o.byte_size for o in call.operands))
    shape = Shape.tuple_of([*results, array("s8", [size])])
    given = call.attributes.given("custom_call_target", "metadata", "frontend_attributes", "backend_config")
    new = added(call, "custom-call", shape, call.operands, name=call.name, raw_attributes=given)
    if (aliasing := call.raw("output_to_operand_aliasing")) is not None:
        set_attribute(new, "output_to_operand_aliasing", aliasing.replace("{{}:", "{{0}:"))
    if call.is_array:
        return replaced(call, make.get_tuple_element(call, new, 0))
    for user in list(call.users):
        replaced(user, make.get_tuple_element(call, new, user.tuple_index))
    return True


class GemmBroadcastFoldingRewriter(VisitPass):
    """`cublas-gemm-broadcast-folding-rewriter`: cuBLAS reads a matrix again for each of a batch
    (`xla/backends/gpu/transforms/gemm_broadcast_folding_rewriter.cc`)."""

    name = "cublas-gemm-broadcast-folding-rewriter"
    opcodes = ("custom-call",)

    def handle(self, x: Instruction) -> bool:
        return is_call(x) and _fold(x)


def _fold(call: Instruction) -> bool:
    for number, side in ((0, "lhs"), (1, "rhs")):
        broadcast = call.operands[number]
        if not broadcast.is_broadcast:
            continue
        config = config_of(call)
        numbers = config["dot_dimension_numbers"]
        new = broadcast.rank - broadcast.operand.rank
        batch = {int(d) for d in numbers[f"{side}_batch_dimensions"]}
        if new != len(numbers["lhs_batch_dimensions"]) or any(
            d < new or d in batch for d in broadcast.dimensions
        ):
            return False
        contracting = f"{side}_contracting_dimensions"
        numbers[contracting] = [str(int(numbers[contracting][0]) - new)]
        numbers[f"{side}_batch_dimensions"] = []
        call.replace_operand(number, broadcast.operand)
        configure(call, config)
        return True
    return False


_MULTIPLES = (("s8", 7, 4), ("f16", 7, 8), ("bf16", 8, 8))
"""Element types, since which compute capability, and to a multiple of what (`CublasPaddingRequirements`)."""


class CublasPadForGemms(Pass):
    """`cublas-pad-for-gemms`, once for each element type that the device has tensor cores for: matrix
    products padded to the sizes that tensor cores take (`cublas_pad_for_gemms.cc`)."""

    name = "cublas-pad-for-gemms"
    element_type: str
    multiple: int
    triton_of: DeviceDescription | None = None  # Whose products of Triton keep their sizes

    def run(self, module: Module, recorder: Recorder) -> bool:
        return any_change(map(self._pad, find_each(module, lambda x: x.is_dot)))

    def _pad(self, dot: Instruction) -> bool:
        """`PadForGemm`: the result is cut back."""
        lhs, rhs = dot.operands
        if lhs.element_type != self.element_type or not _is_padded(dot):
            return False
        if self.triton_of is not None and can_handle_gemm(dot, self.triton_of):
            return False
        old = (lhs.shape, rhs.shape)
        new = (self._pad_shape(lhs.shape), self._pad_shape(rhs.shape))
        if new == old or rhs.element_type != self.element_type:
            return False
        zero = make.scalar(dot, self.element_type, 0)
        pads = [
            make.pad(dot, shape, operand, zero, _missing(operand.shape, shape))
            for operand, shape in zip(dot.operands, new, strict=True)
        ]
        product = make.copy_of(dot, pads, self._pad_shape(dot.shape))
        return replaced(dot, make.slice_of(dot, product, [0] * dot.rank, dot.sizes))

    def _pad_shape(self, shape: Shape) -> Shape:
        *batch, rows, columns = shape.dimensions
        padded = (-(-n // self.multiple) * self.multiple for n in (rows, columns))
        return replace(shape, dimensions=(*batch, *padded))


def paddings(device: DeviceDescription, with_triton: bool = False) -> tuple[CublasPadForGemms, ...]:
    """The passes that a device asks for (`AddGemmPadding`)."""
    major = device.compute_capability[0]
    triton_of = device if with_triton else None
    return tuple(CublasPadForGemms(of, n, triton_of) for of, since, n in _MULTIPLES if major >= since)


def _is_padded(dot: Instruction) -> bool:
    """A product of matrices for cuBLAS, batch dimensions first (`GetRelevantDots`)."""
    dims = DotDimensions.of(dot)
    batch = tuple(range(len(dims.lhs_batch)))
    rank = len(batch) + 2
    if any(dims.batch(n) != batch or o.rank != rank for n, o in enumerate(dot.operands)):
        return False
    return is_for_cublas(dot, of_vectors=False)


def _missing(old: Shape, new: Shape) -> PaddingConfig:
    return PaddingConfig(
        PaddingDimension(0, n - o) for o, n in zip(old.dimensions, new.dimensions, strict=True)
    )
