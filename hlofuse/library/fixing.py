"""The answer of `fix`: edits of a program that compilation, equal values and measurement prove."""

from collections.abc import Callable
from difflib import unified_diff
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct, field

from hlofuse.account import Totals
from hlofuse.capture import Capture, Destination
from hlofuse.format import us_text
from hlofuse.inputs import load
from hlofuse.ir import HlofuseError, Module, Record, Strings
from hlofuse.judge.judge import Judge
from hlofuse.reports.advice.catalogue import WRITTEN
from hlofuse.reports.common.edits import Edit, edits
from hlofuse.reports.verdict.phrases import change_line
from hlofuse.reports.whatif.model import trial_of
from .opening import open as open_report
from .options import SILENT, Listener

Compile = Callable[[Path, Destination, Path], Capture]
"""Captures a program's file for a destination into a folder."""
CPU = Destination("cpu")
_LEAST = 0.01  # Part of the time that a change has to save, if measured in each quarter of the runs
_TIMEOUT = 120.0


class Fix(Record):
    recipe: str
    line: int
    gain: str
    proof: Strings
    diff: str


class Fixed(Struct):
    """A program before and after the edits that are proved."""

    before: Totals
    after: Totals
    text: str
    flags: list[str]  # Flags that help by a replay; they are set in the environment
    fixes: list[Fix] = field(default_factory=list)
    refused: dict[str, list[str]] = field(default_factory=dict)
    """Forms that were tried and are not offered, by reason, each with its line."""


class _Version:
    """A text of the program, compiled in a folder where all else is as next to the program."""

    def __init__(
        self,
        text: str,
        folder: Path,
        program: Path,
        compile: Compile,
        to: Destination,
    ) -> None:
        self.text, self._folder, self._compile, self._to = text, folder, compile, to
        self._file = _written(text, folder / "program", program)
        try:
            captured = compile(self._file, to, folder / "captured")
            if captured.errors:
                raise HlofuseError(next(iter(captured.errors.values())))
        except HlofuseError as error:  # it names the copy that is compiled
            raise HlofuseError(str(error).replace(str(self._file), str(program))) from None
        self.report = open_report(str(captured.largest.before))

    @cached_property
    def on_cpu(self) -> Module:
        """The program before optimizations for a CPU, where its values are judged."""
        folder = self._folder / "captured"
        if self._to != CPU:
            text = self.text.replace('implementation="cudnn"', 'implementation="xla"')
            file = _written(text, self._folder / "judged", self._file)
            folder = self._compile(file, CPU, self._folder / "cpu").folder
        return load(max(folder.glob("*/before_optimizations.hlo"), key=lambda file: file.stat().st_size))

    def edits(self) -> list[Edit]:
        """Those of lines that operations come from, which the backend can gain from."""
        frames = self.report.module.stack_frames
        own = {n for n, name in frames.files.items() if Path(name) == self._file}
        places = (p for p in frames.locations.values() if p.get("file_name_id") in own)
        found = edits(self.text, {p.get("line", 0) for p in places})
        backends = ("", self._to.target)
        return [e for e in found if e.recipe not in WRITTEN or WRITTEN[e.recipe].backend in backends]


def _written(text: str, folder: Path, program: Path) -> Path:
    folder.mkdir(parents=True)
    for other in program.resolve().parent.iterdir():
        if other.name != program.name:
            (folder / other.name).symlink_to(other)
    file = folder.resolve() / program.name
    file.write_text(text, encoding="utf-8")
    return file


