"""`explain --format markdown`, for a pull request or a job summary."""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.format.escape import command_line
from hlofuse.format.markdown import cut, markdown, markdown_code, table
from hlofuse.format.units import bytes_text, listing, plural, ranges, us_text
from hlofuse.reports.common.costs import roofline
from hlofuse.reports.common.model import Refusal
from hlofuse.reports.common.phrases import advice_line, can_be_acted_on, created_by_lines, headline, origin
from hlofuse.reports.explain.explain import group_fused, group_refusals
from hlofuse.reports.explain.model import (
    BlockingRule,
    Explanation,
    FusedGroup,
    PassStory,
    Rewrite,
    Selection,
)
from hlofuse.reports.explain.phrases import (
    at_stake_text,
    blocking_line,
    blocking_title,
    bound_text,
    hot_kernel_name,
    hot_kernel_origin,
    hot_kernel_time,
    if_allowed,
    notes,
    nothing_blocks,
    pass_summary,
    result_line,
    rewrite_text,
    rewrites_by_rule,
    selected_kernel_lines,
    selection_line,
    share_of,
    sources,
    stories,
)

_NAMES = 12


def explanation_markdown(
    e: Explanation, *, input_arguments: Sequence[str] = (), limit: int = 10, only_refused: bool = False
) -> str:
    """The explanation as a markdown document."""
    out = [f"## {markdown(headline(e))}\n", f"**{markdown(result_line(e))}**\n"]
    if e.selected is not None:
        out += _selected(e, e.selected, limit)
    else:
        out += [f"{markdown(line)}\n" for line in (*notes(e), blocking_line(e)) if line]
        out += _hot_kernels(e) if not only_refused else []
    for story in stories(e, only_refused):
        out += _pass(story, e, limit, only_refused)
    out += _blocking_rules(e, input_arguments, limit)
    return "\n".join(out)


def _selected(e: Explanation, s: Selection, limit: int) -> list[str]:
    out = [f"### {markdown(selection_line(s, e))}\n"]
    for k in s.kernels[: limit or None]:
        first, *others = map(markdown, selected_kernel_lines(k, e, s))
        out.append(
            "\n".join([f"- {markdown_code(k.kernel.place.shown)} {first}", *(f"  {o}" for o in others)])
        )
    return [*out, cut(len(s.kernels), limit)]


def _hot_kernels(e: Explanation) -> list[str]:
    if len(e.hot_kernels) < 3:
        return []
    rows = [
        (
            hot_kernel_time(k),
            share_of(k, e),
            markdown(hot_kernel_name(k)),
            bound_text(k),
            markdown(hot_kernel_origin(k)),
        )
        for k in e.hot_kernels[:5]
    ]
    return [
        "### where the time goes in the end, launches included\n",
        table(("time", "", "kernel", "", "source"), rows, right=(0, 1)),
    ]


def _pass(story: PassStory, e: Explanation, limit: int, only_refused: bool) -> list[str]:
    out = [f"### {markdown_code(story.name)}: {pass_summary(story)}\n"]
    if story.fused and not only_refused:
        out.append(_fused(group_fused(story.fused), limit))
    if story.rewrites and not only_refused:
        out.append(_rewrites(story.rewrites, e))
    refused = [r for r in story.refused if r.between_kernels]
    if refused:
        out.append(_refused(group_refusals(refused), e, limit))
    return out


def _fused(groups: Sequence[FusedGroup], limit: int) -> str:
    if any(g.kernel is not None for g in groups):
        return _fused_timed(groups, limit)
    rows = []
    for g in groups[: limit or None]:
        took = listing([markdown_code(s.producer.name) for s in g.steps], _NAMES)
        rows.append(
            (
                ranges([s.step for s in g.steps]),
                markdown_code(g.fusion.shown) + (f" ×{len(g.equivalents) + 1}" if g.equivalents else ""),
                bytes_text(g.bytes_saved * (len(g.equivalents) + 1)),
                took,
                ", ".join(dict.fromkeys(s.rule or "" for s in g.steps)),
                markdown(sources(g)),
            )
        )
    heading = ("steps", "kernel", "saves", "took in", "rule", "source")
    return table(heading, rows, right=(2,)) + cut(len(groups), limit)


