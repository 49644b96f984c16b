"""Recipes about loops."""

import json
import re
from collections.abc import Callable
from functools import partial

from hlofuse.analysis.custom_calls import calls_python
from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.analysis.kernels import CONTROL_FLOW
from hlofuse.ir import Computation, Instruction, Instructions, Shape, callees, reach, set_attribute
from hlofuse.passes.common import make
from hlofuse.passes.common.calls import clone_computation, inline, replace_parameter, set_called
from hlofuse.passes.common.literals import integer_of
from hlofuse.passes.common.shapes import with_dimensions
from hlofuse.passes.dce import TupleSimplifier
from hlofuse.passes.loop.parts import (
    body_of,
    condition_of,
    drop_unused,
    gathers_again,
    is_element,
    new_loop,
    only_elements_are_read,
)
from hlofuse.passes.loop.trip_count import Counter, counter_of
from hlofuse.trace import OnlySkipped
from .matching import SMALL_BYTES, Find, each, has, origins
from .recipe import Recipe
from .written import starts_at


def unrolled(loop: Instruction, times: int | None, nearest: bool = True) -> bool:
    """Have the loop do so many iterations in one, as `jax.lax.scan` does; None for all, without a loop. With
    `nearest` one more or one less where the trip count asks for that."""
    counter, body = plain_counter(loop), body_of(loop)
    if counter is None or any(x.control_predecessors for x in body):
        return False
    if times is None:
        replace_state(loop, _Unrolling(loop, counter, counter.trips).whole())
        return True
    times = next(
        (n for n in (times, times + nearest, times - nearest) if n > 1 and counter.trips % n == 0), None
    )
    if times is None or times * len(body.post_order()) > _UNROLLED:
        return False
    _Unrolling(loop, counter, times).replace_loop()
    return True


def plain_counter(loop: Instruction) -> Counter | None:
    """The counter of a loop that goes up from 0 one by one, and whose state is read by its elements."""
    counter, is_tuple = counter_of(loop), body_of(loop).root.opcode == "tuple"
    if counter is None or counter.step != 1 or counter.init or not counter.trips or not is_tuple:
        return None
    return counter if only_elements_are_read(loop) else None


def replace_state(loop: Instruction, state: Instructions) -> None:
    """Have all that reads the loop read these elements."""
    for element in list(loop.users):
        if element.is_get_tuple_element and element not in state:
            element.replace_all_uses_with(state[element.tuple_index])
    loop.replace_all_uses_with(make.tuple_of(loop, state))


def _in_shape(x: Instruction, shape: Shape) -> Instruction:
    """The same elements in another shape; one number everywhere, as JAX broadcasts it at first."""
    if x.shape == shape:
        return x
    if x.is_broadcast and not x.dimensions:
        return make.broadcast(x, shape, x.operand)
    return make.bitcast(x, shape)


