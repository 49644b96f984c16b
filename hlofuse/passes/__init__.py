"""One file per XLA pass, named as XLA names it; `make_pass` makes one from its text."""

from .base import Pass
from .registry import make_pass
