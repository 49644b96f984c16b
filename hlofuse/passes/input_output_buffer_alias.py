"""Results that take the memory of donated arguments of their size
(`xla/hlo/transforms/simplifiers/optimize_input_output_buffer_alias.cc`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from hlofuse.analysis.bitcasts import shape_size
from hlofuse.ir.attributes.attributes import Attributes
from hlofuse.ir.attributes.metadata import DonorEntry, InputAlias, ShapeIndex
from hlofuse.ir.graph import Module
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass
from hlofuse.trace import Recorder


@dataclass(frozen=True, slots=True)
class _Buffer:
    parameter: int
    """The number of the parameter; 0 for a result."""
    index: ShapeIndex
    size: int


@dataclass(frozen=True)
class OptimizeInputOutputBufferAlias(Pass):
    """`optimize_input_output_buffer_alias`, for arguments that the program donates."""

    name: ClassVar[str] = "optimize_input_output_buffer_alias"

    def run(self, module: Module, recorder: Recorder) -> bool:
        donated: tuple[DonorEntry, ...] = module.attributes.get("buffer_donor") or ()
        if not donated:
            return False
        aliases: tuple[InputAlias, ...] = module.attributes.get("input_output_alias") or ()
        results = _results(module.entry.root.shape, {a.output_index for a in aliases})
        donors = _donors(module, donated, {(a.parameter_number, a.parameter_index) for a in aliases})
        found = _matched(donors, results)
        if not found:
            return False
        taken = {(a.parameter_number, a.parameter_index) for a in found}
        left = [d for d in donated if (d.parameter_number, d.parameter_index) not in taken]
        _write(module, sorted((*aliases, *found), key=lambda a: a.output_index), left)
        return True


def _results(shape: Shape, aliased: set[ShapeIndex]) -> list[_Buffer]:
    leaves = list(shape.leaves())
    if any(leaf.dynamic_dimensions for _, leaf in leaves):
        return []
    return [_Buffer(0, i, shape_size(s)) for i, s in leaves if s.is_array and i not in aliased]


def _donors(
    module: Module, donated: Sequence[DonorEntry], aliased: set[tuple[int, ShapeIndex]]
) -> list[_Buffer]:
    registered = {(d.parameter_number, d.parameter_index) for d in donated} - aliased
    return [
        _Buffer(number, index, shape_size(shape))
        for number, parameter in enumerate(module.entry.parameters)
        for index, shape in parameter.shape.leaves()
        if (number, index) in registered and shape.is_array and not shape.dynamic_dimensions
    ]


def _matched(donors: list[_Buffer], results: list[_Buffer]) -> list[InputAlias]:
    """Pairs of equal size, greatest first."""
    donors.sort(key=lambda b: -b.size)
    results.sort(key=lambda b: -b.size)
    found: list[InputAlias] = []
    d = r = 0
    while d < len(donors) and r < len(results):
        donor, result = donors[d], results[r]
        if donor.size == result.size:
            found.append(InputAlias(result.index, donor.parameter, donor.index))
        d += donor.size >= result.size
        r += donor.size <= result.size
    return found


def _write(module: Module, aliases: Sequence[InputAlias], donors: Sequence[DonorEntry]) -> None:
    """The header's attributes, where XLA prints them."""
    texts = {"input_output_alias": aliases, "buffer_donor": donors}
    new = {name: f"{{ {', '.join(map(str, entries))} }}" for name, entries in texts.items() if entries}
    raw: dict[str, str] = {}
    for name, value in module.attributes.raw_items.items():
        if name in texts:
            raw |= new
        else:
            raw[name] = value
    module.attributes = Attributes(raw=raw)
