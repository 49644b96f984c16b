"""What XLA:TPU fused, as markdown."""

from __future__ import annotations

from hlofuse.format.markdown import markdown, markdown_code, table
from hlofuse.format.units import bytes_text
from hlofuse.reports.diff import phrases
from hlofuse.reports.tpu.model import TpuPair
from hlofuse.reports.tpu.phrases import CLOSED, OTHERS, agreement_lines, differences, headline, kernels_line


def tpu_markdown(p: TpuPair, *, limit: int = 10) -> str:
    """The same as a markdown document."""
    out = [f"## {markdown(headline(p))}\n", f"{kernels_line(p)}\n", f"{CLOSED}\n", "### What TPU did\n"]
    rows = [
        [str(c.kind), markdown_code(phrases.what_happened(c)), markdown("; ".join(phrases.inside(c)))]
        for c in p.changes[: limit or None]
    ]
    out += [
        table(["", "fusion", "what is in it"], rows),
        "### How CPU and GPU would have done\n",
        f"{OTHERS}\n",
    ]
    out += [f"{markdown(line)}\n" for line in agreement_lines(p)]
    pairs = [
        [markdown(title), markdown_code(f"{e.producer} → {e.consumer}"), bytes_text(e.bytes_between)]
        for title, edges in differences(p)
        for e in edges[: limit or None]
    ]
    if pairs:
        out.append(table(["difference", "pair", "bytes"], pairs, right=(2,)))
    return "\n".join(out)
