"""From options to a replay: the one way in which the library and all commands say what to replay."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from hlofuse.ir import Progress, Record, Strings
from hlofuse.pipelines.targets import Stage
from .option import flag
from .option import option as _option

if TYPE_CHECKING:
    from hlofuse.ir import Module, OrderSource


class Listener(Record):
    """Callbacks; by default notes are dropped and no progress is shown."""

    note: Callable[[str], None] = lambda _: None
    """Takes a note that a result has no place for; an empty one is none."""
    activity: Callable[..., AbstractContextManager[None]] = lambda *_: nullcontext()
    """Covers a step that may take seconds: its name, and a function that draws what is known already."""
    progress: Callable[[str], AbstractContextManager[Progress]] = lambda _: nullcontext(lambda *_: None)
    """Covers many steps, and yields what they report to."""


SILENT = Listener()


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """The module to replay and the options of the call."""

    input: str
    module: str | None = _option("--module", "NAME", "Module to read from a dump directory or file.")
    target: str | None = _option(
        "--target",
        "T",
        (
            "Backend to replay (hlofuse targets).  [default: gpu with --device, else read from the dump, else"
            " cpu]"
        ),
    )
    device: str | None = _option(
        "--device",
        "D",
        "Device name or file (hlofuse devices).  [default: read from the dump]",
    )
    xla: str | None = _option(
        "--xla",
        "V|auto",
        "XLA to replay, as a jaxlib release.  [default: auto, read from the dump]",
    )
    option: str | None = _option("--option", "NAME", "A variant of the target's passes (hlofuse targets).")
    order: "OrderSource | None" = _option(
        "--order",
        ("xla", "replayed", "estimated", "text"),
        (
            "Source of instruction order: XLA's ids, its earlier passes replayed, an estimate, or the text."
            "  [default: the best available]"
        ),
    )
    ids: str | None = _option(
        "--ids",
        "FILE",
        "File with XLA's unique instruction ids (.hlo.pb).  [default: the file next to INPUT]",
    )
    xla_trace: str | None = _option(
        "--xla-trace",
        "FILE|none",
        (
            "XLA's PriorityFusion log (…priority_fusion_dump.txt), used to break ties.  [default: the file"
            " next to INPUT]"
        ),
    )
    passes: str | None = _option(
        "--passes",
        "LIST",
        "Replay these passes instead, separated by commas; fixpoint(A, B) repeats until nothing changes.",
    )
    xla_flags: str | None = _option(
        "--xla-flags", "FLAGS", "XLA_FLAGS of the compilation.  [default: read from the dump]"
    )
    stage: str | None = _option(
        "--stage",
        ("before-optimizations", "fusion-input", "after-fusion", "scheduled"),
        "Stage of the compilation that the module comes from.  [default: read from the module]",
    )
    overrides: Strings = _option(
        "--set",
        "NAME=VALUE",
        "Replay with another value of a knob or device number (hlofuse what-if --knobs).",
        multiple=True,
    )
    disable: Strings = _option("--disable", "CODE", "Replay without this rule.", multiple=True)
    enable: Strings = _option(
        "--enable",
        "NAME",
        "Replay with an optional pass or rule that XLA leaves out (hlofuse targets).",
        multiple=True,
    )
    assume_input: bool = flag(
        "--assume-input", "Same as --stage fusion-input: replay the fusion passes on any module."
    )
    strict: bool = flag(
        "--strict", "Refuse text with attributes, fields, types or opcodes that are not known."
    )
    profile: str | None = _option(
        "--profile",
        "PATH",
        "Measured time from a profile: *.xplane.pb or its folder, *.trace.json.gz, an export of nsys.",
        kind="path",
    )
    no_cache: bool = flag("--no-cache", "Replay again and store nothing (hlofuse cache).")
    measure: bool = flag(
        "--measure",
        "Compile and run a CPU module with the JAX of $HLOFUSE_PYTHON or this Python; show measured times.",
    )
    inputs: str | None = _option(
        "--inputs",
        "FILE.npz",
        "With --measure: the program's arguments, in order, as numpy.savez writes them.  [default: random]",
        kind="path",
    )
    given: "Module | str | None" = field(default=None, repr=False)
    """The module, or its text, in place of a file; `input` is then where it was read from, or `-`."""
    owned: object = field(default=None, compare=False, repr=False)
    """A temporary folder with `input`, which lives as long as this, or the text itself; None for a file."""
    listener: Listener = field(default=SILENT, compare=False, repr=False)

    @property
    def input_arguments(self) -> Strings:
        """Words that name the same input and settings in another command; with `owned` the first is empty."""
        arguments = ["" if self.owned is not None else self.input]
        for declared in fields(self):
            given, spec = getattr(self, declared.name), declared.metadata.get("option")
            if spec is None or given in (None, False) or declared.name == "no_cache":
                continue
            if given is True:
                arguments.append(spec.flags)
            for value in given if isinstance(given, tuple) else (given,) if given is not True else ():
                arguments += [spec.flags, value]
        return tuple(arguments)

    @property
    def requested_stage(self) -> Stage | None:
        """The stage that the module is to be taken for; None where it is found out."""
        if self.assume_input:
            return Stage.INPUT
        return Stage(self.stage) if self.stage is not None else None

    @property
    def takes_any_stage(self) -> bool:
        """The fusion passes are to be replayed whatever stage the module shows."""
        return self.requested_stage is Stage.INPUT or self.changes_xla

    @property
    def changes_xla(self) -> bool:
        """Something is asked for that XLA does not do."""
        return bool(self.overrides or self.disable or self.enable or self.passes is not None)
