"""`why`: which instruction or pair a name means, and the story of one instruction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hlofuse.account import Costs
from hlofuse.analysis.kernels import SourceLine, launched_computations, source_line
from hlofuse.format.escape import printable
from hlofuse.format.units import listing
from hlofuse.inputs.suggest import did_you_mean
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Instruction
from hlofuse.replay import Replay
from hlofuse.reports.common.facts import Facts
from hlofuse.reports.common.lineage import Lineage, view_read
from hlofuse.reports.common.model import Place
from hlofuse.reports.common.unoptimized import beginning_of_fusion
from hlofuse.reports.why.model import PairAnswer, Story
from hlofuse.reports.why.pair import Request, collapse, pairs_of
from hlofuse.trace import Event
from hlofuse.trace.provenance import Change, Fate, Provenance

_KERNELS = 8  # named of one line


def why(
    replay: Replay, name: str, other: str | None = None, *, costs: Costs | None = None
) -> Story | PairAnswer:
    """The story of `name`, or what was decided about `name` and `other`.

    Names are those of the input, of the result, or of fusions made on the way, with or without `%`; a line
    of the program, `model.py:42`, stands for the one kernel that comes of it.
    HlofuseError with suggestions for a name that is none of them.
    """
    facts = Facts(replay, costs)
    names: list[str] = []
    changes: tuple[Change, ...] = ()
    for given in (name,) if other is None else (name, other):
        fate = _fate_before_fusion(given.strip().lstrip("%"), facts)
        if fate is not None and fate.survivor is None:
            return _removed(given.strip().lstrip("%"), fate, facts)
        changes += fate.changes if fate is not None else ()
        names.append((fate.survivor if fate is not None else None) or _existing_name(given, facts))
    if other is None:
        return replace(story_of(names[0], facts), before_fusion=changes)
    pair = pairs_of([_request(names[0], names[1], facts)], facts)[0]
    return replace(pair, before_fusion=changes)


def _fate_before_fusion(name: str, facts: Facts) -> Fate | None:
    """What became of a name of the module before optimizations; None for any other name.

    A name that is still there at fusion is none of them, as in XLA's dumps.
    """
    unoptimized = facts.replay.input.unoptimized
    if unoptimized is None or name in facts.before or unoptimized.find(name) is None:
        return None
    # Once more, now with an eye on the graph: hardly anybody asks.
    provenance, config = Provenance(), facts.replay.config
    beginning_of_fusion(
        unoptimized, config.target, (config.xla or config).device, config.build.flags, provenance
    )
    return provenance.fate(name)


def _removed(name: str, fate: Fate, facts: Facts) -> Story:
    """The story of an instruction that is not there when fusion begins."""
    unoptimized = facts.replay.input.unoptimized
    found = unoptimized.find(name) if unoptimized is not None else None
    assert found is not None
    place = Place(name, found.opcode, str(found.shape), op_name=found.op_name)
    return Story(place, "gone", (), (), (), (), (), before_fusion=fate.changes)


def why_each(pairs: Iterable[tuple[str, str]], facts: Facts) -> list[PairAnswer]:
    """What was decided about each pair; much faster than asking one after the other."""
    names = [(_existing_name(first, facts), _existing_name(second, facts)) for first, second in pairs]
    return pairs_of([_request(*pair, facts) for pair in names], facts)


def _request(first: str, second: str, facts: Facts) -> Request:
    """The two, or what holds them."""
    outer = [
        (name, holder.name) for name in (first, second) if (holder := holder_of(name, facts)) is not None
    ]
    final_names = dict(outer)
    producer, consumer = final_names.get(first, first), final_names.get(second, second)
    if producer == consumer:  # both in one, or one in the other
        return first, second, tuple(outer)
    return producer, consumer, tuple(outer)


def _existing_name(name: str, facts: Facts) -> str:
    plain = name.strip().lstrip("%")
    names = {*facts.before, *facts.after, *facts.lineage.names()}
    if plain in names:
        return plain
    inside = {i.name for i in facts.replay.after.instructions()}
    if plain in inside:
        return plain  # a clone inside a fusion that kept no original's name
    line = source_line(plain)
    if line is not None:
        return _kernel_of(line, plain, facts)
    unoptimized = facts.replay.input.unoptimized
    earlier = {i.name for i in unoptimized.instructions()} if unoptimized is not None else set()
    meant = did_you_mean(plain, sorted(names | earlier))
    raise HlofuseError(f"{printable(facts.replay.before.name)} has no instruction {printable(plain)}{meant}")


def _kernel_of(line: SourceLine, name: str, facts: Facts) -> str:
    """The one kernel that comes of a line of the program; HlofuseError where there is none, or a choice."""
    of_line = [i.name for i in facts.before.values() if line.is_of(i, facts.replay.before)]
    kernels = list(dict.fromkeys(k for n in of_line for k in facts.lineage.kernels_of(n)))
    kernels = [k for k in kernels if k in facts.launched_after]
    if len(kernels) == 1:
        return kernels[0]
    module, requests = printable(facts.replay.before.name), printable(name)
    if not kernels:
        raise HlofuseError(
            f"{module} has no instruction {requests}, and no kernel comes of a line of that name"
        )
    choice = listing([printable(k) for k in kernels], _KERNELS)
    raise HlofuseError(f"{len(kernels)} kernels of {module} come of {requests}; name one: {choice}")


def holder_of(name: str, facts: Facts) -> Instruction | None:
    """What `name` is a part of, where it is not an instruction the passes look at.

    That is an operation inside a fusion (of a library, or copied into one of ours) or of the function that
    a reduce, sort or scatter applies.
    """
    instruction, module = facts.before.get(name), facts.replay.before
    if instruction is None:
        if name in facts.after or name in facts.lineage.names():
            return None
        module = facts.replay.after
        instruction = next((i for i in module.instructions() if i.name == name), None)
    executed = set(launched_computations(module))
    holder = instruction
    seen: set[Instruction] = set()
    while holder is not None and holder.computation not in executed and holder not in seen:
        seen.add(holder)
        kernel = holder.computation
        holder = (kernel.fusion or kernel.first_caller) if kernel is not None else None
    return holder if holder is not instruction and holder not in seen else None


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
    if fate == "gone" and (kernel := facts.final_kernel(name)) in facts.launched_after:
        fate, runs = "fused", [kernel]  # made on the way and taken in
    created = name not in facts.before or fate == "kernel"
    holds = [m for m in facts.lineage.members(final) if m in facts.before and m != final] if created else []
    return Story(
        facts.place(name),
        fate,
        tuple(facts.place(k) for k in runs if k != name),
        tuple(holds) if len(holds) > 1 else (),
        collapse(giving, facts),
        collapse(taking, facts),
        collapse(rewrites, facts),
    )


def in_the_input(names: Sequence[str], xla: Replay) -> list[str]:
    """Each name, or the operation of the input for it: the result of a producer, what reads it of a consumer.

    Fusions are numbered as they come, so that the same number is another fusion in another run.
    """
    before = {i.name: i for i in xla.before.instructions()}
    lineage = Lineage(xla.events)
    plain = [name.strip().lstrip("%") for name in names]
    holders = [
        [n] if n in before else [m for m in lineage.members(lineage.final(n)) if m in before] for n in plain
    ]
    if not all(holders):
        return plain
    first, *others = holders
    for second in others:
        for producer in first:
            for consumer in second:
                if view_read(before[producer], before[consumer]) is not None:
                    return [producer, consumer]
    return [h[0] for h in holders]
