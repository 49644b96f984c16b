"""What a package registers: rules about fusions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Instruction
from hlofuse.rules.catalogue import Rule, catalogue

if TYPE_CHECKING:
    pass

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
        """The operation that computes the producer's value: inside, where it is a fusion already."""
        return self.producer.fused_root if self.producer.opcode == "fusion" else self.producer


@dataclass(frozen=True, kw_only=True)
class FusionRule:
    """A rule of one's own: it forbids a fusion, or allows one that XLA refuses.

    `applies` says whether the rule has something to say about a candidate; the figures it returns are
    shown in reports. An allowing rule lifts the refusals of XLA's that can be disabled, no others, and
    leaves it to the cost model whether the fusion pays. The first rule that applies decides.
    """

    code: str
    title: str
    why: str
    advice: str
    condition: str = ""
    allows: bool = False
    applies: Callable[[Candidate], bool | Mapping[str, Any]]
    passes: tuple[str, ...] = ()
    """XLA's names of the passes it is about; none: all of them."""
    targets: tuple[str, ...] = ()
    """None: all of them."""


@dataclass(frozen=True, slots=True)
class Package:
    """What one package registers, checked."""

    name: str
    """Of the entry point: what `--rules` takes."""
    distribution: str
    """`flash-attention-rules 0.1`; empty for entries that come from no package."""
    entries: tuple[FusionRule, ...]
    rules: Mapping[str, Rule] = field(default_factory=dict)
    """Their catalogue entries by code."""

    def __str__(self) -> str:
        return f"{self.name} ({self.distribution})" if self.distribution else self.name


def make_package(name: str, distribution: str, entries: object) -> Package:
    """Check what a package registers; HlofuseError that names what is wrong."""
    label = f"{name} ({distribution})" if distribution else name
    if isinstance(entries, FusionRule):
        entries = (entries,)
    if not isinstance(entries, tuple | list) or not all(isinstance(e, FusionRule) for e in entries):
        raise HlofuseError(
            f"rules package {label}: expected FusionRule objects in a tuple, got {_described(entries)}"
        )
    rules_by_code, rules = catalogue(), {}
    for entry in entries:
        where = f"rules package {label}: {entry.code!r}"
        if not isinstance(entry.code, str) or not _CODE.fullmatch(entry.code):
            raise HlofuseError(
                f"{where} is no code: expected two to eight capitals and three digits, as in ACME001"
            )
        if entry.code in rules_by_code:
            raise HlofuseError(f"{where} is the code of a rule of XLA's: {rules_by_code[entry.code].title}")
        if entry.code in rules:
            raise HlofuseError(f"{where} is there twice")
        rules[entry.code] = _rule(entry, label)
    return Package(name, distribution, tuple(entries), rules)


def _rule(entry: FusionRule, package: str) -> Rule:
    return Rule(
        code=entry.code,
        title=entry.title,
        condition=entry.condition,
        why=entry.why,
        advice=entry.advice,
        mirrors="",
        allows=entry.allows,
        package=package,
    )


def _described(entries: object) -> str:
    if isinstance(entries, tuple | list):
        other = next(e for e in entries if not isinstance(e, FusionRule))
        return f"{type(other).__name__} among them"
    return type(entries).__name__
