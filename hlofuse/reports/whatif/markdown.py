"""`what-if --format markdown`."""

from __future__ import annotations

from hlofuse.format.markdown import markdown, markdown_code, table
from hlofuse.format.units import bytes_text
from hlofuse.reports.difference.phrases import warning_line
from hlofuse.reports.whatif import phrases
from hlofuse.reports.whatif.model import Ranking, Sweep


def ranking_markdown(r: Ranking, *, limit: int = 10) -> str:
    """The ranking as a markdown document."""
    out = [f"## {markdown(phrases.title(r))}\n"]
    if r.changes:
        out.append(f"> **{markdown(warning_line(r.changes))}**\n")
    out.append(f"{phrases.totals_line(r.after)}\n")
    note = phrases.untimed_note(r.after)
    if note:
        out.append(f"({note})\n")
    out.append(f"**{markdown(' '.join(phrases.lead(r)))}**\n")
    if r.relaxed and r.relaxed[0].saves:
        out += [f"{markdown(line)}\n" for line in phrases.advice(r.relaxed[0])]
        other = phrases.to_act_on(r)
        if other is not None:
            out.append(f"**{markdown(phrases.lead_to_act_on(other))}**\n")
            out += [f"{markdown(line)}\n" for line in phrases.advice(other)]
    shown = phrases.ranking_columns(r)
    changing = [x for x in r.relaxed if x.changes_anything][: limit or None]
    rows = [[markdown(phrases.ranking_row(x)[k]) for k in shown] for x in changing]
    if rows:
        out.append(table([phrases.RANKING_COLUMNS[k] for k in shown], rows, right=(1, 2, 3, 4, 5)))
    for line in (phrases.marks_line(x.difference for x in changing), phrases.idle_line(r)):
        if line:
            out.append(f"{markdown(line)}\n")
    for x in (x for x in r.relaxed if x.saves and x.blocks):
        out.append(f"### {x.rule.code} blocks\n")
        edges = [
            (
                markdown_code(phrases.edge_text(b)),
                bytes_text(b.bytes_between),
                markdown(b.producer.source or ""),
            )
            for b in x.blocks[: limit or None]
        ]
        out.append(table(("edge", "bytes", "source"), edges, right=(1,)))
    if r.fixed:
        out.append("### Cannot be relaxed\n")
        fixed = [
            (f.rule.code, f"{len(f.blocks):,}", markdown(f.rule.title), markdown(f.reason)) for f in r.fixed
        ]
        out.append(table(("rule", "edges it blocks", "", "because"), fixed, right=(1,)))
    return "\n".join(out)


def sweep_markdown(s: Sweep) -> str:
    """The sweep as a markdown document."""
    out = [f"## {markdown(phrases.sweep_headline(s))}\n"]
    out.append("> **Not XLA's behaviour, but for the rows marked XLA; per cent are against those.**\n")
    out += [f"- {markdown(phrases.axis_line(a, [v[k] for v in s.xla_values]))}" for k, a in enumerate(s.axes)]
    out.append("")
    note = phrases.untimed_note(s.xla[0])
    if note:
        out.append(f"({note})\n")
    columns = phrases.sweep_columns(s)
    shown = [k for k, c in enumerate(columns) if s.timed or c != "est. time"]
    rows = [[markdown(row[k]) for k in shown] for _, row in phrases.sweep_rows(s)]
    out.append(table([columns[k] for k in shown], rows, right=tuple(range(len(shown)))))
    out.append(f"{phrases.CHANGED_DECISIONS}\n")
    marks = phrases.marks_line(p.difference for p in s.points)
    if marks:
        out.append(f"{markdown(marks)}\n")
    return "\n".join(out)
