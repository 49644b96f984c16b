"""Budgets, and the stored baseline, read and written."""

import json
import math
import re
import tomllib
from collections.abc import Callable, Container, Iterable
from fnmatch import fnmatchcase
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

from msgspec import Meta, Struct, ValidationError, convert

from hlofuse.cost.cpu.device import DEFAULT
from hlofuse.format import bytes_text, plural, printable, undivided, us_text
from hlofuse.inputs import read_text
from hlofuse.ir import HlofuseError, Json, Record, Strings
from .model import BaselineKernel, Code, Figures, Finding, Level, Profile, RefusedEdge, Where, first_place

_BYTES: dict[str, int] = {"": 1, "b": 1} | {
    f"{prefix}{'i' if base == 1024 else ''}b": base ** (k + 1)
    for base in (1000, 1024)
    for k, prefix in enumerate("kmgt")
}
_MICROSECONDS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
_NUMBER = re.compile(r"\s*(\d[\d_,]*(?:\.\d+)?(?:e\d+)?|\.\d+)\s*([a-z]*)\s*", re.IGNORECASE)


class Budget(Record):
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
        time: int | str | None,
        memory: int | str | None,
        modules: str = "*",
    ) -> "Budget":
        """From bounds as a user writes them, `1.5MB` and `120us`; HlofuseError for what is none."""
        sizes = [parse_bytes(str(s)) if s is not None else None for s in (size, memory)]
        us = parse_time(str(time)) if time is not None else None
        return cls(modules, kernels, sizes[0], us, sizes[1])

    @property
    def is_empty(self) -> bool:
        return (self.kernels, self.bytes, self.us, self.memory) == (None, None, None, None)


def parse_bytes(text: str) -> int:
    """`1500000`, `1.5 MB` (decimal), `2GiB` (binary), in bytes."""
    named = "bytes such as 1500000, 1.5MB or 2GiB (units: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB)"
    number, unit = _split(text, _BYTES, named)
    if not unit and 0 < number < 1024:
        raise HlofuseError(f"{number:g} needs a unit: {number:g}GiB, or {number:g}B for bytes")
    return round(number * _BYTES[unit])


def parse_time(text: str) -> float:
    """`120us`, `0.5 ms`, in microseconds. A number without a unit would be a guess, and is none."""
    number, unit = _split(text, _MICROSECONDS, "a time such as 120us or 0.5ms (units: ns, us, ms, s)")
    return number * _MICROSECONDS[unit]


def _split(text: str, units: Container[str], named: str) -> tuple[float, str]:
    """The number and the unit; HlofuseError where it is not `named`."""
    found = re.fullmatch(_NUMBER, text.replace("µ", "u").replace("μ", "u"))
    number = float(found[1].replace("_", "").replace(",", "")) if found is not None else math.inf
    if found is None or number >= 1e24 or found[2].lower() not in units:
        raise HlofuseError(f"{printable(text)!r}: expected {named}")
    return number, found[2].lower()


_MOST_REASONS = 5


def most_significant(refused_edges: Iterable[RefusedEdge]) -> tuple[RefusedEdge, ...]:
    """The first few pairs for a finding; one of a producer that a rule keeps from several users."""
    by_producer: dict[tuple[str, str], RefusedEdge] = {}
    for h in refused_edges:
        by_producer.setdefault((h.rule, h.producer.name), h)
    return tuple(by_producer.values())[:_MOST_REASONS]


RefusedEdges: TypeAlias = Callable[[], list[RefusedEdge]]  # Asked only where something is to be explained


def over_budget(profile: Profile, budgets: Iterable[Budget], refused_edges: RefusedEdges) -> list[Finding]:
    """Figures above the budget; `refused_edges`, called only then, yields the fusions that are refused."""
    found = []
    for budget in budgets:
        if fnmatchcase(profile.name, budget.modules):
            for code, message in _broken_limits(profile.figures, budget, profile.name):
                is_memory = code is Code.MAX_MEMORY
                reasons = () if is_memory else most_significant(refused_edges())
                where = profile.at_peak if is_memory else first_place(reasons)
                found.append(Finding(code, Level.ERROR, profile.name, message, where, refused_edges=reasons))
    return found


