"""Clones of computations, and calls that give way to what they call."""

from collections.abc import Callable, Sequence

from hlofuse.ir import Attributes, Computation, Instruction, Module, Shape, replace
from hlofuse.ir.attributes.metadata import OpMetadata
from hlofuse.ir.removing import move_control_dependencies, set_attribute
from hlofuse.passes.base import accept_order
from .literals import scalar_of


def clone_computation(original: Computation, suffix: str = "clone") -> Computation:
    """A copy in the same module (`HloComputation::Clone`). Fusions call copies, others the same computations.
    Instructions are as old among themselves as those of the original, and users stand in the same order."""
    return original.parent.add_computation(filled(Computation(f"{original.name}.{suffix}"), original))


def filled(
    copy: Computation, original: Computation, callee: Callable[[Computation], Computation] | None = None
) -> Computation:
    """`copy` with clones of all that `original` holds, which call `callee` of what that calls."""
    copies = dict[Instruction, Instruction]()
    for i in original.post_order():
        clone = i.clone([copies[o] for o in i.operands])
        copies[i] = clone
        if i.called and (callee is not None or i.is_fusion):
            clone.called = [(name, (callee or clone_computation)(c)) for name, c in i.called]
        for predecessor in i.control_predecessors:
            copies[predecessor].add_control_dependency_to(clone)
    for i in original:
        copy.append_parsed(copies[i])
        copies[i].users[:] = [copies[user] for user in i.users]
    copy.root = copies[original.root]
    copy.attributes_text = original.attributes_text
    return copy


def copied(constant: Instruction, at: Instruction, suffix: str = "clone") -> Instruction:
    """A clone in the computation of `at` (`HloInstruction::Clone`)."""
    return at.parent.add_instruction(constant.clone(name=_suffixed(constant.name, suffix)))


def _suffixed(name: str, suffix: str) -> str:
    """`HloInstruction::AddSuffixToInstructionName`."""
    start, dot, number = name.rpartition(f".{suffix}")
    if dot and not number:
        return f"{name}2"
    if dot and number.isdecimal():
        return f"{start}{dot}{int(number) + 1}"
    return f"{name}.{suffix}"


def set_called(caller: Instruction, called: Sequence[tuple[str, Computation]]) -> None:
    """`caller` calls these instead (`ReplaceCalledComputations`)."""
    for callee in caller.called_computations:
        callee.callers.pop(caller, None)
    caller.called = list(called)
    for _, callee in called:
        callee.add_caller(caller)


def replace_parameter(
    computation: Computation, shape: Shape, old_value: Callable[[Instruction], Instruction] = lambda new: new
) -> Instruction:
    """A parameter of another shape instead of the only one, which gives way to `old_value` of the new one."""
    old = computation.parameter
    new = Instruction(old.name, shape, "parameter", attributes=old.attributes, payload="0")
    computation.parameters = []
    computation.add_instruction(new)
    old.replace_all_uses_with(old_value(new))
    computation.remove_instruction(old)
    return new


# The metadata of a call, applied to inlined instructions (`PropagateCallMetadata`). Mirrors
# `PropagateMetadataToInstruction` of `xla/hlo/transforms/propagate_call_metadata.cc`.


_LONGEST_NAME = 1024
_CONTROL_FLOW = ("while", "conditional")


def hand_on_metadata(call: Instruction, inlined: Instruction, module: Module) -> bool:
    """Prefix names in `inlined` and its callees by that of `call`, and nest their frames in its frame."""
    given = call.attributes.get("metadata")
    if given is None or not (given.op_name or given.stack_frame_id):
        return False
    changed = False
    prefix = (given.op_name or "").removesuffix("/")
    pending = [inlined]
    for x in pending:
        if x.opcode in _CONTROL_FLOW:
            pending += [y for computation in x.called_computations for y in computation]
        own = x.attributes.get("metadata") or OpMetadata()
        name = _prefixed(prefix, own.op_name or "")
        frame = module.stack_frames.join(given.stack_frame_id, own.stack_frame_id)
        if (name, frame) != (own.op_name or "", own.stack_frame_id):
            metadata = replace(own, op_name=name or None, stack_frame_id=frame)
            x.attributes = x.attributes.updated(metadata=str(metadata))
            changed = True
    return changed


