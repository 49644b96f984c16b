"""One instruction through every pass of a dump directory."""

from .follow import follow
from .model import Provenance

__all__ = ["Provenance", "follow"]
