"""The device numbers that the models read (`stream_executor::DeviceDescription`). Each file in `devices/`
describes one device, named as in XLA's target configurations (`xla/backends/gpu/target_config/specs`). Others
come from such a file or the text proto that `--xla_gpu_target_config_filename` reads."""

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from hlofuse.cost.tpu import tpu_devices
from hlofuse.ir.errors import HlofuseError, any_of
from hlofuse.ir.record import Json, replace
from hlofuse.ir.shape import ELEMENT_TYPES
from .ticks import TICKS_PER_MICROSECOND, fp32

_PACKAGED = Path(__file__).parent / "devices"  # importlib.resources takes longer to import than to read one
XLAS_OWN = "XLA's target configurations"  # The default source of a packaged device's numbers
_MI300_SERIES = ("gfx942", "gfx950")
_RATED_TYPES = ELEMENT_TYPES.index("buffer")
"""The packaged devices have no rates for the element types after this one."""


@dataclass(frozen=True)
class DeviceDescription:
    """The numbers of one device that XLA's cost models read."""

    name: str
    core_count: int  # Streaming multiprocessors
    fpus_per_core: int
    clock_rate_ghz: float
    memory_bandwidth: int  # Bytes per second
    l2_cache_size: int  # Bytes
    threads_per_core_limit: int
    shared_memory_per_block: int  # Bytes
    platform: str = "CUDA"  # CUDA, ROCM or SYCL
    compute_capability: tuple[int, int] = (0, 0)  # The CUDA compute capability; (0, 0) for other platforms
    gcn_arch_name: str = ""
    threads_per_warp: int = 32
    threads_per_block_limit: int = 1024
    shared_memory_per_block_optin: int = 0
    shared_memory_per_core: int = 0
    device_memory_size: int = field(default=0, compare=False)
    """Bytes, 0 where unknown; cards of one kind have a little more or less."""
    registers_per_block_limit: int = 0
    registers_per_core_limit: int = 0
    block_dim_limit_x: int = 2**31 - 1
    block_dim_limit_y: int = 65535
    max_blocks_per_multiprocessor: int = 0  # Blocks that one core can hold; 0 where unknown
    matrix_units: tuple[tuple[str, float, int, int], ...] = ()
    """Type, clock in GHz, units in a core, operations of each in a cycle (`ExecutionUnitDescription`)."""
    toolkit_version: tuple[int, int, int] = (0, 0, 0)
    """Version of the CUDA toolkit that XLA was built with; some choices for Blackwell depend on it."""
    # What follows XLA supposes of every device (constants of its cost model); what-if runs change it.
    launch_overhead_us: float = 1.0  # Microseconds to launch a kernel (`kKernelLaunchOverhead`)
    memory_compute_parallelism: float = 0.95  # The overlapping part of the shorter of compute and memory time
    l2_cache_speedup: float = 2.5  # Speed of the L2 cache relative to memory
    l1_cache_speedup: float = 8.0  # Speed of the L1 cache relative to the L2 cache
    concatenate_flops: int = 6  # FLOP for each element of a concatenate
    straddled_concatenate_flops: int = 400
    """FLOP for each element where a warp would straddle the seam: a penalty against fusing it."""
    origin: str = XLAS_OWN

    @property
    def gfx_version(self) -> str:
        """`gfx90a` of a ROCm device (`RocmComputeCapability::gfx_version`)."""
        return self.gcn_arch_name.partition(":")[0]

    @property
    def is_rocm(self) -> bool:
        return self.platform == "ROCM"

    @property
    def is_blackwell(self) -> bool:
        """True for compute capability 10.x, not 12.x (`CudaComputeCapability::IsBlackwell`)."""
        return self.compute_capability[0] == 10

    @property
    def host_bandwidth(self) -> int:
        """Bytes per second to or from the host at most: NVLink-C2C, or 16 lanes of PCI Express 3 to 5."""
        if self.name.startswith(("NVIDIA GB2", "NVIDIA GB3", "NVIDIA GH")):
            return 450_000_000_000
        major = self.compute_capability[0] if self.platform == "CUDA" else 9
        return 64_000_000_000 >> max(9 - max(major, 7), 0)

    @cached_property
    def launch_ticks(self) -> int:
        return round(self.launch_overhead_us * TICKS_PER_MICROSECOND)

    @cached_property
    def l1_cache_size_per_core(self) -> int:
        """Bytes that XLA assumes to stay in the L1 cache (`l1_cache_size_per_SM`)."""
        if self.gfx_version in ("gfx908", "gfx90a"):
            return 16 * 1024
        return 32 * 1024 if self.gfx_version in _MI300_SERIES else 2 * 1024

    @cached_property
    def dram_to_l2_transaction_bytes(self) -> int:
        """`dram_to_l2_transaction_size_bytes`."""
        return 128 if self.gfx_version in _MI300_SERIES else 64

    @cached_property
    def bytes_per_clock_and_core(self) -> int:
        """Bytes that one core can request from memory in a cycle (`memory_transactions_per_clock`)."""
        return 16 if self.gfx_version in _MI300_SERIES else 32

    @cached_property
    def op_profile(self) -> str:
        """The name of the table of clock cycles (`HloOpProfiles::GetProfileName`)."""
        major, minor = self.compute_capability
        return f"sm_{major}{minor}" if self.platform == "CUDA" else self.gfx_version

    def with_overrides(self, overrides: dict[str, str]) -> "DeviceDescription":
        """The device with some numbers changed: `{"memory_bandwidth": "2e12"}`."""
        names = {f.name for f in fields(self)}
        for name in overrides:
            if name not in names:
                raise HlofuseError(f"a device has no {name!r}; it has {', '.join(sorted(names))}")
        return replace(self, **typed_numbers(overrides))


