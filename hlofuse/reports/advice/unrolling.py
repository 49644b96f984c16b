"""Unrolling of loops that count."""

import json

from hlofuse.ir.fusing import clone_of, computation_of
from hlofuse.ir.graph import Instruction
from hlofuse.ir.removing import set_attribute
from hlofuse.passes.common import make
from hlofuse.passes.common.calls import clone_computation, set_called
from hlofuse.passes.common.literals import integer_of
from hlofuse.passes.loop.parts import body_of, condition_of, drop_unused, is_element, only_elements_are_read
from hlofuse.passes.loop.trip_count import Counter, counter_of


def unrolled(loop: Instruction, times: int | None) -> bool:
    """Have the loop do so many iterations in one, as `jax.lax.scan` does; None for all, without a loop.

    One more or one less where the trip count asks for that.
    """
    counter = counter_of(loop)
    if counter is None or counter.step != 1 or counter.init or not counter.trips:
        return False
    body = body_of(loop)
    if any(x.opcode == "while" or x.control_predecessors for x in body) or not only_elements_are_read(loop):
        return False
    if times is None:
        state = _Unrolling(loop, loop, list(loop.operands[0].operands), counter, counter.trips).state
        for element in list(loop.users):
            if element.opcode == "get-tuple-element":
                element.replace_all_uses_with(state[element.tuple_index])
        loop.replace_all_uses_with(make.tuple_of(loop, state))
        return True
    times = next((n for n in (times, times + 1, times - 1) if n > 1 and counter.trips % n == 0), None)
    if times is None:
        return False
    new = clone_computation(body)
    given = new.parameters[0]
    before = make.elements(given, range(len(given.shape.tuple_shapes)))
    new.root = make.tuple_of(given, _Unrolling(loop, given, before, counter, times).state)
    drop_unused(new)
    set_called(loop, [("body", new), ("condition", condition_of(loop))])
    config = json.loads(loop.attributes.raw("backend_config") or "{}")
    config["known_trip_count"] = {"n": str(counter.trips // times)}
    set_attribute(loop, "backend_config", json.dumps(config, separators=(",", ":")))
    return True


class _Unrolling:
    """The body so many times, one after the other, next to `at`.

    What the iterations read of an array one by one is read as a block, and so is what they write.
    """

    def __init__(
        self, loop: Instruction, at: Instruction, before: list[Instruction], counter: Counter, times: int
    ) -> None:
        self._at, self._before, self._times = at, before, times
        self._trips, self._number = counter.trips, counter.index
        self._body = body_of(loop)
        self._blocks: dict[Instruction, Instruction] = {}
        self._updates: dict[Instruction, list[Instruction]] = {}
        self.state = list(before)
        """After the iterations so far."""
        for iteration in range(times):
            self._iterate(iteration)
            first = before[counter.index]
            step = make.scalar(at, first.shape.element_type, iteration + 1)
            self.state[counter.index] = make.binary(at, "add", first, step)

    def _iterate(self, iteration: int) -> None:
        given, root = self._body.parameters[0], self._body.root
        new: dict[Instruction, Instruction] = {}
        for x in self._body.post_order():
            along = self._own_part(x)
            if x.opcode == "get-tuple-element" and x.operands[0] is given:
                new[x] = self.state[x.tuple_index]
            elif along is not None and x.opcode == "dynamic-slice":
                new[x] = self._part(x, along, iteration)
            elif along is not None:
                new[x] = self._updated(x, along, new[x.operands[1]])
            elif x is not given and x is not root:
                new[x] = computation_of(self._at).add_instruction(clone_of(x, [new[o] for o in x.operands]))
                if x.opcode == "fusion":
                    set_called(new[x], [(name, clone_computation(c)) for name, c in x.called])
        self.state = [new[o] for o in root.operands]

    def _own_part(self, x: Instruction) -> int | None:
        """The dimension of which each iteration reads, or writes, one element of an array."""
        if x.opcode not in ("dynamic-slice", "dynamic-update-slice"):
            return None
        given, carried = self._body.parameters[0], x.operands[0]
        reads = x.opcode == "dynamic-slice"
        part, starts = (x, x.operands[1:]) if reads else (x.operands[1], x.operands[2:])
        along = [k for k, o in enumerate(starts) if integer_of(o) != 0]
        if len(along) != 1 or not is_element(starts[along[0]], given, self._number):
            return None
        if carried.opcode != "get-tuple-element" or carried.operands[0] is not given:
            return None
        after = self._body.root.operands[carried.tuple_index]
        alone = after is carried if reads else after is x and len(carried.users) == len(x.users) == 1
        fits = carried.shape.dimensions[along[0]] >= self._trips and part.shape.dimensions[along[0]] == 1
        return along[0] if alone and fits else None

    def _starts(self, x: Instruction, along: int) -> list[Instruction]:
        number = self._before[self._number]
        zero = make.scalar(self._at, number.shape.element_type, 0)
        return [number if k == along else zero for k in range(x.shape.rank)]

    def _part(self, x: Instruction, along: int, iteration: int) -> Instruction:
        starts, limits = [0] * x.shape.rank, list(x.shape.dimensions)
        if x not in self._blocks:
            limits[along] = self._times
            block = self._before[x.operands[0].tuple_index]
            if block.shape.dimensions[along] != self._times:
                block = make.dynamic_slice(self._at, block, self._starts(x, along), limits)
            self._blocks[x] = block
        starts[along], limits[along] = iteration, iteration + 1
        return make.slice_of(self._at, self._blocks[x], starts, limits)

    def _updated(self, x: Instruction, along: int, update: Instruction) -> Instruction:
        updates = self._updates.setdefault(x, [])
        updates.append(update)
        whole = self._before[x.operands[0].tuple_index]
        if len(updates) < self._times:
            return whole
        block = make.concatenate(self._at, updates, along)
        if block.shape.dimensions == x.shape.dimensions:
            return block
        return make.dynamic_update_slice(self._at, whole, block, self._starts(x, along))
