"""Scatters of indices in two dimensions that insert nothing (`xla/service/scatter_simplifier.cc`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.removing import replace_instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.common.index_vectors import flat_indices, is_simplified_scatter, moved, reshaped
from hlofuse.passes.common.reading import numbers_of
from hlofuse.passes.common.rewriting import NotRepresentable, rewrite_each
from hlofuse.trace import Recorder


@dataclass(frozen=True)
class ScatterSimplifier(Pass):
    """`scatter_simplifier`; a scatter into a scalar is left alone."""

    name: ClassVar[str] = "scatter_simplifier"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return rewrite_each(module, ["scatter"], _handle, recorder)


def _handle(x: Instruction) -> bool:
    return (
        bool(x.operands[0].shape.dimensions)
        and not is_simplified_scatter(x)
        and replace_instruction(x, _simplified(x), has_side_effect, relay_control_dependencies=True)
    )


def _simplified(scatter: Instruction) -> Instruction:
    count = len(scatter.operands) // 2
    bases, updates = scatter.operands[:count], scatter.operands[count + 1 :]
    if scatter.attributes.get("input_batching_dims"):
        raise NotRepresentable("a scatter with batch dimensions")
    indices = flat_indices(scatter.operands[count], int(scatter.attributes["index_vector_dim"]))
    said = {
        name: "true"
        for name in ("indices_are_sorted", "unique_indices")
        if scatter.attributes.raw(name) == "true"
    }
    return make.add(
        scatter,
        "scatter",
        bases[0].shape if count == 1 else Shape.tuple_of([b.shape for b in bases]),
        [*bases, indices, *(_flat(scatter, u) for u in updates)],
        called=[("to_apply", scatter.called_computations[0])],
        update_window_dims=make.numbers(range(1, bases[0].shape.rank + 1)),
        inserted_window_dims="{}",
        scatter_dims_to_operand_dims=make.numbers(numbers_of(scatter, "scatter_dims_to_operand_dims")),
        index_vector_dim=1,
        kept=said,
    )


def _flat(scatter: Instruction, updates: Instruction) -> Instruction:
    """One update below the other, each with all dimensions of the result (`FlattenAndTransposeUpdates`)."""
    window = numbers_of(scatter, "update_window_dims")
    outer = [d for d in range(updates.shape.rank) if d not in window]
    updates = moved(updates, [*outer, *window])
    sizes = list(updates.shape.dimensions)
    if len(outer) > 1:
        first = 1
        for n in sizes[: len(outer)]:
            first *= n
        updates = reshaped(updates, [first, *sizes[len(outer) :]])
    elif not outer:
        updates = reshaped(updates, [1, *sizes])
    inserted = numbers_of(scatter, "inserted_window_dims")
    if inserted:
        sizes = list(updates.shape.dimensions)
        for d in inserted:
            sizes.insert(d + 1, 1)
        updates = reshaped(updates, sizes)
    return updates
