"""The timeline of a compilation as compact JSON: `page/passes_data.js` is the other end of this."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hlofuse.explorer.passes import Passes
from hlofuse.format.escape import printable
from hlofuse.reports.timeline import phrases
from hlofuse.reports.timeline.step_details import Group, StepDetails
from hlofuse.reports.trace_op.model import How

HOWS = tuple(How)


def passes_json(passes: Passes, strings: Strings) -> dict[str, Any]:
    """JSON values; numbers for strings point into `strings`."""

    def s(text: str) -> int:
        return strings(printable(text))

    timeline, lineage = passes.timeline, passes.lineage
    steps, threads, links = timeline.steps, lineage.threads, lineage.links
    place = {id(step.dump): n for n, step in enumerate(steps)}
    after = [step.after for step in steps]
    return {
        "headline": printable(phrases.headline(timeline)),
        "notes": [printable(note) for note in timeline.notes]
        + ([f"No times: {printable(timeline.times)}."] if timeline.times else [])
        + ([phrases.TIMES_NOTE] if timeline.seconds is not None else [])
        + (["There are too many operations to keep the way of each."] if lineage.full else []),
        "start": passes.start,
        "hows": HOWS,
        "steps": {
            "number": [-1 if x.dump.number is None else x.dump.number for x in steps],
            "pass": [s(phrases.pass_name(x.dump)) for x in steps],
            "pipeline": [s(x.dump.pipeline) for x in steps],
            "file": [s(x.dump.path.name) for x in steps],
            "what": [s(phrases.what(x)) for x in steps],
            "since": [place.get(id(x.since), -1) for x in steps],
            "problem": [s(x.problem or "") for x in steps],
            "changed": [int(x.changed) for x in steps],
            "weight": [x.weight for x in steps],
            "ms": [None if x.seconds is None else round(x.seconds * 1000, 2) for x in steps],
            "instructions": [None if a is None else a.instructions for a in after],
            "kernels": [None if a is None else a.kernels for a in after],
            "fusions": [None if a is None else a.fusions for a in after],
            "opcodes": [[[s(op), b, a] for op, b, a in x.opcodes] for x in steps],
            "groups": [[_group(g, s) for g in passes.closeups.get(n, _NOTHING).groups] for n in _all(steps)],
            "hidden": [passes.closeups.get(n, _NOTHING).hidden for n in _all(steps)],
        },
        "threads": {
            "name": [s(t.location.name) for t in threads],
            "opcode": [s(t.location.opcode) for t in threads],
            "shape": [s(t.location.shape) for t in threads],
            "fusion": [s(_fusion(t.location.fusion, t.location.fusion_kind)) for t in threads],
            "begins": differences(t.begins for t in threads),
            "source": [s(t.source) for t in threads],
            "instead": [s(t.instead_of) for t in threads],
        },
        "links": {
            "thread": differences(x.thread for x in links),
            "step": differences(x.step for x in links),
            "how": [HOWS.index(x.how) for x in links],
            # Mostly the threads are made in the order in which links lead to them.
            "to": differences(x.to for x in links),
        },
    }


_NOTHING = StepDetails()


def _all(steps: tuple[Any, ...]) -> range:
    return range(len(steps))


def _fusion(name: str | None, kind: str | None) -> str:
    if name is None:
        return ""
    return f"{name} ({kind})" if kind else name


def _group(g: Group, s: Any) -> list[Any]:
    return [
        s(g.kind),
        s(g.text),
        g.count,
        [s(x) for x in g.notes],
        [s(x) for x in g.before],
        [s(x) for x in g.after],
        g.hidden,
    ]


# ------------------------------------------------------------ strings
#
# What makes columns of the page's data small.


class Strings:
    """Every distinct string once; number 0 is the empty one."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {"": 0}

    def __call__(self, text: str) -> int:
        return self._number.setdefault(text, len(self._number))

    def all(self) -> list[str]:
        """In the order of their numbers."""
        return list(self._number)


def differences(numbers: Iterable[int]) -> list[int]:
    """Each less the one before it."""
    out, last = [], 0
    for n in numbers:
        out.append(n - last)
        last = n
    return out
