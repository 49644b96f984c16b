"""Gives results the memory of arguments that the caller gives up, as `OptimizeInputOutputBufferAlias` of
`xla/hlo/transforms/simplifiers`, and which buffers XLA:GPU's kernels may share
(`xla/service/gpu/{alias_info,nvptx_alias_info}.cc`)."""

from collections import defaultdict
from functools import cached_property
from typing import TypeVar

from hlofuse.analysis.alias_info import AliasInfo
from hlofuse.analysis.async_ops import is_async_end, wrapped_opcode
from hlofuse.analysis.call_sites import CallSites, non_fusion_computations
from hlofuse.analysis.components import MergedOrder
from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.analysis.elementwise import is_elementwise, is_elementwise_on_operand
from hlofuse.analysis.hlo_alias import Argument, InputOutputAlias, alias_config, write_alias_config
from hlofuse.analysis.hlo_dataflow import HloDataflow
from hlofuse.analysis.hlo_value import Index, subshape_at
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.ir import Computation, Instruction, Module, Shape, reach, values, with_trait
from hlofuse.passes.base import Pass
from hlofuse.releases import Release
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
        if any(shape.dynamic_dimensions for _, shape in result.subshapes()):
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
            is_static = shape.is_array and not shape.dynamic_dimensions
            if argument in config.donors and not config.is_aliased(argument) and is_static:
                found[_space(shape)].append((shape.byte_size, argument))
    return found


def _results(shape: Shape, config: InputOutputAlias) -> dict[str, list[tuple[int, Index]]]:
    found: dict[str, list[tuple[int, Index]]] = defaultdict(list)
    for index, leaf in shape.leaves():
        if leaf.is_array and index not in config.aliases:
            found[_space(leaf)].append((leaf.byte_size, index))
    return found


def _matched(
    results: list[tuple[int, Index]], arguments: list[tuple[int, Argument]]
) -> list[tuple[Index, Argument]]:
    """Pairs of equal size, the largest first."""
    results, arguments = _largest_first(results), _largest_first(arguments)
    found = []
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


def _space(shape: Shape) -> str:
    """The memory space that the layout names, such as `S(5)`; empty for the usual one."""
    suffix = shape.layout.suffix if shape.layout is not None else ""
    return suffix[suffix.index("S(") :].partition(")")[0] if "S(" in suffix else ""


# Lets a loop's body read a carried value before it writes the next one, so that it needs no copy.
#
_STARTS = with_trait("collective-start") | {"recv", "send"}
_COLLECTIVES = with_trait("collective")
_NO_COLLECTIVES = values("copy-done")


class LoopScheduleLinearizer(Pass):
    """Control dependencies from reads of a carried element to its write (`loop_schedule_linearizer.cc`)."""

    name = "loop-schedule-linearizer"

    def run(self, module: Module, recorder: Recorder) -> bool:
        calls = CallSites(module)
        if not calls.is_flattened:
            return False
        dataflow: HloDataflow | None = None
        changed = False
        for computation in non_fusion_computations(module):
            for loop in computation:
                if not loop.is_while:
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
    for before, after in zip(dataflow.values_of(body.parameter), dataflow.values_of(body.root), strict=False):
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
        return any(root.opcode in _COLLECTIVES for c in x.called_computations for root in [c.root])
    return is_async_end(x.opcode) and x.opcode not in _NO_COLLECTIVES and x.opcode != "async-update"


_MATMUL = "__cublas$lt$matmul"


class GpuAliasInfo(AliasInfo):
    def __init__(self, device: DeviceDescription, release: Release) -> None:
        super().__init__(release)
        self._device = device

    @cached_property
    def _model(self) -> KernelModel:
        return KernelModel(self._device, self._release)

    def may_alias(
        self, operand: Instruction, operand_index: Index, user: Instruction, user_index: Index
    ) -> bool | None:
        if user.opcode in ("all-reduce", "collective-broadcast"):
            return user.operand_count == 1 or (
                len(user_index) == 1 and user.operands[user_index[0]] is operand
            )
        if user.opcode == "custom-call":
            return _is_added_matrix(operand, user, user_index)
        if user.is_fusion:
            return _Fusion(self._model, user, user_index).can_overwrite(operand)
        return None


