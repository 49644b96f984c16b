"""The check itself: every module, replayed or as XLA left it, against its budgets and its baseline."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from msgspec import Struct

from hlofuse.account import Account
from hlofuse.account.measured import NO_MEASURED_TIME
from hlofuse.analysis.kernels import computed_in, kernel_source, outermost_loops
from hlofuse.compilation import Compilation
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.format import bytes_text, plural, printable, us_text
from hlofuse.format.paths import layer_of, portable
from hlofuse.ir import HlofuseError, Instruction, Module, Record, Strings, grouped, reach, replace, with_trait
from hlofuse.ir.grouping import unmatched
from hlofuse.reports.common.facts import Facts
from hlofuse.reports.common.head import Head
from hlofuse.reports.common.model import Place
from hlofuse.reports.explain.explain import explain
from hlofuse.reports.verdict.model import Verdict
from .baseline import Baseline, Budget, RefusedEdges, distinguishable, most_significant, over_budget
from .model import (
    BaselineKernel,
    Check,
    Code,
    Figures,
    Finding,
    Level,
    ModuleCheck,
    Profile,
    RefusedEdge,
    Where,
    first_place,
)

_SILENT = with_trait("free") - {"parameter"}


def profile_of_replay(name: str, facts: Facts, root: Path) -> Profile:
    """The profile of a module after its replayed fusion passes."""
    replay = facts.replay
    release = replay.config.release.title
    found = _profile(name, facts.account_after, replay.target, replay.device, release, root)
    names = replay.names_at_fusion
    kernels = (replace(k, input_name=names.get(k.name, k.name)) for k in found.kernels)
    return replace(found, kernels=tuple(kernels))


def profile_of_result(
    name: str,
    account: Account,
    target: str,
    device: DeviceDescription | None,
    root: Path,
) -> Profile:
    """The profile of a module that is fused already."""
    return _profile(name, account, target, device.name if device is not None else None, "", root)


def _profile(
    name: str,
    account: Account,
    target: str,
    device: str | None,
    release: str,
    root: Path,
) -> Profile:
    module, totals = account.module, account.totals
    listed = sorted(
        (
            BaselineKernel(_what(r.instruction), where_is(module, r.instruction, root), r.instruction.name)
            for r in account.rows
        ),
        key=lambda k: (k.where, k.what, k.name),
    )
    if account.measured is not None and not totals.measured_us:
        raise HlofuseError(f"{printable(name)}: {NO_MEASURED_TIME}")
    cpu = account.times.device.name if account.times is not None and totals.us is not None else None
    us, measured_us = (None if us is None else round(us, 2) for us in (totals.us, totals.measured_us))
    moved, memory, has_floors = totals.cost.bytes_accessed, totals.memory_bytes, totals.is_floor
    sides = totals.devices, has_floors, totals.cost.unknown
    sums = Figures(totals.kernels, moved, us, measured_us, memory, *sides)
    loops = outermost_loops(module)
    largest = account.memory.peak[:1] if memory is not None else []
    at_peak = where_is(module, largest[0].instruction, root) if largest else Where()
    return Profile(name, target, device, release, sums, tuple(listed), loops, account.measured, at_peak, cpu)


def _what(kernel: Instruction) -> str:
    if kernel.is_fusion:
        counted = Counter(i.opcode for i in computed_in(kernel) if i.opcode not in _SILENT)
        parts = [f"{op}×{n}" if n > 1 else op for op, n in sorted(counted.items())]
        return f"{kernel.fusion_kind}: {', '.join(parts) or 'copies'}"
    if kernel.opcode == "custom-call":
        # The separator of a baseline's lines is no part of a kernel.
        target = printable(kernel.raw("custom_call_target") or "").strip('"')
        return f"custom-call {target.replace('|', '¦')}".strip()
    return kernel.opcode


def where_is(module: Module, instruction: Instruction, root: Path) -> Where:
    """The source place of an instruction; an empty one where the dump has none."""
    source = kernel_source(instruction, module)
    if source is None:
        return Where()
    layer = layer_of(instruction.op_name)
    return Where(portable(source.file, root), source.line, source.function, layer)


def refused_edges(facts: Facts, root: Path) -> list[RefusedEdge]:
    """Every pair of kernels kept apart, greatest value first."""
    explanation = explain(facts.replay, facts=facts)
    found = []
    for blocking in explanation.blocking_rules:
        for r in blocking.refusals:
            final = facts.lineage.final(r.producer.name)
            names = {final, r.consumer or ""}
            found.append(
                RefusedEdge(
                    blocking.rule.code,
                    blocking.rule.title,
                    blocking.rule.advice,
                    r.producer,
                    Place(r.consumer, final=r.consumer_final) if r.consumer is not None else None,
                    frozenset(names - {""}),
                    _place(facts.replay, r.producer.name, final, root),
                    r.bytes_between,
                    r.us_at_stake,
                    r.reason or "",
                )
            )
    found.sort(key=lambda h: (-(h.us_at_stake or 0.0), -h.bytes_between, h.producer.name))
    return found


def _place(replay: Compilation, name: str, final: str, root: Path) -> Where:
    """The source place of an input operation, or of the kernel that an intermediate fusion became."""
    for module, profile in ((replay.before, name), (replay.after, final)):
        instruction = module.find(profile)
        if instruction is not None:
            return where_is(module, instruction, root)
    return Where()


def between(kernels: tuple[BaselineKernel, ...], refused_edges: list[RefusedEdge]) -> tuple[RefusedEdge, ...]:
    """Refused edges between these kernels, or else between them and any other."""
    names = {k.input_name for k in kernels}
    both = [h for h in refused_edges if h.kernels <= names]
    return tuple(both or [h for h in refused_edges if h.kernels & names])


class Measured(Record):
    """A module's profile, and who can say what keeps its kernels apart."""

    profile: Profile
    file: str
    refused_edges: RefusedEdges  # Asked where something broke only: it takes longer than everything else
    changes: Strings = ()
    note: str = ""  # The origin of the module; empty where XLA wrote it
    head: Head | None = None
    verdict: Callable[[], Verdict | None] = lambda: None
    """The headroom and the suggestions; called for a module that failed."""


