"""Maps from indices of one array to those of another (`xla/hlo/analysis/indexing_map.h`). A map has dimension
variables d0 … (indices of the result) and range symbols s0 … (indices that are summed over), each with
bounds, one expression per result, and constraints on further expressions. XLA's run-time variables come only
from operations Triton refuses, and are left out. Maps are interned: equal maps are the same object."""

from collections.abc import Iterable, Sequence
from functools import cache

from .expressions import CONSTANT, VARIABLE, ZERO, Expr, substitute, to_text, variable, variables_of
from .simplifier import Interval, Simplifier, contains, intersect


class IndexingMap:
    """A map from indices to indices; made by `make_map`, immutable."""

    __slots__ = ("constraints", "dims", "results", "symbols")

    dims: tuple[Interval, ...]
    symbols: tuple[Interval, ...]
    results: tuple[Expr, ...]
    constraints: tuple[tuple[Expr, Interval], ...]

    @property
    def bounds(self) -> tuple[Interval, ...]:
        """Bounds by variable number: dimensions, then symbols."""
        return self.dims + self.symbols

    def __str__(self) -> str:
        """The map in XLA's form (`indexing_map_serialization.cc`)."""
        if any(lo > hi for lo, hi in self.bounds):
            return "KNOWN EMPTY\n"
        dims = [f"d{i}" for i in range(len(self.dims))]
        symbols = [f"s{i}" for i in range(len(self.symbols))]
        names = dims + symbols
        text = f"({', '.join(dims)})" + (f"[{', '.join(symbols)}]" if symbols else "")
        text += f" -> ({', '.join(to_text(e, names) for e in self.results)})"
        parts = [f"{n} in [{lo}, {hi}]" for n, (lo, hi) in zip(names, self.bounds, strict=True)]
        parts += sorted(f"{to_text(e, names)} in [{lo}, {hi}]" for e, (lo, hi) in self.constraints)
        return f"{text}, domain: {', '.join(parts)}" if parts else text


_MAPS: dict[object, IndexingMap] = {}


def make_map(
    results: Sequence[Expr],
    dims: Sequence[Interval],
    symbols: Sequence[Interval] = (),
    constraints: Iterable[tuple[Expr, Interval]] = (),
) -> IndexingMap:
    pairs = tuple(constraints)
    key = (tuple(results), tuple(dims), tuple(symbols), pairs if len(pairs) < 2 else frozenset(pairs))
    found = _MAPS.get(key)
    if found is None:
        found = IndexingMap()
        found.results, found.dims, found.symbols, found.constraints = key[0], key[1], key[2], pairs
        _MAPS[key] = found
    return found


def map_from_sizes(results: Sequence[Expr], dims: Sequence[int], symbols: Sequence[int] = ()) -> IndexingMap:
    """A map whose variables run from 0 to the given sizes (`IndexingMap::FromTensorSizes`)."""
    return make_map(results, [(0, d - 1) for d in dims], [(0, s - 1) for s in symbols])


