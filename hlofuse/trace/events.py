"""One decision of a pass, as it goes into the trace.

The JSON form (one object a line) is a public contract, see `docs/trace.md`."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from hlofuse.ir.origin import NO_ORIGIN, Origin
from hlofuse.rules.verdict import Figures

NO_FIGURES: Figures = {}
"""Shared by all events that have none."""


class Event(NamedTuple):
    """A decision: instruction and computation names are those at that moment.

    `event` is `fuse`, `ineligible`, `priority` or `rewrite`.
    """

    event: str
    pass_name: str
    computation: str
    step: int
    """Counts decisions of one pass run from 1; events of one decision share it."""
    producer: str | None = None
    consumer: str | None = None
    fusion: str | None = None
    """fuse: the fusion instruction that now holds the producer."""
    kind: str | None = None
    """fuse: `producer-consumer`, `multi-output` or `sibling`."""
    created: bool = False
    """fuse: the fusion is new (it replaced the consumer)."""
    duplicated: bool = False
    """fuse: the producer lives on for its other users."""
    rule: str | None = None
    """Catalogue code of the rule that settled it."""
    reason: str | None = None
    figures: Figures = NO_FIGURES
    consumers: tuple[str, ...] = ()
    us_fused: float | None = None
    us_unfused: float | None = None
    removed: tuple[str, ...] = ()
    """rewrite: instructions that went (`from` in JSON)."""
    added: tuple[str, ...] = ()
    """rewrite: instructions that came, or stand for the removed ones (`to` in JSON)."""
    origins: tuple[Origin, ...] = ()
    """Of the producer, then of each consumer or the fusion; of a rewrite those of `added`. Not in JSON."""

    def origin(self, number: int) -> Origin:
        """The origin of the producer (0), or of a consumer (1 and on)."""
        return self.origins[number] if number < len(self.origins) else NO_ORIGIN

    def created_names(self) -> Iterator[tuple[str, Origin]]:
        """The names that instructions have from this event on, with their origins."""
        if self.event == "rewrite":
            yield from zip(self.added, self.origins, strict=False)
        elif self.fusion is not None:
            yield self.fusion, self.origin(1)

    def to_json(self) -> dict[str, Any]:
        """The object of the trace contract; fields that say nothing are left out."""
        out: dict[str, Any] = {
            "event": self.event,
            "pass": self.pass_name,
            "computation": self.computation,
            "step": self.step,
        }
        if self.event in ("fuse", "ineligible", "priority"):
            out["producer"] = self.producer
        if self.event in ("fuse", "ineligible"):
            out["consumer"] = self.consumer
        if self.event == "fuse":
            out |= {
                "fusion": self.fusion,
                "kind": self.kind,
                "created": self.created,
                "duplicated": self.duplicated,
            }
        if self.event == "priority":
            out |= {
                "consumers": list(self.consumers),
                "us_fused": self.us_fused,
                "us_unfused": self.us_unfused,
            }
        if self.event == "rewrite":
            out |= {"from": list(self.removed), "to": list(self.added)}
        if self.rule is not None:
            out["rule"] = self.rule
        if self.reason is not None:
            out["reason"] = self.reason
        if self.figures:
            out["figures"] = self.figures
        return out


# A trace as text: one JSON object a line (`docs/trace.md`).


def to_jsonl(events: Iterable[Event]) -> str:
    """The events in the order they were taken, each line ending in a newline."""
    return "".join(
        json.dumps(e.to_json(), ensure_ascii=False, separators=(", ", ": ")) + "\n" for e in events
    )
