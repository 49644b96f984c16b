"""`Report`: everything that hlofuse says of one module, worked out when it is asked for."""

from __future__ import annotations

import inspect
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hlofuse.ir import Module, replace
from hlofuse.reports.common.head import identity_line
from . import questions
from .answer import Answer
from .heads import head_of
from .program import Program
from .questions import QUESTIONS, Question

if TYPE_CHECKING:
    from hlofuse.diff import ModuleDiff
    from hlofuse.plot.figure import Plot
    from hlofuse.render import Drawing
    from hlofuse.reports.kernels import KernelSelection
    from hlofuse.reports.model_error import ModelError
    from hlofuse.reports.stats import ModuleStatistics
    from hlofuse.reports.upgrade import Upgrade
    from hlofuse.reports.verdict.model import Suggestion
    from .questions import method_of


class Report(Program):
    """XLA's fusion of one module: its result, reasons and improvements. `hlofuse.open` makes one. Every
    answer is computed on first use and cached. Every figure is that of the command line's JSON.
    `HlofuseError`, with a sentence for the user, says why an answer is impossible."""

    if TYPE_CHECKING:  # at run time the methods are created from `QUESTIONS` below
        explain = method_of(questions.Explain)
        why = method_of(questions.Why)
        kernels_of = method_of(questions.Kernels)
        memory = method_of(questions.Memory)
        stats_of = method_of(questions.Stats)
        timeline = method_of(questions.Timeline)
        trace_op = method_of(questions.TraceOp)
        what_if = method_of(questions.WhatIf)
        optimize = method_of(questions.Optimize)
        check = method_of(questions.Check)

    @cached_property
    def suggestions(self) -> Answer[tuple[Suggestion, ...]]:
        """Changes that were tried and help, greatest gain first; none for a module that is fused already."""
        from hlofuse.reports.verdict.json import verdict_json
        from hlofuse.reports.verdict.text import print_suggestions

        return Answer(
            "suggestions",
            lambda: self.verdict.suggestions,
            json=lambda _: verdict_json(self.verdict),
            body=lambda console: print_suggestions(self.verdict, console, console.limit or None),
            rows_of="suggestions",
            prints_heads=True,
        )

    @cached_property
    def kernels(self) -> Answer[KernelSelection]:
        """Every kernel, with time, bytes, and who runs it by which rule, as `hlofuse kernels`."""
        return self.kernels_of()

    @property
    def stats(self) -> Answer[list[ModuleStatistics]]:
        """Instructions, kernels, fusions, FLOP and bytes of the module, as `hlofuse stats`."""
        return self.stats_of()

    def without_pass(self, *names: str, confirm: bool = False) -> Answer[Any]:
        """The gain of XLA's passes, as `hlofuse what-if --without-pass`; `all` for each with an effect. With
        `confirm` XLA:CPU compiles as well, with the user's JAX."""
        return self.what_if(without_pass=names, confirm=confirm)

    @cached_property
    def model_error(self) -> Answer[ModelError]:
        """XLA's estimate of each kernel against the profile, as `hlofuse model-error`."""
        from hlofuse.reports.common.model import totals_json
        from hlofuse.reports.model_error import model_error, model_error_json, print_model_error

        device = self.loaded.device
        found = model_error(self.account, device.name if device is not None else None)
        return Answer(
            "model error",
            lambda: found,
            json=lambda data: {
                **model_error_json(data),
                "totals": totals_json(self.account.totals, self.counted),
            },
            body=lambda console: print_model_error(found, console),
            limit=20,
            rows_of="kernels",
            heads=[head_of(self.loaded, replayed=False) if self.is_fused else head_of(self.replay)],
        )

    def replayed_text(self, until: str = "fusion") -> str:
        """The module after XLA's fusion passes as HLO text, as `hlofuse replay`; `end`: after all passes."""
        from .verifying import replayed_until

        return replayed_until(self, until).text

    def upgrade(self, to: str | None = None, compiled: Report | None = None) -> Answer[list[Upgrade]]:
        """The fusions of another release of XLA, as `hlofuse upgrade`. `compiled` is the program as that
        release compiled it; its passes before fusion then count too. Without `to` it is the release of
        `compiled`, or the newest for a report with `xla`."""
        from .side_by_side import upgraded

        return upgraded(self.options, to, compiled.options if compiled is not None else None)

    def diff(self, other: Report | Module, *, metadata: bool = False) -> Answer[ModuleDiff]:
        """The differences of another module, as `hlofuse diff`: files as they were read, directories as they
        run.

        With `metadata` op_name and source lines count as differences. Times are those of each one's device.
        With profiles the kernels that run are compared, by measured time."""
        from .side_by_side import compared

        if not isinstance(other, Report):
            other = Report(replace(self.options, given=other, module=None))
        return compared(self, other, metadata=metadata)

    # To look at.

    def render(self, view: str | None = None, **how: Any) -> Drawing:
        """The module and its fusions as a picture, as `hlofuse render`; a notebook shows it. view: `before`,
        `after` or `both`; `how`: `focus`, `radius`, `open`, `max_nodes`, `legend` and `caption` of
        `hlofuse.render.render`. Names are any names. `Drawing.to_bytes("png")` writes one."""
        from .drawing import drawn

        return drawn(self, view, **how)

    def plot(self, kind: str = "passes") -> Plot:
        """Figures as a plot, as `hlofuse plot`: `passes`, `kernels`, `memory`."""
        from .drawing import plotted

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
        """The page of `hlofuse explore`: one HTML file as text, with every kernel and decision. With `other`,
        a device or a release it shows two modules side by side. `source` is the directory of the program,
        whose text it then contains. `Path("page.html").write_text(report.explore())` writes it."""
        from .drawing import explored

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


class _Method:
    """A question as a method, with its signature and help, which are created when it is first used."""

    def __init__(self, name: str, question: type[Question[Any]]) -> None:
        self._name, self._question = name, question

    def __get__(self, report: Report | None, owner: type[Report]) -> Any:
        question = self._question

        def method(self: Report, *arguments: Any, **options: Any) -> Answer[Any]:
            return question(*arguments, **options).about(self)

        own = inspect.signature(question)
        this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        method.__name__, method.__doc__ = self._name, question.__doc__
        everything = [this, *own.parameters.values()]
        signature = own.replace(parameters=everything, return_annotation="Answer")
        method.__signature__ = signature  # type: ignore[attr-defined]
        setattr(owner, self._name, method)
        return method.__get__(report, owner)


for _question in QUESTIONS.values():
    _name = {"kernels": "kernels_of", "stats": "stats_of"}.get(_question.command)
    _name = _name or _question.command.replace("-", "_")
    setattr(Report, _name, _Method(_name, _question))
