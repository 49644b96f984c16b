"""Arithmetic of single operations (`HloCostAnalysis`, `xla/service/hlo_cost_analysis.cc`). A fused
multiply-add counts as two. Transcendental operations are counted apart from flops."""

import math
from collections.abc import Collection

from hlofuse.ir.attributes.window import WindowDimension
from hlofuse.ir.graph import Instruction
from hlofuse.ir.opcodes import with_trait
from hlofuse.ir.shape import Dims, Shape
from .convolution import dimension_numbers, window_dimensions, window_size
from .custom_calls import custom_call_target
from .elementwise import ELEMENTWISE_OPCODES

FMA_FLOPS = 2
TRANSCENDENTAL: frozenset[str] = with_trait("transcendental")

# One operation for each element of the result. Copy and bitcast-like operations do none.
ELEMENTWISE: frozenset[str] = ELEMENTWISE_OPCODES - TRANSCENDENTAL - {"copy"}

# Beyond this many steps positions are estimated: only a damaged dump has such a window.
_LOOP_LIMIT = 1_000_000


def elements(shape: Shape) -> int:
    """Elements of an array; 0 for other shapes and unbounded ones (`ShapeUtil::ElementsIn`)."""
    return max(shape.element_count, 0) if shape.is_array else 0


def first_leaf(shape: Shape) -> Shape:
    while shape.is_tuple and shape.tuple_shapes:
        shape = shape.tuple_shapes[0]
    return shape


def dot_flops(instruction: Instruction) -> int:
    """FLOP of dot and scaled-dot (`GetDotFlops`)."""
    return _contraction_flops(instruction, instruction.shape)


def ragged_dot_flops(instruction: Instruction) -> int:
    """FLOP of ragged-dot: the result without as many leading dimensions as there are group dimensions."""
    groups = instruction.attributes.get("rhs_group_dims", ())
    shape = instruction.shape
    return _contraction_flops(instruction, Shape(shape.element_type, shape.dimensions[len(groups) :]))


def _contraction_flops(instruction: Instruction, result: Shape) -> int:
    left = instruction.operand.sizes
    contracted: Dims = instruction.attributes.get("lhs_contracting_dims", ())
    return FMA_FLOPS * elements(result) * math.prod(left[d] for d in contracted if d < len(left))


