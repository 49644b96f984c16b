"""Which XLA release wrote a dump: what a capture says, names of files, the text; and which is replayed."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hlofuse.format.escape import printable
from hlofuse.inputs.companions import Stamp
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.graph import Module
from hlofuse.pipelines.identity import Fact, Source
from hlofuse.releases import EARLIEST, NAMED, NAMES, NEWEST, REFERENCE, Span, nearest

Shown = tuple[frozenset[str], str]
"""Releases, and the evidence that it was one of them."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A pattern, and the releases that write what it matches."""

    pattern: str
    spans: tuple[Span, ...]
    without: str = ""
    """A pattern that nothing may match for the mark to count."""
    shown: str = ""
    """How evidence names it; the pattern itself where that is empty."""

    @property
    def releases(self) -> frozenset[str]:
        """The named releases among them."""
        return releases_in(*self.spans)

    @property
    def name(self) -> str:
        """Without the signs of a pattern."""
        return self.shown or self.pattern.replace("\\", "").strip(".$").replace(
            ".after_pipeline-start.", " … "
        )


def releases_in(*spans: Span) -> frozenset[str]:
    """The named releases within one of the spans."""
    return frozenset(name for name in NAMES if any(span.includes(name) for span in spans))


def _since(pattern: str, since: str, shown: str = "") -> Mark:
    return Mark(pattern, (Span(since),), shown=shown)


def _until(pattern: str, until: str, shown: str = "") -> Mark:
    return Mark(pattern, (Span(until=until),), shown=shown)


def _lacks(until: str, field: str, later: str) -> Mark:
    """A field of a configuration that lacks one which later releases print."""
    return Mark(field, (Span(until=until),), without=later, shown=f"no {later}")


def _starts(pipeline: str, first: str, *spans: Span) -> Mark:
    """The first pass of a pipeline."""
    return Mark(rf"\.{pipeline}\.after_pipeline-start\.before_{first}\.", spans)


FILES: tuple[Mark, ...] = (
    # What every dump directory of the CPU holds.
    _until(r"module_\d+\.[^.\n]+\.o$", "0.4.35", ".o"),
    _until(r"\.ir-(no|with)-opt\.part_\d+\.ll", "0.4.38", "ir-no-opt.part_00.ll"),
    _since(r"\.part_\d+\.ir-(no|with)-opt\.ll", "0.5", "part_00.ir-no-opt.ll"),
    _since(r"\.obj-file\.", "0.4.38", "obj-file"),
    _since(r"_kernel_module\.ir-(no|with)-opt\.ll", "0.5", "_kernel_module.ir-no-opt.ll"),
    _since(r"\.(__compute_module_)?wrapped_(?!scatter)[^.\n]*\.(ll|o|ir-)", "0.8", "wrapped_…"),
    # Of both backends, and of the GPU.
    _since(r"\.debug_options$", "0.6"),
    _since(r"\.config\.pbtxt", "0.6"),
    _since(r"\.after_spmd_partitioner\.txt", "0.6"),
    _until(r"\.sm_9\.0_gpu_after_optimizations", "0.6"),
    _since(r"\.sm_9\.0a_gpu_after_optimizations", "0.7"),
    _since(r"memory-usage-report\.pb", "0.9"),
    _since(r"after_optimizations-live-range\.txt", "0.10"),
    _since(r"after_optimizations-buffer-assignment-values\.txt", "0.10"),
    _since(r"\.thunk_metadata\.txt", "0.8"),
    _since(r"\.before_config_assignment\.txt", "0.11"),
    # Pipelines of the GPU.
    _until(r"\.GPU-ir-emit-prepare\.", "0.4.38"),
    _until(r"\.post-fusion-collectives_optimization\.", "0.4.38"),
    _since(r"\.async-collective-conversion\.", "0.5"),
    _since(r"\.pre-scheduling-copy-insertion\.", "0.5"),
    _until(r"\.fusion-dispatch-pipeline\.after_pipeline-start\.before_fusion-block-level-rewriter\.", "0.5"),
    _since(r"\.pre-fusion\.", "0.6"),
    _until(r"\.horizontal_fusion\.", "0.6"),
    _until(r"\.command-buffer-scheduling\.after_pipeline-start\.", "0.7"),
    _since(r"\.sanitize-constant-names\.", "0.7"),
    _since(r"\.host-compute\.", "0.7"),
    _starts("post-layout_assignment", "float_normalization", Span(until="0.7")),
    _starts("post-layout_assignment", "sub-byte-collective-normalization", Span("0.8")),
    _since(r"\.invariant-checkers\.", "0.8"),
    _since(r"\.after_sort-iota-fusion\.", "0.9"),
    _starts("optimization", "topk-splitter", Span(until="0.4.35")),
    _starts("optimization", "gather_scatter_normalizer", Span("0.4.38", "0.5")),
    _starts("optimization", "batched_gather_scatter_normalizer", Span("0.6", "0.6")),
    _starts("optimization", "one-hot-rewriter", Span("0.9", "0.9")),
    _starts("optimization", "ragged_dot_rewriter", Span("0.7", "0.8"), Span("0.10")),
    _starts("collective-optimizations", "all-reduce-simp", Span(until="0.4.38")),
    _starts("collective-optimizations", "ragged-all-to-all-canonicalizer", Span("0.5", "0.10")),
    _starts("collective-optimizations", "legalize-collective-domain", Span("0.11")),
    _starts("dynamic-slice", "dynamic-slice-annotator", Span("0.10")),
    _since(r"\.propagate-call-metadata\.", "0.10"),
    _starts("post-scheduler-xla-transforms", "apply-xla-transforms", Span("0.10", "0.10")),
    _since(r"\.config-assigner\.", "0.11"),
    _since(r"\.pdl-launch-annotation\.", "0.11"),
    _starts("pre-spmd-partitioner", "gather_scatter_normalizer", Span(until="0.4.35")),
    _starts("pre-spmd-partitioner", "cudnn-custom-call-converter", Span("0.4.38", "0.10"), Span("0.12")),
    _starts("pre-spmd-partitioner", "async-collective-custom-call-rewriter", Span("0.11", "0.11")),
    # Pipelines of the CPU.
    _until(r"\.pre-spmd-pipeline\.", "0.4.35"),
    _starts("HLO_passes_through_layout_assignment", "result_caster", Span(until="0.4.35")),
    _starts("HLO_passes_through_layout_assignment", "gather_scatter_normalizer", Span("0.4.38", "0.5")),
    _starts("HLO_passes_through_layout_assignment", "batched_gather_scatter_normalizer", Span("0.6")),
    _since(r"\.post_scatter_expansion_simplification\.", "0.5"),
    _since(r"\.dot-library-passes\.", "0.6"),
    _since(r"\.HLO_passes_after_scheduling\.", "0.10"),
    _starts("async-collective", "async-collective-replacer", Span("0.10", "0.10")),
    _starts("async-collective", "async-collective-custom-call-rewriter", Span("0.11")),
    _since(r"\.embedded_scatter_expansion\.", "0.12"),
)
"""By the names of the files of a module in a dump directory."""

