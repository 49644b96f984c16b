"""`hlofuse.open`: from a file, a text, a module or a function to a report."""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hlofuse.compilation import Compilation, CompilationInput, PassObserver, ReplayConfig
from hlofuse.inputs.part import PartError
from hlofuse.ir import HlofuseError, Module, OrderSource
from .options import Listener, ReplayOptions
from .report import Report


def open(
    source: Any,
    *arguments: Any,
    module: str | None = None,
    target: str | None = None,
    device: str | None = None,
    xla: str | None = None,
    xla_flags: str | None = None,
    stage: str | None = None,
    order: OrderSource | None = None,
    set: Mapping[str, float | str] | Iterable[str] = (),
    disable: Iterable[str] = (),
    enable: Iterable[str] = (),
    passes: str | None = None,
    option: str | None = None,
    ids: str | None = None,
    xla_trace: str | None = None,
    profile: str | None = None,
    measure: bool = False,
    inputs: str | None = None,
    strict: bool = False,
) -> Report:
    """A report on a module, read as the command line reads it; nothing is replayed before it is asked for.

    source: the path of a dump or a dump directory; HLO text (a string with a line break); a
    `hlofuse.ir.Module`, which stays as it is; what `hlofuse.capture` returned; or a Python function, jitted
    or not, which the JAX at hand compiles for the shapes of `arguments` (no accelerator is needed).

    The options are those of the command line. module: which of several. target, device, xla, xla_flags,
    stage: what the dump is read to be unless given. order: source of ids and use-lists. set: knobs and
    numbers of the device, `{"launch_overhead_us": 2}` or `["NAME=VALUE"]`. disable, enable, passes:
    rules and passes other than XLA's. profile: a profile of the program, whose times its kernels have.
    measure: compile and run a CPU module here, by the JAX of $HLOFUSE_PYTHON or this one; inputs: an npz file
    with its arguments in order, which are random else.
    strict: refuse attributes, fields, types and opcodes that are not known, perhaps of a newer XLA.

    HlofuseError says in a sentence what cannot be read, and which device is missing."""
    changes = [f"{k}={v}" for k, v in set.items()] if isinstance(set, Mapping) else set
    notes: list[str] = []
    given: Module | str | None = None
    input = "-"
    owned: Any = None
    if isinstance(source, Module):
        given = owned = source
        if source.filename is not None and source.filename != "<stdin>":
            input, owned = source.filename, None
    elif isinstance(source, str) and "\n" in source:
        given = owned = source
    elif isinstance(source, str | os.PathLike):
        input = os.fspath(source)
    else:
        if callable(source):
            from hlofuse.capture import capture

            owned = TemporaryDirectory(prefix="hlofuse-")
            flags, folder = xla_flags or "", Path(owned.name, "capture")
            source = capture(source, *arguments, target=target, device=device, flags=flags, out=folder)
            arguments = ()
        elif not callable(getattr(source, "module", None)):  # hlofuse.capture.Capture
            raise HlofuseError(
                "expected a dump's path, HLO text, a module, a function or a capture,"
                f" found {type(source).__name__}"
            )
        input = str(source.module(module).before if module is not None else source.module().before)
        module = target = xla_flags = None  # a stamp in its folder names the compiler and target
    if arguments:
        raise HlofuseError("arguments go with a function to compile")
    options = ReplayOptions(
        input,
        module,
        target,
        device,
        xla,
        option,
        order,
        ids,
        xla_trace,
        passes,
        xla_flags,
        stage,
        tuple(changes),
        tuple(disable),
        tuple(enable),
        profile=profile,
        measure=measure,
        inputs=inputs,
        strict=strict,
        given=given,
        owned=owned,
        listener=Listener(note=notes.append),
    )
    report = Report(options, notes)
    with suppress(PartError):  # `explain` says what there is
        report.loaded  # noqa: B018  what is wrong with the input is an error here
    return report


def replay(
    input: Module | CompilationInput,
    config: str | ReplayConfig | None = None,
    observers: Sequence[PassObserver] = (),
    **how: Any,
) -> Compilation:
    """The result of XLA's fusion passes on a copy of a module, with every decision. Without `config` the
    module is read as `open` reads it, with the same options. With a `ReplayConfig`, or the name of a target,
    nothing is read from it: see `hlofuse.compilation.compile`."""
    from hlofuse.compilation import compile as replay_with

    if config is None and isinstance(input, Module):
        return open(input, **how).at_fusion.replay(observers)
    return replay_with(input, config or "cpu", observers, **how)
