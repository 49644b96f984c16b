"""A loaded module in the order that XLA has it in memory, from what lies beside it."""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

from hlofuse.format.escape import printable
from hlofuse.inputs.companions import before_optimizations_of, compiled_with
from hlofuse.inputs.many import load
from hlofuse.inputs.unique_ids import unique_ids_for
from hlofuse.inputs.unread_elements import restore_literals, restore_unread_elements
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Computation, Instruction, Module, OrderSource
from hlofuse.ir.unique_ids import UniqueIds
from hlofuse.order.replayed import with_replayed_order
from hlofuse.pipelines import TARGETS
from hlofuse.replay import ReplayInput

if TYPE_CHECKING:
    from hlofuse.cost.gpu.device import DeviceDescription

# The order in which a front end made the operations of a module, from their names.
#
# A module before optimizations is printed in an order of XLA's printer. A name that was taken got the next
# number of its stem's count (`xla/service/name_uniquer.cc`): those with the same stem tell their order.


_NUMBERED = re.compile(r"(.*)\.(\d+)")


def in_creation_order(module: Module, ids: UniqueIds | None) -> None:
    """Put the operations of a module before optimizations in the order of ids, or else of their names, with
    all that the front end made."""
    restore_unread_elements(module, ids)
    if ids is not None:
        ids.apply(module)
    else:
        in_named_order(module)


def in_named_order(module: Module) -> None:
    """Put the operations in the order of their numbers, operands first; what the names contradict stays."""
    for computation in module.computations:
        order = _ordered(computation)
        if order is not None:
            computation.reorder(order)


def _ordered(computation: Computation) -> list[Instruction] | None:
    """As early as possible in the text's order among what may come next; None if there is no such order."""
    after: dict[Instruction, list[Instruction]] = defaultdict(list)
    waits: dict[Instruction, int] = defaultdict(int)
    series: dict[str, list[tuple[int, Instruction]]] = defaultdict(list)
    place = {}
    for k, i in enumerate(computation):
        place[i] = k
        found = _NUMBERED.fullmatch(i.name)
        stem, number = (found[1], int(found[2])) if found else (i.name, 0)
        series[stem].append((number, i))
        for before in (*i.operands, *i.control_predecessors):
            after[before].append(i)
            waits[i] += 1
    for named in series.values():
        named.sort(key=lambda pair: pair[0])
        for (_, a), (_, b) in pairwise(named):
            after[a].append(b)
            waits[b] += 1
    ready = [(k, i) for i, k in place.items() if not waits[i]]
    out = []
    while ready:
        _, i = heapq.heappop(ready)
        out.append(i)
        for j in after[i]:
            waits[j] -= 1
            if not waits[j]:
                heapq.heappush(ready, (place[j], j))
    return out if len(out) == len(place) else None


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
