"""The device a replay is about, and which XLA it repeats."""

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from hlofuse.ir import HlofuseError, Json, Record, replace
from .targets import TARGETS

if TYPE_CHECKING:
    from hlofuse.cost.gpu.device import DeviceDescription

NEEDS_DEVICE = "needs --device, the GPU to replay, such as --device h100_sxm (hlofuse devices lists all)"
"""The message where a target needs a device and none is known."""
NEEDS_AMD_DEVICE = (
    "needs --device, the AMD GPU to replay, such as --device mi300x (hlofuse devices lists all)"
)
"""The message where the module was written for ROCm."""


def device_of(
    target: str, device: "str | DeviceDescription | None", overrides: Iterable[str] = ()
) -> "tuple[DeviceDescription | None, tuple[str, ...]]":
    """The device (a name or file), with the overrides `NAME=VALUE` that mean its numbers, and the others.
    None for targets whose decisions do not depend on a device; naming one is an error then."""
    overrides = tuple(overrides)
    if not TARGETS[target].needs_device:
        if device is not None:
            others = " or ".join(name for name, t in TARGETS.items() if t.needs_device)
            raise HlofuseError(
                f"target {target} fuses the same on every device; --device needs --target {others}"
            )
        return None, overrides
    from hlofuse.cost.gpu.device import DeviceDescription, load_device

    if device is None:
        raise HlofuseError(f"target {target} {NEEDS_DEVICE}")
    numbers = {f.name for f in fields(DeviceDescription)}
    device_overrides = [o for o in overrides if o.partition("=")[0] in numbers]
    if bare := [o for o in device_overrides if "=" not in o]:
        raise HlofuseError(f"--set {bare[0]}: expected NAME=VALUE")
    if isinstance(device, str):  # reports call a device as the user does
        device = replace(load_device(device), name=Path(device).stem)
    if device_overrides:
        device = device.with_overrides(dict(o.split("=", 1) for o in device_overrides))
    return device, tuple(o for o in overrides if o not in device_overrides)


class XlaBuild(Record):
    """The four values that decide XLA's treatment of a module."""

    release: str  # As jaxlib counts releases, such as `0.11.1`
    backend: str  # `cpu` or `gpu`
    device: "DeviceDescription | None" = None  # None for a backend that fuses the same on every device
    flags: tuple[str, ...] = ()
    """XLA flags that change fusion, as `XLA_FLAGS` takes them; those at their defaults are left out."""

    def to_json(self) -> Json:
        """`release`, `backend`, `device` (its name or null) and `flags` (name to value)."""
        flags = dict(f.removeprefix("--").partition("=")[::2] for f in self.flags)
        device = self.device.name if self.device is not None else None
        return {"release": self.release, "backend": self.backend, "device": device, "flags": flags}
