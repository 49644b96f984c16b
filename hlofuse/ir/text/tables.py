"""The source tables at the top of a dump, read when somebody asks for them."""

from __future__ import annotations

from hlofuse.ir.stack_frames import StackFrames
from hlofuse.ir.text.patterns import NUMBERED_STRING, RECORD
from hlofuse.ir.text.text import unquote


def read_tables(files: str, functions: str, locations: str, frames: str) -> StackFrames:
    """The four tables from the text of each."""
    return StackFrames(_strings(files), _strings(functions), _records(locations), _records(frames))


def _strings(text: str) -> dict[int, str]:
    return {int(number): unquote(string) for number, string in NUMBERED_STRING.findall(text)}


def _records(text: str) -> dict[int, dict[str, int]]:
    return {int(number): _fields(fields) for number, fields in RECORD.findall(text)}


def _fields(text: str) -> dict[str, int]:
    pairs = (field.split("=") for field in text.split())
    return {name: int(value) for name, value in pairs}
