"""Files that XLA writes beside a module's dumps, or that a corpus keeps beside `before.hlo`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hlofuse.inputs.text import read_text
from hlofuse.ir.errors import HlofuseError

if TYPE_CHECKING:
    from hlofuse.cost.gpu.device import DeviceDescription

_DUMP = re.compile(
    r"((?:.+?\.)?module_\d+\.)(.+?)\.(?:cl_\d+\.)?(?:\d{4,9}\.|before_|after_|cpu_|gpu_|sm_|gfx)"
)


def target_config_of(filename: str | None) -> Path | None:
    """`….gpu_target_config.pbtxt`: the device the module was compiled for."""
    return _sibling(filename, ("gpu_target_config.pbtxt",), ("gpu_target_config.pbtxt",))


def device_in_dump(config: Path) -> DeviceDescription:
    """The device of a target configuration, by a name that fits a headline."""
    from hlofuse.cost.gpu.device import load_device
    from hlofuse.cost.gpu.device_numbers import DeviceError

    try:
        device = load_device(str(config))
    except DeviceError as error:
        raise HlofuseError(str(error)) from None
    return _shipped(device) or replace(device, name="the dump's device")


def device_in_record(record: Path) -> DeviceDescription | None:
    """The device that XLA's record was made for; None where no device of ours has its numbers."""
    from hlofuse.cost.gpu.device import device_from_text_proto
    from hlofuse.cost.gpu.device_numbers import DeviceError

    try:
        text = "\n" + read_text(record, as_module=False)
        return _shipped(device_from_text_proto(text[text.rindex("\ngpu_device_info {") :]))
    except (HlofuseError, DeviceError, ValueError):
        return None  # a record that is torn, or of a release that wrote no device: the user is asked


def _shipped(device: DeviceDescription) -> DeviceDescription | None:
    """The device of ours that has all the same numbers."""
    from hlofuse.cost.gpu.device import device_names, load_device

    for name in device_names():
        shipped = replace(load_device(name), name=name)
        if replace(device, name=name, origin=shipped.origin) == shipped:
            return shipped
    return None


@dataclass(frozen=True, slots=True)
class RecordedDevice:
    """A device that a file beside a module describes."""

    device: DeviceDescription
    note: str = ""
    """Which device and why, where the file is there for another purpose; empty where XLA says it there."""


def recorded_device(filename: str | None) -> RecordedDevice | None:
    """The device that the target configuration beside a module describes, else XLA's record of the pass."""
    filename = _case_input(filename)
    config = target_config_of(filename)
    if config is not None:
        return RecordedDevice(device_in_dump(config))
    record = priority_record_of(filename)
    device = device_in_record(record) if record is not None else None
    if device is None:
        return None
    return RecordedDevice(
        device, f"for {device.name}, whose numbers are in XLA's own record beside the module"
    )


def _case_input(filename: str | None) -> str | None:
    """`before.hlo` for what lies beside it as a program of a corpus; other files themselves."""
    if not filename or filename.startswith("<") or _DUMP.match(Path(filename).name):
        return filename
    return str(Path(filename).with_name("before.hlo"))


def priority_record_of(filename: str | None) -> Path | None:
    """`….priority_fusion_dump.txt`: XLA's own record of the pass."""
    return _sibling(
        filename, ("priority_fusion_dump.txt",), ("priority_fusion.txtpb", "priority_fusion.txtpb.gz")
    )


def before_optimizations_of(filename: str | None) -> Path | None:
    """The module as the front end wrote it, beside its dump ahead of the fusion passes."""
    return _sibling(filename, ("before_optimizations.txt",), ("before_optimizations.hlo",))


def _sibling(filename: str | None, endings: tuple[str, ...], corpus_names: tuple[str, ...]) -> Path | None:
    if not filename or filename.startswith("<"):
        return None
    path = Path(filename)
    names = list(corpus_names) if path.name in ("before.hlo", "before.hlo.gz") else []
    match = _DUMP.match(path.name)
    if match is not None:
        names += [f"{match[1]}{match[2]}.{ending}" for ending in endings]
    return next((p for n in names if (p := path.with_name(n)).is_file()), None)