def _broken_limits(now: Figures, budget: Budget, name: str) -> Iterable[tuple[Code, str]]:
    if budget.kernels is not None and now.kernels > budget.kernels:
        yield (
            Code.MAX_KERNELS,
            f"{plural(now.kernels, 'kernel')}{undivided(now.devices)}, {budget.kernels:,} allowed",
        )
    if budget.bytes is not None and now.bytes > budget.bytes:
        one, other = distinguishable(now.bytes, budget.bytes, bytes_text, "B")
        yield Code.MAX_BYTES, f"{one} moved{undivided(now.devices)}, {other} allowed"
    if budget.memory is not None:
        if now.memory is None or now.devices > 1:
            raise HlofuseError(
                f"{printable(name)}: the memory of one device is not known; --max-memory needs all dumps, or"
                " the last one"
            )
        if now.memory > budget.memory:
            one, other = distinguishable(now.memory, budget.memory, bytes_text, "B")
            yield Code.MAX_MEMORY, f"{one} of memory, {other} allowed"
    if budget.us is not None:
        us, how = (now.us, "estimated") if now.measured_us is None else (now.measured_us, "measured")
        how += " ≥" if now.measured_us is None and now.has_floors else ""
        if us is None:
            raise HlofuseError(
                f"{printable(name)} has no time to check; --max-time needs --profile, or a GPU module before"
                " fusion and --device"
            )
        if us > budget.us:
            one, other = distinguishable(us, budget.us, us_text, "µs")
            yield Code.MAX_TIME, f"{how} {one}{undivided(now.devices)}, {other} allowed"


def distinguishable(
    one: float,
    other: float,
    form: Callable[[float], str],
    unit: str,
) -> tuple[str, str]:
    """Two quantities in words; in full where three figures would make them look equal."""
    if form(one) != form(other):
        return form(one), form(other)
    return f"{one:,.12g} {unit}", f"{other:,.12g} {unit}"


HEAD = """\
# What XLA's fusion passes leave of each module: kernels, and where they come from. Written by
# `hlofuse check … --baseline FILE --update`; edit what is above the first module.

version = 1
"""
_LINE = re.compile(r"(?:(\d{1,6}) × )?(.*) \| ([^|]*)", re.DOTALL)
_PLACE = re.compile(r"(.*?):(\d{1,9})(?: (.*))?", re.DOTALL)
_FIRST_MODULE = re.compile(r"^[ \t]*\[module\.", re.MULTILINE)


class Baseline(Struct):
    """Profiles by name, and the budgets that stand with them."""

    profiles: dict[str, Profile] = {}
    budgets: list[Budget] = []


_Count: TypeAlias = Annotated[int, Meta(ge=0)]


class _Budget(Struct, forbid_unknown_fields=True, rename="kebab"):
    modules: str = "*"
    max_kernels: _Count | None = None
    max_bytes: int | str | None = None
    max_time: int | str | None = None
    max_memory: int | str | None = None


class _Module(Struct, forbid_unknown_fields=True):
    target: str
    kernels: _Count
    bytes: _Count
    device: str | None = None
    cpu: str | None = None
    xla: str = ""
    time_us: float | None = None
    measured_us: float | None = None
    memory: _Count | None = None
    list: Strings = ()


class _File(Struct, forbid_unknown_fields=True):
    version: int
    budget: tuple[Any, ...] = ()
    module: Json = {}


_T = TypeVar("_T")


def _converted(table: Any, kind: type[_T], where: str) -> _T:
    try:
        return convert(table, kind)
    except ValidationError as e:
        raise ValueError(f"{where}: {str(e)[0].lower()}{str(e)[1:]}") from None


def read_baseline(path: Path) -> Baseline:
    """HlofuseError for what cannot be read, is no TOML or no baseline, saying where."""
    found = Baseline()
    if path.is_dir():
        files = sorted(path.glob("*.toml"))
        if not files:
            raise HlofuseError(
                f"{printable(str(path))}: no baseline (*.toml) in this directory; --update writes one"
            )
    elif not path.exists():
        raise HlofuseError(f"{printable(str(path))}: no such file; --update writes it")
    else:
        files = [path]
    for file in files:
        text = read_text(file, as_module=False)
        try:
            data = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as e:
            raise HlofuseError(f"{printable(str(file))}: not TOML: {printable(str(e))}") from None
        try:
            if data.get("version") != 1:
                raise ValueError("expected version = 1 at the top")
            stored = _converted(data, _File, "top level")
            found.budgets += [_budget(_converted(b, _Budget, "[[budget]]")) for b in stored.budget]
            for name, table in stored.module.items():
                if name in found.profiles:
                    raise ValueError(f"module {name} is also in another file")
                found.profiles[name] = _profile(name, _converted(table, _Module, f"module {name}"))
        except (ValueError, HlofuseError) as e:
            raise HlofuseError(f"{printable(str(file))}: not a baseline: {printable(str(e))}") from None
    return found


