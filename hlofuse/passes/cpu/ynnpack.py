"""Operations of YNNPACK in XLA:CPU (`xla/backends/cpu/ynn_support.cc`, `transforms/ynn_matcher.h`), and their
fusions (`xla/backends/cpu/transforms/library_rewriter.cc`)."""

from collections import deque

from msgspec import Struct

from hlofuse.analysis.cpu_predicates import EIGEN, dot_strategy
from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.cost.gpu.shapes import reshape_is_bitcast
from hlofuse.ir import Computation, Instruction, Module, Shape, set_attribute, values, with_trait
from hlofuse.ir.fusing import append_producer, create_fusion, merge_fusion
from hlofuse.passes.algebraic.context import is_of_parameters
from hlofuse.passes.base import ReleasePass, substituted
from hlofuse.passes.common import make
from hlofuse.passes.common.dots import DotDimensions
from hlofuse.passes.common.shapes import without_ones
from hlofuse.releases import AROUND_FUSION, Release
from hlofuse.rules.rewrites import LIBRARY
from hlofuse.trace import Recorder

_TYPES = values("s4 u4 s8 u8 bf16 f16 f32 f64 s32")
_ELEMENTWISE_TYPES = values("f64 f32 bf16 s8 u8")
_UNARY = with_trait("ynn-unary")
_OF_ANGLES = values("cosine sine tan")
_BINARY = values("add divide maximum minimum multiply power subtract")
_DOT_TYPES = values("f64,f64,f64 f32,f32,f32 bf16,bf16,f32 s8,s8,s32 u8,s8,s32")
_CONVOLUTION_TYPES = _DOT_TYPES - values("bf16,bf16,f32 u8,s8,s32")
_SUM_TYPES = values("f64,f64 f32,f32 f16,f32 bf16,f32 s8,s32 u8,s32")
_EXTREME_TYPES = values("u8 s8 bf16 f16 f32 f64")
_MOST_DIMENSIONS = 8
_LEAST_ELEMENTS = 4096
_LEAST_DOT_SIDE = 8
_LEAST_NARROW_SIDE = 4
_LEAST_CONVOLUTION_FEATURES = 17
_LEAST_REDUCED = 32 * 1024
_FASTER_FUSED = values("multiply bitcast broadcast slice concatenate convert reshape")
_DIM_LABELS = "b01f_01io->b01f"


def is_preferred(x: Instruction) -> bool:
    """Worth a call of the library (`IsInstructionPreferredByYnn`)."""
    if x.opcode in ("dot", "convolution"):
        return True
    shapes = [x.shape, *(o.shape for o in x.operands)]
    return any(s.is_array and s.element_count >= _LEAST_ELEMENTS for s in shapes)


def is_supported(x: Instruction, release: Release = AROUND_FUSION) -> bool:
    """True if it can be in a fusion of the library (`YnnMatcher::IsOpSupported`)."""
    is_supported = x.element_type in _TYPES
    match x.opcode:
        case "constant":
            return is_supported
        case opcode if release.ynn_reduces_at_length and opcode not in STARTS:
            return False
        case "iota":
            return x.element_type in ("f32", "s32") and _is_row_major(x.shape, release)
        case "reshape":
            return is_supported and _laid_out(x, release) and reshape_is_bitcast(x.operand.shape, x.shape)
        case "copy" if not release.ynn_copies_past_ones:
            return False
        case "bitcast" | "transpose" | "copy":
            return is_supported and _laid_out(x, release) and x.element_type == x.operand.element_type
        case "broadcast":
            return is_supported and _laid_out(x, release) and list(x.dimensions) == sorted(set(x.dimensions))
        case "pad":
            return is_supported and _is_pad_supported(x, release)
    if not is_preferred(x):
        return False
    if x.is_dot:
        return is_dot_supported(x, release)
    if x.opcode in ("reduce", "reduce-window"):
        return is_reduction_supported(x, release)
    if x.opcode == "convolution":
        return is_convolution_supported(x, release)
    return is_elementwise(x) and _is_elementwise_supported(x, release)


def is_computed_by_ynn(x: Instruction, release: Release) -> bool:
    """A library call, as the passes ahead of layout assignment see it (`call_library_for_instruction`)."""
    if x.opcode not in STARTS or not is_supported(x, release):
        return False
    # A product of bf16 that is too small for Eigen is too small for the library as well.
    return not x.is_dot or x.element_type == "bf16" or dot_strategy(x)[0] == EIGEN


def _is_row_major(shape: Shape, release: Release) -> bool:
    """`IsLayoutSupportedByYnn`."""
    if not shape.is_array or shape.rank > _MOST_DIMENSIONS:
        return False
    return (without_ones(shape) if release.ynn_copies_past_ones else shape).is_row_major


def _types(*shapes: Shape) -> str:
    return ",".join(s.element_type for s in shapes)


def _laid_out(x: Instruction, release: Release) -> bool:
    return all(_is_row_major(s, release) for s in (x.shape, x.operand.shape))