def fixed(
    program: Path,
    text: str,
    compile: Compile,
    destination: Destination = CPU,
    *,
    measure: bool = False,
    tries: int = 24,
    python: str | None = None,
    listener: Listener = SILENT,
) -> Fixed:
    """The edits of a program that save time or memory and leave its values as they are, tried one by one.
    Each is compiled with those that were proved before it. XLA:CPU compares values."""
    with TemporaryDirectory(prefix="hlofuse-fix-") as scratch, Judge(python, _TIMEOUT) as judge:

        def version(number: int, text: str) -> _Version:
            return _Version(text, Path(scratch, str(number)), program, compile, destination)

        with listener.activity("compiling"):
            best = version(0, text)
            advice = best.report.verdict
        flags = [f"XLA_FLAGS={s.flag}" for s in advice.suggestions if s.flag]
        found = Fixed(best.report.totals, best.report.totals, text, flags)
        suggested = [s.recipe.partition("-")[0] for s in (*advice.suggestions, *advice.untried) if s.recipe]

        def rank(edit: Edit) -> int:
            kind = edit.recipe.partition("-")[0]
            return suggested.index(kind) if kind in suggested else len(suggested)

        number, seen = 0, set[object]()
        while number < tries:
            left = [e for e in best.edits() if (e.recipe, e.places) not in seen]
            edit = min(left, key=rank, default=None)
            if edit is None:
                break
            seen.add((edit.recipe, edit.places))
            base, most, fix, reasons = best, 0.0, None, list[str]()
            what = f"{edit.recipe or 'an edit'} at line {edit.line}"
            for form in edit.texts:
                number += 1
                try:
                    with listener.activity(f"trying {what}"):
                        new = version(number, form)
                        saved, gain, proof = _proved(base, new, judge, measure=measure)
                except HlofuseError as error:
                    reasons.append(str(error).splitlines()[:2][-1].strip())  # JAX's words, if it refused
                    saved = 0.0
                if saved <= most and fix is not None:
                    break
                if saved > most:
                    proof = ("replayed", *proof) if rank(edit) < len(suggested) else proof
                    lines = base.text.splitlines(), form.splitlines()
                    diff = "\n".join(unified_diff(*lines, program.name, program.name, lineterm=""))
                    best, most, fix = new, saved, Fix(edit.recipe, edit.line, gain, proof, diff)
            if fix is not None:
                found.fixes.append(fix)
            line = f"+{base.text.splitlines()[edit.line - 1]}"  # that an edit of the same kind wrote
            is_offered = any(f.recipe == edit.recipe and line in f.diff.splitlines() for f in found.fixes)
            for reason in reasons if not is_offered else ():
                found.refused.setdefault(reason[:100], []).append(what)
        found.after, found.text = best.report.totals, best.text
        return found


def _proved(
    old: _Version,
    new: _Version,
    judge: Judge,
    *,
    measure: bool,
) -> tuple[float, str, Strings]:
    """The saving, for comparisons and in words, and what proves it. HlofuseError for a reason against it."""
    before, after = old.report.totals, new.report.totals
    trial = trial_of(before, after, "compiled by XLA", (old.report.account, new.report.account))
    is_enough = trial.us_saved is None or trial.us_saved > _LEAST * (before.us or 0.0)
    if not measure and not (trial.saves_memory(before) or (trial.helps(before) and is_enough)):
        saves = f"saves less than {_LEAST:.0%}" if trial.helps(before) else "not faster"
        raise HlofuseError(f"{saves} by XLA's compilation")
    judged = judge.judge(old.on_cpu, new.on_cpu)
    if judged.verdict != "same":
        raise HlofuseError(f"values: {judged.verdict}")
    gain, saved = change_line(trial, before, (), ""), trial.us_saved or float(trial.launches_saved)
    if after.unknown > before.unknown:
        gain += " · the time of a library call is not known: measure"
    if not measure:
        return max(saved, 1e-6), gain, ("compiled by XLA", "values equal")
    times = judge.time(["a", "b"], 1.0, profile=False)
    a, b = times["a"], times["b"]
    if a.least_gain(b) < _LEAST * a.us:
        raise HlofuseError("not faster when measured")
    proof = ("compiled by XLA", "measured here", "values equal")
    return a.us - b.us, f"{us_text(a.us)} → {us_text(b.us)} measured · {gain}", proof
