"""A dump directory pass by pass: what each one did, and the way of one operation through them."""

from contextlib import suppress
from functools import partial
from pathlib import Path

from hlofuse.format.terminal import Page
from hlofuse.inputs.dump_directory import is_corpus_case
from hlofuse.inputs.profile.model import NotProfiled
from hlofuse.ir import HlofuseError, replace
from hlofuse.reports.timeline import DumpSequence, PassTimeline, dump_sequences
from hlofuse.reports.timeline import timeline as read_timeline
from hlofuse.reports.timeline.model import read
from hlofuse.reports.timeline.text import print_timeline, timeline_json
from hlofuse.reports.trace_op import follow
from hlofuse.reports.trace_op.follow import Provenance, provenance_json, with_replayed_passes
from hlofuse.reports.trace_op.text import print_provenance
from .answer import Answer
from .heads import head_of_dump
from .loading import measured
from .loading import read as read_input
from .options import Listener, ReplayOptions
from .program import Program
from .questions import Timeline, TraceOp


def timeline(report: Program, options: Timeline) -> Answer[list[PassTimeline]]:
    """The answer of `timeline`: of the module, or of each; else of the far largest of several."""
    directory, module, listener = folder_of(report), report.options.module, report.options.listener
    every_module = options.every_module
    chosen = dump_sequences(directory, module, every=every_module)
    timelines = []
    for sequence in chosen:
        with listener.progress("comparing dumps") as progress:
            one = read_timeline(sequence, progress)
        for dump in [s.dump for s in one.steps if s.after is not None][-1:]:
            with suppress(*([NotProfiled] if every_module else [])):
                one = replace(one, measured=measured(report.options, partial(read, dump)))
        timelines.append(one)

    def draw(console: Page, every_dump: bool = False) -> None:
        for n, one in enumerate(timelines):
            if n:
                console.print()
            print_timeline(one, console, every=every_dump)

    return Answer(
        "timeline",
        lambda: timelines,
        json=lambda data: timeline_json(dump_sequences(directory, module), data),
        body=draw,
        rows_of=lambda document: [s for each in document["films"] for s in each["steps"]],
        entries_of=lambda data: [step for timeline in data for step in timeline.steps],
        heads=[head_of_dump(sequence.dumps[0].path) for sequence in chosen],
        limit=5,
    )


def trace_op(report: Program, options: TraceOp) -> Answer[Provenance]:
    """The answer of `trace-op`, about the module or the far largest of several."""
    directory, module, listener = folder_of(report), report.options.module, report.options.listener
    (sequence,) = dump_sequences(directory, module, every=False)
    folder = sequence.dumps[0].path.parent
    if is_corpus_case(folder):
        sequence = _whole(sequence, str(folder), listener)
    with listener.activity("following"):
        provenance = follow(sequence, options.name)
    request = replace(report.options, input=str(folder), module=None)
    last = partial(read, provenance.last, provenance.last.text)
    provenance = replace(provenance, measured=measured(request, last))
    return Answer(
        "provenance",
        lambda: provenance,
        json=provenance_json,
        body=lambda console: print_provenance(provenance, console),
        limit=5,
        heads=[head_of_dump(sequence.dumps[0].path)],
    )


def folder_of(report: Program) -> str:
    """The directory of dumps that the module was read from."""
    path = Path(report.options.input)
    if str(path) == "-":
        raise HlofuseError("this is about the passes of a compilation: open a dump directory")
    return str(path.parent if path.is_file() and is_corpus_case(path.parent) else path)


def _whole(sequence: DumpSequence, folder: str, listener: Listener) -> DumpSequence:
    """A capture folder's dumps and what lies around them, for the device that it was captured for."""
    try:
        loaded = read_input(ReplayOptions(folder, listener=listener), any_stage=True)
    except HlofuseError:
        return sequence
    loaded.note_device()
    if loaded.config is None:
        return sequence
    with listener.activity("replaying the passes around fusion"):
        return with_replayed_passes(sequence, loaded.config)
