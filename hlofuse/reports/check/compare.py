"""A profile against that of the baseline: figures first, then which kernels came of which."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from hlofuse.format.escape import printable
from hlofuse.format.units import bytes_text, plural, us_text
from hlofuse.ir.errors import HlofuseError
from hlofuse.reports.check.limits import distinguishable, most_significant
from hlofuse.reports.check.measure import between
from hlofuse.reports.check.model import (
    BaselineKernel,
    Code,
    Figures,
    Finding,
    Level,
    Profile,
    RefusedEdge,
    Where,
)


def compare(
    now: Profile,
    baseline: Profile,
    refused_edges: Callable[[], list[RefusedEdge]],
    *,
    tolerance: float = 0.0,
    strict: bool = False,
) -> list[Finding]:
    """What differs from the baseline.

    More kernels, bytes or time is an error, and so is then every kernel that changed; with figures no worse a
    change is a warning, unless `strict`. `tolerance` is the share by which bytes and time may grow.
    HlofuseError for a baseline of another device: its figures say nothing here.
    """
    if now.device != baseline.device:
        now_on, baseline_on = (printable(p.device or f"target {p.target}") for p in (now, baseline))
        raise HlofuseError(
            f"the baseline of {printable(now.name)} is of {baseline_on}, this is {now_on}: keep a baseline "
            "for each"
        )
    groups = list(_groups(baseline.kernels, now.kernels))
    worse = list(_worse(now.figures, baseline.figures, tolerance))
    level = Level.ERROR if worse or strict else Level.WARNING
    found = [Finding(code, Level.ERROR, now.name, message) for code, message in worse]
    for group in groups:
        found.append(_finding(group, now.name, level if group.grows or strict else Level.NOTE, refused_edges))
    # A figure stands at the place where most came in.
    place = next((f.where for f in found if f.now and f.level is Level.ERROR and f.where.file), Where())
    found = [replace(f, where=place) if not (f.now or f.before) else f for f in found]
    better = [] if worse else list(_better(now.figures, baseline.figures))
    if better:
        message = f"{', '.join(better)}: --update makes this the baseline"
        found.insert(0, Finding(Code.FEWER, Level.NOTE, now.name, message))
    return found


def _worse(now: Figures, base: Figures, tolerance: float) -> Iterator[tuple[Code, str]]:
    if now.kernels > base.kernels:
        yield Code.MORE_KERNELS, f"{plural(base.kernels, 'kernel')} → {now.kernels:,}"
    if now.bytes > base.bytes * (1 + tolerance):
        yield Code.MORE_BYTES, f"{_change(base.bytes, now.bytes, bytes_text, 'B')} moved"
    if now.us is not None and base.us is not None and now.us > base.us * (1 + tolerance):
        yield Code.MORE_TIME, f"estimated {_change(base.us, now.us, us_text, 'µs')}"


def _better(now: Figures, base: Figures) -> Iterator[str]:
    if now.kernels < base.kernels:
        yield f"{plural(base.kernels, 'kernel')} → {now.kernels:,}"
    if now.bytes < base.bytes:
        yield f"{_change(base.bytes, now.bytes, bytes_text, 'B')} moved"
    if now.us is not None and base.us is not None and now.us < base.us:
        yield f"estimated {_change(base.us, now.us, us_text, 'µs')}"


def _change(base: float, now: float, form: Callable[[float], str], unit: str) -> str:
    return " → ".join(distinguishable(base, now, form, unit))


class _Group:
    """Kernels that belong together: what was there, and what is there now."""

    def __init__(self) -> None:
        self.before: list[BaselineKernel] = []
        self.now: list[BaselineKernel] = []

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


def _finding(
    group: _Group, module: str, level: Level, refused_edges: Callable[[], list[RefusedEdge]]
) -> Finding:
    before, now = tuple(group.before), tuple(group.now)
    text = {
        Code.REMOVED: f"{plural(len(before), 'kernel')} less than in the baseline",
        Code.NEW: f"{plural(len(now), 'kernel')} more than in the baseline",
        Code.CHANGED: f"{plural(len(now), 'kernel')} with other operations inside",
    }
    message = text.get(group.code)
    if message is None:
        verb = "became" if len(before) == 1 or len(before) < len(now) else "became only"
        message = f"{plural(len(before), 'kernel')} {verb} {len(now):,}"
    places = [k.where for k in (*now, *before) if k.where.file]
    reasons = between(now, refused_edges()) if group.grows and len(now) else ()
    # The place of the pair that stays apart is where something can be done.
    place = next((h.where for h in reasons if h.where.file), places[0] if places else Where())
    return Finding(group.code, level, module, message, place, before, now, most_significant(reasons))


def _groups(before: Sequence[BaselineKernel], now: Sequence[BaselineKernel]) -> Iterator[_Group]:
    """Kernels that are not the same on both sides, those that came of one another together.

    The same are: equal operations in the same function, then equal operations anywhere (code moves).
    """
    old, new = list(before), list(now)
    keys: tuple[Callable[[BaselineKernel], object], ...] = (
        lambda k: (k.what, k.where),
        lambda k: (k.what, k.where.without_line),
        lambda k: k.what,
    )
    for key in keys:
        old, new = _without_common(old, new, key)
    # Kernels of one function that share an operation came of one another; a kernel of elsewhere whose
    # operations one of these has gained or lost belongs to it; failing that, kernels of one file.
    groups, old, new = _related(old, new, lambda k: k.where.without_line)
    old = [k for k in old if not _joins(k, groups, removed=True)]
    new = [k for k in new if not _joins(k, groups, removed=False)]
    joined, old, new = _related(old, new, lambda k: k.where.file)
    groups += joined
    for side, rest in (("before", old), ("now", new)):
        by_place: dict[Where, _Group] = {}
        for k in rest:
            getattr(by_place.setdefault(k.where.without_line, _Group()), side).append(k)
        groups += by_place.values()
    groups.sort(key=lambda g: (len(g.before) - len(g.now), (g.now or g.before)[0].where))
    yield from groups


def _without_common(
    old: Iterable[BaselineKernel], new: Iterable[BaselineKernel], key: Callable[[BaselineKernel], object]
) -> tuple[list[BaselineKernel], list[BaselineKernel]]:
    one, other = Counter(map(key, old)), Counter(map(key, new))
    common = one & other
    return _leave(old, common.copy(), key), _leave(new, common.copy(), key)


def _leave(
    kernels: Iterable[BaselineKernel], taken: Counter[object], key: Callable[[BaselineKernel], object]
) -> list[BaselineKernel]:
    left = []
    for k in kernels:
        if taken[key(k)] > 0:
            taken[key(k)] -= 1
        else:
            left.append(k)
    return left


def _related(
    old: Sequence[BaselineKernel], new: Sequence[BaselineKernel], place: Callable[[BaselineKernel], object]
) -> tuple[list[_Group], list[BaselineKernel], list[BaselineKernel]]:
    """Groups of kernels at one place that share an operation with one of the other side; and the rest."""
    group_of: dict[tuple[object, str], _Group] = {}
    merged: dict[int, _Group] = {}
    baseline_on = {(place(k), op) for k in new for op in _contents(k)}
    shared = {(place(k), op) for k in old for op in _contents(k)} & baseline_on
    rest: tuple[list[BaselineKernel], list[BaselineKernel]] = ([], [])
    for number, side in enumerate((old, new)):
        for k in side:
            keys = sorted(op for op in _contents(k) if (place(k), op) in shared)
            if not keys:
                rest[number].append(k)
                continue
            found = [group_of[place(k), op] for op in keys if (place(k), op) in group_of]
            group = found[0] if found else _Group()
            merged[id(group)] = group
            for other in found[1:]:
                if other is not group:
                    group.before += other.before
                    group.now += other.now
                    merged.pop(id(other), None)
                    group_of.update({key: group for key, g in group_of.items() if g is other})
                    found = [group if g is other else g for g in found]
            group_of.update({(place(k), op): group for op in keys})
            (group.before, group.now)[number].append(k)
    return list(merged.values()), *rest


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
