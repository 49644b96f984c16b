"""Passes that move copies."""

from collections.abc import Iterator, Sequence

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.analysis.elementwise import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY, is_elementwise_on_operand
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.ir import Computation, Instruction, Module, Shape, reach, replace, replace_instruction, values
from hlofuse.ir.fusing import append_outputs, get_tuple_element
from hlofuse.passes.base import DevicePass, Pass, RewritePass, VisitPass, any_change, replaced
from hlofuse.passes.common import make
from hlofuse.passes.common.calls import clone_computation, replace_users
from hlofuse.passes.control_flow.annotations import remove_annotations
from hlofuse.passes.cse import HloCSE
from hlofuse.rules.gpu_fusible import outputs_of
from hlofuse.rules.priority_fusion.conditions import MAX_PARAMETERS, over_budget
from hlofuse.rules.rewrites import COPY_IN_FUSION
from hlofuse.trace import Recorder

_ONE_ARRAY = values("pad slice dynamic-slice reduce-window reverse")
_STAYS = values("reduce-precision copy bitcast-convert")
_UNARY = ELEMENTWISE_UNARY - _STAYS


class MoveCopyToUsers(VisitPass):
    """`move_copy_to_users`: `copy` then `sine` becomes `sine` then `copy` (`move_copy_to_users.cc`)."""

    name = "move_copy_to_users"
    opcodes = _UNARY | ELEMENTWISE_BINARY | _ONE_ARRAY | {"reduce", "concatenate"}

    def handle(self, user: Instruction) -> bool:
        opcode = user.opcode
        is_binary, joins = opcode in ELEMENTWISE_BINARY, opcode == "concatenate"
        count = user.operand_count if is_binary or joins else 1
        if any(o.opcode != "copy" for o in user.operands[:count]) or user.is_tuple:
            return False
        if opcode == "convert" and user.user_count == 1 and user.user.opcode == "convolution":
            return False
        sources = [o.operand for o in user.operands[:count]]
        if is_binary and len({s.shape.key for s in sources}) > 1:
            return False
        if joins and len({s.minor_to_major for s in sources}) > 1:
            return False
        operands = [*sources, *user.operands[count:]]
        if opcode == "reduce":
            return replaced(user, user.parent.add_instruction(user.clone(operands)))
        shape = replace(user.shape, layout=sources[0].shape.layout)
        return replaced(user, make.copied(_clone(user, shape, operands), user.shape))


def _clone(user: Instruction, shape: Shape, operands: Sequence[Instruction]) -> Instruction:
    new = user.clone(operands, name=user.opcode, shape=shape)
    new.attributes = new.attributes.without("sharding", "frontend_attributes")
    return user.parent.add_instruction(new)


_HOST_SPACE = "S(5)"
_SEEN_THROUGH = values("bitcast reshape")


class HostOffloader(Pass):
    """`host-offloader`: copies to the host's memory and back in place of annotations
    (`xla/hlo/transforms/host_offloader.cc`). Repeated where a value comes back, or is returned, in the
    computation that moves it. Other annotations stay; like a copy in their place, they launch no kernel."""

    name = "host-offloader"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in module.non_fusion_computations():
            for i in computation.post_order():
                if custom_call_target(i) != "MoveToHost":
                    continue
                if _comes_back(i, computation is module.entry):
                    _move(i)
                    changed = True
                else:
                    recorder.skipped(i, "a value that goes to the host by way of other computations")
        changed = remove_annotations(module, _is_on_device) or changed
        cse = HloCSE(only_fusion_computations=False)
        return cse.run(module, recorder) or changed


class HostMemoryTransferAsyncifier(RewritePass):
    """Copies to and from the host: started, waited for (`host_memory_transfer_asyncifier.cc`)."""

    name = "host-memory-transfer-asyncifier"
    opcodes = ("copy",)

    def handle(self, x: Instruction) -> bool:
        source = x.operand
        layouts = (x.shape.layout, source.shape.layout)
        if sum(layout is not None and _HOST_SPACE in layout.suffix for layout in layouts) != 1:
            return False
        parts = Shape.tuple_of([x.shape, source.shape, Shape("u32")])
        start = make.derived(x, "copy-start", parts, [source])
        return replaced(x, make.derived(x, "copy-done", x.shape, [start]))


