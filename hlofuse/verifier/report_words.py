"""The sentences of a verification, shared by its text and markdown reports."""

from __future__ import annotations

from collections import Counter

from hlofuse.present.escape import printable
from hlofuse.verifier.verdicts import Report, Side, Verdict


def summary_rows(report: Report) -> list[tuple[str, str]]:
    """What was compared, and how many agree."""
    compared = report.compared
    rows = [
        ("modules", f"{report.exact} of {len(compared)} exact"),
        ("up to the order of results", f"{sum(v.partition for v in compared)} of {len(compared)}"),
    ]
    passes: dict[str, list[bool]] = {}
    for v in compared:
        for p in v.passes:
            passes.setdefault(p.name, []).append(p.exact)
    rows += [(f"after {printable(name)}", f"{sum(ok)} of {len(ok)}") for name, ok in passes.items()]
    named, total = sum(v.fusion_names for v in compared), sum(v.fusions for v in compared)
    rows.append(("names of new fusions", f"{named:,} of {total:,}"))
    return rows


def verdict_word(v: Verdict) -> str:
    """One word or two for a module."""
    if v.error is not None:
        return "not compared"
    if v.exact and all(p.exact for p in v.passes):
        return "exact"
    where = v.difference.pass_name if v.difference is not None else None
    return f"differs after {printable(where)}" if where else "differs"


def sides(ours: Side | None, xla: Side | None) -> tuple[str, str]:
    """Both sides, ours first; with their operands where they read the same without."""
    a, b = side_text(ours), side_text(xla)
    if a != b or ours is None or xla is None:
        return a, b
    return f"{a}, from {_operands(ours)}", f"{b}, from {_operands(xla)}"


def _operands(side: Side) -> str:
    shown = ", ".join(printable(o) for o in side.operands[:6])
    return shown + (" …" if len(side.operands) > 6 else "")


def side_text(side: Side | None) -> str:
    """A kernel of one side on one line."""
    if side is None:
        return "no such kernel"
    kind = f" {side.kind}" if side.kind else ""
    text = f"{printable(side.name)} = {printable(side.shape)} {printable(side.opcode)}{kind}"
    if side.contents:
        counts = Counter(side.contents)
        held = ", ".join(f"{printable(op)} ×{n}" if n > 1 else printable(op) for op, n in counts.items())
        text += f" of {held}"
    return text
