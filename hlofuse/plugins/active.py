"""The packages with rules for a replay, combined."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Instruction
from hlofuse.rules.catalogue import Rule, catalogue
from hlofuse.rules.verdict import Verdict

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


_CODE = re.compile(r"[A-Z]{2,8}[0-9]{3}")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fusion that a pass considers: `producer` into `consumer`, or siblings that read one array."""

    producer: Instruction
    consumer: Instruction
    pass_name: str
    """XLA's name of the pass, as in its dump files."""
    target: str

    @property
    def producer_root(self) -> Instruction:
        """The operation that computes the producer's value: inside, if it is a fusion already."""
        return self.producer.fused_root if self.producer.opcode == "fusion" else self.producer


@dataclass(frozen=True, kw_only=True)
class FusionRule:
    """A user's rule that forbids a fusion, or allows one that XLA refuses.

    `applies` returns a true value if the rule concerns a candidate; figures in it are shown in reports. An
    allowing rule lifts those of XLA's refusals that can be disabled, no others, and the cost model decides
    whether the fusion pays. The first rule that applies decides.
    """

    code: str
    title: str
    why: str
    advice: str
    condition: str = ""
    allows: bool = False
    applies: Callable[[Candidate], bool | Mapping[str, Any]]
    passes: tuple[str, ...] = ()
    """XLA's names of its passes; empty for all."""
    targets: tuple[str, ...] = ()
    """Its targets; empty for all."""


@dataclass(frozen=True, slots=True)
class Package:
    """One package's registered rules, checked."""

    name: str
    """The name of the entry point, for `--rules`."""
    distribution: str
    """`flash-attention-rules 0.1`; empty for entries without a package."""
    entries: tuple[FusionRule, ...]
    rules: Mapping[str, Rule] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name} ({self.distribution})" if self.distribution else self.name


def make_package(name: str, distribution: str, entries: object) -> Package:
    """Check a package's entries; raises `HlofuseError` for invalid ones."""
    label = f"{name} ({distribution})" if distribution else name
    if isinstance(entries, FusionRule):
        entries = (entries,)
    if not isinstance(entries, tuple | list) or not all(isinstance(e, FusionRule) for e in entries):
        raise HlofuseError(
            f"rules package {label}: expected a tuple of FusionRule objects, found {_describe(entries)}"
        )
    rules_by_code, rules = catalogue(), {}
    for entry in entries:
        where = f"rules package {label}: {entry.code!r}"
        if not isinstance(entry.code, str) or not _CODE.fullmatch(entry.code):
            raise HlofuseError(
                f"{where}: not a rule code; expected two to eight capitals and three digits, as in ACME001"
            )
        if entry.code in rules_by_code:
            raise HlofuseError(f"{where}: the code of one of XLA's rules: {rules_by_code[entry.code].title}")
        if entry.code in rules:
            raise HlofuseError(f"{where} is defined twice")
        rules[entry.code] = _rule(entry, label)
    return Package(name, distribution, tuple(entries), rules)


def _rule(entry: FusionRule, package: str) -> Rule:
    page = {"condition": entry.condition, "why": entry.why, "advice": entry.advice}
    return Rule(entry.code, entry.title, allows=entry.allows, package=package, page=page)


def _describe(entries: object) -> str:
    if isinstance(entries, tuple | list):
        other = next(e for e in entries if not isinstance(e, FusionRule))
        return f"{type(other).__name__} among them"
    return type(entries).__name__


@dataclass(frozen=True, slots=True)
class ActiveRules:
    """Packages in the order of request; `Settings(outside=…)` adds them to a replay."""

    packages: tuple[Package, ...]
    pass_name: str = ""
    target: str = ""
    _applicable: tuple[FusionRule, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, *entries: FusionRule, name: str = "entries") -> ActiveRules:
        """Entries without an installed package, as in a test or a notebook."""
        return cls((make_package(name, "", entries),))

    @property
    def rules(self) -> Mapping[str, Rule]:
        """The catalogue entries of all, by code."""
        return {code: rule for package in self.packages for code, rule in package.rules.items()}

    @property
    def names(self) -> tuple[str, ...]:
        """The packages as text."""
        return tuple(map(str, self.packages))

    def in_pass(self, name: str, target: str, disabled: Collection[str] = ()) -> ActiveRules:
        """The rules for a pass (XLA's name) of a target, without the disabled ones."""
        applicable = tuple(
            e
            for p in self.packages
            for e in p.entries
            if e.code not in disabled and target in (e.targets or (target,)) and name in (e.passes or (name,))
        )
        return replace(self, pass_name=name, target=target, _applicable=applicable)

    def verdict(self, producer: Instruction, consumer: Instruction) -> Verdict | None:
        """The verdict of the first rule that applies."""
        for entry in self._applicable:
            candidate = Candidate(producer, consumer, self.pass_name, self.target)
            try:
                answer = entry.applies(candidate)
            except HlofuseError:
                raise
            except Exception as error:
                failed = f"the condition of plugin rule {entry.code} failed"
                raise HlofuseError(f"{failed}: {type(error).__name__}: {error}") from error
            if answer:
                figures = dict(answer) if isinstance(answer, Mapping) else {}
                return Verdict(self.rules[entry.code], figures)
        return None


# Packages found by their entry points, and loading those that are asked for.


GROUP = "hlofuse.rules"


def installed_names() -> list[str]:
    """Names for `--rules`, sorted; nothing is imported."""
    return sorted(_entry_points())


def load_rules(names: Iterable[str]) -> ActiveRules:
    """The packages of these names (`all`: every installed one); raises `HlofuseError` for an unusable one."""
    wanted: dict[str, None] = {}
    for name in names:
        wanted |= dict.fromkeys(installed_names() if name == "all" else [name])
    active = ActiveRules(tuple(load_package(name) for name in wanted))
    owner: dict[str, str] = {}
    for package in active.packages:
        for code in package.rules:
            if code in owner:
                raise HlofuseError(f"rules packages {owner[code]} and {package.name} both have a rule {code}")
            owner[code] = package.name
    return active


def load_package(name: str) -> Package:
    point = _entry_points().get(name)
    if point is None:
        rules_by_code = ", ".join(installed_names())
        raise HlofuseError(
            f"no installed package registers rules as {name!r}; "
            + (
                f"found: {rules_by_code}"
                if rules_by_code
                else f"no package has an entry point in the group {GROUP}"
            )
        )
    return _load(point)


@lru_cache(maxsize=64)
def _load(point: EntryPoint) -> Package:
    distribution = f"{point.dist.name} {point.dist.version}" if point.dist is not None else ""
    try:
        entries = point.load()
    except HlofuseError:
        raise
    except Exception as error:
        raise HlofuseError(
            f"rules package {point.name} ({distribution}) cannot be imported: {type(error).__name__}: {error}"
        ) from error
    return make_package(point.name, distribution, entries)


def _entry_points() -> Mapping[str, EntryPoint]:
    from importlib.metadata import entry_points  # slow to import, and most runs do without

    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=GROUP):
        other = found.setdefault(point.name, point)
        if other != point:
            raise HlofuseError(
                f"two installed packages register rules as {point.name!r}: {_origin(other)} and "
                f"{_origin(point)}"
            )
    return found


def _origin(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value
