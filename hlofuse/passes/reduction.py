"""Passes that make reductions of several steps."""

from collections.abc import Sequence

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.ir import Computation, Instruction, Ints, Layout, Module, Predicate, Record, Shape
from hlofuse.ir.attributes.window import Window, WindowDimension
from hlofuse.rules.rewrites import LONG_SUM_ON_CPU
from hlofuse.trace import Recorder
from .base import Explained, Pass, VisitPass, replaced, substituted, visit_module
from .common import make
from .common.calls import inline
from .common.index_vectors import counted_loop
from .common.literals import scalar_of
from .common.shapes import array, inserted, permuted, without


class TreeReductionRewriter(Pass):
    """Long reductions in two steps (`xla/hlo/transforms/simplifiers/tree_reduction_rewriter.cc`)."""

    name = "tree_reduction_rewriter"
    is_skipped: Predicate
    window: int = 32

    def run(self, module: Module, recorder: Recorder) -> bool:
        return visit_module(module, ["reduce"], self._split, recorder, explained=self._explain())

    def _explain(self) -> Explained:
        def about(reduce: Instruction) -> str:
            longest = max((reduce.operand.sizes[d] for d in reduce.dimensions), default=0)
            return f"a reduction over {longest:,} elements, more than {self.window}, runs in two steps"

        return Explained(LONG_SUM_ON_CPU, about)

    def _split(self, reduce: Instruction) -> bool:
        if reduce.is_tuple or self.is_skipped(reduce):
            return False
        operand, init = reduce.operands
        sizes = operand.sizes
        if all(sizes[d] <= self.window for d in reduce.dimensions):
            return False
        window, left = [], []
        for d, size in enumerate(sizes):
            width = min(size, self.window) if d in reduce.dimensions else 1
            steps = -(-size // width) if width else 0
            padding = max((steps - 1) * width + width - size, 0)
            window.append(WindowDimension(width, width, padding // 2, padding - padding // 2))
            left.append(steps)
        function, shape = reduce.to_apply, array(init.element_type, left)
        first = make.reduce_window(reduce, shape, [operand, init], function, Window(window))
        second = make.reduce(reduce, first, init, reduce.dimensions, function)
        second.shape = reduce.shape
        return replaced(reduce, second)


_TRIVIAL = WindowDimension(1)
_BASE = 16  # elements of a block


class ReduceWindowRewriter(Pass):
    """Long cumulative sums in blocks (`xla/hlo/transforms/simplifiers/reduce_window_rewriter.cc`)."""

    name = "reduce-window-rewriter"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in module.computations:
            for x in computation.post_order():
                if x.opcode != "reduce-window" or not x.is_array:
                    continue
                new = self._in_blocks(x)
                if new is None and x.operand.rank == 1:
                    new = _of_two_dimensions(x)
                if new is not None:
                    changed |= substituted(x, new)
        return changed

    def _in_blocks(self, x: Instruction) -> Instruction | None:
        """`TryOptimizeCumSumOrProd`."""
        window: Window = x.attributes["window"]
        moved = [k for k, d in enumerate(window) if d != _TRIVIAL]
        if len(moved) != 1:
            return None
        dimension = moved[0]
        length = x.operand.sizes[dimension]
        if length <= _BASE:
            return None
        at = window[dimension]
        low, high = at.padding_low, at.padding_high
        forward = low in (length - 1, length) and high == 0
        reverse = high in (length - 1, length) and low == 0
        if at != WindowDimension(length, 1, low, high) or not (forward or reverse):
            return None
        return _Scan(x, dimension, length, forward, max(low, high) == length).create()


_NEUTRAL = {
    "add": (0,),
    "or": (0,),
    "xor": (0,),
    "multiply": (0, 1),
}
"""Starts that may be added once more (`IsTreeRewriteSafeInit`)."""


class AssociativeScanRewriter(VisitPass):
    """Scans as cumulative sums (`AssociativeScanRewriter` in the same file)."""

    name = "associative-scan-rewriter"
    opcodes = ("scan",)

    def handle(self, scan: Instruction) -> bool:
        """`TryOptimizeAssociativeScan`: forward, of one value, from a scalar, and nothing reads the carry."""
        raw = scan.attributes.raw
        of_one = raw("num_carries") == "1" and scan.operand_count == 2
        if raw("is_associative") != "true" or raw("is_reverse") == "true" or not of_one or scan.is_root:
            return False
        if any(not u.is_get_tuple_element or u.tuple_index for u in scan.users if u.users or u.is_root):
            return False
        source, start = scan.operands
        start = start.through("broadcast", "reshape")
        dimension, rank = scan.dimension, source.rank
        length = source.sizes[dimension]
        function = scan.to_apply
        values = function.root.operands
        if start.rank or function.root.opcode != "tuple" or values[0] is not values[1]:
            return False
        neutral = start.is_constant and scalar_of(start) in _NEUTRAL.get(values[0].opcode, ())
        if length > _BASE and not neutral and values[0].opcode not in ("minimum", "maximum"):
            return False
        if not all(x.opcode in ("parameter", "tuple") or is_elementwise(x) for x in function):
            return False
        moved = WindowDimension(length, 1, length - 1)
        window = Window(moved if d == dimension else _TRIVIAL for d in range(rank))
        summed = _of_scalars(function, function.parent)
        sums = make.reduce_window(scan, source.shape, [source, start], summed, window)
        return replaced(scan, make.tuple_of(scan, [sums, scan.second]))


class ScanExpander(VisitPass):
    """The other scans as loops (`xla/service/scan_expander.cc`)."""

    name = "scan_expander"
    opcodes = ("scan",)

    def handle(self, scan: Instruction) -> bool:
        dimension, carried = scan.dimension, int(scan.attributes["num_carries"])
        inputs, inits = scan.operands[: -carried or None], scan.operands[scan.operand_count - carried :]
        length = inputs[0].sizes[dimension]
        shapes = scan.shape.results
        outputs = shapes[: len(shapes) - carried]

        def step(values: Sequence[Instruction], carries: Sequence[Instruction]) -> list[Instruction]:
            """Results of one iteration, then what it carries on."""
            rows = [make.reshape(v, without(v.shape, [dimension]), v) for v in values]
            function = scan.to_apply
            call = make.add(rows[0], "call", function.root.shape, [*rows, *carries], called=function)
            found = make.elements(call, range(len(shapes))) if call.is_tuple else [call]
            results = make.tuple_of(call, found)
            inline(call)
            return list(results.operands)

        def row(shape: Shape) -> Shape:
            return inserted(without(shape, [dimension]), dimension, [1])

        def body(number: Instruction, state: list[Instruction]) -> list[Instruction]:
            values, written = state[carried : carried + len(inputs)], state[carried + len(inputs) :]
            place, zero = number, make.scalar(number, "s64", 0)
            if scan.attributes.raw("is_reverse") == "true":
                place = make.binary(number, "subtract", make.scalar(number, "s64", length - 1), number)

            def starts(x: Instruction) -> list[Instruction]:
                return [place if d == dimension else zero for d in range(x.rank)]

            slices = [make.dynamic_slice(number, v, starts(v), row(v.shape).dimensions) for v in values]
            found = step(slices, state[:carried])
            new = [make.reshape(number, row(w.shape), f) for w, f in zip(written, found, strict=False)]
            after = [
                make.dynamic_update_slice(number, w, n, starts(w)) for w, n in zip(written, new, strict=True)
            ]
            return [*found[len(outputs) :], *values, *after]

        if length == 1:
            found = step(inputs, inits)
            results = [make.reshape(scan, s, r) for s, r in zip(outputs, found, strict=False)]
            results += found[len(outputs) :]
        else:
            empty = [make.zeros(scan, s) for s in outputs]
            after = counted_loop(scan, [*inits, *inputs, *empty], body, length, "s64")
            results = [*after[carried + len(inputs) :], *after[:carried]]
        return replaced(scan, make.result_of(scan, results))


def _of_scalars(function: Computation, module: Module) -> Computation:
    body = Computation(f"{function.name}_rw_wrapper")
    clones = dict[Instruction, Instruction]()
    for x in function.post_order():
        if x.opcode != "tuple":
            clones[x] = x.clone([clones[o] for o in x.operands], shape=array(x.element_type))
            if x.is_parameter:
                clones[x].payload = str(1 - x.parameter_number)
            body.append_parsed(clones[x])
    body.root = clones[function.root.second]
    return module.add_computation(body)


def _blocks(shape: Shape, size: int) -> Shape:
    """With one more dimension, the most major one (`AppendMajorDimension`)."""
    layout = Layout((*shape.minor_to_major, shape.rank))
    return Shape(shape.element_type, (*shape.dimensions, size), layout)


class _Scan(Record):
    """`RewriteScanAsTreeReduction`."""

    x: Instruction
    dimension: int
    length: int
    forward: bool
    exclusive: bool

    def create(self) -> Instruction:
        x, init = self.x, self.x.second
        source, permutation = self._transpose()
        rank, last = source.rank, source.rank - 1
        padded = -(-self.length // _BASE) * _BASE
        if padded != self.length:
            source = make.padded(x, source, 0, padded - self.length, last, value=init)
        columns = padded // _BASE
        tiled = _blocks(self._resize(source.shape, last, columns), _BASE)
        within = self._reduce_window(make.reshape(x, tiled, source), tiled, rank, _BASE, _BASE - 1)
        total = make.reshape(x, without(tiled, [rank]), self._edge(within, rank))
        further = self._resize(total.shape, last, columns + 1)
        before = self._reduce_window(total, further, last, columns, columns)
        start = 0 if self.forward else 1
        before = make.part(x, before, start, start + columns, last)
        before = make.broadcast(x, tiled, before, range(rank))
        scan = make.add(x, "map", tiled, [within, before], called=x.to_apply, dimensions=range(rank + 1))
        scan = make.reshape(x, source.shape, scan)
        if self.dimension != last:
            scan = make.transpose(x, scan, permutation)
        if padded != self.length:
            scan = make.part(x, scan, 0, self.length, self.dimension)
        if self.exclusive:
            low, high = (1, 0) if self.forward else (0, 1)
            scan = make.padded(x, scan, low, high, self.dimension, value=init)
        return scan

    def _transpose(self) -> tuple[Instruction, Ints]:
        source = self.x.operand
        last = source.rank - 1
        order = list(range(last + 1))
        if self.dimension == last:
            return source, order
        order[self.dimension], order[last] = last, self.dimension
        return make.transpose(self.x, source, order, permuted(source.shape, order)), order

    def _resize(self, shape: Shape, dimension: int, size: int) -> Shape:
        sizes = tuple(size if d == dimension else n for d, n in enumerate(shape.dimensions))
        return Shape(shape.element_type, sizes, Layout(shape.minor_to_major))

    def _reduce_window(
        self,
        operand: Instruction,
        shape: Shape,
        dimension: int,
        size: int,
        padding: int,
    ) -> Instruction:
        low, high = (padding, 0) if self.forward else (0, padding)
        moved = WindowDimension(size, 1, low, high)
        window = Window(moved if d == dimension else _TRIVIAL for d in range(shape.rank))
        return make.reduce_window(self.x, shape, [operand, self.x.second], self.x.to_apply, window)

    def _edge(self, within: Instruction, dimension: int) -> Instruction:
        place = within.sizes[dimension] - 1 if self.forward else 0
        return make.part(self.x, within, place, place + 1, dimension)


def _of_two_dimensions(x: Instruction) -> Instruction:
    """`Replace1DReduceWindowWithReshape`."""
    operand, init = x.operands
    wider = make.reshape(x, _blocks(operand.shape, 1), operand)
    window = Window((*x.attributes["window"], _TRIVIAL))
    new = make.reduce_window(x, _blocks(x.shape, 1), [wider, init], x.to_apply, window)
    return make.reshape(x, x.shape, new)
