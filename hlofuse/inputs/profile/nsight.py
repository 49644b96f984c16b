"""Reads what `nsys export --type sqlite` writes: kernels, and XLA's NVTX ranges around their launches."""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hlofuse.inputs.profile.collector import Collector, Key
from hlofuse.inputs.profile.model import DeviceNumbers

_CHUNK = 100_000
_PS = 1000
"""Picoseconds of a nanosecond."""
_PUSHED = 59
"""`eventType` of ranges that nest."""
_MODULE = re.compile(r"(?:TSL:)?XlaModule:#.*?hlo_module=([^,#]+)(?:,program_id=(\d+))?")
_THUNK = re.compile(r"(?:TSL:)?Thunk:#.*?(?:hlo_op|name)=([^,#]+)")
_ACTIVITIES = (("MEMCPY", "memcpy"), ("MEMSET", "memset"))
_RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
_NVTX = "NVTX_EVENTS"


def read_nsight(path: Path, collector: Collector) -> None:
    """Add the kernels and copies of an export; sqlite3.Error for another file.

    A kernel launched outside XLA's ranges (`nsys profile --trace=cuda,nvtx` records them) is known by its
    name alone.
    """
    connection = sqlite3.connect(f"file:{path.resolve().as_posix()}?mode=ro", uri=True)
    try:
        tables = {
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        if "CUPTI_ACTIVITY_KIND_KERNEL" not in tables:
            raise sqlite3.DatabaseError("it has no table of kernels (nsys profile --trace=cuda,nvtx)")
        launches = _launches(connection) if {_RUNTIME, _NVTX} <= tables else {}
        _kernels(connection, launches, collector)
        for table, name in _ACTIVITIES:
            if f"CUPTI_ACTIVITY_KIND_{table}" in tables:
                _copies(connection, table, name, collector)
        if "TARGET_INFO_GPU" in tables:
            collector.numbers = collector.numbers or _numbers(connection)
    finally:
        connection.close()


def _launches(connection: sqlite3.Connection) -> dict[int, tuple[str, str, int | None]]:
    """Instruction, module and program of each launch that XLA's ranges enclose, by its correlation id."""
    columns = {row[1] for row in connection.execute(f"PRAGMA table_info({_NVTX})")}
    text = "coalesce(n.text, s.value)" if "textId" in columns else "n.text"
    strings = "LEFT JOIN StringIds s ON s.id = n.textId" if "textId" in columns else ""
    ranges: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
    query = (
        f"SELECT n.globalTid, n.start, n.end, {text} AS shown FROM {_NVTX} n {strings}"
        f" WHERE n.eventType = {_PUSHED} AND n.end IS NOT NULL"
        " AND (shown LIKE '%XlaModule:#%' OR shown LIKE '%Thunk:#%') ORDER BY n.start, n.end DESC"
    )
    for thread, start, end, shown in connection.execute(query):
        ranges[thread].append((start, end, shown))
    found: dict[int, tuple[str, str, int | None]] = {}
    open_ranges: list[tuple[int, str]] = []
    place, current = 0, None
    calls = f"SELECT globalTid, start, correlationId FROM {_RUNTIME} ORDER BY globalTid, start"
    for thread, start, correlation in connection.execute(calls):
        if thread != current:
            current, place, open_ranges = thread, 0, []
        own = ranges.get(thread, [])
        while place < len(own) and own[place][0] <= start:
            open_ranges = [x for x in open_ranges if x[0] >= own[place][0]]
            open_ranges.append(own[place][1:])
            place += 1
        open_ranges = [x for x in open_ranges if x[0] >= start]
        if open_ranges:
            found[correlation] = _names(shown for _, shown in open_ranges)
    return found


def _names(shown: Iterator[str]) -> tuple[str, str, int | None]:
    op, module, program = "", "", None
    for text in shown:
        if match := _MODULE.match(text):
            module, program = match[1], int(match[2]) if match[2] else None
        elif match := _THUNK.match(text):
            op = match[1]
    return op, module, program


def _kernels(
    connection: sqlite3.Connection,
    launches: dict[int, tuple[str, str, int | None]],
    collector: Collector,
) -> None:
    query = (
        "SELECT k.deviceId, k.streamId, k.start, k.end, k.correlationId, s.value"
        " FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.shortName"
    )
    rows = connection.execute(query)
    while chunk := rows.fetchmany(_CHUNK):
        lanes: dict[tuple[int, int], list[tuple[Key, int, int]]] = defaultdict(list)
        for device, stream, start, end, correlation, kernel in chunk:
            op, module, program = launches.get(correlation, (kernel, "", None))
            lanes[device, stream].append((Key(op or kernel, module, program, kernel), start, end - start))
        _add(lanes, collector)


def _copies(connection: sqlite3.Connection, table: str, name: str, collector: Collector) -> None:
    rows = connection.execute(f"SELECT deviceId, streamId, start, end FROM CUPTI_ACTIVITY_KIND_{table}")
    key = Key("", "", None, name)
    while chunk := rows.fetchmany(_CHUNK):
        lanes: dict[tuple[int, int], list[tuple[Key, int, int]]] = defaultdict(list)
        for device, stream, start, end in chunk:
            lanes[device, stream].append((key, start, end - start))
        _add(lanes, collector)


def _add(lanes: dict[tuple[int, int], list[tuple[Key, int, int]]], collector: Collector) -> None:
    for (device, stream), events in lanes.items():
        numbers: dict[Key, int] = {}
        of = np.array([numbers.setdefault(key, len(numbers)) for key, _, _ in events], np.int64)
        start, long = (np.array([e[k] for e in events], np.int64) * _PS for k in (1, 2))
        collector.add(f"/device:GPU:{device}", f"Stream {stream}", list(numbers), of, start, long)


def _numbers(connection: sqlite3.Connection) -> DeviceNumbers | None:
    wanted = ("computeMajor", "computeMinor", "smCount", "memoryBandwidth")
    columns = {row[1] for row in connection.execute("PRAGMA table_info(TARGET_INFO_GPU)")}
    if not columns.issuperset(wanted):
        return None
    row = connection.execute(f"SELECT {', '.join(wanted)} FROM TARGET_INFO_GPU").fetchone()
    return DeviceNumbers("Nvidia", row[:2], *row[2:]) if row and None not in row else None
