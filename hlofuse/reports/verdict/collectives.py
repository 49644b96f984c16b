"""The collectives of the first screen: who takes part, bytes on the wire, and what hides them."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from hlofuse.account.collectives import Collective
from hlofuse.format.escape import printable
from hlofuse.format.fields import fields, us_json
from hlofuse.format.units import bytes_text, more, plural, us_text
from hlofuse.ir.graph import Instruction
from hlofuse.ir.grouping import grouped
from hlofuse.ir.record import Record
from hlofuse.reports.common.json import time_kind
from hlofuse.reports.common.model import Place

_SHOWN = 3


class CollectiveRow(Record):
    """A collective for a reader: plain data."""

    place: Place
    kind: str
    groups: tuple[tuple[int, ...], ...]
    participants: int
    bytes_on_wire: int | None
    """Bytes that one device sends in one run."""
    runs: int
    us: float | None
    is_floor: bool
    overlap: str | None
    """`synchronous`, `exposed`, `partly exposed` or `hidden`; None where it is not known."""
    between: tuple[str, ...]
    """What runs between its start and its done."""
    exposed_us: float | None
    """Microseconds of one run that no kernel hides; None where they are not known."""
    sharding: str | None
    gathers: tuple[str, ...]
    """The gathers, one after the other, of which each device reads only a part; empty for none."""
    gathered_bytes: int
    is_whole: bool
    share: int
    """One in how many elements each device reads."""

    @property
    def weight(self) -> tuple[float, int]:
        """Time, then bytes, of all runs."""
        return (self.us or 0.0) * self.runs, (self.bytes_on_wire or 0) * self.runs


def collective_rows(
    collectives: Iterable[Collective], place_of: Callable[[Instruction], Place]
) -> tuple[CollectiveRow, ...]:
    """The collectives, those that take longest or send most first."""
    rows = []
    for c in collectives:
        e, found = c.exchange, c.resharding
        row = CollectiveRow(
            place_of(c.instruction),
            e.kind,
            e.groups,
            e.participants,
            e.bytes_on_wire,
            c.runs,
            c.us,
            c.is_floor,
            _overlap(c),
            tuple(i.name for i in c.overlap.between) if c.overlap is not None else (),
            c.overlap.exposed_us if c.overlap is not None and c.hides_exactly and not c.is_floor else None,
            c.sharding,
            tuple(g.name for g in found.gathers) if found is not None else (),
            found.gathered_bytes if found is not None else 0,
            found.is_whole if found is not None else False,
            found.share if found is not None else 1,
        )
        rows.append(row)
    return tuple(sorted(rows, key=lambda r: (-r.weight[0], -r.weight[1])))


def _overlap(c: Collective) -> str | None:
    if c.overlap is None or not c.overlap.is_asynchronous:
        return None if c.overlap is None else "synchronous"
    if not c.overlap.between:
        return "exposed"
    if c.overlap.exposed_us is None or c.is_floor:
        return None
    if not c.overlap.exposed_us:
        return "hidden"
    return "partly exposed" if c.hides_exactly else None


def collective_lines(rows: tuple[CollectiveRow, ...], exposed: float | None, is_floor: bool) -> Iterator[str]:
    """A title with what is exposed, a line for each kind of collective, and what is gathered in vain."""
    if not rows:
        return
    at_least = "≥ " if any(r.bytes_on_wire is None for r in rows) else ""
    title = f"Collectives: {at_least}{bytes_text(sum(r.weight[1] for r in rows))} sent by each device"
    yield title + (f", {us_text(exposed, is_floor)} not hidden by kernels" if exposed is not None else "")
    equivalent = grouped((_row_text(r), r) for r in rows)
    for (kind, text), same in list(equivalent.items())[:_SHOWN]:
        yield f"  {kind}" + (f" ×{len(same)}" if len(same) > 1 else "") + text
    if len(equivalent) > _SHOWN:
        yield f"  {more(len(equivalent) - _SHOWN)}"
    for r in {r.gathers: r for r in rows if r.gathers}.values():
        what = "the whole array " if r.is_whole else ""
        yield f"  gathers {what}({bytes_text(r.gathered_bytes)}) on each device, then keeps 1/{r.share}:"
        yield f"    name the intermediate sharding ({printable(', '.join(r.gathers))})"


def _row_text(r: CollectiveRow) -> tuple[str, str]:
    """Time and kind, then everything else."""
    us = f"{us_text(r.us, r.is_floor)} " if r.us is not None else ""
    runs = f" × {r.runs:,}" if r.runs != 1 else ""
    sent = f"{bytes_text(r.bytes_on_wire)} sent" if r.bytes_on_wire is not None else "bytes not known"
    devices = plural(r.participants, "device")
    if len(r.groups) > 1 and r.kind != "collective-permute":
        devices = f"{len(r.groups)} groups of {devices}"
    line = (r.place.called_from or r.place.source or r.place.shown).split(" ")[0]
    overlap = r.overlap or "overlap not known"
    if r.overlap == "partly exposed":
        overlap = f"{us_text(r.exposed_us or 0.0)} exposed"
    return f"{us}{r.kind}", f"{runs}, {sent}, {devices}, {printable(line)}, {overlap}"


def collectives_json(rows: Iterable[CollectiveRow]) -> list[dict[str, Any]]:
    """The collectives; `time_us` and `bytes_on_wire` are of one run."""
    return [
        {
            "name": r.place.final or r.place.name,
            **fields(r, "source=place.source kind participants groups bytes_on_wire runs"),
            "time_us": us_json(r.us),
            "time_kind": time_kind(r.us, r.is_floor),
            **fields(r, "overlap between exposed_us~ sharding"),
            "resharding": fields(r, "gathers gathered_bytes is_whole share") if r.gathers else None,
        }
        for r in rows
    ]
