"""Rules of FusionMerger (`xla/service/gpu/transforms/fusion_merger.cc`, until 0.4.35): codes FM…. A fusion is
merged into all of its users or into none. `PRODUCER_RULES` are asked of the fusion, `USER_RULES` of every
user in turn; what follows is asked once all users have passed."""

from dataclasses import dataclass

from hlofuse.cost.gpu.merging import MergeTimes
from hlofuse.cost.gpu.ticks import fp32, microseconds
from hlofuse.ir.graph import Instruction
from .catalogue import Knob, outcome, register
from .fusion_heroes import heroes_verdict
from .gpu_fusible import is_physically_transposing
from .gpu_instruction_fusion import FUSIBLE_RULES, GpuFusionState, GpuPair
from .priority_fusion.conditions import MAX_IR_SIZE, over_budget
from .verdict import Answer, Decision, Figures, Verdict, condition, requirement

MAX_TRANSPOSED = Knob("gpu-max-transposed-share", 0.5)


@dataclass(slots=True)
class Merge:
    """A candidate: `producer` fused into all of its users."""

    producer: Instruction
    state: GpuFusionState


MERGED = outcome("FM001", "A kernel is fused into all of its consumers", allows=True)


@requirement("FM010", "The kernel has no users", message="fusion has no users")
def no_users(merge: Merge) -> bool:
    return not merge.producer.users


@condition("FM011", "The kernel is not a loop", message="not a loop fusion")
def not_a_loop(merge: Merge) -> Answer:
    kind = merge.producer.fusion_kind
    return None if kind == "kLoop" else {"kind": kind}


PRODUCER_RULES = (no_users, not_a_loop)


@condition("FM012", "A bitcast is not a kernel", message="not fusing bitcast ops")
def user_is_bitcast(pair: GpuPair) -> bool:
    return pair.consumer.is_bitcast


@requirement("FM013", "A user is a custom fusion", message="not fusing custom fusions")
def user_is_custom(pair: GpuPair) -> bool:
    return pair.consumer.fusion_kind == "kCustom"


def heroes_clash(pair: GpuPair) -> Decision:
    """`FusionHeroesAreCompatible`."""
    state = pair.state
    return heroes_verdict(pair.producer, pair.consumer, state.model, state.settings)


USER_RULES = (user_is_bitcast, user_is_custom, heroes_clash, *FUSIBLE_RULES)


@condition(
    "FM014",
    "A reduction would read mostly uncoalesced",
    message="would read mostly uncoalesced",
    knobs=(MAX_TRANSPOSED,),
)
def reads_uncoalesced(merge: Merge) -> Answer:
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


def over_any_budget(merge: Merge) -> Decision:
    """`FusionFitsInBudget` for every user."""
    state = merge.state
    for user in merge.producer.users:
        verdict = over_budget(user, merge.producer, state.model, state.settings, producer_consumer=True)
        if verdict is not None:
            return verdict
    return None


HUGE_CODE = register(
    "FM015",
    "Too much code would be copied",
    message="if merged with … will generate huge IR",
    knobs=(MAX_IR_SIZE,),
)


def huge_code(merge: Merge) -> Decision:
    state = merge.state
    limit = state.settings.value(MAX_IR_SIZE)
    for user in merge.producer.users:
        size = state.model.pair(merge.producer, user).merged_ir_size
        if size > limit:
            message = f"if merged with {user.name} will generate huge IR"
            return Verdict(HUGE_CODE, {"instructions": size, "limit": int(limit)}, message)
    return None


MERGE_RULES = (reads_uncoalesced, over_any_budget, huge_code)
"""Rules evaluated once all users have passed; `slower` comes last."""
SLOWER = register(
    "FM016",
    "The consumers would get slower by more than the kernel saves",
    message="will execute slower if fused",
    estimated=True,
)


def time_figures(times: MergeTimes) -> Figures:
    return {"us_fused": microseconds(times.fused), "us_unfused": microseconds(times.unfused)}


def _elements(instruction: Instruction) -> int:
    shape = instruction.shape
    return sum(leaf.element_count for leaf in shape.leaf_shapes) if shape.is_tuple else shape.element_count
