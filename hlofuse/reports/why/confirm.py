"""Numbers of a device that would decide a pair otherwise: those that do when the whole module is replayed."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from hlofuse.account import Observed
from hlofuse.account.flips import Flip
from hlofuse.reports.common.facts import Facts
from hlofuse.reports.common.model import TRIED_UP_TO
from hlofuse.reports.why.model import PairAnswer
from hlofuse.reports.why.story import Answer, in_the_input


def confirmed(
    found: Sequence[Answer], observed: Observed, replayed: Callable[[str], Observed]
) -> list[Answer]:
    """The answers with only those flips that `replayed`, given `NAME=VALUE`, decides as they say."""
    facts = Facts(observed.replay)
    if len(facts.before) > TRIED_UP_TO:
        return list(found)
    cache: dict[str, Facts] = {}

    def decides(pair: PairAnswer, flip: Flip) -> bool:
        change = flip_setting(flip)
        if change not in cache:
            cache[change] = Facts(replayed(change).replay)
        return _is_one_kernel(pair, cache[change], observed) != _is_one_kernel(pair, facts, observed)

    out: list[Answer] = []
    for answer in found:
        if isinstance(answer, PairAnswer) and answer.cost is not None and answer.cost.flips:
            flips = tuple(f for f in answer.cost.flips if decides(answer, f))
            answer = replace(answer, cost=replace(answer.cost, flips=flips))
        out.append(answer)
    return out


def flip_setting(flip: Flip) -> str:
    """`core_count=80`, as `--set` takes it."""
    value = f"{flip.value:.0f}" if flip.value == int(flip.value) else f"{flip.value:.10g}"
    return f"{flip.number}={value}"


def _is_one_kernel(pair: PairAnswer, facts: Facts, observed: Observed) -> bool:
    """True if the operations of the input that the two stand for end up in one kernel."""
    names = in_the_input((pair.producer.name, pair.consumer.name), observed.replay)
    first, second = (set(facts.lineage.kernels_of(name)) for name in names)
    return not first.isdisjoint(second)
