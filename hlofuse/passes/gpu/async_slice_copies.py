"""Copies of slices run beside the kernels around them
(`xla/backends/gpu/transforms/dynamic_slice_copy_fusion_async_wrapper.cc`)."""

from __future__ import annotations

from hlofuse.analysis.slice_copies import copied_dynamic_slice
from hlofuse.ir.attributes.attributes import Attributes
from hlofuse.ir.fusing import clone_of, computation_of, module_of
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.removing import set_attribute
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass
from hlofuse.trace import Recorder

_CONTEXT = Shape("u32")
_REASON = "A fusion that only copies a slice is started, and waited for where its result is read"


class DynamicSliceCopyFusionAsyncWrapper(Pass):
    """`dynamic-slice-copy-fusion-async-wrapper`: such a fusion goes into an `async-start`."""

    name = "dynamic-slice-copy-fusion-async-wrapper"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in module.non_fusion_computations():
            if any(caller.opcode == "async-start" for caller in computation.callers):
                continue
            for fusion in computation.post_order():
                if fusion.opcode != "fusion" or copied_dynamic_slice(fusion) is None:
                    continue
                name = fusion.name
                start, done = _make_asynchronous(fusion)
                added = [start.name, done.name]
                recorder.rewrite(computation.name, [name], added, rule="", reason=_REASON)
                changed = True
        return changed


def _make_asynchronous(fusion: Instruction) -> tuple[Instruction, Instruction]:
    """`HloComputation::CreateAsyncInstructions`: the start and the done."""
    computation = computation_of(fusion)
    module = module_of(computation)
    body = Computation("async_computation")
    parameters = []
    for number, operand in enumerate(fusion.operands):
        parameter = Instruction(f"param_{number}", operand.shape, "parameter", payload=str(number))
        body.append_parsed(parameter)
        parameters.append(parameter)
    root = clone_of(fusion, parameters)
    inner = _clone_body(fusion.fused_computation, module)
    root.called = [("calls", inner)]
    root.attributes = root.attributes.updated(calls=f"%{inner.name}")
    body.append_parsed(root)
    body.root = root
    module.add_computation(body)

    operands = Shape.tuple_of([o.shape for o in fusion.operands])
    shape = Shape.tuple_of([operands, fusion.shape, _CONTEXT])
    start = Instruction(
        "fusion-start",
        shape,
        "async-start",
        fusion.operands,
        Attributes(raw={"calls": f"%{body.name}"}),
        called=[("calls", body)],
    )
    computation.add_instruction(start)
    done = Instruction("fusion-done", fusion.shape, "async-done", [start], Attributes(raw={}))
    computation.add_instruction(done)
    _take_the_place(fusion, start, done)
    return start, done


def _clone_body(original: Computation, module: Module) -> Computation:
    copy = Computation(f"{original.name}.clone")
    copies: dict[Instruction, Instruction] = {}
    for i in original.post_order():
        copies[i] = clone_of(i, [copies[o] for o in i.operands])
        copy.append_parsed(copies[i])
    copy.root = copies[original.root]
    return module.add_computation(copy)


def _take_the_place(fusion: Instruction, start: Instruction, done: Instruction) -> None:
    for name in ("metadata", "backend_config"):
        text = fusion.attributes.raw(name)
        if text is not None:
            set_attribute(start, name, text)
            set_attribute(done, name, text)
    for predecessor in fusion.control_predecessors:
        predecessor.add_control_dependency_to(start)
    for successor in fusion.control_successors:
        done.add_control_dependency_to(successor)
    fusion.drop_all_control_dependencies()
    computation = computation_of(fusion)
    # The copy inside stands for the fusion, so nothing says that the done does.
    for user in list(fusion.users):
        fusion.replace_use_with(user, done)
    if computation.root is fusion:
        computation.root = done
    computation.remove_instruction(fusion)
