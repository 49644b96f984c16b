"""`stats --format markdown`."""

from __future__ import annotations

from hlofuse.format.markdown import markdown, markdown_code, table
from hlofuse.format.units import bytes_text, quantity
from hlofuse.reports.common.phrases import times_text
from hlofuse.reports.stats.model import ModuleStatistics
from hlofuse.reports.stats.phrases import (
    ITERATIONS,
    counts,
    headline,
    kernel_figures,
    uncounted_line,
    where,
)


def statistics_markdown(modules: list[ModuleStatistics]) -> str:
    """The report as a markdown document."""
    return "\n".join(_module(m) for m in modules)


def _module(m: ModuleStatistics) -> str:
    out = [f"## {markdown(m.name)}\n"]
    if m.filename is not None:
        out.append(f"{markdown_code(m.filename)} ({m.stage})\n")
    out.append(f"**{', '.join(headline(m))}**\n")
    if uncounted := uncounted_line(m):
        out.append(f"{uncounted}.\n")
    out.append(
        table(
            ("computation", "", "instructions", "kernels", "bytes", "flops"),
            (
                (
                    markdown_code(c.name),
                    c.role + times_text(c.iterations),
                    f"{c.instructions:,}",
                    f"{c.kernels:,}",
                    bytes_text(c.cost.bytes_accessed),
                    quantity(c.cost.flops),
                )
                for c in m.computations
            ),
            right=(2, 3, 4, 5),
        )
    )
    if any(c.iterations > 1 for c in m.computations):
        out.append(f"{ITERATIONS}.\n")
    out += [f"{title}{_counts(by_name)}\n" for title, by_name in counts(m)]
    if m.heaviest:
        out.append(
            table(
                ("heaviest kernels", "kind", "operations", "bytes", "flops", "source"),
                (
                    (
                        markdown_code(k.shown) + times_text(k.iterations),
                        k.kind or markdown(k.opcode),
                        str(k.holds),
                        *kernel_figures(k),
                        markdown(where(k)),
                    )
                    for k in m.heaviest
                ),
                right=(2, 3, 4),
            )
        )
    return "\n".join(out)


def _counts(by_name: dict[str, int]) -> str:
    return ", ".join(f"{markdown(name)} {n:,}" for name, n in by_name.items())
