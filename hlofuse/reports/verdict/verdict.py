"""From a replay to a verdict."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import inf

from hlofuse.account import Account, KernelTimes, Launched, Observed, Totals
from hlofuse.account.account import totals_of
from hlofuse.account.bound import ProgramFloor, fusion_floor, kind_of_work, program_floor
from hlofuse.account.functions import functions_of
from hlofuse.account.measured import share
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.analysis.kernels import end_of, inside
from hlofuse.analysis.launches import command_buffers
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.tpu import TpuDevice
from hlofuse.ir import Instruction, Module, Predicate, reach, replace, values
from hlofuse.passes.loop.parts import loops_of
from hlofuse.passes.loop.trip_count import awaited_elements, counts_to_an_argument, trip_count
from hlofuse.releases import Release, Span
from hlofuse.reports.advice.catalogue import WRITTEN
from hlofuse.reports.advice.chunks import CHUNKS
from hlofuse.reports.advice.matching import source
from hlofuse.reports.advice.recipe import Situation
from hlofuse.reports.advice.written import compile_time_notes, generated_code_note
from hlofuse.reports.common.facts import Facts, place_of
from hlofuse.reports.common.model import TRIED_UP_TO, Place
from hlofuse.reports.explain.explain import blocking_rules_of, grouped_kernels, hot_kernels
from hlofuse.reports.whatif.model import Ranking, RelaxedRule, Trial, rank
from hlofuse.rules.gpu_fusible import may_be_fused
from . import candidates
from .collectives import collective_rows, with_constraints
from .model import Share, Suggestion, Verdict, tiles_of

_KINDS = {
    "copy": "copies",
    "memset": "copies",
    "collective": "collectives",
    "host": "host",
}
_SECONDS = 30.0
_WORTH_TRYING = 0.95  # the part of the time below which a change is, though the error may be larger
_ROUNDING = 0.05  # the part of the time that is worth digits
_UNTIMED = 3  # percent of the time that a change is ranked by which replaces kernels of unknown time
_STAKE = 0.1  # the part of the time that it touches by which a change without a time is ranked
_CONVERTS_LAUNCHES = Span("0.8")  # before, command buffers are calls in the final module


def verdict(
    observed: Observed,
    facts: Facts,
    *,
    ranking: Ranking | None = None,
    unoptimized: Callable[[], Module | None] = lambda: None,
    about_all: bool = True,
) -> Verdict:
    """The totals of a replay, and the changes that improve them. Changes are tried up to `TRIED_UP_TO`
    instructions; `ranking` is that of the same replay, where it is at hand. Without `about_all` it is about
    some kernels alone, and nothing is suggested. `unoptimized` yields the module where flags begin."""
    config = observed.replay.config
    account = facts.account_after
    budget = candidates.Budget(inf if ranking is not None else _SECONDS, observed)
    tries = len(facts.before) <= TRIED_UP_TO
    suggestions: list[Suggestion] = []
    program = (observed.replay.input.unoptimized or unoptimized()) if about_all else None
    original = facts.account_replayed
    early = list(candidates.of_written(original, program, budget)) if program is not None and tries else []
    written = candidates.comparable(observed, program)
    if about_all:
        situation = Situation(facts, [r for b in blocking_rules_of(facts) for r in b.refusals])
        suggestions += candidates.of_recipes(situation, observed, written, budget if tries else None)
    names = {s.recipe for s in early}
    suggestions = [s for s in suggestions if s.recipe not in names or s.trial is not candidates.UNKNOWN]
    suggestions += [s for s in early if not WRITTEN[s.recipe].rounds]
    if tries and about_all:
        suggestions += candidates.of_flags(facts, written, budget)
        suggestions += candidates.of_barriers(observed, facts) if budget.allows() else ()
        suggestions += (
            candidates.of_pipelining(account, config.build.flags) if config.build.backend == "gpu" else ()
        )
        if ranking is None and budget.allows():
            join = partial(share, facts.account_replayed.module)
            input = observed.replay.input
            tables = observed.cache
            ranking = rank(input, config, attach=join, cache=tables, goes_on=budget.allows)
    if ranking is not None and about_all:
        suggestions += candidates.of_rules(ranking, suggestions)
    # A pass that is off may as well make matrix products slower as faster.
    timed = account.totals.us is not None
    base = facts.account_replayed.totals

    def is_unknown(s: Suggestion) -> bool:
        t = s.trial
        if s.recipe in CHUNKS and t.totals is not None and not t.frees_memory(base):
            return False  # it is for memory alone
        settled = t.us_saved is not None or t.scaled_us_saved is not None or t.is_to_be_measured
        is_within_error = timed and not s.flag and s.touched > 0 and t.is_to_be_measured
        if is_within_error and t.totals is not None and not t.helps(base):
            return (t.totals.us or 0.0) < _WORTH_TRYING * (base.us or 0.0)
        return t is candidates.UNKNOWN or (timed and not (t.us_saved if s.flag else settled or t.helps(base)))

    untried = list(filter(is_unknown, suggestions))
    suggestions = [s for s in suggestions if s not in untried]
    untried.sort(key=lambda s: (-round(s.touched, 2), -s.trial.bytes_saved))
    helpful = _rank(suggestions, original)
    if written is not None and tries:
        looped = candidates.with_loops_of_written(helpful, original, written, budget)
        helpful = _rank(looped, original)
    both = candidates.combined(helpful, original, written, budget) if tries else None
    relaxed = ranking.relaxed if ranking is not None else ()
    best, best_of = _best(helpful, relaxed)
    found = _as_it_runs(
        account, config.build.backend, config.release, config.device, facts.final_place, facts.account_before
    )
    trials, rows = [s.trial for s in suggestions] + [r.trial for r in relaxed], found.collectives
    loops = [x for x in loops_of(observed.replay.before.computations) if trip_count(x) is None]
    least = _ROUNDING * (base.us or inf)
    rounding = (s for s in early if WRITTEN[s.recipe].rounds and (s.trial.us_saved or 0.0) >= least)
    notes = [*compile_time_notes(program or observed.replay.before)] if about_all else []
    if about_all and not notes and config.build.backend == "cpu":
        notes += generated_code_note(account.module)
    return replace(
        found,
        program=_below(found.program, [t.totals for t in trials]),
        hot_kernels=hot_kernels(facts),
        suggestions=helpful,
        best=best,
        best_of=best_of,
        replays=len(relaxed) + sum(s.kind != "report" for s in suggestions),
        is_ranked=ranking is not None and not budget.skipped,
        untried=tuple(untried),
        slower=tuple(s for s in suggestions if s not in helpful and s.trial.frees_memory(base)),
        rounding=tuple(sorted(rounding, key=lambda s: s.trial.gain, reverse=True)),
        together=both,
        compile_time=tuple(notes),
        skipped=budget.skipped,
        has_unoptimized=program is not None,
        collectives=with_constraints(rows, program) if program and rows else rows,
        counts_to_an_argument=bool(loops) and all(map(counts_to_an_argument, loops)),
        awaited_elements=max(map(awaited_elements, loops), default=0),
        discarded=_discarded(account, facts) if about_all else None,
    )


def _discarded(account: Account, facts: Facts) -> tuple[float, Place] | None:
    """Microseconds, without launches, of kernels whose results one condition may discard, and the first."""
    found = []
    for r in account.rows:
        part = _discarded_part(end_of(r.instruction))
        if part and r.us is not None and not (account.times and _is_left_out(r.instruction)):
            found.append((part * (r.us - r.launch_us) * r.runs, r.instruction))
    us = sum(own for own, _ in found)
    is_much = us >= _ROUNDING * (account.totals.compared_us or inf)
    return (us, facts.final_place(found[0][1])) if is_much else None


def _discarded_part(x: Instruction) -> float:
    """1 for a choice by one condition between a given array and a computed one; of a tuple these by bytes."""
    if x.opcode == "tuple":
        return sum(_discarded_part(o) * o.byte_size for o in x.operands) / max(x.byte_size, 1)
    if x.opcode != "select" or source(x.operand).sizes or not x.sizes:
        return 0
    sides = {o.through("bitcast", "copy").opcode: o for o in x.operands[1:]}
    if "parameter" not in sides or len(sides) == 1 or not {"constant", "broadcast"}.isdisjoint(sides):
        return 0
    computed = [o for opcode, o in sides.items() if opcode != "parameter"]
    readers = reach(computed, lambda i: [] if i.opcode == "select" else i.users)
    return int(all(i.opcode != "tuple" for i in readers))  # or another result needs it


def _is_left_out(kernel: Instruction) -> bool:
    """True where LLVM may have a loop for each outcome on a CPU: measured up to 30 operations on an element,
    each chosen value read by its choice alone."""
    large = (i for i in inside(kernel) if i.is_array and i.element_count > 1)
    own = [i for i in large if i.opcode not in _VIEWS]
    chosen = (o for i in own if i.opcode == "select" for o in i.operands[1:] if not o.is_parameter)
    is_simple = all(i.opcode in ELEMENTWISE_OPCODES for i in own) and all(o.user_count == 1 for o in chosen)
    return is_simple and len(own) <= _SHORT


_VIEWS = values("bitcast broadcast constant copy")
_SHORT = 40  # operations


def verdict_as_it_is(account: Account, release: Release, device: DeviceDescription | None) -> Verdict:
    """The verdict on a fused module: what runs, and the floor; nothing of it is replayed."""
    where = partial(place_of, module=account.module)
    backend = "gpu" if device is not None else account.backend
    rows = [(r, where(r.instruction)) for r in account.rows if r.runs or r.measured_us]
    times = KernelTimes(device, release).kernel if device is not None else account.kernel
    return replace(
        _as_it_runs(account, backend, release, account.machine, where, account),
        hot_kernels=grouped_kernels(rows, times, account.times),
        time_source=account.time_source,
        is_replayed=False,
        tiles=tiles_of(account, where) if account.backend == "tpu" else None,
    )


def _as_it_runs(
    account: Account,
    backend: str,
    release: Release,
    device: DeviceDescription | TpuDevice | None,
    where: Callable[[Instruction], Place],
    before: Account,
) -> Verdict:
    """The verdict on what runs, and its floors; `before` has the FLOP of what may be fused."""
    fused = _may_change(backend, release)
    flops = sum(r.cost.flops * r.runs for r in before.rows if fused(r.instruction)) if device else 0
    together = _in_command_buffers(account, release.name)
    timed = device if account.totals.us is not None else None
    program: ProgramFloor | None = program_floor(account, fused, timed)
    return Verdict(
        account.totals,
        tuple(_shares(account, fused, together)),
        fusion_floor(account, fused, flops, device),
        _below(program, [account.totals]),
        (),
        measured=account.measured,
        cpu=account.times.device if account.times is not None else None,
        collectives=collective_rows(account.collectives, where),
        functions=functions_of(account),
        host_reads_conditions=bool(account.host_reads),
    )


def _may_change(backend: str, release: Release) -> Predicate:
    """Says of a kernel whether fusion can change it: not of library calls."""
    if backend != "gpu":
        return lambda x: x.fusion_kind != "kCustom" and x.opcode not in ("dot", "convolution", "sort")
    return lambda x: may_be_fused(x, release)


def _below(floor: ProgramFloor | None, found: Iterable[Totals | None]) -> ProgramFloor | None:
    for t in found:
        if floor is not None and t is not None:
            floor = floor.below(t.cost.bytes_accessed, t.us)
    return floor


def _rank(suggestions: Iterable[Suggestion], account: Account) -> tuple[Suggestion, ...]:
    """Suggestions with a gain, largest first; one for each rule and place, and for each result. Of equal ones
    the later is first: the catalogue has special recipes after general ones."""
    best: dict[object, Suggestion] = {}
    totals = account.totals
    order = sorted(enumerate(suggestions), key=lambda pair: (*_place_in_list(pair[1], totals), -pair[0]))
    for _, s in order:
        if s.trial.helps(totals):
            place = (s.rule or s.recipe, s.sources) if s.rule or s.recipe else s.text
            best.setdefault(s.trial.totals if s.flag else place, s)
    results = {(s.trial.totals, s.sources or s.text): s for s in reversed(best.values())}
    return tuple(reversed(results.values()))


def _place_in_list(s: Suggestion, t: Totals) -> tuple[bool, float, int, int, bool, tuple[float, ...]]:
    """The sort key: memory first if it does not fit, or without a time; of equal percentages a flag last."""
    percent = round(100 * s.trial.gain[0] / (t.compared_us or inf))
    if t.us is not None and s.trial.has_no_time:
        least = _UNTIMED if s.trial.replaces_unknown(t) else 0
        percent = max(round(100 * _STAKE * s.touched), least)
    gain = tuple(-x for x in s.trial.gain)
    memory = -s.trial.relief(t)
    unsure = s.trial.is_to_be_measured * (2 - s.trial.saves_memory(t))
    return s.kind == "report", memory, unsure, -percent, bool(s.flag), gain


def _best(suggestions: Sequence[Suggestion], relaxed: Sequence[RelaxedRule]) -> tuple[Trial | None, str]:
    """The greatest gain that anything had that was replayed, and what it was."""
    found = [(s.trial, s.text) for s in suggestions if s.trial.totals is not None]
    found += [(r.trial, f"without {r.rule.code}") for r in relaxed]
    return max(found, key=lambda pair: pair[0].gain, default=(None, ""))


def _in_command_buffers(account: Account, release: str) -> int | None:
    """The number of a GPU's launches in command buffers; None where that is not known."""
    buffers = account.buffers
    if buffers is None or not _CONVERTS_LAUNCHES.includes(release):
        return None
    found = command_buffers(account.module, buffers.commands, buffers.smallest)
    if found is None:
        return None
    return sum(account.runs(i.computation) for own in found for i in own if i.computation is not None)


