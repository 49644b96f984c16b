"""Recipes about what several kernels or readers share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from hlofuse.analysis.bitcasts import without_bitcasts
from hlofuse.ir.graph import Instruction, Module
from hlofuse.passes.common import make
from hlofuse.reports.advice.pattern import is_column_reduction, places, reader, value_of
from hlofuse.reports.advice.recipe import Finding, Recipe
from hlofuse.reports.advice.situation import Situation

_EXPENSIVE = "exponential|exponential-minus-one|log|log-plus-one|sine|cosine|tan|tanh|logistic|erf|power|cbrt"
_MANY = 8
"""Kernels that do the same to different arrays."""


def _results_that(condition: Callable[[Instruction], bool]) -> Callable[[Situation], Iterator[Finding]]:
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


def _users(x: Instruction) -> Iterator[Instruction]:
    """Who reads a value, bitcasts passed over."""
    for user in x.users:
        if user.opcode == "bitcast":
            yield from _users(user)
        else:
            yield user


def _normalizes(x: Instruction) -> bool:
    """True for a statistic of rows that the same program spreads over the rows again."""
    if not any(i.opcode in ("broadcast", "add", "fusion") for i in _users(x)):
        return False
    source = value_of(x)
    while source.opcode in ("multiply", "add", "rsqrt", "sqrt", "convert"):
        source = value_of(source.operands[0])
    return source.opcode == "reduce" and x.opcode != "parameter" and not is_column_reduction(source)


def _is_summed(x: Instruction) -> bool:
    """True for a computed array whose other readers are reductions."""
    readers = [reader(u) for u in _users(x) if u.opcode != "tuple"]
    return (
        x.opcode not in ("parameter", "reduce")
        and bool(readers)
        and all(u.opcode == "reduce" for u in readers)
    )


def _drop_result(module: Module, finding: Finding) -> bool:
    root = module.entry.root
    remaining = [o for o in root.operands if o.name not in (finding.at, *finding.parts)]
    if root.opcode != "tuple" or not remaining or len(remaining) == len(root.operands):
        return False
    module.entry.root = make.tuple_of(root, remaining) if len(remaining) > 1 else remaining[0]
    return True


def _many_kernels(reductions: bool) -> Callable[[Situation], Iterator[Finding]]:
    """Finds kernels, many of them, that do the same to small arrays."""

    def find(s: Situation) -> Iterator[Finding]:
        seen: dict[object, list[Instruction]] = {}
        for x in s.facts.launched_after.values():
            if x.opcode != "fusion" or sum(o.shape.byte_size for o in x.operands) > 1 << 20:
                continue
            body = tuple(i.opcode for i in x.called_computations[0] if i.opcode != "bitcast")
            if ("reduce" in body) == reductions:
                seen.setdefault((body, len(x.operands)), []).append(x)
        for xs in seen.values():
            inside = s.inside(xs[0].name) if len(xs) >= _MANY else ()
            if inside:
                yield Finding(inside[0].name)

    return find


def _too_many_operands(s: Situation) -> Iterable[Finding]:
    for r in s.refusals("PF012"):
        for producer, _ in s.edges(r):
            yield Finding(producer.name, "PF012")
            break


def _same_function_of(x: Instruction) -> tuple[Instruction, Instruction] | None:
    """The two results of one function of one operand that an instruction combines, broadcast or not."""
    a, b = (without_bitcasts(o) for o in x.operands[-2:])
    a, b = (o.operands[0] if o.opcode == "broadcast" else o for o in (a, b))
    same = a.opcode == b.opcode and a.opcode in _EXPENSIVE and len(a.operands) == 1
    return (a, b) if same and a is not b and len(a.users) == len(b.users) == 1 else None


def _combine_arguments(module: Module, finding: Finding) -> bool:
    """exp(a) exp(b) becomes exp(a + b); a select of two results the result of a select."""
    x = module.find(finding.at)
    both = _same_function_of(x) if x is not None else None
    if x is None or both is None or any(o.opcode == "bitcast" for o in x.operands):
        return False
    spread = [
        make.copy_of(o, [f.operands[0]], o.shape) if o is not f else f.operands[0]
        for o, f in zip(x.operands[-2:], both, strict=True)
    ]
    if x.opcode == "select":
        argument = make.select(x, x.operands[0], spread[0], spread[1])
    else:
        argument = make.binary(x, "add", spread[0], spread[1])
    x.replace_all_uses_with(make.copy_of(both[0], [argument], x.shape))
    return True


SHARING = (
    Recipe(
        "drop-logged-statistics",
        "Do not return the mean or variance with what they normalize",
        _results_that(_normalizes),
    ),
    Recipe(
        "drop-logged-summands",
        "Do not return what is summed, if it is only logged",
        _results_that(_is_summed),
        _drop_result,
    ),
    Recipe(
        "update-as-one-vector",
        "Keep small arrays in one vector and update them at once",
        _many_kernels(reductions=False),
    ),
    Recipe(
        "reduce-as-one-vector",
        "Concatenate the small arrays and reduce them at once",
        _many_kernels(reductions=True),
    ),
    Recipe("pass-one-stacked-array", "Pass the arrays stacked, as one argument", _too_many_operands),
    Recipe(
        "one-exponential-of-the-sum",
        "Take one exponential of the sum: exp(a + b)",
        places(
            "multiply(broadcast(exponential), broadcast(exponential))",
            lambda x: _same_function_of(x) is not None,
        ),
        _combine_arguments,
    ),
    Recipe(
        "select-the-argument",
        "Select the argument of the function, not its result",
        places(
            f"select(_, {_EXPENSIVE}, {_EXPENSIVE})",
            lambda x: _same_function_of(x) is not None,
        ),
        _combine_arguments,
    ),
)
