"""The line that says where ids and use-lists come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from hlofuse.pipelines.targets import TARGETS

if TYPE_CHECKING:
    from hlofuse.ir.graph import OrderSource
    from hlofuse.replay import ReplayConfig

_SOURCES = {
    "xla": "XLA's ids",
    "replayed": "XLA's earlier passes, repeated",
    "estimated": "an estimate from the text; ties are open",
    "text": "the text; ties are open",
}


class Ordered(Protocol):
    """A replay, or what one is about to be made of."""

    @property
    def config(self) -> ReplayConfig | None:
        """How it is replayed; None for a module that is not."""

    @property
    def text_note(self) -> str | None:
        """Where in a longer text the module was found, and whether that is cut short."""

    @property
    def order_source(self) -> OrderSource:
        """Where ids and use-lists come from."""

    @property
    def follows_log(self) -> bool:
        """True if ties are broken as in XLA's fusion log."""


def order_line(replay: Ordered) -> str:
    """`Order of instructions: XLA's ids`; empty where no decision depends on the order."""
    if replay.config is None:
        return ""
    target = TARGETS[replay.config.target]
    if not target.depends_on_order:
        return ""
    source = _SOURCES[replay.order_source]
    if target.restores_use_lists:
        source = source.partition(";")[0]  # no ties are broken there
    if replay.follows_log:
        source = f"{source.partition(';')[0]}, ties as in XLA's fusion log"
    return f"Order of instructions: {source}"
