"""Options that commands share, so that they are called the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

FORMATS = ("text", "json", "markdown")


def input_argument(command: F) -> F:
    """`INPUT`: a file, a directory or `-`; a path to the shell's completion."""
    return click.argument("input", metavar="INPUT", type=click.Path(allow_dash=True))(command)


def module_option(command: F) -> F:
    """`--module NAME`: which module of a dump directory."""
    return click.option("--module", metavar="NAME", help="The module to take from a dump directory.")(command)


def target_options(command: F) -> F:
    """`--target`, `--device`, `--assume-input`: what the replay needs to know."""
    command = click.option(
        "--assume-input",
        is_flag=True,
        help="Take the module for the fusion passes' input whatever stage it looks like.",
    )(command)
    command = click.option("--device", metavar="D", help="The device, for targets that ask for one.")(command)
    return click.option(
        "--target",
        default="cpu",
        show_default=True,
        metavar="T",
        help="What XLA compiles for (hlofuse targets).",
    )(command)


def report_options(command: F) -> F:
    """`--format`, `--color`, `-o`: how a report comes out."""
    command = click.option(
        "-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="Write the report to FILE."
    )(command)
    command = color_option(command)
    return click.option(
        "--format",
        "form",
        type=click.Choice(FORMATS),
        default="text",
        show_default=True,
        help="How to report.",
    )(command)


def color_option(command: F) -> F:
    """`--color`: automatic means a terminal that wants it (NO_COLOR and TERM=dumb are heeded)."""
    return click.option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        show_default=True,
        help="Colours.",
    )(command)
