"""The XLA release that wrote a dump, from a capture, names of files or the text; and the replayed one."""

import os
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path

from hlofuse.format import printable
from hlofuse.ir import HlofuseError, Json, Module, Record, Strings, packaged
from hlofuse.pipelines.identity import Fact, Source
from hlofuse.releases import EARLIEST, NAMED, NAMES, NEWEST, REFERENCE, Span, nearest
from .backend import backend_of
from .companions import Stamp
from .dump_directory import read_name
from .wire_format import MLIR, PROTO

Shown = tuple[frozenset[str], str]


def default_python(python: str | None) -> str:
    """The Python whose JAX compiles and runs, where `python` names none."""
    return python or os.environ.get("HLOFUSE_PYTHON") or sys.executable


class Mark(Record):
    """A pattern, and the releases that write a match."""

    pattern: str
    spans: tuple[Span, ...]
    without: str = ""  # A pattern that must not match
    shown: str = ""  # The name of the evidence; the pattern itself where empty
    printer: str = ""  # Only printer in which it holds: `dump`, `stablehlo` or `bytecode`; any where empty

    @property
    def releases(self) -> frozenset[str]:
        return releases_in(*self.spans)

    @property
    def name(self) -> str:
        return self.shown or self.pattern.replace("\\", "").strip(".$").replace(
            ".after_pipeline-start.", " … "
        )


def releases_in(*spans: Span) -> frozenset[str]:
    return frozenset(name for name in NAMES if any(span.includes(name) for span in spans))


@cache
def marks() -> dict[str, list[Mark]]:
    """`release_marks.toml`: marks by names of `files`, by `missing` files, in `texts` and of `front_ends`."""
    return {kind: list(map(_mark, rows)) for kind, rows in packaged(__file__, "release_marks").items()}


def _mark(row: Json) -> Mark:
    only = row.pop("since", ""), row.pop("until", "")
    return Mark(spans=tuple(Span(*s) for s in row.pop("spans", [only])), **row)


_WRAPPED_SINCE = {"copy": "0.9", "transpose": "0.11", "scatter": "0.5"}
_WRAPPED = re.compile(r"^  (?:ROOT )?%?wrapped_([\w-]+)(?:\.\d+)? = .* fusion\(", re.MULTILINE)
_UNWRAPPED_UNTIL = dict.fromkeys("convert exponential iota log reduce-window select tanh".split(), "0.7") | {
    "transpose": "0.10"
}


def text_marks(module: Module, backend: str) -> Iterator[Iterator[Shown]]:
    """Releases and evidence in the module itself, the most certain group first. Text without metadata and
    header attributes has no evidence: people write such by hand. A converted module has that of its bytes."""
    if "release_marks" in module.findings:
        yield iter(module.findings["release_marks"])
        return
    texts = {id(a): a.text for i in module.instructions() if len(a := i.attributes)}
    text = "\n".join(texts.values())
    if "metadata={" not in text and not len(module.attributes):
        return
    is_dump = bool(module.filename) and read_name(Path(str(module.filename))) is not None
    printers = ("", "dump") if is_dump else ("",)
    other = backend_of(module)
    is_cpu = backend == "cpu" and (other is None or other.value == "cpu")
    present = (m for m in marks()["texts"] if not m.without)
    compiled = chain(_shown(present, text, printers), _wrapped_marks(module) if is_cpu else ())
    yield compiled
    yield _front_end_marks(module, text)
    if "metadata={" in text:
        absent = (m for m in marks()["texts"] if m.without)
        yield chain(_shown(absent, text, printers), _unwrapped_marks(module) if is_cpu else ())


def _front_end_marks(module: Module, text: str) -> Iterator[Shown]:
    """Evidence in source tables and metadata, which a front end wrote."""
    if module.stack_frames or "stack_frame_id=" in text:
        yield releases_in(Span("0.8")), "has source tables"
    yield from _shown(marks()["front_ends"], text)
    if "/jit(main)/" in text:
        if not module.print_options.percent:
            yield releases_in(Span(until="0.5")), "names without %"
        elif module.print_options.operand_shapes:
            yield releases_in(Span(until="0.5")), "operands with shapes"
        else:
            yield releases_in(Span("0.5")), "names with %, operands without shapes"


def marks_of_bytes(data: bytes, form: str) -> tuple[Shown, ...]:
    """Evidence in the bytes of StableHLO or of an HLO proto, whatever reads them."""
    text = data.decode("latin-1")
    if form == PROTO:
        present = (m for m in marks()["texts"] if not m.without)
        return (*_shown(present, text), *_shown(marks()["own_bytes"], text))
    printer = "stablehlo" if form == MLIR else "bytecode"
    return tuple(_shown(marks()["own_bytes"], text, ("", printer)))


def _shown(found: Iterable[Mark], text: str, printers: Strings = ("",), where: str = "") -> Iterator[Shown]:
    return ((m.releases, where + m.name) for m in found if m.printer in printers and _shows(m, text))


def finished_marks(text: str, backend: str) -> Iterator[Shown]:
    """Evidence in the text of the dump of the module after all passes."""
    yield from _shown(marks()["texts"], text, ("", "dump"))
    if backend == "cpu":
        for stem in sorted(set(_WRAPPED.findall(text))):
            yield _wrapper_mark(stem)


def _wrapper_mark(stem: str) -> Shown:
    return releases_in(Span(_WRAPPED_SINCE.get(stem, "0.8"))), f"{stem} is wrapped"


