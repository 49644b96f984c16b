"""What commands are asked about: the options of a replay, and the terminal that hears of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hlofuse.cli.common.messages import message
from hlofuse.cli.common.options import (
    module_option,
    option,
    profile_option,
    stage_options,
    target_options,
    what_if_options,
)
from hlofuse.cli.common.progress import progress_bar, spinner
from hlofuse.library.listener import Listener
from hlofuse.library.options import ReplayOptions

if TYPE_CHECKING:
    from hlofuse.library.heads import ReportedModule
    from hlofuse.library.report import Report

F = TypeVar("F", bound=Callable[..., Any])


def warn(note: str) -> None:
    """Print a note on standard error, if there is one: for results that have no place for it."""
    message("note", note)


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


def measured_options(command: F) -> F:
    """`replay_options` and `--profile`, of reports that show measured time."""
    return profile_option(replay_options(command))


def replay_options(command: F) -> F:
    """The options that make a ReplayOptions, the INPUT argument not among them."""
    command = option(
        "--xla-trace",
        "FILE|none",
        (
            "XLA's PriorityFusion log (…priority_fusion_dump.txt), used to break ties.  [default: the file"
            " next to INPUT]"
        ),
    )(command)
    return module_option(target_options(what_if_options(stage_options(command))))
