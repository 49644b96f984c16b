"""`explain --format markdown`, for a pull request or a job summary."""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.format.escape import command_line
from hlofuse.format.markdown import cut, markdown, markdown_code, table
from hlofuse.format.units import bytes_text, listing, plural, ranges, us_text
from hlofuse.reports.common.costs import roofline
from hlofuse.reports.common.model import Refusal
from hlofuse.reports.common.phrases import advice_line, can_be_acted_on, headline, origin
from hlofuse.reports.explain.explain import group_fused, group_refusals
from hlofuse.reports.explain.model import Explanation, FusedGroup, Obstacle, PassStory, Rewrite
from hlofuse.reports.explain.phrases import (
    at_stake_text,
    bound_text,
    dear_name,
    dear_origin,
    has_something_to_tell,
    held_back_line,
    if_allowed,
    notes,
    pass_summary,
    result_line,
    rewrite_text,
    rewrites_by_rule,
    share_of,
    sources,
)

_NAMES = 12


def explanation_markdown(
    e: Explanation, *, input_words: Sequence[str] = (), limit: int = 10, only_refused: bool = False
) -> str:
    """The explanation as a markdown document."""
    out = [f"## {markdown(headline(e))}\n", f"**{markdown(result_line(e))}**\n"]
    out += [f"{markdown(line)}\n" for line in (*notes(e), held_back_line(e)) if line]
    out += _dearest(e) if not only_refused else []
    for story in (p for p in e.passes if has_something_to_tell(p)):
        out += _pass(story, e, limit, only_refused)
    out += _obstacles(e, input_words, limit)
    return "\n".join(out)


def _dearest(e: Explanation) -> list[str]:
    if len(e.dearest) < 3:
        return []
    rows = [
        (
            us_text(k.us),
            share_of(k, e),
            markdown(dear_name(k)),
            bound_text(k),
            markdown(dear_origin(k)),
        )
        for k in e.dearest[:5]
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
    held = [r for r in story.refused if r.between_kernels]
    if held:
        out.append(_refused(group_refusals(held), e, limit))
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
                markdown_code(g.fusion.name) + (f" ×{len(g.alike) + 1}" if g.alike else ""),
                bytes_text(g.bytes_saved * (len(g.alike) + 1)),
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
            markdown_code(g.fusion.name) + (f" ×{len(g.alike) + 1}" if g.alike else ""),
            _time_saved(g),
            bytes_text(g.bytes_saved * (len(g.alike) + 1)),
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
    copies = len(g.alike) + 1
    if g.us_saved is None:
        return plural(len(g.steps) * copies, "launch", "launches")
    return us_text(g.us_saved * copies)


def _rewrites(rewrites: Sequence[Rewrite], e: Explanation) -> str:
    rows = []
    for code, held in rewrites_by_rule(rewrites).items():
        names = listing([markdown_code(rewrite_text(r)) for r in held], _NAMES)
        rows.append((code, markdown(e.rules[code].title) if code in e.rules else "", f"{len(held):,}", names))
    return table(("rule", "", "", "rewritten"), rows, right=(2,))


def _refused(groups: Sequence[list[Refusal]], e: Explanation, limit: int) -> str:
    rows: list[tuple[str, ...]] = []
    for held in groups[: limit or None]:
        r = held[0]
        rows.append(
            (
                markdown_code(r.producer.name) + (f" ×{len(held)}" if len(held) > 1 else ""),
                markdown_code(r.consumer or "")
                + (f" (said of {markdown_code(r.said_of)})" if r.said_of else ""),
                at_stake_text(held),
                bytes_text(sum(x.bytes_between for x in held)),
                r.rule or "",
                markdown(r.reason or e.rules[r.rule].title if r.rule in e.rules else ""),
                markdown(origin(r.producer)),
            )
        )
    heading: tuple[str, ...] = ("refused", "into", "if fused", "bytes", "rule", "XLA says", "source")
    if not any(r.us_at_stake is not None for held in groups for r in held):
        heading = (*heading[:2], *heading[3:])
        rows = [(*row[:2], *row[3:]) for row in rows]
    return table(heading, rows, right=tuple(range(2, len(heading) - 3))) + cut(len(groups), limit)


def _obstacles(e: Explanation, input_words: Sequence[str], limit: int) -> list[str]:
    if not e.obstacles:
        return ["Nothing stands between two kernels that a rule of these passes could allow.\n"]
    out = ["### What holds back most\n"]
    for o in e.obstacles[: limit or None]:
        out.append(_obstacle(o, input_words))
    out.append(cut(len(e.obstacles), limit))
    return out


def _obstacle(o: Obstacle, input_words: Sequence[str]) -> str:
    first = o.refusals[0]
    why = command_line("why", *input_words, first.producer.name, first.consumer)
    figures = f"{plural(o.edges, 'edge')}, {bytes_text(o.bytes_between)}{if_allowed(o)}"
    lines = [f"- **{markdown(o.rule.code)}** {markdown(o.rule.title)} ({figures})"]
    if can_be_acted_on(o.rule):
        lines.append(f"  {markdown(advice_line(o.rule))}")
    lines.append(f"  {markdown_code(why)}")
    return "\n".join(lines)