def _is_pad_supported(x: Instruction, release: Release) -> bool:
    operand, value = x.operands
    same = x.element_type == operand.element_type == value.element_type
    if not same or not _laid_out(x, release):
        return False
    return not any(
        p.interior or (n == 1 and (p.low or p.high))
        for n, p in zip(operand.sizes, x.attributes["padding"], strict=True)
    )


def _is_elementwise_supported(x: Instruction, release: Release) -> bool:
    if any(s.element_type not in _ELEMENTWISE_TYPES for s in (x.shape, *(o.shape for o in x.operands))):
        return False
    unary = _UNARY | _OF_ANGLES if release.ynn_computes_angles else _UNARY
    return x.opcode in {1: unary, 2: _BINARY}.get(x.operand_count, frozenset())


def is_dot_supported(dot: Instruction, release: Release) -> bool:
    """`IsDotSupportedByYnn`; a dot with one contracted and at most one free dimension on each side."""
    if dot.operand_count != 2:
        return False
    shapes = [dot.operand.shape, dot.second.shape, dot.shape]
    types = _types(*shapes)
    is_narrow = types == "bf16,bf16,bf16" and release.cpu_keeps_bf16
    if not (is_narrow or types in _DOT_TYPES) or not all(_is_row_major(s, release) for s in shapes):
        return False
    dims = DotDimensions.of(dot)
    batch = tuple(range(len(dims.lhs_batch)))
    if dims.lhs_batch != batch or dims.rhs_batch != batch:
        return False
    left, right, result = (s.dimensions[len(batch) :] for s in shapes)
    contracted = [dims.lhs_contracting, dims.rhs_contracting]
    if any(len(c) != 1 for c in contracted):
        return False
    if max(len(left), len(right), len(result)) > 2:
        return False
    a, b = (c[0] - len(batch) for c in contracted)
    m = left[1 - a] if len(left) > 1 else 1
    n = right[1 - b] if len(right) > 1 else 1
    if m == 1 or n == 1 or max(m, n, left[a]) < _LEAST_DOT_SIDE:
        return False
    if is_narrow and min(max(m, n), left[a]) < _LEAST_NARROW_SIDE:
        return False
    return len(left) <= 1 or a == 1


def is_reduction_supported(x: Instruction, release: Release) -> bool:
    """`IsReduceLikeOpSupportedByYnn`; in 0.9 `IsReduceLikeOpOffloadedToYnn`."""
    if x.operand_count != 2 or x.element_type not in _TYPES or not _laid_out(x, release):
        return False
    source, init = x.operands
    if x.is_reduce:
        if not x.dimensions:
            return False
    elif not _is_window_supported(x):
        return False
    if init.element_type != x.element_type:
        return False
    if release.ynn_reduces_at_length:
        is_long = source.element_count >= _LEAST_REDUCED
        if x.element_type != "f32" or not is_long or source.opcode in _FASTER_FUSED:
            return False
    function = x.to_apply
    if is_of_parameters(function, "add"):
        return _types(source.shape, x.shape) in _SUM_TYPES
    if is_of_parameters(function, "maximum") or is_of_parameters(function, "minimum"):
        return source.element_type == x.element_type and x.element_type in _EXTREME_TYPES
    return False


def _is_window_supported(x: Instruction) -> bool:
    new = 0
    for w in x.attributes["window"]:
        if w.size > 1 or w.stride > 1:
            if w.size > 1 and w.stride != w.size:
                return False
            if w.base_dilation != 1 or w.window_dilation != 1 or w.window_reversal:
                return False
            new += 1
    return 0 < new <= _MOST_DIMENSIONS - x.rank


def is_convolution_supported(x: Instruction, release: Release) -> bool:
    """`IsConvolutionOpSupportedByYnn`: of pictures, features last."""
    shapes = [x.operand.shape, x.second.shape, x.shape]
    if _types(*shapes) not in _CONVOLUTION_TYPES or not all(_is_row_major(s, release) for s in shapes):
        return False
    if x.raw("dim_labels") != _DIM_LABELS or str(x.attributes.get("batch_group_count", 1)) != "1":
        return False
    window = x.attributes["window"]
    source, kernel, result = (s.dimensions for s in shapes)
    if len(window) != 2 or max(source[3], result[3]) < _LEAST_CONVOLUTION_FEATURES:
        return False
    if any(result[d + 1] > source[d + 1] or kernel[d] > source[d + 1] for d in (0, 1)):
        return False
    return all(w.base_dilation == 1 and not w.window_reversal for w in window)


_CONFIG = '{"outer_dimension_partitions":[],"fusion_config":{"kind":"__ynn_fusion"}}'
_MOST_INSTRUCTIONS = 100
# Fusions start at these; those of dots and convolutions do not grow.
STARTS = values("dot convolution reduce reduce-window")
_VIEWS = values("bitcast broadcast copy")
_ALONE = values("dot convolution")


