"""Gives results the memory of arguments that the caller gives up.

Mirrors `OptimizeInputOutputBufferAlias` of `xla/hlo/transforms/simplifiers`.
"""

from collections import defaultdict
from typing import TypeVar

from hlofuse.analysis.async_ops import is_async_end, wrapped_opcode
from hlofuse.analysis.call_sites import CallSites, non_fusion_computations
from hlofuse.analysis.hlo_alias import Argument, InputOutputAlias, alias_config, write_alias_config
from hlofuse.analysis.hlo_dataflow import HloDataflow
from hlofuse.analysis.hlo_value import Index, subshape_at
from hlofuse.analysis.merged_order import MergedOrder
from hlofuse.ir.graph import Computation, Instruction, Module
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


# Lets a loop's body read a carried value before it writes the next one, so that it needs no copy.
#
_STARTS = frozenset({"all-gather-start", "all-reduce-start", "collective-permute-start", "recv", "send"})
_COLLECTIVES = frozenset(
    """
    all-gather all-reduce all-to-all collective-broadcast collective-permute ragged-all-to-all reduce-scatter
    """.split()
)
_NO_COLLECTIVES = frozenset({"copy-done"})


class LoopScheduleLinearizer(Pass):
    """`loop-schedule-linearizer`: control dependencies from reads of a carried element to its next write
    (`xla/service/loop_schedule_linearizer.cc`)."""

    name = "loop-schedule-linearizer"

    def run(self, module: Module, recorder: Recorder) -> bool:
        calls = CallSites(module)
        if not calls.is_flattened:
            return False
        dataflow: HloDataflow | None = None
        changed = False
        for computation in non_fusion_computations(module):
            for loop in computation:
                if loop.opcode != "while":
                    continue
                body = dict(loop.called)["body"]
                if any(map(_is_asynchronous_collective, body)):
                    continue  # more dependencies would keep it from overlapping with other work
                dataflow = dataflow or HloDataflow(module, calls)
                changed |= _linearize(body, dataflow)
        return changed


def _linearize(body: Computation, dataflow: HloDataflow) -> bool:
    """`AddControlEdgesForLoopWrites`."""
    order = MergedOrder(body)
    changed = False
    for before, after in zip(
        dataflow.values_of(body.parameters[0]), dataflow.values_of(body.root), strict=False
    ):
        if before is None or after is None or after is before:
            continue
        write = after.instruction
        if write.computation is not body or subshape_at(write.shape, after.index).is_tuple:
            continue
        for use in before.uses:
            read = use.instruction
            if read is write or read.computation is not body or not order.precede(read, write):
                continue
            if write not in read.control_successors:
                read.add_control_dependency_to(write)
                changed = True
    return changed


def _is_asynchronous_collective(x: Instruction) -> bool:
    """`IsAsyncCollectiveStartOp` or `IsAsyncCollectiveDoneOp`."""
    if x.opcode in _STARTS or wrapped_opcode(x.opcode) in _COLLECTIVES:
        return True
    if x.opcode in ("async-start", "async-done"):
        return any(root.opcode in _COLLECTIVES for _, c in x.called for root in [c.root])
    return is_async_end(x.opcode) and x.opcode not in _NO_COLLECTIVES and x.opcode != "async-update"