def device_names() -> list[str]:
    return sorted(path.stem for path in _PACKAGED.glob("*.toml"))


def load_device(name: str) -> DeviceDescription:
    """The device of that name, or from the file at that path (TOML, or XLA's target configuration)."""
    packaged = _PACKAGED / f"{name}.toml"
    if re.fullmatch(r"[\w.-]+", name) and packaged.is_file():
        return _load_packaged(packaged)
    from hlofuse.cost.cpu.device import CHOICE, load_cpu

    try:
        load_cpu(name)
    except HlofuseError:
        pass
    else:
        raise HlofuseError(f"{name} is a CPU: leave out --device, and set {CHOICE}={name} in the environment")
    path = Path(name)
    if not path.is_file():
        names = [*device_names(), *tpu_devices()]
        if name and (like := [n for n in names if name.lower() in n]):
            meant = any_of(like)
            raise HlofuseError(f"no device {name!r}; did you mean {meant}? (hlofuse devices lists all)")
        raise HlofuseError(f"no device {name!r}; expected one of {', '.join(names)}, or a .pbtxt of XLA's")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError):
        raise HlofuseError(f"{name}: not a device file") from None
    return (
        _parse_toml(text, name)
        if path.suffix == ".toml"
        else device_from_text_proto(text, path.stem, source=name)
    )


@cache
def _load_packaged(path: Path) -> DeviceDescription:
    return _parse_toml(path.read_text(), path.stem)


def device_from_text_proto(
    text: str,
    name: str = "device",
    *,
    source: str = "",
) -> DeviceDescription:
    """The device in a `GpuTargetConfigProto` or `GpuDeviceInfoProto`, or `name`; errors name the `source`."""
    source = source or name
    try:
        config = parse_text_proto(text)
    except TextProtoError as error:
        raise HlofuseError(f"{source}: not a device file: {error}") from None
    info = _message_field(config, "gpu_device_info") if "gpu_device_info" in config else config
    values = {f.name: info[f.name] for f in fields(DeviceDescription) if f.name in info}
    values["name"] = info.get("name") or config.get("device_description_str") or name
    if (cuda := _message_field(info, "cuda_compute_capability")) is not None:
        values["compute_capability"] = (cuda.get("major", 0), cuda.get("minor", 0))
    rocm = _message_field(info, "rocm_compute_capability")
    values["platform"] = config.get("platform_name", "CUDA" if rocm is None else "ROCM")
    if rocm is not None:
        values["gcn_arch_name"] = rocm.get("gcn_arch_name", "")
    values["origin"] = "the target configuration given"
    values["matrix_units"] = _matrix_units(_message_field(info, "matrix_unit_description") or {})
    if "compile_time_toolkit_version" in info:
        values["toolkit_version"] = info["compile_time_toolkit_version"]
    return _device(values, source)


def _message_field(within: Json, name: str) -> Any:
    found = within.get(name)
    if found is not None and not isinstance(found, dict):
        raise HlofuseError(f"{name} must be a message")
    return found


def _matrix_units(description: Json) -> dict[str, list[Any]]:
    """Rates by element type, from an `ExecutionUnitDescriptionProto`."""
    infos = description.get("rate_infos", [])
    units = dict[str, list[Any]]()
    for info in infos if isinstance(infos, list) else [infos]:
        if not isinstance(info, dict):
            raise HlofuseError("rate_infos must be a message")
        key = info.get("key", 0)
        value = _message_field(info, "value") or {}
        if isinstance(key, int) and 0 < key < _RATED_TYPES:
            names = ("clock_rate_ghz", "units_per_core", "ops_per_clock")
            units[ELEMENT_TYPES[key]] = [value.get(n, 0) for n in names]
    return units


