"""Commands that are built from the questions of the library: their options, and what a call prints."""

import os
from collections.abc import Callable
from dataclasses import Field, fields
from typing import Any

import click

from hlofuse.library.options import ReplayOptions
from hlofuse.library.questions import QUESTIONS
from .messages import spinner
from .options import (
    INPUT,
    Decorator,
    cache_option,
    measure_option,
    module_option,
    parameter,
    profile_option,
    report_options,
    shared_replay_options,
    stacked,
    stage_options,
    strict_option,
    target_options,
)
from .output import Output
from .request import cached_report, report_on

_READING: dict[str, Decorator[Any]] = {
    "replay": shared_replay_options,
    "measured": stacked(profile_option, measure_option, shared_replay_options),
    "dumps": stacked(module_option, profile_option),
    "search": stacked(profile_option, module_option, target_options, stage_options),
}


def command_of(
    name: str,
    *more: Decorator[Any],
    output: Decorator[Any] = report_options,
    run: Callable[..., int] | None = None,
) -> click.Command:
    """The command that asks a question and prints the answer. `more` options go to `run` as keywords."""
    question = QUESTIONS[name]
    own = {f.name: f for f in fields(question)}  # type: ignore[arg-type]
    several = question.input.endswith("...")
    is_cached = run is None and not several and question.reading in ("replay", "measured")

    def command(input: Any, out: Output, **values: Any) -> int:
        given = {key: _converted(f, values.pop(key)) for key, f in own.items()}
        how = {key: values.pop(key) for key in question.shown}
        request = {key: values.pop(key) for key in ReplayOptions.__slots__ if key in values}
        if request.get("measure") and given.get("python"):
            os.environ["HLOFUSE_PYTHON"] = given["python"]
        how |= {"hint": True} if question.has_hints and run is None else {}
        if is_cached:
            with cached_report(input, request) as report:
                with spinner("working"):
                    answer = question(**given).about(report)
                out.show(answer, **how)
            return 0
        reports = [report_on(path, request) for path in (input if several else [input])]
        if run is not None:
            return run(reports, question(**given), out, **how, **values)
        out.show(question(**given).about(*reports), **how)
        return 0

    command.__doc__ = question.__doc__
    inputs = click.argument(
        "input",
        metavar=question.input,
        type=INPUT,
        nargs=-1 if several else 1,
        required=True,
    )
    specs = {**own, **question.shown}.items()
    decorators = [inputs, *(parameter(spec, key) for key, spec in specs)]
    decorators += [*more, _READING[question.reading]]
    if question.reading in ("replay", "measured") and "strict" not in own:  # `check` is strict in another way
        decorators.append(strict_option)
    decorators += [cache_option] if is_cached else []
    decorators.append(output)
    decorated: Decorator[Any] = stacked(*decorators)
    return click.command(name)(decorated(command))


def _converted(field: Field[Any], value: Any) -> Any:
    """The value of a field for what stands on the command line; its default for None."""
    convert = field.metadata["option"].convert
    if value is None:
        return field.default
    return value if convert is None else convert(value)
