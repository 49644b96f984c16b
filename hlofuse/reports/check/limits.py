"""Budgets: numbers with units, and which modules they hold for."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from hlofuse.format.escape import printable
from hlofuse.format.units import bytes_text, plural, us_text
from hlofuse.ir.errors import HlofuseError
from hlofuse.reports.check.model import Code, Figures, Finding, Level, Profile, RefusedEdge, Where

_BYTES: dict[str, int] = {"": 1, "b": 1} | {
    f"{prefix}{'i' if base == 1024 else ''}b": base ** (k + 1)
    for base in (1000, 1024)
    for k, prefix in enumerate("kmgt")
}
_MICROSECONDS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
_NUMBER = re.compile(r"\s*(\d[\d_,]*(?:\.\d+)?(?:e\d+)?|\.\d+)\s*([a-z]*)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds for every module whose name matches the pattern."""

    modules: str = "*"
    kernels: int | None = None
    bytes: int | None = None
    us: float | None = None
    memory: int | None = None

    @classmethod
    def of(
        cls,
        kernels: int | None,
        size: int | str | None,
        time: str | None,
        memory: int | str | None,
        modules: str = "*",
    ) -> "Budget":
        """From bounds as a user writes them, `1.5MB` and `120us`; HlofuseError for what is none."""
        sizes = [parse_bytes(str(s)) if s is not None else None for s in (size, memory)]
        us = parse_time(str(time)) if time is not None else None
        return cls(modules, kernels, sizes[0], us, sizes[1])

    @property
    def is_empty(self) -> bool:
        """It bounds nothing."""
        return (self.kernels, self.bytes, self.us, self.memory) == (None, None, None, None)


def parse_bytes(text: str) -> int:
    """`1500000`, `1.5 MB` (decimal), `2GiB` (binary), in bytes."""
    number, unit = _split(text)
    if number is None or unit not in _BYTES:
        raise HlofuseError(
            f"{printable(text)!r}: expected bytes such as 1500000, 1.5MB or 2GiB"
            " (units: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB)"
        )
    return round(number * _BYTES[unit])


def parse_time(text: str) -> float:
    """`120us`, `0.5 ms`, in microseconds. A number without a unit would be a guess, and is none."""
    number, unit = _split(text)
    if number is None or unit not in _MICROSECONDS:
        raise HlofuseError(
            f"{printable(text)!r}: expected a time such as 120us or 0.5ms (units: ns, us, ms, s)"
        )
    return number * _MICROSECONDS[unit]


def _split(text: str) -> tuple[float | None, str]:
    found = re.fullmatch(_NUMBER, text.replace("µ", "u").replace("μ", "u"))
    if found is None:
        return None, ""
    number = float(found[1].replace("_", "").replace(",", ""))
    return (number, found[2].lower()) if number < 1e24 else (None, "")


_MOST_REASONS = 5


def most_significant(refused_edges: Iterable[RefusedEdge]) -> tuple[RefusedEdge, ...]:
    """The pairs to name for a finding: the first few, of a producer that one rule keeps from several users
    the one."""
    by_producer: dict[tuple[str, str], RefusedEdge] = {}
    for h in refused_edges:
        by_producer.setdefault((h.rule, h.producer.name), h)
    return tuple(by_producer.values())[:_MOST_REASONS]


def over_budget(
    profile: Profile, budgets: Iterable[Budget], refused_edges: Callable[[], list[RefusedEdge]]
) -> list[Finding]:
    """Figures above the budget; `refused_edges`, called only then, yields the fusions that are refused."""
    found = []
    for budget in budgets:
        if fnmatchcase(profile.name, budget.modules):
            for code, message in _broken_limits(profile.figures, budget, profile.name):
                is_memory = code is Code.MAX_MEMORY
                reasons = () if is_memory else most_significant(refused_edges())
                where = next((h.where for h in reasons if h.where.file), Where())
                where = profile.at_peak if is_memory else where
                found.append(Finding(code, Level.ERROR, profile.name, message, where, refused_edges=reasons))
    return found


def _broken_limits(now: Figures, budget: Budget, name: str) -> Iterable[tuple[Code, str]]:
    if budget.kernels is not None and now.kernels > budget.kernels:
        yield Code.MAX_KERNELS, f"{plural(now.kernels, 'kernel')}, {budget.kernels:,} allowed"
    if budget.bytes is not None and now.bytes > budget.bytes:
        one, other = distinguishable(now.bytes, budget.bytes, bytes_text, "B")
        yield Code.MAX_BYTES, f"{one} moved, {other} allowed"
    if budget.memory is not None:
        if now.memory is None:
            raise HlofuseError(
                f"{printable(name)}: its memory is not known; --max-memory needs all dumps, or the last one"
            )
        if now.memory > budget.memory:
            one, other = distinguishable(now.memory, budget.memory, bytes_text, "B")
            yield Code.MAX_MEMORY, f"{one} of memory, {other} allowed"
    if budget.us is not None:
        us, how = (now.us, "estimated") if now.measured_us is None else (now.measured_us, "measured")
        if us is None:
            raise HlofuseError(
                f"{printable(name)} has no time to check; --max-time needs --profile, or a GPU module before"
                " fusion and --device"
            )
        if us > budget.us:
            one, other = distinguishable(us, budget.us, us_text, "µs")
            yield Code.MAX_TIME, f"{how} {one}, {other} allowed"


def distinguishable(one: float, other: float, form: Callable[[float], str], unit: str) -> tuple[str, str]:
    """Two quantities in words; in full where three figures would make them look equal."""
    if form(one) != form(other):
        return form(one), form(other)
    return f"{one:,.12g} {unit}", f"{other:,.12g} {unit}"
