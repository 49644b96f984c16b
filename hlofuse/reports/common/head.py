"""The head of a report: the identity of its modules."""

from collections import Counter
from collections.abc import Callable, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from hlofuse.compilation import Compilation
from hlofuse.format import broken, plural, printable, shorten, undivided
from hlofuse.inputs.dump_directory import FUSION_STAGES
from hlofuse.ir import Json, OrderSource, Record, Strings, grouped
from hlofuse.pipelines.identity import Identity
from hlofuse.pipelines.targets import Stage, XlaBuild, before_fusion

if TYPE_CHECKING:
    from rich.console import Console

    from .xla_result import XlaResult

NamesSource: TypeAlias = Literal["dump", "replayed"]
"""`dump`: XLA's final module; `replayed`: the passes after fusion."""
_LONGEST = 60  # columns of a module's name: TensorFlow's may have more than a line
_STAGES = {
    "before-optimizations": "before optimizations",
    "fusion-input": "fusion input",
    "after-fusion": "after fusion",
    "scheduled": "after all passes",
}
_ORDERS = {
    "xla": "XLA's ids",
    "replayed": "replayed",
    "estimated": "estimated (ties uncertain)",
    "text": "text (ties uncertain)",
}


def identity_line(
    identity: Identity,
    order: OrderSource | None = None,
    follows_log: bool = False,
    *,
    name: bool = True,
    kernels: NamesSource | None = None,
) -> str:
    """`jit_f: input of fusion · gpu h100_sxm · XLA 0.11.1 · order replayed. Least certain: …`."""
    backend = identity.backend.value + (f" {identity.device.value}" if identity.device is not None else "")
    parts = [_STAGES[identity.stage.value], printable(backend)]
    parts.append(f"XLA {identity.replayed}" if identity.is_replayed else "passes not public")
    if order is not None:
        shown = _ORDERS[order]
        parts.append(
            f"order {shown.partition(' (')[0]}, ties from XLA's log" if follows_log else f"order {shown}"
        )
    if identity.front_end:
        parts.append(f"from {identity.front_end}")
    if identity.partitions > 1:
        parts.append(plural(identity.partitions, "partition"))
    if kernels == "replayed":
        parts.append("kernels replayed")
    parts += [printable(f.removeprefix("--").replace("LIBRARY_FUSION_TYPE_", "")) for f in identity.flags]
    line = " · ".join(parts)
    if name:
        line = f"{shorten(identity.module, _LONGEST)}: {line}"
    if identity.excerpt:
        line += f" · {identity.excerpt}"
    what, weakest = identity.weakest
    if weakest.source in ("stamp", "directory") and not weakest.is_open:  # files of the dump state all of it
        return line
    return f"{line}. Least certain: {what} ({weakest.evidence})"


class Head(Record):
    """The first lines of a report on one module."""

    identity: Identity
    order: OrderSource | None = None
    """The order that decisions rest on; None where none does, and for a module that is not replayed."""
    follows_log: bool = False
    build: XlaBuild | None = None  # The replayed build; None for a module that is not replayed
    result: "XlaResult | None" = None  # The comparison with XLA's own result; None where that is not at hand
    final_names: NamesSource | None = None

    not_repeated: Callable[[], Sequence[str]] = tuple
    """The passes that would change the module and are not replayed."""

    def line(self, *, name: bool = True) -> str:
        """The line about the module's identity, and whether its kernels are those of a replay."""
        kernels = self.final_names if self.result is None else None
        return identity_line(self.identity, self.order, self.follows_log, name=name, kernels=kernels)

    @property
    def result_lines(self) -> list[str]:
        """The comparison with XLA's own result, and the passes after fusion that are missing without it."""
        lines = [self.result.line] if self.result is not None else []
        missing = self.not_repeated() if self.final_names == "replayed" else ()
        return lines + missing_lines(missing, self.identity)

    def to_json(self) -> Json:
        """`module`, `stage`, `xla`, `order`, `not_repeated`, `notes` and the rest of `Identity.to_json`."""
        found = self.identity.to_json()
        if self.build is not None:
            found["xla"] = {**found["xla"], **self.build.to_json()}
        head = {key: found.pop(key) for key in ("module", "stage", "xla")}
        head |= {"order": self.order, "not_repeated": list(self.not_repeated())}
        if self.result is not None:
            found["xla_result"] = self.result.to_json()
        if self.final_names is not None:
            found["final_names"] = self.final_names
        return {**head, "notes": list(self.identity.notes), **found}


def not_repeated_in(replay: Compilation) -> Strings:
    """The passes that had work and were not repeated, before and after fusion."""
    is_replayed = replay.input.unoptimized is not None and not replay.has_xla_final
    lowering = replay.input.lowering if is_replayed else None
    before = lowering.span(Stage.INPUT).not_repeated if lowering is not None else {}
    return tuple({**before, **replay.span(Stage.SCHEDULED).not_repeated})


