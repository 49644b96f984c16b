"""What moves to the host's memory (`xla/hlo/transforms/host_offloader.cc`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.ir.graph import Module
from hlofuse.passes.base import Pass
from hlofuse.passes.cse import HloCSE
from hlofuse.trace import Recorder


@dataclass(frozen=True)
class HostOffloader(Pass):
    """`host-offloader`, of which only the last step does anything to a module that stays on its device."""

    name: ClassVar[str] = "host-offloader"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return HloCSE(only_fusion_computations=False).run(module, recorder)
