"""One file per XLA pass, named as XLA names it; `make_pass` makes one from its text."""

from hlofuse.passes.base import Pass
from hlofuse.passes.registry import make_pass

__all__ = ["Pass", "make_pass"]
