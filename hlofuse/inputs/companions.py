"""Files next to a module: XLA's dumps, or those of a corpus next to `before.hlo`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlofuse.format.escape import printable
from hlofuse.inputs.dump_directory import corpus_file
from hlofuse.inputs.dump_names import read_name
from hlofuse.inputs.profile import device_of, is_profile, read_profile
from hlofuse.inputs.text import read_text
from hlofuse.ir.errors import HlofuseError
from hlofuse.pipelines.flags import from_debug_options, merged, parse_flags

if TYPE_CHECKING:
    from hlofuse.cost.gpu.device import DeviceDescription
    from hlofuse.ir.graph import Module


STAMP = "hlofuse.json"
MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Stamp:
    """Versions, device and flags with which a module was compiled."""

    jaxlib: str
    """The version of jaxlib; empty where the file lacks it, as for the other fields."""
    backend: str
    device: str
    flags: str
    file: str


def stamp_of(filename: str | os.PathLike[str] | None) -> Stamp | None:
    """The stamp in the module's folder, else that of its corpus."""
    if not filename or str(filename).startswith(("<", "-")):
        return None
    if is_profile(str(filename)):
        profile = read_profile(str(filename))
        busiest = max(profile.devices, key=lambda d: d.busy_us)
        return Stamp(profile.jaxlib, busiest.kind, device_of(profile), "", "the profile")
    path = Path(filename)
    folder = path if path.is_dir() else path.parent
    files = [folder / STAMP, folder / MANIFEST]
    if corpus_file(folder, "before") is not None or corpus_file(folder, "before_optimizations") is not None:
        above = folder.resolve().parent
        files += [above / STAMP, above / MANIFEST]
    return next((stamp for file in files if (stamp := _read_stamp(file)) is not None), None)


def _read_stamp(file: Path) -> Stamp | None:
    """None for a missing file, or one in another format."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or not _is_own(data):
        return None
    versions = data.get("versions")
    found = {**data, **versions} if isinstance(versions, dict) else data
    return Stamp(
        _first_text(found, "jaxlib", "jax"),
        _first_text(found, "backend", "target"),
        _first_text(found, "device", "spec"),
        _first_text(data, "flags"),
        file.name,
    )


def _is_own(data: dict[str, Any]) -> bool:
    is_named = _first_text(data, "schema").startswith(("hlofuse.stamp/", "hlofuse.capture/"))
    return is_named or {"jax", "target", "modules"} <= set(data)


def _first_text(data: dict[str, Any], *keys: str) -> str:
    return next((v for k in keys if isinstance(v := data.get(k), str)), "")


def target_config_of(filename: str | None) -> Path | None:
    """`….gpu_target_config.pbtxt`: the device the module was compiled for."""
    return _sibling(filename, "gpu_target_config.pbtxt", "gpu_target_config.pbtxt")


def device_in_dump(config: Path) -> DeviceDescription:
    """The device of a target configuration, with a name short enough for a headline."""
    from hlofuse.cost.gpu.device import load_device
    from hlofuse.cost.gpu.device_numbers import DeviceError

    try:
        device = load_device(str(config))
    except DeviceError as error:
        raise HlofuseError(str(error)) from None
    own = f"{device.name} of the dump" if device.name != config.stem else "the dump's device"
    return _builtin_device(device) or replace(device, name=own)


def device_in_record(record: Path) -> DeviceDescription | None:
    """The device that XLA's fusion log was written for; None where no known device has its numbers."""
    from hlofuse.cost.gpu.device import device_from_text_proto
    from hlofuse.cost.gpu.device_numbers import DeviceError

    try:
        text = "\n" + read_text(record, as_module=False)
        return _builtin_device(device_from_text_proto(text[text.rindex("\ngpu_device_info {") :]))
    except (HlofuseError, DeviceError, ValueError):
        return None  # a record that is torn, or of a release that wrote no device: the user is asked


def _builtin_device(device: DeviceDescription) -> DeviceDescription | None:
    from hlofuse.cost.gpu.device import device_names, load_device

    for name in device_names():
        shipped = replace(load_device(name), name=name)
        if replace(device, name=name, origin=shipped.origin) == shipped:
            return shipped
    return None


_SM = re.compile(r"(?<![a-z0-9])sm_?(\d+)\.?(\d)a?(?![0-9])", re.IGNORECASE)
_GFX = re.compile(r"(?<![a-z0-9])gfx[0-9a-f]{3,4}(?![0-9a-z])", re.IGNORECASE)


