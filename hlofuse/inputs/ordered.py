"""A loaded module in the order that XLA has it in memory, from what lies beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlofuse.format.escape import printable
from hlofuse.inputs.companions import before_optimizations_of, compiled_with
from hlofuse.inputs.load import load
from hlofuse.inputs.named_order import in_creation_order
from hlofuse.inputs.unique_ids import unique_ids_for
from hlofuse.inputs.unread_elements import restore_literals
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Module, OrderSource
from hlofuse.order.replayed import with_replayed_order
from hlofuse.pipelines import TARGETS
from hlofuse.replay import ReplayInput

if TYPE_CHECKING:
    from hlofuse.cost.gpu.device import DeviceDescription


def replay_input(
    module: Module,
    target: str,
    device: DeviceDescription | None,
    *,
    order: OrderSource | None = None,
    ids_file: str | None = None,
) -> ReplayInput:
    """The module as a replay takes it, with ids and use-lists from the best source there is.

    The sources are XLA's ids in an HLO proto, XLA's earlier passes repeated on the module before
    optimizations, an estimate, and the order of the text. `order` asks for one of them alone; HlofuseError
    where it cannot be had. `ids_file` names the proto; without it, it is looked for beside the module.
    """
    replayed_for = TARGETS[target]
    if not replayed_for.has_history:
        if ids_file is not None:
            unique_ids_for(module, ids_file)  # a file of another module is an error all the same
        if replayed_for.restores_use_lists and order in ("xla", "replayed"):
            raise HlofuseError(f"--order {order}: target {target} has only its estimate, or the text")
        if order == "text":
            module.order_source = order
        return ReplayInput(module)
    if ids_file is not None and order not in (None, "xla"):
        raise HlofuseError("--ids FILE goes with --order xla")
    ids = unique_ids_for(module, ids_file) if order in (None, "xla") else None
    if order == "xla" and ids is None:
        raise HlofuseError(
            f"--order xla asks for XLA's ids, and no .hlo.pb of this module lies beside {_name(module)};"
            " --ids FILE names one"
        )
    if order == "text":
        module.order_source = order
    if order not in (None, "replayed"):
        return ReplayInput(module, ids)
    replayed = replayed_from_dump(module, target, device)
    if replayed is None and order == "replayed":
        raise HlofuseError(
            "--order replayed asks for the module before optimizations beside"
            f" {_name(module)}, from which XLA's passes, repeated, have to give this module"
        )
    return ReplayInput(replayed or module, ids)


def replayed_from_dump(module: Module, target: str, device: DeviceDescription | None) -> Module | None:
    """A copy of the module in the order that repeating XLA's earlier passes gives it.

    None where nothing depends on the order, where no module before optimizations lies beside, and where
    XLA's passes before fusion, repeated, make another module of that one.
    """
    if not TARGETS[target].has_history or module.order_source == "replayed":
        return None
    source = before_optimizations_of(module.filename)
    if source is None:
        return None
    try:
        unoptimized = load(source)
        restore_literals(unoptimized)
        in_creation_order(unoptimized, unique_ids_for(unoptimized))
        return with_replayed_order(module, unoptimized, target, device, compiled_with(module))
    except HlofuseError:
        return None


def _name(module: Module) -> str:
    return printable(module.filename) if module.filename else "it"
