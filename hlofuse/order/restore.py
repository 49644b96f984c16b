"""The one place that gives a module the order in which XLA's fusion passes find it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlofuse.order.spent_names import (
    reserve_counted_names,
    reserve_fusion_names,
    reserve_names_before_renaming,
)

if TYPE_CHECKING:
    from hlofuse.ir.graph import Module, OrderSource
    from hlofuse.ir.unique_ids import UniqueIds
    from hlofuse.pipelines.targets import Target
    from hlofuse.releases import Release


def source_of(module: Module, target: Target, ids: UniqueIds | None = None) -> OrderSource:
    """The source of the order that `restore` gives a module for a target."""
    if target.has_history:
        return "xla" if ids is not None else module.order_source or "estimated"
    if target.restores_use_lists:
        return "text" if module.order_source == "text" else "estimated"
    return "text"


def is_open(source: OrderSource) -> bool:
    """True if XLA may have broken ties between equal priorities in another way."""
    return source in ("estimated", "text")


def restore(module: Module, target: Target, release: Release, ids: UniqueIds | None = None) -> None:
    """Give the module ids and use-lists, and reserve the names that earlier passes spent.

    `ids` are XLA's. Without them the source that the module names is in force already, or an estimate is
    made. For priority fusion use-lists stay as they are, those of the text or of the repeated passes, but for
    the releases in which the last passes before it left others (`users_by_layout_passes`): these are
    estimated, as they are for XLA without it, which breaks no ties by ids but follows use-lists.
    """
    source = source_of(module, target, ids)
    if target.has_history:
        if ids is not None:
            ids.apply(module)
            ids.give_metadata(module)
        elif source == "estimated":
            from hlofuse.order.estimate import estimate_order

            estimate_order(module)
        if release.priority_fusion_renames:
            reserve_counted_names(module)
        else:
            reserve_names_before_renaming(module)
    estimates = target.restores_use_lists or (target.has_history and release.users_by_layout_passes)
    if estimates and source != "text":
        from hlofuse.order.legacy.restore import restore_users_order

        restore_users_order(module)
    if target.depends_on_order:
        reserve_fusion_names(module)
    module.order_source = source
