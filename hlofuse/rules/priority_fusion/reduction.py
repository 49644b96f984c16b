"""Rules that keep reductions where their emitter can handle them."""

from __future__ import annotations

from typing import Any

from hlofuse.rules.catalogue import Rule
from hlofuse.rules.priority_fusion.question import PriorityPair
from hlofuse.rules.verdict import asks

_MIRRORS = "xla/backends/gpu/transforms/priority_fusion.cc: PriorityFusionQueue::CanFuse"


@asks(
    Rule(
        code="PF008",
        title="Both contain a reduce",
        asks="Does each of the two contain a reduce that folds 16 elements or more into one?",
        why="The inner reduce would be computed anew by every thread that needs it. XLA's cost model does "
        "not "
        "understand such a pair, so it is not tried.",
        advice="Two reductions that follow each other are two kernels. Where both read the same array "
        "(mean and variance from sums), write them side by side: then they become one kernel.",
        mirrors=_MIRRORS,
        message="both the producer and the consumer contain a reduce",
    )
)
def both_reduce(pair: PriorityPair) -> dict[str, Any] | None:
    of = pair.structure
    return {} if of.producer.significant_reduce and of.consumer.significant_reduce else None


@asks(
    Rule(
        code="PF009",
        title="A reduction would become a plain loop",
        asks="Is the producer emitted as a parallel reduction, and would the two together be emitted as a "
        "loop?",
        why="In a loop every thread computes a whole sum on its own. A reduction keeps its parallel "
        "emitter only "
        "while nothing but operations on its few results, of the same shape, follows.",
        advice="Reduce over the last axis where you can: Triton takes a whole normalisation along it "
        "(softmax, layer norm) as one kernel; along another axis it stays several. Otherwise what "
        "follows a reduction starts a new kernel: only element-wise work on the reduced values themselves "
        "can go into it.",
        mirrors=_MIRRORS,
        message="fusion into output of a reduce fusion would create a loop fusion",
    )
)
def reduction_becomes_loop(pair: PriorityPair) -> dict[str, Any] | None:
    model = pair.state.model
    alone = pair.structure.producer.launch or model.launch(pair.producer)
    if alone.kind != "reduction":
        return None
    launch = model.pair_launch(pair.producer, pair.consumer, pair.structure)
    return {} if launch.kind == "loop" else None