_WHOLE = r"\A(?s:(?=.*\.before_optimizations\.txt)(?=.*_after_optimizations\.txt)(?=.*PATTERN))"
MISSING: tuple[Mark, ...] = (
    Mark(
        _WHOLE.replace("PATTERN", r"after_optimizations-buffer-assignment\.txt"),
        (Span(until="0.9"),),
        without=r"after_optimizations-buffer-assignment-values\.txt",
        shown="no buffer-assignment-values.txt",
    ),
    Mark(
        _WHOLE.replace("PATTERN", r"\.(ll|o|ptx)$"),
        (Span(until="0.5"),),
        without=r"\.debug_options$",
        shown="no debug_options",
    ),
)
"""The same by what is not there. They count least, as people copy parts of a directory."""

TEXTS: tuple[Mark, ...] = (
    Mark(r'"output_tile_sizes"', (Span("0.4.38", "0.4.38"),)),
    _since(r'"output_tiles"', "0.5"),
    _since(r'"reification_cost"', "0.6"),
    _since(r'"device_type"', "0.7"),
    _since(r'"is_tma_allowed"', "0.7"),
    _since(r'"is_warp_specialization_allowed"', "0.8"),
    _until(r'"wait_on_operation_queues"', "0.9"),
    _since(r'"kind":"__ynn_fusion"', "0.8", "__ynn_fusion"),
    _since(r'"native_emitter_backend_config"', "0.10"),
    _since(r'"waves_per_eu"', "0.10"),
    _since(r'"num_tiles_per_pid"', "0.11"),
    _since(r'"group_size":\d', "0.11.2", "group_size"),
    _since(r'backend_config=\{"device_type"', "0.11.2", "device_type first"),
    _until(r'"outer_dimension_partitions":[^{}]*,"fusion_config"', "0.11.1", "fusion_config last"),
    _since(r'"fusion_config":\{[^{}]*\},"outer_dimension_partitions"', "0.11.2", "fusion_config first"),
    _lacks("0.5", r'"output_tiles"', r'"reification_cost"'),
    _lacks("0.7", r'"is_tma_allowed"', r'"is_warp_specialization_allowed"'),
    _lacks("0.9", r'"is_warp_specialization_allowed"', r'"waves_per_eu"'),
    _lacks("0.10", r'"waves_per_eu"', r'"num_tiles_per_pid"'),
    _lacks("0.11.1", r'"num_tiles_per_pid"', r'"group_size"'),
    Mark(r"source_file=[^{}\n]* source_end_line=", (Span("0.7", "0.7"),), shown="source_end_line"),
    _until(r"source_file=", "0.7", "source_file in each line"),
)
"""By the attributes of instructions. XLA prints every field of a backend's configuration, empty or not."""

