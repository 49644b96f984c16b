"""Operations that run alongside others: a start, a done and the computation in between."""

from collections.abc import Sequence

from hlofuse.ir.attributes.attributes import Attributes
from hlofuse.ir.fusing import clone_of, computation_of, module_of
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.removing import set_attribute
from hlofuse.ir.shape import Shape


def make_asynchronous(
    x: Instruction, name: str, context: Sequence[Shape] = (), **attributes: str
) -> tuple[Instruction, Instruction]:
    """The start and the done that take the place of `x` (`HloComputation::CreateAsyncInstructions`).

    The attributes are those of the start alone.
    """
    computation = computation_of(x)
    module = module_of(computation)
    body = Computation("async_computation")
    parameters = []
    for number, operand in enumerate(x.operands):
        parameter = Instruction(f"param_{number}", operand.shape, "parameter", payload=str(number))
        body.append_parsed(parameter)
        parameters.append(parameter)
    root = clone_of(x, parameters)
    if x.opcode == "fusion":
        inner = _clone_body(x.fused_computation, module)
        root.called = [("calls", inner)]
        root.attributes = root.attributes.updated(calls=f"%{inner.name}")
    root.attributes = root.attributes.without("control-predecessors")
    body.append_parsed(root)
    body.root = root
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


def _clone_body(original: Computation, module: Module) -> Computation:
    copy = Computation(f"{original.name}.clone")
    copies: dict[Instruction, Instruction] = {}
    for i in original.post_order():
        copies[i] = clone_of(i, [copies[o] for o in i.operands])
        copy.append_parsed(copies[i])
    copy.root = copies[original.root]
    return module.add_computation(copy)


def _replace(x: Instruction, start: Instruction, done: Instruction) -> None:
    common = ("frontend_attributes",) if x.opcode != "fusion" else ()
    for name, text in x.attributes.given(*common, "metadata", "backend_config").items():
        set_attribute(start, name, text)
        set_attribute(done, name, text)
    for predecessor in x.control_predecessors:
        predecessor.add_control_dependency_to(start)
    for successor in x.control_successors:
        done.add_control_dependency_to(successor)
    x.drop_all_control_dependencies()
    computation = computation_of(x)
    # The copy inside stands for `x`, so nothing says that the done does.
    for user in list(x.users):
        x.replace_use_with(user, done)
    if computation.root is x:
        computation.root = done
    computation.remove_instruction(x)
