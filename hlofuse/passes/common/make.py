"""New instructions in the computation of another one (`xla/service/hlo_creation_utils.cc`). Their attributes:
`added` sets only the given ones, `add` also the metadata of `at`, `derived` also its sharding and frontend
attributes (`HloInstruction::AddInstruction`)."""

from collections.abc import Mapping, Sequence

from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir import (
    Attributes,
    Computation,
    Instruction,
    InstructionSequence,
    Ints,
    Module,
    replace,
    set_attribute,
)
from hlofuse.ir.attributes.attributes import written
from hlofuse.ir.attributes.window import PaddingConfig, PaddingDimension, SliceRange, SliceRanges, Window
from hlofuse.ir.shape import COMPLEX_TYPES, Shape
from hlofuse.passes.base import NotRepresentable
from hlofuse.passes.common import literals
from .literals import Value
from .shapes import array, is_sorted, permuted, physical, with_dimensions, without


def added(
    at: Instruction,
    opcode: str,
    shape: Shape,
    operands: InstructionSequence,
    *,
    like: Instruction | None = None,
    called: Sequence[tuple[str, Computation]] | Computation = (),
    payload: str | None = None,
    name: str | None = None,
    raw_attributes: Mapping[str, object] | None = None,
    **attributes: object,
) -> Instruction:
    """A new instruction in the computation of `at`, with the metadata of `like`. A single computation that is
    `called` is the one to apply. Lists of numbers are written in braces."""
    called = [("to_apply", called)] if isinstance(called, Computation) else called
    given = {**(raw_attributes or {}), **attributes, **{name: _named(name, c) for name, c in called}}
    raw = {name: written(value) for name, value in given.items()}
    if opcode == "convolution" and name is None:
        window = raw.get("window", "")
        dilations = (("lhs_dilate", "-base-dilated"), ("rhs_dilate", "-window-dilated"))
        name = opcode + "".join(suffix for key, suffix in dilations if key in window)
    new = Instruction(
        name or opcode, shape, opcode, operands, Attributes(raw=raw), called=called, payload=payload
    )
    metadata = like.raw("metadata") if like is not None else None
    if metadata:
        set_attribute(new, "metadata", metadata)
    return at.parent.add_instruction(new)


def _named(attribute: str, computation: Computation) -> str:
    name = f"%{computation.name}"
    return f"{{{name}}}" if attribute == "called_computations" else name


def add(
    at: Instruction,
    /,
    opcode: str,
    shape: Shape,
    operands: InstructionSequence = (),
    *,
    called: Sequence[tuple[str, Computation]] | Computation = (),
    payload: str | None = None,
    copied_attributes: Mapping[str, object] | None = None,
    **attributes: object,
) -> Instruction:
    """A new instruction where `at` is, with its metadata and `copied_attributes` of another one."""
    raw = {**(copied_attributes or {}), **attributes}
    return added(at, opcode, shape, operands, like=at, called=called, payload=payload, raw_attributes=raw)


def derived(
    source: Instruction, opcode: str, shape: Shape, operands: InstructionSequence, **attributes: object
) -> Instruction:
    """A new instruction with the metadata of `source` (`HloInstruction::AddInstruction`)."""
    new = added(source, opcode, shape, operands, like=source, raw_attributes=attributes)
    _copy_sharding(new, source)
    return new


def _copy_sharding(new: Instruction, source: Instruction) -> None:
    """Sharding and frontend attributes (`SetupDerivedInstruction`)."""
    copies_sharding = source.is_tuple == new.is_tuple and new.opcode not in (
        "reshape",
        "transpose",
    )
    for name, text in source.attributes.given("sharding", "frontend_attributes").items():
        if copies_sharding or name != "sharding":
            set_attribute(new, name, text)


def constant(at: Instruction, shape: Shape, values: Sequence[Value]) -> Instruction:
    """NotRepresentable for values that cannot be written."""
    rounded = literals.rounded(shape.element_type, values)
    text = literals.text_of(shape, rounded.tolist()) if rounded is not None else None
    if text is None:
        raise NotRepresentable("a constant whose elements cannot be written")
    return add(at, "constant", shape, payload=text)


def unknown_constant(at: Instruction, shape: Shape) -> Instruction:
    """A constant whose elements XLA knows and no dump shows; NotRepresentable where one would show them."""
    if not shape.dimensions:
        raise NotRepresentable("a constant whose elements cannot be written")
    return add(at, "constant", shape, payload="{...}")


def scalar(at: Instruction, element_type: str, value: Value) -> Instruction:
    return constant(at, array(element_type), [value])


