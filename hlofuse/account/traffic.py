"""Bytes that any implementation of a kernel has to move. XLA's count (`analysis/cost.py`) differs in four
kinds of kernel. A slice of a bitcast reads its own size, not the whole array. An update that is not in place
writes the whole array. A scatter writes whole sectors of memory. Library calls move their arrays."""

from hlofuse.analysis.cost import NOTHING, Cost, CostAnalysis
from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.analysis.elementwise import without_views
from hlofuse.analysis.kernels import count_runs, is_small_call, iter_kernels, launched_computations
from hlofuse.ir.graph import Computation, Instruction, Instructions, callees_first
from hlofuse.ir.opcodes import values

SECTOR_BYTES = 32  # The minimal write of a GPU's memory
_VIEWS = values("bitcast reshape")
_UPDATES = ("dynamic-update-slice", "scatter")
_PARTS = values("slice dynamic-slice gather")
_OF_PRODUCTS = ("__cublas$", "__cudnn$")
_OWN_KERNELS = ("__gpu$xla.gpu.triton", "__gpu$xla.gpu.ptx", "mosaic_gpu")  # Pallas and others
_OF_LIBRARIES = tuple("TopK __gpu$TopK __cub$ xla.gpu.ext.cub_ blas_ cusolver_ lapack_".split())


class KernelCosts:
    """`CostAnalysis` with the bytes that a kernel has to move."""

    def __init__(self) -> None:
        self.counts = CostAnalysis()
        self._cached = dict[Instruction, Cost]()

    def instruction(self, instruction: Instruction) -> Cost:
        """The cost of one run; for a small call that of all its launches."""
        if is_small_call(instruction):
            runs, _ = self.inside(instruction)
            costs = ([n * x for x in self._own(c)] for c, n in runs.items())
            return Cost(*map(sum, zip(*costs, strict=True)))
        found = self._cached.get(instruction)
        if found is None:
            found = self._cached[instruction] = traffic(instruction, self.counts.instruction(instruction))
        return found

    def inside(self, call: Instruction) -> tuple[dict[Computation, int], set[Computation]]:
        """Runs of the computations in a small call (`count_runs`)."""
        within = set(launched_computations(call))
        order = [c for c in callees_first([call.to_apply]) if c in within]
        return count_runs({c: (0, self._own(c).bytes_accessed) for c in order})

    def _own(self, computation: Computation) -> Cost:
        own = (i for i in iter_kernels(computation) if not is_small_call(i))
        return sum(map(self.instruction, own), NOTHING)


