"""Questions about a module: the options of each, from which commands and methods of `Report` are built."""

import re
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, ParamSpec, TypeAlias, TypeVar

from hlofuse.inputs.part import PartError
from hlofuse.ir import HlofuseError
from .option import argument, flag, limit, option

if TYPE_CHECKING:
    from hlofuse.reports.check import Check as CheckResult  # noqa: F401
    from hlofuse.reports.kernels import KernelSelection  # noqa: F401
    from hlofuse.reports.memory import MemoryUse  # noqa: F401
    from hlofuse.reports.stats import ModuleStatistics  # noqa: F401
    from hlofuse.reports.timeline import PassTimeline  # noqa: F401
    from hlofuse.reports.trace_op.follow import Provenance  # noqa: F401
    from hlofuse.reports.why.story import Answer as Found  # noqa: F401
    from .answer import Answer
    from .program import Program

P = ParamSpec("P")
D = TypeVar("D")
Reading: TypeAlias = Literal["replay", "measured", "dumps", "search"]
"""Options of reading a module: of a replay, also of a profile, of a dump directory, of a search."""


@typing.dataclass_transform()
class Question(Generic[D]):
    """A question whose fields, those of a dataclass, are its options and whose docstring is the help of its
    command. The answer has data of type `D`."""

    command: ClassVar[str]
    source: ClassVar[str]
    """The `module:function` of the library that answers it; imported when the question is asked."""
    shown: ClassVar[Mapping[str, Any]]  # Options of the text alone, such as `limit`
    reading: ClassVar[Reading]
    input: ClassVar[str]  # The placeholder of the input; `INPUT...` for a question about several modules
    has_hints: ClassVar[bool]  # The text on a command line says how to go on
    of_whole: ClassVar[bool]  # A part of a module has no answer, not even what there is of it

    def __init_subclass__(
        cls,
        source: str,
        shown: Mapping[str, Any] | None = None,
        reading: Reading = "measured",
        input: str = "INPUT",
        hints: bool = False,
        of_whole: bool = False,
        kw_only: bool = False,
    ) -> None:
        dataclass(eq=False, repr=False, kw_only=kw_only)(cls)
        cls.command = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", cls.__name__).lower()
        cls.source, cls.shown, cls.reading, cls.input = source, shown or {}, reading, input
        cls.has_hints, cls.of_whole = hints, of_whole
        QUESTIONS[cls.command] = cls

    def about(self, *programs: "Program") -> "Answer[D]":
        """The answer about a program, or about several."""
        module, _, function = self.source.partition(":")
        answer = getattr(import_module(f"hlofuse.library.{module}"), function)
        try:
            found: Answer[D] = answer(programs if self.input.endswith("...") else programs[0], self)
        except PartError as error:
            if self.of_whole or len(programs) > 1:
                raise
            from .answer import answer_about_part

            found = answer_about_part(self.command, error)
        return found


QUESTIONS: dict[str, type[Question[Any]]] = {}  # The questions by their commands

if TYPE_CHECKING:

    class QuestionMethod(Generic[P, D]):
        """A question as a method: its parameters are the options."""

        def __get__(self, program: object, owner: type) -> "Callable[P, Answer[D]]": ...

    def method_of(question: Callable[P, Question[D]]) -> QuestionMethod[P, D]:
        """The method that asks a question."""


SPACES = ("passes", "flags", "all")
METHODS = ("greedy", "evolve")
OBJECTIVES = ("time", "measured-time", "kernels", "bytes", "ops", "peak-memory")


def _axes(sweeps: Sequence[str]) -> dict[str, list[str]]:
    """The values to try by the name of their knob."""
    axes = {}
    for text in sweeps:
        name, equals, values = text.partition("=")
        listed = [v.strip() for v in values.split(",")]
        if not name or not equals or not all(listed):
            raise HlofuseError(f"--sweep {text}: expected NAME=VALUE,VALUE,…")
        if name in axes:
            raise HlofuseError(f"--sweep {name} is given twice")
        axes[name] = list(dict.fromkeys(listed))
    return axes


