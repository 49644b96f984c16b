"""Fusions that Triton emits: a reduction with what spreads its result again
(`xla/backends/gpu/transforms/softmax_rewriter_triton.cc`), and others it emits better than XLA."""

from collections.abc import Hashable
from dataclasses import field

from hlofuse.analysis.elementwise import ELEMENTWISE_BINARY, is_elementwise
from hlofuse.cost.gpu.backend_config import fusion_config
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.cost.gpu.shapes import normalized_transpose
from hlofuse.cost.gpu.summary_table import SharedTables
from hlofuse.cost.tiling.constraints import Tiling, backend_config_text
from hlofuse.cost.tiling.model import TilingModel
from hlofuse.cost.tiling.triton_support import TritonSupport
from hlofuse.ir import Attributes, Computation, Instruction, Module, Record, numbered, post_order, with_trait
from hlofuse.ir.fusing import set_fusion_kind
from hlofuse.ir.removing import remove_with_unused_operands, set_attribute
from hlofuse.passes.base import FixedPoint, ReleasePass, replaced
from hlofuse.passes.common.calls import filled
from hlofuse.passes.registry import make_pass
from hlofuse.releases import Release
from hlofuse.rules.rewrites import TRITON_SOFTMAX
from hlofuse.trace import OnlySkipped, Recorder
from .reductions import ReductionDimensionGrouper, ReductionSplitter, TreeReductionRewriter

_FREE = with_trait("free")  # opcodes that cost nothing to run


class SoftmaxRewriterTriton(ReleasePass):
    """`triton-softmax-rewriter`: only where the cost model finds the one kernel no slower than without it."""

    name = "triton-softmax-rewriter"
    device: DeviceDescription

    def run(self, module: Module, recorder: Recorder) -> bool:
        matcher = _Matcher(TritonSupport(self.device, self.release))
        found = []
        for computation in module.non_fusion_computations():
            if any(caller.opcode == "custom-call" for caller in computation.callers):
                continue
            for root in computation.post_order():
                producer = matcher.producer_of(root)
                if producer is not None:
                    _discard(_create_fusion(root, producer))  # XLA makes one to see whether it can be tiled
                    found.append((root, producer))
        configs = _BlockLevelConfigs(self.device, self.release)
        changed = False
        for root, producer in reversed(found):
            if root.computation is not None:
                changed |= _fuse(root, producer, configs, recorder)
        return changed


def _fuse(
    root: Instruction, producer: Instruction, configs: "_BlockLevelConfigs", recorder: Recorder
) -> bool:
    """`MaybeFuseDiamondImpl`."""
    fusion = _create_fusion(root, producer)
    config = configs.of(fusion)
    if config is None:
        _discard(fusion)
        return False
    set_attribute(fusion, "backend_config", config)
    name = root.name
    replaced(root, fusion)
    recorder.created_instructions(name, [fusion], TRITON_SOFTMAX)
    return True


class _BlockLevelConfigs:
    """Backend configs of fusions that are no slower than their operations; equal bodies are tried once."""

    def __init__(self, device: DeviceDescription, release: Release) -> None:
        self._device = device
        self._release = release
        self._tables = SharedTables()
        self._tilings = TilingModel(device, release)
        self._called = dict[Computation, Hashable]()
        self._configs = dict[Hashable, str | None]()

    def of(self, fusion: Instruction) -> str | None:
        """The config with the best tile sizes; None where the operations are faster without the fusion."""
        key = self._structure(fusion.fused_computation)
        if key not in self._configs:
            tiling, config = self._tilings.best_tiling(fusion), None
            if isinstance(tiling, Tiling) and self._time_without(fusion) >= tiling.estimate.ticks:
                config = backend_config_text(tiling.config, self._release)
            self._configs[key] = config
        return self._configs[key]

    def _structure(self, body: Computation) -> Hashable:
        """Equal for computations whose instructions, in order, differ only in names and metadata."""
        place = numbered(body)
        return place[body.root], tuple(
            (
                x.opcode,
                x.shape,
                x.payload,
                tuple(place[o] for o in x.operands),
                tuple((name, self._structure_of_called(c)) for name, c in x.called),
                tuple(x.attributes.without("metadata", "to_apply").raw_items.items()),
            )
            for x in place
        )

    def _structure_of_called(self, computation: Computation) -> Hashable:
        cached = self._called.get(computation)
        if cached is None:
            cached = self._called[computation] = self._structure(computation)
        return cached

    def _time_without(self, fusion: Instruction) -> int:
        """Ticks if later passes fuse it (`EstimateOptimizedHloRunTimeWithoutSoftMaxRewriterTriton`)."""
        alone = _extracted(fusion.fused_computation)
        for step in (
            ReductionDimensionGrouper(),
            FixedPoint(ReductionSplitter(self._device)),
            FixedPoint(TreeReductionRewriter(self._device)),
        ):
            step.run(alone, OnlySkipped())
        for name in _PASSES:  # `FusionPipeline`
            created = make_pass(name, "gpu", self._release, device=self._device, tables=self._tables)
            created.run(alone, OnlySkipped())
        model = KernelModel(self._device, self._release, shared=self._tables)
        return sum(model.run_time(i).ticks for i in alone.entry if i.opcode not in _FREE)


