"""One file of HTML: markup, style, scripts and data, and a policy that lets in nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from itertools import pairwise
from operator import attrgetter
from typing import Any

from hlofuse.account import Launched
from hlofuse.format import fields, printable
from hlofuse.format.paths import layer_of
from hlofuse.ir import Json, Shape
from hlofuse.ir.text.printer import print_instruction
from hlofuse.reports.common.model import totals_json
from hlofuse.reports.common.phrases import figures_text
from hlofuse.reports.explain.model import FusedStep
from hlofuse.reports.explain.phrases import SIBLINGS_UNTIMED, step_text
from hlofuse.reports.timeline import phrases
from hlofuse.reports.timeline.model import Group, StepDetails
from .collect import TEXT
from .model import Decision, Kernel, Operation, Page, Passes, Run

SCRIPTS = (
    "passes_data",
    "data",
    "state",
    "phrases",
    "dom",
    "labels",
    "layers",
    "order",
    "layout",
    "nested",
    "scene",
    "colouring",
    "picture",
    "outline",
    "sheet",
    "pane",
    "lists",
    "source",
    "differences",
    "panels",
    "kernel",
    "details",
    "passes",
    "timeline",
    "search",
    "legend",
    "keys",
    "app",
)
"""In the order in which they build on each other; together they are one module."""
_STYLES = ("colours", "layout", "parts", "details")


def page_html(page: Page) -> str:
    """The page, complete: it loads nothing and runs nothing but its own script."""
    script = "".join(_part(f"{name}.js") for name in SCRIPTS)
    style = "".join(_part(f"{name}.css") for name in _STYLES)
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)};"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "{{policy}}": policy,
        "{{style}}": style,
        "{{script}}": script,
        "{{data}}": encoded(page_json(page)),
        "{{texts}}": encoded(
            {
                "kernels": [[_lines(k.text) for k in r.kernels] for r in page.runs],
                "operations": [
                    [_lines(print_instruction(o.instruction, TEXT)) for o in r.operations] for r in page.runs
                ],
                "files": [_lines(f.text) for f in page.files],
            }
        ),
    }
    out = _part("page.html")
    for mark, text in parts.items():
        out = out.replace(mark, text, 1)
    return out


def _part(name: str) -> str:
    return files("hlofuse.explorer").joinpath("page", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


SCHEMA = 3
KINDS = ("fuse", "ineligible", "priority", "rewrite")


def encoded(values: object) -> str:
    """Base64 of the deflated JSON: nothing in it can end the element it stands in."""
    text = json.dumps(values, separators=(",", ":"), ensure_ascii=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def page_json(page: Page) -> Json:
    """JSON values; numbers for strings point into `strings`."""
    s = Strings()
    runs = [_run(r, s) for r in page.runs]
    rules = []
    for code, title, sections in page.rules:
        rules.append([s(code), s(title), [list(map(s, part)) for part in sections]])
    passes = passes_json(page.passes, s) if page.passes is not None else None
    return {
        "schema": SCHEMA,
        "title": page.title,
        "kinds": KINDS,
        "runs": runs,
        "rules": rules,
        "passes": passes,
        "files": [[s(f.name), s(f.note), bool(f.text)] for f in page.files],
        "pairs": page.pairs,
        "strings": s.all(),
    }


def _lines(text: str) -> str:
    return "\n".join(map(printable, text.expandtabs().splitlines()))


def _run(r: Run, s: Strings) -> Json:
    return {
        **fields(r, "label headline notes verdict boxes kernels_before functions memory memory_plot"),
        **fields(r, "before after", totals_json),
        "slowest": [[printable(cell) for cell in cells] for cells in r.slowest],
        **fields(r, "computations passes names", s),
        "ends_as": differences(r.ends_as),
        "operations": _operations(r.operations, s),
        "decisions": _decisions(r.decisions, s),
        "regions": [
            [g.computation, [[b, differences(inside)] for b, inside in g.kernels]] for g in r.regions
        ],
        "final_names": [list(map(s, pair)) for pair in r.final_names],
        "kernels": _kernels(r.kernels, s),
        "refused": {
            **_columns(r.refused_edges, s, "decision us=refusal.us_at_stake bytes=refusal.bytes_between"),
            **_columns(r.refused_edges, s, "producer=refusal.producer.name consumer=refusal.consumer?"),
            **_columns(r.refused_edges, s, "rule=refusal.rule?"),
        },
    }


def _columns(rows: Sequence[object], s: Strings, spec: str) -> Json:
    """A list for each attribute in `spec` (`format.fields`): texts by number, missing ones empty with `?`."""
    columns = {}
    convert: dict[type, Callable[[Any], Any]] = {
        str: lambda text: s(printable(text)),
        Shape: lambda shape: s(str(shape)),
        bool: int,
        float: _time,
    }
    for entry in spec.split():
        key, _, path = entry.rstrip("?").partition("=")
        values = ((v or "") if entry[-1] == "?" else v for v in map(attrgetter(path or key), rows))
        columns[key] = [convert[type(v)](v) if type(v) in convert else v for v in values]
    return columns


def _operations(operations: Sequence[Operation], s: Strings) -> Json:
    return {
        **_columns(operations, s, "opcode=instruction.opcode computation launched source path"),
        **_columns(operations, s, "shape=instruction.shape op_name=instruction.op_name?"),
        **_columns(operations, s, "bytes=instruction.shape.leaves_size"),
        "layer": [s(printable(layer_of(x.instruction.op_name))) for x in operations],
        # Near ones mostly, so the distance is the smaller number.
        "operands": [[n - i for i in x.operands] for n, x in enumerate(operations)],
        "calls": {n: x.calls for n, x in enumerate(operations) if x.calls},
        "file": [x.line[0] for x in operations],
        "line": differences(x.line[1] for x in operations),
        # Figures by number: most operations are no kernels.
        "alone": {n: _figures(x.row) for n, x in enumerate(operations) if x.row is not None},
    }


def _figures(row: Launched) -> list[Any]:
    return [_time(row.us), row.cost.bytes_accessed, row.cost.flops, int(row.is_floor), row.runs]


def _decisions(decisions: Sequence[Decision], s: Strings) -> Json:
    times = "us_fused=event.us_fused us_unfused=event.us_unfused"
    return {
        "kind": [KINDS.index(x.event.event) for x in decisions],
        **_columns(decisions, s, "pass=pass_index step=event.step producer consumer others"),
        **_columns(decisions, s, f"{times} duplicated=event.duplicated computation=event.computation"),
        **_columns(decisions, s, "rule=event.rule? reason=event.reason?"),
        **{f"{end}_name": [s(x.names[n]) for x in decisions] for n, end in enumerate(_ENDS)},
        "figures": [s(figures_text(x.event.figures)) for x in decisions],
        "us_saved": [_time(x.fused.us_saved) if x.fused is not None else None for x in decisions],
        "why": [s(_why(x.fused)) for x in decisions],
        "ops": [[n for op in x.ops for n in op] for x in decisions],
        "kernels": differences(x.kernels for x in decisions),
    }


_ENDS = ("producer", "consumer", "result")


def _why(step: FusedStep | None) -> str:
    if step is None or step.us_saved is None:
        return ""
    text = step_text(step)
    return f"{text} ({SIBLINGS_UNTIMED})" if step.event.kind == "sibling" else text


def _kernels(kernels: Sequence[Kernel], s: Strings) -> Json:
    cost = "bytes=row.cost.bytes_accessed read=row.cost.bytes_read written=row.cost.bytes_written"
    times = "us=row.us us_floor measured_us floor=row.is_floor iterations=row.runs"
    return {
        **_columns(kernels, s, f"box {cost} flops=row.cost.flops {times} bound=bound_by result=is_result"),
        **_columns(kernels, s, "name=place.label source=place.source? shape=row.instruction.shape line"),
        "kind": [s(k.row.instruction.fusion_kind or k.row.instruction.opcode) for k in kernels],
        "layer": [s(layer_of(k.place.op_name)) for k in kernels],
        **_columns(kernels, s, "bytes_out=row.instruction.shape.leaves_size"),
        "reads": [[[n, s(name), s(shape), size] for n, name, shape, size in k.reads] for k in kernels],
        "parts": [(t := k.time) and [_time(t.us_memory), _time(t.us_compute), s(t.emitter)] for k in kernels],
    }


def _time(us: float | None) -> float | None:
    if us is None or us != us or abs(us) == float("inf"):
        return None
    return float(f"{us:.5g}")


def passes_json(passes: Passes, s: Strings) -> Json:
    """JSON values; numbers for strings point into `strings`."""
    timeline, steps = passes.timeline, passes.timeline.steps
    place = {id(step.dump): n for n, step in enumerate(steps)}
    after = [step.after for step in steps]
    closeups = [passes.closeups.get(n, _NOTHING) for n in range(len(steps))]
    return {
        "headline": printable(phrases.headline(timeline)),
        "notes": [printable(note) for note in timeline.notes]
        + ([f"No times: {printable(timeline.times)}."] if timeline.times else [])
        + ([phrases.TIMES_NOTE] if timeline.seconds is not None else []),
        "start": passes.start,
        "steps": {
            "number": [-1 if x.dump.number is None else x.dump.number for x in steps],
            "pass": [s(phrases.pass_name(x.dump)) for x in steps],
            **_columns(steps, s, "pipeline=dump.pipeline file=dump.path.name problem?"),
            "what": [s(phrases.what(x)) for x in steps],
            "since": [place.get(id(x.since), -1) for x in steps],
            **_columns(steps, s, "changed weight"),
            "ms": [None if x.seconds is None else round(x.seconds * 1000, 2) for x in steps],
            **{name: [getattr(a, name, None) for a in after] for name in _SIZES},
            "opcodes": [[[s(op), b, a] for op, b, a in x.opcodes] for x in steps],
            "groups": [[_group(g, s) for g in details.groups] for details in closeups],
            "hidden": [details.hidden for details in closeups],
        },
    }


_NOTHING = StepDetails()
_SIZES = ("instructions", "kernels", "fusions")


def _group(g: Group, s: Any) -> list[Any]:
    return [
        s(g.kind),
        s(g.text),
        g.count,
        *([s(x) for x in lines] for lines in (g.notes, g.before, g.after)),
        g.hidden,
    ]


class Strings:
    """Every distinct string once; number 0 is the empty one."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {"": 0}

    def __call__(self, text: str) -> int:
        return self._number.setdefault(text, len(self._number))

    def all(self) -> list[str]:
        """In the order of their numbers, printable."""
        return list(map(_lines, self._number))


def differences(numbers: Iterable[int]) -> list[int]:
    """Each less the one before it."""
    return [n - last for last, n in pairwise((0, *numbers))]
