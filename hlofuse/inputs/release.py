"""Which XLA releases may have written a dump, by its text and by the names of the files beside it.

Each line of the tables is one observation on dumps of ten jaxlib releases.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hlofuse.ir.graph import Module
from hlofuse.pipelines.identity import Fact, Source
from hlofuse.releases import NAMES, REFERENCE, Span, nearest

_RELEASES = ("0.4.35", "0.4.38", "0.5", "0.6", "0.7", "0.8", "0.9", "0.10", "0.11", "0.12")


@dataclass(frozen=True, slots=True)
class _Mark:
    """Part of a file's name, and the releases that write it; None for an open end."""

    part: str
    since: str | None = None
    until: str | None = None


_FILES = (
    _Mark("p2p-schedule-preparation", until="0.4.35"),
    _Mark("post-fusion-collectives_optimization", until="0.4.38"),
    _Mark("pre-scheduling-copy-insertion", since="0.5"),
    _Mark(".pre-fusion.", since="0.6"),
    _Mark(".debug_options", since="0.6"),
    _Mark(".config.pbtxt", since="0.6"),
    _Mark("horizontal_fusion", until="0.6"),
    _Mark("sanitize-constant-names", since="0.7"),
    _Mark("host-compute", since="0.7"),
    _Mark("invariant-checkers", since="0.8"),
    _Mark("memory-usage-report.pb", since="0.9"),
    _Mark("after_sort-iota-fusion", since="0.9"),
    _Mark("gpu_target_config.pbtxt", since="0.10"),
    _Mark("thunk_metadata.txt", since="0.10"),
    _Mark("config-assigner", since="0.11"),
    _Mark("pdl-launch-annotation", since="0.11"),
    _Mark("pre-spmd-pipeline", until="0.4.35"),
    _Mark("post_scatter_expansion_simplification", since="0.5"),
    _Mark("dot-library-passes", since="0.7"),
    _Mark("HLO_passes_after_scheduling", since="0.10"),
    _Mark("async-collective.", since="0.10"),
    _Mark("embedded_scatter_expansion", since="0.12"),
)


def written_by(module: Module, files: Iterable[str] = ()) -> Fact:
    """The span of releases, such as `0.8 or later`; `files` are the names of the dumps of the same module.

    The default is the reference release.
    """
    since, until, evidence = 0, len(_RELEASES) - 1, ""
    source: Source = "text"
    dialect = _dialect(module)
    if dialect is not None:
        first, last, evidence = dialect
        since = _RELEASES.index(first) if first else since
        until = _RELEASES.index(last) if last else until
    names = list(files)
    for mark in _FILES:
        if any(mark.part in name for name in names):
            lowest = _RELEASES.index(mark.since) if mark.since else 0
            highest = _RELEASES.index(mark.until) if mark.until else len(_RELEASES) - 1
            if lowest > since or highest < until:
                since, until = max(since, lowest), min(until, highest)
                evidence, source = f"dumps are called {mark.part.strip('.')}", "directory"
    if not evidence or since > until:
        return Fact(REFERENCE, "default", "which nothing in the text tells")
    span = _span(since, until)
    return Fact(span, source, f"{span} ({evidence})", since != until)


def _span(since: int, until: int) -> str:
    last = len(_RELEASES) - 1
    if since == until:
        return _RELEASES[since]
    if until == last:
        return f"{_RELEASES[since]} or later"
    return f"{_RELEASES[since]} to {_RELEASES[until]}" if since else f"{_RELEASES[until]} or earlier"


def includes(written: Fact, name: str) -> bool:
    """True if the span of `written_by` holds the release of that name."""
    if written.value.endswith(" or later"):
        return Span(since=written.value.removesuffix(" or later")).includes(name)
    if written.value.endswith(" or earlier"):
        return Span(until=written.value.removesuffix(" or earlier")).includes(name)
    first, _, last = written.value.partition(" to ")
    return Span(first, last or first).includes(name)


def replayed_release(only: str, requested: str | None, written: Fact) -> tuple[Fact, str, str]:
    """The release as a report states it, the named one whose passes are repeated, and a note where it is
    not the one that is asked for.

    `only` is the one that a target is for, if there is but one. Of a span the reference release is taken,
    else the newest.
    """
    if requested is not None and requested != "auto":
        name, note = nearest(requested)
        return Fact(name, "asked", "--xla says so"), name, note
    if only:
        return written, only, ""
    if written.source == "default" or includes(written, REFERENCE):
        return written, REFERENCE, ""
    return written, next(name for name in reversed(NAMES) if includes(written, name)), ""


def is_of_earlier_dialect(module: Module) -> bool:
    """True for text as releases before 0.8 print it."""
    dialect = _dialect(module)
    return dialect is not None and dialect[1] is not None


def _dialect(module: Module) -> tuple[str | None, str | None, str] | None:
    """Since, until and evidence, by how a text is printed; parts of it come from JAX and tell only for it.

    Text without metadata tells nothing: people write such by hand.
    """
    if module.stack_frames:
        return "0.8", None, "it has source tables"
    metadata = next(
        (m for i in module.instructions() if (m := i.attributes.get("metadata")) is not None), None
    )
    if metadata is None:
        return None
    if not module.print_options.percent:
        return None, "0.4.38", "names without %"
    if not metadata.source_file:
        return None
    if "/jit(main)/" in (metadata.op_name or ""):
        return "0.5", "0.6", "jit(main) in op_name"
    return None, "0.7", "source_file in each line"
