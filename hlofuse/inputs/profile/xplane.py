"""Reads `*.xplane.pb` of xprof, TensorBoard and `jax.profiler` (`tsl/profiler/protobuf/xplane.proto`)."""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from hlofuse.inputs.profile.collector import DERIVED, Collector, Key
from hlofuse.inputs.profile.columns import Bytes, Ints, fields_of, repeated, varints
from hlofuse.inputs.profile.model import DeviceKind, DeviceNumbers
from hlofuse.inputs.wire_format import fields, varint

_PLANES = 1
_NAME, _LINES, _EVENT_METADATA, _STAT_METADATA, _STATS = 2, 3, 4, 5, 6
_EVENTS, _TIMESTAMP, _DISPLAY_NAME = 4, 3, 11
_METADATA_ID, _OFFSET, _DURATION, _EVENT_STATS, _OCCURRENCES = 1, 2, 3, 4, 5
_UINT, _INT, _TEXT, _BYTES, _REFERENCE = 3, 4, 5, 6, 7
_EVENT_STAT_NAMES = ("hlo_op", "hlo_module", "program_id", "device_offset_ps", "device_duration_ps")
_UNSIGNED = (1 << 64) - 1
_KINDS: tuple[tuple[str, DeviceKind], ...] = (
    ("/device:GPU:", "gpu"),
    ("/device:TPU:", "tpu"),
    ("/host:CPU", "cpu"),
)
_LABEL = re.compile(r"(.*)\((\d+)\)")


@dataclass(slots=True)
class _Plane:
    name: str = ""
    lines: list[tuple[int, int]] = field(default_factory=list)
    events: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Where the metadata of events of that id lies."""
    stat_names: dict[int, str] = field(default_factory=dict)
    stats: list[bytes] = field(default_factory=list)

    def stat_values(self, stats: list[bytes]) -> dict[str, int | str | bytes]:
        """Of encoded stats, by name; numbers of fixed width are left out."""
        found: dict[str, int | str | bytes] = {}
        for stat in stats:
            name = ""
            value: int | str | bytes | None = None
            for number, content in fields(stat):
                if number == _METADATA_ID and isinstance(content, int):
                    name = self.stat_names.get(content, "")
                elif number == _REFERENCE and isinstance(content, int):
                    value = self.stat_names.get(content, "")
                elif number == _TEXT and isinstance(content, bytes):
                    value = content.decode(errors="replace")
                else:
                    value = content
            if value is not None:
                found[name] = value
        return found


def read_xplane(path: Path, collector: Collector, host: str = "") -> None:
    """Add the events of a file; ValueError or IndexError for what is no profile.

    `host` begins the names of its devices.
    """
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        planes = [
            _plane(data, at, end) for number, at, end in _spans(data, 0, len(data)) if number == _PLANES
        ]
        names: dict[int, str] = {}
        for plane in planes:
            if plane.name == "/host:metadata":
                names |= _modules(plane, data, path, collector)
                version = plane.stat_values(plane.stats).get("jaxlib_version", "")
                collector.jaxlib = version if isinstance(version, str) else ""
        for plane in sorted(planes, key=lambda p: p.name.startswith("/host")):
            kind = next((kind for start, kind in _KINDS if plane.name.startswith(start)), None)
            if kind is None:
                continue
            if kind == "gpu":
                collector.numbers = collector.numbers or _numbers(plane)
            device = host + plane.name.removeprefix("/device:").removeprefix("/host:")
            reader = _Reader(plane, kind, data, names)
            for at, end in plane.lines:
                reader.line(at, end, device, collector)


def _spans(data: mmap.mmap, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Number, start and end of each field that is text, bytes or a message."""
    while at < end:
        tag, at = varint(data, at)
        if tag & 7 == 2:
            size, at = varint(data, at)
            if at + size > end:
                raise ValueError("it ends in the middle of a field")
            yield tag >> 3, at, at + size
            at += size
        elif tag & 7 == 0:
            _, at = varint(data, at)
        elif tag & 7 in (1, 5):
            at += 8 if tag & 7 == 1 else 4
        else:
            raise ValueError(f"a field of unknown kind {tag & 7}")


def _plane(data: mmap.mmap, at: int, end: int) -> _Plane:
    plane = _Plane()
    for number, start, stop in _spans(data, at, end):
        if number == _NAME:
            plane.name = data[start:stop].decode(errors="replace")
        elif number == _LINES:
            plane.lines.append((start, stop))
        elif number == _EVENT_METADATA:
            key, value = _entry(data, start, stop)
            plane.events[key] = value
        elif number == _STAT_METADATA:
            key, (first, last) = _entry(data, start, stop)
            texts = (v for n, v in fields(data[first:last]) if n == _NAME and isinstance(v, bytes))
            plane.stat_names[key] = next(texts, b"").decode(errors="replace")
        elif number == _STATS:
            plane.stats.append(data[start:stop])
    return plane


