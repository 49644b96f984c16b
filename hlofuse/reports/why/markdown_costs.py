"""The cost story of a pair as markdown."""

from __future__ import annotations

from hlofuse.account import PairDetail
from hlofuse.format.escape import markdown, markdown_code
from hlofuse.format.markdown import table
from hlofuse.format.units import bytes_text, us_text
from hlofuse.reports.explain.cost_phrases import (
    choice_text,
    cost_heading,
    roofline,
    share_text,
    try_text,
    turning_text,
    why_saves,
    worth_text,
)
from hlofuse.reports.explain.model import Place


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
    out += [f"{markdown(remark)}\n" for remark in d.remarks]
    out.append(f"{markdown(turning_text(d, forbidden=forbidden))}\n")
    attempt = try_text(d, forbidden=forbidden)
    if attempt:
        out.append(f"{markdown(attempt)}\n")
    return "\n".join(out)
