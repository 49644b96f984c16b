"""The order of a module's equals, from the module before optimizations that lies beside its dump."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hlofuse.inputs.beside import before_optimizations_beside
from hlofuse.inputs.elided_literals import restore_literals
from hlofuse.inputs.load import load
from hlofuse.inputs.named_order import in_order_made
from hlofuse.inputs.unique_ids import unique_ids_for
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.module import Module
from hlofuse.pipelines import TARGETS

if TYPE_CHECKING:
    from hlofuse.cost.gpu.device import DeviceDescription


@dataclass(frozen=True, slots=True)
class Played:
    """A module in the order that repeating XLA's earlier passes gave it."""

    module: Module
    source: Path
    """The module before optimizations that it was made from."""


def played_beside(module: Module, target: str, device: DeviceDescription | None) -> Played | None:
    """A copy of a loaded module in the order of XLA's memory, as far as it can be had.

    None where nothing depends on it, where no module before optimizations lies beside, or where XLA's passes
    ahead of fusion, as they are repeated here, make another module of that one.
    """
    if not TARGETS[target].has_history or module.has_played_order:
        return None
    source = before_optimizations_beside(module.filename)
    if source is None:
        return None
    from hlofuse.order.replayed import with_played_order

    try:
        unoptimized = load(source)
        restore_literals(unoptimized)
        in_order_made(unoptimized, unique_ids_for(unoptimized))
        copy = with_played_order(module, unoptimized, target, device)
    except HlofuseError:
        return None
    return Played(copy, source) if copy is not None else None
