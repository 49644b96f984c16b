"""The sentences of `why`, shared by its text and markdown reports."""

from collections.abc import Sequence

from hlofuse.format.escape import printable
from hlofuse.format.units import bytes_text, listing, more, plural, ranges
from hlofuse.reports.common.model import Place
from hlofuse.reports.why import Decision, PairAnswer, Story

ANSWERS = 5
"""Stories shown where a name means several things, and decisions of each."""
_LEFT_OUT = 8


def story_headline(s: Story) -> str:
    """What became of it, in one sentence."""
    name = printable(s.described.shown)
    if s.fate == "added":
        copy = f"; it copies {printable(s.copies)}" if s.copies else ""
        return f"{name} was added by a pass after fusion{copy}."
    if s.fate == "fused":
        if len(s.kernels) == 1:
            origin_text = " is an intermediate fusion and" if not s.described.opcode else ""
            return f"{name}{origin_text} runs in {printable(s.kernels[0].shown)}."
        return f"{name} was duplicated into {len(s.kernels)} kernels: {names(s.kernels)}."
    if s.fate == "kernel":
        also = f" and is also computed in {names(s.kernels)}" if s.kernels else ""
        return f"{name} runs as a kernel of its own{also}."
    if s.holder is not None:
        return f"{name} is inside {printable(s.holder.shown)}, which the passes treat as one operation."
    if s.fate == "no kernel":
        return f"{name} is not a kernel: {_one(s.described.opcode or 'value')} launches nothing."
    if s.before_fusion:
        return before_fusion_lines(s)[-1] + "."
    return f"{name} existed during fusion and was removed."


def answers_headline(queries: Sequence[str], answers: Sequence[Story | PairAnswer]) -> str:
    """`model.py:35: 2 kernels`, above the stories of each; of two names the pairs."""
    what = " and ".join(map(printable, queries))
    if len(queries) > 1:
        return f"{what}: {plural(len(answers), 'pair')}"
    kernels = sum(isinstance(a, Story) and a.fate == "kernel" for a in answers)
    others = len(answers) - kernels
    parts = [plural(kernels, "kernel")] if kernels else []
    parts += [plural(others, "other instruction" if kernels else "instruction")] if others else []
    return f"{what}: {', '.join(parts)}"


def more_answers_line(left_out: Sequence[Story | PairAnswer]) -> str:
    """`… 3 more (--limit 0 shows all): loop_add_fusion.2 (fusion.3), …`."""
    found = []
    for a in left_out:
        places = (a.described,) if isinstance(a, Story) else (a.producer, a.consumer)
        found.append(" → ".join(printable(p.final or p.name) for p in places))
    return f"{more(len(left_out))}: {listing(found, _LEFT_OUT)}"


def meant_line(s: Story) -> str:
    """Which operations of a kernel a line or an `op_name` means; empty where a name was asked about."""
    return f"matches: {listing([printable(n) for n in s.meant], _LEFT_OUT)}" if s.meant else ""


def before_fusion_lines(answer: Story | PairAnswer) -> list[str]:
    """`same was replaced by a (algsimp)`, for names of the module before optimizations."""
    lines = []
    for change in answer.before_fusion:
        name, by, pass_name = (printable(x or "") for x in (change.name, change.by, change.pass_name))
        if change.what == "removed":
            lines.append(f"{name} was removed by {pass_name}: unused")
        elif change.what == "copied":
            lines.append(f"{name} was moved and is now {by} ({pass_name})")
        elif change.what == "renamed":
            lines.append(f"{name} is named {by} at the fusion input")
        elif pass_name == "cse":
            lines.append(f"{name} was merged with its duplicate {by} (cse)")
        else:
            lines.append(f"{name} was replaced by {by} ({pass_name})")
    return lines


def _one(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {printable(noun)}"


def inside_lines(p: PairAnswer) -> list[str]:
    """`dot.1 is a part of ynn_fusion.4`, for names that stand for something larger."""
    return [f"{printable(name)} is inside {printable(holder)}" for name, holder in p.inside]


def pair_headline(p: PairAnswer) -> str:
    """The outcome, in one sentence."""
    a, b = printable(p.producer.shown), printable(p.consumer.shown)
    if p.outcome == "fused":
        return f"{a} was fused into {b}: both are in {names(p.shared)}."
    if p.outcome == "refused":
        return f"{a} was not fused into {b}."
    if p.outcome == "does not pay":
        return f"{a} was not fused into {b}: it would cost time."
    if p.outcome == "not considered":
        return f"No pass considered fusing {a} into {b}."
    if a == b:
        return f"{a} was given twice: give two different instructions, or one."
    return f"{a} is not an operand of {b}: no pass considers fusing the two."


def refused_user_line(p: PairAnswer) -> str:
    """Which user the verdict was about, where it was not this one; else empty."""
    if p.refused_user is None:
        return ""
    return (
        f"(Refused for another user, {printable(p.refused_user)}: this pass fuses a producer into all of its"
        " users or none.)"
    )


def not_considered(p: PairAnswer) -> str:
    """Why a pair with an edge was never asked about."""
    if len(p.inside) == 2:
        return f"No pass changes the inside of {printable(p.inside[0][1])}."
    return (
        f"The fusion passes never fuse into {_one(p.consumer.opcode or 'value')} like"
        f" {printable(p.consumer.name)}, or fused it elsewhere before visiting its operands."
    )


def kernels_line(p: PairAnswer) -> str:
    """Where the two finally run and the bytes between them; empty where there is nothing to say."""
    if p.outcome in ("fused", "apart") or not p.producer_kernels or not p.consumer_kernels:
        return ""
    producer = _kernel_note(p.producer, p.producer_kernels)
    consumer = _kernel_note(p.consumer, p.consumer_kernels)
    return f"Final: {producer} and {consumer}; {bytes_text(p.bytes_between)} are written and read back."


def _kernel_note(place: Place, kernels: tuple[Place, ...]) -> str:
    name = printable(place.final or place.name)
    if [k.name for k in kernels] == [place.name]:
        return f"{name} is a kernel"
    return f"{name} runs in {names(kernels)}"


def names(places: tuple[Place, ...], most: int = 4) -> str:
    """Some names, and how many more there are."""
    return listing([printable(p.shown) for p in places], most)


def steps_text(d: Decision) -> str:
    """`step 3, again at 7, 12`."""
    if len(d.steps) == 1:
        return f"step {d.steps[0]}"
    return f"step {d.steps[0]}, again at {ranges(list(d.steps[1:]))}"


def pair_text(producer: str | None, consumer: str | None) -> str:
    """`a → b`; the producer alone where no user was asked about."""
    return " → ".join(printable(n) for n in (producer, consumer) if n)


def verdict(d: Decision) -> str:
    """XLA's words where it has some, else the rule's title."""
    return printable(d.reason or d.rule.title)
