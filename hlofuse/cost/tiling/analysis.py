"""Tiles of every operation of a fusion, derived from those of its root (`SymbolicTileAnalysis` in
`xla/codegen/tiling/symbolic_tile_analysis.cc`). An operation has one node for each distinct map from root
indices to its own. Each operand of a concatenate is a region of its own: a block computes only one."""

from typing import cast

from hlofuse.cost.tiling import constraints
from hlofuse.ir.grouping import post_order
from .constraints import ALWAYS, NEVER, Condition, NotTiled, Operation
from .expressions import VARIABLE, Expr, substitute, variable
from .fusion_view import FusionView
from .indexing_map import IndexingMap, compose_simplified, make_map, map_from_sizes
from .op_kinds import OpKind
from .size_and_stride import SymbolicTile, symbolic_tile
from .triton_support import DotDimensions

_MOST_CASES = 256  # of the joint condition of all nodes, where there are gaps


class TiledNode:
    """An operation under one map (`SymbolicTiledHloInstruction`)."""

    __slots__ = ("map", "op", "operands", "regions", "tile")

    tile: SymbolicTile

    def __init__(self, op: int, m: IndexingMap) -> None:
        self.op = op
        self.map = m
        self.operands: list[TiledNode] = []
        self.regions: list[list[TiledNode]] = []  # Operands first, the region's result last


class Analysis:
    """The tiled nodes of a view. Raises `NotTiled` with XLA's reason where there are none."""

    def __init__(self, view: FusionView, gaps: bool) -> None:
        """`gaps` are those that slices leave in rows (`size_and_stride`)."""
        self.view = view
        self._gaps = gaps
        self.sizes, self.first_parameter = self._parameters()
        self.conditions: list[Condition] = []
        self._joint: Condition = ALWAYS
        self._replace_points = not any(
            inside and _keeps_points(view, op) for op, inside in enumerate(view.inside)
        )
        if view.kinds[0].opcode == "fusion" and view.inside[0]:
            raise NotTiled("Root fusion instruction is not supported.")
        rank = len(view.kinds[0].dims)
        self.first_output = len(self.sizes_of_contraction(0))
        """Number of the parameter that tiles the output's first dimension."""
        self.root_map = map_from_sizes([variable(self.first_output + d) for d in range(rank)], self.sizes)
        self.nodes = self._region(TiledNode(0, self.root_map))  # Operands first, the root last

    def sizes_of_contraction(self, op: int) -> list[int]:
        """Extents of a dot's contracting dimensions, which are tiled too."""
        kind = self.view.kinds[op]
        if kind.opcode != "dot" or not self.view.inside[op]:
            return []
        return [kind.operand_dims[0][d] for d in dot_contraction(kind)]

    def _parameters(self) -> tuple[list[int], dict[int, int]]:
        """Extents of all parameters, and the number of each operation's first one."""
        view = self.view
        if view.kinds[0].shape.is_tuple:
            text = f" has non-array shape: {view.kinds[0].shape}"
            raise NotTiled("Instruction ", Operation(0), text)
        first = {0: 0}
        sizes = self.sizes_of_contraction(0) + list(view.kinds[0].dims)
        for op, kind in enumerate(view.kinds):
            if op and kind.opcode == "dot" and view.inside[op]:
                first[op] = len(sizes)
                sizes += self.sizes_of_contraction(op)
        return sizes, first

    def _region(self, root: TiledNode) -> list[TiledNode]:
        """All nodes below `root`, which comes last (`AnalyzeFromInstruction`)."""
        view = self.view
        seen: dict[tuple[int, IndexingMap], TiledNode] = {}
        worklist = [root]
        while worklist:
            node = worklist.pop()
            op = node.op
            self._set_tile(node)
            if not view.inside[op]:
                continue
            kind = view.kinds[op]
            if kind.opcode == "fusion":
                raise NotTiled("Nested fusions are not supported.")
            for position, (operand, m) in enumerate(zip(view.operands[op], kind.maps, strict=False)):
                if m is None:
                    raise NotTiled(
                        "Couldn't compose indexing of instruction ",
                        Operation(op),
                        " and operand ",
                        Operation(operand),
                    )
                composed = compose_simplified(node.map, m, self._replace_points)
                if composed.symbols and kind.opcode == "dot":
                    composed = parameters_for_contraction(
                        composed, kind.instruction_key, position, self.first_parameter[op]
                    )
                if kind.opcode == "concatenate":
                    region = self._region(TiledNode(operand, composed))
                    node.operands.append(region[-1])
                    node.regions.append(region)
                    continue
                cached = seen.get((operand, composed))
                is_loop = view.kinds[operand].opcode == "dot"
                if cached is None:
                    cached = seen[operand, composed] = TiledNode(operand, composed)
                    if is_loop:
                        cached = seen[operand, composed] = self._region(cached)[-1]
                    else:
                        worklist.append(cached)
                node.operands.append(cached)
        members = set(seen.values())
        nodes = post_order([root], lambda node: [o for o in node.operands if o in members])
        if view.kinds[root.op].opcode == "dot" and view.inside[root.op] and len(nodes) > 1:
            root.regions.append(nodes[:-1])
            return [root]
        return nodes

    def _set_tile(self, node: TiledNode) -> None:
        """`SetSymbolicTile`, and the joint condition of all nodes so far."""
        op = node.op
        kind = self.view.kinds[op]
        if self.view.inside[op]:
            if kind.opcode == "pad":
                raise NotTiled("Bailing out on ", Operation(op))
            if kind.opcode in ("reshape", "bitcast"):
                own = kind.maps[0]
                if own is None or symbolic_tile(own) is None:
                    text = "UNDEFINED\n" if own is None else own
                    raise NotTiled("Bailing out on reshape ", Operation(op), " with indexing map ", text)
        tile = symbolic_tile(node.map, self._gaps)
        if tile is None:
            raise NotTiled("Failed to compute symbolic tile for ", node.map, " for HLO ", Operation(op))
        if tile.condition == NEVER:
            raise NotTiled("Symbolic tile is not satisfiable for ", node.map, " for HLO ", Operation(op))
        node.tile = tile
        condition = tile.condition
        if condition != ALWAYS and condition not in self.conditions:
            self.conditions.append(condition)
            if self._gaps and len(self._joint) * len(condition) > _MOST_CASES:
                return
            self._joint = constraints.simplify(constraints.both(self._joint, condition))
            if self._joint == NEVER:
                raise NotTiled("Tiling constraints are unsatisfiable at HLO ", Operation(op))


