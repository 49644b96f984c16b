"""Fusions that Triton emits better (`xla/backends/gpu/transforms/fusion_block_level_rewriter.cc`)."""

from dataclasses import dataclass, field

from hlofuse.cost.gpu.backend_config import fusion_config
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.shapes import normalized_transpose
from hlofuse.cost.tiling.model import TilingModel
from hlofuse.cost.tiling.tiling import Tiling, backend_config_text
from hlofuse.cost.tiling.triton_support import TritonSupport
from hlofuse.ir.fusing import set_fusion_kind
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.removing import set_attribute
from hlofuse.passes.base import Pass
from hlofuse.releases import AROUND_FUSION
from hlofuse.trace import Recorder

_REASON = "Triton emits the fusion better than the other emitters"


@dataclass(frozen=True)
class FusionBlockLevelRewriter(Pass):
    """`fusion-block-level-rewriter`: slow transposes and sums of s32 become Triton fusions."""

    name = "fusion-block-level-rewriter"
    device: DeviceDescription = field(compare=False, repr=False)

    def run(self, module: Module, recorder: Recorder) -> bool:
        found = [i for i in module.instructions() if _is_candidate(i)]
        if not found:
            return False
        release = AROUND_FUSION
        support, tilings = TritonSupport(self.device, release), TilingModel(self.device, release)
        changed = False
        for fusion in found:
            if any(support.instruction(x) is not None for x in fusion.fused_computation):
                continue
            tiling = tilings.best_tiling(fusion)
            if not isinstance(tiling, Tiling):
                continue
            set_fusion_kind(fusion, "kCustom")
            set_attribute(fusion, "backend_config", backend_config_text(tiling.block_level, AROUND_FUSION))
            computation = fusion.computation.name if fusion.computation is not None else ""
            recorder.rewrite(computation, [fusion.name], [fusion.name], rule="", reason=_REASON)
            changed = True
        return changed


def _is_candidate(fusion: Instruction) -> bool:
    """`ShouldTryRewriteFusion`, for a fusion that has no tile sizes yet."""
    if fusion.opcode != "fusion" or not (_is_slow_transpose(fusion) or _is_integer_sum(fusion)):
        return False
    if any(x.opcode in ("dot", "scaled-dot") for x in fusion.fused_computation):
        return False
    config = fusion_config(fusion)
    return config is None or not config.num_warps


def _is_slow_transpose(fusion: Instruction) -> bool:
    """The most minor dimension changes places with one that is neither of the last two."""
    root = fusion.fused_root
    if fusion.fusion_kind != "kLoop" or root.opcode != "transpose":
        return False
    source = root.operands[0]
    normalized = normalized_transpose(source.shape, root.shape, root.dimensions)
    if normalized is None:
        return False
    order = normalized[1]
    rank = len(order)
    if order[order[-1]] != rank - 1 or order[-1] >= rank - 2:
        return False
    if source.opcode == "bitcast":
        if not source.shape.rank:
            return False
        minor = source.shape.dimensions[source.shape.minor_to_major[0]]
        return minor.bit_count() == 1 and source.operands[0].opcode == "parameter"
    return source.opcode == "parameter"


def _is_integer_sum(fusion: Instruction) -> bool:
    """A reduce of s32: a dot of integers may have been rewritten as one."""
    root = fusion.fused_root
    return root.opcode == "reduce" and all(x.shape.element_type == "s32" for x in (root, *root.operands))
