"""Makes iotas inside the sorts that read them (`xla/backends/gpu/transforms/sort_iota_fusion.cc`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.analysis.call_order import with_changed_after
from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.ir.fusing import append_producer, create_fusion
from hlofuse.ir.graph import Module
from hlofuse.ir.removing import replace_instruction
from hlofuse.passes.base import Pass
from hlofuse.rules.clean_up import IOTA_INTO_SORT
from hlofuse.trace import Recorder


@dataclass(frozen=True, kw_only=True)
class SortIotaFusion(Pass):
    """`sort-iota-fusion`."""

    name: ClassVar[str] = "sort-iota-fusion"

    def run(self, module: Module, recorder: Recorder) -> bool:
        if IOTA_INTO_SORT.code in self.settings.disabled:
            return False
        changed = set()
        for computation in module.non_fusion_computations():
            for sort in computation.post_order():
                if sort.opcode != "sort":
                    continue
                iotas = list(dict.fromkeys(o for o in sort.operands if o.opcode == "iota"))
                if not iotas:
                    continue
                name = sort.name
                fusion = create_fusion(sort, "kCustom")
                for iota in iotas:
                    append_producer(fusion, iota)
                names = [name, *[i.name for i in iotas]]
                replace_instruction(sort, fusion, has_side_effect)
                recorder.rewrite(
                    computation.name,
                    names,
                    [fusion.name],
                    rule=IOTA_INTO_SORT.code,
                    reason=IOTA_INTO_SORT.title,
                )
                changed.add(computation)
        if module.processing_order:
            module.processing_order = with_changed_after(module.processing_order, changed)
        return bool(changed)