def check_modules(
    measured: Iterable[Measured],
    *,
    budgets: Sequence[Budget] = (),
    baseline: Baseline | None = None,
    baseline_name: str | None = None,
    all_there: bool = True,
    tolerance: float = 0.0,
    strict: bool = False,
) -> Check:
    """Compare modules with budgets (those of the baseline as well) and with the baseline; `all_there`: report
    what only the baseline has. HlofuseError for another device, and a time that nothing estimates."""
    bounds = [*budgets, *(baseline.budgets if baseline is not None else ())]
    done = []
    changes: dict[str, None] = {}
    notes: dict[str, None] = {}
    for m in measured:
        refused_edges = cache(m.refused_edges)  # asked for each finding
        changes |= dict.fromkeys(m.changes)
        notes |= dict.fromkeys([m.note] if m.note else [])
        found = over_budget(m.profile, bounds, refused_edges)
        profile = baseline.profiles.get(m.profile.name) if baseline is not None else None
        if profile is not None:
            found += compare(m.profile, profile, refused_edges, tolerance=tolerance, strict=strict)
        elif baseline is not None and baseline.profiles:
            message = f"not in the baseline ({plural(m.profile.figures.kernels, 'kernel')}): --update adds it"
            level = Level.ERROR if strict else Level.WARNING
            found.append(Finding(Code.MODULE_NEW, level, m.profile.name, message))
        broken = {f.code for f in found if f.level is Level.ERROR}
        answer = _that_helps(m.verdict(), broken) if broken else None
        done.append(ModuleCheck(m.profile, m.file, profile, tuple(found), answer))
    names = {m.profile.name for m in done}
    others = [
        Finding(
            Code.MODULE_MISSING,
            Level.ERROR if strict else Level.NOTE,
            name,
            "in the baseline, not in the input; delete its lines if the module was removed",
        )
        for name in (baseline.profiles if baseline is not None and all_there else ())
        if name not in names
    ]
    return Check(tuple(done), tuple(others), baseline_name, what_if=tuple(changes), notes=tuple(notes))


_SAVED = {"kernels": "kernels_saved", "bytes": "bytes_saved", "time": "us_saved", "memory": "memory_saved"}


def _that_helps(v: Verdict | None, broken: Iterable[Code]) -> Verdict | None:
    """The verdict without the suggestions that are not known to save any of what is too much."""
    names = {_SAVED.get(code.partition("-")[2], "") for code in broken} - {""}
    if v is None or not names:
        return v
    left = tuple(s for s in v.suggestions if any((getattr(s.trial, name) or 0) > 0 for name in names))
    return replace(v, suggestions=left, together=v.together if left == v.suggestions else None)


