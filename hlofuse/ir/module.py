"""`Module`, until everybody imports it from `hlofuse.ir.graph`."""

from hlofuse.ir.graph import Module

__all__ = ["Module"]
