"""Rules about who runs a kernel on GPU, asked in the order in which XLA tells them apart. Codes EM0…. XLA
decides this after fusion, in `ThunkEmitter::EmitHloInstruction` (`xla/service/gpu/thunk_emitter.cc`),
`GetFusionEmitter` (`xla/backends/gpu/codegen/fusions.cc`) and `HloFusionAnalysis`
(`xla/service/gpu/hlo_fusion_analysis.cc`). What stands alone is wrapped into a fusion first."""

from hlofuse.rules.gpu_emitters import fusions, unfused
from .fusions import NOTES
from .unfused import GpuKernel

RULES = (*unfused.RULES, *fusions.RULES)  # The first that speaks settles it; the last speaks about everything