def compare(
    now: Profile,
    baseline: Profile,
    refused_edges: RefusedEdges,
    *,
    tolerance: float = 0.0,
    strict: bool = False,
) -> list[Finding]:
    """The findings of a comparison with the baseline. More bytes, time or memory is an error, and so are more
    kernels unless the time fell; a change is an error with them, else a warning, unless `strict`.
    `tolerance` is the share by which all but kernels may grow. HlofuseError for a baseline of another device:
    its figures say nothing here; times for two CPUs are not compared."""
    if now.device != baseline.device:
        now_on, baseline_on = (printable(p.device or f"target {p.target}") for p in (now, baseline))
        raise HlofuseError(
            f"the baseline of {printable(now.name)} is for {baseline_on}, the input for {now_on}; use one"
            " baseline per target"
        )
    groups = list(_groups(baseline.kernels, now.kernels))
    uncompared = _uncompared(now, baseline)
    base = baseline.figures if _is_same_cpu(now, baseline) else replace(baseline.figures, us=None)
    figures = list(_figures(base, now.figures))
    allowed = dict.fromkeys((Code.MORE_BYTES, Code.MORE_TIME, Code.MORE_MEMORY), 1 + tolerance)
    worse = [(code, text) for code, old, new, text in figures if new > old * allowed.get(code, 1)]
    is_faster = any(code is Code.MORE_TIME and new < old for code, old, new, _ in figures)
    is_worse = any(code is not Code.MORE_KERNELS or not is_faster for code, _ in worse)
    level = Level.ERROR if is_worse or strict else Level.WARNING
    at_peak = {Code.MORE_MEMORY: now.at_peak}
    found = [Finding(code, level, now.name, text, at_peak.get(code, Where())) for code, text in worse]
    for group in groups:
        found.append(_finding(group, now.name, level if group.grows or strict else Level.NOTE, refused_edges))
    # A figure stands at the place where most came in.
    place = first_place(f for f in found if f.now and f.level is level)
    found = [replace(f, where=place) if not (f.now or f.before or f.where.file) else f for f in found]
    if uncompared:
        level = Level.ERROR if strict else Level.WARNING
        found.append(Finding(Code.TIME_UNCOMPARED, level, now.name, uncompared))
    better = [] if is_worse else [text for _, old, new, text in figures if new < old]
    if better:
        message = f"{', '.join(better)}; --update makes this the baseline"
        found.insert(0, Finding(Code.FEWER, Level.NOTE, now.name, message))
    return found


def _figures(base: Figures, now: Figures) -> Iterator[tuple[Code, float, float, str]]:
    yield Code.MORE_KERNELS, base.kernels, now.kernels, f"{plural(base.kernels, 'kernel')} → {now.kernels:,}"
    yield Code.MORE_BYTES, base.bytes, now.bytes, f"{_change(base.bytes, now.bytes, bytes_text, 'B')} moved"
    if now.memory is not None and base.memory is not None:
        change = f"{_change(base.memory, now.memory, bytes_text, 'B')} of memory"
        yield Code.MORE_MEMORY, base.memory, now.memory, change
    if now.measured_us is not None and base.measured_us is not None:
        change = f"measured {_change(base.measured_us, now.measured_us, us_text, 'µs')}"
        yield Code.MORE_TIME, base.measured_us, now.measured_us, change
    elif now.measured_us is None and now.us is not None and base.us is not None:
        yield Code.MORE_TIME, base.us, now.us, f"estimated {_change(base.us, now.us, us_text, 'µs')}"


def _is_same_cpu(now: Profile, baseline: Profile) -> bool:
    return None in (now.cpu, baseline.cpu) or now.cpu == baseline.cpu


def _uncompared(now: Profile, baseline: Profile) -> str:
    """The reason against comparing times: one is measured, or they are estimates for two CPUs. Else empty."""
    base = baseline.figures
    if base.measured_us is not None:
        is_measured = now.figures.measured_us is not None
        return "" if is_measured else "measured time of the baseline not compared: give --profile"
    if now.figures.measured_us is not None:
        there = "an estimated time only" if base.us is not None else "no time"
        return f"measured time not compared: the baseline has {there}; --update adds the measured one"
    if _is_same_cpu(now, baseline):
        return ""
    names = printable(now.cpu or ""), printable(baseline.cpu or "")
    return "estimated time not compared: it is for {}, the baseline's for {} (HLOFUSE_CPU)".format(*names)


def _change(base: float, now: float, form: Callable[[float], str], unit: str) -> str:
    return " → ".join(distinguishable(base, now, form, unit))