def traffic(kernel: Instruction, cost: Cost) -> Cost:
    """`cost` of one run, with the bytes that the kernel has to read and write."""
    if kernel.is_fusion and kernel.called:
        if kernel.fusion_kind == "kCustom" and any(
            i.opcode in ("gather", "scatter") for i in kernel.fused_computation
        ):
            return cost
        read, written = _fusion(kernel)
    elif kernel.opcode == "scatter":
        written = scattered_bytes(kernel)  # in place once copies have been inserted
        read = written + sum(o.shape.buffer_size for o in kernel.operands[kernel.operand_count // 2 :])
    elif (target := custom_call_target(kernel)).startswith((*_OF_PRODUCTS, *_OF_LIBRARIES)):
        results = kernel.shape.leaf_shapes
        if target.startswith(_OF_PRODUCTS):
            del results[1:]  # workspace, as bytes of others are
        read = sum(map(_array_bytes, dict.fromkeys(kernel.operands)))
        written = sum(r.buffer_size for k, r in enumerate(results) if not k or r.element_type != "u8")
    elif target.startswith(_OWN_KERNELS) and kernel.raw("output_to_operand_aliasing") is None:
        read, written = 0, sum(r.buffer_size for r in kernel.shape.leaf_shapes)  # at least
    elif kernel.is_opaque:
        read = sum(map(_array_bytes, dict.fromkeys(kernel.operands)))
        written = _array_bytes(kernel)
    else:
        return cost
    return Cost(cost.flops, cost.transcendentals, read, written, cost.unknown)


def _fusion(fusion: Instruction) -> tuple[int, int]:
    computation = fusion.fused_computation
    reads, writes = border_bytes(fusion)
    read = sum(reads.values()) + sum(
        i.shape.buffer_size for i in computation if i.is_constant and i.is_array and i.element_count > 1
    )
    in_place = [r for r in _written_values(computation.root) if r.opcode == "scatter" and _is_in_place(r)]
    return read + sum(map(scattered_bytes, in_place)), sum(writes.values())


def border_bytes(kernel: Instruction) -> tuple[dict[Instruction, int], dict[int, int]]:
    """Bytes that a kernel has to read of each operand, and to write of each result by index."""
    if not kernel.is_fusion:
        updated = {kernel} if kernel.opcode in _UPDATES else set()
        reads = {o: _read_by(kernel, o, updated) or 0 for o in kernel.operands}
        return reads, {0: _bytes_written(kernel, updated)}
    computation = kernel.fused_computation
    results = _written_values(computation.root)
    in_place = set(filter(_is_in_place, results))
    reads = {}
    for operand, parameter in zip(kernel.operands, computation.parameters, strict=True):
        reads[operand] = reads.get(operand, 0) + _bytes_read(parameter, in_place)
    writes = {}
    for k, output in enumerate(computation.root.outputs):
        result = without_views(output)
        if result not in results:  # the same as an earlier one
            writes[k] = 0
            continue
        results.remove(result)
        writes[k] = _bytes_written(result, in_place)
    return reads, writes


def _is_in_place(result: Instruction) -> bool:
    return result.opcode in _UPDATES and without_views(result.operand).is_parameter


def _written_values(root: Instruction) -> Instructions:
    """The values written to memory, through views; each once."""
    return list(dict.fromkeys(map(without_views, root.outputs)))


def _bytes_written(result: Instruction, in_place: set[Instruction]) -> int:
    """Bytes of the part that is written in place, else of the whole result."""
    if result not in in_place:
        return _array_bytes(result)
    return scattered_bytes(result) if result.opcode == "scatter" else result.second.shape.buffer_size


def _bytes_read(parameter: Instruction, in_place: set[Instruction]) -> int:
    """Bytes of a fusion's parameter that its users read, at most all of it."""
    total, stack, seen = 0, [parameter], {parameter}
    whole = _array_bytes(parameter)
    while stack:
        value = stack.pop()
        for user in value.users:
            if user in seen and user.opcode in _VIEWS:
                continue
            seen.add(user)
            part = _read_by(user, value, in_place)
            if part is None:
                stack.append(user)
            else:
                total += part
            if total >= whole:
                return whole
    return total


def _read_by(user: Instruction, value: Instruction, in_place: set[Instruction]) -> int | None:
    """Bytes of `value` that one user reads; None for a view, which reads nothing."""
    opcode, first = user.opcode, user.operand is value
    if opcode in _VIEWS or (opcode == "get-tuple-element" and value.is_tuple):
        return None
    if opcode == "tuple":
        return 0
    if opcode in _PARTS and first:
        return _array_bytes(user)
    if user in in_place and first and user.operands.count(value) == 1:
        return 0
    if opcode == "dynamic-update-slice" and first and _PARTS.issuperset(u.opcode for u in user.users):
        return min(_array_bytes(value), sum(map(_array_bytes, user.users)) or _array_bytes(value))
    if opcode == "fusion" and user.called:
        inside = user.fused_computation.parameters
        if without_views(user.fused_root) in inside:  # a view
            return None
        return sum(_bytes_read(inside[k], in_place) for k, o in enumerate(user.operands) if o is value)
    return _array_bytes(value)


def scattered_bytes(scatter: Instruction) -> int:
    """Bytes of the sectors that a scatter writes, if no two windows are adjacent."""
    updates = scatter.operands[-1].shape
    whole = sum(u.shape.buffer_size for u in scatter.operands[scatter.operand_count // 2 + 1 :])
    run = written_together(scatter)
    if not run or not updates.element_count:
        return whole
    return whole * max(run, SECTOR_BYTES) // run


def written_together(scatter: Instruction) -> int:
    """Contiguous bytes that one window of a scatter writes; 0 where it writes nothing."""
    operand, updates = scatter.operand.shape, scatter.operands[-1].shape
    if not operand.is_array or not updates.is_array or not updates.element_count:
        return 0
    collapsed = {*scatter.attributes.get("inserted_window_dims", ())}
    collapsed |= {*scatter.attributes.get("input_batching_dims", ())}
    remaining = [d for d in range(operand.rank) if d not in collapsed]
    window = dict(zip(remaining, scatter.attributes.get("update_window_dims", ()), strict=False))
    run = updates.byte_size // updates.element_count
    for d in operand.minor_to_major:
        if d not in window:
            break
        size = updates.dimensions[window[d]]
        run *= size
        if size != operand.dimensions[d]:
            break
    return run


def _array_bytes(value: Instruction) -> int:
    shape = value.shape
    if shape.is_array:
        return shape.buffer_size
    return sum(leaf.buffer_size for leaf in shape.leaf_shapes if leaf.is_array)
