"""Reads `*.xplane.pb` of xprof, TensorBoard and `jax.profiler` (`tsl/profiler/protobuf/xplane.proto`)."""

import mmap
import re
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from hlofuse.inputs.wire_format import fields, spans, text_of, varint
from .collector import Bytes, Collector, Ints, Key, fields_of, has_instructions, kind_of, repeated, varints
from .model import DeviceKind, DeviceNumbers

_PLANES = 1
_NAME, _LINES, _EVENT_METADATA, _STAT_METADATA, _STATS = 2, 3, 4, 5, 6
_EVENTS, _TIMESTAMP = 4, 3
_DISPLAY_NAME, _METADATA_STATS = 4, 5
_METADATA_ID, _OFFSET, _DURATION, _EVENT_STATS = 1, 2, 3, 4
_TEXT, _BYTES, _REFERENCE = 5, 6, 7
_UNSIGNED = (1 << 64) - 1
_LABEL = re.compile(r"(.*)\((\d+)\)")
_WANTED = tuple("hlo_op hlo_module program_id device_offset_ps device_duration_ps".split())
Values: TypeAlias = dict[str, int | str | bytes]


def read_xplane(path: Path, collector: Collector) -> None:
    """Add the events of a file; raises `ValueError` or `IndexError` for another file."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        planes = [_Plane(data).read(at, end) for n, at, end in _messages(data, 0, len(data)) if n == _PLANES]
        programs = dict[int, str]()
        for plane in planes:
            is_metadata = plane.name == "/host:metadata"
            if is_metadata or plane.kind == "tpu":
                _programs(plane, path, collector, programs, is_metadata)
            if is_metadata:
                collector.jaxlib = str(plane.values(plane.stats).get("jaxlib_version", ""))
        for plane in sorted(planes, key=lambda p: p.kind == "cpu"):
            if plane.kind == "gpu":
                collector.numbers = collector.numbers or _numbers(plane.values(plane.stats))
            if plane.kind == "tpu":
                collector.tpu_kind = str(plane.values(plane.stats).get("device_type_string", ""))
            if plane.name.startswith(("/device:", "/host:CPU")):
                reader = _Reader(plane, programs)
                for at, end in plane.lines:
                    reader.line(at, end, collector)


class _Plane(Struct):
    data: mmap.mmap
    name: str = ""
    lines: list[tuple[int, int]] = []
    events: dict[int, tuple[int, int]] = {}  # The offsets of event metadata by id
    stat_names: dict[int, str] = {}
    stats: list[bytes] = []

    def read(self, at: int, end: int) -> "_Plane":
        for number, start, stop in _messages(self.data, at, end):
            if number == _NAME:
                self.name = text_of(self.data[start:stop])
            elif number == _LINES:
                self.lines.append((start, stop))
            elif number == _STATS:
                self.stats.append(self.data[start:stop])
            elif number in (_EVENT_METADATA, _STAT_METADATA):
                key, at_key = varint(self.data, start + 1) if self.data[start] == 1 << 3 else (0, start)
                value = next(
                    (span for n, *span in _messages(self.data, at_key, stop) if n == 2), [stop, stop]
                )
                if number == _EVENT_METADATA:
                    self.events[key] = value[0], value[1]
                else:
                    self.stat_names[key] = text_of(dict(fields(self.data[slice(*value)])).get(_NAME, b""))
        return self

    @property
    def kind(self) -> DeviceKind:
        return kind_of(self.name)

    def values(self, stats: list[bytes]) -> Values:
        """Values of encoded stats by name; fixed-width numbers are omitted."""
        found: Values = {}
        for stat in stats:
            of = {number: value for number, value in fields(stat) if isinstance(number, int)}
            name = self.stat_names.get(int(of.pop(_METADATA_ID, 0)), "")
            for number, value in of.items():
                if isinstance(value, int):
                    found[name] = self.stat_names.get(value, "") if number == _REFERENCE else value
                else:
                    found[name] = text_of(value) if number == _TEXT else value
        return found

    def event(self, number: int) -> tuple[str, Values]:
        """Name and common stats of all events of that id; for a TPU's instruction its name, not its text."""
        at, end = self.events.get(number, (0, 0))
        texts = {}
        stats = []
        for of, value in fields(self.data[at:end]):
            if of == _METADATA_STATS and isinstance(value, bytes):
                stats.append(value)
            elif of in (_NAME, _DISPLAY_NAME):
                texts[of] = text_of(value)
        name = texts.get(_NAME, "")
        if self.kind == "tpu" and " = " in name:
            return name.partition(" = ")[0].lstrip("%"), self.values(stats)
        return texts.get(_DISPLAY_NAME, name), self.values(stats)


