"""Which dimension of a convolution's arrays is which."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class ConvolutionDimensionNumbers:
    """Dimension labels (`ConvolutionDimensionNumbers`), as three strings of one letter a dimension.

    `b` batch, `f` feature, `i` and `o` input and output feature, digits the spatial dimensions, `?` none
    of these.
    """

    lhs: str
    rhs: str
    output: str

    def _spatial(self, labels: str) -> tuple[int, ...]:
        return tuple(labels.index(str(n)) for n in range(sum(c.isdigit() for c in labels)))

    @property
    def input_batch_dimension(self) -> int:
        return self.lhs.find("b")

    @property
    def input_feature_dimension(self) -> int:
        return self.lhs.find("f")

    @cached_property
    def input_spatial_dimensions(self) -> tuple[int, ...]:
        return self._spatial(self.lhs)

    @property
    def kernel_input_feature_dimension(self) -> int:
        return self.rhs.find("i")

    @property
    def kernel_output_feature_dimension(self) -> int:
        return self.rhs.find("o")

    @cached_property
    def kernel_spatial_dimensions(self) -> tuple[int, ...]:
        return self._spatial(self.rhs)

    @property
    def output_batch_dimension(self) -> int:
        return self.output.find("b")

    @property
    def output_feature_dimension(self) -> int:
        return self.output.find("f")

    @cached_property
    def output_spatial_dimensions(self) -> tuple[int, ...]:
        return self._spatial(self.output)

    def __str__(self) -> str:
        return f"{self.lhs}_{self.rhs}->{self.output}"
