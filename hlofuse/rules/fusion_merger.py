"""Rules of FusionMerger (`xla/service/gpu/transforms/fusion_merger.cc`, until 0.4.35): codes FM….

A fusion is merged into all of its users or into none. `PRODUCER_RULES` are asked of the fusion,
`USER_RULES` of every user in turn; what follows is asked once all users have passed.
"""

from dataclasses import dataclass
from typing import Any

from hlofuse.cost.gpu.merging import MergeTimes
from hlofuse.cost.gpu.ticks import fp32, microseconds
from hlofuse.ir.graph import Instruction
from hlofuse.rules.catalogue import Knob, outcome, register
from hlofuse.rules.gpu_fusible import is_physically_transposing
from hlofuse.rules.gpu_instruction_fusion import FUSIBLE_RULES, GpuFusionState, GpuPair
from hlofuse.rules.gpu_multi_output_fusion.shapes import heroes_verdict
from hlofuse.rules.priority_fusion.budget import MAX_IR_SIZE, over_budget
from hlofuse.rules.verdict import Verdict, condition, requirement

_FILE = "xla/service/gpu/transforms/fusion_merger.cc"
_SHOULD = f"{_FILE}: FusionInstructionMerger::ShouldFuse"
_SUPERSEDED = "PriorityFusion took the place of this pass."

MAX_TRANSPOSED = Knob(
    "gpu-max-transposed-share",
    0.5,
    "of the elements",
    "A fusion that moves more of its elements about does not go into a reduction.",
)


@dataclass(slots=True)
class Merge:
    """A candidate: `producer` fused into all of its users."""

    producer: Instruction
    state: GpuFusionState


MERGED = outcome(
    code="FM001",
    title="A kernel goes into all of its consumers",
    condition="May the fusion be merged into each of its users, and is that no slower than leaving it a "
    "kernel?",
    why="Its result need not be written and read, and one kernel less is launched; what its users read "
    "several times is computed several times instead.",
    mirrors=f"{_FILE}: FusionInstructionMerger::FuseIntoAllUsers",
    allows=True,
    history=_SUPERSEDED,
)


@requirement(
    code="FM010",
    title="Nobody uses the kernel",
    condition="Has the fusion no users (it is the computation's result)?",
    why="There is nothing to merge it into.",
    mirrors=_SHOULD,
    message="fusion has no users",
    history=_SUPERSEDED,
)
def no_users(merge: Merge) -> dict[str, Any] | None:
    return None if merge.producer.users else {}


@condition(
    code="FM011",
    title="The kernel is no loop",
    condition="Is the fusion of another kind than kLoop: about a reduction, a tiled transpose, a scatter?",
    why="Only what is computed element by element can be computed inside another kernel.",
    mirrors=_SHOULD,
    message="not a loop fusion",
    history=_SUPERSEDED,
)
def not_a_loop(merge: Merge) -> dict[str, Any] | None:
    kind = merge.producer.fusion_kind
    return None if kind == "kLoop" else {"kind": kind}


PRODUCER_RULES = (no_users, not_a_loop)


@condition(
    code="FM012",
    title="A bitcast is no kernel",
    condition="Is a user of the fusion a bitcast?",
    why="A bitcast costs nothing as it is; made a fusion, it would be a kernel.",
    advice="Reshape once everything else is done: a value used both before and after a reshape is kept "
    "apart from both.",
    mirrors=_SHOULD,
    message="not fusing bitcast ops",
    history=_SUPERSEDED,
)
def user_is_bitcast(pair: GpuPair) -> dict[str, Any] | None:
    return {} if pair.consumer.opcode == "bitcast" else None


@requirement(
    code="FM013",
    title="A user is a custom fusion",
    condition="Is a user a fusion of kind kCustom, such as a Triton matrix product?",
    why="What such a fusion holds was chosen for its own emitter.",
    mirrors=_SHOULD,
    message="not fusing custom fusions",
    history=_SUPERSEDED,
)
def user_is_custom(pair: GpuPair) -> dict[str, Any] | None:
    return {} if pair.consumer.fusion_kind == "kCustom" else None