def _entry(data: mmap.mmap, at: int, end: int) -> tuple[int, tuple[int, int]]:
    """The key of an entry of a map, and where its value lies."""
    key = 0
    if data[at] == 1 << 3:
        key, at = varint(data, at + 1)
    value = next(((start, stop) for number, start, stop in _spans(data, at, end) if number == 2), (end, end))
    return key, value


def _modules(plane: _Plane, data: mmap.mmap, path: Path, collector: Collector) -> dict[int, str]:
    """The names of programs; those that the profile holds are added, to be read when they are used."""
    names = {}
    for at, end in plane.events.values():
        label, program, proto = "", None, None
        for number, start, stop in _spans(data, at, end):
            if number == _NAME:
                label = data[start:stop].decode(errors="replace")
            elif number == 5:
                for of_stat, first, last in _spans(data, start, stop):
                    if of_stat == _BYTES:
                        proto = first, last - first
                if proto is None or stop - start < 64:
                    program = plane.stat_values([data[start:stop]]).get("program_id", program)
        name, number_of_label = _split(label)
        chosen = program if isinstance(program, int) else number_of_label
        if chosen is not None:
            names[chosen] = name
        if proto is not None:
            collector.module(name, chosen, partial(_read_at, path, *proto))
    return names


def _read_at(path: Path, at: int, size: int) -> bytes:
    with open(path, "rb") as file:
        file.seek(at)
        return file.read(size)


def _split(label: str) -> tuple[str, int | None]:
    """`jit_step(6)` as name and program id."""
    match = _LABEL.fullmatch(label)
    return (match[1], int(match[2])) if match else (label, None)


def _numbers(plane: _Plane) -> DeviceNumbers | None:
    found = plane.stat_values(plane.stats)
    wanted = ("compute_cap_major", "compute_cap_minor", "core_count", "memory_bandwidth")
    major, minor, cores, bandwidth = (found.get(name, 0) for name in wanted)
    if not all(isinstance(x, int) for x in (major, minor, cores, bandwidth)) or not cores:
        return None
    return DeviceNumbers(str(found.get("device_vendor", "")), (major, minor), cores, bandwidth)  # type: ignore[arg-type]  # checked above


