"""Passes that move, drop and add conversions between element types, and have operations on floats too narrow
for the target work on wider ones (`float_normalization.cc`)."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import field

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir import Computation, Instruction, Module, Predicate, Shape, replace, values, with_trait
from hlofuse.ir.removing import has_side_effect
from hlofuse.ir.shape import FLOATING_TYPES, INTEGER_TYPES
from hlofuse.passes.base import (
    Explained,
    NotRepresentable,
    Pass,
    RewritePass,
    any_change,
    attempt,
    replaced,
    substituted,
    visit,
)
from hlofuse.passes.common import make
from hlofuse.passes.common.calls import clone_computation, replace_users, set_called
from hlofuse.passes.common.literals import Value, bounds, rounded, values_of
from hlofuse.passes.common.shapes import array
from hlofuse.passes.dce import HloDCE, TupleSimplifier
from hlofuse.releases import Release
from hlofuse.rules.rewrites import LOGISTIC
from hlofuse.trace import Recorder

_COMMUTES = values("concatenate pad reshape slice transpose")


class ConvertMover(Pass):
    """Moves conversions after operations that do not narrow, and before those that do not widen
    (`xla/hlo/transforms/simplifiers/convert_mover.cc`)."""

    name = "convert-mover"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in module.non_fusion_computations():
            move_down = attempt(_move_down, recorder)
            for x in computation.post_order():
                changed |= move_down(x)
            changed |= _move_up(computation)
        return changed


def _move_down(x: Instruction) -> bool:
    converts = [o for o in x.operands if o.opcode == "convert" and o.user_count == 1]
    constants = [o for o in x.operands if o.is_constant]
    if x.opcode not in _COMMUTES or not converts or len(converts) + len(constants) != x.operand_count:
        return False
    sources = {o.operand.element_type for o in converts}
    narrow = converts[0].operand.shape
    if len(sources) > 1 or narrow.bit_width >= converts[0].shape.bit_width or _is_packed(narrow.element_type):
        return False
    of = narrow.element_type
    if not all(_is_lossless(o, of) for o in constants):
        return False
    operands = [o.operand if o.opcode == "convert" else _convert(o, of) for o in x.operands]
    moved = make.copy_of(x, operands, x.shape.with_element_type(of))
    return replaced(x, make.add(x, "convert", x.shape, [moved]))


def _move_up(computation: Computation) -> bool:
    changed = False
    work = deque(reversed(computation.post_order()))
    while work:
        convert = work.popleft()
        if convert.opcode != "convert" or convert.computation is None:
            continue
        x, of = convert.operand, convert.element_type
        if x.user_count != 1 or x.opcode not in _COMMUTES:
            continue
        if x.shape.bit_width <= convert.shape.bit_width or _is_packed(of):
            continue
        operands = []
        for operand in x.operands:
            operands.append(_convert(operand, of))
            work.appendleft(operands[-1])
        changed |= replaced(convert, make.copy_of(x, operands, x.shape.with_element_type(of)))
    return changed


def _convert(x: Instruction, element_type: str) -> Instruction:
    """`MakeConvertToHlo`."""
    return make.derived(x, "convert", x.shape.with_element_type(element_type), [x])


def _is_packed(element_type: str) -> bool:
    return element_type in INTEGER_TYPES and element_type[1:] in ("1", "2", "4")


def _is_lossless(constant: Instruction, element_type: str) -> bool:
    """`IsLosslesslyConvertibleTo`."""
    values = values_of(constant)
    if values is None:
        raise NotRepresentable("a constant whose elements are not known")
    return all(_fits(v, element_type) for v in values)


def _fits(value: Value, element_type: str) -> bool:
    if isinstance(value, complex) or (isinstance(value, float) and math.isnan(value)):
        raise NotRepresentable("a constant that is complex or not a number")
    if element_type in FLOATING_TYPES:
        return bool(rounded(element_type, value) == value)
    if element_type == "pred":
        return value in (0, 1)
    if element_type not in INTEGER_TYPES or not math.isfinite(value) or value != int(value):
        return False
    low, high = bounds(element_type)
    return bool(low <= value <= high)


class SimplifyFPConversions(Pass):
    """`simplify-fp-conversions`, in fusions, too; what a narrow step in between rounds off is kept
    (`xla/hlo/transforms/simplifiers/simplify_fp_conversions.cc`)."""

    name = "simplify-fp-conversions"

    def run(self, module: Module, recorder: Recorder) -> bool:
        visited = (i for c in module.computation_post_order() for i in c.post_order())
        return any_change(i.computation is not None and _shorten(i) for i in visited)


def _shorten(convert: Instruction) -> bool:
    source, length = convert, 0
    while source.opcode == "convert" and source.element_type in FLOATING_TYPES:
        source = source.operand
        length += 1
    if length < 2:
        return False
    if source.element_type == convert.element_type:
        return replaced(convert, source)
    return replaced(convert, make.added(convert, "convert", convert.shape, [source]))


class ChangeOpDataType(RewritePass):
    """Products and convolutions of f16 on f32 (`xla/service/change_op_data_type.cc`)."""

    name = "change-op-data-type"
    opcodes = ("dot", "convolution")
    is_skipped: Predicate  # True for instructions that a library computes in the narrow type

    def handle(self, x: Instruction) -> bool:
        if self.is_skipped(x) or any(o.element_type != "f16" for o in x.operands):
            return False
        operands = [make.convert(o, o, "f32") for o in x.operands]
        wide = make.copy_of(x, operands, x.shape.with_element_type("f32"))
        return substituted(x, make.convert(wide, wide, x.element_type))


_FLOATS = values("f16 bf16 f32 f64")


class ComparisonExpander(RewritePass):
    """Total orders of floats compare integers (`xla/hlo/transforms/expanders/comparison_expander.cc`)."""

    widened: Mapping[str, str] = field(default_factory=dict)
    """Types that are converted first, each to the type whose bits are compared."""
    name = "comparison-expander"
    opcodes = ("compare",)

    def handle(self, x: Instruction) -> bool:
        is_total = x.raw("type") == "TOTALORDER" or x.raw("order") == "TOTAL"  # the latter from 0.12 on
        if not is_total or x.operand.element_type not in _FLOATS:
            return False
        return substituted(x, self._expand(x))

    def _expand(self, x: Instruction) -> Instruction:
        element_type = x.operand.element_type
        wide = self.widened.get(element_type, element_type)
        return _of_integers(x, [make.convert(x, o, wide) for o in x.operands])


def _of_integers(x: Instruction, operands: Sequence[Instruction]) -> Instruction:
    shape = operands[0].shape.with_element_type(f"s{operands[0].shape.bit_width}")
    values = []
    for value in (0, *bounds(shape.element_type)):
        values.append(make.broadcast(x, shape, make.scalar(x, shape.element_type, value)))
    zero, _, most = values
    sides = []
    for operand in operands:
        bits = make.add(x, "bitcast-convert", shape, [operand])
        flipped = make.binary(x, "xor", most, bits)
        negative = make.compare(x, "LT", bits, zero)
        sides.append(make.select(x, negative, flipped, bits))
    return make.add(x, "compare", x.shape, sides, direction=x.raw("direction"))


class LogisticExpander(RewritePass):
    """`logistic-expander`: 1 / (1 + exp(-x)) (`xla/hlo/transforms/expanders/logistic_expander.cc`)."""

    name = "logistic-expander"
    opcodes = ("logistic",)
    explained = Explained(LOGISTIC)

    def handle(self, x: Instruction) -> bool:
        def added(opcode: str, *operands: Instruction) -> Instruction:
            return make.added(x, opcode, x.shape, [*operands])

        one = make.scalar_like(x.operand, 1.0)
        total = added("add", one, added("exponential", added("negate", x.operand)))
        return substituted(x, added("divide", one, total))


class BitcastDtypesExpander(RewritePass):
    """Not of elements narrower than a byte (`xla/hlo/transforms/expanders/bitcast_dtypes_expander.cc`)."""

    name = "bitcast_dtypes_expander"
    opcodes = ("bitcast-convert",)

    def handle(self, x: Instruction) -> bool:
        if not x.is_array:
            return False
        widths = x.operand.shape.bit_width, x.shape.bit_width
        if widths[0] == widths[1] or min(widths) < 8 or max(widths) > 64:
            return False
        expand = _narrower if widths[0] > widths[1] else _wider
        return substituted(x, make.convert(x, expand(x, *widths), x.element_type, "bitcast-convert"))


def _narrower(x: Instruction, width: int, new_width: int) -> Instruction:
    """Parts of each element, the lowest first (`Downcast`)."""
    source = x.operand
    rank = source.rank
    sizes = (*source.sizes, width // new_width)
    wide = make.broadcast(x, array(source.element_type, sizes), source, range(rank))
    wide = make.convert(x, wide, f"u{width}", "bitcast-convert")
    counter = make.iota(x, wide.shape, rank)
    shift = make.binary(x, "multiply", make.scalar_like(wide, new_width), counter)
    shifted = make.binary(x, "shift-right-logical", wide, shift)
    masked = make.binary(x, "and", shifted, make.scalar_like(wide, (1 << new_width) - 1))
    return make.convert(x, masked, f"u{new_width}")


def _wider(x: Instruction, width: int, new_width: int) -> Instruction:
    """Elements of the last dimension put together (`Upcast`)."""
    source = x.operand
    *outer, last = source.sizes
    if outer:
        sizes = [*outer[:-1], outer[-1] * last]
        source = make.reshape(x, array(source.element_type, sizes), source)
    factor = new_width // width
    sizes = list(source.sizes)
    strides = [*(1 for _ in sizes[1:]), factor]
    result: Instruction | None = None
    for k in range(factor):
        starts = [*(0 for _ in sizes[1:]), k]
        limits = [*sizes[:-1], sizes[-1] - factor + k + 1]
        part = make.slice_of(x, source, starts, limits, strides)
        part = make.convert(x, part, f"u{width}", "bitcast-convert")
        part = make.convert(x, part, f"u{new_width}")
        if result is None:
            result = part
            continue
        part = make.binary(x, "shift-left", part, make.scalar_like(part, k * width))
        result = make.binary(x, "or", result, part)
    assert result is not None
    return result if outer else make.reshape(x, array(f"u{new_width}"), result)


_LEFT_ALONE = with_trait("float-normalization-leaves")
# As good in the narrow type: nothing is computed, or a wider one would give something else.
_NARROW = values("opt-barrier count-leading-zeros shift-right-logical shift-right-arithmetic")
_COLLECTIVE = values("all-reduce reduce-scatter")


class FloatNormalization(Pass):
    """`float-normalization-…` from `low` to `high`."""

    low: str
    high: str
    is_skipped: Predicate  # Instructions that a library computes in the narrow type
    enters_custom_fusions: bool = False  # Fusions for Triton or a library, too (`ShouldSkipComputationsOf`)

    @property
    def name(self) -> str:
        return f"float-normalization-{self.low}"

    def run(self, module: Module, recorder: Recorder) -> bool:
        if not any(_count(shape, self.low) for shape in {i.shape for i in module.instructions()}):
            return False
        work = _Normalizing(self)
        for computation in module.computation_post_order():
            if not any(self.leaves_functions(caller) for caller in computation.callers):
                visit(computation, attempt(work.handle, recorder))
        if work.changed:
            TupleSimplifier().run(module, recorder)
            HloDCE().run(module, recorder)
        return work.changed

    def leaves_functions(self, caller: Instruction) -> bool:
        """True if its computations stay unchanged (`ShouldAvoidNormalizingComputationsForInstruction`)."""
        if caller.opcode in _COLLECTIVE:
            return True
        if caller.fusion_kind == "kCustom":
            return not self.enters_custom_fusions
        return caller.opcode in ("reduce", "reduce-window") and self.is_skipped(caller)


def _count(shape: Shape, element_type: str) -> int:
    return sum(s.element_type == element_type for _, s in shape.subshapes())


class _Normalizing:
    def __init__(self, options: FloatNormalization) -> None:
        self._options = options
        self._low, self._high = options.low, options.high
        self.changed = False

    def handle(self, x: Instruction) -> None:
        if x.opcode in _LEFT_ALONE or has_side_effect(x) or self._options.is_skipped(x):
            return
        shapes = [x.shape, *(o.shape for o in x.operands)]
        narrow_functions = []
        if not self._options.leaves_functions(x):
            for function in x.called_computations:
                inner = [function.root.shape, *(p.shape for p in function.parameters)]
                shapes += inner
                if any(_count(s, self._low) for s in inner):
                    narrow_functions.append(function)
        if x.opcode not in _NARROW:
            for number in range(x.operand_count):
                self._widen_operand(x, number)
            self._widen_result(x)
        elif x.opcode == "opt-barrier" or not any(_count(s, self._high) for s in shapes):
            return
        if narrow_functions:
            self._widen_functions(x, narrow_functions)

    def _widen_operand(self, x: Instruction, number: int) -> None:
        """`InsertConvertBeforeOperand`."""
        operand = x.operands[number]
        if _count(operand.shape, self._low):
            x.replace_operand(number, _converted(operand, _retype(operand.shape, self._low, self._high)))
            self.changed = True

    def _widen_result(self, x: Instruction) -> None:
        """`ChangeOutputTypeThenInsertConvertBack`; users that widen it anyway get it as it is."""
        if not _count(x.shape, self._low) or x.computation is None:
            return
        users, was_root, original = list(x.users), x.is_root, x.shape
        x.shape = _retype(x.shape, self._low, self._high)
        narrow = _converted(x, original)
        converts = [u for u in users if u.opcode == "convert" and u.element_type == self._high and x.is_array]
        for user in users:
            if user not in converts:
                x.replace_use_with(user, narrow)
        for user in converts:
            user.replace_all_uses_with(x)
        if was_root:
            x.computation.root = narrow
        self.changed = True

    def _widen_functions(self, x: Instruction, functions: list[Computation]) -> None:
        """`ConvertCalledComputations`."""
        clones = {function: clone_computation(function) for function in functions}
        set_called(x, [(n, clones.get(c, c)) for n, c in x.called])
        self.changed = True
        for clone in clones.values():
            root = clone.root
            users = list(root.users)
            wide = _converted(root, _retype(root.shape, self._low, self._high))
            if wide is not root:
                replace_users(users, root, wide)
            for parameter in clone.parameters:
                self._widen_result(parameter)


def _retype(shape: Shape, low: str, high: str) -> Shape:
    if shape.is_tuple:
        return replace(shape, tuple_shapes=tuple(_retype(s, low, high) for s in shape.tuple_shapes))
    return shape.with_element_type(high) if shape.element_type == low else shape


def _converted(x: Instruction, shape: Shape) -> Instruction:
    if not x.is_tuple:
        return make.convert(x, x, shape.element_type)
    elements = make.elements(x, range(x.tuple_size))
    pairs = zip(elements, shape.tuple_shapes, strict=True)
    return make.tuple_of(x, [_converted(e, s) for e, s in pairs])


CPU_KEEPS_BF16 = with_trait("cpu-keeps-bf16")
"""Operations that XLA:CPU does on bf16 as it is, where the release has `cpu_keeps_bf16`."""


# What a GPU computes on bf16 as it is (`xla/service/gpu/gpu_float_support.cc`, `nvptx_compiler.cc`).


_MOVES = with_trait("gpu-keeps-bf16")
_NEGATIONS, _EXTREMA, _BITS = (
    values("abs negate"),
    values("maximum minimum"),
    values("compare xor"),
)
_HOPPER = values("add multiply subtract")


def computes_bf16(device: DeviceDescription, release: Release) -> Predicate:
    """`GpuFloatSupport::IsSupported`."""
    major = device.compute_capability[0]
    moves, ampere = _MOVES, _EXTREMA | _NEGATIONS if release.gpu_negates_bf16 else _EXTREMA
    if not release.gpu_compares_bf16:
        moves, ampere = _MOVES - _BITS, frozenset()

    def supports(hlo: Instruction) -> bool:
        opcode = hlo.opcode
        if opcode in moves:
            return True
        if opcode in ampere:
            return major >= 8
        if opcode in _HOPPER:
            return major >= 9
        if opcode == "reduce" or (opcode == "sort" and release.gpu_compares_bf16):
            return all(i.is_parameter or supports(i) for i in hlo.to_apply)
        return False

    return supports


def library_takes_bf16(device: DeviceDescription, opcode: str) -> Predicate:
    """Everything but convolutions (or dots) of devices older than Ampere."""
    old = device.compute_capability[0] < 8
    return lambda hlo: not (old and hlo.opcode == opcode)
