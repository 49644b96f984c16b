"""Run a target's passes over a copy of a module and keep every decision."""

from __future__ import annotations

from dataclasses import dataclass, field

from hlofuse.ir.module import Module
from hlofuse.trace import Event


@dataclass(slots=True)
class PassResult:
    """What one pass did."""

    name: str
    """XLA's name, as in its dump files."""
    changed: bool
    events: list[Event]
    module_text: str | None = None
    """The module after the pass, printed; only when asked for (`keep_modules`)."""


@dataclass(slots=True)
class Replay:
    """The outcome of a replay. `before` is the module as given, untouched; `after` is a changed copy."""

    target: str
    device: str | None
    before: Module
    after: Module
    passes: list[PassResult] = field(default_factory=list)

    @property
    def events(self) -> list[Event]:
        """Every event of every pass, in order."""
        return [e for p in self.passes for e in p.events]


def replay(
    module: Module,
    target: str = "cpu",
    *,
    device: str | None = None,
    option: str | None = None,
    keep_modules: bool = False,
) -> Replay:
    """Repeat what XLA's fusion passes do to `module` on `target`.

    `option` names a variant of the target's pipeline (`Target.options`).
    """
    raise NotImplementedError
