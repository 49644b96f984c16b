"""What a replay starts from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hlofuse.ir.graph import Module, OrderSource
from hlofuse.ir.unique_ids import UniqueIds
from hlofuse.order import is_open, source_of
from hlofuse.pipelines.targets import TARGETS

if TYPE_CHECKING:
    from hlofuse.pipelines.identity import Identity
    from hlofuse.trace import Event
    from hlofuse.trace.priority_record import PriorityRecord


@dataclass(frozen=True, slots=True)
class ReplayInput:
    """A module at the input of fusion, and what is known of the order in which XLA has it in memory."""

    module: Module
    ids: UniqueIds | None = field(default=None, repr=False)
    """XLA's unique ids, from an HLO proto; without them the module's own `order_source` stands."""
    record: PriorityRecord | None = field(default=None, repr=False)
    """XLA's fusion log, followed where priorities are equal."""
    record_file: str = ""
    """Where the log was read from; empty without one."""
    note: str = ""
    """What a report has to say first: how the module came here; empty where XLA wrote it."""
    identity: Identity | None = None
    """What the module was taken for; None for one that a library call gave."""
    unoptimized: Module | None = None
    """The module before optimizations that the passes before fusion were repeated on."""
    events: tuple[Event, ...] = field(default=(), repr=False)
    """What the passes before fusion tell of their rewrites, under the names of `module`."""

    def order_source(self, target: str) -> OrderSource:
        """Where a replay on the target takes ids and use-lists from."""
        return source_of(self.module, TARGETS[target], self.ids)

    def has_open_ties(self, target: str) -> bool:
        """True if XLA may have broken ties between equal priorities in another way than the replay does."""
        return self.record is None and is_open(self.order_source(target))