class LibraryRewriter(ReleasePass):
    """`dot-library-rewriter`; `starts` are the operations whose kind of fusion is on, by default all."""

    name = "dot-library-rewriter"
    starts: frozenset[str] = STARTS

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        starts = self.starts - _ALONE if self.release.ynn_reduces_at_length else self.starts
        for computation in module.non_fusion_computations():
            if not any(
                caller.opcode != "call"
                and any(n == "to_apply" and c is computation for n, c in caller.called)
                for caller in computation.callers
            ):
                changed |= _Growing(recorder, self.release).run(computation, starts)
        return changed


class _Growing(Struct):
    _recorder: Recorder
    _release: Release
    _fused: set[Instruction] = set()

    def run(self, computation: Computation, starts: frozenset[str]) -> bool:
        starters = [i for i in reversed(computation.post_order()) if i.opcode in starts]
        for start in starters:
            if start in self._fused or not is_supported(start, self._release):
                continue
            self._fused.add(start)
            fusion = create_fusion(start, "kCustom", "ynn_")
            set_attribute(fusion, "backend_config", _CONFIG)
            substituted(start, fusion)
            _widen(fusion.fused_root, start, self._release)
            self._recorder.created_instructions(start.name, [fusion], LIBRARY)
            grown = start.opcode not in _ALONE
            while grown:
                fusion, grown = self._fuse_neighbours(fusion)
            while self._release.ynn_ends_in_arithmetic and fusion.fused_root.opcode in _VIEWS:
                _move_root_out(fusion)
        return bool(self._fused)

    def _fuse_neighbours(self, fusion: Instruction) -> tuple[Instruction, bool]:
        """The fusion, which may have become part of another one, and whether it grew."""
        frontier = deque[tuple[Instruction, str]]()
        visited = {fusion}
        self._look_around(fusion, fusion, "both", frontier, visited)
        changed = False
        while frontier and len(fusion.fused_computation) < _MOST_INSTRUCTIONS:
            instruction, direction = frontier.popleft()
            if (
                instruction.fusion_kind == "kCustom"
                and instruction.raw("backend_config") == _CONFIG
                and len(fusion.fused_computation) + len(instruction.fused_computation) <= _MOST_INSTRUCTIONS
            ):
                fusion = _merge(fusion, instruction, direction)
                changed = True
                continue
            if not is_supported(instruction, self._release):
                continue
            self._fused.add(instruction)
            self._look_around(fusion, instruction, direction, frontier, visited)
            if direction == "up":
                new = append_producer(fusion, instruction)
                if not instruction.users:
                    instruction.parent.remove_instruction(instruction)
            else:
                new = _append_consumer(fusion, instruction)
            _widen(new, instruction, self._release)
            changed = True
        return fusion, changed

    def _look_around(
        self,
        fusion: Instruction,
        instruction: Instruction,
        direction: str,
        frontier: deque[tuple[Instruction, str]],
        visited: set[Instruction],
    ) -> None:
        """Add what could be fused next (`AddFusionCandidates`)."""
        if direction in ("up", "both"):
            for operand in instruction.operands:
                if operand in self._fused or operand in visited:
                    continue
                if all(u is fusion or u is instruction or u in self._fused for u in operand.users):
                    frontier.append((operand, "up"))
                    visited.add(operand)
        if instruction.user_count != 1 or direction == "up":
            return
        (user,) = instruction.users
        if user not in self._fused and user not in visited:
            frontier.append((user, "down"))
            visited.add(user)


def _merge(fusion: Instruction, other: Instruction, direction: str) -> Instruction:
    consumer, producer = (fusion, other) if direction == "up" else (other, fusion)
    merge_fusion(consumer, producer)
    producer.parent.remove_instruction(producer)
    return consumer


def _append_consumer(fusion: Instruction, consumer: Instruction) -> Instruction:
    """`consumer` becomes the fusion's root (`FuseConsumerInstruction`)."""
    body = fusion.fused_computation
    operands = []
    for operand in consumer.operands:
        if operand is fusion:
            operands.append(body.root)
            continue
        if operand not in fusion.operands:
            number = fusion.operand_count
            parameter = Instruction(f"param_{number}", operand.shape, "parameter", payload=str(number))
            body.add_instruction(parameter)
            fusion.append_operand(operand)
        operands.append(body.parameters[fusion.operands.index(operand)])
    body.root = body.add_instruction(consumer.clone(operands))
    fusion.shape = body.root.shape
    substituted(consumer, fusion)
    return body.root


def _move_root_out(fusion: Instruction) -> None:
    body, computation, users = fusion.fused_computation, fusion.parent, list(fusion.users)
    root, was_root = body.root, fusion.is_root
    after = computation.add_instruction(root.clone([fusion]))
    for user in users:
        fusion.replace_use_with(user, after)
    if was_root:
        computation.root = after
    (body.root,) = root.operands
    body.remove_instruction(root)
    fusion.shape = body.root.shape


def _widen(inner: Instruction, original: Instruction, release: Release) -> None:
    """A dot that the library computes in f32 is converted back (`InsertConvertIfNecessary`)."""
    if not original.is_dot or inner.element_type != "bf16" or release.cpu_keeps_bf16:
        return
    converted = make.add(inner, "convert", inner.shape, [inner])
    inner.replace_all_uses_with(converted)
    inner.shape = inner.shape.with_element_type("f32")