def _prefixed(prefix: str, name: str) -> str:
    inner = name.removeprefix("/").removesuffix("/")
    if inner.startswith(prefix) or len(prefix) + len(inner) >= _LONGEST_NAME:
        return name
    return f"{prefix}/{inner}" if inner else prefix


def inline(call: Instruction) -> dict[Instruction, Instruction]:
    """Clones of the body instead of the call, by original (`SubcomputationInsertionVisitor`)."""
    computation, body = call.parent, call.to_apply
    module = computation.parent
    clones = {}
    for inner in accept_order(body):
        if inner.is_parameter:
            clones[inner] = call.operands[inner.parameter_number]
            module.note_replacement(inner, clones[inner])
            continue
        clone = computation.add_instruction(inner.clone([clones[o] for o in inner.operands]))
        clones[inner] = clone
        hand_on_metadata(call, clone, module)
        for predecessor in inner.control_predecessors:
            clones[predecessor].add_control_dependency_to(clone)
        for predecessor in call.control_predecessors:
            predecessor.add_control_dependency_to(clone)
    root = clones[body.root]
    move_control_dependencies(call, root)
    call.replace_all_uses_with(root)
    computation.remove_instruction(call)
    return clones


def chosen_branch(conditional: Instruction) -> int | None:
    """The number of the branch, the last where there is none of that number; None where it is not known
    (`HandleConditional`, `xla/hlo/evaluator/hlo_evaluator.cc`)."""
    index = conditional.operand
    value = scalar_of(index)
    if value is None:
        return None
    if index.element_type == "pred":
        return 0 if value else 1
    last = len(conditional.called_computations) - 1
    return int(value) if 0 <= value <= last else last


def make_asynchronous(
    x: Instruction, name: str, context: Sequence[Shape], **attributes: str
) -> tuple[Instruction, Instruction]:
    """The start, with attributes, and the done instead of `x` (`HloComputation::CreateAsyncInstructions`)."""
    computation = x.parent
    module = computation.parent
    body = Computation("async_computation")
    parameters = [body.append_parameter(f"param_{k}", o.shape) for k, o in enumerate(x.operands)]
    root = x.clone(parameters)
    if x.is_fusion:
        root.called = [("calls", clone_computation(x.fused_computation))]
    root.attributes = root.attributes.without("control-predecessors")
    body.root = body.append_parsed(root)
    module.add_computation(body)

    operands = Shape.tuple_of([o.shape for o in x.operands])
    start = Instruction(
        f"{name}-start",
        Shape.tuple_of([operands, x.shape, *context]),
        "async-start",
        x.operands,
        Attributes(raw={**attributes, "calls": f"%{body.name}"}),
        called=[("calls", body)],
    )
    computation.add_instruction(start)
    done = Instruction(f"{name}-done", x.shape, "async-done", [start], Attributes(raw={}))
    computation.add_instruction(done)
    _replace(x, start, done)
    return start, done


def _replace(x: Instruction, start: Instruction, done: Instruction) -> None:
    common = ("frontend_attributes",) if not x.is_fusion else ()
    for name, text in x.attributes.given(*common, "metadata", "backend_config").items():
        set_attribute(start, name, text)
        set_attribute(done, name, text)
    for predecessor in x.control_predecessors:
        predecessor.add_control_dependency_to(start)
    for successor in x.control_successors:
        done.add_control_dependency_to(successor)
    x.drop_all_control_dependencies()
    computation = x.parent
    # The copy inside stands for `x`, so nothing says that the done does.
    replace_users(list(x.users), x, done)
    computation.remove_instruction(x)


def replace_users(users: Sequence[Instruction], old: Instruction, new: Instruction) -> None:
    """`new` is read where these users read `old`; as a root it takes its place too."""
    for user in users:
        old.replace_use_with(user, new)
    if old.is_root and old.computation is not None:
        old.computation.root = new
