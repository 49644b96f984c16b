"""Profiles as other machines write them: planes of GPUs and TPUs, and exports of Nsight Systems."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hlofuse.inputs.wire_format import fields


def varint(value: int) -> bytes:
    """`value` as a protocol buffer writes it."""
    if 0 <= value < 128:
        return value.to_bytes()
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field_number: int, value: int) -> bytes:
    """A field that holds a number."""
    return varint(field_number << 3) + varint(value)


def message(field_number: int, content: bytes) -> bytes:
    """A field that holds bytes."""
    return varint(field_number << 3 | 2) + varint(len(content)) + content


def with_plane_called(data: bytes, old: str, new: str) -> bytes:
    """A profile with one plane under another name."""
    out = b""
    for n, plane in fields(data):
        if n != 1 or not isinstance(plane, bytes):
            continue
        parts = b""
        for k, value in fields(plane):
            if k == 2 and value == old.encode():
                value = new.encode()
            parts += message(k, value) if isinstance(value, bytes) else number(k, value)
        out += message(1, parts)
    return out


@dataclass
class Plane:
    """A plane in the making: names get their ids as they come."""

    name: str
    stats: Mapping[str, int | str] = field(default_factory=dict)
    events: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    lines: list[bytes] = field(default_factory=list)

    def id_of(self, name: str) -> int:
        """The id of a stat's name, or of a text that stats refer to."""
        return self.names.setdefault(name, len(self.names) + 1)

    def stat(self, name: str, value: int | str | bytes) -> bytes:
        """A stat; text as a reference, as XLA writes it."""
        head = number(1, self.id_of(name))
        if isinstance(value, bytes):
            return head + message(6, value)
        return head + (number(4, value) if isinstance(value, int) else number(7, self.id_of(value)))

    def event_id(self, name: str, stats: Mapping[str, int | str | bytes] | None = None) -> int:
        """The id of events of that name, with stats that all of them have."""
        if name not in self.events:
            body = b"".join(message(5, self.stat(*item)) for item in (stats or {}).items())
            self.events[name] = len(self.events) + 1, body
        return self.events[name][0]

    def line(self, name: str, events: Iterable[tuple[int, int, int, Mapping[str, int | str]]]) -> None:
        """A line: id, start and duration in picoseconds, and stats of each event."""
        body = bytearray(message(2, name.encode()) + number(3, 7))
        encoded: dict[tuple[tuple[str, int | str], ...], bytes] = {}
        for event, start, duration, stats in events:
            key = tuple(stats.items())
            if key not in encoded:
                encoded[key] = b"".join(message(4, self.stat(*item)) for item in key)
            one = number(1, event) + number(2, start) + number(3, duration)
            body += message(4, one + encoded[key])
        self.lines.append(bytes(body))

    def encoded(self) -> bytes:
        """The plane as field 1 of a profile."""
        stats = b"".join(message(6, self.stat(*item)) for item in self.stats.items())
        body = message(2, self.name.encode()) + b"".join(message(3, line) for line in self.lines)
        for name, (event, own) in self.events.items():
            entry = number(1, event) + message(2, number(1, event) + message(2, name.encode()) + own)
            body += message(4, entry)
        for name, one in self.names.items():
            body += message(5, number(1, one) + message(2, number(1, one) + message(2, name.encode())))
        return message(1, body + stats)


def metadata(modules: Mapping[str, tuple[int, bytes]]) -> bytes:
    """The plane that holds modules: label to program id and HloProto."""
    plane = Plane("/host:metadata")
    for label, (program, proto) in modules.items():
        plane.event_id(label, {"program_id": program, "Hlo Proto": proto})
    return plane.encoded()


def gpu_profile(
    kernels: Sequence[tuple[str, str, float, float]], module: str = "jit_f", proto: bytes = b""
) -> bytes:
    """Kernels (µs) of one stream, a copy 60 µs after the first starts, and the launches on the host."""
    plane = Plane(
        "/device:GPU:0",
        {
            "device_vendor": "Nvidia",
            "compute_cap_major": 9,
            "compute_cap_minor": 0,
            "core_count": 132,
            "memory_bandwidth": 3352320000000,
        },
    )
    us = 1_000_000
    stats: list[dict[str, int | str]] = [
        {"hlo_op": op, "hlo_module": module, "program_id": 3} for op, *_ in kernels
    ]
    plane.line(
        "Stream #7(Compute)",
        [
            (plane.event_id(kernel), round(start * us), round(long * us), own)
            for (_, kernel, start, long), own in zip(kernels, stats, strict=True)
        ],
    )
    first = kernels[0][2]
    plane.line("Stream #8(MemcpyD2H)", [(plane.event_id("MemcpyD2H"), round((first + 65) * us), 5 * us, {})])
    host = Plane("/host:CPU")
    launch = host.event_id("cuLaunchKernel")
    host.line("Host Threads/7", [(launch, k, 5 * us, own) for k, own in enumerate(stats)])
    modules = metadata({f"{module}(3)": (3, proto)}) if proto else b""
    return plane.encoded() + host.encoded() + modules


Kernel = tuple[str, str, int, int]
"""Instruction, kernel, start and duration in nanoseconds."""


def nsight_export(path: Path, kernels: Sequence[Kernel], module: str, *, with_ranges: bool = True) -> None:
    """What `nsys export --type sqlite` writes of one thread that launches kernels of a module one by one."""
    db = sqlite3.connect(path)
    db.executescript(
        """
        CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER,
            streamId INTEGER, correlationId INTEGER, demangledName INTEGER, shortName INTEGER);
        CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER,
            streamId INTEGER, correlationId INTEGER, bytes INTEGER, copyKind INTEGER);
        CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER,
            correlationId INTEGER, nameId INTEGER);
        CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT,
            globalTid INTEGER, textId INTEGER);
        CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, smCount INTEGER, computeMajor INTEGER,
            computeMinor INTEGER, memoryBandwidth INTEGER);
        INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H100 80GB HBM3', 132, 9, 0, 3352320000000);
        INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (0, 1500, 0, 7, 999, 4096, 1);
        """
    )
    texts: dict[str, int] = {}
    at = 10_000
    begin = at
    for correlation, (op, kernel, start, duration) in enumerate(kernels, 1):
        name = texts.setdefault(kernel, len(texts) + 1)
        values = (start, start + duration, 0, 7, correlation, name, name)
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,?,?,?,?,?)", values)
        db.execute(
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,1,?,0)", (at + 10, at + 20, correlation)
        )
        if with_ranges:
            text = texts.setdefault(f"TSL:Thunk:#hlo_op={op}#", len(texts) + 1)
            db.execute("INSERT INTO NVTX_EVENTS VALUES (?,?,59,NULL,1,?)", (at, at + 30, text))
        at += 40
    if with_ranges:
        shown = f"TSL:XlaModule:#prefix=jit(f),hlo_module={module},program_id=3#"
        db.execute("INSERT INTO NVTX_EVENTS VALUES (?,?,59,?,1,NULL)", (begin - 5, at, shown))
    db.executemany("INSERT INTO StringIds VALUES (?,?)", [(number, text) for text, number in texts.items()])
    db.commit()
    db.close()