def scalar_like(base: Instruction, value: Value) -> Instruction:
    """`value` in the shape of `base`, of which the same is said (`MakeScalarLike`)."""
    one = scalar(base, base.element_type, value)
    _copy_sharding(one, base)
    if not base.sizes:
        return one
    return derived(base, "broadcast", base.shape, [one], dimensions="{}")


def broadcast(
    at: Instruction,
    shape: Shape,
    operand: Instruction,
    dimensions: Ints = (),
) -> Instruction:
    """`dimensions` are the places of those of `operand`, none for a scalar."""
    return add(at, "broadcast", shape, [operand], dimensions=dimensions)


def reshape(at: Instruction, shape: Shape, operand: Instruction) -> Instruction:
    return add(at, "reshape", shape, [operand])


def resized(at: Instruction, operand: Instruction, sizes: Ints) -> Instruction:
    return reshape(at, with_dimensions(operand.shape, sizes), operand)


def reshape_bitcasts(module: Module) -> None:
    """Reshapes, with transposes where needed, for bitcasts and copies, which XLA reads after layouts only."""
    for x in [x for x in module.instructions() if x.opcode in ("bitcast", "copy")]:
        new = x.operand
        order = new.minor_to_major[::-1]
        back = x.minor_to_major[::-1]
        if x.opcode == "copy" or (is_sorted(order) and is_sorted(back)):
            new = reshape(x, x.shape, new)
        else:
            new = transpose(x, new, order)
            new = reshape(x, physical(x.shape), new)
            new = transpose(x, new, inverse(back), x.shape)
        x.replace_all_uses_with(new)


def transpose(
    at: Instruction, operand: Instruction, permutation: Ints, shape: Shape | None = None
) -> Instruction:
    shape = shape or permuted(operand.shape, permutation)
    return add(at, "transpose", shape, [operand], dimensions=permutation)


def unary(
    at: Instruction,
    opcode: str,
    operand: Instruction,
    shape: Shape | None = None,
) -> Instruction:
    return add(at, opcode, shape or operand.shape, [operand])


def binary(
    at: Instruction, opcode: str, a: Instruction, b: Instruction, shape: Shape | None = None
) -> Instruction:
    return add(at, opcode, shape or a.shape, [a, b])


def select(
    at: Instruction,
    pred: Instruction,
    yes: Instruction,
    no: Instruction,
    shape: Shape | None = None,
) -> Instruction:
    return add(at, "select", shape or yes.shape, [pred, yes, no])


def compare(at: Instruction, direction: str, a: Instruction, b: Instruction) -> Instruction:
    return add(at, "compare", a.shape.with_element_type("pred"), [a, b], direction=direction)


def convert(at: Instruction, operand: Instruction, element_type: str, opcode: str = "convert") -> Instruction:
    """`operand` itself where it has that type."""
    if operand.element_type == element_type:
        return operand
    return add(at, opcode, operand.shape.with_element_type(element_type), [operand])


def iota(at: Instruction, shape: Shape, dimension: int) -> Instruction:
    return add(at, "iota", shape, iota_dimension=dimension)


