"""`stats --format markdown`."""

from __future__ import annotations

from hlofuse.format.markdown import markdown, markdown_code, table
from hlofuse.format.units import bytes_text, plural, quantity
from hlofuse.reports.common.phrases import times_text
from hlofuse.reports.stats.model import ModuleStatistics
from hlofuse.reports.stats.phrases import ONE_TURN, where


def statistics_markdown(modules: list[ModuleStatistics]) -> str:
    """The report as a markdown document."""
    return "\n".join(_module(m) for m in modules)


def _module(m: ModuleStatistics) -> str:
    out = [f"## {markdown(m.name)}\n"]
    if m.filename is not None:
        out.append(f"{markdown_code(m.filename)} ({m.stage})\n")
    out.append(
        f"**{plural(m.kernels, 'kernel')}, {bytes_text(m.cost.bytes_accessed)} moved,"
        f" {quantity(m.cost.flops)} flops, {quantity(m.cost.transcendentals)} transcendentals**\n"
    )
    if m.cost.unknown:
        out.append(f"{plural(m.cost.unknown, 'custom call')} not counted: XLA does not know their cost.\n")
    out.append(
        table(
            ("computation", "", "instructions", "kernels", "bytes", "flops"),
            (
                (
                    markdown_code(c.name),
                    c.role + times_text(c.turns),
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
    if any(c.turns > 1 for c in m.computations):
        out.append(f"{ONE_TURN}.\n")
    out.append(f"{plural(m.instructions, 'instruction')}: {_counts(m.opcodes)}\n")
    if m.fusions:
        out.append(f"{plural(sum(m.fusions.values()), 'fusion')}: {_counts(m.fusions)}\n")
    if m.heaviest:
        out.append(
            table(
                ("heaviest kernels", "kind", "operations", "bytes", "flops", "source"),
                (
                    (
                        markdown_code(k.name) + times_text(k.turns),
                        k.kind or markdown(k.opcode),
                        str(k.holds),
                        bytes_text(k.cost.bytes_accessed) if not k.cost.unknown else "unknown",
                        quantity(k.cost.flops + k.cost.transcendentals) if not k.cost.unknown else "unknown",
                        markdown(where(k)),
                    )
                    for k in m.heaviest
                ),
                right=(2, 3, 4),
            )
        )
    return "\n".join(out)


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{markdown(name)} {n:,}" for name, n in counts.items())