class _Unrolling:
    """The body of a loop so many times, one after the other, as `jax.lax.scan` writes it with `unroll`. An
    array of which each iteration reads or writes its own part has a block for each new iteration."""

    def __init__(
        self,
        loop: Instruction,
        counter: Counter,
        times: int,
    ) -> None:
        self._loop, self._times, self._counter = loop, times, counter
        self._body = body_of(loop)
        self._number = counter.index
        self._blocks: dict[Instruction, Instruction] = {}
        self._updates: dict[Instruction, Instructions] = {}
        self._along = {}
        for x in self._body:
            if (along := self._own_part(x)) is not None:
                self._along[x.operand.tuple_index] = along

    def whole(self) -> Instructions:
        """The state after all iterations, next to the loop."""
        return self._iterations(self._loop, list(self._loop.operand.operands))

    def replace_loop(self) -> None:
        """Have a loop of fewer iterations in place of this one."""
        loop, init = self._loop, self._loop.operand.operands
        trips = self._counter.trips // self._times
        shapes = list(loop.shape.tuple_shapes)
        for k, along in self._along.items():
            sizes = shapes[k].dimensions
            blocks = [*sizes[:along], trips, self._times, *sizes[along + 1 :]]
            shapes[k] = with_dimensions(shapes[k], blocks)
        condition, body = map(clone_computation, (condition_of(loop), self._body))
        for part in (condition, body):
            replace_parameter(part, Shape.tuple_of(shapes))
        test = condition.root
        number = make.get_tuple_element(test, condition.parameter, self._number)
        last = make.scalar(test, number.element_type, trips)
        condition.root = make.compare(test, "LT", number, last)
        drop_unused(condition)
        given = body.parameter
        body.root = make.tuple_of(given, self._iterations(given, make.elements(given, range(len(shapes)))))
        drop_unused(body)
        first = [_in_shape(o, shape) for o, shape in zip(init, shapes, strict=True)]
        new = new_loop(loop, make.tuple_of(loop, first), condition, body)
        config = json.loads(loop.raw("backend_config") or "{}")
        config["known_trip_count"] = {"n": str(trips)}
        set_attribute(new, "backend_config", json.dumps(config, separators=(",", ":")))
        after = make.elements(new, range(len(shapes)))
        old_shapes = loop.shape.tuple_shapes
        replace_state(loop, [_in_shape(o, s) for o, s in zip(after, old_shapes, strict=True)])

    def _iterations(self, at: Instruction, before: Instructions) -> Instructions:
        self._at, self._before, self._state = at, before, list(before)
        number = before[self._number]
        first, kind = number, number.element_type
        if at is not self._loop:
            first = make.binary(at, "multiply", number, make.scalar(at, kind, self._times))
        for iteration in range(self._times):
            self._state[self._number] = make.binary(at, "add", first, make.scalar(at, kind, iteration))
            self._iterate(iteration)
        self._state[self._number] = make.binary(at, "add", number, make.scalar(at, kind, 1))
        return self._state

    def _iterate(self, iteration: int) -> None:
        given, root = self._body.parameter, self._body.root
        new = {}
        for x in self._body.post_order():
            along = self._own_part(x)
            if x.is_get_tuple_element and x.operand is given:
                new[x] = self._state[x.tuple_index]
            elif along is not None and x.opcode == "dynamic-slice":
                new[x] = self._part(x, along, iteration)
            elif along is not None:
                new[x] = self._updated(x, along, new[x.second])
            elif x is not given and x is not root:
                new[x] = self._at.parent.add_instruction(x.clone([new[o] for o in x.operands]))
                if x.opcode in ("fusion", *CONTROL_FLOW):
                    set_called(new[x], [(name, clone_computation(c)) for name, c in x.called])
        self._state = [new[o] for o in root.operands]

    def _own_part(self, x: Instruction) -> int | None:
        """The dimension of which each iteration reads, or writes, one element of an array."""
        if x.opcode not in ("dynamic-slice", "dynamic-update-slice"):
            return None
        given, carried = self._body.parameter, x.operand
        reads = x.opcode == "dynamic-slice"
        part, starts = (x, x.operands[1:]) if reads else (x.second, x.operands[2:])
        along = [k for k, o in enumerate(starts) if integer_of(o) != 0]
        if len(along) != 1 or not is_element(starts[along[0]], given, self._number):
            return None
        if not carried.is_get_tuple_element or carried.operand is not given:
            return None
        root = self._body.root
        after = root.operands[carried.tuple_index]
        users = {u for u in given.users if is_element(u, given, carried.tuple_index)}
        readers = {r for u in users for r in u.users if r is not root}
        once = [o for o in root.operands if o in users or (o is x and not reads)] == [after]
        alone = readers == {x} and once and (reads or (after is x and x.user_count == 1))
        d = along[0]
        fits = carried.sizes[d] == self._counter.trips
        return d if alone and fits and part.sizes[d] == 1 else None

    def _starts(self, x: Instruction, along: int) -> Instructions:
        return starts_at(self._at, x.rank + 1, self._before[self._number], along)

    def _part(
        self,
        x: Instruction,
        along: int,
        iteration: int,
    ) -> Instruction:
        if x not in self._blocks:
            block = self._before[x.operand.tuple_index]
            if self._at is not self._loop:
                first, last = x.sizes[:along], x.sizes[along + 1 :]
                sizes = [*first, 1, self._times, *last]
                block = make.dynamic_slice(self._at, block, self._starts(x, along), sizes)
                block = make.bitcast(block, with_dimensions(x.shape, [*first, self._times, *last]))
            self._blocks[x] = block
        return make.part(self._at, self._blocks[x], iteration, iteration + 1, along)

    def _updated(
        self,
        x: Instruction,
        along: int,
        update: Instruction,
    ) -> Instruction:
        updates = self._updates.setdefault(x, [])
        updates.append(update)
        whole = self._before[x.operand.tuple_index]
        if len(updates) < self._times:
            return whole
        block = make.concatenate(self._at, updates, along)
        if self._at is self._loop:
            return block
        sizes = list(block.sizes)
        block = make.bitcast(block, with_dimensions(block.shape, [*sizes[:along], 1, *sizes[along:]]))
        return make.dynamic_update_slice(self._at, whole, block, self._starts(x, along))


_UNROLLED = 4_000  # Instructions of the largest unrolled iteration that is tried: more take many seconds
_LONG = 64  # iterations of a library's loop that is worth writing: those of random numbers are fewer
_WRITTEN_OUT = 1_000  # the most instructions of a loop that is written out


def is_own(x: Instruction) -> bool:
    """False in a function compiled by itself that no line of the program stands in: it is a library's."""
    module, metadata = x.parent.parent, x.attributes.get("metadata")
    if metadata is None:
        return True
    names = re.findall(r"jit\((\w+)\)", metadata.op_name or "")[1:]
    places = module.stack_frames.trace(metadata.stack_frame_id)
    functions = {place.function.rpartition(".")[2] for place in places if place.function}
    return not names or not functions or names[-1] in functions