def _comes_back(value: Instruction, is_entry: bool) -> bool:
    """True if every path from `value` leads to `MoveToDevice` or to the result of the entry."""
    if value.is_root:
        return is_entry
    return bool(value.users) and all(
        custom_call_target(u) == "MoveToDevice"
        or ((u.opcode in _SEEN_THROUGH or u.is_get_tuple_element) and _comes_back(u, is_entry))
        or (u.opcode == "tuple" and u.is_root and is_entry)
        for u in _readers(value)
    )


def _readers(value: Instruction) -> Iterator[Instruction]:
    """The users of a value, and its elements where it is put into a tuple."""
    for user in list(value.users):
        if user.opcode == "tuple" and not user.is_root and user.operands.count(value) == 1:
            yield from _elements(user, user.operands.index(value))
        else:
            yield user


def _elements(source: Instruction, index: int) -> Iterator[Instruction]:
    """What reads that element of a tuple, also after a barrier, and whatever reads the whole."""
    for user in list(source.users):
        if user.opcode == "opt-barrier":
            yield from _elements(user, index)
        elif not user.is_get_tuple_element or user.tuple_index == index:
            yield user


def _move(annotation: Instruction) -> None:
    """Replace `MoveToHost` by a copy, and each `MoveToDevice` that reads it by one back."""
    source = annotation.operand
    on_host = make.copied(source, _in_space(source.shape, _HOST_SPACE))
    replaced(annotation, on_host)
    queue = [on_host]
    for value in queue:  # grows while it is walked
        for user in list(_readers(value)):
            if custom_call_target(user) == "MoveToDevice":
                replaced(user, make.copied(value, _in_space(value.shape, "")))
            elif user.opcode in _SEEN_THROUGH or user.is_get_tuple_element:
                user.shape = _in_space(user.shape, _HOST_SPACE)
                queue.append(user)
        for user in value.users:
            if user.opcode == "tuple" and not user.is_root:
                _hand_on_shape(user, Shape.tuple_of([o.shape for o in user.operands]))


def _hand_on_shape(x: Instruction, shape: Shape) -> None:
    x.shape = shape
    for user in x.users:
        if user.opcode == "opt-barrier":
            _hand_on_shape(user, shape)


def _in_space(shape: Shape, space: str) -> Shape:
    layout = shape.layout
    return shape if layout is None else replace(shape, layout=replace(layout, suffix=space))


def _is_on_device(i: Instruction) -> bool:
    """True for a `MoveToDevice` of a value that is there."""
    if custom_call_target(i) != "MoveToDevice":
        return False
    source = i.operand.through(*_SEEN_THROUGH)
    layout = source.shape.layout
    is_computed = source.opcode not in ("parameter", "get-tuple-element", "custom-call", "opt-barrier")
    return is_computed and (layout is None or _HOST_SPACE not in layout.suffix)


_REASON = "The fusion writes the copy as a further output"
_FILLED_AGAIN = 1 << 20  # bytes of a constant fill from which on it is not copied


class ConstantFillCopyRewriter(Pass):
    """In the entry only: a large array of one constant is written again, not copied (asked)."""

    name = "constant-fill-copy-rewriter"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return any_change(_fill_again(fill) for fill in module.entry.post_order() if _is_large_fill(fill))


def _is_large_fill(x: Instruction) -> bool:
    if not x.is_fusion or x.byte_size < _FILLED_AGAIN or not x.fused_root.is_broadcast:
        return False
    return x.fused_root.operand.is_constant


def _fill_again(fill: Instruction) -> bool:
    """Every copy is replaced while the array has another reader, unless one instruction reads them all."""
    copies = [u for u in fill.users if _is_plain_copy(u)]
    readers = {r for u in fill.users for r in (u.users if u in copies else (u,))}
    if fill.user_count < 2 or len(readers) < 2:
        return False
    for copy in copies if len(copies) < fill.user_count else copies[:-1]:
        again = fill.clone(name=f"{fill.name}.rematerialized")
        again.called = [(name, clone_computation(c)) for name, c in fill.called]
        replace_instruction(copy, copy.parent.add_instruction(again))
    return bool(copies)


