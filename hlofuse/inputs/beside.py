"""Files that XLA writes beside a module's dumps, or that a corpus keeps beside `before.hlo`."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hlofuse.ir.errors import HlofuseError

if TYPE_CHECKING:
    from hlofuse.cost.gpu.device import DeviceDescription

_DUMP = re.compile(
    r"((?:.+?\.)?module_\d+\.)(.+?)\.(?:cl_\d+\.)?(?:\d{4,9}\.|before_|after_|cpu_|gpu_|sm_|gfx)"
)


def target_config_beside(filename: str | None) -> Path | None:
    """`….gpu_target_config.pbtxt`: the device the module was compiled for."""
    return _beside(filename, ("gpu_target_config.pbtxt",), ("gpu_target_config.pbtxt",))


def device_in_dump(config: Path) -> DeviceDescription:
    """The device of a target configuration, by a name that fits a headline."""
    from hlofuse.cost.gpu.device import DeviceError, device_names, load_device

    try:
        device = load_device(str(config))
    except DeviceError as error:
        raise HlofuseError(str(error)) from None
    for name in device_names():
        shipped = replace(load_device(name), name=name)
        if replace(device, name=name, origin=shipped.origin) == shipped:
            return shipped
    return replace(device, name="the dump's device")


def device_beside(filename: str | None) -> DeviceDescription | None:
    """The device that the target configuration beside a module describes; None without one."""
    config = target_config_beside(filename)
    return device_in_dump(config) if config is not None else None


def priority_record_beside(filename: str | None) -> Path | None:
    """`….priority_fusion_dump.txt`: XLA's own record of the pass."""
    return _beside(
        filename, ("priority_fusion_dump.txt",), ("priority_fusion.txtpb", "priority_fusion.txtpb.gz")
    )


def before_optimizations_beside(filename: str | None) -> Path | None:
    """The module as the front end wrote it, beside its dump ahead of the fusion passes."""
    return _beside(filename, ("before_optimizations.txt",), ("before_optimizations.hlo",))


def _beside(filename: str | None, endings: tuple[str, ...], corpus_names: tuple[str, ...]) -> Path | None:
    if not filename or filename.startswith("<"):
        return None
    path = Path(filename)
    names = list(corpus_names) if path.name in ("before.hlo", "before.hlo.gz") else []
    match = _DUMP.match(path.name)
    if match is not None:
        names += [f"{match[1]}{match[2]}.{ending}" for ending in endings]
    return next((p for n in names if (p := path.with_name(n)).is_file()), None)
