"""A trace as text: one JSON object a line (`docs/trace.md`)."""

from __future__ import annotations

import json
from collections.abc import Iterable

from hlofuse.trace.events import Event


def to_jsonl(events: Iterable[Event]) -> str:
    """The events in the order they were taken, each line ending in a newline."""
    return "".join(
        json.dumps(e.to_json(), ensure_ascii=False, separators=(", ", ": ")) + "\n" for e in events
    )