class Explain(
    Question[Any],
    source="explaining:explained",
    shown={"limit": limit(10, "Rows in each list; 0 shows all.")},
    hints=True,
):
    """Explain the module in INPUT: its kernels, their time, what fusion could still save and how.

    One screen: kernels, launches, time and bytes; bounds on the possible saving; changes that were tried
    on this module; the slowest kernels. --details adds, pass by pass, what was fused and refused,
    and by which rule.

    NAME selects kernels: a final name (as in a profiler), a name at the fusion input or before
    optimizations, a source line, model.py:42, or a part of an op_name, jit(f)/softmax.

    A fused module: its kernels, and why each pair of them was not fused. A module before optimizations: an
    approximate replay, marked as such. A TPU dump: what was fused, its time, and its memory."""

    name: str | None = argument("[NAME]", None)
    _: KW_ONLY
    details: bool = flag("--details", "Add every pass: what was fused and refused, and by which rule.")
    prove: bool = flag(
        "--prove",
        "Have XLA compile the changes that may apply; for a TPU too, with libtpu.",
    )
    tries: int = option(
        "--tries",
        "N",
        "Compilations of --prove at most.",
        12,
        kind="int",
        least=2,
    )
    python: str | None = option(
        "--python",
        "PATH",
        "Python whose JAX compiles for --prove and --measure.  [default: $HLOFUSE_PYTHON or this one]",
    )


class Why(
    Question["list[Found]"],
    source="reasons:why",
    shown={
        "limit": limit(20, "Decisions listed; 0 shows all."),
        "details": flag("--details", "Add every decision, and flags that disable a pass."),
    },
):
    """Explain why two instructions were fused or not; with one NAME, what it takes and keeps it apart.

    NAME is any name, with or without %: before fusion, of a new fusion, of XLA's final module (as in
    a profiler), a source line, model.py:42, or part of an op_name, jit(f)/softmax. If several
    instructions match, all are explained; for two NAMEs, all adjacent pairs."""

    name: str = argument("NAME")
    other: str | None = argument("[NAME]", None)


class Kernels(
    Question["KernelSelection"],
    source="kernels:kernels",
    shown={
        "limit": limit(20, "Kernels shown; 0 shows all."),
        "sort": option(
            "--sort", ("cost", "module"), "Slowest kernels first, or in the order of the module.", "cost"
        ),
    },
):
    """List the kernels of INPUT after fusion: who generates each, by which rule, and its launch dimensions.

    A module before fusion is replayed first; a fused or fully optimized one is
    taken as it is. NAME selects kernels: a final name (as in a profiler), a name at the
    fusion input or before optimizations, a source line, model.py:42, or part of an op_name, jit(f)/softmax.
    """

    name: str | None = argument("[NAME]", None)


class Memory(
    Question["MemoryUse"],
    source="memory:memory",
    shown={"limit": limit(20, "Arrays shown; 0 shows all.")},
    of_whole=True,
):
    """Show the memory of INPUT: arguments, results, temporaries, and the arrays alive at the peak.

    The bytes are those of XLA's buffer assignment on its final module. Where that is not in the
    dump, a replayed module stands for it, and the order of its instructions is an estimate."""

    memory: int | str | None = option(
        "--memory", "SIZE", "Memory that there is: 80GiB.  [default: that of the device, if known]"
    )


class Stats(
    Question["list[ModuleStatistics]"],
    source="statistics:stats",
    shown={"limit": limit(10, "Largest kernels shown; 0 shows all.")},
    input="INPUT...",
):
    """Count instructions, kernels, fusions, FLOP and bytes of modules at any stage.

    FLOP and bytes include all iterations of loops with a known trip count. In a
    dump directory the module before fusion is counted; with --after, --profile, --set, --disable,
    --enable or --passes, the module after the replayed passes."""

    after: bool = flag("--after", "Replay the fusion passes first and count the result.")


class Timeline(
    Question["list[PassTimeline]"],
    source="passes:timeline",
    shown={
        "limit": limit(5, "Largest changes listed first; 0 for none."),
        "every_dump": flag("--every-dump", "Include dumps without a change."),
    },
    reading="dumps",
    input="DUMP_DIR",
):
    """Show what each pass of a compilation did to the module, from the dumps in DUMP_DIR.

    For each pass: instructions and kernels before and after, rewrites, changes to
    fusions, and the time if file times show it. Unreadable dumps are listed and skipped."""

    every_module: bool = flag("--all", "Show every module in the directory.")


class TraceOp(
    Question["Provenance"],
    source="passes:trace_op",
    shown={"limit": limit(5, "Operations shown; 0 shows all.")},
    reading="dumps",
    input="DUMP_DIR",
):
    """Follow one operation through every pass to its final kernel.

    NAME is an instruction of any dump, with or without %; it is looked up in the first dump that has it and
    followed in both directions. A source line, model.py:42, or part of an op_name, jit(f)/softmax, selects
    every operation that has it. Instructions are matched by structure; a match by op_name alone is marked."""

    name: str = argument("NAME")


