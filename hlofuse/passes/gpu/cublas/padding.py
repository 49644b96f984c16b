"""Matrix products padded to the sizes that tensor cores take
(`xla/backends/gpu/transforms/cublas_pad_for_gemms.cc`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.attributes.window import PaddingConfig, PaddingDimension
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.common.dots import DotDimensions
from hlofuse.passes.common.rewriting import replaced
from hlofuse.passes.gpu.matrix_layout import is_for_cublas
from hlofuse.trace import Recorder

_MULTIPLES = (("s8", 7, 4), ("f16", 7, 8), ("bf16", 8, 8))
"""Element types, since which compute capability, and to a multiple of what (`CublasPaddingRequirements`)."""


@dataclass(frozen=True)
class CublasPadForGemms(Pass):
    """`cublas-pad-for-gemms`, once for each element type that the device has tensor cores for."""

    name: ClassVar[str] = "cublas-pad-for-gemms"
    element_type: str
    multiple: int

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in module.non_fusion_computations():
            for dot in [i for i in computation if i.opcode == "dot"]:
                if dot.operands[0].shape.element_type == self.element_type and _is_padded(dot):
                    changed |= self._pad(dot)
        return changed

    def _pad(self, dot: Instruction) -> bool:
        """`PadForGemm`: the result is cut back."""
        lhs, rhs = dot.operands
        old = (lhs.shape, rhs.shape)
        new = (self._padded(lhs.shape), self._padded(rhs.shape))
        if new == old or rhs.shape.element_type != self.element_type:
            return False
        zero = make.scalar(dot, self.element_type, 0)
        pads = [
            make.pad(dot, shape, operand, zero, _missing(operand.shape, shape))
            for operand, shape in zip(dot.operands, new, strict=True)
        ]
        product = make.copy_of(dot, pads, self._padded(dot.shape))
        return replaced(dot, make.slice_of(dot, product, [0] * dot.shape.rank, dot.shape.dimensions))

    def _padded(self, shape: Shape) -> Shape:
        """The same layout, and more rows and columns."""
        *batch, rows, columns = shape.dimensions
        padded = (-(-n // self.multiple) * self.multiple for n in (rows, columns))
        return replace(shape, dimensions=(*batch, *padded))


def paddings(device: DeviceDescription) -> tuple[CublasPadForGemms, ...]:
    """The passes that a device asks for (`AddGemmPadding`)."""
    major = device.compute_capability[0]
    return tuple(CublasPadForGemms(of, multiple) for of, since, multiple in _MULTIPLES if major >= since)


def _is_padded(dot: Instruction) -> bool:
    """A product of matrices for cuBLAS, batch dimensions first (`GetRelevantDots`)."""
    dims = DotDimensions.of(dot)
    batch = tuple(range(len(dims.lhs_batch)))
    if any(dims.batch(n) != batch or o.shape.rank != len(batch) + 2 for n, o in enumerate(dot.operands)):
        return False
    return is_for_cublas(dot, of_vectors=False)


def _missing(old: Shape, new: Shape) -> PaddingConfig:
    return PaddingConfig(
        tuple(PaddingDimension(0, n - o) for o, n in zip(old.dimensions, new.dimensions, strict=True))
    )
