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
    "Maximum fraction of transposed elements in a fusion merged into a reduction.",
)


@dataclass(slots=True)
class Merge:
    """A candidate: `producer` fused into all of its users."""

    producer: Instruction
    state: GpuFusionState


MERGED = outcome(
    code="FM001",
    title="A kernel is fused into all of its consumers",
    condition="The fusion can be merged into each of its users, and that is no slower than a separate"
    " kernel.",
    why="Its result is not written and read, and one launch is saved. Values that its users read several"
    " times are recomputed.",
    mirrors=f"{_FILE}: FusionInstructionMerger::FuseIntoAllUsers",
    allows=True,
    history=_SUPERSEDED,
)


@requirement(
    code="FM010",
    title="The kernel has no users",
    condition="The fusion has no users (it is the computation's result).",
    why="There is nothing to merge it into.",
    mirrors=_SHOULD,
    message="fusion has no users",
    history=_SUPERSEDED,
)
def no_users(merge: Merge) -> dict[str, Any] | None:
    return None if merge.producer.users else {}


@condition(
    code="FM011",
    title="The kernel is not a loop",
    condition="The fusion's kind is not kLoop: it is a reduction, a tiled transpose or a scatter.",
    why="Only values computed element by element can be computed inside another kernel.",
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
    title="A bitcast is not a kernel",
    condition="A user of the fusion is a bitcast.",
    why="A bitcast costs nothing; as a fusion it would be a kernel.",
    advice="Reshape at the end: a value used both before and after a reshape is fused with neither.",
    mirrors=_SHOULD,
    message="not fusing bitcast ops",
    history=_SUPERSEDED,
)
def user_is_bitcast(pair: GpuPair) -> dict[str, Any] | None:
    return {} if pair.consumer.opcode == "bitcast" else None


@requirement(
    code="FM013",
    title="A user is a custom fusion",
    condition="A user is a kCustom fusion, such as a Triton GEMM.",
    why="The contents of such a fusion were chosen for its own emitter.",
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
    title="A reduction would read mostly uncoalesced",
    condition="A user is a parallel reduction, and at least half of the fusion's elements are transposed.",
    why="The reduction's threads read neighbouring elements together; through transposes these are far"
    " apart.",
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
    condition="A user's kernel would have more than 10000 emitted instructions, counting duplicates. Each"
    " concatenate, dot, dynamic-update-slice, pad, reduce and reduce-window doubles the count.",
    why="Compilation would take too long.",
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
    title="The consumers would get slower by more than the kernel saves",
    condition="By XLA's model, the users' kernels, each recomputing its part of the fusion, take longer than"
    " the separate kernel and users, launches included.",
    why="Values that a user reads several times are recomputed, and the fusion's inputs are read for each"
    " user.",
    advice="Usually fine. If the users can share the work, let one user compute it and the others read its"
    " result.",
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
