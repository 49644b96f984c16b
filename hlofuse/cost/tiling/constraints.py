"""Conditions on tile sizes (`xla/codegen/tiling/constraint_expression.h`), and tilings with their estimates.
A condition is a disjunction of conjunctions of `expression in interval`, where the variables of an expression
are the tiling parameters. `ALWAYS` holds one empty conjunction, `NEVER` none."""

from collections.abc import Sequence
from dataclasses import dataclass

from hlofuse.cost.gpu.backend_config import FusionConfig, gpu_config_text
from hlofuse.cost.gpu.estimate import Estimate
from hlofuse.releases import Release, Span
from .expressions import CONSTANT, Expr
from .simplifier import Interval, intersect

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
        open_constraints = []
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
    """Ends an analysis. `parts` are texts, printable objects, and `Operation`s. The parts name operations by
    number, so that they hold for every fusion of the same structure."""

    def __init__(self, *parts: object, is_status: bool = False) -> None:
        super().__init__("not tiled")
        self.parts: Sequence[object] = (STATUS_PREFIX, *parts) if is_status else parts


# In the order in which XLA prints them.
_FIELDS = (
    ("num_warps", Span("0.7")),
    ("output_tile_sizes", Span(until="0.4.38")),
    ("output_tiles", Span("0.5")),
    ("num_warps", Span(until="0.6")),
    ("num_ctas", Span("0.6")),
    ("num_stages", Span("0.6")),
    ("is_tma_allowed", Span("0.7")),
    ("is_warp_specialization_allowed", Span("0.8")),
    ("waves_per_eu", Span("0.10")),
    ("num_tiles_per_pid", Span("0.11")),
    ("group_size", Span("0.11.2")),
)


def backend_config_text(config: FusionConfig, release: Release) -> str:
    """The backend config of a new Triton fusion as XLA prints it (`GetTritonGpuBackendConfig`)."""
    sizes = [[str(n) for n in tile] for tile in config.tile_sizes]
    values = {
        "num_warps": str(config.num_warps),
        "output_tile_sizes": sizes[0],
        "output_tiles": [{"sizes": tile} for tile in sizes],
        "num_ctas": 1,
        "num_stages": config.num_stages,
        "is_tma_allowed": False,
        "is_warp_specialization_allowed": False,
        "waves_per_eu": 0,
        "num_tiles_per_pid": 0,
        "group_size": 0,
    }
    block = {name: values[name] for name, span in _FIELDS if span.includes(release.name)}
    fusion = {"kind": config.kind, "block_level_fusion_config": block}
    return gpu_config_text("fusion_backend_config", fusion, release)


@dataclass(frozen=True, slots=True)
class Tiling:
    """One tiling with its cost."""

    estimate: Estimate  # Its rates include coalescing
    config: FusionConfig  # The backend config of a fusion with this tiling
    candidates: int
    parameters: tuple[int, ...]  # Tile sizes of every tiled dimension, contracting ones included