def _keeps_points(view: FusionView, op: int) -> bool:
    """True if the operation needs its dimensions of size 1 (`ShouldDerivationSimplifyPointDimensions`)."""
    kind = view.kinds[op]
    if kind.opcode == "pad":
        return True
    if kind.opcode == "concatenate":
        along = kind.instruction_key[0]
        assert isinstance(along, int)
        return any(dims[along] == 1 for dims in kind.operand_dims)
    return kind.opcode == "dot" and has_small_contraction(kind)


def dot_contraction(kind: OpKind) -> tuple[int, ...]:
    return cast("DotDimensions", kind.instruction_key)[2]


def has_small_contraction(kind: OpKind) -> bool:
    """True for a contracting or free dimension of size 1 (`IsDotWithNonBatchPointDimension`)."""
    lhs_batch, rhs_batch, _, rhs_contracted = cast("DotDimensions", kind.instruction_key)
    lhs, rhs = kind.operand_dims
    return any(n == 1 for d, n in enumerate(lhs) if d not in lhs_batch) or any(
        n == 1 for d, n in enumerate(rhs) if d not in rhs_batch and d not in rhs_contracted
    )


def parameters_for_contraction(
    m: IndexingMap, key: tuple[object, ...], position: int, first_parameter: int
) -> IndexingMap:
    """The map with the dot's summed symbols made tiling parameters
    (`InsertTilingParameterForContractingDimensions`). `position` is the operand's, `first_parameter` the
    number of the dot's first parameter."""
    contracted = cast("DotDimensions", key)[2 + position % 2]
    rank = len(m.dims)
    values = [variable(i) for i in range(rank + len(m.symbols))]
    removed = set()
    for i, dimension in enumerate(contracted):
        symbol = _symbol_of(m.results[dimension], rank)
        if symbol is not None:
            values[symbol] = variable(first_parameter + i)
            removed.add(symbol)
    remaining = [s for s in range(rank, rank + len(m.symbols)) if s not in removed]
    for number, symbol in enumerate(remaining):
        values[symbol] = variable(rank + number)
    return make_map(
        [substitute(e, values) for e in m.results],
        m.dims,
        [m.symbols[s - rank] for s in remaining],
        [(substitute(e, values), r) for e, r in m.constraints],
    )


def _symbol_of(expr: Expr, rank: int) -> int | None:
    if expr.kind == VARIABLE:
        return expr.value if expr.value >= rank else None
    return _symbol_of(expr.lhs, rank) if expr.kind < VARIABLE else None