def _fused_timed(groups: Sequence[FusedGroup], limit: int) -> str:
    rows = [
        (
            markdown_code(g.fusion.shown) + (f" ×{len(g.equivalents) + 1}" if g.equivalents else ""),
            _time_saved(g),
            bytes_text(g.bytes_saved * (len(g.equivalents) + 1)),
            f"{len(g.steps):,}",
            markdown(roofline(g.kernel)) if g.kernel is not None else "",
            markdown(sources(g)),
        )
        for g in groups[: limit or None]
    ]
    heading = ("kernel", "saves", "", "steps", "now", "source")
    return table(heading, rows, right=(1, 2, 3)) + cut(len(groups), limit)


def _time_saved(g: FusedGroup) -> str:
    """Launches where the steps rested on no estimate."""
    copies = len(g.equivalents) + 1
    if g.us_saved is None:
        return plural(len(g.steps) * copies, "launch", "launches")
    return us_text(g.us_saved * copies)


def _rewrites(rewrites: Sequence[Rewrite], e: Explanation) -> str:
    rows = []
    for code, refused in rewrites_by_rule(rewrites).items():
        names = listing([markdown_code(rewrite_text(r)) for r in refused], _NAMES)
        rows.append(
            (code, markdown(e.rules[code].title) if code in e.rules else "", f"{len(refused):,}", names)
        )
    return table(("rule", "", "", "rewritten"), rows, right=(2,))


def _refused(groups: Sequence[list[Refusal]], e: Explanation, limit: int) -> str:
    rows: list[tuple[str, ...]] = []
    for refused in groups[: limit or None]:
        r = refused[0]
        rows.append(
            (
                markdown_code(r.producer.final or r.producer.name)
                + (f" ×{len(refused)}" if len(refused) > 1 else ""),
                markdown_code(r.consumer_final or r.consumer or "")
                + (f" (said of {markdown_code(r.refused_user)})" if r.refused_user else ""),
                at_stake_text(refused),
                bytes_text(sum(x.bytes_between for x in refused)),
                r.rule or "",
                markdown(r.reason or e.rules[r.rule].title if r.rule in e.rules else ""),
                markdown(origin(r.producer)),
            )
        )
    heading: tuple[str, ...] = ("refused", "into", "if fused", "bytes", "rule", "XLA says", "source")
    if not any(r.us_at_stake is not None for refused in groups for r in refused):
        heading = (*heading[:2], *heading[3:])
        rows = [(*row[:2], *row[3:]) for row in rows]
    return table(heading, rows, right=tuple(range(2, len(heading) - 3))) + cut(len(groups), limit)


def _blocking_rules(e: Explanation, input_arguments: Sequence[str], limit: int) -> list[str]:
    if not e.blocking_rules:
        return [f"{nothing_blocks(e)}\n"]
    out = [f"### {blocking_title(e).capitalize()}\n"]
    for o in e.blocking_rules[: limit or None]:
        out.append(_blocking_rule(o, input_arguments))
    out.append(cut(len(e.blocking_rules), limit))
    return out


def _blocking_rule(o: BlockingRule, input_arguments: Sequence[str]) -> str:
    first = o.refusals[0]
    why = command_line("why", *input_arguments, first.producer.name, first.consumer)
    figures = f"{plural(o.edges, 'edge')}, {bytes_text(o.bytes_between)}{if_allowed(o)}"
    lines = [f"- **{markdown(o.rule.code)}** {markdown(o.rule.title)} ({figures})"]
    explained = created_by_lines(first.created_by)
    lines += [f"  {markdown(line)}" for line in explained]
    if can_be_acted_on(o.rule) and not explained:
        lines.append(f"  {markdown(advice_line(o.rule))}")
    lines.append(f"  {markdown_code(why)}")
    return "\n".join(lines)
