"""Input of commands: the options of a replay, and the terminal that shows its progress."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from hlofuse.cli.common.messages import message, progress_bar, spinner
from hlofuse.library.options import Listener, ReplayOptions

if TYPE_CHECKING:
    from hlofuse.library.heads import ReportedModule
    from hlofuse.library.report import Report

warn = partial(message, "note")
"""Prints a note on standard error, if there is one: for results that have no place for it."""

TERMINAL = Listener(warn, spinner, progress_bar)


def options_of(input: str, request: dict[str, Any]) -> ReplayOptions:
    """The options that `replay_options` gave a command."""
    return ReplayOptions(input=input, listener=TERMINAL, **request)


def report_on(input: str, request: dict[str, Any]) -> Report:
    """The report that a command prints a part of."""
    from hlofuse.library.report import Report

    return Report(options_of(input, request))


def announce(reported: ReportedModule, *, replayed: bool = True) -> None:
    """Print the first line on standard error, for results that have no place for it."""
    from hlofuse.library.heads import head_of
    from hlofuse.reports.common.head import head_lines

    head = head_of(reported, replayed=replayed)
    for line in head_lines([head]) + list(head.identity.notes) if head is not None else ():
        click.echo(line, err=True)