def _loops(
    where: Callable[[int, Computation, Instructions], bool],
    backend: str = "",
    nested: bool = False,
    own: bool | None = True,
) -> Find:
    """Loops by their number of iterations, the body, and the values that it changes, the number aside. None
    that call Python: whatever is launched waits for that; nor that iterate over a divided dimension, where
    the partitioner divides another program. `own`: the program's; False: a library's."""

    def matches(loop: Instruction) -> object:
        counter, body = counter_of(loop), body_of(loop)
        if counter is None or body.root.opcode != "tuple" or (has(body, "while") and not nested):
            return False
        if any(calls_python(x) for c in reach([body], callees) for x in c):
            return False
        if any(x.opcode.startswith("all-gather") and gathers_again(x) for x in body):
            return False
        results = enumerate(body.root.operands)
        given = body.parameter
        changed = [x for k, x in results if k != counter.index and not is_element(x, given, k)]
        return own in (None, is_own(loop)) and where(counter.trips, body, changed)

    return each(matches, "while", backend=backend)


def _swaps(trips: int, body: Computation, changed: Instructions) -> bool:
    moved = (i for i in changed if i.operands and i.operand is body.parameter)
    return trips % 2 == 0 and any(i.byte_size > 1024 for i in moved)


def _is_search(_trips: int, body: Computation, changed: Instructions) -> bool:
    """True for a binary search: two bounds close in on an element of a table."""
    choices = {i.operand for i in changed if i.opcode == "select"}
    middles = (origins(i.second) for i in body if i.opcode == "gather")
    halves = any(has(values, "shift-right-logical", "divide") for values in middles)
    return halves and len(choices) == 1 and len(changed) == 2


def _is_small_choice(x: Instruction) -> bool:
    inside = [i for branch in x.called_computations for i in branch if i.opcode not in ("parameter", "tuple")]
    cheap = {*ELEMENTWISE_OPCODES, "get-tuple-element", "constant", "broadcast", "bitcast"}
    return cheap.issuperset(i.opcode for i in inside) and len(inside) < 40 and x.byte_size < SMALL_BYTES


def choose_result(x: Instruction) -> bool:
    """Have all branches be done where the conditional is, and choose among what they yield."""
    results = []
    for branch, given in zip(x.called_computations, x.operands[1:], strict=True):
        call = make.add(x, "call", x.shape, [given], called=[("to_apply", branch)])
        parts = make.elements(call, range(x.tuple_size)) if x.is_tuple else [call]
        results.append(make.tuple_of(x, parts))
        inline(call)
    number, chosen = x.operand, list(results[-1].operands)
    is_test = number.element_type == "pred"  # then the first branch is for true
    for k, result in reversed(list(enumerate(results[:-1]))):
        is_k = number if is_test else make.compare(x, "EQ", number, make.scalar(x, "s32", k))
        tests = [make.broadcast(x, r.shape.with_element_type("pred"), is_k) for r in result.operands]
        chosen = [make.select(x, *three) for three in zip(tests, result.operands, chosen, strict=True)]
    x.replace_all_uses_with(make.result_of(x, chosen))
    TupleSimplifier().run(x.parent.parent, OnlySkipped())
    return True


_repeated = _loops(lambda trips, *_: trips > 1, nested=True)
_short = _loops(lambda n, body, _: 1 < n <= _WRITTEN_OUT // len(body.post_order()), nested=True)
_searches = _loops(_is_search, "gpu tpu", own=None)
_of_library = _loops(lambda trips, *_: trips >= _LONG, "gpu", own=False)
_conditionals = each(_is_small_choice, "conditional")
_SEARCH = 'Pass method="scan_unrolled" to searchsorted; on a TPU "compare_all"'
_by = partial(partial, unrolled)
_unroll = partial(Recipe, unrolls=True)
_scan = partial(_unroll, "unroll-the-scan")
LOOPS = (
    _scan("Unroll the loop by 4 (a scan: 4 times its unroll)", _repeated, _by(times=4)),
    _scan("Unroll the loop by 2 (a scan: twice its unroll)", _repeated, _by(times=2, nearest=False)),
    _scan("Unroll the loop by 8 (a scan: 8 times its unroll)", _repeated, _by(times=8, nearest=False)),
    _scan("Write this loop of a library yourself, as a scan with unroll=8", _of_library, _by(times=8)),
    _unroll("unroll-the-swap", "Pass unroll=2, so that a swap needs no copy", _loops(_swaps), _by(times=2)),
    _unroll("unroll-the-short-loop", "Pass unroll=True to a short loop", _short, _by(times=None)),
    _unroll("unroll-the-search", _SEARCH, _searches, _by(times=None)),
    Recipe("vmap-not-map", "Use vmap: iterations depend on each other by sums at most"),
    Recipe("compute-before-the-loop", "Compute before the loop what no iteration changes"),
    Recipe("hoist-the-product", "Multiply for all iterations at once, before the loop"),
    Recipe("sum-in-the-carry", "Sum in the carry, not over stacked results"),
    Recipe("return-the-carry", "Return the carry: of what the loop stacks, only the last is read"),
    Recipe("associative-scan", "Use associative_scan: h = a·h + b is linear"),
    Recipe("select-not-branch", "Use where for small branches", _conditionals, choose_result),
)
