"""Recipes about what several kernels or readers share."""

from collections.abc import Callable, Iterable, Iterator

from hlofuse.analysis.elementwise import without_bitcasts
from hlofuse.ir.fusing import computation_of
from hlofuse.ir.graph import Instruction
from hlofuse.passes.common import make
from hlofuse.reports.advice.matching import Find, is_column_reduction, reader, readers, value_of
from hlofuse.reports.advice.recipe import Finding, Recipe, Situation
from hlofuse.reports.common import lineage

_MANY_KERNELS = 8
"""Kernels that do the same to different arrays."""


def _results_that(condition: Callable[[Instruction], bool]) -> Find:
    """Finds results of the program that are used in it, too."""

    def find(s: Situation) -> Iterator[Finding]:
        root, found = s.module.entry.root, []
        if root.opcode == "tuple" and len(root.operands) > 1:
            for result in dict.fromkeys(root.operands):
                if condition(without_bitcasts(result)):
                    found.append(result.name)
        if found:
            yield Finding(found[0], parts=tuple(found[1:]))

    return find


def _normalizes(x: Instruction) -> bool:
    """True for a statistic of rows that the same program spreads over the rows again."""
    if not x.shape.dimensions or not any(i.opcode in ("broadcast", "add", "fusion") for i in readers(x)):
        return False
    source = value_of(x)
    while source.opcode in ("multiply", "add", "rsqrt", "sqrt", "convert"):
        source = value_of(source.operands[0])
    return source.opcode == "reduce" and x.opcode != "parameter" and not is_column_reduction(source)


def _is_summed(x: Instruction) -> bool:
    """True for a computed array whose other readers are reductions."""
    others = [reader(u) for u in readers(x) if u.opcode != "tuple"]
    return (
        x.opcode not in ("parameter", "reduce") and bool(others) and all(u.opcode == "reduce" for u in others)
    )


def _drop_results(*results: Instruction) -> bool:
    entry = computation_of(results[0])
    root = entry.root
    remaining = [o for o in root.operands if o not in results]
    if not remaining:
        return False
    entry.root = make.tuple_of(root, remaining) if len(remaining) > 1 else remaining[0]
    return True


def _many_kernels(reductions: bool) -> Find:
    """Finds kernels, many of them, that do the same to small arrays."""

    def find(s: Situation) -> Iterator[Finding]:
        seen: dict[object, list[Instruction]] = {}
        for x in s.facts.launched_after.values():
            if x.opcode != "fusion" or sum(o.shape.byte_size for o in x.operands) > 1 << 20:
                continue
            body = tuple(i.opcode for i in x.called_computations[0] if i.opcode != "bitcast")
            is_result = all(u is s.facts.replay.after.entry.root for u in lineage.readers(x))
            if (not x.shape.dimensions and "reduce" in body) if reductions else is_result:
                seen.setdefault((body, len(x.operands)), []).append(x)
        for xs in seen.values():
            inside = s.inside(xs[0].name) if len(xs) >= _MANY_KERNELS else ()
            if inside:
                yield Finding(inside[0].name)

    return find


def _too_many_operands(s: Situation) -> Iterable[Finding]:
    for r in s.refusals("PF012"):
        for producer, _ in s.edges(r):
            yield Finding(producer.name, "PF012")
            break


SHARING = (
    Recipe(
        "drop-logged-statistics",
        "Do not return the mean or variance with what they normalize",
        _results_that(_normalizes),
        _drop_results,
    ),
    Recipe("drop-logged-summands", "Do not return what is summed", _results_that(_is_summed), _drop_results),
    Recipe(
        "update-as-one-vector", "Keep small arrays in one vector, update it", _many_kernels(reductions=False)
    ),
    Recipe("reduce-as-one-vector", "Concatenate small arrays, reduce once", _many_kernels(reductions=True)),
    Recipe("pass-one-stacked-array", "Pass the arrays stacked, as one argument", _too_many_operands),
)
