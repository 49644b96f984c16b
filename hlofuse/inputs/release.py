"""Which XLA release wrote a dump: what a capture says, names of files, the text; and which is replayed."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hlofuse.format.escape import printable
from hlofuse.inputs.release_marks import (
    Shown,
    file_marks,
    finished_marks,
    missing_marks,
    releases_in,
    text_marks,
)
from hlofuse.inputs.stamp import Stamp
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Module
from hlofuse.pipelines.identity import Fact, Source
from hlofuse.releases import EARLIEST, NAMED, NAMES, NEWEST, REFERENCE, Span, nearest

_FINISHED = "_after_optimizations.txt"
_ENOUGH = 4 << 20


@dataclass(frozen=True, slots=True)
class Written:
    """The releases that may have written a dump."""

    fact: Fact
    releases: tuple[str, ...]
    """The named ones among them, oldest first; empty where none is."""
    replayed: str
    """The one that is replayed: the reference release if it is among them, else the newest of them."""
    note: str = ""
    """Which named release stands for the one that wrote it, where that is none."""


def written_by(
    module: Module,
    files: Iterable[str] = (),
    stamp: Stamp | None = None,
    backend: str = "",
    folder: Path | None = None,
) -> Written:
    """Who wrote a module; `files` are the names of the dumps of the same module, in a folder.

    Evidence that contradicts stronger evidence is passed over. Without any, every release may have.
    """
    if stamp is not None and (stamped := _stamped(stamp)) is not None:
        return stamped
    left = frozenset(NAMES)
    lower = upper = ""
    source: Source = "default"
    for kind, (releases, shown) in _marks(module, tuple(files), backend, folder):
        narrowed = left & releases
        if not narrowed or narrowed == left:
            continue
        found, before = _in_order(narrowed), _in_order(left)
        lower = shown if found[0] != before[0] else lower
        upper = shown if found[-1] != before[-1] else upper
        left, source = narrowed, kind if source == "default" else source
    if source == "default":
        return Written(Fact(REFERENCE, source, "which nothing in the text tells"), NAMES, REFERENCE)
    found = _in_order(left)
    span = span_text(found)
    evidence = "; ".join(dict.fromkeys(shown for shown in (lower, upper) if shown))
    replayed = REFERENCE if REFERENCE in left else found[-1]
    return Written(Fact(span, source, f"{span} ({evidence})", len(found) > 1), found, replayed)


def _marks(
    module: Module, files: tuple[str, ...], backend: str, folder: Path | None
) -> Iterator[tuple[Source, Shown]]:
    """All evidence, the strongest first."""
    names = "\n".join(files)
    for shown in file_marks(names):
        yield "directory", shown
    for shown in text_marks(module, backend):
        yield "text", shown
    if folder is not None:
        finished = next((n for n in files if n.endswith(_FINISHED)), None)
        if finished is not None:
            for shown in finished_marks(_beginning(folder / finished), backend):
                yield "directory", shown
    for shown in missing_marks(names):
        yield "directory", shown


def _beginning(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_ENOUGH)
    except OSError:
        return ""


def _stamped(stamp: Stamp) -> Written | None:
    """None for a stamp without a version."""
    evidence = f"{stamp.jaxlib} ({stamp.file} says so)"
    try:
        name, note = nearest(stamp.jaxlib)
    except HlofuseError:
        if not stamp.jaxlib[:1].isdigit():
            return None
        note = f"XLA {printable(evidence)} wrote this; the passes repeated are those of {EARLIEST}"
        return Written(Fact(stamp.jaxlib, "stamp", evidence), (), EARLIEST, note)
    return Written(Fact(stamp.jaxlib, "stamp", evidence), (name,), name, note)


def _in_order(releases: frozenset[str]) -> tuple[str, ...]:
    return tuple(name for name in NAMES if name in releases)


def span_text(releases: tuple[str, ...]) -> str:
    """`0.8 or later`, `0.5 to 0.6`, `0.9`: named releases as a span of series."""
    numbers = [NAMES.index(name) for name in releases]
    runs: list[list[int]] = []
    for n in numbers:
        if runs and runs[-1][-1] == n - 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    return " or ".join(_run_text(run[0], run[-1]) for run in runs)


def _run_text(first: int, last: int) -> str:
    low = _bound(first, range(first))
    high = _bound(last, range(last + 1, len(NAMED)))
    if first == last and len({low, high}) > 1:
        return NAMES[first]
    if NAMES[last] == NEWEST:
        return f"{low} or later"
    if NAMES[first] == EARLIEST:
        return f"{high} or earlier"
    return low if low == high else f"{low} to {high}"


def _bound(number: int, others: Iterable[int]) -> str:
    """The series, or the release where others of the series are not meant."""
    named = NAMED[number]
    return named.name if any(NAMED[n].series == named.series for n in others) else named.series


def replayed_release(only: str, requested: str | None, written: Written) -> tuple[Fact, str, str]:
    """The release as a report states it, the named one whose passes are repeated, and a note where it is
    not the one that is asked for, or not one that wrote the dump.

    `only` is the one that a target is for, if there is but one.
    """
    if requested is not None and requested != "auto":
        name, note = nearest(requested)
        return Fact(name, "asked", "--xla says so"), name, note
    fact = written.fact
    if only and fact.source != "default" and only not in written.releases:
        note = f"XLA {printable(fact.evidence)} wrote this; the passes repeated are those of {only}"
        return fact, only, note
    return fact, only or written.replayed, written.note


def is_of_earlier_dialect(module: Module) -> bool:
    """True for text as releases before 0.8 print it."""
    return releases_in(Span(until="0.7")) >= frozenset(written_by(module).releases)
