"""Calls of CUB's radix sort as XLA:GPU emits them
(`xla/backends/gpu/transforms/estimate_cub_sort_scratch_size.cc`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.ir.graph import Instruction, Module
from hlofuse.passes.base import Pass
from hlofuse.passes.common.make import derived
from hlofuse.passes.common.rewriting import expand_each, replaced
from hlofuse.passes.sort.sort_rewriter import UNASSIGNED
from hlofuse.trace import Recorder


@dataclass(frozen=True)
class EstimateCubSortScratchSize(Pass):
    """`deviceless-estimate-cub-sort-scratch-size`.

    How much memory CUB asks for depends on its version: the call keeps the one byte that stands for it.
    """

    name: ClassVar[str] = "deviceless-estimate-cub-sort-scratch-size"

    def run(self, module: Module, recorder: Recorder) -> bool:
        found = [
            x for c in module.non_fusion_computations() for x in c if custom_call_target(x) == UNASSIGNED
        ]
        return expand_each(found, _assign, recorder)


def _assign(call: Instruction) -> None:
    keys = call.operands[0].shape
    rows = keys.element_count // keys.dimensions[-1]
    descending = "true" if "true" in (call.attributes.raw("backend_config") or "") else "false"
    kind = "pairs" if len(call.operands) == 2 else "keys"
    new = derived(
        call,
        "custom-call",
        call.shape,
        call.operands,
        custom_call_target=f'"xla.gpu.ext.cub_sort_{kind}"',
        api_version="API_VERSION_TYPED_FFI",
        backend_config=f"{{descending = {descending}, batch_size = {rows} : i64}}",
    )
    replaced(call, new)