class _Matcher(Record):
    """The diamond: a producer read by a reduction and, with its broadcast result, by the root."""

    support: TritonSupport

    def producer_of(self, root: Instruction) -> Instruction | None:
        """`MatchesTritonCompatibleClosedReductionDiamondImpl`."""
        if root.opcode not in ELEMENTWISE_BINARY or not self._supported(root):
            return None
        broadcast = self._trivially_reached(root.second, "broadcast")
        reduce = self._trivially_reached(broadcast.operand, "reduce") if broadcast is not None else None
        if broadcast is None or reduce is None or not reduce.is_array:
            return None
        if not broadcast.shape.is_row_major or not reduce.shape.is_row_major:
            return None
        if not self._is_fusible_reduction(reduce) or broadcast.user_count != 1 or reduce.user_count != 1:
            return None
        if broadcast.rank - 1 in broadcast.dimensions:
            return None
        producer = reduce.operand
        while self._trivial(producer):
            producer = _followed(producer)
        left = root.operand
        if not producer.is_array or not producer.shape.is_row_major:
            return None
        if not self._leads_to(producer, left) or (producer is not left and left.user_count != 1):
            return None
        return producer

    def _supported(self, instruction: Instruction) -> bool:
        return self.support.instruction(instruction) is None

    def _trivial(self, instruction: Instruction) -> bool:
        """`IsTriviallyFusible`."""
        if instruction.user_count > 1 or not instruction.is_array or not instruction.shape.is_row_major:
            return False
        if instruction.is_bitcast:
            return True
        operands = instruction.operands
        if is_elementwise(instruction) and len(operands) == 1:
            return self._supported(instruction)
        if instruction.opcode in ELEMENTWISE_BINARY:
            one_is_splat = _is_splat(operands[0]) != _is_splat(operands[1])
            return (operands[0] is operands[1] or one_is_splat) and self._supported(instruction)
        return False

    def _trivially_reached(self, start: Instruction, opcode: str) -> Instruction | None:
        """`TrivialEdge`."""
        while start.opcode != opcode:
            if not self._trivial(start):
                return None
            start = _followed(start)
        return start

    def _leads_to(self, producer: Instruction, consumer: Instruction) -> bool:
        """`IsTriviallyConnectedProducerOf`."""
        while consumer is not producer:
            found = self._trivially_reached(consumer, producer.opcode)
            if found is None:
                return False
            if found is producer:
                return True
            if not self._trivial(found):
                return False
            consumer = found.operand
        return True

    def _is_fusible_reduction(self, reduce: Instruction) -> bool:
        """`ShouldFuseReduction`: over the last dimension, from a constant."""
        if not self._supported(reduce) or reduce.dimensions != (reduce.operand.rank - 1,):
            return False
        start = reduce.second
        if start.opcode == "convert":
            return start.operand.is_constant and self._supported(start)
        return start.is_constant


def _is_splat(instruction: Instruction) -> bool:
    """A broadcast of a scalar constant or of a parameter."""
    if not instruction.is_broadcast:
        return False
    source = instruction.operand
    return source.is_parameter or (source.is_constant and source.shape.is_effective_scalar)


def _followed(instruction: Instruction) -> Instruction:
    """`ChooseOperandForFusionProcessing`."""
    operands = instruction.operands
    return operands[1] if len(operands) > 1 and _is_splat(operands[0]) else operands[0]