_JAX_MAIN = Mark(r'op_name="[^"]*/jit\(main\)/', (Span(until="0.6"),), shown="jit(main) in op_name")

_WRAPPED_SINCE = {"copy": "0.9", "transpose": "0.11", "scatter": "0.5"}
_WRAPPED = re.compile(r"^  (?:ROOT )?%?wrapped_([\w-]+)(?:\.\d+)? = .* fusion\(", re.MULTILINE)
_UNWRAPPED_UNTIL = dict.fromkeys(
    ("convert", "exponential", "iota", "log", "reduce-window", "select", "tanh"), "0.7"
) | {"transpose": "0.10"}


def text_marks(module: Module, backend: str) -> Iterator[Shown]:
    """What the module itself shows, the most certain first: releases and evidence.

    Text without metadata or configurations shows nothing: people write such by hand.
    """
    if module.stack_frames:
        yield releases_in(Span("0.8")), "has source tables"
    texts = {id(a): a.text for i in module.instructions() if len(a := i.attributes)}
    text = "\n".join(texts.values())
    yield from attribute_marks(text)
    if "metadata={" in text:
        if not module.print_options.percent:
            yield releases_in(Span(until="0.4.38")), "names without %"
        elif _shows(_JAX_MAIN, text):
            yield releases_in(Span("0.5", "0.6")), _JAX_MAIN.name
    if backend == "cpu":
        yield from _wrapped_marks(module)


def attribute_marks(text: str) -> Iterator[Shown]:
    """What attributes of instructions show, in whatever text they stand."""
    for mark in TEXTS:
        if _shows(mark, text):
            yield mark.releases, mark.name


def finished_marks(text: str, backend: str) -> Iterator[Shown]:
    """What the text of the module after all passes shows."""
    yield from attribute_marks(text)
    if backend == "cpu":
        for stem in sorted(set(_WRAPPED.findall(text))):
            yield _wrapped(stem)


def _wrapped(stem: str) -> Shown:
    return releases_in(Span(_WRAPPED_SINCE.get(stem, "0.8"))), f"{stem} is wrapped"


def _wrapped_marks(module: Module) -> Iterator[Shown]:
    """What XLA:CPU wraps in a fusion of its own, and what it leaves unwrapped once all passes are done."""
    for i in module.entry:
        if i.opcode == "fusion" and i.name.startswith("wrapped_"):
            yield _wrapped(i.name.removeprefix("wrapped_").partition(".")[0])
        elif module.is_scheduled and i.opcode in _UNWRAPPED_UNTIL and i.shape.element_type == "f32":
            yield releases_in(Span(until=_UNWRAPPED_UNTIL[i.opcode])), f"{i.opcode} is not wrapped"


def file_marks(names: str) -> Iterator[Shown]:
    """What the names of files show, one a line."""
    for mark in FILES:
        if _shows(mark, names):
            yield mark.releases, f"dumps are named {mark.name}"


def missing_marks(names: str) -> Iterator[Shown]:
    """What the absence of files shows."""
    for mark in MISSING:
        if _shows(mark, names):
            yield mark.releases, f"has {mark.name}"


def _shows(mark: Mark, text: str) -> bool:
    if re.search(mark.pattern, text, re.MULTILINE) is None:
        return False
    return not mark.without or re.search(mark.without, text, re.MULTILINE) is None


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
        return Written(Fact(REFERENCE, source, "not shown by the text"), NAMES, REFERENCE)
    found = _in_order(left)
    span = span_text(found)
    evidence = "; ".join(dict.fromkeys(shown for shown in (lower, upper) if shown))
    replayed = REFERENCE if REFERENCE in left else found[-1]
    return Written(Fact(span, source, f"{span}: {evidence}", len(found) > 1), found, replayed)


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
    evidence = f"{stamp.jaxlib} (from {stamp.file})"
    try:
        name, note = nearest(stamp.jaxlib)
    except HlofuseError:
        if not stamp.jaxlib[:1].isdigit():
            return None
        note = f"XLA {printable(evidence)} wrote this; replayed as {EARLIEST}"
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
        return Fact(name, "asked", "given by --xla"), name, note
    fact = written.fact
    if only and fact.source != "default" and only not in written.releases:
        note = f"XLA {printable(fact.evidence)} wrote this; replayed as {only}"
        return fact, only, note
    return fact, only or written.replayed, written.note


def is_of_earlier_dialect(module: Module) -> bool:
    """True for text as releases before 0.8 print it."""
    return releases_in(Span(until="0.7")) >= frozenset(written_by(module).releases)
