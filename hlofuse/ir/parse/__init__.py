"""From text to a module: `parse_module`."""

from hlofuse.ir.parse.reader import parse_module

__all__ = ["parse_module"]