def _create_fusion(root: Instruction, producer: Instruction) -> Instruction:
    """A fusion of everything from producer to root, next to the root (`MakeFusionForDiamond`)."""
    computation = root.parent
    body = Computation("triton_softmax_computation")
    inner = {}
    operands = [producer]
    order = post_order([root], lambda x: () if x is producer else x.operands)
    operands += [x for x in order if x.is_parameter and x is not producer]
    for number, outer in enumerate(operands):
        inner[outer] = body.append_parameter(f"parameter_{number}", outer.shape)
    for x in order:
        if x not in inner:
            inner[x] = body.append_parsed(x.clone([inner[o] for o in x.operands]))
    body.root = inner[root]
    computation.parent.add_computation(body)
    raw = {"kind": "kCustom", "calls": f"%{body.name}", "backend_config": _TRITON}
    fusion = Instruction(
        "triton_softmax", root.shape, "fusion", operands, Attributes(raw=raw), called=[("calls", body)]
    )
    return computation.add_instruction(fusion)


def _discard(fusion: Instruction) -> None:
    body, module = fusion.fused_computation, fusion.parent.parent
    remove_with_unused_operands(fusion)
    module.remove_computation(body)


_TRITON = '{"fusion_backend_config":{"kind":"__triton"}}'


def _extracted(body: Computation) -> Module:
    """The computation as a module of its own (`ExtractComputationIntoNewModule`)."""
    alone = Module("extracted")
    called = {}

    def copied(callee: Computation) -> Computation:
        if callee not in called:
            called[callee] = alone.add_computation(filled(Computation(callee.name), callee))
        return called[callee]

    alone.entry = alone.add_computation(filled(Computation("entry"), body, copied))
    return alone


_PASSES = tuple(
    "variadic-op-splitter sort-iota-fusion priority-fusion cse dce multi_output_fusion cse dce".split()
)


# Fusions that Triton emits better (`xla/backends/gpu/transforms/fusion_block_level_rewriter.cc`).


_REASON = "Triton emits the fusion better than the other emitters"


class FusionBlockLevelRewriter(ReleasePass):
    """`fusion-block-level-rewriter`: slow transposes and sums of s32 become Triton fusions."""

    name = "fusion-block-level-rewriter"
    device: DeviceDescription = field(compare=False, repr=False)

    def run(self, module: Module, recorder: Recorder) -> bool:
        found = [i for i in module.instructions() if _is_candidate(i)]
        if not found:
            return False
        release = self.release
        support, tilings = TritonSupport(self.device, release), TilingModel(self.device, release)
        changed = False
        for fusion in found:
            if any(support.instruction(x) is not None for x in fusion.fused_computation):
                continue
            tiling = tilings.best_tiling(fusion)
            if not isinstance(tiling, Tiling):
                continue
            set_fusion_kind(fusion, "kCustom")
            set_attribute(fusion, "backend_config", backend_config_text(tiling.config, release))
            recorder.rewrite(fusion.computation_name, [fusion.name], [fusion], _REASON)
            changed = True
        return changed


def _is_candidate(fusion: Instruction) -> bool:
    """`ShouldTryRewriteFusion`, for a fusion that has no tile sizes yet."""
    if not fusion.is_fusion or not (_is_slow_transpose(fusion) or _is_integer_sum(fusion)):
        return False
    if any(x.opcode in ("dot", "scaled-dot") for x in fusion.fused_computation):
        return False
    config = fusion_config(fusion)
    return config is None or not config.num_warps


def _is_slow_transpose(fusion: Instruction) -> bool:
    """The most minor dimension changes places with one that is neither of the last two."""
    root = fusion.fused_root
    if fusion.fusion_kind != "kLoop" or not root.is_transpose:
        return False
    source = root.operand
    normalized = normalized_transpose(source.shape, root.shape, root.dimensions)
    if normalized is None:
        return False
    order = normalized[1]
    rank = len(order)
    if order[order[-1]] != rank - 1 or order[-1] >= rank - 2:
        return False
    if source.is_bitcast:
        if not source.rank:
            return False
        minor = source.sizes[source.minor_to_major[0]]
        return minor.bit_count() == 1 and source.operand.is_parameter
    return source.is_parameter


def _is_integer_sum(fusion: Instruction) -> bool:
    """A reduce of s32: a dot of integers may have been rewritten as one."""
    root = fusion.fused_root
    return root.is_reduce and all(x.element_type == "s32" for x in (root, *root.operands))