def device_of_names(names: Iterable[str]) -> RecordedDevice | None:
    """The device of the architecture in file names such as `sm_9.0_gpu_after_optimizations`.

    The first of several devices with that architecture, as the note states. Raises `HlofuseError` for an
    architecture without a device.
    """
    from hlofuse.cost.gpu.device import device_names, load_device

    for name in names:
        sm, gfx = _SM.search(name), _GFX.search(name)
        if sm is None and gfx is None:
            continue
        devices = [replace(load_device(n), name=n) for n in device_names()]
        if sm is not None:
            architecture = f"sm_{sm[1]}.{sm[2]}"
            fitting = [d for d in devices if d.compute_capability == (int(sm[1]), int(sm[2]))]
        else:
            assert gfx is not None
            architecture = gfx[0].lower()
            fitting = [d for d in devices if d.gfx_version == architecture]
        if not fitting:
            raise HlofuseError(
                f"the name {printable(name)} means {architecture}, and hlofuse has no such device; give"
                " --device FILE with its numbers (hlofuse devices)"
            )
        best = next((d for d in fitting if "sxm" in d.name), fitting[0])
        others = [d.name for d in fitting if d is not best]
        alone = f"; also matches {', '.join(others)}" if others else ""
        return RecordedDevice(best, f"device {best.name}: file names show {architecture}{alone}")
    return None


@dataclass(frozen=True, slots=True)
class RecordedDevice:
    device: DeviceDescription
    note: str = ""
    """The device and its source, where the file has another purpose; otherwise empty."""


def recorded_device(filename: str | None) -> RecordedDevice | None:
    """The device of the target configuration next to a module, else that of XLA's fusion log."""
    filename = _case_input(filename)
    config = target_config_of(filename)
    if config is not None:
        return RecordedDevice(device_in_dump(config))
    record = priority_record_of(filename)
    device = device_in_record(record) if record is not None else None
    if device is None:
        return _stamped_device(filename)
    return RecordedDevice(device, f"device {device.name}: from XLA's fusion log next to the module")


def is_result_of(filename: str | None, backend: str, device: str | None) -> bool:
    """False if XLA's result next to a module is for another backend, or device where one is given."""
    stamp = stamp_of(filename)
    if stamp is not None and stamp.backend not in ("", backend):
        return False
    recorded = recorded_device(filename) if device is not None else None
    return recorded is None or recorded.device.name == device


def _stamped_device(filename: str | None) -> RecordedDevice | None:
    """The device recorded in a capture, if hlofuse has its numbers."""
    from hlofuse.cost.gpu.device import device_names, load_device

    stamp = stamp_of(filename)
    if stamp is None or stamp.device not in device_names():
        return None
    device = replace(load_device(stamp.device), name=stamp.device)
    return RecordedDevice(device, f"device {device.name}: from {stamp.file}")


def _case_input(filename: str | None) -> str | None:
    """The path of `before.hlo` for another module of a corpus program; other paths unchanged."""
    if not filename or filename.startswith("<") or read_name(Path(filename)) is not None:
        return filename
    if is_profile(filename):
        return filename
    return str(Path(filename).with_name("before.hlo"))


def priority_record_of(filename: str | None) -> Path | None:
    """`….priority_fusion_dump.txt`: XLA's fusion log."""
    own = "priority_fusion.txtpb"
    return _sibling(filename, "priority_fusion_dump.txt", own, f"{own}.gz")


def flags_of(filename: str | None) -> tuple[str, ...]:
    """XLA flags that change fusion, from a capture's stamp and the `debug_options` next to a module."""
    path = _sibling(_case_input(filename), "debug_options", "debug_options")
    is_there = path is not None and path.stat().st_size  # empty where all flags have their defaults
    found = from_debug_options(read_text(path, as_module=False)) if path is not None and is_there else ()
    stamp = stamp_of(filename)
    if stamp is None:
        return found
    try:
        return merged(parse_flags(stamp.flags), found)
    except HlofuseError:  # edited by hand
        return found


def compiled_with(module: Module, given: tuple[str, ...] = ()) -> tuple[str, ...]:
    """XLA flags that change fusion: those of the dump, and the given ones in their place."""
    return merged(flags_of(module.filename), given)


def before_optimizations_of(filename: str | None) -> Path | None:
    """The module before optimizations, next to its dump before the fusion passes."""
    return _sibling(filename, "before_optimizations.txt", "before_optimizations.hlo")


def _sibling(filename: str | None, ending: str, *corpus_names: str) -> Path | None:
    """The dump with that ending next to a dump, or the first of these files next to a module of a corpus."""
    if not filename or filename.startswith("<"):
        return None
    path = Path(filename)
    names = list(corpus_names) if path.name in ("before.hlo", "before.hlo.gz") else []
    named = read_name(path)
    if named is not None:
        label = f"{named.prefix}." if named.prefix else ""
        names.append(f"{label}module_{named.module_id:04d}.{named.module}.{ending}")
    return next((p for n in names if (p := path.with_name(n)).is_file()), None)