def _messages(data: mmap.mmap, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Number, start and end of each field that is text, bytes or a message."""
    return (span for span in spans(data, at, end) if span[2] >= 0)


def _programs(
    plane: _Plane, path: Path, collector: Collector, names: dict[int, str], has_modules: bool
) -> None:
    """Names of programs by id, from labels such as `jit_step(6)`; modules are read on demand."""
    for number, (at, end) in plane.events.items():
        label, stats = plane.event(number)
        match = _LABEL.fullmatch(label)
        if match is None:
            continue
        program = stats.get("program_id", match[2]) if has_modules else match[2]
        names.setdefault(int(program) & _UNSIGNED, match[1])
        if has_modules and any(isinstance(value, bytes) for value in stats.values()):
            collector.protos[match[1], int(program) & _UNSIGNED] = partial(_proto, path, at, end)


def _proto(path: Path, at: int, end: int) -> bytes:
    """The HloProto in the metadata of an event: the only bytes among its stats."""
    with open(path, "rb") as file:
        file.seek(at)
        data = file.read(end - at)
    stats = (v for n, v in fields(data) if n == _METADATA_STATS and isinstance(v, bytes))
    return next((v for s in stats for n, v in fields(s) if n == _BYTES and isinstance(v, bytes)), b"")


def _numbers(stats: Values) -> DeviceNumbers | None:
    wanted = ("compute_cap_major", "compute_cap_minor", "core_count", "memory_bandwidth")
    major, minor, cores, bandwidth = (x if isinstance(x := stats.get(n), int) else 0 for n in wanted)
    return DeviceNumbers(str(stats.get("device_vendor")), (major, minor), cores, bandwidth) if cores else None


class _Reader:
    def __init__(self, plane: _Plane, programs: dict[int, str]) -> None:
        self._plane, self._programs = plane, programs
        stats = {name: number for number, name in plane.stat_names.items()}
        self._stat_ids = [stats.get(name, -1) for name in _WANTED]
        self._event, self._key = cache(plane.event), cache(self._new_key)

    def line(self, at: int, end: int, collector: Collector) -> None:
        for buffer, starts, ends, header in repeated(self._plane.data, at, end, _EVENTS):
            line, base = text_of(dict(header).get(_NAME, b"")), dict(header).get(_TIMESTAMP, 0)
            if has_instructions(self._plane.name, line):
                keys, of, start, long = self._events(buffer, starts, ends)
                start += base * 1000 if isinstance(base, int) else 0
                collector.add(self._plane.name, line, keys, of, start, long)

    def _events(self, buffer: Bytes, starts: Ints, ends: Ints) -> tuple[list[Key], Ints, Ints, Ints]:
        columns = self._columns(buffer, starts, ends)
        if self._plane.kind == "cpu":
            has_op = columns[2] != -1
            columns = [c[has_op] for c in columns]
        start, long, *parts = columns
        code = np.zeros(len(start), np.int64)
        for part in parts:
            distinct, inverse = np.unique(part, return_inverse=True)
            code = code * len(distinct) + inverse
        _, first, of = np.unique(code, return_index=True, return_inverse=True)
        keys = [self._key(*found) for found in zip(*(p[first].tolist() for p in parts), strict=True)]
        return keys, of, start, long

    def _new_key(
        self,
        op: int,
        module: int,
        program: int,
        metadata: int,
    ) -> Key:
        kernel, stats = self._event(metadata)
        own = program if program != -1 else stats.get("program_id")
        number = own & _UNSIGNED if isinstance(own, int) else None
        name = self._plane.stat_names.get(op) or (kernel if self._plane.kind == "tpu" else "")
        module_name = self._plane.stat_names.get(module) or self._programs.get(
            -1 if number is None else number
        )
        return Key(name, module_name or "", number, kernel)

    def _columns(self, buffer: Bytes, starts: Ints, ends: Ints) -> list[Ints]:
        """Start, duration, instruction, module, program and metadata id of each event; −1 for none."""
        metadata, start, long = (np.zeros(len(starts), np.int64) for _ in range(3))
        of_stats = [np.full(len(starts), -1, np.int64) for _ in _WANTED]
        plain = {_METADATA_ID: metadata, _OFFSET: start, _DURATION: long}
        for part in fields_of(buffer, starts, ends):
            for number, column in plain.items():
                is_it = (part.number == number) & (part.wire == 0)
                column[part.rows[is_it]] = part.value[is_it]
            is_stat = (part.number == _EVENT_STATS) & (part.wire == 2)
            if is_stat.any():
                at, rows = part.at[is_stat], part.rows[is_stat]
                ends_of = at + part.value[is_stat]
                named, begin = varints(buffer, np.minimum(at + 1, ends_of))  # the id of its name is first
                for stat, column in zip(self._stat_ids, of_stats, strict=True):
                    own = np.flatnonzero(named == stat)
                    for value in fields_of(buffer, begin[own], ends_of[own]):
                        column[rows[own[value.rows]]] = value.value
        *names, own_start, own_long = of_stats
        # The clock of a TPU counts where it is recorded, as in xprof.
        return [
            np.where(own_start >= 0, own_start, start),
            np.where(own_long >= 0, own_long, long),
            *names,
            metadata,
        ]
