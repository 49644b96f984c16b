"""What the runtime does for an instruction of a final module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

LaunchKind: TypeAlias = Literal["kernel", "library", "copy", "memset", "collective", "host"]
"""`kernel`: code that XLA generated. `library`: a call of code that others wrote. `copy` and `memset`: bytes
moved or set without a kernel. `collective`: devices exchange data. `host`: work of the runtime itself."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One piece of work that the runtime starts."""

    kind: LaunchKind


KERNEL = Launch("kernel")
LIBRARY = Launch("library")
COPY = Launch("copy")
MEMSET = Launch("memset")
COLLECTIVE = Launch("collective")
HOST = Launch("host")