def _is_added_matrix(operand: Instruction, call: Instruction, user_index: Index) -> bool:
    if custom_call_target(call) != _MATMUL or call.operand_count < 3 or user_index != (0,):
        return False
    config = call.attributes.get("backend_config") or {}
    beta = config.get("gemm_backend_config", {}).get("beta", 0) if isinstance(config, dict) else 0
    return bool(beta) and operand is call.operands[2] and call.operands.count(operand) == 1


class _Fusion:
    """A fusion and one of its results (`FusionCanShareBufferHint`)."""

    def __init__(self, model: KernelModel, fusion: Instruction, user_index: Index) -> None:
        self._model = model
        self._fusion = fusion
        self._index = user_index
        output = fusion.fused_root
        for k in user_index:
            if output.opcode != "tuple":
                break
            output = output.operands[k]
        self._output = output
        self._root = output.past("bitcast")  # The output, or what it is a bitcast of

    def can_overwrite(self, operand: Instruction) -> bool:
        """True if each element is read before its place is written."""
        fusion = self._fusion
        if not _same_size(operand.shape, subshape_at(fusion.shape, self._index)):
            return False
        reduction = self._reduction()
        start = fusion.parameter_of(operand)
        reached = set(reach([start], lambda x: () if x is reduction else x.users))
        edges = ((x, user) for x in reached - {reduction} for user in x.users)
        if not all(self._keeps_order(x, user, reduction) for x, user in edges):
            return False
        return self._output in reached and not self._other_result_disagrees(reached)

    def _keeps_order(self, x: Instruction, user: Instruction, reduction: Instruction | None) -> bool:
        """True if `user` reads `x` element by element as the result is written."""
        root, number = self._root, user.operands.index(x)
        if user is root and user.opcode == "scatter" and user.operands.count(x) == 1:
            results = user.tuple_size if user.is_tuple else 1
            if number < results:
                return True
        if user is root and user.opcode == "sort" and user.operands.count(x) == 1:
            return self._index == (number,)
        if (
            root.opcode == "dynamic-update-slice"
            and user.opcode == "dynamic-slice"
            and root.operand is user.operand
            and user.shape.key == root.second.shape.key
        ):
            # The slice that is overwritten is read; of single elements it does not matter which.
            return user.shape.is_effective_scalar or user.operands[1:] == root.operands[2:]
        if (
            (is_elementwise_on_operand(user, number) and user.opcode != "copy")
            or user.opcode in ("bitcast", "tuple")
            or user is reduction
        ):
            return True
        return user is root and user.opcode == "dynamic-update-slice" and number == 1

    def _reduction(self) -> Instruction | None:
        """The reduction that the kernel computes before it writes anything (`FindHeroReduction`)."""
        fusion = self._fusion
        if self._model.launch(fusion).kind != "reduction":
            return None
        for output, root in zip(fusion.fused_root.outputs, self._model.summary(fusion).roots, strict=False):
            if root.is_reduction:
                while not output.is_reduce and output.operands:
                    output = output.operand
                return output if output.is_reduce else None
        return None

    def _other_result_disagrees(self, reached: set[Instruction]) -> bool:
        """True if the operand is part of another result too, which is written in another order."""
        outputs = self._fusion.fused_root.outputs
        if len(outputs) < 2 or not any(o in reached and o is not self._output for o in outputs):
            return False
        if not is_elementwise(self._root):
            return True
        if self._model.launch(self._fusion).kind == "loop":
            return any(o in reached and o.opcode in ("transpose", "copy") for o in outputs)
        heroes = [root.hero[0] for root in self._model.summary(self._fusion).roots]
        return any(
            o in reached and hero is not None and hero.opcode in ("transpose", "copy")
            for o, hero in zip(outputs, heroes, strict=False)
        )


def _same_size(a: Shape, b: Shape) -> bool:
    """True for equal shapes, and for arrays of as many elements as wide."""
    if a.key == b.key:
        return True
    return a.is_array and b.is_array and a.element_count == b.element_count and _width(a) == _width(b)


def _width(shape: Shape) -> int:
    """Bits of an element; those of a pred are one (`primitive_util::BitWidth`)."""
    return 1 if shape.element_type == "pred" else shape.bit_width
