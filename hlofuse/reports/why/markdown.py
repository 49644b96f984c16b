"""`why --format markdown`."""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.account import PairDetail
from hlofuse.format.markdown import cut, markdown, markdown_code, table
from hlofuse.format.units import bytes_text, us_text
from hlofuse.reports.common.costs import (
    choice_text,
    cost_heading,
    roofline,
    share_text,
    try_text,
    turning_text,
    why_saves,
    worth_text,
)
from hlofuse.reports.common.model import Place
from hlofuse.reports.common.phrases import advice_line, figures_text, made_by_lines, origin
from hlofuse.reports.why import Decision, PairAnswer, Story
from hlofuse.reports.why.phrases import (
    ANSWERS,
    answers_headline,
    before_fusion_lines,
    inside_lines,
    kernels_line,
    meant_line,
    more_answers_line,
    not_considered,
    pair_headline,
    refused_user_line,
    steps_text,
    story_headline,
    verdict,
)


def why_markdown(answer: Story | PairAnswer, *, limit: int = 20) -> str:
    """The answer as a markdown document."""
    out = _pair(answer, limit) if isinstance(answer, PairAnswer) else _story(answer, limit)
    return "\n".join(out)


def answers_markdown(
    answers: Sequence[Story | PairAnswer], queries: Sequence[str], *, limit: int = 20
) -> str:
    """What `print_answers` prints."""
    if len(answers) == 1:
        return why_markdown(answers[0], limit=limit)
    shown = answers[:ANSWERS] if limit else answers
    out = [f"## {markdown(answers_headline(queries, answers))}\n"]
    out += [why_markdown(a, limit=min(limit, ANSWERS)) for a in shown]
    if len(shown) < len(answers):
        out.append(f"{markdown(more_answers_line(answers[len(shown) :]))}\n")
    return "\n".join(out)


def _places(places: Sequence[Place]) -> str:
    rows = (
        (markdown_code(p.shown), markdown(p.opcode), markdown_code(p.shape), markdown(origin(p)))
        for p in places
    )
    return table(("instruction", "", "shape", "source"), rows)


def _pair(p: PairAnswer, limit: int) -> list[str]:
    out = [f"**{markdown(pair_headline(p))}**\n"]
    out += [f"({markdown(line)})\n" for line in (*before_fusion_lines(p), *inside_lines(p))]
    d = p.settled_by
    if d is not None:
        reason = f": “{markdown(d.reason)}”" if d.reason else ""
        out.append(f"{markdown(d.rule.code)}, {markdown_code(d.pass_name)} {steps_text(d)}{reason}\n")
        if d.rule.title:
            out.append(f"{markdown(d.rule.title)}. {markdown(d.rule.why)}\n")
        if p.refused_user is not None:
            out.append(f"{markdown(refused_user_line(p))}\n")
        if d.figures:
            out.append(f"{markdown(figures_text(d.figures))}\n")
    elif p.outcome == "not considered":
        out.append(f"{markdown(not_considered(p))}\n")
    elif p.path:
        out.append("Its value gets there by " + " → ".join(markdown_code(n) for n in p.path[:8]) + "\n")
    out += [f"{markdown(line)}\n" for line in made_by_lines(p.made_by)]
    out.append(_places(tuple(dict.fromkeys((p.producer, p.consumer)))))
    where = kernels_line(p)
    if where:
        out.append(f"{markdown(where)}\n")
    if p.cost is not None:
        out.append(pair_cost(p.cost, p.producer, forbidden=p.forbidden))
    if d is not None and d.event == "ineligible" and d.rule.advice and not p.made_by:
        out.append(f"{markdown(advice_line(d.rule))}\n")
    out.append(_decisions(p.decisions, limit))
    return out


def _story(s: Story, limit: int) -> list[str]:
    holders = () if s.holder is None else (s.holder,)
    out = [f"**{markdown(story_headline(s))}**\n"]
    removed = s.fate == "added" or (s.fate == "gone" and s.before_fusion)
    if not removed:
        out += [f"({markdown(line)})\n" for line in filter(None, (*before_fusion_lines(s), meant_line(s)))]
    out += [f"{markdown(line)}\n" for line in made_by_lines(s.made_by)]
    out.append(_places((s.described, *holders, *s.kernels[:4])))
    if s.holder is not None or removed:
        return out
    if s.holds:
        out.append(f"It holds {', '.join(markdown_code(n) for n in s.holds[:40])}\n")
    out.append(_decisions((*s.as_producer, *s.rewrites, *s.as_consumer), limit))
    return out


def _decisions(decisions: Sequence[Decision], limit: int) -> str:
    rows = []
    for d in decisions[: limit or None]:
        if d.event == "rewrite":
            what = "replaced" if d.added else "removed"
            pair = " → ".join(", ".join(map(markdown_code, names)) for names in (d.removed, d.added) if names)
        else:
            what = "fused" if d.event == "fuse" else "refused"
            pair = " → ".join(markdown_code(n) for n in (d.producer, d.consumer) if n)
        rows.append(
            (f"{markdown_code(d.pass_name)} {steps_text(d)}", what, pair, d.rule.code, markdown(verdict(d)))
        )
    more = cut(len(decisions), limit)
    return (
        table(("when", "outcome", "pair", "rule", ""), rows) + more if rows else "No pass decided anything.\n"
    )


def pair_cost(d: PairDetail, producer: Place, *, forbidden: bool) -> str:
    """What `print_pair_cost` prints."""
    out = [
        f"**{cost_heading(forbidden=forbidden)}**: {markdown(worth_text(d))}\n",
        f"{markdown(why_saves(d.cost, producer.opcode))}\n",
    ]
    kernels = (
        (label, markdown(roofline(k)), bytes_text(k.bytes_read), bytes_text(k.bytes_written))
        for label, k in d.cost.kernels
    )
    out.append(table(("", "kernel", "in", "out"), kernels, right=(2, 3)))
    choice = choice_text(d.cost.fused)
    if choice:
        out.append(f"{markdown(choice)}\n")
    now = {r.operand: r for r in d.consumer_reads}
    reads = [
        (
            f"{markdown_code(r.operand)} {markdown_code(r.shape)}",
            bytes_text(r.size),
            bytes_text(now[r.operand].read) if r.operand in now else "–",
            bytes_text(r.read),
            us_text(r.us),
            share_text(r),
        )
        for r in d.fused_reads
    ]
    if reads:
        out.append(table(("reads", "size", "consumer", "fused", "", ""), reads, right=(1, 2, 3, 4)))
    out += [f"{markdown(note)}\n" for note in d.notes]
    out.append(f"{markdown(turning_text(d, forbidden=forbidden))}\n")
    attempt = try_text(d, forbidden=forbidden)
    if attempt:
        out.append(f"{markdown(attempt)}\n")
    return "\n".join(out)
