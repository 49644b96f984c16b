"""Changes that need less memory, each replayed on the module."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress

from hlofuse.account import Observed, observed_replay
from hlofuse.account.replaying import account_of, final_account
from hlofuse.analysis.hlo_alias import alias_config, write_alias_config
from hlofuse.analysis.hlo_value import Index
from hlofuse.analysis.kernels import end_of
from hlofuse.compilation import ReplayConfig
from hlofuse.compilation.spans import finish
from hlofuse.format.units import listing
from hlofuse.ir import (
    HlofuseError,
    Instruction,
    Module,
    Record,
    Shape,
    computation_of,
    copy_module,
    replace,
)
from hlofuse.ir.opcodes import values
from hlofuse.memory import assign
from hlofuse.pipelines.flags import DISABLED, value_of
from hlofuse.pipelines.stage import Stage
from hlofuse.releases import Span
from hlofuse.reports.advice.matching import is_backward
from hlofuse.reports.common.facts import Facts
from hlofuse.reports.common.model import TRIED_UP_TO, lines_of
from hlofuse.reports.verdict.candidates import of_barriers, with_edited, with_own
from hlofuse.reports.verdict.model import Verdict
from hlofuse.reports.verdict.phrases import suggestion_text
from hlofuse.reports.whatif.model import Trial, trial_of
from .ideas import argument_name

_OPTIONAL = values("copy_fusion computation-deduplicator")  # XLA:GPU compiles without these alone
_SCHEDULER = "xla_cpu_scheduler_type"
_HAS_SCHEDULERS = Span("0.9")
_LEAST = 0.01  # the part of the memory that a change has to save
_TRIES = 4  # arrays that are tried, the largest first, for a change that is about one array


class MemoryChange(Record):
    text: str  # The action; of a flag, the words to set
    trial: Trial
    sources: tuple[str, ...] = ()
    flag: str = ""
    recipe: str = ""


def memory_changes(
    observed: Observed, facts: Facts, verdict: Callable[[], Verdict]
) -> tuple[MemoryChange, ...]:
    """Changes that save 1% or more of the memory, the largest saving first. Above `TRIED_UP_TO` instructions
    only the passes after fusion are tried: other suggestions are tried on a part, which has no memory."""
    tried = verdict() if len(facts.before) <= TRIED_UP_TO else None
    found = [*_without_passes(facts), *_in_memory_order(facts), *_donated(facts)]
    if tried is not None:
        recipes = {c.recipe for c in found if c.recipe}
        for s in (*tried.suggestions, *tried.slower):
            flags = {c.flag for c in found if c.flag}
            if (s.recipe or s.flag) and s.flag not in flags and s.recipe not in recipes:
                found.append(MemoryChange(suggestion_text(s), s.trial, s.sources, s.flag, s.recipe))
        found += _edited(observed, facts)
    return tuple(sorted(filter(_saves, found), key=lambda c: -(c.trial.memory_saved or 0)))


def _saves(change: MemoryChange) -> bool:
    after, saved = change.trial.totals, change.trial.memory_saved or 0
    return after is not None and saved > 0 and saved >= _LEAST * (saved + (after.memory_bytes or 0))


def _finished(
    facts: Facts,
    module: Module,
    config: ReplayConfig,
) -> Trial:
    final = finish(module, config, ()).module
    after = account_of(facts.replay, facts.costs, final, is_final=True).totals
    return trial_of(facts.account_replayed.totals, after, "replayed")


def _without_passes(facts: Facts) -> Iterator[MemoryChange]:
    replay = facts.replay
    for name in sorted(_OPTIONAL.intersection(replay.span(Stage.SCHEDULED).changing_passes)):
        flag = with_own(f"--{DISABLED}={name}", replay.config.build.flags)
        config = replay.config.without_passes([name])
        yield MemoryChange(f"XLA_FLAGS={flag}", _finished(facts, replay.after, config), flag=flag)


def _donated(facts: Facts) -> Iterator[MemoryChange]:
    module = copy_module(facts.replay.after)
    config = alias_config(module)
    if given := _donations(module):
        for p, index in given.items():
            config.set_up(index, (p.parameter_number, ()))
        write_alias_config(module, config)
        names = Counter(map(_outer_name, given))
        shapes = {p.shape for p in given}
        free = (p for p in module.entry.parameters if p.shape in shapes and p not in given)
        rest = [_outer_name(p) for p in free if not config.is_aliased((p.parameter_number, ()))]
        others = [n for n in dict.fromkeys(rest) if n not in names and rest.count(n) >= min(names.values())]
        whose = "it" if len(names) == 1 else "them"
        text = f"Donate {listing(list(names), 3)} (donate_argnums) if the caller no longer needs {whose}"
        if others:
            text += f"; {listing(others, 3)} would do for one of the same shape"
        yield MemoryChange(text, _finished(facts, module, facts.replay.config), recipe="donate-the-argument")


def _in_memory_order(facts: Facts) -> Iterator[MemoryChange]:
    """The program on a CPU with the scheduler that lets arrays die early."""
    config = facts.replay.config
    is_chosen = value_of(config.build.flags, _SCHEDULER) is not None
    if config.target != "cpu" or is_chosen or not _HAS_SCHEDULERS.includes(config.release.name):
        return
    account = facts.account_replayed
    memory = assign(account.module, "cpu", None, account.memory)
    after = replace(account.totals, peak_temporary_bytes=memory.temporary, memory_bytes=memory.total)
    flag = f"--{_SCHEDULER}=CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"
    yield MemoryChange(f"XLA_FLAGS={flag}", trial_of(account.totals, after, "replayed"), flag=flag)


def _edited(
    observed: Observed,
    facts: Facts,
) -> Iterator[MemoryChange]:
    replay, before = observed.replay, facts.account_replayed.totals
    for x in _largest(_reordered(replay.before), _LEAST * (before.peak_temporary_bytes or 0)):
        text = f"Keep {argument_name(x.operand)} as it is read: pass it transposed by"
        sources = lines_of(facts.place(place.name) for place in x.users)
        module = copy_module(replay.before)
        edited = module.find(x.name)
        assert edited is not None
        _pass_reordered(edited)
        input = with_edited(replay.input, module)
        with suppress(HlofuseError):
            after = observed_replay(input, replay.config, cache=observed.cache, totals_only=True)
            trial = trial_of(before, final_account(after).totals, "replayed")
            yield MemoryChange(f"{text} ({', '.join(map(str, _order(x)))})", trial, sources)
    yield from (
        MemoryChange(s.text, s.trial, s.sources) for s in of_barriers(observed, facts, for_memory=True)
    )


def _donations(module: Module) -> dict[Instruction, Index]:
    """Arrays that are not donated, each with a result of its shape that has a place of its own; of the
    arguments that fit the most results, paired in order as JAX does. A gradient replaces no argument."""
    config, root = alias_config(module), module.entry.root
    results = []
    for index, shape in root.shape.leaves():
        result = root.operands[index[0]] if root.opcode == "tuple" else root
        if shape.is_array and shape.rank and index not in config.aliases and not is_backward(_named(result)):
            results.append((index, shape))
    shapes = {shape for _, shape in results}
    free = [p for p in module.entry.parameters if not config.is_aliased((p.parameter_number, ()))]
    fitting = Counter(_outer_name(p) for p in free if p.shape in shapes)
    found = _paired(sorted(free, key=lambda p: -fitting[_outer_name(p)]), results)
    names = set(map(_outer_name, found))
    return _paired([p for p in free if _outer_name(p) in names], results)


def _paired(
    free: list[Instruction],
    results: list[tuple[Index, Shape]],
) -> dict[Instruction, Index]:
    found = dict[Instruction, Index]()
    for index, shape in results:
        if (p := next((p for p in free if p.shape == shape and p not in found), None)) is not None:
            found[p] = index
    return found


def _outer_name(parameter: Instruction) -> str:
    return re.split(r"[\[.]", argument_name(parameter))[0]


def _named(x: Instruction) -> Instruction:
    """The operation that a result is a copy or another form of: the first with a name."""
    while not x.op_name and len(x.operands) == 1:
        (source,) = x.operands
        whole = end_of(source)
        is_element = x.opcode == "get-tuple-element" and whole.opcode == "tuple"
        x = whole.operands[x.tuple_index] if is_element else source
    return x


def _largest(found: Iterator[Instruction], least: float) -> list[Instruction]:
    large = (x for x in found if x.shape.is_array and x.shape.byte_size >= least)
    return sorted(large, key=lambda x: -x.shape.byte_size)[:_TRIES]


def _reordered(module: Module) -> Iterator[Instruction]:
    """Transposes, and copies with another layout, that are the only reader of an argument."""
    config = alias_config(module)
    for p in module.entry.parameters:
        if len(p.users) != 1 or config.is_aliased((p.parameter_number, ())):
            continue
        (x,) = p.users
        is_moved = x.opcode == "transpose" or (x.opcode == "copy" and x.shape != p.shape)
        if is_moved and _order(x) != tuple(range(x.shape.rank)):
            yield x


def _order(x: Instruction) -> tuple[int, ...]:
    """The dimensions of an argument in the order in which they lie in memory after a transpose or copy."""
    layout = x.shape.layout
    major_first = layout.minor_to_major[::-1] if layout is not None else range(x.shape.rank)
    return tuple(x.dimensions[d] if x.opcode == "transpose" else d for d in major_first)


def _pass_reordered(x: Instruction) -> None:
    x.operand.shape = x.shape
    x.replace_all_uses_with(x.operand)
    computation_of(x).remove_instruction(x)