class _Reader:
    """Reads the lines of one plane."""

    def __init__(self, plane: _Plane, kind: DeviceKind, data: mmap.mmap, names: dict[int, str]) -> None:
        self._plane, self._kind, self._data = plane, kind, data
        self._programs = names
        wanted = {name: number for number, name in plane.stat_names.items()}
        self._wanted = [wanted.get(name, -1) for name in _EVENT_STAT_NAMES]
        self._metadata: dict[int, tuple[str, Mapping[str, int | str | bytes]]] = {}
        self._keys: dict[tuple[int, int, int, int], Key] = {}
        self._texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def line(self, at: int, end: int, device: str, collector: Collector) -> None:
        for buffer, starts, ends, header in repeated(self._data, at, end, _EVENTS):
            found = dict(header)
            name = found.get(_NAME, b"")
            line = name.decode(errors="replace") if isinstance(name, bytes) else ""
            if self._kind == "tpu" and line == "XLA Modules":
                self._name_programs(buffer, starts, ends)
            if self._is_left_out(line):
                continue
            base = found.get(_TIMESTAMP, 0)
            keys, of, start, long = self._events(buffer, starts, ends)
            if of.size:
                base_ps = base * 1000 if isinstance(base, int) else 0
                collector.add(device, self._kind, line, keys, of, start + base_ps, long)

    def _is_left_out(self, line: str) -> bool:
        if self._kind == "tpu":
            return line != "XLA Ops"
        return self._kind == "gpu" and line.startswith(DERIVED)

    def _name_programs(self, buffer: Bytes, starts: Ints, ends: Ints) -> None:
        for number in np.unique(self._columns(buffer, starts, ends)[3]):
            name, program = _split(self._of_metadata(int(number))[0])
            if program is not None:
                self._programs.setdefault(program, name)

    def _events(self, buffer: Bytes, starts: Ints, ends: Ints) -> tuple[list[Key], Ints, Ints, Ints]:
        """The distinct keys of the events that count, and for each event its key, start and duration."""
        columns = self._columns(buffer, starts, ends)
        if self._kind == "cpu":
            has_op = columns[2] != -1
            columns = tuple(c[has_op] for c in columns)
        start, long, *parts = columns
        code = np.zeros(len(start), np.int64)
        for part in parts:
            distinct, inverse = np.unique(part, return_inverse=True)
            code = code * len(distinct) + inverse
        _, first, of = np.unique(code, return_index=True, return_inverse=True)
        keys = [self._key(*found) for found in zip(*(p[first].tolist() for p in parts), strict=True)]
        return keys, of, start, long

    def _key(self, op: int, metadata: int, module: int, program: int) -> Key:
        code = op, metadata, module, program
        if code not in self._keys:
            self._keys[code] = self._new_key(*code)
        return self._keys[code]

    def _new_key(self, op: int, metadata: int, module: int, program: int) -> Key:
        kernel, stats = self._of_metadata(metadata)
        own = program & _UNSIGNED if program != -1 else stats.get("program_id")
        name = self._text(op)
        if self._kind == "tpu" and not name:
            name = kernel
        number = int(own) & _UNSIGNED if isinstance(own, int) else None
        module_name = self._text(module) or (self._programs.get(number, "") if number is not None else "")
        return Key(name, module_name, number, kernel)

    def _text(self, code: int) -> str:
        if code >= 0:
            return self._plane.stat_names.get(code, "")
        return self._texts[-code - 2] if code < -1 else ""

    def _of_metadata(self, number: int) -> tuple[str, Mapping[str, int | str | bytes]]:
        """Name and stats of events of that id; of a TPU's instruction its name alone, not its text."""
        if number not in self._metadata:
            at, end = self._plane.events.get(number, (0, 0))
            name = shown = ""
            stats = []
            for of, value in fields(self._data[at:end]):
                if isinstance(value, bytes):
                    if of == _NAME:
                        name = value.decode(errors="replace")
                    elif of == 4:
                        shown = value.decode(errors="replace")
                    elif of == 5:
                        stats.append(value)
            if self._kind == "tpu" and " = " in name:
                name = name.partition(" = ")[0].lstrip("%")
            else:
                name = shown or name
            self._metadata[number] = name, self._plane.stat_values(stats)
        return self._metadata[number]

    def _columns(self, buffer: Bytes, starts: Ints, ends: Ints) -> tuple[Ints, ...]:
        """Start, duration, instruction, metadata id, module and program of each event; −1 for none."""
        n = len(starts)
        metadata, start, long = (np.zeros(n, np.int64) for _ in range(3))
        op, module, program, own_start, own_long = (np.full(n, -1, np.int64) for _ in self._wanted)
        aggregated = np.zeros(n, bool)
        plain = {_METADATA_ID: metadata, _OFFSET: start, _DURATION: long}
        of_stats = dict(zip(self._wanted, (op, module, program, own_start, own_long), strict=True))
        of_stats.pop(-1, None)
        for part in fields_of(buffer, starts, ends):
            for number, column in plain.items():
                is_it = (part.number == number) & (part.wire == 0)
                column[part.rows[is_it]] = part.value[is_it]
            aggregated[part.rows[part.number == _OCCURRENCES]] = True
            is_stat = (part.number == _EVENT_STATS) & (part.wire == 2)
            if of_stats and is_stat.any():
                at = part.at[is_stat]
                self._stats(buffer, part.rows[is_stat], at, at + part.value[is_stat], of_stats)
        # The clock of a TPU counts where it is recorded, as in xprof.
        by_device = own_long >= 0
        start = np.where(by_device & (own_start >= 0), own_start, start)
        long = np.where(by_device, own_long, long)
        chosen = ~aggregated
        return tuple(c[chosen] for c in (start, long, op, metadata, module, program))

    def _stats(self, buffer: Bytes, rows: Ints, at: Ints, ends: Ints, columns: dict[int, Ints]) -> None:
        """Write the stats that columns are of. Every stat begins with the id of its name."""
        named, begin = varints(buffer, np.minimum(at + 1, ends))
        for number, column in columns.items():
            own = np.flatnonzero(named == number)
            for part in fields_of(buffer, begin[own], ends[own]):
                values = part.value
                text = part.number == _TEXT
                if text.any():
                    values[text] = [
                        self._code(buffer[a : a + size].tobytes())
                        for a, size in zip(part.at[text], values[text], strict=True)
                    ]
                column[rows[own[part.rows]]] = values

    def _code(self, text: bytes) -> int:
        """A number below −1 that stands for the text."""
        name = text.decode(errors="replace")
        if name not in self._numbers:
            self._numbers[name] = -2 - len(self._texts)
            self._texts.append(name)
        return self._numbers[name]