def _shares(account: Account, fused: Predicate, together: int | None) -> Iterable[Share]:
    """Shares of the total by kind, slowest first; launch overhead is its own kind where there are times."""
    rows: dict[str, list[Launched]] = {}
    for row in account.rows:
        is_fusion = row.kind == "kernel" and fused(row.instruction)
        kind = "fused kernels" if is_fusion else kind_of_work(row) or _KINDS[row.kind]
        rows.setdefault(kind, []).append(row)
    timed = account.totals.us is not None
    found = [_share(kind, own, timed=timed) for kind, own in rows.items()]
    if timed and account.totals.launches:
        timed_rows = [r for r in account.rows if r.us is not None]  # the total has no other
        launches = sum(r.launch_us * r.runs for r in timed_rows)
        t = account.totals
        if t.call_us:
            found.append(Share("call", 1, t.call_us, 0))
        share = Share("launches", t.launches, launches, 0, in_command_buffers=together)
        found.append(replace(share, host_wait_us=t.host_wait_us))
    return sorted(found, key=lambda s: (-(s.measured_us or 0.0), -(s.us or 0.0), -s.bytes_accessed))


def _share(kind: str, rows: Sequence[Launched], *, timed: bool) -> Share:
    t = totals_of(rows, timed=timed)
    launches_us = sum(r.launch_us * r.runs for r in rows if r.us is not None)
    measured = [r.measured_us for r in rows if r.measured_us is not None]
    us = t.us - launches_us if t.us is not None else None
    is_floor = any(r.is_floor or r.us is None for r in rows if r.runs)
    found = Share(kind, t.launches, us, t.cost.bytes_accessed, is_floor, sum(measured) if measured else None)
    return replace(found, is_open=t.open_ended > 0)
