"""One operation's way through a compilation, as data."""

from enum import StrEnum
from typing import Any

from msgspec import Struct, to_builtins

from hlofuse.account.measured import Measured
from hlofuse.format.fields import fields
from hlofuse.ir.record import Record
from hlofuse.reports.common.json import measured_json
from hlofuse.reports.common.profile import profile_json
from hlofuse.reports.timeline.model import PassDump


class How(StrEnum):
    """The change of an operation at a step."""

    FOUND = "found"
    CREATED = "made"  # No earlier dump has it
    CHANGED = "changed"  # Another name, opcode, shape or place, the same value
    FUSED = "fused"
    UNFUSED = "unfused"
    REPLACED = "replaced"  # Its users have another value in its place
    REWRITTEN = "rewritten"  # Removed with its neighbours; the replacement has an instruction with its opcode
    MERGED = "merged"  # Its reader computes both now
    NAMESAKE = "namesake"  # Removed; new instructions have its op_name. Probable, not certain.
    REMOVED = "gone"


class Location(Record):
    name: str
    opcode: str
    shape: str
    fusion: str | None = None
    fusion_kind: str | None = None


class Event(Record):
    """A dump in which something about the operation is new."""

    dump: PassDump
    how: How
    locations: tuple[Location, ...]  # Several if it is computed more than once; empty if it is removed
    instead_of: tuple[str, ...] = ()  # Opcodes that were replaced, where it was created


class FinalKernel(Record):
    name: str
    opcode: str
    kind: str | None
    opcodes: tuple[str, ...]
    computation: str


class Trail(Struct):
    name: str
    opcode: str
    source: str
    op_name: str
    events: list[Event] = []
    ends: tuple[FinalKernel, ...] = ()  # Its kernels in the last dump; empty if it is removed


class Provenance(Record):
    """All that was asked for, followed."""

    label: str
    query: str
    trails: tuple[Trail, ...]
    first: PassDump
    last: PassDump
    unreadable: tuple[PassDump, ...] = ()
    measured: Measured | None = None


def provenance_json(provenance: Provenance) -> dict[str, Any]:
    """Everything; `docs/timeline.md` says what the fields mean."""
    times = m.times if (m := provenance.measured) is not None else {}
    return {
        "schema": "hlofuse.trace-op/3",
        **fields(provenance, "module=label asked=query first=first.path.name last=last.path.name"),
        **profile_json(m),
        "unreadable": [f.path.name for f in provenance.unreadable],
        "operations": [
            {
                **fields(t, "name opcode source? op_name?"),
                "stops": [
                    {
                        **fields(s, "file=dump.path.name pipeline=dump.pipeline? pass=dump.after"),
                        "how": str(s.how),
                        **fields(s, "places=locations", to_builtins),
                        "instead_of": list(s.instead_of),
                    }
                    for s in t.events
                ],
                "ends_in": [{**to_builtins(k), **measured_json(times.get(k.name))} for k in t.ends],
            }
            for t in provenance.trails
        ],
    }