def convolution_flops(instruction: Instruction) -> int:
    """Multiply-adds that touch real input, padding and dilation holes left out (`GetConvolutionFlops`). A
    call of cuDNN takes the numbers of the forward convolution, whichever of its arrays it computes."""
    numbers = dimension_numbers(instruction)
    if numbers is None or instruction.operand_count < 2:
        return 0
    left, right = (o.sizes for o in instruction.operands[:2])
    result = instruction.shape.leaf_shapes[0].dimensions
    target = custom_call_target(instruction)
    if target == "__cudnn$convBackwardInput":
        left, result = result, left
    elif target == "__cudnn$convBackwardFilter":
        right, result = result, right
    inputs, kernel, output = numbers.lhs, numbers.rhs, numbers.output
    ranks = [len(left), len(right), len(result)]
    if [len(inputs), len(kernel), len(output)] != ranks:
        return 0
    if not {"b", "f"} <= set(inputs) or not {"b", "f"} <= set(output):
        return 0
    features, batch = left[inputs.index("f")], left[inputs.index("b")]
    positions = 1
    for n, dimension in enumerate(window_dimensions(instruction)):
        d = str(n)
        if d not in inputs or d not in kernel or d not in output:
            return 0
        positions *= valid_positions(
            left[inputs.index(d)], right[kernel.index(d)], result[output.index(d)], dimension
        )
    feature_groups = int(instruction.raw("feature_group_count") or 1) or 1
    batch_groups = int(instruction.raw("batch_group_count") or 1) or 1
    count = (features // feature_groups) * result[output.index("f")] * (batch // batch_groups) * positions
    return FMA_FLOPS * count


def valid_positions(inputs: int, kernel: int, outputs: int, window: WindowDimension) -> int:
    """Pairs of an output and a kernel position along one dimension that meet an input element."""
    if min(inputs, kernel, outputs) <= 0:
        return 0
    # Sum over the shorter axis, count along the longer one in closed form.
    if kernel <= outputs:
        steps, step, count, stride = kernel, window.window_dilation, outputs, window.stride
    else:
        steps, step, count, stride = outputs, window.stride, kernel, window.window_dilation
    if steps > _LOOP_LIMIT:
        return kernel * outputs
    base = max(window.base_dilation, 1)
    last = (inputs - 1) * base
    return sum(_hits(k * step - window.padding_low, stride, count, base, last) for k in range(steps))


def _hits(
    offset: int,
    stride: int,
    count: int,
    base: int,
    last: int,
) -> int:
    """The number of n in [0, count) that have offset + n * stride in [0, last] and divisible by base."""
    if stride <= 0:
        return count if 0 <= offset <= last and offset % base == 0 else 0
    low = max(0, -(offset // stride) if offset < 0 else 0)
    high = min(count - 1, (last - offset) // stride)
    if high < low:
        return 0
    common = math.gcd(stride, base)
    if offset % common:
        return 0
    period = base // common
    # n * (stride / common) ≡ -offset / common (mod period)
    first = (-offset // common) * pow(stride // common, -1, period) % period if period > 1 else 0
    return (high - first) // period - (low - 1 - first) // period


def fft_flops(instruction: Instruction) -> int:
    """FLOP of a fast Fourier transform: eight per element and binary digit of each length."""
    digits = 1
    for length in instruction.attributes.get("fft_length", ()):
        digits *= max(length.bit_length() - 1, 0)
    return FMA_FLOPS * 4 * digits * elements(first_leaf(instruction.operand.shape))


def sort_flops(instruction: Instruction) -> int:
    """n log2 n over the elements of the first key."""
    count = elements(instruction.operand.shape)
    return count * max(count - 1, 0).bit_length() if count > 1 else 0


def triangular_solve_flops(instruction: Instruction) -> int:
    a, b = instruction.operand.shape, instruction.second.shape
    return FMA_FLOPS * (a.dimensions[-1] if a.dimensions else 0) * elements(b)


def cholesky_flops(instruction: Instruction) -> int:
    a = instruction.operand.shape
    return (a.dimensions[-1] if a.dimensions else 0) * elements(a) // 3


def reduce_window_work(instruction: Instruction) -> tuple[int, int]:
    """Elements read for each result of a reduce-window, and uses of its function (`HandleReduceWindow`)."""
    window = window_dimensions(instruction)
    shape = first_leaf(instruction.shape)
    outputs = elements(shape)
    size = window_size(instruction)
    reduced = [n for n, d in enumerate(window) if d.size != 1]
    padded = [d for d in window if d.padding_low or d.padding_high]
    if len(reduced) == len(padded) == 1 and instruction.is_array and reduced[0] < shape.rank:
        # A reduce whose result is spread back over the whole dimension is recognised by its window.
        d, span = window[reduced[0]], shape.dimensions[reduced[0]]
        if d.padding_low == d.padding_high == span - 1 > 0 and d.size == 2 * span - 1:
            return span, outputs // span + span - 1
    return size, (size - 1) * outputs


def applications(instruction: Instruction) -> tuple[int, ...]:
    """The times that an instruction applies each of the functions that it calls for elements."""
    opcode, operands = instruction.opcode, instruction.operands
    if opcode == "map":
        return (elements(instruction.shape),)
    if opcode == "reduce":
        return (elements(operands[0].shape) - elements(first_leaf(instruction.shape)),)
    if opcode == "reduce-window":
        return (reduce_window_work(instruction)[1],)
    if opcode == "scan":
        return (elements(operands[min(1, len(operands) - 1)].shape),)
    if opcode == "scatter":
        return (elements(operands[len(operands) // 2 + 1].shape),) if len(operands) > 2 else (0,)
    if opcode == "select-and-scatter" and len(operands) > 1:
        sources = elements(operands[1].shape)
        return sources * (window_size(instruction) - 1), sources
    return ()


FLOPS = {
    "dot": dot_flops,
    "scaled-dot": dot_flops,
    "ragged-dot": ragged_dot_flops,
    "convolution": convolution_flops,
    "fft": fft_flops,
    "sort": sort_flops,
}
"""The FLOP of operations that fusions may hold."""


# What a fusion reads and writes (`HloCostAnalysis::HandleFusion` and what it calls).
#
# Values inside a fusion never reach memory, so it touches its parameters, as far as they are really
# read, its results, and constants too large to be immediates.
def fusion_bytes(fusion: Instruction) -> tuple[int, int]:
    """Bytes read and written by one run of `fusion`."""
    computation = fusion.fused_computation
    read = sum(_parameter_bytes(p) for p in dict.fromkeys(computation.parameters))
    for i in computation:
        if i.is_constant and i.is_array and i.element_count > 1:
            read += i.shape.buffer_size
    return read, _written(fusion)


def _written(fusion: Instruction) -> int:
    root = fusion.fused_root
    if not fusion.is_tuple:
        return _result_bytes(root, fusion.shape)
    total = 0
    for index, shape in fusion.shape.leaves():
        if not shape.is_array:
            continue
        source = root
        if len(index) == 1 and root.opcode == "tuple" and index[0] < root.operand_count:
            source = root.operands[index[0]]
        total += _result_bytes(source, shape)
    return total


def _result_bytes(root: Instruction, shape: Shape) -> int:
    # An update in place writes the update alone.
    if root.opcode == "dynamic-update-slice" and root.operand_count > 1:
        return root.second.shape.buffer_size
    return shape.buffer_size if shape.is_array else 0


def _parameter_bytes(parameter: Instruction) -> int:
    if not parameter.is_tuple:
        return read_bytes(parameter)
    total = 0
    for index, _ in parameter.shape.leaves():
        element = parameter
        for i in index:
            element = next(
                (u for u in element.users if u.is_get_tuple_element and u.tuple_index == i), element
            )
        total += read_bytes(element)
    return total


def read_bytes(value: Instruction, depth: int = 0) -> int:
    """The bytes of a fusion's parameter that are read, of slices or once (`FusionParameterReadBytes`)."""
    size = value.shape.buffer_size
    total = 0
    shared = False
    for user in value.users:
        opcode = user.opcode
        if opcode == "slice" or (opcode == "dynamic-slice" and user.operand is value):
            total += user.shape.buffer_size
        elif opcode == "gather" and user.operand is value and padded_slices(user):
            total += padded_slices(user)
        elif opcode == "dynamic-update-slice" and user.operand is value:
            pass  # shares its memory with the result
        elif opcode in ("broadcast", "reshape"):
            total += size
        elif opcode == "fusion" and depth < 64:
            total += sum(
                _read_through(user, number, depth) for number, o in enumerate(user.operands) if o is value
            )
        elif not shared:
            shared = True
            total += size
    return total


def padded_slices(gather: Instruction) -> int:
    """Bytes of the slices that a gather reads, with the rows that tiles add to each; 0 without tiles."""
    source = gather.operand.shape
    sizes = gather.attributes.get("slice_sizes", ())
    if source.layout is None or not source.layout.tiles or len(sizes) != source.rank:
        return 0
    return gather.shape.buffer_size * _tile_factor(source, [d for d, s in enumerate(sizes) if s == 1])


def padded_updates(scatter: Instruction) -> int:
    """Bytes of the whole tiles that a scatter writes; 0 without tiles."""
    written, updates = scatter.operand.shape, scatter.operands[-1].shape
    if written.layout is None or not written.layout.tiles:
        return 0
    inserted = scatter.attributes.get("inserted_window_dims", ())
    batch = scatter.attributes.get("input_batching_dims", ())
    return updates.buffer_size * _tile_factor(written, (*inserted, *batch))


def _tile_factor(array: Shape, single: Collection[int]) -> int:
    """Elements of the tiles in which a slice takes one of each of these dimensions; rows count as eight."""
    assert array.layout is not None
    lengths = zip(array.minor_to_major, reversed(array.layout.tiles[0]), strict=False)
    return math.prod(max(length, 8) for d, length in lengths if d in single and length > 0)


def _read_through(fusion: Instruction, number: int, depth: int) -> int:
    """The bytes that a nested fusion reads of its operand, by the use of its result."""
    parameters = fusion.fused_computation.parameters
    if number >= len(parameters):
        return 0
    parameter = parameters[number]
    root = fusion.fused_root
    simple = not root.operands or parameter is root.operand
    total = 0
    seen = False
    for user in fusion.users:
        opcode = user.opcode
        sliced = opcode == "slice" or (opcode == "dynamic-slice" and user.operand is fusion)
        if simple and sliced:
            total += user.shape.buffer_size
        elif simple and opcode in ("dynamic-slice", "dynamic-update-slice"):
            if not seen and user.operand is not fusion:
                seen = True
                total += fusion.shape.buffer_size
        elif not seen:
            seen = True
            total += read_bytes(parameter, depth + 1)
    return total
