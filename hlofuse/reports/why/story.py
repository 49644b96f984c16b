"""All that was decided about one instruction."""

from __future__ import annotations

from dataclasses import dataclass

from hlofuse.reports.explain.facts import Facts
from hlofuse.reports.explain.lineage import Lineage
from hlofuse.reports.explain.model import Place
from hlofuse.reports.why.decisions import Decision, collapse
from hlofuse.reports.why.holder import holder_of
from hlofuse.trace import Event


@dataclass(frozen=True, slots=True)
class Story:
    """All that happened to one instruction."""

    subject: Place
    fate: str
    """`fused` (inside the kernels named), `kernel` (runs on its own), `no kernel` (nothing runs), `gone`, or
    `inside` (part of `holder` all along)."""
    kernels: tuple[Place, ...]
    """The kernels it ended in."""
    holds: tuple[str, ...]
    """For a fusion: the instructions of the input inside."""
    as_producer: tuple[Decision, ...]
    """Going into its users."""
    as_consumer: tuple[Decision, ...]
    """Taking its operands in."""
    rewrites: tuple[Decision, ...]
    holder: Place | None = None
    """For `inside`: the fusion, reduce, sort… that it is a part of; passes decide about that one."""


def story_of(name: str, facts: Facts) -> Story:
    holder = holder_of(name, facts)
    if holder is not None:
        runs_in = [k for k in facts.lineage.kernels_of(holder.name) if k in facts.launched_after]
        elsewhere = tuple(facts.place(k) for k in runs_in if k != holder.name)
        return Story(facts.place(name), "inside", elsewhere, (), (), (), (), facts.place(holder.name))
    giving: list[Event] = []
    taking: list[Event] = []
    rewrites: list[Event] = []
    live = Lineage()
    for e in facts.replay.events:
        if e.event == "priority":
            continue
        current = live.final(name)
        if e.event == "rewrite" and (name in e.removed or name in e.added or current in e.removed):
            rewrites.append(e)
        elif e.producer is not None and e.producer in (name, current):
            giving.append(e)
        elif e.consumer is not None and (e.consumer in (name, current) or e.fusion == name):
            taking.append(e)
        live.follow(e)
    final = facts.lineage.final(name)
    kernels = [k for k in facts.lineage.kernels_of(name) if k in facts.after]
    runs = [k for k in kernels if k in facts.launched_after]
    if any(k != name for k in runs) and name not in facts.launched_after:
        fate = "fused"
    elif name in facts.launched_after:
        fate = "kernel"
    else:
        fate = "no kernel" if final in facts.after else "gone"
    if fate == "gone" and (home := facts.home(name)) in facts.launched_after:
        fate, runs = "fused", [home]  # made on the way and taken in
    made = name not in facts.before or fate == "kernel"
    holds = [m for m in facts.lineage.members(final) if m in facts.before and m != final] if made else []
    return Story(
        facts.place(name),
        fate,
        tuple(facts.place(k) for k in runs if k != name),
        tuple(holds) if len(holds) > 1 else (),
        collapse(giving, facts),
        collapse(taking, facts),
        collapse(rewrites, facts),
    )
