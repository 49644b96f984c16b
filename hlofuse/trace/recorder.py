"""Takes down what a pass decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from hlofuse.ir.instruction import Instruction
from hlofuse.trace.events import NO_FIGURES, Event, Figures

_event: Callable[[tuple[Any, ...]], Event]
_event = partial(tuple.__new__, Event)  # `Event(…)` takes three times as long, and there are thousands


class Recorder:
    """Collects events; a pass announces itself with `begin_pass`, and each decision is a step."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        """What was decided, in order."""
        self._pass = ""
        self._step = 0

    def begin_pass(self, name: str) -> None:
        """Events from here on belong to the pass of this name (XLA's name, as in its dump files)."""
        self._pass = name
        self._step = 0

    def fuse(
        self,
        producer: str,
        consumer: str,
        fusion: Instruction,
        *,
        rule: str,
        kind: str = "producer-consumer",
        created: bool = False,
        duplicated: bool = False,
        reason: str | None = None,
        figures: Figures | None = None,
    ) -> None:
        """`producer` went into `consumer`, which is (or became) `fusion`. A step of its own."""
        self._step += 1
        self.events.append(
            _event(
                (
                    "fuse",
                    self._pass,
                    _home(fusion),
                    self._step,
                    producer,
                    consumer,
                    fusion.name,
                    kind,
                    created,
                    duplicated,
                    rule,
                    reason,
                    figures or NO_FIGURES,
                    (),
                    None,
                    None,
                    (),
                    (),
                )
            )
        )

    def ineligible(
        self,
        producer: Instruction,
        consumer: Instruction | None,
        *,
        rule: str,
        reason: str,
        figures: Figures | None = None,
    ) -> None:
        """`producer` was not fused into `consumer` (or into anything); `reason` in XLA's words."""
        self._step += 1
        self.events.append(
            _event(
                (
                    "ineligible",
                    self._pass,
                    _home(producer),
                    self._step,
                    producer.name,
                    consumer.name if consumer is not None else None,
                    None,
                    None,
                    False,
                    False,
                    rule,
                    reason,
                    figures or NO_FIGURES,
                    (),
                    None,
                    None,
                    (),
                    (),
                )
            )
        )

    def priority(self, producer: Instruction, us_fused: float, us_unfused: float) -> None:
        """What fusing `producer` into its users would cost, and what not fusing it (microseconds)."""
        step = self._step = self._step + 1
        computation = producer.computation
        self.events.append(
            _event(
                (
                    "priority",
                    self._pass,
                    computation.name if computation is not None else "",
                    step,
                    producer.name,
                    None,
                    None,
                    None,
                    False,
                    False,
                    None,
                    None,
                    NO_FIGURES,
                    tuple([u.name for u in producer.users]),
                    us_fused,
                    us_unfused,
                    (),
                    (),
                )
            )
        )

    def rewrite(
        self,
        computation: str,
        removed: Sequence[str],
        added: Sequence[str],
        *,
        rule: str,
        reason: str | None = None,
    ) -> None:
        """Instructions were replaced, merged or removed (wrapping, CSE, DCE, splitting)."""
        self._step += 1
        self.events.append(
            _event(
                (
                    "rewrite",
                    self._pass,
                    computation,
                    self._step,
                    None,
                    None,
                    None,
                    None,
                    False,
                    False,
                    rule,
                    reason,
                    NO_FIGURES,
                    (),
                    None,
                    None,
                    tuple(removed),
                    tuple(added),
                )
            )
        )


def _home(instruction: Instruction) -> str:
    return instruction.computation.name if instruction.computation is not None else ""