def missing_lines(passes: Sequence[str], identity: Identity) -> list[str]:
    """A line on passes that a replay lacks, and one on the devices of the figures then; none without them."""
    lines = [f"Not replayed: {', '.join(passes)}. XLA's kernels may differ"] if passes else []
    is_noted = any(note.startswith("figures are for one") for note in identity.notes)
    if "shardy-xla" in passes:
        lines.append(
            f"Figures are{undivided(identity.partitions)} and without its collectives; in a shard_map for one"
        )
    elif identity.partitions > 1 and identity.shown.name is Stage.BEFORE and not is_noted:
        lines.append(f"Figures are for one of {identity.partitions:,} devices")
    return lines


def head_lines(heads: Sequence[Head]) -> list[str]:
    """The line of each module; modules that differ only in name share one."""
    by_line = grouped((h.line(name=False), h) for h in heads)
    lines = []
    for line, group in by_line.items():
        name = shorten(group[0].identity.module, _LONGEST)
        lines.append(f"{name if len(group) == 1 else plural(len(group), 'module')}: {line}")
    return lines + [line for h in heads for line in h.result_lines]


def fitted(line: str, width: int) -> list[str]:
    """The line of a module; parts that do not fit, and then the least certain fact, go on below."""
    text, mark, least = line.partition(". Least certain: ")
    lines = broken(text, width)
    if len(lines[-1] + mark + least) <= width:
        lines[-1] += mark + least
        return lines
    return lines + wrap(f"  {mark[2:]}{least}", width, subsequent_indent="  ", break_on_hyphens=False)


def print_heads(heads: Sequence[Head], console: "Console") -> None:
    for line in head_lines(heads):
        for shown in fitted(line, console.width):
            console.print(shown, style="dim")


def with_heads(document: Json, heads: Sequence[Head]) -> Json:
    """A JSON report that begins with its head; of several modules `inputs` has the head of each. The head of
    several modules has the values that all of them share, and null for the others."""
    if not heads:
        return document
    each = [h.to_json() for h in heads]
    first = each[0]
    if len(each) > 1:
        xla = {key: _common([e["xla"][key] for e in each]) for key in first["xla"]}
        first = {key: _common([e[key] for e in each]) for key in _HEAD} | {"xla": xla, "inputs": each}
    first["notes"] = list(dict.fromkeys(n for e in each for n in e["notes"]))
    schema = {k: v for k, v in document.items() if k == "schema"}
    return {**schema, **first, **document, **{k: first[k] for k in _HEAD[1:5]}}


_HEAD = tuple("module stage xla order not_repeated notes".split())


def _common(values: Sequence[Any]) -> Any:
    return values[0] if all(v == values[0] for v in values) else None


BRIEF = "approximate: from a module before optimizations"  # The note where there is room for one line
_BEFORE = "APPROXIMATE: this is a module before optimizations. "
_COUNTED = "Figures are those of XLA's final module; the decisions are replayed from before optimizations. "
_BASIC = (
    "Calls were inlined; tuples, duplicate and unused operations and reshapes were simplified. XLA's other"
    " passes before fusion were not replayed."
)
OWN_DECISIONS = " For XLA's own decisions, run the program with "
_EXACT_HINT = OWN_DECISIONS + 'XLA_FLAGS="{flags}" and give hlofuse DIR.'


def lowering_note(lowering: Compilation) -> str:
    """The passes that were repeated and those that were not, and how to get XLA's own decisions."""
    target = lowering.target
    worth = _worth(lowering) if before_fusion(target, lowering.config.device) else _BASIC
    hint = _EXACT_HINT.format(flags=FUSION_STAGES[target].flags) if target in FUSION_STAGES else ""
    return _BEFORE + worth + hint


def with_xla_final(note: str) -> str:
    """The note of a replay whose figures are of XLA's own final module."""
    return note.replace(_BEFORE, _COUNTED)


def _worth(lowering: Compilation) -> str:
    """The passes that were repeated, and those that had work here and were not."""
    span = lowering.span(Stage.INPUT)
    missing = [
        f"{name} ({', '.join(f'{n} {opcode}' for opcode, n in sorted(found.items()))})"
        for name, found in span.not_repeated.items()
    ]
    left = Counter(s.pass_name for s in span.left_alone if s.pass_name not in span.not_repeated)
    missing += [f"{name} (for {n} {'instruction' if n == 1 else 'instructions'})" for name, n in left.items()]
    text = f"The passes before fusion were replayed first, as in XLA {lowering.config.build.release}."
    return f"{text} Not replayed: {', '.join(missing)}." if missing else text
