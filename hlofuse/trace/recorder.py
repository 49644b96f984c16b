"""Takes down what a pass decides."""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.ir.instruction import Instruction
from hlofuse.trace.events import NO_FIGURES, Event, Figures

_Priority = tuple[str, str, int, str, tuple[str, ...], float, float]


class Recorder:
    """Collects events; a pass announces itself with `begin_pass` and each decision with `next_step`."""

    def __init__(self) -> None:
        self._log: list[Event | _Priority] = []
        self._pass = ""
        self._step = 0

    @property
    def events(self) -> list[Event]:
        """What was decided, in order."""
        log = self._log
        for k, entry in enumerate(log):
            if type(entry) is tuple:  # an event is one too
                log[k] = _priority_event(entry)
        return log  # type: ignore[return-value]  # every entry is an event now

    def begin_pass(self, name: str) -> None:
        """Events from here on belong to the pass of this name (XLA's name, as in its dump files)."""
        self._pass = name
        self._step = 0

    def next_step(self) -> int:
        self._step += 1
        return self._step

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
        self._log.append(
            Event(
                "fuse",
                self._pass,
                _home(fusion),
                self.next_step(),
                producer=producer,
                consumer=consumer,
                fusion=fusion.name,
                kind=kind,
                created=created,
                duplicated=duplicated,
                rule=rule,
                reason=reason,
                figures=figures or NO_FIGURES,
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
        self._log.append(
            Event(
                "ineligible",
                self._pass,
                _home(producer),
                self.next_step(),
                producer=producer.name,
                consumer=consumer.name if consumer is not None else None,
                rule=rule,
                reason=reason,
                figures=figures or NO_FIGURES,
            )
        )

    def priority(self, producer: Instruction, us_fused: float, us_unfused: float) -> None:
        """What fusing `producer` into its users would cost, and what not fusing it (microseconds).

        There are thousands of these, so only what may change is taken down at once.
        """
        self._step += 1
        users = tuple([u.name for u in producer.users])
        self._log.append(
            (self._pass, _home(producer), self._step, producer.name, users, us_fused, us_unfused)
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
        self._log.append(
            Event(
                "rewrite",
                self._pass,
                computation,
                self.next_step(),
                removed=tuple(removed),
                added=tuple(added),
                rule=rule,
                reason=reason,
            )
        )


def _priority_event(entry: _Priority) -> Event:
    name, computation, step, producer, consumers, us_fused, us_unfused = entry
    return Event(
        "priority",
        name,
        computation,
        step,
        producer=producer,
        consumers=consumers,
        us_fused=us_fused,
        us_unfused=us_unfused,
    )


def _home(instruction: Instruction) -> str:
    return instruction.computation.name if instruction.computation is not None else ""