def heroes_clash(pair: GpuPair) -> Verdict | None:
    """`FusionHeroesAreCompatible`."""
    state = pair.state
    return heroes_verdict(pair.producer, pair.consumer, state.model, state.settings)


USER_RULES = (user_is_bitcast, user_is_custom, heroes_clash, *FUSIBLE_RULES)


@condition(
    code="FM014",
    title="A reduction would read mostly across the grain of memory",
    condition="Is a user a parallel reduction, and does the fusion move at least half as many elements "
    "about as it has results?",
    why="The reduction's threads read neighbouring elements together; through transposes these lie apart.",
    advice="Reduce before transposing.",
    mirrors=f"{_FILE}: TransposesMostData",
    message="would read mostly uncoalesced",
    knobs=(MAX_TRANSPOSED,),
    history=_SUPERSEDED,
)
def reads_uncoalesced(merge: Merge) -> dict[str, Any] | None:
    producer, state = merge.producer, merge.state
    if not any(state.model.summary(user).is_reduction for user in producer.users):
        return None
    share, results = 0.0, _elements(producer)
    for inner in producer.fused_computation:
        if is_physically_transposing(inner):
            share = fp32(share + _elements(inner) / results)
            if share >= state.settings.value(MAX_TRANSPOSED):
                return {"transposed_share": share}
    return None


def over_any_budget(merge: Merge) -> Verdict | None:
    """`FusionFitsInBudget` for every user."""
    state = merge.state
    for user in merge.producer.users:
        verdict = over_budget(user, merge.producer, state.model, state.settings, producer_consumer=True)
        if verdict is not None:
            return verdict
    return None


HUGE_CODE = register(
    code="FM015",
    title="Too much code would be copied",
    condition="Would more than 10000 instructions be emitted for a user's kernel, copies counted, each "
    "concatenate, dot, dynamic-update-slice, pad, reduce and reduce-window doubling the count?",
    why="Compiling would take for ever.",
    advice="See PF013.",
    mirrors="xla/service/gpu/model/gpu_hlo_cost_analysis.cc: "
    "GpuHloCostAnalysis::ProducerConsumerMergedTooLarge",
    message="if merged with … will generate huge IR",
    knobs=(MAX_IR_SIZE,),
    history=_SUPERSEDED + " The count no longer doubles in later releases.",
)


def huge_code(merge: Merge) -> Verdict | None:
    state = merge.state
    limit = state.settings.value(MAX_IR_SIZE)
    for user in merge.producer.users:
        size = state.model.merged_ir_size(merge.producer, user)
        if size > limit:
            message = f"if merged with {user.name} will generate huge IR"
            return Verdict(HUGE_CODE, {"instructions": size, "limit": int(limit)}, message)
    return None


MERGE_RULES = (reads_uncoalesced, over_any_budget, huge_code)
"""What is asked once all users have passed; `slower` comes last."""

SLOWER = register(
    code="FM016",
    title="The consumers would take longer than the kernel saves",
    condition="Do the kernels of all users, each computing what it needs of the fusion, take longer by "
    "XLA's model than the fusion's own kernel and the users reading what it wrote, launches included?",
    why="What a user reads several times is computed several times, and its inputs are read for each user.",
    advice="Usually right. Where the users could share the work, let one of them take it and the others "
    "read that one's result.",
    mirrors="xla/service/gpu/model/gpu_performance_model.cc: GpuPerformanceModel::EstimateRunTimes",
    message="will execute slower if fused",
    estimated=True,
    history=_SUPERSEDED,
)


def time_figures(times: MergeTimes) -> dict[str, Any]:
    """Both times of a merge."""
    return {"us_fused": microseconds(times.fused), "us_unfused": microseconds(times.unfused)}


def _elements(instruction: Instruction) -> int:
    shape = instruction.shape
    return sum(leaf.element_count for _, leaf in shape.leaves()) if shape.is_tuple else shape.element_count
