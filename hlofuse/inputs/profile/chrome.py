"""Reads Chrome traces (`*.trace.json.gz`) by JAX, xprof and others, event by event."""

import gzip
import io
import json
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hlofuse.inputs.profile.collector import Collector, Key, has_instructions, kind_of

_CHUNK = 1 << 20
_PS = 1e6
"""Picoseconds of a microsecond."""
_SPACE = " \t\r\n,"


@dataclass(slots=True)
class _Lane:
    numbers: dict[Key, int] = field(default_factory=dict)
    of: array[int] = field(default_factory=lambda: array("i"))
    starts: array[float] = field(default_factory=lambda: array("d"))
    long: array[float] = field(default_factory=lambda: array("d"))


def read_trace(path: Path, collector: Collector) -> None:
    """Add the names and durations of a file's events; raises `ValueError` for another file."""
    with open(path, "rb") as raw:
        is_packed = raw.read(2) == b"\x1f\x8b"
    with gzip.open(path) if is_packed else open(path, "rb") as file:
        text = io.TextIOWrapper(file, "utf-8", errors="replace")
        names: dict[tuple[Any, Any], str] = {}
        lanes: dict[tuple[Any, Any], _Lane] = {}
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
                lane.of.append(lane.numbers.setdefault(key, len(lane.numbers)))
                lane.starts.append(float(event["ts"]))
                lane.long.append(float(event.get("dur", 0)))
    _add(lanes, names, collector)


def _key(name: str, arguments: dict[str, Any]) -> Key:
    program = str(arguments.get("program_id", ""))
    number = int(program) if program.isascii() and program.isdigit() else None
    return Key(str(arguments.get("hlo_op", "")), str(arguments.get("hlo_module", "")), number, name)


def _add(
    lanes: dict[tuple[Any, Any], _Lane], names: dict[tuple[Any, Any], str], collector: Collector
) -> None:
    named = [(names.get((p, None), ""), names.get((p, t), str(t)), lane) for (p, t), lane in lanes.items()]
    for process, line, lane in sorted(named, key=lambda x: kind_of(x[0]) == "cpu"):
        if has_instructions(process, line):
            is_tpu = kind_of(process) == "tpu"
            keys = [k._replace(op=k.op or k.kernel) if is_tpu else k for k in lane.numbers]
            of = np.frombuffer(lane.of, np.int32).astype(np.int64)
            in_ps = (np.rint(np.frombuffer(x) * _PS).astype(np.int64) for x in (lane.starts, lane.long))
            collector.add(process or "CPU", line, keys, of, *in_ps)


def _events(text: io.TextIOWrapper) -> Iterator[dict[str, Any]]:
    """The events of a trace one by one, with bounded memory."""
    decoder = json.JSONDecoder()
    buffer = text.read(_CHUNK)
    at = _begin(buffer)
    while True:
        while at < len(buffer) and buffer[at] in _SPACE:
            at += 1
        if at < len(buffer) and buffer[at] == "]":
            return
        try:
            event, at = decoder.raw_decode(buffer, at)
        except json.JSONDecodeError:
            more = text.read(_CHUNK)
            if not more:
                raise ValueError("it ends in the middle of an event") from None
            buffer, at = buffer[at:] + more, 0
            continue
        if isinstance(event, dict):
            yield event


def _begin(buffer: str) -> int:
    """The offset of the first event: after `"traceEvents": [`, or in a bare list."""
    if buffer.lstrip().startswith("["):
        return buffer.index("[") + 1
    at = buffer.find('"traceEvents"')
    if at < 0:
        raise ValueError("it has no traceEvents")
    return buffer.index("[", at) + 1
