"""`Report`: everything that hlofuse says of one module, worked out when it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlofuse.inputs.dump_directory import is_corpus_case
from hlofuse.ir.errors import HlofuseError
from hlofuse.library.answer import Answer
from hlofuse.library.heads import head_of
from hlofuse.library.naming import resolver_of
from hlofuse.library.program import Program
from hlofuse.pipelines import TARGETS, device_of
from hlofuse.reports.common.head import identity_line

if TYPE_CHECKING:
    from rich.console import Console

    from hlofuse.diff import ModuleDiff
    from hlofuse.ir.graph import Module
    from hlofuse.plot.figure import Plot
    from hlofuse.render import Drawing
    from hlofuse.render.viewers import LaunchedModule
    from hlofuse.reports.check import Check
    from hlofuse.reports.kernels import KernelSelection
    from hlofuse.reports.model_error.model import ModelError
    from hlofuse.reports.stats import ModuleStatistics
    from hlofuse.reports.timeline import PassTimeline
    from hlofuse.reports.trace_op.model import Provenance
    from hlofuse.reports.upgrade import Upgrade
    from hlofuse.reports.verdict.model import Suggestion
    from hlofuse.reports.why.story import Answer as Found


class Report(Program):
    """What XLA's fusion does with one module, why, and what would make it better.

    `hlofuse.open` makes one. Nothing is computed before it is asked for, and nothing twice. Every figure is
    that of the command line's JSON. HlofuseError, with a sentence for the user, says what cannot be had.
    """

    @cached_property
    def suggestions(self) -> Answer[tuple[Suggestion, ...]]:
        """Changes that were tried and help, greatest gain first; none for a module that is fused already."""
        from hlofuse.reports.verdict.json import verdict_json
        from hlofuse.reports.verdict.text import suggestion_lines

        def body(console: Console, limit: int = 10) -> None:
            for line, style in suggestion_lines(self.verdict, limit or None, console.width):
                console.print(line, style=style)

        return Answer(
            "suggestions",
            lambda: self.verdict.suggestions,
            json=lambda _: verdict_json(self.verdict),
            body=body,
            rows_of=lambda document: document["suggestions"],
            entries_of=lambda data: data,
            prints_heads=True,
        )

    def explain(
        self,
        name: str | None = None,
        *,
        only_pass: str | None = None,
        computation: str | None = None,
        only_refused: bool = False,
        details: bool = False,
    ) -> Answer[Any]:
        """What XLA fuses and what stops the rest, as `hlofuse explain`; `data` is an `Explanation`.

        With `name` it is about the kernels of that name, else about the whole module, whose verdict leads.
        `data` is a `Fused` for a module that is fused already, and a `TpuPair` for dumps of a TPU.
        """
        from hlofuse.library.explaining import explained

        return explained(self, name, only_pass, computation, only_refused, details)

    def compare_device(self, device: str) -> Answer[Any]:
        """What is decided otherwise on another device, as `hlofuse explain --compare-device`."""
        from hlofuse.reports.comparison.json import comparison_json
        from hlofuse.reports.comparison.reasons import compare_builds
        from hlofuse.reports.comparison.text import print_comparison

        found = compare_builds(self.replayed, self.options.on_device(self.replayed, device))
        return Answer(
            "comparison of devices",
            lambda: found,
            json=comparison_json,
            body=lambda console, limit=10: print_comparison(found, console, limit=limit),
            note=self.replayed.note,
            heads=[head_of(self.replay)],
        )

    def why(self, name: str, other: str | None = None) -> Answer[list[Found]]:
        """Why two instructions were fused or not; with one name, its whole story.

        A name is XLA's, before or after fusion, a profiler's, a source line `model.py:42`, or a part of an
        `op_name`. `data` lists a `Story` or a `PairAnswer` for each meaning, `rows()` their decisions.
        """
        from hlofuse.library.explaining import answers_about
        from hlofuse.reports.why.json import answers_json
        from hlofuse.reports.why.text import print_answers

        found = answers_about(self, name, other)
        queries = (name,) if other is None else (name, other)
        return Answer(
            " and ".join(queries),
            lambda: found,
            json=lambda data: answers_json(data, queries),
            body=lambda console, limit=20: print_answers(
                found, queries, console, input_arguments=self.options.input_arguments, limit=limit
            ),
            rows_of=_decisions,
            entries_of=lambda data: data,
            note=self.replayed.note,
            heads=[head_of(self.replay, names=self.names)],
            differences=[self.difference],
        )

    # What runs.

    @cached_property
    def kernels(self) -> Answer[KernelSelection]:
        """Every kernel, with time, bytes, and who runs it by which rule, as `hlofuse kernels`."""
        return self.kernels_of(None)

    def kernels_of(self, name: str | None) -> Answer[KernelSelection]:
        """The kernels that a name means; all for None."""
        from hlofuse.reports.common.json import totals_json
        from hlofuse.reports.kernels.json import selection_json
        from hlofuse.reports.kernels.text import print_selection

        found = self._selection(name)

        def draw(console: Console, limit: int = 20, sort: str = "cost") -> None:
            ordered = found.heaviest_first if sort == "cost" else list(found.kernels)
            print_selection(found, ordered[: limit or None], console)

        as_it_is = not found.replayed
        head = head_of(self.loaded, replayed=False) if as_it_is else head_of(self.replay, names=self.names)
        return Answer(
            "kernels",
            lambda: found,
            json=lambda data: {**selection_json(data), "totals": totals_json(self.totals, self.counted)},
            body=draw,
            rows_of=lambda document: document["kernels"],
            entries_of=lambda data: data.kernels,
            note=self.loaded.note if as_it_is else self.replayed.note,
            heads=[head],
            differences=[None if as_it_is else self.difference],
        )

    def _selection(self, name: str | None) -> KernelSelection:
        from hlofuse.reports.common.final_names import LaunchedNames
        from hlofuse.reports.common.names import launched_in
        from hlofuse.reports.kernels import kernel_selection

        loaded = self.loaded
        module, target, config = loaded.module, loaded.target, loaded.config
        device = config.device if config is not None else device_of(target, None)[0]
        if self.is_taken_as_it_is:
            self._listener.note(loaded.device_note)
            found = kernel_selection(module, target, loaded.release, device=device)
            return found if name is None else found.only(name, launched_in(module, name))
        replay = self.observed.replay
        found = kernel_selection(
            replay.final,
            target,
            replay.config.release,
            device=device,
            replay=replay,
            what_if=self.observed.changes,
            names=LaunchedNames(replay, self.names),
        )
        return found if name is None else found.only(name, resolver_of(self.facts).launched(name))

    @property
    def stats(self) -> Answer[list[ModuleStatistics]]:
        """Instructions, kernels, fusions, FLOP and bytes of the module, as `hlofuse stats`."""
        return statistics_of([self])

    @cached_property
    def model_error(self) -> Answer[ModelError]:
        """XLA's estimate of each kernel against the profile, as `hlofuse model-error`."""
        from hlofuse.reports.common.json import totals_json
        from hlofuse.reports.model_error.json import model_error_json
        from hlofuse.reports.model_error.model import model_error
        from hlofuse.reports.model_error.text import print_model_error

        device = self.loaded.device
        found = model_error(self.account, device.name if device is not None else None)
        return Answer(
            "model error",
            lambda: found,
            json=lambda data: {
                **model_error_json(data),
                "totals": totals_json(self.account.totals, self.counted),
            },
            body=lambda console, limit=20: print_model_error(found, console, limit),
            rows_of=lambda document: document["kernels"],
            entries_of=lambda data: data.kernels,
            heads=[head_of(self.loaded, replayed=False) if self.is_fused else head_of(self.replay)],
        )

    def replayed_text(self, until: str = "fusion") -> str:
        """The module after XLA's fusion passes as HLO text, as `hlofuse replay`; `end`: after all passes."""
        from hlofuse.library.writing import replayed_until

        return replayed_until(self, until).text

    # What would change it.

    def what_if(
        self,
        name: str | None = None,
        *,
        sweep: Mapping[str, Iterable[float | str]] | None = None,
        also_device: Sequence[str] = (),
        also: Sequence[Report] = (),
        also_flags: Sequence[str] = (),
    ) -> Answer[Any]:
        """Every change that was tried, in one list, as `hlofuse what-if`; `data` is a `Ranking`.

        With `name` only rules count that keep another kernel apart from those of that name. `also` are
        reports of other variants of the program, `also_flags` XLA flags to compile it with. With `sweep`
        (`{"launch_overhead_us": [1, 2]}`) `data` is a `Sweep` over a grid of values, on `also_device` too.
        """
        from hlofuse.library.changing import ranked, swept

        return ranked(self, name, also, also_flags) if sweep is None else swept(self, sweep, also_device)

    def without_pass(self, *names: str, confirm: bool = False) -> Answer[Any]:
        """What XLA's passes earn, as `hlofuse what-if --without-pass`; `all` for each that changes something.

        With `confirm` XLA:CPU compiles as well, with the user's JAX.
        """
        from hlofuse.library.changing import without_passes

        return without_passes(self, names, confirm)

    def optimize(self, space: str = "all", **how: Any) -> Answer[Any]:
        """Passes, flags or a fusion plan better than XLA's, as `hlofuse optimize`.

        space: `passes`, `flags`, `all` (both) or `fusion`; `how`: `objective`, `passes` (a list to measure),
        `method`, `seconds`, `tries`, `seed`, `policy`. `data` is a `Found` or a `PlanResult`; both have the
        best `module`.
        """
        from hlofuse.library.optimizing import optimized

        return optimized(self, space, **how)

    def upgrade(self, to: str | None = None, compiled: Report | None = None) -> Answer[list[Upgrade]]:
        """What another release of XLA fuses, as `hlofuse upgrade`; the newest unless `to` names one.

        `compiled` is the program as that release compiled it; its passes before fusion then count too.
        """
        from hlofuse.library.side_by_side import upgraded

        return upgraded(self.options, to, compiled.options if compiled is not None else None)

    def diff(self, other: Report | Module, *, metadata: bool = False) -> Answer[ModuleDiff]:
        """The differences of another module, as `hlofuse diff`: both as they were read.

        With `metadata` op_name and source lines count as differences. Times are those of each one's device.
        With profiles the kernels that run are compared, by measured time.
        """
        from hlofuse.library.side_by_side import compared

        second = other.options if isinstance(other, Report) else self.options
        return compared(
            self.module,
            other.module if isinstance(other, Report) else other,
            devices=(self.options.device, second.device),
            releases=(self.options.xla, second.xla),
            runs=(self, other) if isinstance(other, Report) and (self.measured or other.measured) else None,
            metadata=metadata,
            listener=self._listener,
        )

    def check(
        self,
        *,
        max_kernels: int | None = None,
        max_bytes: int | str | None = None,
        max_time: str | None = None,
        baseline: str | Path | None = None,
        tolerance: float = 0.0,
        strict: bool = False,
        root: str | Path = "",
    ) -> Answer[Check]:
        """What fusion leaves against a budget or a stored baseline, as `hlofuse check`: see `data.failed`.

        `max_bytes` is a number or `"1.5MB"`, `max_time` such as `"120us"`; `tolerance` is in percent.
        """
        from hlofuse.library.measuring import checked
        from hlofuse.reports.check.limits import Budget

        budget = Budget.of(max_kernels, max_bytes, max_time)
        baseline = Path(baseline) if baseline is not None else None
        return checked([self.options], budget, baseline, tolerance, strict, Path(root))[0]

    # The compilation.

    def timeline(self) -> Answer[list[PassTimeline]]:
        """What each pass of the compilation did, from a dump directory, as `hlofuse timeline`."""
        from hlofuse.library.passes import timelines_of

        return timelines_of(self._folder, self.options.module, False, self._listener, self.options.profile)

    def trace_op(self, name: str) -> Answer[Provenance]:
        """One operation followed through every pass to its kernel, as `hlofuse trace-op`."""
        from hlofuse.library.passes import followed

        return followed(self._folder, name, self.options.module, self._listener, self.options.profile)

    @property
    def _folder(self) -> str:
        path = Path(self.options.input)
        if path.is_dir():
            return str(path)
        if not is_corpus_case(path.parent):
            raise HlofuseError("this is about the passes of a compilation: open a dump directory")
        return str(path.parent)

    # To look at.

    def render(self, view: str | None = None, **how: Any) -> Drawing:
        """The module and its fusions as a picture, as `hlofuse render`; a notebook shows it.

        view: `before`, `after` or `both`; `how`: `focus`, `radius`, `open`, `collapse`, `max_nodes`, `legend`
        and `caption` of `hlofuse.render.render`, and `animate`: the SVG shows the fusion decisions one after
        the other. Names are any names. `Drawing.to_bytes("png")` writes one.
        """
        from hlofuse.library.drawing import drawn

        return drawn(self, view, **how)

    def launched(self, view: str | None = None) -> LaunchedModule:
        """The launches of a step, for `hlofuse.render.viewers`."""
        from hlofuse.library.drawing import launched

        return launched(self, view)

    def plot(self, kind: str = "passes") -> Plot:
        """Figures as a plot, as `hlofuse plot`: `passes`, `kernels` or `roofline`; a notebook shows it."""
        from hlofuse.library.drawing import plotted

        return plotted(self, kind)

    def explore(
        self,
        other: Report | None = None,
        *,
        compare_device: str | None = None,
        compare_xla: str | None = None,
        source: str | None = None,
        timeline: bool = True,
    ) -> Page:
        """The page of `hlofuse explore`: one HTML file as text, with every kernel and decision.

        With `other`, a device or a release it shows two modules side by side. `source` is the directory of
        the program, whose text it then contains. `Path("page.html").write_text(report.explore())` writes it.
        """
        from hlofuse.library.drawing import explored

        return Page(explored(self, other, compare_device, compare_xla, source, timeline))

    def __str__(self) -> str:
        return str(self.explain())

    def __repr__(self) -> str:
        return f"<Report of {identity_line(self.identity)}; print() shows it>"

    def _repr_html_(self) -> str:
        return self.explain()._repr_html_()


