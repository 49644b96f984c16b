"""What a package registers: rules about fusions, and fusions of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import Shape
from hlofuse.plugins.pattern import Match, parse_pattern
from hlofuse.rules.catalogue import Rule, catalogue

if TYPE_CHECKING:
    from hlofuse.cost.gpu.device import DeviceDescription

_CODE = re.compile(r"[A-Z]{2,8}[0-9]{3}")
_KERNEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


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


@dataclass(frozen=True, slots=True)
class Kernel:
    """A custom kernel in its place, as its cost function sees it."""

    operands: Mapping[str, Shape]
    """Shapes of the pattern's holes that are filled, by name, in order of their numbers."""
    result: Shape
    sizes: Mapping[str, int | str]
    """The pattern's named sizes and element types."""

    @property
    def bytes_read(self) -> int:
        """Bytes of all operands, each read once."""
        return sum(shape.byte_size for shape in self.operands.values())

    @property
    def bytes_written(self) -> int:
        """Bytes of the result."""
        return self.result.byte_size


@dataclass(frozen=True, slots=True)
class KernelCost:
    """What a custom kernel does; the time-model makes microseconds of it, unless they are given."""

    flops: int = 0
    """Floating-point operations on the FPUs."""
    matrix_flops: int = 0
    """Those on matrix units, of `matrix_type` operands."""
    matrix_type: str = "f32"
    bytes_read: int | None = None
    """None: every operand once."""
    bytes_written: int | None = None
    """None: the result once."""
    us: float | None = None
    """Microseconds without the launch, where they are known better."""


CostFunction = Callable[[Kernel, "DeviceDescription"], KernelCost]


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


@dataclass(frozen=True, kw_only=True)
class CustomFusion:
    """A pattern that becomes one fusion of kind kCustom, run by a kernel of one's own.

    Every text in `patterns` is one way to write it (docs/extending.md has the language). `where` says
    no to a match for reasons a text cannot express.
    """

    code: str
    title: str
    why: str
    advice: str
    condition: str = ""
    kernel: str
    """The kernel's name, as it will be in the backend config and in the fusion's name."""
    patterns: tuple[str, ...]
    cost: CostFunction
    where: Callable[[Match], bool] | None = None
    through: tuple[str, ...] = ("bitcast", "convert", "copy", "reshape")
    """Operations of one operand that may stand between any two of the pattern's."""
    targets: tuple[str, ...] = ()
    """None: all of them."""


Entry = FusionRule | CustomFusion


@dataclass(frozen=True, slots=True)
class Package:
    """What one package registers, checked."""

    name: str
    """Of the entry point: what `--rules` takes."""
    distribution: str
    """`flash-attention-rules 0.1`; empty for entries that come from no package."""
    entries: tuple[Entry, ...]
    rules: Mapping[str, Rule] = field(default_factory=dict)
    """Their catalogue entries by code."""

    def __str__(self) -> str:
        return f"{self.name} ({self.distribution})" if self.distribution else self.name


def make_package(name: str, distribution: str, entries: object) -> Package:
    """Check what a package registers; HlofuseError that names what is wrong."""
    label = f"{name} ({distribution})" if distribution else name
    if isinstance(entries, Entry):
        entries = (entries,)
    if not isinstance(entries, tuple | list) or not all(isinstance(e, Entry) for e in entries):
        raise HlofuseError(
            f"rules package {label}: expected FusionRule and CustomFusion objects in a tuple,"
            f" got {_described(entries)}"
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
        _check(entry, where)
        rules[entry.code] = _rule(entry, label)
    return Package(name, distribution, tuple(entries), rules)


def _check(entry: Entry, where: str) -> None:
    if isinstance(entry, FusionRule):
        return
    if not _KERNEL.fullmatch(entry.kernel):
        raise HlofuseError(f"{where}: {entry.kernel!r} is no kernel's name: expected letters, digits and _")
    if not entry.patterns or isinstance(entry.patterns, str):
        raise HlofuseError(f"{where}: expected the patterns' texts in a tuple")
    for number, text in enumerate(entry.patterns, 1):
        parse_pattern(text, f"<pattern {number} of {entry.code}>")


def _rule(entry: Entry, package: str) -> Rule:
    custom = isinstance(entry, CustomFusion)
    return Rule(
        code=entry.code,
        title=entry.title,
        condition=entry.condition,
        why=entry.why,
        advice=entry.advice,
        mirrors="",
        allows=custom or (isinstance(entry, FusionRule) and entry.allows),
        package=package,
    )


def _described(entries: object) -> str:
    if isinstance(entries, tuple | list):
        other = next(e for e in entries if not isinstance(e, Entry))
        return f"{type(other).__name__} among them"
    return type(entries).__name__
