"""An estimate of XLA's ids from a text."""

from __future__ import annotations

from hlofuse.ir.module import Module

MECHANISMS: tuple[str, ...] = ()


def estimate_order(module: Module, without: frozenset[str] = frozenset()) -> None:
    """Give the instructions ids in their likely order of creation."""