class Page(str):
    """An HTML file as text; its `repr` is short."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<HTML page of {len(self):,} characters>"


def statistics_of(reports: Sequence[Report], after: bool = False) -> Answer[list[ModuleStatistics]]:
    """Figures of several modules, as they were read; `after`, or a profile, replays fusion first."""
    from hlofuse.reports.common.final_names import LaunchedNames
    from hlofuse.reports.stats import statistics
    from hlofuse.reports.stats.json import statistics_json
    from hlofuse.reports.stats.text import print_statistics

    found, heads, notes, differences = [], [], [], []
    for report in reports:
        identity = report.identity
        target = identity.backend.value if identity.backend.value in TARGETS else "cpu"
        if (
            after
            or report.options.changes_xla
            or (report.options.profile is not None and not report.is_fused)
        ):
            replay = report.replay
            names = LaunchedNames(replay, report.names)
            heads.append(head_of(replay, names=names))
            notes.append(replay.input.note)
            differences.append(report.difference)
            found.append(partial(statistics, replay.final, target=target, names=names))
        else:
            heads.append(head_of(report.loaded, replayed=False))
            notes.append(report.loaded.note)
            found.append(partial(statistics, report.module, target=target, names=None))

    def draw(console: Console, limit: int = 10) -> None:
        print_statistics([s(heaviest=limit or None) for s in found], console)

    return Answer(
        "stats",
        lambda: [s(heaviest=None) for s in found],  # a list in JSON is complete: limits are for people
        json=statistics_json,
        body=draw,
        rows_of=lambda document: [k for m in document["modules"] for k in m["heaviest"]],
        entries_of=lambda data: [k for m in data for k in m.heaviest],
        note=next(filter(None, notes), ""),
        heads=heads,
        differences=differences,
    )


def _decisions(document: dict[str, Any]) -> Iterable[dict[str, Any]]:
    for answer in document.get("answers", [document]):
        for part in ("decisions", "as_producer", "as_consumer", "rewrites"):
            yield from answer.get(part, ())
