"""Rules about who runs a kernel on CPU, asked in XLA's order. Codes EC0….

XLA decides this in `ThunkEmitter::EmitHloInstruction` (`xla/service/cpu/thunk_emitter.cc`) and
`EmitFusionKernel` (`xla/backends/cpu/codegen/fusion_emitter.cc`).
"""

from hlofuse.rules.cpu_emitters import fusions, libraries, operations

RULES = (*libraries.RULES, *fusions.RULES, *operations.RULES)
"""Asked of an instruction; the last speaks about everything."""

NOTES = (fusions.strength_reduced,)

__all__ = ["NOTES", "RULES"]
