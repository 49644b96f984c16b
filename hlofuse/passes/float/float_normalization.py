"""Operations on floats too narrow for the target work on wider ones (`float_normalization.cc`)."""

from dataclasses import dataclass

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir import Computation, Instruction, Module, Predicate, Shape, replace, with_trait
from hlofuse.ir.opcodes import values
from hlofuse.ir.removing import has_side_effect
from hlofuse.passes.base import Pass, attempt, visit
from hlofuse.passes.common import make
from hlofuse.passes.common.calls import clone_computation, replace_users, set_called
from hlofuse.passes.dce import HloDCE, TupleSimplifier
from hlofuse.releases import Release
from hlofuse.trace import Recorder

_LEFT_ALONE = with_trait("float-normalization-leaves")
# As good in the narrow type: nothing is computed, or a wider one would give something else.
_NARROW = values("opt-barrier count-leading-zeros shift-right-logical shift-right-arithmetic")
_COLLECTIVE = values("all-reduce reduce-scatter")


@dataclass(frozen=True)
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
            for number in range(len(x.operands)):
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
        converts = [
            u for u in users if u.opcode == "convert" and u.element_type == self._high and x.shape.is_array
        ]
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
    if not x.shape.is_tuple:
        return make.convert(x, x, shape.element_type)
    elements = make.elements(x, range(len(x.shape.tuple_shapes)))
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
            return all(i.opcode == "parameter" or supports(i) for i in hlo.to_apply)
        return False

    return supports


def library_takes_bf16(device: DeviceDescription, opcode: str) -> Predicate:
    """Everything but convolutions (or dots) of devices older than Ampere."""
    old = device.compute_capability[0] < 8
    return lambda hlo: not (old and hlo.opcode == opcode)
