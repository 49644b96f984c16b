"""Gives results the memory of arguments that the caller gives up.

Mirrors `OptimizeInputOutputBufferAlias` of `xla/hlo/transforms/simplifiers`.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TypeVar

from hlofuse.analysis.hlo_alias import Argument, InputOutputAlias, alias_config, write_alias_config
from hlofuse.analysis.shape_tree import Index, subshape_at
from hlofuse.ir.graph import Module
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass
from hlofuse.trace import Recorder

_Place = TypeVar("_Place")


class OptimizeInputOutputBufferAlias(Pass):
    """`optimize_input_output_buffer_alias`, for arguments that are registered as donors."""

    name = "optimize_input_output_buffer_alias"

    def run(self, module: Module, recorder: Recorder) -> bool:
        config = alias_config(module)
        if not config.donors:
            return False
        result = module.entry.root.shape
        if any(shape.dynamic_dimensions for shape in result.subshapes()):
            return False
        donors, results = _donors(module, config), _results(result, config)
        changed = False
        for space, arguments in donors.items():
            for output, argument in _matched(results.get(space, []), arguments):
                config.set_up(output, argument)
                changed = True
        if changed:
            write_alias_config(module, config)
        return changed


def _donors(module: Module, config: InputOutputAlias) -> dict[str, list[tuple[int, Argument]]]:
    """Arguments that may be overwritten and are not yet, with their bytes, by memory space."""
    found: dict[str, list[tuple[int, Argument]]] = defaultdict(list)
    for parameter in module.entry.parameters:
        for index, shape in parameter.shape.leaves():
            argument = (parameter.parameter_number, index)
            if argument in config.donors and not config.is_aliased(argument) and _is_static(shape):
                found[_space(shape)].append((shape.byte_size, argument))
    return found


def _results(shape: Shape, config: InputOutputAlias) -> dict[str, list[tuple[int, Index]]]:
    """Results that lie in no argument's memory yet."""
    found: dict[str, list[tuple[int, Index]]] = defaultdict(list)
    for index, _ in shape.leaves():
        leaf = subshape_at(shape, index)
        if leaf.is_array and index not in config.aliases:
            found[_space(leaf)].append((leaf.byte_size, index))
    return found


def _matched(
    results: list[tuple[int, Index]], arguments: list[tuple[int, Argument]]
) -> list[tuple[Index, Argument]]:
    """Pairs of equal size, the largest first."""
    results, arguments = _largest_first(results), _largest_first(arguments)
    found: list[tuple[Index, Argument]] = []
    i = k = 0
    while i < len(results) and k < len(arguments):
        (size, output), (room, argument) = results[i], arguments[k]
        if size == room:
            found.append((output, argument))
        i += size >= room
        k += room >= size
    return found


def _largest_first(sized: list[tuple[int, _Place]]) -> list[tuple[int, _Place]]:
    return sorted(sized, key=lambda pair: -pair[0])


def _is_static(shape: Shape) -> bool:
    return shape.is_array and not shape.dynamic_dimensions


def _space(shape: Shape) -> str:
    """The memory space that the layout names, such as `S(5)`; empty for the usual one."""
    suffix = shape.layout.suffix if shape.layout is not None else ""
    return suffix[suffix.index("S(") :].partition(")")[0] if "S(" in suffix else ""
