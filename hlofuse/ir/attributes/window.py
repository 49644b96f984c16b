"""Windows, padding and slices, by dimension."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hlofuse.ir.record import Record
from hlofuse.ir.shape import Dims


class WindowDimension(Record):
    """One dimension of a window (`WindowDimension` in `xla/xla_data.proto`)."""

    size: int
    stride: int = 1
    padding_low: int = 0
    padding_high: int = 0
    window_dilation: int = 1  # Written `rhs_dilate`
    base_dilation: int = 1  # Written `lhs_dilate`
    window_reversal: bool = False


class Window(tuple[WindowDimension, ...]):
    """A window moved over an array (`Window`); the text is that of `window_util::ToString`."""

    __slots__ = ()

    def __str__(self) -> str:
        parts = []

        def add(key: str, usual: str, text: Callable[[WindowDimension], str]) -> None:
            texts = list(map(text, self))
            if set(texts) - {usual}:
                parts.append(f"{key}={'x'.join(texts)}")

        add("size", "", lambda d: str(d.size))
        add("stride", "1", lambda d: str(d.stride))
        add("pad", "0_0", lambda d: f"{d.padding_low}_{d.padding_high}")
        add("lhs_dilate", "1", lambda d: str(d.base_dilation))
        add("rhs_dilate", "1", lambda d: str(d.window_dilation))
        add("rhs_reversal", "0", lambda d: str(int(d.window_reversal)))
        return "{" + " ".join(parts) + "}"


_USUAL = {"size": 1, "stride": 1, "pad": (0, 0), "rhs_dilate": 1, "lhs_dilate": 1, "rhs_reversal": 0}
"""The fields of a window, with what stands for one that is not written."""


def window_of(fields: Mapping[str, Sequence[Any]]) -> Window:
    """The window with these fields, each with a value a dimension; `ValueError` for differing numbers."""
    rank = len(fields.get("size", ()))
    rows = zip(*(fields.get(key, [usual] * rank) for key, usual in _USUAL.items()), strict=True)
    return Window(
        WindowDimension(size, stride, low, high, rhs, lhs, reversal == 1)
        for size, stride, (low, high), rhs, lhs, reversal in rows
    )


class PaddingDimension(Record):
    """Padding of one dimension (`PaddingConfigDimension`)."""

    low: int
    high: int
    interior: int = 0


class PaddingConfig(tuple[PaddingDimension, ...]):
    """Padding around and between the elements (`PaddingConfig`)."""

    __slots__ = ()

    @classmethod
    def of_text(cls, text: str) -> "PaddingConfig":
        return cls(PaddingDimension(*map(int, d.split("_"))) for d in text.split("x"))

    def __str__(self) -> str:
        interior = any(d.interior for d in self)
        return "x".join(f"{d.low}_{d.high}_{d.interior}" if interior else f"{d.low}_{d.high}" for d in self)


class SliceRange(Record):
    """The range of a slice in one dimension: `[start:limit:stride]`."""

    start: int
    limit: int
    stride: int = 1

    def __str__(self) -> str:
        stride = f":{self.stride}" if self.stride != 1 else ""
        return f"[{self.start}:{self.limit}{stride}]"


class SliceRanges(tuple[SliceRange, ...]):
    """The ranges of a slice, one a dimension (`HloSliceInstruction`'s starts, limits and strides)."""

    __slots__ = ()

    @property
    def starts(self) -> Dims:
        return tuple(r.start for r in self)

    @property
    def limits(self) -> Dims:
        return tuple(r.limit for r in self)

    @property
    def strides(self) -> Dims:
        return tuple(r.stride for r in self)

    def __str__(self) -> str:
        if any(r.stride != 1 for r in self):
            return "{" + ", ".join(f"[{r.start}:{r.limit}:{r.stride}]" for r in self) + "}"
        return "{" + ", ".join(map(str, self)) + "}"


def _dimension(side: str, letter: str) -> cached_property[int]:
    return cached_property(lambda numbers: getattr(numbers, side).find(letter))


def _spatial(side: str) -> cached_property[Dims]:
    def found(numbers: object) -> Dims:
        labels: str = getattr(numbers, side)
        return tuple(map(labels.index, sorted(filter(str.isdigit, labels))))

    return cached_property(found)


@dataclass(frozen=True)
class ConvolutionDimensionNumbers:
    """Dimension labels (`ConvolutionDimensionNumbers`), as three strings of one letter a dimension. `b`
    batch, `f` feature, `i` and `o` input and output feature, digits the spatial dimensions, `?` others."""

    lhs: str
    rhs: str
    output: str
    input_batch_dimension = _dimension("lhs", "b")
    input_feature_dimension = _dimension("lhs", "f")
    input_spatial_dimensions = _spatial("lhs")
    kernel_input_feature_dimension = _dimension("rhs", "i")
    kernel_output_feature_dimension = _dimension("rhs", "o")
    kernel_spatial_dimensions = _spatial("rhs")
    output_batch_dimension = _dimension("output", "b")
    output_feature_dimension = _dimension("output", "f")
    output_spatial_dimensions = _spatial("output")

    def __str__(self) -> str:
        return f"{self.lhs}_{self.rhs}->{self.output}"
