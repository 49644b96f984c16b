"""Contents of a profile: modules, the time of their instructions, and the times of each device."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from hlofuse.format import printable
from hlofuse.inputs.suggest import did_you_mean
from hlofuse.inputs.wire_format import entry_names
from hlofuse.ir import HlofuseError, Record, Strings, replace

DeviceKind = Literal["cpu", "gpu", "tpu"]


class MeasuredTime(Record):
    """Time of an instruction over all devices and launches of the profile, in microseconds."""

    name: str
    calls: int  # Launches; an instruction with several kernels counts once
    total_us: float
    median_us: float  # The median of one launch; the sum of medians for several kernels, as for the next two
    min_us: float
    max_us: float
    kernels: Strings = ()  # Names of the device's kernels, slowest first
    lines: int = 1

    @property
    def us(self) -> float:
        """The mean of one launch."""
        return self.total_us / self.calls

    def plus(self, begin: "MeasuredTime") -> "MeasuredTime":
        """The sum with the start of the same asynchronous operation, under the start's name."""
        us = {f: getattr(self, f) + getattr(begin, f) for f in ("total_us", "median_us", "min_us", "max_us")}
        return replace(begin, calls=max(self.calls, begin.calls), **us)


@dataclass(frozen=True, slots=True)
class ProfiledModule:
    """One compiled program that ran."""

    name: str
    program: int | None
    times: Mapping[str, MeasuredTime]
    """Times by instruction name in the optimized module; loops contain the time of their bodies."""
    proto: Callable[[], bytes] | None = field(default=None, compare=False)
    """Reads its HloProto; None where the profile lacks the module."""
    containers: frozenset[str] = frozenset()
    """Loops, conditionals and calls, whose time is that of their contents."""
    is_warm: bool = False  # The first run on each device is left out

    @property
    def label(self) -> str:
        """`jit_step(6)`, as xprof shows it."""
        return self.name if self.program is None else f"{self.name}({self.program})"

    @property
    def total_us(self) -> float:
        return sum(t.total_us for name, t in self.times.items() if name not in self.containers)

    @property
    def runs(self) -> int:
        """Runs on all devices, as its entry computation shows; 0 where the profile lacks the module."""
        names = set[str]()
        with suppress(ValueError, IndexError):
            names = entry_names(self.proto()) if self.proto is not None else names
        calls = sorted(t.calls for n, t in self.times.items() if n in names)
        return calls[(len(calls) - 1) // 2] if calls else 0


class DeviceTime(Record):
    """Times of one device in the profile, in microseconds."""

    name: str
    kind: DeviceKind
    span_us: float  # From the start of its first event to the end of its last
    busy_us: float  # Time with at least one event running
    gaps: int
    longest_gap_us: float
    copies_us: float  # Copies between devices, host and device, or within a device
    collectives_us: float
    other_us: float  # Time of kernels without an HLO instruction
    exposed_us: float  # Time of copies and collectives while no other kernel ran


class DeviceNumbers(Record):
    vendor: str
    compute_capability: tuple[int, int]
    core_count: int
    memory_bandwidth: int  # Bytes per second; 0 where not recorded


class NotProfiled(HlofuseError):
    """A program that did not run while the profile was recorded."""


class Profile(Record):
    path: str
    modules: tuple[ProfiledModule, ...]  # Slowest first
    devices: tuple[DeviceTime, ...]
    numbers: DeviceNumbers | None = None
    jaxlib: str = ""  # The version of jaxlib; empty where not recorded
    tpu_kind: str = ""  # `TPU v5 lite`; empty for other devices and where it is not recorded
    hosts: int = 1
    waits: int = 0
    """Gaps of 10 µs to 1 ms, in which a device waits for the host; 0 unless they exceed its busy time."""
    wait_us: float = 0.0  # Their median
    run_us: float | None = None
    """The lower quartile of the program's runs as the caller sees them; None where that was not measured."""
    fastest_us: float = 0.0
    run_count: int = 0
    inputs: str = ""  # Random, or from a file: with `run_us`
    noise: float = 0.0  # The part by which the two halves of the measurement differ

    @property
    def total_us(self) -> float:
        """The time of all modules, in microseconds."""
        return sum(m.total_us for m in self.modules)

    def pick(self, name: str | None = None) -> ProfiledModule:
        """The slowest module of that name, label or id, or of all; raises `NotProfiled` without one."""
        for module in self.modules:
            if name is None or name in (module.name, module.label, module.name[4:], str(module.program)):
                return module
        assert name is not None
        labels = [m.label for m in self.modules]
        raise NotProfiled(
            f"{printable(self.path)} has no module {printable(name)}{did_you_mean(name, labels)};"
            f" it has {', '.join(map(printable, labels[:12]))}{' …' if len(labels) > 12 else ''}"
        )
