"""What a window selects, as indices to scatter to (`xla/service/select_and_scatter_expander.cc`)."""

from __future__ import annotations

from hlofuse.ir.fusing import computation_of, module_of
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.common.calls import inline
from hlofuse.passes.common.rewriting import rewrite_each, substituted
from hlofuse.passes.common.shapes import array
from hlofuse.trace import Recorder


class SelectAndScatterExpander(Pass):
    name = "select_and_scatter_expander"

    def run(self, module: Module, recorder: Recorder) -> bool:
        def handle(x: Instruction) -> bool:
            return substituted(x, _expanded(x))

        return rewrite_each(module, ["select-and-scatter"], handle, recorder)


def _expanded(x: Instruction) -> Instruction:
    operand, source, init = x.operands
    called = dict(x.called)
    places, found = operand.shape.with_element_type("s32"), source.shape.with_element_type("s32")
    rank = operand.shape.rank
    counters = [make.iota(x, places, d) for d in range(rank)]
    window = make.add(
        x,
        "reduce-window",
        Shape.tuple_of([source.shape, *[found] * rank]),
        [operand, *counters, init, *[make.scalar(x, "s32", -1)] * rank],
        called=[("to_apply", _first_selected(x, called["select"], rank))],
        window=x.attributes["window"],
    )
    single = array("s32", (*found.dimensions, 1))
    parts = [make.reshape(x, single, make.get_tuple_element(x, window, d + 1)) for d in range(rank)]
    base = make.broadcast(x, x.shape, init, ())
    every = make.numbers(range(rank))
    return make.add(
        x,
        "scatter",
        x.shape,
        [base, make.concatenate(x, parts, rank), source],
        called=[("to_apply", called["scatter"])],
        update_window_dims="{}",
        inserted_window_dims=every,
        scatter_dims_to_operand_dims=every,
        index_vector_dim=source.shape.rank,
    )


def _first_selected(x: Instruction, select: Computation, rank: int) -> Computation:
    """The selected of two elements together with its indices; -1 stands for outside of the array."""
    computation = Computation(f"{select.name}.reduce_window")
    types = [x.operands[0].shape.element_type, *["s32"] * rank]
    sides: list[list[Instruction]] = [[], []]
    for k in range(2 * len(types)):
        shape = array(types[k % len(types)])
        parameter = Instruction(f"side.{k}", shape, "parameter", payload=str(k))
        computation.append_parsed(parameter)
        sides[k // len(types)].append(parameter)
    computation.root = sides[0][0]
    module_of(computation_of(x)).add_computation(computation)
    lhs, rhs = sides
    out_of_bounds = make.scalar(lhs[0], "s32", -1)
    of_lhs = make.compare(lhs[1], "NE", lhs[1], out_of_bounds)
    not_rhs = make.unary(rhs[1], "not", make.compare(rhs[1], "NE", rhs[1], out_of_bounds))
    call = make.add(lhs[0], "call", array("pred"), [lhs[0], rhs[0]], called=[("to_apply", select)])
    chosen = make.binary(call, "or", make.binary(call, "and", call, of_lhs), not_rhs)
    selected = [make.select(chosen, chosen, a, b) for a, b in zip(lhs, rhs, strict=True)]
    computation.root = make.tuple_of(chosen, selected)
    inline(call)
    return computation
