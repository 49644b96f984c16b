"""Phrases for the steps of a timeline. Plain text: whoever prints it makes it safe for where it goes."""

from collections import Counter
from collections.abc import Iterable, Iterator

from hlofuse.format import plural, signed, times
from hlofuse.ir import Strings, values
from hlofuse.matching.structure import TRIVIAL
from .model import PassDump, PassTimeline, Replacement, Step

_SHOWN = 3
_FOLLOWING = values("operand order root callee control")
"""Changes that mostly follow from others: reported where there is nothing else."""


def pass_name(dump: PassDump) -> str:
    """The pass; for a dump that follows none, the moment it shows."""
    if dump.number is not None and dump.after == "pipeline-start":
        return f"before {dump.pipeline}"
    return dump.after


def what(step: Step) -> str:
    """A pass's changes in one line."""
    if step.problem is not None:
        return f"cannot be read: {step.problem}"
    if step.since is None:
        return "the first dump"
    text = "; ".join(_parts(step)) or "nothing"
    return f"since {since}: {text}" if (since := _skipped(step)) else text


def _skipped(step: Step) -> str:
    """The dump it is compared with, where that is not the one right ahead of it."""
    since, here = step.since, step.dump
    if since is None or since.number is None or here.number is None or here.number - since.number < 2:
        return ""
    return f"{since.number:04d}"


def _parts(step: Step) -> Iterator[str]:
    if step.fusions:
        yield "fusions: " + ", ".join(f"{n} {kind}" for kind, n in step.fusions)
    replaced = _replaced(step.rewrites)
    for (old, new), n in replaced.most_common(_SHOWN):
        yield (f"{n} × " if n > 1 else "") + f"{old} → {new}"
    if len(replaced) > _SHOWN:
        yield plural(len(replaced) - _SHOWN, "other rewrite")
    has_details = bool(step.fusions or replaced)
    for kind in ("removed", "added"):
        text = _all_of(step.rewrites, kind)
        if text:
            has_details = True
            yield f"{kind} {text}"
    if not has_details and step.opcodes:
        has_details = True
        yield ", ".join(f"{signed(a - b)} {op}" for op, b, a in step.opcodes[:4])
    telling = [(kind, n) for kind, n in step.changes if kind not in _FOLLOWING] or (
        [] if has_details else list(step.changes)
    )
    for kind, n in telling[:_SHOWN]:
        yield f"{kind} of {plural(n, 'instruction')}"
    if step.header:
        yield f"header: {', '.join(step.header[:_SHOWN])}"


def _replaced(rewrites: Iterable[Replacement]) -> Counter[tuple[str, str]]:
    out: Counter[tuple[str, str]] = Counter()
    for r in rewrites:
        if r.kind == "replaced":
            out[opcodes_text(r.removed), opcodes_text(r.added)] += r.count
    return out


def _all_of(rewrites: Iterable[Replacement], kind: str) -> str:
    """Instructions removed or added without a counterpart, constants left out."""
    opcodes: Counter[str] = Counter()
    for r in rewrites:
        for opcode in (*r.removed, *r.added) if r.kind == kind else ():
            opcodes[opcode] += r.count
    telling = [op for op in opcodes.elements() if op not in TRIVIAL]
    return opcodes_text(tuple(telling)) if telling else ""


def opcodes_text(opcodes: Strings, limit: int = 3) -> str:
    """`add, broadcast ×2`; what is in every program only where there is nothing else."""
    counts = Counter(op for op in opcodes if op not in TRIVIAL) or Counter(opcodes)
    parts = [times(*pair) for pair in counts.most_common(limit)]
    return ", ".join([*parts, "…"] if len(counts) > limit else parts)


def seconds_text(seconds: float) -> str:
    """`2.41 s`, `38 ms`, `0.4 ms`."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1000:.0f} ms" if seconds >= 0.01 else f"{seconds * 1000:.1f} ms"


def count_text(before: int | None, after: int) -> str:
    """`168 → 174`, or `174` where nothing changed or nothing came before."""
    return f"{after:,}" if before in (None, after) else f"{before:,} → {after:,}"


def headline(timeline: PassTimeline) -> str:
    out = f"{timeline.label}: {plural(len(timeline.steps), 'dump')}, {len(timeline.changed):,} with changes"
    if timeline.seconds is not None:
        out += f", {seconds_text(timeline.seconds)} from the first to the last"
    return out


TIMES_NOTE = (
    "A time is the interval between two dumps. It includes the passes between them that wrote no dump."
)
BEFORE_NOTE = "“before P”: by passes without a dump of their own before pipeline P."