class _Draft:
    """A map under construction. Bounds and constraints only get tighter."""

    def __init__(
        self,
        results: Sequence[Expr],
        rank: int,
        bounds: Sequence[Interval],
        constraints: Iterable[tuple[Expr, Interval]],
    ) -> None:
        self.results = list(results)
        self.rank = rank
        self.bounds = list(bounds)
        self.constraints = dict[Expr, Interval]()
        self.empty = False
        if any(lo > hi for lo, hi in bounds):
            self.reset()
            return
        for expr, interval in constraints:
            self.constrain(expr, interval)

    def reset(self) -> None:
        """Become the canonical map without indices (`ResetToKnownEmpty`)."""
        self.empty = True
        self.results = [ZERO] * len(self.results)
        self.bounds = [(0, -1)] * len(self.bounds)
        self.constraints = {}

    def constrain(self, expr: Expr, interval: Interval) -> None:
        """Add a constraint; on a variable it tightens the bounds (`AddConstraint`)."""
        if self.empty:
            return
        if expr.kind == CONSTANT:
            interval = intersect((expr.value, expr.value), interval)
        elif expr.kind == VARIABLE:
            interval = self.bounds[expr.value] = intersect(self.bounds[expr.value], interval)
        else:
            if expr in self.constraints:
                interval = intersect(self.constraints[expr], interval)
            self.constraints[expr] = interval
        if interval[0] > interval[1]:
            self.reset()

    def simplify(self, replace_points: bool) -> None:
        """Simplify the constraints, then the results within them (`IndexingMap::Simplify`)."""
        changed = True
        while changed and self.constraints:
            changed = self._simplify_constraints()
        if not self.empty:
            simplifier = Simplifier(self.bounds, self.constraints, replace_points)
            self.results = [simplifier.simplify(e) for e in self.results]

    def _simplify_constraints(self) -> bool:
        """True if a constraint changed; those that always hold are dropped."""
        simplifier = Simplifier(self.bounds)
        old, self.constraints, changed = self.constraints, {}, False
        for expr, interval in old.items():
            simple, interval = simplifier.narrow(simplifier.simplify(expr), interval)
            if not contains(interval, simplifier.range_of(simple)):
                self.constrain(simple, interval)
                changed = changed or simple is not expr
        return changed

    def drop_unused_symbols(self) -> None:
        """Drop symbols that neither a result nor a constraint uses (`RemoveUnusedSymbols`)."""
        count = len(self.bounds)
        if count == self.rank:
            return
        unused = set(range(self.rank, count)).difference(
            *map(variables_of, (*self.results, *self.constraints))
        )
        if not unused:
            return
        values, bounds, number = [], [], 0
        for i in range(count):
            if i in unused:
                values.append(ZERO)
            else:
                values.append(variable(number))
                bounds.append(self.bounds[i])
                number += 1
        self.results = [substitute(e, values) for e in self.results]
        self.bounds = bounds
        old, self.constraints = self.constraints, {}
        for expr, interval in old.items():
            self.constrain(substitute(expr, values), interval)

    def freeze(self) -> IndexingMap:
        return make_map(
            self.results, self.bounds[: self.rank], self.bounds[self.rank :], self.constraints.items()
        )


@cache
def simplify_keeping_points(m: IndexingMap) -> IndexingMap:
    """The map simplified, size-1 dimensions kept (`Simplify(kPreserve)`)."""
    draft = _Draft(m.results, len(m.dims), m.bounds, m.constraints)
    draft.simplify(replace_points=False)
    return draft.freeze()


def _compose(first: IndexingMap, second: IndexingMap) -> _Draft:
    rank, inner = len(first.dims), len(second.symbols)
    # Symbols of the composition: those of the second map, then those of the first.
    moved = [variable(i) for i in range(rank)] + [
        variable(rank + inner + i) for i in range(len(first.symbols))
    ]
    results = (
        first.results if not inner or not first.symbols else [substitute(e, moved) for e in first.results]
    )
    values = [*results, *(variable(rank + i) for i in range(inner))]
    draft = _Draft(
        [substitute(e, values) for e in second.results],
        rank,
        first.dims + second.symbols + first.symbols,
        [(substitute(e, values), r) for e, r in second.constraints],
    )
    for expr, interval in first.constraints:
        draft.constrain(substitute(expr, moved), interval)
    for expr, interval in zip(results, second.dims, strict=True):
        draft.constrain(expr, interval)
    return draft


@cache
def compose_simplified(first: IndexingMap, second: IndexingMap, replace_points: bool) -> IndexingMap:
    """The composition as a fusion analysis uses it: simplified, without unused symbols."""
    draft = _compose(first, second)
    draft.simplify(replace_points)
    draft.drop_unused_symbols()
    return draft.freeze()


def identity(dims: Sequence[int]) -> IndexingMap:
    """The map of every index to itself (`CreateIdentityMap`)."""
    return map_from_sizes([variable(i) for i in range(len(dims))], dims)
