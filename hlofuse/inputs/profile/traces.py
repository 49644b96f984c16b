"""Reads Chrome traces (`*.trace.json.gz`) and the kernels of Nsight Systems' databases, event by event."""

from __future__ import annotations  # Python 3.11 knows no array[int]

import gzip
import io
import json
import re
import sqlite3
from array import array
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct, field

from hlofuse.ir import Json
from .collector import Collector, Key, has_instructions, kind_of
from .model import DeviceNumbers

_CHARACTERS = 1 << 20
_PS_IN_US = 1e6  # picoseconds of a microsecond
_SPACE = " \t\r\n,"


class _Lane(Struct):
    numbers: dict[Key, int] = field(default_factory=dict)
    of: array[int] = field(default_factory=lambda: array("i"))
    starts: array[float] = field(default_factory=lambda: array("d"))
    long: array[float] = field(default_factory=lambda: array("d"))

    def add(self, key: Key, start: float, long: float) -> None:
        self.of.append(self.numbers.setdefault(key, len(self.numbers)))
        self.starts.append(start)
        self.long.append(long)

    def collect(self, collector: Collector, plane: str, line: str, unit: float) -> None:
        """Give the events to the collector; `unit` has the picoseconds of one of their times."""
        is_tpu = kind_of(plane) == "tpu"
        keys = [k._replace(op=k.op or k.kernel) if is_tpu else k for k in self.numbers]
        of = np.frombuffer(self.of, np.int32).astype(np.int64)
        in_ps = (np.rint(np.frombuffer(x) * unit).astype(np.int64) for x in (self.starts, self.long))
        collector.add(plane, line, keys, of, *in_ps)


def read_trace(path: Path, collector: Collector) -> None:
    """Add the names and durations of a file's events; raises `ValueError` for another file."""
    with open(path, "rb") as raw:
        is_packed = raw.read(2) == b"\x1f\x8b"
    with gzip.open(path) if is_packed else open(path, "rb") as file:
        text = io.TextIOWrapper(file, "utf-8", errors="replace")
        names = {}
        lanes = dict[tuple[Any, Any], _Lane]()
        for event in _events(text):
            process, thread = event.get("pid"), event.get("tid")
            arguments = event.get("args")
            arguments = arguments if isinstance(arguments, dict) else {}
            phase = event.get("ph")
            if phase == "M" and event.get("name") == "process_name":
                names[process, None] = str(arguments.get("name", ""))
            elif phase == "M" and event.get("name") == "thread_name":
                names[process, thread] = str(arguments.get("name", ""))
            elif phase == "X" and "ts" in event:
                lane = lanes.setdefault((process, thread), _Lane())
                key = _key(str(event.get("name", "")), arguments)
                lane.add(key, float(event["ts"]), float(event.get("dur", 0)))
    named = []
    for (process, thread), lane in lanes.items():
        line = names.get((process, thread), str(thread))
        named.append((names.get((process, None), ""), line, lane))
    for process, line, lane in sorted(named, key=lambda x: kind_of(x[0]) == "cpu"):
        if has_instructions(process, line):
            lane.collect(collector, process or "CPU", line, _PS_IN_US)


def _key(name: str, arguments: Json) -> Key:
    program = str(arguments.get("program_id", ""))
    number = int(program) if program.isascii() and program.isdigit() else None
    return Key(str(arguments.get("hlo_op", "")), str(arguments.get("hlo_module", "")), number, name)


def _events(text: io.TextIOWrapper) -> Iterator[Json]:
    decoder = json.JSONDecoder()
    buffer = text.read(_CHARACTERS)
    at = _begin(buffer)
    while True:
        while at < len(buffer) and buffer[at] in _SPACE:
            at += 1
        if at < len(buffer) and buffer[at] == "]":
            return
        try:
            event, at = decoder.raw_decode(buffer, at)
        except json.JSONDecodeError:
            more = text.read(_CHARACTERS)
            if not more:
                raise ValueError("it ends in the middle of an event") from None
            buffer, at = buffer[at:] + more, 0
            continue
        if isinstance(event, dict):
            yield event


def _begin(buffer: str) -> int:
    if buffer.lstrip().startswith("["):
        return buffer.index("[") + 1
    at = buffer.find('"traceEvents"')
    if at < 0:
        raise ValueError("it has no traceEvents")
    return buffer.index("[", at) + 1


