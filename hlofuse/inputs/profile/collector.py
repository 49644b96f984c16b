"""Adds up events: by instruction, and by device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hlofuse.inputs.profile.columns import Ints
from hlofuse.inputs.profile.model import (
    DeviceKind,
    DeviceNumbers,
    DeviceTime,
    MeasuredTime,
    ProfiledModule,
)
from hlofuse.inputs.wire_format import opcodes

_PS = 1e-6
"""Microseconds of a picosecond."""
_CONTROL_FLOW = ("while", "conditional", "call")
_COPIES = ("memcpy", "memset", "copy", "transfer")
_COLLECTIVES = (
    "all-gather",
    "all-reduce",
    "all-to-all",
    "collective-",
    "reduce-scatter",
    "ragged-all-to-all",
    "nccl",
    "rccl",
)


DERIVED = ("Steps", "XLA ", "Framework ", "Source code", "Launch Stats")
"""How lines begin that xprof adds to a GPU's plane: they repeat its events."""


class Key(NamedTuple):
    """What events have in common; empty text where an event does not say."""

    op: str
    module: str
    program: int | None
    kernel: str


@dataclass(slots=True)
class _Device:
    kind: DeviceKind
    keys: list[NDArray[np.int32]] = field(default_factory=list)
    starts: list[Ints] = field(default_factory=list)
    durations: list[Ints] = field(default_factory=list)