class WhatIf(
    Question[Any],
    source="changing:what_if",
    shown={"limit": limit(10, "Rules and edges listed; 0 shows all.")},
):
    """Rank changes to the module in INPUT by what they save; with --sweep, try other knob values.

    Every change is replayed: recipes that apply to the program, XLA flags, the versions given by
    --also and --also-flags, and each rule that refused a fusion, disabled alone. Rules that
    code generation needs stay. NAME, any name of kernels, selects the
    rules that refused to fuse these kernels with another."""

    name: str | None = argument("[NAME]", None)
    _: KW_ONLY
    sweep: Mapping[str, Iterable[float | str]] | None = option(
        "--sweep",
        "NAME=V1,V2,…",
        "Replay with each value of a knob or device number; several sweeps make a grid.",
        multiple=True,
        convert=_axes,
    )
    also_device: Sequence[str] = option("--also-device", "D", "Also sweep on this device.", multiple=True)
    also: "Sequence[Program | str]" = option(
        "--also", "FILE", "Add another version of the program as a row: its dump or directory.", multiple=True
    )
    also_flags: Sequence[str] = option(
        "--also-flags", "FLAGS", "Add the module compiled with these XLA flags as a row.", multiple=True
    )
    without_pass: Sequence[str] = option(
        "--without-pass",
        "PASS|all",
        "Compile without this XLA pass and show the difference; all: each pass that changes the module.",
        multiple=True,
    )
    confirm: bool = flag("--confirm", "With --without-pass: confirm by compiling with XLA:CPU (needs JAX).")


class Optimize(Question[Any], source="optimizing:optimized", reading="search", of_whole=True):
    """Search for passes and flags that make the module in INPUT faster than XLA's defaults.

    Every candidate is replayed to the final kernels and measured there: kernels, bytes, time with lower
    bounds for library calls. The result has no superfluous move. It is XLA's default if nothing is better."""

    space: str = option(
        "--space",
        SPACES,
        "What to change: passes run before XLA's own, XLA_FLAGS that skip passes, or both.",
        "all",
    )
    objective: str | None = option(
        "--objective",
        OBJECTIVES,
        (
            "What to minimize in the final module; ops counts before XLA's own passes.  [default:"
            " measured-time with a profile, else time]"
        ),
    )
    _: KW_ONLY
    passes: Sequence[str] | None = option(
        "--passes",
        "A,B,…",
        "Measure these passes and flags instead of searching.",
        convert=lambda text: [p.strip() for p in text.split(",")],
    )
    method: str = option("--search", METHODS, "Search method.", "evolve")
    seconds: float = option("--seconds", "S", "Seconds to search.", 60, kind="float", least=0.001)
    tries: int | None = option("--tries", "N", "Maximum number of sequences to try.", kind="int", least=1)
    seed: int = option("--seed", "N", "Random seed.", 0, kind="int")


class Check(Question["CheckResult"], source="measuring:check", input="INPUT...", of_whole=True, kw_only=True):
    """Check kernels, bytes, time and memory against a budget or baseline; report failures by line and rule.

    INPUT is a dump, a dump directory, a corpus or a profile (all modules unless --module selects one). A
    module before fusion is replayed; a fused one is taken as it is.

    With a profile, budgets and the baseline are about measured time, which no estimate is compared with.

    Exit status 0: OK, 1: failed, 2: wrong input or call."""

    max_kernels: int | None = option("--max-kernels", "N", "Maximum kernels per module.", kind="int", least=0)
    max_bytes: int | str | None = option(
        "--max-bytes", "SIZE", "Maximum bytes moved per module: 1500000, 1.5MB, 2GiB."
    )
    max_time: str | None = option("--max-time", "TIME", "Maximum time per module: 120us, 0.5ms.")
    max_memory: int | str | None = option(
        "--max-memory", "SIZE", "Maximum memory per module, arguments and results included: 80GiB."
    )
    baseline: str | Path | None = option(
        "--baseline",
        "FILE|DIR",
        "Reviewed state to compare with: one file, or a directory with one file per module.",
    )
    tolerance: float = option(
        "--tolerance",
        "PERCENT",
        "Tolerance for bytes, time and memory over the baseline.",
        0,
        kind="percent",
        least=0,
    )
    strict: bool = flag("--strict", "Fail on any difference from the baseline.")
    root: str | Path = option(
        "--root",
        "DIR",
        "Project directory that source paths are relative to.  [default: current directory]",
        "",
    )
