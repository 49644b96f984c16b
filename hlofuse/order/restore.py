"""The one place that gives a module the order in which XLA's fusion passes find it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlofuse.order.spent_names import reserve_fusion_names, reserve_names_before_renaming

if TYPE_CHECKING:
    from hlofuse.ir.graph import Module, OrderSource
    from hlofuse.ir.unique_ids import UniqueIds


def source_of(module: Module, ids: UniqueIds | None = None) -> OrderSource:
    """The source of the order that `restore` gives a module."""
    if ids is not None:
        return "xla"
    return module.order_source or "estimated"


def is_open(source: OrderSource | None) -> bool:
    """True if XLA may have broken ties between equal priorities in another way."""
    return source in (None, "estimated", "text")


def restore(module: Module, ids: UniqueIds | None = None) -> None:
    """Give the module ids, and reserve the names that earlier passes spent.

    `ids` are XLA's. Without them the source that the module names is in force already, or an estimate is
    made. Use-lists stay as they are: those of the text, or of the repeated passes.
    """
    source = source_of(module, ids)
    if ids is not None:
        ids.apply(module)
        ids.give_metadata(module)
    elif source == "estimated":
        from hlofuse.order.estimate import estimate_order

        estimate_order(module)
    module.order_source = source
    reserve_fusion_names(module)
    reserve_names_before_renaming(module)


def restore_use_lists(module: Module) -> None:
    """The same for XLA without priority fusion, which breaks no ties by ids but follows use-lists."""
    if module.order_source != "text":
        from hlofuse.order.legacy.restore import restore_users_order

        restore_users_order(module)
        module.order_source = "estimated"
    reserve_fusion_names(module)
