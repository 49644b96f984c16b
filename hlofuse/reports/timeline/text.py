"""A timeline for the terminal, and as JSON: `docs/timeline.md` says what the fields mean."""

from collections.abc import Sequence

from rich.text import Text

from hlofuse.format import fields, plural, printable, us_text
from hlofuse.format.terminal import Page, Rows, print_lines
from hlofuse.ir import Json
from hlofuse.reports.common.phrases import loops_line
from hlofuse.reports.common.profile import joined_line, profile_json
from . import phrases
from .model import DumpSequence, PassTimeline, Size, Step


def print_timeline(timeline: PassTimeline, console: Page, *, every: bool) -> None:
    """Print the result, the largest changes, then every pass in order."""
    console.print(printable(phrases.headline(timeline)), style="bold")
    if timeline.first is not None and timeline.last is not None:
        sizes = ("instructions", "kernels", "fusions")
        ends = ((n, getattr(timeline.first, n), getattr(timeline.last, n)) for n in sizes)
        console.print("    ".join(f"{n} {phrases.count_text(old, new)}" for n, old, new in ends))
        if timeline.last.loops:
            console.print(loops_line(timeline.last.loops), style="dim")
    if (m := timeline.measured) is not None:
        console.print(f"{us_text(m.found_us / m.runs)} measured in one run of the last dump")
        console.print(joined_line(m), style="dim")
    print_lines(console, map(printable, timeline.notes), 0, "yellow")
    if timeline.times:
        console.print(f"No times: {timeline.times}.", style="dim")
    if 0 < 2 * console.limit < len(timeline.changed):
        console.print()
        console.print("largest changes", style="bold")
        _print_steps(timeline, console.first(timeline.largest), console)
    shown = timeline.steps if every else [s for s in timeline.steps if s.changed or s.problem]
    if not shown:
        return
    console.print()
    quiet = len(timeline.steps) - len(shown)
    rest = f"   ({plural(quiet, 'dump')} without a change omitted)" if quiet and not every else ""
    console.print(Text.assemble(("in order", "bold"), (rest, "dim")))
    _print_steps(timeline, shown, console)
    notes = [phrases.BEFORE_NOTE for s in shown if s.changed and s.dump.after == "pipeline-start"][:1]
    notes += [phrases.TIMES_NOTE] if timeline.seconds is not None else []
    if notes:
        console.print("\n" + "\n".join(notes), style="dim")


def _print_steps(timeline: PassTimeline, steps: Sequence[Step], console: Page) -> None:
    timed = timeline.seconds is not None
    columns = [("dump", "right"), ("pass", "name"), ("instructions", "right"), ("kernels", "right")]
    table = Rows(*columns, *([("time", "right")] if timed else []), ("changes", "left"), drop=(2,))
    pipeline = None
    for step in steps:
        f = step.dump
        name = Text(printable(phrases.pass_name(f)))
        if f.pipeline and f.pipeline != pipeline and f.after != "pipeline-start":
            name.append(f"\nin {printable(f.pipeline)}", style="dim")
        pipeline = f.pipeline
        row = [Text("" if f.number is None else f"{f.number:04d}", style="dim"), name]
        if step.after is None:
            row += [Text(""), Text("")]
        else:
            b = step.before
            row.append(Text(phrases.count_text(b.instructions if b else None, step.after.instructions)))
            row.append(Text(phrases.count_text(b.kernels if b else None, step.after.kernels)))
        if timed:
            row.append(Text("" if step.seconds is None else phrases.seconds_text(step.seconds)))
        style = "red" if step.problem else "green" if step.fusions else ""
        row.append(Text(printable(phrases.what(step)), style=style))
        table.add_row(*row)
    table.print(console)


def timeline_json(dump_sequences: Sequence[DumpSequence], timelines: Sequence[PassTimeline]) -> Json:
    """All modules, and the timelines of those that were requested."""
    return {
        "schema": "hlofuse.timeline/3",
        "modules": [
            {"module": r.label, "dumps": len(r.dumps), "first_dump_bytes": r.dumps[0].path.stat().st_size}
            for r in dump_sequences
        ],
        "films": [
            {
                **fields(f, "module=label notes no_times_because=times? seconds"),
                **fields(f, "first last", _size),
                **profile_json(f.measured),
                "largest": [s.dump.path.name for s in f.largest],
                **fields(f, "steps", _step),
            }
            for f in timelines
        ],
    }


def _size(size: Size) -> dict[str, int]:
    return fields(size, "instructions kernels fusions")


def _step(step: Step) -> Json:
    return {
        **fields(step, "file=dump.path.name number=dump.number pipeline=dump.pipeline? pass=dump.after"),
        "compared_with": step.since.path.name if step.since else None,
        **fields(step, "problem changed weight seconds"),
        **fields(step, "before after", _size),
        "opcodes": {op: {"before": b, "after": a} for op, b, a in step.opcodes},
        "rewrites": [fields(r, "kind removed added count example") for r in step.rewrites],
        "fusions": dict(step.fusions),
        "changes": dict(step.changes),
        "header": list(step.header),
        "what": phrases.what(step) if step.changed or step.problem else None,
    }
