"""Modules with the answer of XLA:GPU, its record of every step and unique ids."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

from hlofuse.compilation import Compilation, CompilationInput, compile, replay_config
from hlofuse.inputs.wire_format import ids_of_proto
from hlofuse.ir import parse_module
from hlofuse.ir.unique_ids import UniqueIds
from hlofuse.trace.priority_record import PriorityRecord, read_priority_record
from ..fixtures import packed

DATA = Path(__file__).parent.parent / "data"


@dataclass
class Case:
    """What XLA:GPU was given and what it made of it."""

    device: str
    texts: dict[str, str] = field(default_factory=dict)
    ids: UniqueIds | None = None
    log: str = ""

    @cached_property
    def record(self) -> PriorityRecord:
        return read_priority_record(self.log)

    @property
    def before(self) -> str:
        return self.texts["before.hlo"]

    @property
    def after(self) -> str:
        return self.texts[max(self.texts, key=lambda name: name[:2] if name[0].isdigit() else "")]

    def replay(self, *, ids: bool, follow: bool = False, option: str | None = None) -> Compilation:
        record = self.record if follow else None
        input = CompilationInput(parse_module(self.before), self.ids if ids else None, record)
        return compile(input, replay_config("gpu", self.device, option=option))


@cache
def cases(archive: str) -> dict[str, Case]:
    """The cases of `tests/data/<archive>.tar.xz` by DEVICE/NAME."""
    found: dict[str, Case] = {}
    for name, files in packed(DATA / f"{archive}.tar.xz").items():
        case = found[name] = Case(name.partition("/")[0])
        for file, data in files.items():
            if file.endswith(".hlo"):
                case.texts[file] = data.decode()
            elif file.endswith(".pb"):
                case.ids = ids_of_proto(data)
            else:
                case.log = data.decode()
    return found
