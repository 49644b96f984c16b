"""A device as the text of the `GpuTargetConfigProto` for XLA's ahead-of-time compilation. The cost models'
numbers come from the device's file. XLA reads little of the rest (limits on threads in a dimension, versions
of libraries) before code is generated; there every CUDA device is described alike."""

from operator import itemgetter
from pathlib import Path
from typing import Any

from hlofuse.cost.gpu.device import DeviceDescription, load_device
from hlofuse.ir.attributes.metadata import quote
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.shape import ELEMENT_TYPES
from hlofuse.ir.texts import packaged
from hlofuse.releases import NAMES

_ACCELERATED = (9, 10)
"""Major compute capabilities with architecture-specific features in XLA's name (`sm_90a`)."""
_TABLES = packaged(__file__, "target_config")
FLAGS_OF_RELEASES: dict[str, list[dict[str, str]]] = _TABLES["flags"]
"""XLA_FLAGS that releases from `since` on, before `until`, need to compile for an absent device."""
_Value = str | int | float | dict[str, Any]


def target_config_of(device: str) -> tuple[DeviceDescription, str]:
    """The device of that name or file, and its target configuration. A text proto is passed on unchanged.
    Raises `HlofuseError` for an unknown device, or one without CUDA."""
    description = load_device(device)
    if description.platform != "CUDA":
        raise HlofuseError(
            f"device {device} is for {description.platform}, but hlofuse capture compiles for CUDA; dump the"
            " program where it runs and give hlofuse that directory"
        )
    path = Path(device)
    if path.is_file() and path.suffix != ".toml":
        return description, path.read_text(encoding="utf-8")
    return description, target_config_text(description)


def target_config_text(device: DeviceDescription) -> str:
    """The text of a GpuTargetConfigProto for a CUDA device, a field a line, with those of every release."""
    toolkit = device.toolkit_version if any(device.toolkit_version) else (12, 8, 0)
    major, minor = device.compute_capability
    capability: dict[str, _Value] = {"major": major, "minor": minor}
    if major in _ACCELERATED:
        capability["feature_extension"] = "ACCELERATED_FEATURES"
    given = [(n, getattr(device, n)) for n in _TABLES["from_device"]]
    own = dict(filter(itemgetter(1), given))
    info: list[tuple[str, _Value]] = [*(_TABLES["gpu_device_info"] | own).items()]
    info += [
        ("name", quote(device.name)),
        ("compile_time_toolkit_version", quote(".".join(map(str, toolkit)))),
        ("cuda_compute_capability", capability),
    ]
    lines = ["gpu_device_info {", *(f"  {line}" for field in info for line in _field(*field))]
    rates = [
        f"rate_infos {{ key: {ELEMENT_TYPES.index(name)} value {{ clock_rate_ghz: {clock}"
        f" units_per_core: {units} ops_per_clock: {operations} }} }}"
        for name, clock, units, operations in device.matrix_units
    ]
    if rates:
        lines += ["  matrix_unit_description {", *(f"    {r}" for r in rates), "  }"]
    lines += ["}", *_field("platform_name", quote("CUDA"))]
    lines += _field("device_description_str", quote(device.name))
    for name, version in _TABLES["libraries"].items():
        lines += _field(name, version)
    return "\n".join(lines) + "\n"


def _field(name: str, value: _Value) -> list[str]:
    if isinstance(value, dict):
        return [f"{name} {{", *(f"  {line}" for field in value.items() for line in _field(*field)), "}"]
    return [f"{name}: {value}"]


def advice_about(target: str, flags: str) -> str | None:
    """The advice for programs that did not reach fusion when compiled with these flags; None without one."""
    given = [f for f in FLAGS_OF_RELEASES.get(target, []) if f["flag"] in flags.split()]
    return next((f["advice"] for f in given if "advice" in f), None)


def doubt_about(version: str | None) -> str | None:
    """The note for a capture by an unverified jaxlib; None for a named release."""
    if version is None:
        return "the jaxlib release that compiled this is unknown; give --xla to choose the release to replay"
    if version in NAMES:
        return None
    return (
        f"jaxlib {version} is not one of the verified releases ({', '.join(NAMES)}); hlofuse verify shows"
        " where its XLA differs from the nearest of them"
    )
