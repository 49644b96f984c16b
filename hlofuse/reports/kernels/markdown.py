"""`kernels --format markdown`."""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.format.markdown import markdown, markdown_code, table
from hlofuse.reports.common.phrases import headline
from hlofuse.reports.kernels.model import Choice, KernelSelection
from hlofuse.reports.kernels.phrases import (
    because,
    cost_heading,
    cost_text,
    launch_text,
    note_lines,
    omitted,
    result_line,
    runner_figure,
)


def selection_markdown(s: KernelSelection, shown: Sequence[Choice]) -> str:
    """The report as a markdown document, with the kernels `shown`."""
    timed = any(k.us is not None for k in s.kernels)
    figure = "est." if timed else "bytes"
    out = [f"## {markdown(headline(s))}\n", f"**{markdown(result_line(s))}**\n"]
    out.append(
        table(
            ("run by", "kernels", figure),
            (
                (
                    markdown(r.name),
                    f"{r.kernels:,}",
                    runner_figure(r) if r.us is not None or not timed else "–",
                )
                for r in s.runners
            ),
            right=(1, 2),
        )
    )
    out.append(
        table(
            ("kernel", cost_heading(shown, timed=timed), "blocks × threads", "run by", "why", "source"),
            (
                (
                    markdown_code(k.shown),
                    cost_text(k),
                    launch_text(k),
                    markdown(k.run_by),
                    markdown("; ".join((because(k), *note_lines(k)))),
                    markdown(": ".join(filter(None, (k.layer, k.source)))),
                )
                for k in shown
            ),
            right=(1, 2),
        )
    )
    more = omitted(s, len(shown))
    if more:
        out.append(f"{more}\n")
    return "\n".join(out)
