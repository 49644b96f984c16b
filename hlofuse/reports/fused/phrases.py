"""What a report says of a module after fusion, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hlofuse.format.units import plural
from hlofuse.reports.fused.model import Boundary, Fused, FusedKernel

_OPCODES = 6
BETTER = "The dump ahead of fusion lies beside it and tells every decision:"

Group = tuple[str, list[Boundary]]
"""A rule's code, or why nothing is known, and the pairs it is about."""


def head_lines(f: Fused) -> list[tuple[str, str]]:
    """The first lines, each with its style: the module, its figures, how the rules were asked."""
    on = f"{f.target} ({f.device})" if f.device else f.target
    kernels = plural(len(f.kernels), "kernel")
    between = plural(len(f.boundaries), "boundary", "boundaries")
    if f.selected is not None:
        kernels = f"{f.selected}: {kernels}"
    lines = [
        (f"{f.module} on {on}, after fusion ({f.evidence})", "bold"),
        (f"{kernels}, {between} between them; rules as in {f.release}", "bold"),
        (f.how, ""),
    ]
    if f.unknown:
        lines.append((f"Of {len(f.unknown):,} the reason is not known, and none is made up.", "yellow"))
    if f.right_file is None:
        lines.append(("Every decision in order is told by the dump ahead of fusion (docs/cli.md).", "dim"))
    return lines


def by_rule(f: Fused) -> list[Group]:
    """By rule, most bytes first; what is not known comes last."""
    found: dict[str, list[Boundary]] = {}
    for b in f.boundaries:
        found.setdefault(b.rule or b.reason, []).append(b)
    return sorted(found.items(), key=lambda g: (g[1][0].rule is None, -bytes_between(g[1]), g[0]))


def bytes_between(refused: Sequence[Boundary]) -> int:
    """Bytes that pass between these kernels."""
    return sum(b.bytes_between for b in refused)


def contents(k: FusedKernel) -> str:
    """`kLoop: add ×3, multiply`; the opcode of what is no fusion."""
    if not k.opcodes:
        return k.opcode
    counts = Counter(k.opcodes).most_common()
    parts = [f"{op} ×{n}" if n > 1 else op for op, n in counts[:_OPCODES]]
    return f"{k.kind}: {', '.join(parts)}{', …' if len(counts) > _OPCODES else ''}"
