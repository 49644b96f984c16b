"""Elements taken from and put into an array at indices that another array holds
(`HandleGather` and `HandleScatter`, `xla/hlo/evaluator/hlo_evaluator.cc`)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hlofuse.ir.graph import Instruction
from hlofuse.passes.common.literals import Value
from hlofuse.passes.common.shapes import numbers_of

_Names = tuple[str, str, str, str, str]
_GATHER = (
    *("offset_dims", "collapsed_slice_dims"),
    *("start_index_map", "operand_batching_dims", "start_indices_batching_dims"),
)
_SCATTER = (
    *("update_window_dims", "inserted_window_dims"),
    *("scatter_dims_to_operand_dims", "input_batching_dims", "scatter_indices_batching_dims"),
)


def gathered(gather: Instruction, values: Sequence[Value], indices: Sequence[int]) -> list[Value]:
    """The elements of a gather; a slice that would reach beyond the array is moved into it."""
    slices = _Slices.of(gather, _GATHER, gather.operands[0], gather.operands[1])
    sizes, result = slices.base, gather.shape.dimensions
    out: list[Value] = [False] * gather.shape.element_count
    for batch in slices.batches(result):
        start = slices.start(batch, indices)
        start = [min(max(k, 0), n - w) for k, n, w in zip(start, sizes, slices.windows(result), strict=True)]
        for place, offset in slices.elements(batch, result):
            out[_place(result, place)] = values[
                _place(sizes, [a + b for a, b in zip(start, offset, strict=True)])
            ]
    return out


def scattered(
    scatter: Instruction,
    values: Sequence[Value],
    indices: Sequence[int],
    updates: Sequence[Value],
    combine: Callable[[Value, Value], Value],
) -> list[Value]:
    """The elements of a scatter into one array; a window that would reach beyond it is left out."""
    base, index, update = scatter.operands
    slices = _Slices.of(scatter, _SCATTER, base, index)
    sizes, given = slices.base, update.shape.dimensions
    out = list(values)
    for batch in slices.batches(given):
        start = slices.start(batch, indices)
        if any(not 0 <= k <= n - w for k, n, w in zip(start, sizes, slices.windows(given), strict=True)):
            continue
        for place, offset in slices.elements(batch, given):
            target = _place(sizes, [a + b for a, b in zip(start, offset, strict=True)])
            out[target] = combine(out[target], updates[_place(given, place)])
    return out


@dataclass(frozen=True)
class _Slices:
    """Where the dimensions of a gather's result or of a scatter's updates come from."""

    base: Sequence[int]
    """Sizes of the array."""
    index: Sequence[int]
    """Sizes of the array of indices."""
    vector: int
    """Its dimension that holds the parts of one index."""
    window: Sequence[int]
    whole: Sequence[int]
    """The array's dimensions that a window has, in order."""
    mapped: Sequence[int]
    batching: Sequence[tuple[int, int]]
    """Dimensions of the array that go along with one of the indices."""

    @classmethod
    def of(cls, x: Instruction, names: _Names, base: Instruction, index: Instruction) -> _Slices:
        window, collapsed, mapped, batching, along = (numbers_of(x, n) for n in names)
        vector = int(x.attributes["index_vector_dim"])
        whole = [d for d in range(base.shape.rank) if d not in collapsed and d not in batching]
        pairs = [(d, a - (a > vector)) for d, a in zip(batching, along, strict=True)]
        return cls(base.shape.dimensions, index.shape.dimensions, vector, window, whole, mapped, pairs)

    def batches(self, sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
        return itertools.product(*(range(n) for d, n in enumerate(sizes) if d not in self.window))

    def windows(self, sizes: Sequence[int]) -> list[int]:
        """How far a window reaches in each dimension of the array."""
        out = [1] * len(self.base)
        for d, w in zip(self.whole, self.window, strict=True):
            out[d] = sizes[w]
        return out

    def start(self, batch: tuple[int, ...], indices: Sequence[int]) -> list[int]:
        out = [0] * len(self.base)
        for d, along in self.batching:
            out[d] = batch[along]
        for k, d in enumerate(self.mapped):
            vector = (k,) if self.vector < len(self.index) else ()
            out[d] = indices[_place(self.index, (*batch[: self.vector], *vector, *batch[self.vector :]))]
        return out

    def elements(
        self, batch: tuple[int, ...], sizes: Sequence[int]
    ) -> Iterator[tuple[list[int], Sequence[int]]]:
        """Where the elements of a window are in the result or the updates, and how far from its start."""
        for inner in itertools.product(*(range(sizes[w]) for w in self.window)):
            outer, offsets = iter(batch), iter(inner)
            place = [next(offsets) if d in self.window else next(outer) for d in range(len(sizes))]
            offset = [0] * len(self.base)
            for d, k in zip(self.whole, inner, strict=True):
                offset[d] = k
            yield place, offset


def _place(sizes: Sequence[int], index: Sequence[int]) -> int:
    place = 0
    for size, k in zip(sizes, index, strict=True):
        place = place * size + k
    return place
