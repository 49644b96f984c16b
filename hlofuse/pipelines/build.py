"""Which XLA a replay repeats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hlofuse.cost.gpu.device import DeviceDescription


@dataclass(frozen=True, slots=True)
class XlaBuild:
    """What XLA does with a module depends on these four, and on nothing else."""

    release: str
    """As jaxlib counts releases, such as `0.11.1`."""
    backend: str
    """`cpu` or `gpu`."""
    device: DeviceDescription | None = None
    """None for a backend that fuses the same on every device."""
    flags: tuple[str, ...] = ()
    """XLA flags that change fusion, as `XLA_FLAGS` takes them; those at their defaults are left out."""

    def to_json(self) -> dict[str, Any]:
        """`release`, `backend`, `device` (its name or null) and `flags` (name to value)."""
        flags = dict(f.removeprefix("--").partition("=")[::2] for f in self.flags)
        device = self.device.name if self.device is not None else None
        return {"release": self.release, "backend": self.backend, "device": device, "flags": flags}