def _parse_toml(text: str, name: str) -> DeviceDescription:
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise HlofuseError(f"{name}: not a device file: {error}") from None
    return _device(values, name)


def _device(values: Json, name: str) -> DeviceDescription:
    try:
        return DeviceDescription(**typed_numbers(values))
    except (TypeError, HlofuseError) as error:
        reason = str(error).removeprefix("DeviceDescription.__init__() ")
        raise HlofuseError(f"{name}: not a device file: {reason}") from None


_TOKEN = re.compile(
    r"""
    \s+ | \#[^\n]*
    | (?P<name>[A-Za-z_]\w*)
    | (?P<text>"(?:[^"\\]|\\.)*")
    | (?P<number>[-+\d.][\w.+-]*)
    | (?P<mark>[{}:<>])
    """,
    re.VERBOSE,
)


class TextProtoError(ValueError):
    """The text is not a text proto."""


def parse_text_proto(text: str) -> Json:
    """Fields by name; a repeated field becomes a list, a message a dict. Raises `TextProtoError`."""
    root = Json()
    stack = [root]
    name: str | None = None
    position = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            line = text.count("\n", 0, position) + 1
            raise TextProtoError(f"line {line}: unexpected {text[position]!r}")
        position = token.end()
        mark = token["mark"]
        if mark in ("{", "<"):
            if name is None:
                raise TextProtoError("a message has no name")
            inner = Json()
            _add_field(stack[-1], name, inner)
            stack.append(inner)
            name = None
        elif mark in ("}", ">"):
            if len(stack) == 1:
                raise TextProtoError("extra closing brace")
            stack.pop()
        elif token["name"] is not None and name is None:
            name = token["name"]
        elif name is not None and (value := token["name"] or token["text"] or token["number"]):
            _add_field(stack[-1], name, _scalar(value))
            name = None
        elif token["text"] or token["number"]:
            raise TextProtoError(f"a value has no name: {token[0]}")
    if len(stack) > 1 or name is not None:
        raise TextProtoError("the text ends inside a message")
    return root


def _add_field(message: Json, name: str, value: Any) -> None:
    if name not in message:
        message[name] = value
    elif isinstance(message[name], list):
        message[name].append(value)
    else:
        message[name] = [message[name], value]


def _scalar(text: str) -> Any:
    if text[0] == '"':
        return text[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return {"true": True, "false": False}.get(text, text)


_TEXT_FIELDS = ("name", "platform", "gcn_arch_name", "origin")
_VERSIONS = {"compute_capability": 2, "toolkit_version": 3}
_SPEEDUPS = ("l2_cache_speedup", "l1_cache_speedup")
_FRACTIONS = ("clock_rate_ghz", "launch_overhead_us", "memory_compute_parallelism", *_SPEEDUPS)
_DIVISORS = (
    *("core_count", "fpus_per_core", "clock_rate_ghz", "memory_bandwidth"),
    *("threads_per_warp", "block_dim_limit_x", "block_dim_limit_y", *_SPEEDUPS),
)
_MAY_BE_UNKNOWN = ("registers_per_block_limit", "registers_per_core_limit")
"""Limits for which XLA has -1 on Intel's devices."""


def typed_numbers(values: Mapping[str, Any]) -> Json:
    """Values in the types of `DeviceDescription`'s fields; raises `HlofuseError` for impossible ones."""
    return {key: _convert(key, value) for key, value in values.items()}


def _convert(key: str, value: Any) -> Any:
    if key in _TEXT_FIELDS:
        return value
    try:
        if key in _VERSIONS:
            parts = value.split(".") if isinstance(value, str) else value
            length = _VERSIONS[key]
            return tuple(([int(x) for x in parts] + [0] * length)[:length])
        if key == "matrix_units":
            return tuple(
                (name, fp32(float(clock)), int(units), int(operations))
                for name, (clock, units, operations) in value.items()
            )
        number = float(value)
        if number == -1 and key in _MAY_BE_UNKNOWN:
            return -1
        if not math.isfinite(number) or number < 0 or (number == 0 and key in _DIVISORS):
            least = "more than 0" if key in _DIVISORS else "0 or more"
            raise HlofuseError(f"{key}: expected a number of {least}, found {value}")
        if key == "memory_compute_parallelism" and number > 1:
            raise HlofuseError(f"{key}: expected a fraction from 0 to 1, found {value}")
        if key in _FRACTIONS:
            return fp32(number) if key == "clock_rate_ghz" else number
        if not number.is_integer():
            raise HlofuseError(f"{key}: expected an integer, found {value}")
        return int(value) if isinstance(value, int) or value.isdigit() else int(number)
    except (ValueError, AttributeError, TypeError):
        raise HlofuseError(f"{key}: {value!r} is not a number") from None
