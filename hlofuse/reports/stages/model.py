"""What is said of a module after fusion, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hlofuse.reports.explain.model import RuleText
from hlofuse.trace import Figures


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel that is there."""

    name: str
    opcode: str
    kind: str | None
    opcodes: tuple[str, ...]
    """What is in it; empty for what is no fusion."""
    bytes: int
    """What it reads and writes."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """Two kernels, the second of which reads what the first wrote."""

    producer: str
    consumer: str
    bytes_between: int
    rule: str | None = None
    """The rule that stands in the way; None where that is not known."""
    reason: str = ""
    """XLA's words, or why it is not known."""
    figures: Figures | None = None


@dataclass(frozen=True, slots=True)
class Fused:
    """A module after fusion, explained as it is."""

    module: str
    target: str
    device: str | None
    release: str
    evidence: str
    """What shows that it is fused already."""
    how: str
    """How the rules were asked, and what that is worth."""
    kernels: tuple[Kernel, ...]
    boundaries: tuple[Boundary, ...]
    """Greatest first."""
    rules: dict[str, RuleText]
    """Of those named, by code."""
    right_file: str | None = None
    """The dump ahead of fusion, where it lies beside this one."""

    @property
    def unknown(self) -> Sequence[Boundary]:
        return [b for b in self.boundaries if b.rule is None]