class Collector:
    """Takes events in chunks, and keeps 20 bytes of each."""

    def __init__(self) -> None:
        self.numbers: DeviceNumbers | None = None
        self.jaxlib = ""
        self._keys: dict[Key, int] = {}
        self._devices: dict[str, _Device] = {}
        self._lines: dict[int, set[str]] = defaultdict(set)
        self._on_device: set[str] = set()
        self._control_flow: dict[tuple[str, int | None], frozenset[str]] = {}
        self._protos: dict[tuple[str, int | None], Callable[[], bytes]] = {}

    def module(self, name: str, program: int | None, proto: Callable[[], bytes]) -> None:
        """A module that the profile holds."""
        self._protos[name, program] = proto

    def add(
        self, device: str, kind: DeviceKind, line: str, keys: Sequence[Key], of: Ints, start: Ints, long: Ints
    ) -> None:
        """Events of one line: for each the index of its key, its start and duration in picoseconds.

        Devices come before hosts: a host's events of a module that ran on a device are its launches.
        """
        counts = np.array([kind != "cpu" or self._runs_on_host(key) for key in keys], bool)
        of, start, long = (x[counts[of]] for x in (of, start, long)) if len(keys) else (of, start, long)
        if not of.size:
            return
        if kind != "cpu":
            self._on_device |= {key.module for key in keys if key.module}
        if kind == "gpu":
            keys = [k._replace(op=k.kernel) if _starts_others(k.op) else k for k in keys]
        numbers = np.array([self._keys.setdefault(k, len(self._keys)) for k in keys], np.int32)
        for number in numbers[counts]:
            self._lines[int(number)].add(f"{device} {line}")
        found = self._devices.setdefault(device, _Device(kind))
        found.keys.append(numbers[of])
        found.starts.append(start)
        found.durations.append(long)

    def _runs_on_host(self, key: Key) -> bool:
        return bool(key.op) and key.kernel == key.op and key.module not in self._on_device

    def modules(self) -> tuple[ProfiledModule, ...]:
        """The programs that ran, costliest first."""
        keys = list(self._keys)
        by_op: dict[tuple[str, int | None], dict[str, list[tuple[Key, Ints]]]] = {}
        for number, durations in self._by_key():
            key = keys[number]
            if key.op:
                ops = by_op.setdefault((key.module, key.program), {})
                ops.setdefault(key.op, []).append((key, durations))
        found = [
            ProfiledModule(
                module,
                program,
                {op: self._time(op, parts) for op, parts in ops.items()},
                self._proto_of(module, program),
                self._containers(module, program) & ops.keys(),
            )
            for (module, program), ops in by_op.items()
        ]
        return tuple(sorted(found, key=lambda m: -m.total_us))

    def _proto_of(self, module: str, program: int | None) -> Callable[[], bytes] | None:
        if program is not None:
            return self._protos.get((module, program))
        same = [read for (name, _), read in self._protos.items() if name == module]
        return same[0] if len(same) == 1 else None

    def _containers(self, module: str, program: int | None) -> frozenset[str]:
        """Control flow, by opcode where the profile holds the module, else by XLA's names for it."""
        label = module, program
        if label not in self._control_flow:
            read = self._proto_of(module, program)
            names = {k.op for k in self._keys if (k.module, k.program) == label and _is_control_flow(k.op)}
            if read is not None:
                with suppress(ValueError, IndexError):
                    names = {name for name, opcode in opcodes(read()) if opcode in _CONTROL_FLOW}
            self._control_flow[label] = frozenset(names)
        return self._control_flow[label]

    def _by_key(self) -> Iterable[tuple[int, Ints]]:
        """The durations of each key, ascending."""
        if not self._devices:
            return
        keys = np.concatenate([k for d in self._devices.values() for k in d.keys])
        durations = np.concatenate([x for d in self._devices.values() for x in d.durations])
        order = np.lexsort((durations, keys))
        keys, durations = keys[order], durations[order]
        firsts = np.flatnonzero(np.diff(keys, prepend=-1))
        for first, last in zip(firsts, [*firsts[1:], len(keys)], strict=True):
            yield int(keys[first]), durations[first:last]

    def _time(self, op: str, parts: list[tuple[Key, Ints]]) -> MeasuredTime:
        parts.sort(key=lambda part: -int(part[1].sum()))
        calls = max(len(x) for _, x in parts)
        often = [len(x) / calls for _, x in parts]

        def of_one(values: Iterable[float]) -> float:
            return sum(value * n for value, n in zip(values, often, strict=True)) * _PS

        return MeasuredTime(
            op,
            calls,
            sum(int(x.sum()) for _, x in parts) * _PS,
            of_one(float(np.median(x)) for _, x in parts),
            of_one(float(x[0]) for _, x in parts),
            of_one(float(x[-1]) for _, x in parts),
            tuple(dict.fromkeys(key.kernel for key, _ in parts)),
            len({line for key, _ in parts for line in self._lines[self._keys[key]]}),
        )

    def devices(self) -> tuple[DeviceTime, ...]:
        """How each device spent its time."""
        keys = list(self._keys)
        is_copy = np.array([not _is_any(k, _COLLECTIVES) and _is_any(k, _COPIES) for k in keys])
        is_collective = np.array([_is_any(k, _COLLECTIVES) for k in keys])
        has_op = np.array([bool(k.op) for k in keys])
        contains = np.array([k.op in self._containers(k.module, k.program) for k in keys])
        found = []
        for name, device in self._devices.items():
            of = np.concatenate(device.keys)
            start, long = np.concatenate(device.starts), np.concatenate(device.durations)
            runs = ~contains[of]
            of, start, long = of[runs], start[runs], long[runs]
            if not of.size:
                continue
            busy, gaps, longest = _union(start, long)
            computes = ~(is_copy | is_collective)[of]
            computing = _union(start[computes], long[computes])[0] if computes.any() else 0
            found.append(
                DeviceTime(
                    name,
                    device.kind,
                    int((start + long).max() - start.min()) * _PS,
                    busy * _PS,
                    gaps,
                    longest * _PS,
                    int(long[is_copy[of]].sum()) * _PS,
                    int(long[is_collective[of]].sum()) * _PS,
                    int(long[~(has_op | is_copy | is_collective)[of]].sum()) * _PS,
                    (busy - computing) * _PS,
                )
            )
        return tuple(found)


def _starts_others(op: str) -> bool:
    """True for CUDA graphs and control flow: of what they start only the name of the kernel is recorded."""
    return op.startswith("command_buffer") or _is_control_flow(op)


def _is_control_flow(op: str) -> bool:
    return op.split(".")[0] in _CONTROL_FLOW


def _is_any(key: Key, marks: Iterable[str]) -> bool:
    text = (key.op or key.kernel).lower()
    return "fusion" not in text and any(mark in text for mark in marks)


def _union(start: Ints, long: Ints) -> tuple[int, int, int]:
    """Time that is covered, the number of gaps, and the longest gap."""
    order = np.argsort(start, kind="stable")
    start = start[order]
    ends = np.maximum.accumulate(start + long[order])
    gaps = start[1:] - ends[:-1]
    gaps = gaps[gaps > 0]
    return (
        int(ends[-1] - start[0] - gaps.sum()),
        int(gaps.size),
        int(gaps.max()) if gaps.size else 0,
    )
