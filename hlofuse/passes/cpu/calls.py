"""Tasks of a kernel on several threads (`xla/service/cpu/parallel_task_assignment.cc`), whole loops."""

import math

from hlofuse.analysis.convolution import why_not_eigen
from hlofuse.analysis.cost import Cost, CostAnalysis
from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.analysis.kernels import SMALL_CALL
from hlofuse.ir import Computation, Instruction, Module, Shape, values, with_trait
from hlofuse.ir.removing import bridge_control_dependencies
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.rules.rewrites import SMALL_LOOP
from hlofuse.trace import Recorder

_DIVISIBLE = with_trait("cpu-parallel")
_BYTES_OF_TASK = 256 << 10
_CYCLES_OF_TASK = 100_000
_CYCLES_OF_BYTE, _CYCLES_OF_TRANSCENDENTAL = 10, 2


def parallel_tasks(x: Instruction, threads: int, costs: CostAnalysis | None = None) -> int:
    """The number of parts into which that many threads divide an instruction."""
    shape = _indexed_shape(x)
    if threads == 1 or shape is None or not _is_divisible(x):
        return 1
    if costs is None:
        costs = CostAnalysis()
    tasks = _tasks(costs.instruction(x), threads)
    return max(math.prod(partition_counts(shape, tasks)), 1)  # of an empty array


def _tasks(cost: Cost, threads: int) -> int:
    """`DefaultCostModel::GetParallelTaskCount`."""
    accessed = cost.bytes_accessed
    if cost.flops <= max(accessed, 1):  # bound by memory, which more threads do not speed up
        most = min(threads, math.ceil(math.sqrt(threads)))
        count = max(accessed, 1) // _BYTES_OF_TASK
    else:
        most = threads
        cycles = cost.flops + _CYCLES_OF_TRANSCENDENTAL * cost.transcendentals + _CYCLES_OF_BYTE * accessed
        count = cycles // _CYCLES_OF_TASK
    return min(most, max(1, count))


def _is_divisible(x: Instruction) -> bool:
    """Each part of the result can be computed without the others (`GetTargetParallelTaskCount`)."""
    opcode = x.opcode
    if opcode in ("constant", "rng") or _may_update_in_place(x):
        return False
    if x.fusion_kind in ("kLoop", "kCustom"):
        return x.fusion_kind == "kLoop"
    if opcode == "convolution":
        return why_not_eigen(x) is not None
    return x.is_array and (opcode in _DIVISIBLE or is_elementwise(x))


def _may_update_in_place(x: Instruction) -> bool:
    """`MayBeImplementedAsInPlaceDynamicUpdateSlice`."""
    if x.opcode == "dynamic-update-slice":
        return True
    if x.fusion_kind != "kLoop" or x.fused_root.opcode != "dynamic-update-slice":
        return False
    return x.fused_root.operand.through("get-tuple-element").is_parameter


def _indexed_shape(x: Instruction) -> Shape | None:
    """The array that is divided: the result or its first element."""
    shape = x.shape
    for _ in range(2):
        if shape.is_tuple:
            if not shape.tuple_shapes:
                return None
            shape = shape.tuple_shapes[0]
    return shape if shape.is_array else None


def partition_counts(shape: Shape, target: int) -> list[int]:
    """Parts of the outermost dimensions, in all at most `target` (`ShapePartitionAssigner::Run`)."""
    outer = []
    size = 1
    for dimension in reversed(shape.minor_to_major):
        outer.append(shape.dimensions[dimension])
        size *= outer[-1]
        if size >= target:
            break
    if not outer:
        return []
    target = min(size, target)
    each = int(target ** (1 / len(outer)))
    counts = [min(n, each) for n in outer]
    if 0 < math.prod(counts) < target:
        for k, n in enumerate(outer):
            others = math.prod(counts) // counts[k]
            counts[k] += max(0, min(n - counts[k], target // others - counts[k]))
    return counts


_UNAVAILABLE = (
    with_trait("collective") | with_trait("collective-start") | with_trait("collective-done")
) | values("custom-call fft infeed outfeed partition-id replica-id scatter sort")


class SmallWhileLoopHoisting(Pass):
    """`small-while-loop-hoisting`: loops over little data become calls, each one kernel, inner ones first
    (`xla/service/cpu/small_while_loop_hoisting_pass.cc`)."""

    name = "small-while-loop-hoisting"
    byte_threshold: int = 1024
    """An iteration that accesses fewer bytes is small (`xla_cpu_small_while_loop_byte_threshold`)."""

    def run(self, module: Module, recorder: Recorder) -> bool:
        loops = [x for c in module.computation_post_order() for x in c if x.is_while]
        if not loops:
            return False
        compiled_whole = _compiled_whole(module)
        # Every loop comes after the loops in it, so no cost is asked for that a rewrite changes later.
        costs = CostAnalysis()
        changed = False
        for loop in loops:
            if not all(c in compiled_whole for c in loop.called_computations):
                continue
            accessed = costs.instruction(loop).bytes_accessed
            if accessed < self.byte_threshold:
                name, call = loop.name, _outline(loop, module)
                reason = f"an iteration of {name} accesses {int(accessed):,} bytes"
                recorder.created_instructions(name, [call], SMALL_LOOP, reason)
                changed = True
        return changed


def _compiled_whole(module: Module) -> set[Computation]:
    """The computations that one kernel can hold: no library calls, collectives or channels."""
    found = set[Computation]()
    for computation in module.computation_post_order():
        if all(
            x.opcode not in _UNAVAILABLE
            and x.fusion_kind != "kCustom"
            and found.issuperset(x.called_computations)
            for x in computation
        ):
            found.add(computation)
    return found


def _outline(loop: Instruction, module: Module) -> Instruction:
    """A call of a new computation that holds a copy of the loop takes its place."""
    operand, computation = loop.operand, loop.computation
    assert computation is not None
    body = Computation(f"{loop.name}_computation")
    body.root = body.append_parsed(loop.clone([body.append_parameter(operand.name, operand.shape)]))
    module.add_computation(body)
    given = (loop.raw("frontend_attributes") or "").removeprefix("{").removesuffix("}")
    attributes = ",".join(filter(None, (given, f'{SMALL_CALL}="true"')))
    call = make.add(
        loop,
        "call",
        loop.shape,
        [operand],
        called=body,
        copied_attributes={"to_apply": f"%{body.name}", "frontend_attributes": f"{{{attributes}}}"},
    )
    loop.replace_all_uses_with(call)
    bridge_control_dependencies(loop)
    computation.remove_instruction(loop)
    return call