_CHUNK = 100_000
_PS = 1000  # picoseconds of a nanosecond
_PUSHED = 59  # `eventType` of ranges that nest
_MODULE = re.compile(r"(?:TSL:)?XlaModule:#.*?hlo_module=([^,#]+)(?:,program_id=(\d+))?")
_THUNK = re.compile(r"(?:TSL:)?Thunk:#.*?(?:hlo_op|name)=([^,#]+)")
_RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
_NVTX = "NVTX_EVENTS"
_KERNELS = (
    "SELECT deviceId, streamId, start, end, correlationId, value"
    " FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON id = shortName"
)
_COPIES = " UNION ALL SELECT deviceId, streamId, start, end, NULL, '{0}' FROM CUPTI_ACTIVITY_KIND_{0}"
Names: TypeAlias = tuple[str, str, int | None]  # Instruction, module and program id; empty text where missing


def read_nsight(path: Path, collector: Collector) -> None:
    """Add the kernels and copies of an export; raises `sqlite3.Error` for another file. A kernel launched
    outside XLA's ranges (`nsys profile --trace=cuda,nvtx` records them) has its kernel name only."""
    connection = sqlite3.connect(f"file:{path.resolve().as_posix()}?mode=ro", uri=True)
    try:
        query = "SELECT name FROM sqlite_master WHERE type = 'table'"
        tables = {name for (name,) in connection.execute(query)}
        if "CUPTI_ACTIVITY_KIND_KERNEL" not in tables:
            raise sqlite3.DatabaseError("it has no table of kernels (nsys profile --trace=cuda,nvtx)")
        names = _names_of_launches(connection) if {_RUNTIME, _NVTX} <= tables else {}
        query = _KERNELS
        for table in ("MEMCPY", "MEMSET"):
            if f"CUPTI_ACTIVITY_KIND_{table}" in tables:
                query += _COPIES.format(table)
        rows = connection.execute(query)
        while chunk := rows.fetchmany(_CHUNK):
            _add(chunk, names, collector)
        if "TARGET_INFO_GPU" in tables:
            collector.numbers = collector.numbers or _numbers(connection)
    finally:
        connection.close()


def _add(rows: list[tuple[Any, ...]], names: dict[int, Names], collector: Collector) -> None:
    lanes: dict[tuple[int, int], _Lane] = defaultdict(_Lane)
    for device, stream, start, end, correlation, kernel in rows:
        op, module, program = names.get(correlation, ("", "", None))
        # A copy names no instruction, a kernel at least itself.
        name = op or kernel if correlation is not None else ""
        lanes[device, stream].add(Key(name, module, program, kernel), start, end - start)
    for (device, stream), lane in lanes.items():
        lane.collect(collector, f"/device:GPU:{device}", f"Stream {stream}", _PS)


def _names_of_launches(connection: sqlite3.Connection) -> dict[int, Names]:
    """Names in XLA's ranges around each launch, by correlation id."""
    columns = {row[1] for row in connection.execute(f"PRAGMA table_info({_NVTX})")}
    by_id = "(SELECT value FROM StringIds WHERE id = textId)" if "textId" in columns else "NULL"
    ranges: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
    query = (
        f"SELECT globalTid, start, end, coalesce(text, {by_id}) AS shown FROM {_NVTX}"
        f" WHERE eventType = {_PUSHED} AND end IS NOT NULL"
        " AND (shown LIKE '%XlaModule:#%' OR shown LIKE '%Thunk:#%') ORDER BY start, end DESC"
    )
    for thread, *one in connection.execute(query):
        ranges[thread].append((one[0], one[1], one[2]))
    found = {}
    around = list[tuple[int, int, str]]()
    place, current = 0, None
    calls = f"SELECT globalTid, start, correlationId FROM {_RUNTIME} ORDER BY globalTid, start"
    for thread, start, correlation in connection.execute(calls):
        if thread != current:
            current, place, around = thread, 0, []
        own = ranges.get(thread, [])
        while place < len(own) and own[place][0] <= start:
            around = [x for x in around if x[1] >= own[place][0]]
            around.append(own[place])
            place += 1
        around = [x for x in around if x[1] >= start]
        if around:
            found[correlation] = _names(shown for _, _, shown in around)
    return found


def _names(shown: Iterator[str]) -> Names:
    op, module, program = "", "", None
    for text in shown:
        if match := _MODULE.match(text):
            module, program = match[1], int(match[2]) if match[2] else None
        elif match := _THUNK.match(text):
            op = match[1]
    return op, module, program


def _numbers(connection: sqlite3.Connection) -> DeviceNumbers | None:
    wanted = ("computeMajor", "computeMinor", "smCount", "memoryBandwidth")
    columns = {row[1] for row in connection.execute("PRAGMA table_info(TARGET_INFO_GPU)")}
    if not columns.issuperset(wanted):
        return None
    row = connection.execute(f"SELECT {', '.join(wanted)} FROM TARGET_INFO_GPU").fetchone()
    return DeviceNumbers("Nvidia", row[:2], *row[2:]) if row and None not in row else None
