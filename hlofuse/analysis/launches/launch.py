"""What one instruction of a final module has the device do."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

LaunchKind: TypeAlias = Literal["kernel", "library", "copy", "memset", "collective", "host"]
"""Code that XLA writes; a library's; a memcpy on the device; setting memory to one value; talking to other
devices; talking to the host."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch of an instruction that its computation runs."""

    kind: LaunchKind
    note: str = ""
    """Who does it, and what belongs to it, where the kind does not say that."""