class _Group(Struct, eq=False):
    """Kernels that belong together: what was there, and what is there now."""

    before: list[BaselineKernel] = []
    now: list[BaselineKernel] = []

    @property
    def code(self) -> Code:
        if not self.now:
            return Code.REMOVED
        if not self.before:
            return Code.NEW
        more = len(self.now) - len(self.before)
        return Code.SPLIT if more > 0 else Code.MERGED if more < 0 else Code.CHANGED

    @property
    def grows(self) -> bool:
        return len(self.now) >= len(self.before)


def _finding(group: _Group, module: str, level: Level, refused_edges: RefusedEdges) -> Finding:
    before, now = tuple(group.before), tuple(group.now)
    text = {
        Code.REMOVED: f"{plural(len(before), 'kernel')} of the baseline removed",
        Code.NEW: f"{plural(len(now), 'kernel')} not in the baseline",
        Code.CHANGED: f"{plural(len(now), 'kernel')} with changed contents",
    }
    message = text.get(group.code)
    if message is None:
        verb = "became" if len(before) == 1 or len(before) < len(now) else "merged into"
        message = f"{plural(len(before), 'kernel')} {verb} {len(now):,}"
    reasons = between(now, refused_edges()) if group.grows and len(now) else ()
    # The place of the pair that stays apart is where something can be done.
    place = first_place((*reasons, *now, *before))
    return Finding(group.code, level, module, message, place, before, now, most_significant(reasons))


def _groups(before: Sequence[BaselineKernel], now: Sequence[BaselineKernel]) -> Iterator[_Group]:
    """Kernels that are not the same on both sides, those that came of one another together. The same are:
    equal operations in the same function, then equal operations anywhere (code moves)."""
    old, new = list(before), list(now)
    keys = (
        lambda k: (k.what, k.where),
        lambda k: (k.what, k.where.without_line),
        lambda k: k.what,
    )
    for key in keys:
        common = Counter(map(key, old)) & Counter(map(key, new))
        old, new = (list(unmatched(((key(k), k) for k in side), common)) for side in (old, new))
    # Kernels of one function that share an operation came of one another; a kernel of elsewhere whose
    # operations one of these has gained or lost belongs to it; failing that, kernels of one file.
    groups, old, new = _related_groups(old, new, lambda k: k.where.without_line)
    old = [k for k in old if not _joins(k, groups, removed=True)]
    new = [k for k in new if not _joins(k, groups, removed=False)]
    joined, old, new = _related_groups(old, new, lambda k: k.where.file)
    groups += joined
    for side, rest in (("before", old), ("now", new)):
        by_place: dict[Where, _Group] = {}
        for k in rest:
            getattr(by_place.setdefault(k.where.without_line, _Group()), side).append(k)
        groups += by_place.values()
    groups.sort(key=lambda g: (len(g.before) - len(g.now), (g.now or g.before)[0].where))
    yield from groups


def _related_groups(
    old: Sequence[BaselineKernel], new: Sequence[BaselineKernel], place: Callable[[BaselineKernel], object]
) -> tuple[list[_Group], list[BaselineKernel], list[BaselineKernel]]:
    """Groups of kernels at one place that share an operation with one of the other side; and the rest."""
    kernels = [(k, is_new) for is_new, side in enumerate((old, new)) for k in side]
    keys = [[(place(k), op) for op in _contents(k)] for k, _ in kernels]
    having = grouped((key, n) for n, own in enumerate(keys) for key in own)
    shared = {key for key, found in having.items() if len({kernels[n][1] for n in found}) > 1}
    rest: tuple[list[BaselineKernel], list[BaselineKernel]] = ([], [])
    groups = []
    seen = set()
    for n, (k, is_new) in enumerate(kernels):
        if shared.isdisjoint(keys[n]):
            rest[is_new].append(k)
        elif n not in seen:
            related = reach([n], lambda m: (o for key in shared.intersection(keys[m]) for o in having[key]))
            together = sorted(related)
            seen.update(together)
            sides = ([kernels[m][0] for m in together if kernels[m][1] == side] for side in (0, 1))
            groups.append(_Group(*sides))
    return groups, *rest


def _joins(k: BaselineKernel, groups: Iterable[_Group], *, removed: bool) -> bool:
    """Put a kernel into the group whose other side accounts for it, if there is one."""
    for group in groups:
        own, others = (group.before, group.now) if removed else (group.now, group.before)
        here, there = ({op for other in side for op in _contents(other)} for side in (own, others))
        if _contents(k) <= there - here:
            own.append(k)
            return True
    return False


def _contents(k: BaselineKernel) -> frozenset[str]:
    return k.operations or frozenset({k.what})