def _wrapped_marks(module: Module) -> Iterator[Shown]:
    """Evidence in XLA:CPU's wrapped fusions."""
    for i in module.entry:
        if i.is_fusion and i.name.startswith("wrapped_"):
            yield _wrapper_mark(i.name.removeprefix("wrapped_").partition(".")[0])


def _unwrapped_marks(module: Module) -> Iterator[Shown]:
    """Evidence in operations that XLA:CPU left unwrapped after all passes."""
    for i in module.entry:
        if module.is_scheduled and i.opcode in _UNWRAPPED_UNTIL and i.element_type == "f32":
            yield releases_in(Span(until=_UNWRAPPED_UNTIL[i.opcode])), f"{i.opcode} is not wrapped"


def _shows(mark: Mark, text: str) -> bool:
    if re.search(mark.pattern, text, re.MULTILINE) is None:
        return False
    return not mark.without or re.search(mark.without, text, re.MULTILINE) is None


_FINISHED = "_after_optimizations.txt"
_SEARCHED_BYTES = 4 << 20


class Written(Record):
    fact: Fact
    releases: Strings  # The named releases among them, oldest first; empty where there is none
    replayed: str  # The replayed one: the reference release if possible, else the newest of them
    note: str = ""  # The named release that replaces an unnamed writer


def written_by(
    module: Module,
    files: Iterable[str] = (),
    stamp: Stamp | None = None,
    backend: str = "",
    folder: Path | None = None,
) -> Written:
    """The writer of a module; `files` are the names of dumps of the same module in a folder. Evidence that
    contradicts stronger evidence is ignored, with all of its group; a group that contradicts itself shows
    nothing. Without any, all releases are possible."""
    if stamp is not None and (stamped := _release_of_stamp(stamp)) is not None:
        return stamped
    left = frozenset(NAMES)
    lower = upper = ""
    source: Source = "default"
    for kind, group in _groups(module, tuple(files), backend, folder):
        shown_in_group = tuple(group)
        if not left.intersection(*(releases for releases, _ in shown_in_group)):
            continue
        for releases, shown in shown_in_group:
            narrowed = left & releases
            if narrowed == left:
                continue
            found, before = _sort_releases(narrowed), _sort_releases(left)
            lower = shown if found[0] != before[0] else lower
            upper = shown if found[-1] != before[-1] else upper
            left = narrowed
            source = kind if source == "default" else source
    if source == "default":
        return Written(Fact(REFERENCE, source, "not shown by the text"), NAMES, REFERENCE)
    found = _sort_releases(left)
    span = span_text(found)
    evidence = "; ".join(dict.fromkeys(shown for shown in (lower, upper) if shown))
    replayed = REFERENCE if REFERENCE in left else found[-1]
    return Written(Fact(span, source, f"{span}: {evidence}", len(found) > 1), found, replayed)


def _groups(
    module: Module, files: Strings, backend: str, folder: Path | None
) -> Iterator[tuple[Source, Iterator[Shown]]]:
    """All evidence, the strongest group first: names of passes and files outrank metadata."""
    names = "\n".join(files)
    yield "directory", _shown(marks()["files"], names, where="dumps are named ")
    finished = next((n for n in files if n.endswith(_FINISHED)), None) if folder is not None else None
    if folder is not None and finished is not None:
        yield "directory", finished_marks(_beginning(folder / finished), backend)
    for group in text_marks(module, backend):
        yield "text", group
    yield "directory", _shown(marks()["missing"], names, where="has ")


def _beginning(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_SEARCHED_BYTES)
    except OSError:
        return ""


def _release_of_stamp(stamp: Stamp) -> Written | None:
    evidence = f"{stamp.jaxlib} (from {stamp.file})"
    try:
        name, note = nearest(stamp.jaxlib)
    except HlofuseError:
        if not stamp.jaxlib[:1].isdigit():
            return None
        note = f"XLA {printable(evidence)} wrote this; replayed as {EARLIEST}"
        return Written(Fact(stamp.jaxlib, "stamp", evidence), (), EARLIEST, note)
    return Written(Fact(stamp.jaxlib, "stamp", evidence), (name,), name, note)


def _sort_releases(releases: frozenset[str]) -> Strings:
    return tuple(name for name in NAMES if name in releases)


def span_text(releases: Strings) -> str:
    """`0.8 or later`, `0.5 to 0.6`, `0.9`: named releases as a span of series."""
    numbers = [NAMES.index(name) for name in releases]
    runs = list[list[int]]()
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
    """The series, or the release if others of the series are excluded."""
    named = NAMED[number]
    return named.name if any(NAMED[n].series == named.series for n in others) else named.series


def replayed_release(only: str, requested: str | None, written: Written) -> tuple[Fact, str, str]:
    """The release as a report states it, the named one to replay, and a note where it differs from the
    requested one or the writer. `only` is the only release of a target, if there is just one."""
    if requested is not None and requested != "auto":
        name, note = nearest(requested)
        return Fact(name, "asked", "given by --xla"), name, note
    fact = written.fact
    if only and fact.source != "default" and only not in written.releases:
        note = f"XLA {printable(fact.evidence)} wrote this; replayed as {only}"
        return fact, only, note
    return fact, only or written.replayed, written.note


def is_of_earlier_dialect(module: Module, release: str | None) -> bool:
    """True for text as releases before 0.8 print it; `release` is the one that the call states."""
    found = written_by(module).releases if release is None else (nearest(release)[0],)
    return releases_in(Span(until="0.7")) >= frozenset(found)