def _budget(b: _Budget) -> Budget:
    budget = Budget.of(b.max_kernels, b.max_bytes, b.max_time, b.max_memory, b.modules)
    if budget.is_empty:
        raise ValueError("a [[budget]] needs max-kernels, max-bytes, max-time or max-memory")
    return budget


def _profile(name: str, m: _Module) -> Profile:
    listed = tuple(k for line in m.list for k in _kernels(line))
    if len(listed) != m.kernels:
        raise ValueError(f"the list of module {name} has {len(listed)} kernels, but kernels = {m.kernels}")
    figures = Figures(m.kernels, m.bytes, m.time_us, m.measured_us, m.memory)
    # One without a name was written where this was every machine's default.
    cpu = m.cpu or (DEFAULT if m.target == "cpu" and m.time_us is not None else None)
    return Profile(name, m.target, m.device, m.xla, figures, listed, cpu=cpu)


def _kernels(line: str) -> list[BaselineKernel]:
    found = _LINE.fullmatch(line)
    if found is None or found[1] == "0":
        raise ValueError(f"expected a line `PLACE | KERNEL` or `2 × PLACE | KERNEL`, found {line!r}")
    place = _PLACE.fullmatch(found[2])
    where = Where(place[1], int(place[2]), place[3] or "") if place else Where(found[2])
    return [BaselineKernel(found[3], where if found[2] != "?" else Where())] * int(found[1] or 1)


def updated_files(path: Path, profiles: Iterable[Profile]) -> dict[Path, str]:
    """The texts that `--update` writes, by file; modules that are not among `profiles` stay as they are.
    HlofuseError for a baseline that is there and cannot be read: nothing is lost by overwriting it."""
    wanted = {p.name: p for p in profiles}
    if path.is_dir() or (not path.exists() and path.suffix == ""):
        plain = {name: re.sub(r"[^A-Za-z0-9_.-]", "_", name).lstrip(".")[:120] for name in wanted}
        files = {path / f"{plain[name] or 'module'}.toml": [p] for name, p in wanted.items()}
        if len(files) < len(wanted) or (path.is_dir() and any(path.glob("*.toml"))):
            _refuse_clashes(path, files, len(wanted))
        return {file: _whole(file, listed) for file, listed in files.items()}
    stored = read_baseline(path).profiles if path.exists() else {}
    return {path: _whole(path, (stored | wanted).values())}


def _refuse_clashes(path: Path, files: dict[Path, list[Profile]], wanted: int) -> None:
    if len(files) < wanted:
        raise HlofuseError(
            "two modules would have the same file name in the baseline directory; give a FILE instead"
        )
    read_baseline(path)
    for file, (profile,) in files.items():
        others = set(read_baseline(file).profiles) - {profile.name} if file.exists() else set()
        if others:
            raise HlofuseError(
                f"{printable(str(file))} belongs to module {printable(min(others))}; give a FILE instead"
            )


def _whole(file: Path, profiles: Iterable[Profile]) -> str:
    text = read_text(file, as_module=False) if file.exists() else ""
    first = _FIRST_MODULE.search(text)
    head = (text[: first.start()] if first else text) or HEAD
    parts = [module_text(p) for p in sorted(profiles, key=lambda p: p.name)]
    return head.rstrip() + "\n\n" + "\n".join(parts)


def module_text(p: Profile) -> str:
    """The table of a module in a baseline file."""
    lines = [f"[module.{_quote(p.name)}]", f"target = {_quote(p.target)}"]
    named = ("device", p.device), ("cpu", p.cpu), ("xla", p.release)
    lines += [f"{key} = {_quote(value)}" for key, value in named if value]
    lines += [f"kernels = {p.figures.kernels}", f"bytes = {p.figures.bytes:_}"]
    for key, us in (("time_us", p.figures.us), ("measured_us", p.figures.measured_us)):
        lines += [f"{key} = {us:.2f}"] if us is not None else []
    lines += [f"memory = {p.figures.memory:_}"] if p.figures.memory is not None else []
    lines += ["list = [", *(f"  {_quote(line)}," for line in _list_lines(p.kernels)), "]"]
    return "\n".join(lines) + "\n"


def _list_lines(kernels: Iterable[BaselineKernel]) -> Iterable[str]:
    ordered = sorted(kernels, key=lambda k: (k.where, k.what))
    for (where, what), same in groupby(ordered, key=lambda k: (k.where, k.what)):
        count = len(list(same))
        yield f"{f'{count} × ' if count > 1 else ''}{where} | {what}"


def _quote(text: str) -> str:
    return json.dumps(printable(text), ensure_ascii=False)
