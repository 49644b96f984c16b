"""A module after fusion, as markdown."""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.format.escape import command_line
from hlofuse.format.markdown import markdown, markdown_code, table
from hlofuse.format.units import bytes_text
from hlofuse.reports.fused.model import Fused
from hlofuse.reports.fused.phrases import BETTER, by_rule, contents, head_lines


def fused_markdown(f: Fused, *, limit: int = 10, better: Sequence[str] = ()) -> str:
    """The same as a markdown document."""
    (title, _), *rest = head_lines(f)
    out = [f"## {markdown(title)}\n", *(f"{markdown(line)}\n" for line, _ in rest)]
    if better:
        out.append(f"{BETTER} {markdown_code(command_line('explain', *better))}\n")
    rows = [[markdown_code(k.name), bytes_text(k.bytes), markdown(contents(k))] for k in f.kernels]
    out += ["### Kernels\n", table(["kernel", "moves", "what is in it"], rows[: limit or None], right=(1,))]
    pairs = [
        [
            markdown_code(b.producer),
            markdown_code(b.consumer),
            bytes_text(b.bytes_between),
            b.rule or "",
            markdown(f.rules[b.rule].title if b.rule in f.rules else b.reason),
        ]
        for _, refused in by_rule(f)
        for b in refused
    ]
    if pairs:
        heads = ["producer", "consumer", "bytes", "rule", "what stands in the way"]
        out += ["### Why these are still two kernels\n", table(heads, pairs[: limit or None], right=(2,))]
    return "\n".join(out)