class CopyFusion(DevicePass):
    """In the entry only: a loop may share buffers (`xla/backends/gpu/transforms/copy_fusion.cc`)."""

    name = "copy_fusion"

    def run(self, module: Module, recorder: Recorder) -> bool:
        entry = module.entry
        if not any(i.opcode == "copy" for i in entry):
            return False
        model = self.kernels()
        changed = False
        for fusion in entry.post_order():
            if not fusion.is_fusion or fusion.fusion_kind == "kCustom" or not _may_write(fusion, model):
                continue
            copies, others = self._users(fusion, model)
            if not copies or _updates_in_place(fusion):
                continue
            if len(outputs_of(fusion)) + len(copies) > self.settings.value(MAX_PARAMETERS):
                continue
            names = [c.name for c in copies]
            _fuse(fusion, copies, others)
            model.changed(fusion)
            recorder.rewrite(entry.name, names, [fusion], _REASON, COPY_IN_FUSION)
            changed = True
        return changed

    def _users(self, fusion: Instruction, model: KernelModel) -> tuple[list[Instruction], list[Instruction]]:
        """The copies of its results that it may write, and what else reads it."""
        copies = []
        others = []
        for user in fusion.users:
            copy = user
            if copy.is_get_tuple_element and copy.user_count == 1:
                if _is_reduction(fusion.fused_root.operands[copy.tuple_index], model):
                    others.append(user)
                    continue
                copy = copy.user
            if copy.is_bitcast and copy.user_count == 1:
                copy = copy.user
            if _is_plain_copy(copy) and self._fits(fusion, copy, model):
                copies.append(copy)
            else:
                others.append(user)
        return copies, others

    def _fits(self, fusion: Instruction, copy: Instruction, model: KernelModel) -> bool:
        return over_budget(fusion, copy, model, self.settings, producer_consumer=False) is None


def _is_plain_copy(copy: Instruction) -> bool:
    return (
        copy.opcode == "copy"
        and copy.shape.key == copy.operand.shape.key
        and not copy.is_tuple
        and not copy.control_predecessors
        and not copy.control_successors
    )


def _is_reduction(instruction: Instruction, model: KernelModel) -> bool:
    return instruction.is_reduce and model.summary(instruction).is_reduction


def _may_write(fusion: Instruction, model: KernelModel) -> bool:
    root = fusion.fused_root
    if not _is_elementwise_throughout(fusion.fused_computation):
        return False
    if root.opcode == "scatter" or _is_reduction(root, model):
        return False
    return root.opcode != "tuple" or any(not o.is_slice for o in root.operands)


def _is_elementwise_throughout(body: Computation) -> bool:
    """`OnlyElementwiseOpsReachableFromParams`: bitcasts and tuples too, but no copies."""
    reached = reach(body.parameters, lambda x: x.users)
    return all(
        user.opcode in ("bitcast", "tuple")
        or (user.opcode != "copy" and is_elementwise_on_operand(user, user.operands.index(source)))
        for source in reached
        for user in source.users
    )


def _updates_in_place(fusion: Instruction) -> bool:
    """Every result is a dynamic-update-slice, which may overwrite its operand."""
    updates = [o.through("bitcast").opcode == "dynamic-update-slice" for o in outputs_of(fusion)]
    return all(updates) if fusion.is_multi_output_fusion else any(updates)


def _fuse(fusion: Instruction, copies: list[Instruction], others: list[Instruction]) -> None:
    body, outputs = fusion.fused_computation, fusion.fused_root.outputs
    several, written = fusion.is_multi_output_fusion, []
    for copy in copies:
        chain = [copy]
        while chain[-1].operand is not fusion:
            chain.append(chain[-1].operand)
        source = outputs[chain.pop().tuple_index if several else 0]
        for x in reversed(chain):
            source = body.add_instruction(x.clone([source]))
        written.append(source)
    if append_outputs(fusion, written):
        replace_users(others, fusion, get_tuple_element(fusion, 0, outputs[0].shape))
    for number, copy in enumerate(copies, len(outputs)):
        replace_instruction(copy, get_tuple_element(fusion, number, copy.shape))
