"""The answer of `kernels`: every kernel that runs, with time, bytes, and the rule that says who runs it."""

from hlofuse.format.terminal import Page
from hlofuse.inputs.choose_target import NO_TARGET
from hlofuse.pipelines import device_of
from hlofuse.reports.common.model import totals_json
from hlofuse.reports.common.names import launched_in
from hlofuse.reports.kernels import KernelSelection, kernel_selection
from hlofuse.reports.kernels.model import selection_json
from hlofuse.reports.kernels.text import print_selection
from .answer import Answer
from .heads import rests_on
from .naming import resolver_of
from .program import Program
from .questions import Kernels


def kernels(report: Program, options: Kernels) -> Answer[KernelSelection]:
    found = _selection(report, options.name)

    def draw(console: Page, sort: str = "cost") -> None:
        ordered = found.heaviest_first if sort == "cost" else list(found.kernels)
        print_selection(found, console.first(ordered), console)

    return Answer(
        "kernels",
        lambda: found,
        json=lambda data: {**selection_json(data), "totals": totals_json(report.totals, report.counted)},
        body=draw,
        rows_of="kernels",
        limit=20,
        **rests_on(report),
    )


def _selection(report: Program, name: str | None) -> KernelSelection:
    """The kernels that a name means; all for None."""
    loaded = report.loaded
    module, target, config = loaded.module, loaded.target, loaded.config
    if report.is_taken_as_it_is:
        loaded.note_device()
        account = None
        if report.identity.backend.value in NO_TARGET:
            target, account = report.identity.backend.value, report.account_as_it_is
        found = kernel_selection(module, target, loaded.release, device=loaded.device, account=account)
        return found if name is None else found.only(name, launched_in(module, name))
    facts = report.facts
    device = config.device if config is not None else device_of(target, None)[0]
    release, changes = facts.replay.config.release, report.observed.changes
    found = kernel_selection(facts.replay.final, target, release, device=device, facts=facts, what_if=changes)
    return found if name is None else found.only(name, resolver_of(facts).launched(name))
