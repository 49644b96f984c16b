"""An explanation of some kernels alone: those that a name means."""

from dataclasses import replace

from hlofuse.reports.common.names import Names
from hlofuse.reports.explain.explain import blocking_rules, hot_kernels, kernel_time_of, quoted_rules
from hlofuse.reports.explain.model import Explanation, PassStory, SelectedKernel, Selection


def selected(e: Explanation, name: str, names: Names) -> Explanation:
    """The explanation with only what is about the kernels that `name` means; the totals stay the module's.

    HlofuseError where nothing that is launched has the name.
    """
    facts, meant = names.facts, names.launched(name)
    kernels = tuple(
        SelectedKernel(k, kernel_time_of(k.place.name, facts), operations, facts.created_by(k.place.name))
        for k in e.kernels
        if (operations := meant.get(k.place.name)) is not None
    )
    stories = tuple(_about(p, set(meant), names) for p in e.passes)
    earlier, later = (
        tuple(p for p in (_about(p, set(meant), names) for p in around) if p.rewrites)
        for around in (e.earlier, e.later)
    )
    return replace(
        e,
        kernels=tuple(k.kernel for k in kernels),
        passes=stories,
        blocking_rules=blocking_rules(((p.name, p.refused) for p in stories), facts.rule),
        hot_kernels=hot_kernels(facts, meant),
        rules=quoted_rules((*earlier, *stories, *later), facts),
        earlier=earlier,
        later=later,
        selected=Selection(name.strip(), kernels),
    )


def _about(story: PassStory, kernels: set[str], names: Names) -> PassStory:
    final = names.facts.final_kernel
    return replace(
        story,
        fused=tuple(g for g in story.fused if g.fusion.name in kernels),
        refused=tuple(r for r in story.refused if not kernels.isdisjoint((r.kernel, r.consumer))),
        rewrites=tuple(r for r in story.rewrites if any(final(n) in kernels for n in (*r.removed, *r.added))),
    )
