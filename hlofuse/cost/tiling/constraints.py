"""Conditions on tile sizes (`xla/codegen/tiling/constraint_expression.h`).

A condition is a disjunction of conjunctions of `expression in interval`, where the variables of an
expression are the tiling parameters. `ALWAYS` holds one empty conjunction, `NEVER` none."""

from collections.abc import Sequence
from dataclasses import dataclass

from hlofuse.cost.tiling.expressions import CONSTANT, Expr
from hlofuse.cost.tiling.simplifier import Interval, intersect

Constraint = tuple[Expr, Interval]
Conjunction = tuple[Constraint, ...]
Condition = tuple[Conjunction, ...]

ALWAYS: Condition = ((),)
NEVER: Condition = ()


def one(expr: Expr, interval: Interval) -> Condition:
    return (((expr, interval),),)


def either(a: Condition, b: Condition) -> Condition:
    return ALWAYS if () in a or () in b else a + b


def both(a: Condition, b: Condition) -> Condition:
    """The conjunction: all pairs of conjunctions with intersecting intervals on equal expressions."""
    if a == ALWAYS:
        return b
    if b == ALWAYS:
        return a
    return tuple(c for first in a for second in b if (c := _meet(first, second)) is not None)


def _meet(first: Conjunction, second: Conjunction) -> Conjunction | None:
    result = dict(first)
    for expr, interval in second:
        if (cached := result.get(expr)) is not None:
            interval = intersect(cached, interval)
            if interval[0] > interval[1]:
                return None
        result[expr] = interval
    return tuple(result.items())


def simplify(condition: Condition) -> Condition:
    """Constant expressions decided, duplicates removed (`ConstraintExpression::Simplify`)."""
    simplified: dict[Conjunction, None] = {}
    for conjunction in condition:
        open_constraints: list[Constraint] = []
        for expr, (lo, hi) in conjunction:
            if expr.kind != CONSTANT:
                if lo > hi:
                    break
                open_constraints.append((expr, (lo, hi)))
            elif not lo <= expr.value <= hi:
                break
        else:
            if not open_constraints:
                return ALWAYS
            open_constraints.sort(key=lambda c: (c[0].order, c[1]))
            simplified[tuple(dict.fromkeys(open_constraints))] = None
    return tuple(simplified)


# Why a fusion cannot be tiled, in XLA's words.

PREFIX = "Fusion can not be tiled with SymbolicTileAnalysis: "
STATUS_PREFIX = "TiledRunTimeDataOrError return status: "
"""Prefix of refusals that XLA reports as an error rather than as a decision."""


@dataclass(frozen=True, slots=True, eq=False)
class Refusal:
    """A refusal of `PriorityFusionQueue::CanFuseTriton`; its text is built on demand."""

    parts: tuple[object, ...]

    def __str__(self) -> str:
        return "".join(map(str, self.parts))


@dataclass(frozen=True, slots=True)
class Operation:
    """In a template, a placeholder for the text of the operation with this number."""

    number: int


class NotTiled(Exception):
    """Ends an analysis. `parts` are texts, printable objects, and `Operation`s.

    The parts name operations by number, so that they hold for every fusion of the same structure.
    """

    def __init__(self, *parts: object, is_status: bool = False) -> None:
        super().__init__("not tiled")
        self.parts: Sequence[object] = (STATUS_PREFIX, *parts) if is_status else parts
