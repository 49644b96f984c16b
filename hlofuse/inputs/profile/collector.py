"""Sums of events by instruction and by device."""

import mmap
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hlofuse.inputs.wire_format import LaunchOrder, launch_order, opcodes, varint
from hlofuse.ir import Record, grouped
from .model import DeviceKind, DeviceNumbers, DeviceTime, MeasuredTime, ProfiledModule

Ints: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]
Chunk: TypeAlias = tuple[Bytes, Ints, Ints, list[tuple[int, int | bytes]]]
PADDING = 16  # Padding after a buffer, so that a field at its end can be read beyond it
_CHUNK = 4 << 20


class Fields(Record):
    rows: Ints
    number: Ints
    wire: Ints
    value: Ints  # The number, or the length of text, bytes or a message
    at: Ints  # Offset of the content, or for a number its end


def fields_of(data: Bytes, starts: Ints, ends: Ints) -> Iterator[Fields]:
    """The first field of every message, then the second …; `data` is padded. Raises `ValueError`."""
    rows = np.flatnonzero(starts < ends)
    at, ends = starts[rows], ends[rows]
    while rows.size:
        tag, at = varints(data, at)
        wire = tag & 7
        fixed = (wire == 1) | (wire == 5)
        if np.any((wire != 0) & (wire != 2) & ~fixed):
            raise ValueError("a field of unknown kind")
        value, content = varints(data, at)
        size = np.where(wire == 2, value, 0)
        content = np.where(fixed, at, content)
        size = np.where(fixed, np.where(wire == 1, 8, 4), size)
        at = content + size
        if np.any((at > ends) | (size < 0)):
            raise ValueError("it ends in the middle of a field")
        yield Fields(rows, tag >> 3, wire, value, content)
        more = at < ends
        rows, at, ends = rows[more], at[more], ends[more]


def varints(data: Bytes, at: Ints) -> tuple[Ints, Ints]:
    """The numbers at some offsets, and the end of each."""
    byte = data[at].astype(np.int64)
    value, at = byte & 127, at + 1
    longer = np.flatnonzero(byte > 127)
    shift = 7
    while longer.size:
        if shift > 63:
            raise ValueError("a number is too long")
        where = at[longer]
        byte = data[where].astype(np.int64)
        value[longer] |= (byte & 127) << shift
        at[longer] = where + 1
        longer = longer[byte > 127]
        shift += 7
    return value, at


