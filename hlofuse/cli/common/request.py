"""Input of commands: the options of a replay, and the terminal that shows its progress."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import click

from hlofuse.ir import Json, replace
from hlofuse.library.options import Listener, ReplayOptions
from .messages import message, progress_bar, spinner

if TYPE_CHECKING:
    from hlofuse.library.heads import ReportedModule
    from hlofuse.library.report import Report

warn = partial(message, "note")  # Prints a note on standard error, for results that have no place for it
TERMINAL = Listener(warn, spinner, progress_bar)
_SLOW = 0.2  # seconds of processor time from which on work is worth storing


def options_of(input: str, request: Json) -> ReplayOptions:
    """The options that `replay_options` gave a command."""
    return ReplayOptions(input=input, listener=TERMINAL, **request)


def report_on(input: str, request: Json) -> "Report":
    """The report that a command prints a part of."""
    from hlofuse.library.report import Report

    return Report(options_of(input, request))


@contextmanager
def cached_report(input: str, request: Json) -> "Iterator[Report]":
    """The report of a command that goes on from the cache, and stores there what took long to work out."""
    from hlofuse.library import cache
    from hlofuse.library.report import Report

    notes = []

    def note(text: str) -> None:
        if "replayed" not in vars(report):  # later notes are about one question
            notes.append(text)
        warn(text)

    listener = replace(TERMINAL, note=note)
    report = Report(replace(options_of(input, request), listener=listener))
    place = cache.place_of(report.options)
    found = cache.read(place, listener) if place is not None else None
    if found is not None:
        state, notes = found
        vars(report).update(state)
        for text in notes:
            warn(text)
    before, begun = set(cache.state_of(report)), time.process_time()
    yield report
    state = cache.state_of(report)
    is_slow = time.process_time() - begun > _SLOW and set(state) > before
    # What was read in the meantime may be another content.
    if place is not None and is_slow and cache.place_of(report.options) == place:
        cache.write(place, (state, notes))


def announce(reported: "ReportedModule", *, replayed: bool = True) -> None:
    """Print the first line and the notes on standard error, for results that have no place for them."""
    from hlofuse.library.heads import head_of
    from hlofuse.reports.common.head import head_lines

    head = head_of(reported, replayed=replayed)
    for line in head_lines([head]) + list(head.identity.notes) if head is not None else ():
        click.echo(line, err=True)
    warn(reported.input.note)