def slice_of(
    at: Instruction,
    operand: Instruction,
    starts: Ints,
    limits: Ints,
    strides: Ints | None = None,
) -> Instruction:
    strides = strides or [1] * len(starts)
    ranges = SliceRanges(SliceRange(*r) for r in zip(starts, limits, strides, strict=True))
    sizes = [(r.limit - r.start + r.stride - 1) // r.stride for r in ranges]
    return add(at, "slice", with_dimensions(operand.shape, sizes), [operand], slice=ranges)


def part(
    at: Instruction, x: Instruction, start: int, limit: int, along: int = 0, stride: int = 1
) -> Instruction:
    """The elements of `x` from `start` to `limit` along one dimension, lying as they did."""
    rank = x.rank
    starts, limits, strides = [0] * rank, list(x.sizes), [1] * rank
    starts[along], limits[along], strides[along] = start, limit, stride
    found = slice_of(at, x, starts, limits, strides)
    found.shape = replace(x.shape, dimensions=found.sizes)
    return found


def dynamic_slice(
    at: Instruction, operand: Instruction, starts: InstructionSequence, sizes: Ints
) -> Instruction:
    shape = with_dimensions(operand.shape, sizes)
    return add(at, "dynamic-slice", shape, [operand, *starts], dynamic_slice_sizes=sizes)


def dynamic_update_slice(
    at: Instruction,
    operand: Instruction,
    update: Instruction,
    starts: InstructionSequence,
) -> Instruction:
    return add(at, "dynamic-update-slice", operand.shape, [operand, update, *starts])


def pad(
    at: Instruction, shape: Shape, operand: Instruction, value: Instruction, config: PaddingConfig
) -> Instruction:
    return add(at, "pad", shape, [operand, value], padding=config)


def padded(
    at: Instruction,
    x: Instruction,
    low: int,
    high: int,
    along: int = 0,
    between: int = 0,
    value: Instruction | None = None,
) -> Instruction:
    """`x` with values, zeros if not given, before, after and between its elements along a dimension."""
    each, sizes = [PaddingDimension(0, 0)] * x.rank, list(x.sizes)
    each[along] = PaddingDimension(low, high, between)
    sizes[along] += low + high + between * (sizes[along] - 1)
    shape, config = replace(x.shape, dimensions=tuple(sizes)), PaddingConfig(each)
    return pad(at, shape, x, value or zero(at, x.element_type), config)


def concatenate(at: Instruction, operands: InstructionSequence, dimension: int) -> Instruction:
    sizes = list(operands[0].sizes)
    sizes[dimension] = sum(o.sizes[dimension] for o in operands)
    shape = with_dimensions(operands[0].shape, sizes)
    return add(at, "concatenate", shape, operands, dimensions=[dimension])


def reduce(
    at: Instruction,
    operand: Instruction,
    init: Instruction,
    dimensions: Ints,
    function: Computation,
) -> Instruction:
    shape = without(operand.shape, dimensions)
    return add(at, "reduce", shape, [operand, init], called=function, dimensions=dimensions)


def reduce_window(
    at: Instruction, shape: Shape, operands: InstructionSequence, function: Computation, window: Window
) -> Instruction:
    return add(at, "reduce-window", shape, operands, called=function, window=window)


def tuple_of(at: Instruction, elements: InstructionSequence) -> Instruction:
    return add(at, "tuple", Shape.tuple_of([e.shape for e in elements]), elements)


def result_of(x: Instruction, values: InstructionSequence) -> Instruction:
    """The values in the form of what `x` gives: a tuple, or the only one."""
    return tuple_of(x, values) if x.is_tuple else values[0]


def get_tuple_element(at: Instruction, source: Instruction, index: int) -> Instruction:
    return add(at, "get-tuple-element", source.shape.tuple_shapes[index], [source], index=index)


def elements(x: Instruction, indices: Ints) -> list[Instruction]:
    return [get_tuple_element(x, x, k) for k in indices]


def bare_element(at: Instruction, source: Instruction, index: int) -> Instruction:
    """An element of a tuple without metadata, in the computation of `at`."""
    return added(at, "get-tuple-element", source.shape.tuple_shapes[index], [source], index=index)


def copy_of(
    original: Instruction,
    /,
    operands: InstructionSequence,
    shape: Shape | None = None,
    **attributes: object,
) -> Instruction:
    """A clone with other operands (`CloneWithNewOperands`) and attributes, without those that are None."""
    clone = original.clone(operands, shape=shape)
    clone.attributes = clone.attributes.without("control-predecessors").updated(**attributes)
    return original.parent.add_instruction(clone)


def zero(at: Instruction, element_type: str) -> Instruction:
    payload = "(0, 0)" if element_type in COMPLEX_TYPES else "false" if element_type == "pred" else "0"
    return added(at, "constant", Shape(element_type), [], payload=payload)


def zeros(at: Instruction, shape: Shape) -> Instruction:
    """A broadcast 0, also where a scalar would do (`BroadcastZeros`)."""
    return added(at, "broadcast", shape, [zero(at, shape.element_type)], dimensions="{}")


def bitcast(operand: Instruction, shape: Shape) -> Instruction:
    """A bitcast with the operand's metadata (`MakeBitcastHlo`)."""
    return added(operand, "bitcast", shape, [operand], like=operand)


def reshaped(operand: Instruction, shape: Shape) -> Instruction:
    """`MakeReshapeHlo`."""
    return derived(operand, "reshape", shape, [operand])


def copied(operand: Instruction, shape: Shape) -> Instruction:
    """`MakeCopyHlo`."""
    return derived(operand, "copy", shape, [operand])


def transposed(operand: Instruction, permutation: Ints, shape: Shape) -> Instruction:
    """`MakeTransposeHlo`, with a layout of one's own."""
    return derived(operand, "transpose", shape, [operand], dimensions=permutation)


def reducer(
    at: Instruction,
    name: str,
    opcode: str | None,
    element_type: str,
    parameters: tuple[str, str] = ("lhs", "rhs"),
) -> Computation:
    """A new computation of two scalars of these names (`CreateScalarComputation`) in the module of `at`;
    without an opcode it is the second one."""
    body = Computation(name)
    shape = array(element_type)
    sides = [body.append_parameter(n, shape) for n in parameters]
    body.root = body.append_parsed(Instruction(opcode, shape, opcode, sides)) if opcode else sides[1]
    return at.parent.parent.add_computation(body)