def repeated(
    data: mmap.mmap,
    at: int,
    end: int,
    number: int,
) -> Iterator[Chunk]:
    """The messages of field `number` in a message, in chunks of bounded size. With each chunk: its bytes
    (padded), start and end of each message, and the other fields so far as (number, value). The last chunk
    may have no messages. Raises `ValueError` for other data."""
    tag_byte = number << 3 | 2
    others = list[tuple[int, int | bytes]]()
    size = _CHUNK
    while at < end:
        buffer = data[at : min(at + size, end)]
        is_last = at + len(buffer) == end
        tags, used = _tags_in(buffer, tag_byte, others, is_last)
        if not used:
            size *= 2
            continue
        if hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
            data.madvise(mmap.MADV_DONTNEED, at // mmap.PAGESIZE * mmap.PAGESIZE, used)
        at, size = at + used, _CHUNK
        padded = np.frombuffer(buffer + bytes(PADDING), np.uint8)
        length, starts = varints(padded, np.array(tags, np.int64) + 1)
        yield padded, starts, starts + length, others


def _tags_in(
    buffer: bytes,
    tag_byte: int,
    others: list[tuple[int, int | bytes]],
    is_last: bool,
) -> tuple[list[int], int]:
    """The offsets of the messages' tags, and the number of bytes in whole fields."""
    tags = list[int]()
    append = tags.append
    at = whole = 0
    limit = len(buffer)
    try:
        while at < limit:
            whole = at
            tag = buffer[at]
            if tag == tag_byte:
                length = buffer[at + 1]
                if length < 128:
                    at += 2 + length
                else:
                    length, at = varint(buffer, at + 1)
                    at += length
                append(whole)
                continue
            tag, at = varint(buffer, at)
            value: int | bytes = 0
            if tag & 7 == 0:
                value, at = varint(buffer, at)
            elif tag & 7 == 2:
                length, at = varint(buffer, at)
                value, at = buffer[at : at + length], at + length
            elif tag & 7 in (1, 5):
                at += 8 if tag & 7 == 1 else 4
            else:
                raise ValueError(f"a field of unknown kind {tag & 7}")
            if at <= limit:
                others.append((tag >> 3, value))
    except IndexError:
        at = limit + 1
    if at == limit:
        return tags, limit
    if is_last:
        raise ValueError("it ends in the middle of a field")
    if tags and tags[-1] == whole:
        tags.pop()
    return tags, whole


_RUNS = 4  # from which on the first is left out
_PS = 1e-6  # microseconds of a picosecond
_WAIT_PS = 10_000_000, 1_000_000_000
"""The shortest and longest gap for which a dispatch from Python accounts: kernels of one run are up to 6 µs
apart on an H200, and compiling takes longer than 1 ms."""
_CONTROL_FLOW = ("while", "conditional", "call")
_COPIES = ("memcpy", "memset", "copy", "transfer")
_COLLECTIVES = "all-gather all-reduce all-to-all collective- reduce-scatter nccl rccl".split()
_DERIVED = ("Steps", "XLA ", "Framework ", "Source code", "Launch Stats")
"""Prefixes of lines that xprof adds to a GPU's plane: they repeat its events."""
Events: TypeAlias = tuple[NDArray[np.int32], Ints, Ints]
Label: TypeAlias = tuple[str, int | None]  # Name and program id of a module


def kind_of(plane: str) -> DeviceKind:
    """The kind of a plane, or of a process of a trace: `/device:GPU:0`, `/device:TPU:0`, `/host:CPU`."""
    return "gpu" if plane.startswith("/device:GPU:") else "tpu" if plane.startswith("/device:TPU:") else "cpu"


def has_instructions(plane: str, line: str) -> bool:
    """True for a line with events to count."""
    kind = kind_of(plane)
    return line == "XLA Ops" if kind == "tpu" else kind == "cpu" or not line.startswith(_DERIVED)


class Key(NamedTuple):
    """Common fields of events; empty text where an event lacks one."""

    op: str
    module: str
    program: int | None
    kernel: str
    within: str = ""  # The CUDA graph or control flow that started a kernel known by its kernel name only

    @property
    def label(self) -> Label:
        return self.module, self.program

    @property
    def is_control_flow(self) -> bool:
        return self.op.split(".")[0] in _CONTROL_FLOW

    @property
    def is_copy(self) -> bool:
        """True for an event of the device's copy engine."""
        return self.kernel.lower().startswith(("memcpy", "memset"))

    def is_any(self, marks: Iterable[str]) -> bool:
        """True if its name contains one of `marks`, and it is not a fusion."""
        text = (self.op or self.kernel).lower()
        return "fusion" not in text and any(mark in text for mark in marks)


class Collector:
    """Takes events in chunks, and stores 20 bytes of each."""

    def __init__(self) -> None:
        self.host = ""  # A prefix for device names, where there are several hosts
        self.numbers: DeviceNumbers | None = None
        self.tpu_kind = ""
        self.jaxlib = ""
        self.protos = dict[Label, Callable[[], bytes]]()
        """Functions that read the HloProto of a module in the profile."""
        self._keys = dict[Key, int]()
        self._chunks: dict[tuple[str, DeviceKind], list[Events]] = defaultdict(list)
        """For each device, chunks of key number, start and duration of its events."""
        self._lines: dict[int, set[str]] = defaultdict(set)
        self._on_device = set[str]()
        self._without_first = set[Label]()

    def add(self, plane: str, line: str, keys: Sequence[Key], of: Ints, start: Ints, long: Ints) -> None:
        """Add events of one line: for each the index of its key, its start and duration in picoseconds.
        Devices come before hosts: a host's events of a module that ran on a device are its launches."""
        kind = kind_of(plane)
        if kind == "cpu":
            counts = [k.op == k.kernel != "" and k.module not in self._on_device for k in keys]
            own = np.array(counts, bool)[of]
            of, start, long = of[own], start[own], long[own]
        else:
            self._on_device |= {key.module for key in keys if key.module}
        if not of.size:
            return
        if kind == "gpu":
            others = [k.is_control_flow or k.op.startswith("command_buffer") for k in keys]
            keys = [k._replace(op="", within=k.op) if o else k for k, o in zip(keys, others, strict=True)]
        numbers = np.array([self._keys.setdefault(k, len(self._keys)) for k in keys], np.int32)
        device = self.host + plane.removeprefix("/device:").removeprefix("/host:")
        for number in np.unique(numbers[of]):
            self._lines[int(number)].add(f"{device} {line}")
        self._chunks[device, kind].append((numbers[of], start, long))

    @cached_property
    def _containers(self) -> dict[Label, frozenset[str]]:
        """Control flow of each module, by opcode if the profile has the module, else by XLA's names."""
        found = {}
        for label in {k.label for k in self._keys}:
            names = {k.op for k in self._keys if k.label == label and k.is_control_flow}
            if label in self.protos:
                with suppress(ValueError, IndexError):
                    names = {n for n, opcode in opcodes(self.protos[label]()) if opcode in _CONTROL_FLOW}
            found[label] = frozenset(names)
        return found

    def modules(self) -> tuple[ProfiledModule, ...]:
        """The programs that ran, slowest first."""
        modules = dict[Label, dict[str, list[tuple[Key, Ints]]]]()
        self._name_what_graphs_start()
        for key, durations in self._sorted_durations():
            if key.op:
                modules.setdefault(key.label, {}).setdefault(key.op, []).append((key, durations))
        found = []
        for label, ops in modules.items():
            times = {op: self._time(op, parts) for op, parts in ops.items()}
            contain = self._containers[label] & times.keys()
            is_warm = label in self._without_first
            found.append(ProfiledModule(*label, times, self.protos.get(label), contain, is_warm))
        return tuple(sorted(found, key=lambda m: -m.total_us))

    def _name_what_graphs_start(self) -> None:
        """Find the instructions of kernels of CUDA graphs and control flow, recorded by kernel name only."""
        namers = {}
        for label in {k.label for k in self._keys if k.within}:
            order = {}
            if label in self.protos:
                with suppress(ValueError, IndexError):
                    order = launch_order(self.protos[label]())
            namers[label] = _Namer(order, [k for k in self._keys if k.label == label])
        for chunks in self._chunks.values() if namers else ():
            numbers, start, long = _joined(chunks)
            for label, namer in namers.items():
                keys = {n: k for k, n in self._keys.items() if k.label == label}
                own = np.flatnonzero(np.isin(numbers, list(keys)))
                own = own[np.argsort(start[own], kind="stable")]
                steps = dict[tuple[str, int], tuple[str, int]]()
                last, named = "", []
                for n in numbers[own].tolist():
                    if (step := steps.get((last, n))) is None:
                        following, op = namer.name(last, keys[n])
                        step = steps[last, n] = following, self._rename_key(keys[n], op)
                    last, number = step
                    named.append(number)
                numbers[own] = named
            chunks[:] = [(numbers, start, long)]

    def _rename_key(self, key: Key, op: str) -> int:
        number = self._keys.setdefault(key._replace(op=op), len(self._keys))
        self._lines[number] |= self._lines[self._keys[key]]
        return number

    def _in_first_run(self, numbers: NDArray[np.int32], start: Ints) -> NDArray[np.bool_]:
        """True for the launches of one device in the first run of a program that ran `_RUNS` times or more:
        it waits for memory and code. What is launched least often is launched once in a run."""
        found = np.zeros(len(numbers), bool)
        labels = grouped((k.label, n) for k, n in self._keys.items() if k.op)
        for label, keys in labels.items():
            own = np.flatnonzero(np.isin(numbers, keys))
            own = own[np.lexsort((start[own], numbers[own]))]
            first, calls = np.unique(numbers[own], return_index=True, return_counts=True)[1:]
            if not own.size or calls.min() < _RUNS:
                continue
            self._without_first.add(label)
            rank = np.arange(own.size) - np.repeat(first, calls)
            in_run = np.repeat(calls // calls.min(), calls)
            found[own[rank < in_run]] = True
        return found

    def _sorted_durations(self) -> Iterator[tuple[Key, Ints]]:
        chunks = []
        for events in self._chunks.values():
            numbers, start, durations = _joined(events)
            counted = ~self._in_first_run(numbers, start)
            chunks.append((numbers[counted], durations[counted]))
        if not chunks:
            return
        numbers, durations = _joined(chunks)
        order = np.lexsort((durations, numbers))
        numbers, durations = numbers[order], durations[order]
        keys, firsts = list(self._keys), np.flatnonzero(np.diff(numbers, prepend=-1))
        for first, own in zip(firsts, np.split(durations, firsts[1:]), strict=True):
            yield keys[numbers[first]], own

    def _time(self, op: str, parts: list[tuple[Key, Ints]]) -> MeasuredTime:
        parts.sort(key=lambda part: -int(part[1].sum()))
        calls = max(len(x) for _, x in parts)
        figures = [(x.sum() / len(x), np.median(x), x[0], x[-1]) for _, x in parts]
        often = [len(x) / calls for _, x in parts]
        mean, median, least, most = (np.array(often) @ np.array(figures, np.float64) * _PS).tolist()
        kernels = tuple(dict.fromkeys(key.kernel for key, _ in parts))
        lines = {line for key, _ in parts for line in self._lines[self._keys[key]]}
        return MeasuredTime(op, calls, mean * calls, median, least, most, kernels, len(lines))

    def waits(self) -> tuple[int, float]:
        """The number and the median of `Profile.waits`, of all devices together."""
        found = []
        for chunks in self._chunks.values():
            _, start, long = _joined(chunks)
            gaps = _gaps(start, long)
            waits = gaps[(gaps >= _WAIT_PS[0]) & (gaps <= _WAIT_PS[1])]
            if waits.sum() > long.sum():
                found.append(waits)
        every = np.concatenate(found) if found else np.zeros(0)
        return every.size, float(np.median(every)) * _PS if every.size else 0.0

    def devices(self) -> tuple[DeviceTime, ...]:
        keys = list(self._keys)
        collective = np.array([k.is_any(_COLLECTIVES) for k in keys], bool)
        copy = np.array([k.is_copy or k.is_any(_COPIES) for k in keys], bool) & ~collective
        other = np.array([not k.op for k in keys], bool) & ~copy & ~collective
        runs = np.array([k.op not in self._containers[k.label] for k in keys], bool)
        found = []
        for (name, kind), chunks in self._chunks.items():
            of, start, long = _joined(chunks)
            of, start, long = of[runs[of]], start[runs[of]], long[runs[of]]
            span, busy, gaps, longest = _union(start, long)
            computes = ~(copy | collective)[of]
            computing = _union(start[computes], long[computes])[1]
            copies, collectives, others = (long[c[of]].sum() for c in (copy, collective, other))
            times = (longest, copies, collectives, others, busy - computing)
            us = [float(x) * _PS for x in times]
            found.append(DeviceTime(name, kind, float(span) * _PS, float(busy) * _PS, int(gaps), *us))
        return tuple(found)


def _joined(chunks: Iterable[tuple[NDArray[Any], ...]]) -> Iterator[NDArray[Any]]:
    return (np.concatenate(column) for column in zip(*chunks, strict=True))


class _Namer:
    """Names the instructions of a module's events, which come in schedule order."""

    def __init__(self, order: LaunchOrder, keys: Sequence[Key]) -> None:
        self._order = order
        # A kernel's name has underscores where the instruction's has dots.
        self._of_kernel = {name.replace(".", "_").replace("-", "_"): name for name in order}
        self._certain = {self._own(k) for k in keys}  # instructions named by some event

    def _own(self, key: Key) -> str:
        return key.op or self._of_kernel.get(key.kernel, "")

    def name(self, last: str, key: Key) -> tuple[str, str]:
        """The instruction launched now, after `last`; then its name, or a placeholder."""
        own = self._own(key)
        if key.within:
            opcode, following = self._order.get(last, ("", []))
            rest = [n for n in following if n not in self._certain]
            if own:  # fusions with one content share a kernel
                stem = own.split(".")[0]
                found = [n for n in rest if self._order[n][0] == "fusion" and stem == n.split(".")[0]]
            else:
                others = ("custom-call",) if key.is_copy else ("fusion", "copy", "copy-start")
                found = [n for n in rest if self._order[n][0] not in others]
            if found:
                return found[0], found[0]
            if not own and not key.is_copy and opcode == "custom-call" and last not in self._certain:
                return last, last  # the next kernel of a library call
        if own:
            return own, own
        return last, f"{key.kernel} of {key.within}" if key.is_copy else key.kernel


def _union(start: Ints, long: Ints) -> tuple[int, int, int, int]:
    """Time from the first event to the last, time covered, the number of gaps, and the longest gap."""
    if not start.size:
        return 0, 0, 0, 0
    gaps = _gaps(start, long)
    span = int((start + long).max() - start.min())
    return span, span - int(gaps.sum()), int((gaps > 0).sum()), int(gaps.max(initial=0))


def _gaps(start: Ints, long: Ints) -> Ints:
    order = np.argsort(start, kind="stable")
    start = start[order]
    ends = np.maximum.accumulate(start + long[order])
    return np.maximum(start[1:] - ends[:-1], 0)
