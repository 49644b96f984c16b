"""The decisions about one instruction, or about a pair of them; a file for each format beside the data."""

from __future__ import annotations

from collections.abc import Iterable

from hlofuse.account import Costs
from hlofuse.analysis.source_lines import SourceLine, source_line
from hlofuse.format.escape import printable
from hlofuse.inputs.suggest import did_you_mean
from hlofuse.ir.errors import HlofuseError
from hlofuse.replay import Replay
from hlofuse.reports.explain.facts import Facts
from hlofuse.reports.why.decisions import Decision
from hlofuse.reports.why.holder import holder_of
from hlofuse.reports.why.pair import Asked, Pair, last_priority, pairs_of
from hlofuse.reports.why.story import Story, story_of

__all__ = ["Decision", "Pair", "Story", "last_priority", "why", "why_each"]

_KERNELS = 8  # named of one line


def why(replay: Replay, name: str, other: str | None = None, *, costs: Costs | None = None) -> Story | Pair:
    """The story of `name`, or what was decided about `name` and `other`.

    Names are those of the input, of the result, or of fusions made on the way, with or without `%`; a line
    of the program, `model.py:42`, stands for the one kernel that comes of it.
    HlofuseError with suggestions for a name that is none of them.
    """
    facts = Facts(replay, costs)
    first = _known_name(name, facts)
    if other is None:
        return story_of(first, facts)
    return pairs_of([_asked(first, _known_name(other, facts), facts)], facts)[0]


def why_each(pairs: Iterable[tuple[str, str]], facts: Facts) -> list[Pair]:
    """What was decided about each pair; much faster than asking one after the other."""
    known = [(_known_name(first, facts), _known_name(second, facts)) for first, second in pairs]
    return pairs_of([_asked(*pair, facts) for pair in known], facts)


def _asked(first: str, second: str, facts: Facts) -> Asked:
    """The two, or what holds them."""
    outer = [
        (name, holder.name) for name in (first, second) if (holder := holder_of(name, facts)) is not None
    ]
    standing = dict(outer)
    producer, consumer = standing.get(first, first), standing.get(second, second)
    if producer == consumer:  # both in one, or one in the other
        return first, second, tuple(outer)
    return producer, consumer, tuple(outer)


def _known_name(name: str, facts: Facts) -> str:
    plain = name.strip().lstrip("%")
    known = {*facts.before, *facts.after, *facts.lineage.known()}
    if plain in known:
        return plain
    inside = {i.name for i in facts.replay.after.instructions()}
    if plain in inside:
        return plain  # a clone inside a fusion that kept no original's name
    line = source_line(plain)
    if line is not None:
        return _kernel_of(line, plain, facts)
    meant = did_you_mean(plain, sorted(known))
    raise HlofuseError(f"{printable(facts.replay.before.name)} has no instruction {printable(plain)}{meant}")


def _kernel_of(line: SourceLine, name: str, facts: Facts) -> str:
    """The one kernel that comes of a line of the program; HlofuseError where there is none, or a choice."""
    of_line = [i.name for i in facts.before.values() if line.made(i, facts.replay.before)]
    kernels = list(dict.fromkeys(k for n in of_line for k in facts.lineage.kernels_of(n)))
    kernels = [k for k in kernels if k in facts.launched_after]
    if len(kernels) == 1:
        return kernels[0]
    module, asked = printable(facts.replay.before.name), printable(name)
    if not kernels:
        raise HlofuseError(f"{module} has no instruction {asked}, and no kernel comes of a line of that name")
    more = f" and {len(kernels) - _KERNELS} more" if len(kernels) > _KERNELS else ""
    choice = ", ".join(map(printable, kernels[:_KERNELS]))
    raise HlofuseError(f"{len(kernels)} kernels of {module} come of {asked}; name one: {choice}{more}")
